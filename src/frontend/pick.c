#include "frontend/pick.h"

#include <string.h>

#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/trace.h"

/* ---- operands ---- */

const tl_tensor *tl_apart(lua_State *L, const tl_tensor *written, const tl_tensor *input) {
  if (input->storage != written->storage || !tl_view_may_overlap(&input->view, &written->view)) {
    return input;
  }
  return tl_enqueue_copy(L, TL_OP_clone, input, (tl_dtype)input->view.dtype);
}

const tl_tensor *tl_as_dtype(lua_State *L, const tl_tensor *value, tl_dtype dtype) {
  return (tl_dtype)value->view.dtype == dtype ? value : tl_enqueue_copy(L, TL_OP_to, value, dtype);
}

const tl_tensor *tl_check_value(lua_State *L, int index, const char *name, tl_dtype dtype) {
  if (lua_type(L, index) == LUA_TNUMBER || lua_type(L, index) == LUA_TBOOLEAN) {
    return tl_enqueue_number(L, index, name, dtype);
  }
  if (!tl_tensor_test(L, index)) {
    tl_fail(L, "%s: argument %d must be a number or a tensor, not %s", name, index,
            tl_describe(L, index));
  }
  return tl_tensor_check(L, index, name);
}

const tl_tensor *tl_check_indices(lua_State *L, int index, const char *name) {
  const tl_tensor *indices = tl_tensor_check(L, index, name);
  tl_dtype dtype = (tl_dtype)indices->view.dtype;
  if (tl_dtype_is_floating(dtype) || dtype == TL_bool) {
    tl_fail(L, "%s: argument %d must be a tensor of integers, not of %s", name, index,
            tl_dtype_name(dtype));
  }
  return indices;
}

const tl_tensor *tl_check_mask(lua_State *L, int index, const char *name) {
  const tl_tensor *mask = tl_tensor_check(L, index, name);
  if (mask->view.dtype != TL_bool) {
    tl_fail(L, "%s: argument %d must be a mask of bools, not a tensor of %s", name, index,
            tl_dtype_name((tl_dtype)mask->view.dtype));
  }
  return mask;
}

const tl_tensor *tl_flattened(lua_State *L, const tl_tensor *x) {
  int64_t numel = tl_view_numel(&x->view);
  tl_view view;
  if (x->view.ndim == 1) return x;
  if (!tl_view_reshape(&view, &x->view, 1, &numel)) {
    x = tl_enqueue_copy(L, TL_OP_clone, x, (tl_dtype)x->view.dtype);
    tl_view_reshape(&view, &x->view, 1, &numel);
  }
  return tl_tensor_alias(L, x, &view);
}

/* ---- by indices ---- */

void tl_pick_begin(tl_pick *pick, const tl_tensor *tensor, const tl_view *whole,
                   const tl_view *at) {
  pick->tensor = tensor;
  pick->at = *at;
  pick->count = 0;
  pick->parameters = (tl_index){.ndim = whole->ndim};
  memcpy(pick->parameters.shape, whole->shape, whole->ndim * sizeof *whole->shape);
}

void tl_pick_add(tl_pick *pick, const tl_tensor *index, const tl_view *view, int dim,
                 int64_t stride) {
  int i = pick->count++;
  pick->indices[i] = index;
  pick->views[i] = *view;
  pick->parameters.dim[i] = (uint8_t)dim;
  pick->parameters.stride[i] = stride;
}

enum { MAX_VIEWS = 2 + TL_MAX_INDICES };

/* Makes `ndim` dimensions of the views, from `first` on in each, as few as their strides allow. */
static int merge(int nviews, tl_view *views, const int *first, int ndim) {
  int last = -1; /* of those made */
  for (int d = 0; d < ndim; d++) {
    int64_t size = views[0].shape[first[0] + d];
    if (size == 1) continue;
    bool follows = last >= 0;
    for (int v = 0; v < nviews && follows; v++) {
      const int64_t *stride = views[v].stride + first[v];
      follows = stride[last] == size * stride[d];
    }
    if (!follows) last++;
    for (int v = 0; v < nviews; v++) {
      int64_t *to = &views[v].shape[first[v] + last];
      *to = follows ? *to * size : size;
      views[v].stride[first[v] + last] = views[v].stride[first[v] + d];
    }
  }
  for (int v = 0; v < nviews; v++) views[v].ndim = (uint8_t)(first[v] + last + 1);
  return last + 1;
}

