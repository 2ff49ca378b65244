/* Shapes and views: none of these waits for a value. */
#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "frontend/trace.h"

/* name(x): all of them, as a table; name(x, dim): one. */
static int sizes_or_one(lua_State *L, const char *name, const tl_view *view,
                        const int64_t *sizes) {
  tl_check_count(L, 2, name);
  if (lua_isnoneornil(L, 2)) {
    tl_push_sizes(L, view->ndim, sizes);
  } else {
    lua_pushinteger(L, sizes[tl_check_dim(L, 2, name, view)]);
  }
  return 1;
}

static int size(lua_State *L) {
  const tl_view *view = &tl_tensor_check(L, 1, "size")->view;
  return sizes_or_one(L, "size", view, view->shape);
}

static int stride(lua_State *L) {
  const tl_view *view = &tl_tensor_check(L, 1, "stride")->view;
  return sizes_or_one(L, "stride", view, view->stride);
}

static int numel(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "numel");
  tl_check_count(L, 1, "numel");
  lua_pushinteger(L, tl_view_numel(&x->view));
  return 1;
}

static int dim(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "dim");
  tl_check_count(L, 1, "dim");
  lua_pushinteger(L, x->view.ndim);
  return 1;
}

static int is_contiguous(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "is_contiguous");
  tl_check_count(L, 1, "is_contiguous");
  lua_pushboolean(L, tl_view_is_contiguous(&x->view));
  return 1;
}

/* Puts the size that -1 stands for into `shape`. */
static void infer_size(lua_State *L, const tl_view *view, int ndim, int64_t *shape) {
  char text[TL_SHAPE_TEXT], wanted[TL_SHAPE_TEXT];
  tl_view_shape_text(view, text);
  tl_shape_text(ndim, shape, wanted);
  int64_t numel_known = 1;
  int unknown = -1;
  tl_view known;
  tl_error error;
  int64_t sizes[TL_MAX_DIMS];
  for (int d = 0; d < ndim; d++) {
    if (shape[d] == -1 && unknown >= 0) tl_fail(L, "reshape: only one size can be -1");
    if (shape[d] == -1) unknown = d;
    sizes[d] = shape[d] == -1 ? 1 : shape[d];
  }
  bool fits = tl_view_make(&known, (tl_dtype)view->dtype, ndim, sizes, &error) == TL_OK;
  int64_t total = tl_view_numel(view);
  if (fits) numel_known = tl_view_numel(&known);
  if (fits && unknown >= 0 && numel_known > 0 && total % numel_known == 0) {
    shape[unknown] = total / numel_known;
  } else if (!fits || unknown >= 0 || numel_known != total) {
    tl_fail(L, "reshape: %s has %I elements, which do not make %s", text, (LUAI_UACINT)total,
            wanted);
  }
}

static int reshape(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "reshape");
  int64_t shape[TL_MAX_DIMS];
  int ndim = tl_check_size(L, 2, "reshape", true, shape);
  infer_size(L, &x->view, ndim, shape);
  tl_view view;
  if (!tl_view_reshape(&view, &x->view, ndim, shape)) {
    x = tl_enqueue_copy(L, TL_OP_reshape, x, (tl_dtype)x->view.dtype);
    tl_view_reshape(&view, &x->view, ndim, shape);
  }
  tl_tensor_alias(L, x, &view);
  return 1;
}

static int transpose(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "transpose");
  tl_check_count(L, 3, "transpose");
  tl_view view = x->view;
  int a = tl_check_dim(L, 2, "transpose", &view), b = tl_check_dim(L, 3, "transpose", &view);
  tl_view_transpose(&view, a, b);
  tl_tensor_alias(L, x, &view);
  return 1;
}

static int t(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "t");
  tl_check_count(L, 1, "t");
  tl_view view = x->view;
  if (view.ndim > 2) {
    return tl_fail(L, "t: wants at most 2 dimensions, not %d: use transpose", view.ndim);
  }
  if (view.ndim == 2) tl_view_transpose(&view, 0, 1);
  tl_tensor_alias(L, x, &view);
  return 1;
}

static int is_ready(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "is_ready");
  tl_check_count(L, 1, "is_ready");
  tl_context *context = tl_context_of(L);
  if (context->trace) tl_trace_refuse_read(L, context, "is_ready");
  lua_pushboolean(L, tl_engine_is_ready(context->engine, x->storage));
  return 1;
}

const luaL_Reg tl_shape_functions[] = {
    {"size", size},   {"stride", stride},       {"numel", numel}, {"dim", dim},
    {"t", t},         {"transpose", transpose}, {"reshape", reshape},
    {"is_contiguous", is_contiguous},           {"is_ready", is_ready}, {NULL, NULL},
};
