/* Functions that read and write elements at indices: gather, scatter_, index_select and their like.
 * What the indices are is seen when the command runs: one that is out of range fails then. */
#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "frontend/pick.h"

/* A 0-dimensional tensor as one of one element. */
static tl_view at_least_1d(const tl_view *view) {
  tl_view seen = *view;
  if (seen.ndim > 0) return seen;
  seen.ndim = 1;
  seen.shape[0] = seen.stride[0] = 1;
  return seen;
}

/* Where a function that is not in place writes: a copy of x. */
static const tl_tensor *target(lua_State *L, const tl_tensor *x, bool in_place) {
  return in_place ? x : tl_enqueue_copy(L, TL_OP_clone, x, (tl_dtype)x->view.dtype);
}

/* Leaves what was written as the result. */
static int give(lua_State *L, const tl_tensor *x, const tl_tensor *written) {
  if (written == x) {
    lua_settop(L, 1);
  } else {
    tl_tensor_alias(L, written, &written->view);
  }
  return 1;
}

/* ---- an index for each element ---- */

static void check_index_size(lua_State *L, const char *name, const tl_view *x,
                             const tl_view *index, int dim) {
  bool fits = x->ndim == index->ndim;
  for (int d = 0; d < x->ndim && fits; d++) fits = d == dim || index->shape[d] <= x->shape[d];
  if (fits) return;
  char text[TL_SHAPE_TEXT], text_index[TL_SHAPE_TEXT];
  tl_fail(L, "%s: indices of size %s along dimension %d do not fit a tensor of size %s", name,
          tl_view_shape_text(index, text_index), dim + 1, tl_view_shape_text(x, text));
}

/* One index for each element of `shape`, into dimension `dim` of x. */
static void pick_elements(tl_pick *pick, const tl_tensor *x, const tl_view *seen, int dim,
                          const tl_tensor *index, int ndim, const int64_t *shape) {
  tl_view at = *seen, view;
  int64_t stride = at.stride[dim];
  at.stride[dim] = 0;
  at.ndim = (uint8_t)ndim;
  for (int d = 0; d < ndim; d++) {
    at.shape[d] = shape[d];
    if (seen->shape[d] == 1) at.stride[d] = 0;
  }
  tl_view_expand(&view, &index->view, ndim, shape);
  tl_pick_begin(pick, x, &x->view, &at);
  tl_pick_add(pick, index, &view, x->view.ndim > 0 ? dim : TL_FLAT, stride);
}

static int gather(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "gather");
  const tl_tensor *index = tl_check_indices(L, 3, "gather");
  tl_check_count(L, 3, "gather");
  tl_view seen = at_least_1d(&x->view), index_seen = at_least_1d(&index->view);
  int dim = tl_check_dim(L, 2, "gather", &seen);
  check_index_size(L, "gather", &seen, &index_seen, dim);
  tl_pick pick;
  pick_elements(&pick, x, &seen, dim, index, index->view.ndim, index->view.shape);
  tl_pick_gather(L, TL_OP_gather, &pick);
  return 1;
}

/* The part of a value that goes with indices: its first elements along each dimension, or the only
 * one for all. */
static tl_view view_for(lua_State *L, const char *name, const tl_view *value,
                        const tl_view *index) {
  tl_view view = *index;
  bool fits = value->ndim == index->ndim;
  for (int d = 0; d < index->ndim && fits; d++) fits = index->shape[d] <= value->shape[d];
  if (!fits && value->ndim > 0) {
    char text[TL_SHAPE_TEXT], text_index[TL_SHAPE_TEXT];
    tl_fail(L, "%s: values of size %s do not fit indices of size %s", name,
            tl_view_shape_text(value, text), tl_view_shape_text(index, text_index));
  }
  view.offset = value->offset;
  view.dtype = value->dtype;
  for (int d = 0; d < index->ndim; d++) view.stride[d] = fits ? value->stride[d] : 0;
  return view;
}

/* name(x, dim, index, value) */
static int scatter_any(lua_State *L, tl_op op, bool in_place, bool add) {
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  const tl_tensor *index = tl_check_indices(L, 3, name);
  tl_check_count(L, 4, name);
  tl_view seen = at_least_1d(&x->view), index_seen = at_least_1d(&index->view);
  int dim = tl_check_dim(L, 2, name, &seen);
  check_index_size(L, name, &seen, &index_seen, dim);
  const tl_tensor *value = tl_check_value(L, 4, name, (tl_dtype)x->view.dtype);
  view_for(L, name, &value->view, &index->view);
  const tl_tensor *written = target(L, x, in_place);
  value = tl_apart(L, written, tl_as_dtype(L, value, (tl_dtype)x->view.dtype));
  index = tl_apart(L, written, index);
  seen = at_least_1d(&written->view);
  tl_pick pick;
  pick_elements(&pick, written, &seen, dim, index, index->view.ndim, index->view.shape);
  tl_view view = view_for(L, name, &value->view, &index->view);
  tl_pick_scatter(L, op, &pick, value, &view, add);
  return give(L, x, written);
}