enum { SCATTERED = TL_READ | TL_WRITE }; /* written here and there */

/* Pushes a contiguous tensor of its own. */
static tl_tensor *push_result(lua_State *L, const char *name, tl_dtype dtype, int ndim,
                              const int64_t *shape) {
  tl_view view;
  tl_error error;
  if (tl_view_make(&view, dtype, ndim, shape, &error) != TL_OK) {
    tl_fail(L, "%s: %s", name, error.text);
  }
  return tl_tensor_new(L, &view, name);
}

static void enqueue(lua_State *L, tl_op op, const tl_pick *pick, tl_index_mode mode,
                    const tl_tensor *other, const tl_view *view) {
  static const int from_0[MAX_VIEWS];
  bool gathers = mode == TL_GATHER;
  tl_view views[MAX_VIEWS];
  tl_operand operands[MAX_VIEWS];
  int noperands = 2 + pick->count;
  views[gathers ? 0 : 1] = *view;
  views[gathers ? 1 : 0] = pick->at;
  memcpy(views + 2, pick->views, (size_t)pick->count * sizeof *views);
  merge(noperands, views, from_0, pick->at.ndim);
  operands[0] = tl_operand_of(gathers ? other : pick->tensor, &views[0],
                              gathers ? TL_WRITE | TL_WHOLE | TL_FRESH : SCATTERED);
  operands[1] = tl_operand_of(gathers ? pick->tensor : other, &views[1], TL_READ);
  for (int i = 2; i < noperands; i++) {
    operands[i] = tl_operand_of(pick->indices[i - 2], &views[i], TL_READ);
  }
  tl_index parameters = pick->parameters;
  parameters.mode = (uint8_t)mode;
  tl_enqueue(L, op, noperands, operands, &parameters, sizeof parameters);
}

tl_tensor *tl_pick_gather(lua_State *L, tl_op op, const tl_pick *pick) {
  const tl_view *at = &pick->at;
  tl_tensor *out = push_result(L, tl_ops[op].name, (tl_dtype)at->dtype, at->ndim, at->shape);
  enqueue(L, op, pick, TL_GATHER, out, &out->view);
  return out;
}

void tl_pick_scatter(lua_State *L, tl_op op, const tl_pick *pick, const tl_tensor *value,
                     const tl_view *view, bool add) {
  tl_check_unfolded(L, op, &pick->tensor->view);
  enqueue(L, op, pick, add ? TL_SCATTER_ADD : TL_SCATTER, value, view);
}

/* ---- by a mask ---- */

/* Elements of a mask that are looked at together, when each stands for one of the tensor. */
enum { MASK_BLOCK = 1 << 16 };

static int64_t block_for(const tl_view *mask, const tl_view *view) {
  int64_t numel = tl_view_numel(mask), all = tl_view_numel(view);
  int64_t block = numel > 0 && all > numel ? MASK_BLOCK / (all / numel) : MASK_BLOCK;
  int64_t least = (numel + TL_MAX_BLOCKS - 1) / TL_MAX_BLOCKS;
  if (block < least) block = least;
  return block > 0 ? block : 1;
}

/* Pushes what TL_LOCATE gives. */
static tl_tensor *push_starts(lua_State *L, tl_op op, const tl_tensor *mask, int64_t block) {
  int64_t count = (tl_view_numel(&mask->view) + block - 1) / block + 1;
  tl_view view;
  tl_view_make(&view, TL_int64, 1, &count, NULL); /* never too large */
  tl_tensor *starts = tl_tensor_new(L, &view, tl_ops[op].name);
  tl_operand operands[] = {tl_operand_of(starts, &view, TL_WRITE | TL_WHOLE | TL_FRESH),
                           tl_operand_of(mask, &mask->view, TL_READ)};
  tl_index parameters = {.mode = TL_LOCATE, .block = block};
  tl_enqueue(L, op, 2, operands, &parameters, sizeof parameters);
  return starts;
}

