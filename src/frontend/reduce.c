/* Reductions: of all elements, or along some dimensions. */
#include "frontend/along.h"
#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "tensor/parameters.h"

/* Appends dimension d of `from`, as one with the last dimension where it follows it in memory. */
static void append_dim(tl_view *to, int first, const tl_view *from, int d) {
  int last = to->ndim - 1;
  if (from->shape[d] == 1) return;
  if (to->ndim > first && to->stride[last] == from->shape[d] * from->stride[d]) {
    to->shape[last] *= from->shape[d];
    to->stride[last] = from->stride[d];
    return;
  }
  to->shape[to->ndim] = from->shape[d];
  to->stride[to->ndim++] = from->stride[d];
}

/* The view with the reduced dimensions last, and the kept ones as few as the strides allow; returns
 * how many are kept. */
static int split(const tl_view *view, const bool *reduced, tl_view *in) {
  *in = *view;
  in->ndim = 0;
  for (int d = 0; d < view->ndim; d++) {
    if (!reduced[d]) append_dim(in, 0, view, d);
  }
  int kept = in->ndim;
  tl_view rest = *view; /* the reduced ones, in the order of memory */
  rest.ndim = 0;
  for (int d = 0; d < view->ndim; d++) {
    if (!reduced[d]) continue;
    rest.shape[rest.ndim] = view->shape[d];
    rest.stride[rest.ndim++] = view->stride[d];
  }
  tl_loop loop;
  tl_loop_make(&loop, 1, (const tl_view *const[]){&rest});
  for (int d = 0; d < loop.ndim; d++) {
    in->shape[in->ndim] = loop.shape[d];
    in->stride[in->ndim++] = loop.stride[0][d];
  }
  return kept;
}

static int64_t result_shape(const tl_view *view, const bool *reduced, bool keep, int64_t *shape,
                            int *ndim) {
  int64_t count = 1;
  *ndim = 0;
  for (int d = 0; d < view->ndim; d++) {
    if (reduced[d]) count *= view->shape[d];
    if (!reduced[d] || keep) shape[(*ndim)++] = reduced[d] ? 1 : view->shape[d];
  }
  return count;
}

static tl_dtype result_dtype(tl_op op, tl_dtype dtype) {
  bool floating = tl_dtype_is_floating(dtype);
  switch (op) {
    case TL_OP_any:
    case TL_OP_all: return TL_bool;
    case TL_OP_count_nonzero: return TL_int64;
    case TL_OP_mean: return floating ? dtype : TL_float32;
    case TL_OP_sum:
    case TL_OP_prod: return floating ? dtype : TL_int64;
    default: return dtype;
  }
}

/* name(x), name(x, dims), name(x, dims, keepdim) */
static int reduce(lua_State *L, tl_op op) {
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  tl_check_count(L, 3, name);
  if (!lua_isnoneornil(L, 3) && !lua_isboolean(L, 3)) {
    tl_fail(L, "%s: keepdim must be true or false, not %s", name, luaL_typename(L, 3));
  }
  bool keep = lua_toboolean(L, 3), reduced[TL_MAX_DIMS];
  tl_check_dims(L, 2, name, &x->view, reduced);
  int64_t shape[TL_MAX_DIMS];
  int ndim;
  int64_t count = result_shape(&x->view, reduced, keep, shape, &ndim);
  bool chooses = op == TL_OP_max || op == TL_OP_min || op == TL_OP_amax || op == TL_OP_amin;
  if (count == 0 && chooses) {
    char text[TL_SHAPE_TEXT];
    tl_fail(L, "%s: a tensor of size %s has no elements to choose from", name,
            tl_view_shape_text(&x->view, text));
  }
  bool of_truth = op == TL_OP_any || op == TL_OP_all || op == TL_OP_count_nonzero;
  if (of_truth && x->view.dtype != TL_bool) x = tl_enqueue_truth(L, op, x);

  tl_view in, view, result; /* the last: as the backend sees it, dimension for dimension of `in` */
  tl_error error;
  int kept = split(&x->view, reduced, &in);
  tl_dtype dtype = result_dtype(op, (tl_dtype)x->view.dtype);
  if (tl_view_make(&view, dtype, ndim, shape, &error) != TL_OK) {
    tl_fail(L, "%s: %s", name, error.text);
  }
  tl_view_make(&result, dtype, kept, in.shape, &error);
  tl_tensor *out = tl_tensor_new(L, &view, name);
  tl_reduce parameters = {.dims = in.ndim - kept, .count = count};
  tl_operand operands[] = {tl_operand_of(out, &result, TL_WRITE | TL_WHOLE),
                           tl_operand_of(x, &in, TL_READ)};
  tl_enqueue(L, op, 2, operands, &parameters, sizeof parameters);
  return 1;
}

#define REDUCTION(name) \
  static int op_##name(lua_State *L) { return reduce(L, TL_OP_##name); }
REDUCTION(sum)
REDUCTION(prod)
REDUCTION(mean)
REDUCTION(amax)
REDUCTION(amin)
REDUCTION(any)
REDUCTION(all)
REDUCTION(count_nonzero)

/* Of all elements a value; along a dimension also where it is. */
static int op_max(lua_State *L) {
  return lua_isnoneornil(L, 2) ? reduce(L, TL_OP_max) : tl_extreme_along(L, TL_OP_max);
}
static int op_min(lua_State *L) {
  return lua_isnoneornil(L, 2) ? reduce(L, TL_OP_min) : tl_extreme_along(L, TL_OP_min);
}

const luaL_Reg tl_reduce_functions[] = {
    {"sum", op_sum},   {"prod", op_prod}, {"mean", op_mean}, {"max", op_max}, {"min", op_min},
    {"amax", op_amax}, {"amin", op_amin}, {"any", op_any},   {"all", op_all},
    {"count_nonzero", op_count_nonzero}, {NULL, NULL},
};