static int scatter(lua_State *L) { return scatter_any(L, TL_OP_scatter, false, false); }
static int scatter_(lua_State *L) { return scatter_any(L, TL_OP_scatter_, true, false); }
static int scatter_add(lua_State *L) { return scatter_any(L, TL_OP_scatter_add, false, true); }
static int scatter_add_(lua_State *L) { return scatter_any(L, TL_OP_scatter_add_, true, true); }

/* The sizes of both broadcast to each other, but those of the index along `dim`. */
static void take_shape(lua_State *L, const tl_view *x, const tl_view *index, int dim,
                       int64_t *shape) {
  bool fits = x->ndim == index->ndim;
  for (int d = 0; d < index->ndim && fits; d++) {
    int64_t a = x->shape[d], b = index->shape[d];
    shape[d] = d == dim || a == 1 ? b : a;
    fits = d == dim || a == b || a == 1 || b == 1;
  }
  if (fits) return;
  char text[TL_SHAPE_TEXT], text_index[TL_SHAPE_TEXT];
  tl_fail(L, "take_along_dim: cannot broadcast %s with %s but for dimension %d",
          tl_view_shape_text(x, text), tl_view_shape_text(index, text_index), dim + 1);
}

static int take_along_dim(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "take_along_dim");
  const tl_tensor *index = tl_check_indices(L, 2, "take_along_dim");
  tl_check_count(L, 3, "take_along_dim");
  int dim = 0;
  if (lua_isnoneornil(L, 3)) { /* of all elements */
    x = tl_flattened(L, x);
    index = tl_flattened(L, index);
  } else {
    tl_view seen = at_least_1d(&x->view);
    dim = tl_check_dim(L, 3, "take_along_dim", &seen);
  }
  int64_t shape[TL_MAX_DIMS];
  tl_view seen = at_least_1d(&x->view), index_seen = at_least_1d(&index->view);
  take_shape(L, &seen, &index_seen, dim, shape);
  tl_pick pick;
  pick_elements(&pick, x, &seen, dim, index, index->view.ndim, shape);
  tl_pick_gather(L, TL_OP_take_along_dim, &pick);
  return 1;
}

/* ---- an index for each slice along a dimension ---- */

static const tl_tensor *check_vector(lua_State *L, int argument, const char *name) {
  const tl_tensor *index = tl_check_indices(L, argument, name);
  if (index->view.ndim > 1) {
    tl_fail(L, "%s: indices have one dimension, not %d", name, index->view.ndim);
  }
  return index;
}

/* The shape of the slices of x along `dim`, as many as there are indices. */
static tl_view slices(const tl_view *x, int dim, const tl_tensor *index) {
  tl_view view = at_least_1d(x);
  view.shape[dim] = tl_view_numel(&index->view);
  return view;
}

static void pick_slices(tl_pick *pick, const tl_tensor *x, int dim, const tl_tensor *index) {
  tl_view at = slices(&x->view, dim, index), view = at;
  int64_t stride = at.stride[dim];
  at.stride[dim] = 0;
  view.offset = index->view.offset;
  view.dtype = index->view.dtype;
  for (int d = 0; d < at.ndim; d++) view.stride[d] = 0;
  if (index->view.ndim > 0) view.stride[dim] = index->view.stride[0];
  tl_pick_begin(pick, x, &x->view, &at);
  tl_pick_add(pick, index, &view, x->view.ndim > 0 ? dim : TL_FLAT, stride);
}

static int index_select(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "index_select");
  const tl_tensor *index = check_vector(L, 3, "index_select");
  tl_check_count(L, 3, "index_select");
  tl_view seen = at_least_1d(&x->view);
  tl_pick pick;
  pick_slices(&pick, x, tl_check_dim(L, 2, "index_select", &seen), index);
  tl_pick_gather(L, TL_OP_index_select, &pick);
  return 1;
}