/* Pushes the same, and waits for how many there are. */
static tl_tensor *count_true(lua_State *L, tl_op op, const tl_tensor *mask, int64_t block,
                             int64_t *count) {
  const char *name = tl_ops[op].name;
  tl_context *context = tl_context_of(L);
  if (context->trace) tl_trace_refuse_read(L, context, name);
  tl_tensor *starts = push_starts(L, op, mask, block);
  const int64_t *counts = tl_tensor_read(L, starts, name);
  *count = counts[starts->view.shape[0] - 1];
  return starts;
}

tl_tensor *tl_mask_nonzero(lua_State *L, tl_op op, const tl_tensor *mask) {
  int64_t shape[2] = {0, mask->view.ndim}, block = block_for(&mask->view, &mask->view);
  const tl_tensor *starts = count_true(L, op, mask, block, &shape[0]);
  tl_tensor *out = push_result(L, tl_ops[op].name, TL_int64, 2, shape);
  tl_operand operands[] = {tl_operand_of(out, &out->view, TL_WRITE | TL_WHOLE | TL_FRESH),
                           tl_operand_of(mask, &mask->view, TL_READ),
                           tl_operand_of(starts, &starts->view, TL_READ)};
  tl_index parameters = {.mode = TL_COORDINATES, .block = block};
  tl_enqueue(L, op, 3, operands, &parameters, sizeof parameters);
  return out;
}

/* The same elements with `count` dimensions from `dim` on moved to the front. */
static tl_view moved_to_front(const tl_view *view, int dim, int count) {
  tl_view moved = *view;
  for (int d = 0; d < dim + count; d++) {
    int from = d < count ? dim + d : d - count;
    moved.shape[d] = view->shape[from];
    moved.stride[d] = view->stride[from];
  }
  return moved;
}

/* TL_SELECT or TL_PLACE: `picked` shows the elements of the other tensor, with the true ones along
 * its dimension `dim`. */
static void move_true(lua_State *L, tl_op op, tl_index_mode mode, const tl_tensor *tensor,
                      const tl_tensor *mask, int dim, const tl_tensor *other,
                      const tl_view *picked, const tl_tensor *starts, bool exactly) {
  bool selects = mode == TL_SELECT;
  int ndim = mask->view.ndim;
  const int first[2] = {ndim, 1};
  tl_view views[2] = {moved_to_front(&tensor->view, dim, ndim), moved_to_front(picked, dim, 1)};
  merge(2, views, first, picked->ndim - 1);
  tl_operand operands[4];
  operands[selects ? 1 : 0] = tl_operand_of(tensor, &views[0], selects ? TL_READ : SCATTERED);
  operands[selects ? 0 : 1] =
      tl_operand_of(other, &views[1], selects ? TL_WRITE | TL_WHOLE | TL_FRESH : TL_READ);
  operands[2] = tl_operand_of(mask, &mask->view, TL_READ);
  operands[3] = tl_operand_of(starts, &starts->view, TL_READ);
  tl_index parameters = {.mode = (uint8_t)mode,
                         .block = block_for(&mask->view, &tensor->view),
                         .exactly = exactly};
  tl_enqueue(L, op, 4, operands, &parameters, sizeof parameters);
}

/* The shape of what is picked, were `count` elements of the mask true. */
static int picked_shape(lua_State *L, const char *name, const tl_view *view, const tl_view *mask,
                        int dim, int64_t count, int64_t *shape) {
  int ndim = view->ndim - mask->ndim + 1, behind = dim + mask->ndim;
  if (ndim > TL_MAX_DIMS) {
    tl_fail(L, "%s: %d dimensions are too many: at most %d", name, ndim, TL_MAX_DIMS);
  }
  memcpy(shape, view->shape, (size_t)dim * sizeof *shape);
  shape[dim] = count;
  memcpy(shape + dim + 1, view->shape + behind, (size_t)(view->ndim - behind) * sizeof *shape);
  return ndim;
}

