/* Reductions: of all elements, or along one dimension. */
#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "tensor/parameters.h"

/* The view with the reduced dimension last, and the size of the result. */
static void split(const tl_view *view, int dim, bool keep, tl_view *in, int64_t *shape, int *ndim) {
  *in = *view;
  *ndim = 0;
  int at = 0;
  for (int d = 0; d < view->ndim; d++) {
    if (d != dim) {
      in->shape[at] = view->shape[d];
      in->stride[at++] = view->stride[d];
      shape[(*ndim)++] = view->shape[d];
    } else if (keep) {
      shape[(*ndim)++] = 1;
    }
  }
  in->shape[at] = view->shape[dim];
  in->stride[at] = view->stride[dim];
}

/* All dimensions reduced, in the order of memory and as few as the strides allow. */
static void flatten(const tl_view *view, tl_view *in) {
  tl_loop loop;
  tl_loop_make(&loop, 1, &view);
  *in = *view;
  in->ndim = (uint8_t)loop.ndim;
  for (int d = 0; d < loop.ndim; d++) {
    in->shape[d] = loop.shape[d];
    in->stride[d] = loop.stride[0][d];
  }
}

/* name(x), name(x, dim), name(x, dim, keepdim) */
static int reduce(lua_State *L, tl_op op) {
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  tl_check_count(L, 3, name);
  bool along = !lua_isnoneornil(L, 2);
  if (!lua_isnoneornil(L, 3) && !lua_isboolean(L, 3)) {
    tl_fail(L, "%s: keepdim must be true or false, not %s", name, luaL_typename(L, 3));
  }
  tl_view in, view;
  tl_error error;
  tl_reduce parameters;
  int64_t shape[TL_MAX_DIMS];
  int ndim = 0;
  bool keep = lua_toboolean(L, 3);
  if (along && x->view.ndim == 0) { /* as if it had one dimension */
    tl_view one;
    tl_view_make(&one, TL_float32, 1, (int64_t[]){1}, &error);
    tl_check_dim(L, 2, name, &one);
  }
  if (along && x->view.ndim > 0) {
    int dim = tl_check_dim(L, 2, name, &x->view);
    split(&x->view, dim, keep, &in, shape, &ndim);
    parameters = (tl_reduce){.dims = 1, .count = x->view.shape[dim]};
  } else {
    flatten(&x->view, &in);
    for (; keep && ndim < x->view.ndim; ndim++) shape[ndim] = 1;
    parameters = (tl_reduce){.dims = in.ndim, .count = tl_view_numel(&x->view)};
  }
  if (parameters.count == 0 && (op == TL_OP_max || op == TL_OP_min)) {
    char text[TL_SHAPE_TEXT];
    tl_fail(L, "%s: a tensor of size %s has no elements to choose from", name,
            tl_view_shape_text(&x->view, text));
  }
  tl_view_make(&view, (tl_dtype)x->view.dtype, ndim, shape, &error);
  tl_tensor *out = tl_tensor_new(L, &view, name);
  tl_view result; /* as the backend sees it: without kept dimensions of size 1 */
  tl_view_make(&result, (tl_dtype)view.dtype, in.ndim - parameters.dims, in.shape, &error);
  tl_operand operands[] = {tl_operand_of(out, &result, TL_WRITE | TL_WHOLE),
                           tl_operand_of(x, &in, TL_READ)};
  tl_draft draft = {
      .op = op,
      .noperands = 2,
      .operands = operands,
      .parameters = &parameters,
      .parameters_size = sizeof parameters,
  };
  tl_enqueue(L, &draft);
  return 1;
}

static int sum(lua_State *L) { return reduce(L, TL_OP_sum); }
static int mean(lua_State *L) { return reduce(L, TL_OP_mean); }
static int max(lua_State *L) { return reduce(L, TL_OP_max); }
static int min(lua_State *L) { return reduce(L, TL_OP_min); }

const luaL_Reg tl_reduce_functions[] = {
    {"sum", sum}, {"mean", mean}, {"max", max}, {"min", min}, {NULL, NULL},
};