/* name(x, dim, index, value): the value broadcasts to the slices. */
static int index_any(lua_State *L, tl_op op, bool in_place, bool add) {
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  const tl_tensor *index = check_vector(L, 3, name);
  bool fills = op == TL_OP_index_fill || op == TL_OP_index_fill_;
  tl_check_count(L, 4, name);
  tl_view seen = at_least_1d(&x->view), view;
  int dim = tl_check_dim(L, 2, name, &seen);
  seen = slices(&x->view, dim, index);
  if (!fills) tl_tensor_check(L, 4, name);
  const tl_tensor *value = tl_check_value(L, 4, name, (tl_dtype)x->view.dtype);
  if (fills && value->view.ndim > 0) {
    tl_fail(L, "%s: the value has no dimensions, not %d", name, value->view.ndim);
  }
  if (!tl_view_broadcasts_to(&value->view, seen.ndim, seen.shape)) {
    char text[TL_SHAPE_TEXT], text_value[TL_SHAPE_TEXT];
    tl_fail(L, "%s: cannot broadcast %s to the size of the part written, %s", name,
            tl_view_shape_text(&value->view, text_value), tl_view_shape_text(&seen, text));
  }
  const tl_tensor *written = target(L, x, in_place);
  value = tl_apart(L, written, tl_as_dtype(L, value, (tl_dtype)x->view.dtype));
  tl_view_expand(&view, &value->view, seen.ndim, seen.shape);
  tl_pick pick;
  pick_slices(&pick, written, dim, tl_apart(L, written, index));
  tl_pick_scatter(L, op, &pick, value, &view, add);
  return give(L, x, written);
}

static int index_add(lua_State *L) { return index_any(L, TL_OP_index_add, false, true); }
static int index_add_(lua_State *L) { return index_any(L, TL_OP_index_add_, true, true); }
static int index_copy(lua_State *L) { return index_any(L, TL_OP_index_copy, false, false); }
static int index_copy_(lua_State *L) { return index_any(L, TL_OP_index_copy_, true, false); }
static int index_fill(lua_State *L) { return index_any(L, TL_OP_index_fill, false, false); }
static int index_fill_(lua_State *L) { return index_any(L, TL_OP_index_fill_, true, false); }

/* ---- indices that count all elements ---- */

/* `flat` shows the elements of x along one dimension. */
static void pick_flat(tl_pick *pick, const tl_tensor *flat, const tl_view *x,
                      const tl_tensor *index) {
  tl_view at = index->view;
  at.offset = flat->view.offset;
  at.dtype = flat->view.dtype;
  for (int d = 0; d < at.ndim; d++) at.stride[d] = 0;
  tl_pick_begin(pick, flat, x, &at);
  tl_pick_add(pick, index, &index->view, TL_FLAT, flat->view.stride[0]);
}

static int take(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "take");
  const tl_tensor *index = tl_check_indices(L, 2, "take");
  tl_check_count(L, 2, "take");
  tl_pick pick;
  pick_flat(&pick, tl_flattened(L, x), &x->view, index);
  tl_pick_gather(L, TL_OP_take, &pick);
  return 1;
}

/* name(x, index, values [, accumulate]) */
static int put_any(lua_State *L, tl_op op, bool in_place) {
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  const tl_tensor *index = tl_check_indices(L, 2, name);
  const tl_tensor *value = tl_tensor_check(L, 3, name);
  tl_check_count(L, 4, name);
  if (!lua_isnoneornil(L, 4) && !lua_isboolean(L, 4)) {
    tl_fail(L, "%s: accumulate must be true or false, not %s", name, luaL_typename(L, 4));
  }
  bool add = lua_toboolean(L, 4);
  if (tl_view_numel(&value->view) != tl_view_numel(&index->view)) {
    tl_fail(L, "%s: %I values are not for %I indices", name,
            (LUAI_UACINT)tl_view_numel(&value->view), (LUAI_UACINT)tl_view_numel(&index->view));
  }
  const tl_tensor *written = target(L, x, in_place), *flat = tl_flattened(L, written);
  value = tl_flattened(L, tl_apart(L, written, tl_as_dtype(L, value, (tl_dtype)x->view.dtype)));
  index = tl_flattened(L, tl_apart(L, written, index));
  tl_pick pick;
  pick_flat(&pick, flat, &x->view, index);
  tl_pick_scatter(L, op, &pick, value, &value->view, add);
  if (flat->storage != written->storage) { /* it was a copy */
    tl_view view;
    tl_view_reshape(&view, &flat->view, x->view.ndim, x->view.shape);
    const tl_tensor *back = tl_tensor_alias(L, flat, &view);
    tl_tensor *out = tl_tensor_alias(L, written, &written->view);
    tl_enqueue_step(L, TL_OP_copy_, out, false, (tl_dtype)view.dtype, NULL, 1, &back);
  }
  return give(L, x, written);
}

static int put(lua_State *L) { return put_any(L, TL_OP_put, false); }
static int put_(lua_State *L) { return put_any(L, TL_OP_put_, true); }

const luaL_Reg tl_gather_functions[] = {
    {"gather", gather},
    {"scatter", scatter},
    {"scatter_", scatter_},
    {"scatter_add", scatter_add},
    {"scatter_add_", scatter_add_},
    {"take_along_dim", take_along_dim},
    {"index_select", index_select},
    {"index_add", index_add},
    {"index_add_", index_add_},
    {"index_copy", index_copy},
    {"index_copy_", index_copy_},
    {"index_fill", index_fill},
    {"index_fill_", index_fill_},
    {"take", take},
    {"put", put},
    {"put_", put_},
    {NULL, NULL},
};
