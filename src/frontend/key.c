#include "frontend/key.h"

#include "frontend/arguments.h"

/* A range, {}, {first, last} or {first, last, step}, on top of the stack, into dimension `entry` of
 * `whole`, which is dimension `dim` of what is left of it. */
static void take_range(lua_State *L, const char *name, const tl_view *whole, int entry,
                       tl_view *view, int dim) {
  int table = lua_gettop(L);
  int64_t given[3] = {1, -1, 1};
  int64_t size = whole->shape[entry];
  size_t entries = lua_rawlen(L, table);
  if (entries == 1 || entries > 3) {
    tl_fail(L, "%s: a range is {first, last} or {first, last, step}, or {} for all", name);
  }
  for (size_t i = 0; i < entries; i++) {
    lua_rawgeti(L, table, (lua_Integer)i + 1);
    int is_integer = 0;
    if (lua_type(L, -1) == LUA_TNUMBER) given[i] = lua_tointegerx(L, -1, &is_integer);
    if (!is_integer) {
      tl_fail(L, "%s: a range wants integers, not %s", name, tl_describe_value(L, -1));
    }
    lua_pop(L, 1);
  }
  int64_t first = given[0] < 0 ? size + given[0] : given[0] - 1;
  int64_t last = given[1] < 0 ? size + given[1] : given[1] - 1;
  char text[TL_SHAPE_TEXT];
  if (given[2] < 1) tl_fail(L, "%s: a range's step must be at least 1", name);
  /* One before the first and one behind the last are allowed, for an empty range. */
  if (entries > 0 && (given[0] == 0 || first < 0 || first > size || last < -1 || last >= size)) {
    tl_fail(L, "%s: range {%I, %I} is out of range for dimension %d of a tensor of size %s",
            name, (LUAI_UACINT)given[0], (LUAI_UACINT)given[1], entry + 1,
            tl_view_shape_text(whole, text));
  }
  int64_t count = last >= first ? (last - first) / given[2] + 1 : 0;
  tl_view_range(view, dim, first, count, given[2]);
}

static void take_mask(lua_State *L, const char *name, const tl_tensor *mask, int entry,
                      tl_key *key) {
  const tl_view *whole = &key->whole, *view = &mask->view;
  bool fits = entry + view->ndim <= whole->ndim;
  for (int d = 0; d < view->ndim && fits; d++) fits = view->shape[d] == whole->shape[entry + d];
  if (fits) return;
  char text[TL_SHAPE_TEXT], text_mask[TL_SHAPE_TEXT];
  tl_fail(L, "%s: a mask of size %s does not fit dimension %d of a tensor of size %s", name,
          tl_view_shape_text(view, text_mask), entry + 1, tl_view_shape_text(whole, text));
}

/* Takes the tensor on top of the stack, which stays there; returns how many dimensions it is
 * for. */
static int take_tensor(lua_State *L, const char *name, const tl_tensor *tensor, int entry, int dim,
                       tl_key *key) {
  tl_dtype dtype = (tl_dtype)tensor->view.dtype;
  if (!tensor->storage) tl_fail(L, "%s: an index is a tensor that has been closed", name);
  if (tl_dtype_is_floating(dtype)) {
    tl_fail(L, "%s: a tensor of indices must be of integers or bools, not of %s", name,
            tl_dtype_name(dtype));
  }
  if (dtype == TL_bool) take_mask(L, name, tensor, entry, key);
  key->tensors[key->count++] = (tl_key_tensor){tensor, dim, entry};
  return dtype == TL_bool ? tensor->view.ndim : 1;
}

/* How many dimensions a table of entries is for. */
static int64_t count_dims(lua_State *L, int index, const char *name) {
  int64_t entries = (int64_t)lua_rawlen(L, index), dims = entries;
  for (int64_t i = 1; i <= entries && i <= TL_MAX_DIMS; i++) {
    lua_rawgeti(L, index, i);
    const tl_tensor *tensor = tl_tensor_test(L, -1);
    if (tensor && tensor->view.dtype == TL_bool) {
      if (tensor->view.ndim == 0) {
        tl_fail(L, "%s: a mask in a table must have dimensions: x[mask] takes one without", name);
      }
      dims += tensor->view.ndim - 1;
    }
    lua_pop(L, 1);
  }
  return dims;
}