tl_tensor *tl_mask_select(lua_State *L, tl_op op, const tl_tensor *tensor, const tl_tensor *mask,
                          int dim) {
  const char *name = tl_ops[op].name;
  int64_t shape[TL_MAX_DIMS];
  int ndim = picked_shape(L, name, &tensor->view, &mask->view, dim, 0, shape);
  const tl_tensor *starts =
      count_true(L, op, mask, block_for(&mask->view, &tensor->view), &shape[dim]);
  tl_tensor *out = push_result(L, name, (tl_dtype)tensor->view.dtype, ndim, shape);
  move_true(L, op, TL_SELECT, tensor, mask, dim, out, &out->view, starts, true);
  return out;
}

/* Where the mask is true the tensor becomes the value, which is the same for all of those. */
static void write_where(lua_State *L, const tl_tensor *tensor, const tl_tensor *mask, int dim,
                        const tl_tensor *value, const tl_view *picked) {
  int behind = dim + mask->view.ndim;
  tl_view mask_view = tensor->view, value_view = tensor->view;
  mask_view.offset = mask->view.offset;
  mask_view.dtype = mask->view.dtype;
  value_view.offset = picked->offset;
  value_view.dtype = picked->dtype;
  for (int d = 0; d < tensor->view.ndim; d++) {
    bool covered = d >= dim && d < behind;
    mask_view.stride[d] = covered ? mask->view.stride[d - dim] : 0;
    value_view.stride[d] = covered ? 0 : picked->stride[d < dim ? d : d - behind + dim + 1];
  }
  const tl_tensor *inputs[] = {tl_tensor_alias(L, mask, &mask_view),
                               tl_tensor_alias(L, value, &value_view), tensor};
  tl_tensor *out = tl_tensor_alias(L, tensor, &tensor->view);
  tl_step step = {.op = TL_OP_where, .out = 3, .a = 0, .b = 1, .c = 2};
  tl_enqueue_step(L, TL_OP_masked_fill_, out, false, tl_dtype_compute((tl_dtype)out->view.dtype),
                  &step, 3, inputs);
}

void tl_mask_write(lua_State *L, tl_op op, const tl_tensor *tensor, const tl_tensor *mask, int dim,
                   const tl_tensor *value, bool exactly) {
  const char *name = tl_ops[op].name;
  int64_t shape[TL_MAX_DIMS];
  tl_check_unfolded(L, op, &tensor->view);
  int ndim = picked_shape(L, name, &tensor->view, &mask->view, dim, 1, shape);
  /* How many values there are for the true elements; one is for all of them. */
  int along = value->view.ndim - (ndim - dim);
  if (along >= 0) shape[dim] = value->view.shape[along];
  if (!tl_view_broadcasts_to(&value->view, ndim, shape)) {
    char text[TL_SHAPE_TEXT], text_mask[TL_SHAPE_TEXT], text_from[TL_SHAPE_TEXT];
    tl_fail(L, "%s: cannot broadcast %s to what a mask of size %s picks from %s", name,
            tl_view_shape_text(&value->view, text), tl_view_shape_text(&mask->view, text_mask),
            tl_view_shape_text(&tensor->view, text_from));
  }
  value = tl_as_dtype(L, value, (tl_dtype)tensor->view.dtype);
  bool for_all = shape[dim] == 1 && exactly;
  if (!for_all) {
    value = tl_apart(L, tensor, value);
    mask = tl_apart(L, tensor, mask);
  }
  tl_view picked;
  tl_view_expand(&picked, &value->view, ndim, shape);
  if (for_all) {
    write_where(L, tensor, mask, dim, value, &picked);
    return;
  }
  const tl_tensor *starts = push_starts(L, op, mask, block_for(&mask->view, &tensor->view));
  move_true(L, op, TL_PLACE, tensor, mask, dim, value, &picked, starts, exactly);
}