void tl_key_read(lua_State *L, int index, const char *name, const tl_view *whole, tl_key *key) {
  const tl_tensor *alone = tl_tensor_test(L, index);
  int type = lua_type(L, index);
  char text[TL_SHAPE_TEXT];
  key->whole = key->view = *whole;
  key->count = 0;
  if (!alone && type != LUA_TTABLE && type != LUA_TNUMBER) {
    tl_fail(L, "%s: an index must be an integer, a table or a tensor, not %s", name,
            lua_isnone(L, index) ? "missing" : lua_typename(L, type));
  }
  luaL_checkstack(L, LUA_MINSTACK + 4 * TL_MAX_DIMS, name);
  bool table = type == LUA_TTABLE, masks = alone && alone->view.dtype == TL_bool;
  int64_t dims = table ? count_dims(L, index, name) : masks ? 0 : 1;
  if (dims > whole->ndim) {
    tl_fail(L, "%s: %I indices are too many for a tensor of size %s", name, (LUAI_UACINT)dims,
            tl_view_shape_text(whole, text));
  }
  int64_t entries = table ? (int64_t)lua_rawlen(L, index) : 1;
  for (int i = 1, entry = 0, dim = 0; i <= entries; i++) {
    if (table) {
      lua_rawgeti(L, index, i);
    } else {
      lua_pushvalue(L, index);
    }
    const tl_tensor *tensor = tl_tensor_test(L, -1);
    if (tensor) {
      int taken = take_tensor(L, name, tensor, entry, dim, key);
      entry += taken;
      dim += taken;
      continue;
    }
    if (lua_type(L, -1) == LUA_TTABLE) {
      take_range(L, name, whole, entry++, &key->view, dim++);
    } else {
      tl_view_select(&key->view, dim, tl_check_index(L, lua_gettop(L), name, whole, entry++));
    }
    lua_pop(L, 1);
  }
}

bool tl_key_is_mask(const tl_key *key) {
  return key->count == 1 && key->tensors[0].tensor->view.dtype == TL_bool;
}

/* Replaces masks by the indices of their true elements, one tensor for each dimension. */
static void resolve_masks(lua_State *L, tl_op op, tl_key *key) {
  tl_key_tensor resolved[TL_MAX_DIMS];
  int count = 0;
  for (int i = 0; i < key->count; i++) {
    tl_key_tensor given = key->tensors[i];
    if (given.tensor->view.dtype != TL_bool) {
      resolved[count++] = given;
      continue;
    }
    const tl_tensor *indices = tl_mask_nonzero(L, op, given.tensor);
    for (int d = 0; d < given.tensor->view.ndim; d++) {
      tl_view column = indices->view;
      tl_view_select(&column, 1, d);
      resolved[count++] =
          (tl_key_tensor){tl_tensor_alias(L, indices, &column), given.dim + d, given.entry + d};
    }
  }
  key->count = count;
  for (int i = 0; i < count; i++) key->tensors[i] = resolved[i];
}

/* Where among the other dimensions those of the indices go: where they are, when no other is
 * between them, else to the front.  Indices without dimensions do not count, as numbers do not. */
static int position(const tl_key *key) {
  int first = -1, last = -1, before = 0;
  for (int i = 0; i < key->count; i++) {
    if (key->tensors[i].tensor->view.ndim == 0) continue;
    if (first < 0) {
      first = key->tensors[i].dim;
      before = first - i; /* dimensions without an index */
    } else if (key->tensors[i].dim - i != before) {
      return 0;
    }
    last = i;
  }
  return last < 0 ? 0 : before;
}

void tl_key_pick(lua_State *L, tl_op op, const tl_tensor *tensor, tl_key *key, bool apart,
                 tl_pick *pick) {
  const char *name = tl_ops[op].name;
  resolve_masks(L, op, key);
  tl_view shared; /* the indices' shape, broadcast */
  tl_error error;
  tl_view_make(&shared, TL_int64, 0, NULL, &error);
  for (int i = 0; i < key->count; i++) {
    tl_view before = shared;
    if (tl_view_broadcast(&shared, TL_int64, &before, &key->tensors[i].tensor->view, name,
                          &error) != TL_OK) {
      tl_raise(L, &error);
    }
  }
  int ndim = key->view.ndim - key->count + shared.ndim, at = position(key);
  if (ndim > TL_MAX_DIMS) {
    tl_fail(L, "%s: %d dimensions are too many: at most %d", name, ndim, TL_MAX_DIMS);
  }
  tl_view result = key->view, index; /* the others' dimensions; from `at` on the indices' */
  result.ndim = (uint8_t)ndim;
  for (int d = 0, i = 0, to = 0; d < key->view.ndim; d++) {
    if (i < key->count && key->tensors[i].dim == d) {
      i++;
      continue;
    }
    if (to == at) to += shared.ndim;
    result.shape[to] = key->view.shape[d];
    result.stride[to++] = key->view.stride[d];
  }
  for (int d = 0; d < shared.ndim; d++) {
    result.shape[at + d] = shared.shape[d];
    result.stride[at + d] = 0;
  }
  tl_pick_begin(pick, tensor, &key->whole, &result);
  for (int i = 0; i < key->count; i++) {
    const tl_key_tensor *given = &key->tensors[i];
    const tl_tensor *indices = apart ? tl_apart(L, tensor, given->tensor) : given->tensor;
    tl_view own;
    tl_view_expand(&own, &indices->view, shared.ndim, shared.shape);
    index = result;
    index.offset = own.offset;
    index.dtype = own.dtype;
    for (int d = 0; d < ndim; d++) {
      bool shows = d >= at && d < at + shared.ndim;
      index.stride[d] = shows ? own.stride[d - at] : 0;
    }
    tl_pick_add(pick, indices, &index, given->entry, key->view.stride[given->dim]);
  }
}
