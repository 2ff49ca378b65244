/* Sizes, and the same elements in another shape: none of these waits for a value. */
#include <stdio.h>
#include <string.h>

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

static int element_size(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "element_size");
  tl_check_count(L, 1, "element_size");
  lua_pushinteger(L, (lua_Integer)tl_dtype_size((tl_dtype)x->view.dtype));
  return 1;
}

static int nbytes(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "nbytes");
  tl_check_count(L, 1, "nbytes");
  lua_pushinteger(L, tl_view_numel(&x->view) *
                         (lua_Integer)tl_dtype_size((tl_dtype)x->view.dtype));
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

/* Puts the size that -1 stands for into `shape`, so that it has `total` elements: those of `what`,
 * a dimension of or all of a tensor of size `text`. */
static void infer_size(lua_State *L, const char *name, const char *what, const char *text,
                       int64_t total, int ndim, int64_t *shape) {
  char wanted[TL_SHAPE_TEXT];
  tl_shape_text(ndim, shape, wanted);
  int64_t numel_known = 1;
  int unknown = -1;
  tl_view known;
  tl_error error;
  int64_t sizes[TL_MAX_DIMS];
  for (int d = 0; d < ndim; d++) {
    if (shape[d] == -1 && unknown >= 0) tl_fail(L, "%s: only one size can be -1", name);
    if (shape[d] == -1) unknown = d;
    sizes[d] = shape[d] == -1 ? 1 : shape[d];
  }
  bool fits = tl_view_make(&known, TL_float64, ndim, sizes, &error) == TL_OK;
  if (fits) numel_known = tl_view_numel(&known);
  if (fits && unknown >= 0 && numel_known > 0 && total % numel_known == 0) {
    shape[unknown] = total / numel_known;
  } else if (!fits || unknown >= 0 || numel_known != total) {
    tl_fail(L, "%s: %s%s has %I elements, which do not make %s", name, what, text,
            (LUAI_UACINT)total, wanted);
  }
}

/* The size in arguments 2 .. top, for all elements of a view. */
static int check_reshape(lua_State *L, const char *name, const tl_view *view, int64_t *shape) {
  char text[TL_SHAPE_TEXT];
  int ndim = tl_check_size(L, 2, name, true, shape);
  infer_size(L, name, "", tl_view_shape_text(view, text), tl_view_numel(view), ndim, shape);
  return ndim;
}

static int reshape_to(lua_State *L, const tl_tensor *x, int ndim, const int64_t *shape) {
  tl_view view;
  if (!tl_view_reshape(&view, &x->view, ndim, shape)) {
    x = tl_enqueue_copy(L, TL_OP_reshape, x, (tl_dtype)x->view.dtype);
    tl_view_reshape(&view, &x->view, ndim, shape);
  }
  tl_tensor_alias(L, x, &view);
  return 1;
}

static int reshape(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "reshape");
  int64_t shape[TL_MAX_DIMS];
  int ndim = check_reshape(L, "reshape", &x->view, shape);
  return reshape_to(L, x, ndim, shape);
}

/* Likewise, and an error where reshape makes a copy. */
static int view_to(lua_State *L, const char *name, const tl_tensor *x, int ndim,
                   const int64_t *shape) {
  tl_view view;
  if (!tl_view_reshape(&view, &x->view, ndim, shape)) {
    char text[TL_SHAPE_TEXT], strides[TL_SHAPE_TEXT], wanted[TL_SHAPE_TEXT];
    tl_fail(L, "%s: %s with strides %s cannot be seen as %s without moving elements: use reshape",
            name, tl_view_shape_text(&x->view, text),
            tl_shape_text(x->view.ndim, x->view.stride, strides),
            tl_shape_text(ndim, shape, wanted));
  }
  tl_tensor_alias(L, x, &view);
  return 1;
}

static int view(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "view");
  int64_t shape[TL_MAX_DIMS];
  int ndim = check_reshape(L, "view", &x->view, shape);
  return view_to(L, "view", x, ndim, shape);
}

/* The size of argument 2, a tensor, for all elements of argument 1. */
static const tl_view *check_other(lua_State *L, const char *name, const tl_tensor *x) {
  char text[TL_SHAPE_TEXT];
  const tl_view *other = &tl_tensor_check(L, 2, name)->view;
  int64_t shape[TL_MAX_DIMS];
  tl_check_count(L, 2, name);
  for (int d = 0; d < other->ndim; d++) shape[d] = other->shape[d];
  infer_size(L, name, "", tl_view_shape_text(&x->view, text), tl_view_numel(&x->view),
             other->ndim, shape);
  return other;
}

static int reshape_as(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "reshape_as");
  const tl_view *other = check_other(L, "reshape_as", x);
  return reshape_to(L, x, other->ndim, other->shape);
}

static int view_as(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "view_as");
  const tl_view *other = check_other(L, "view_as", x);
  return view_to(L, "view_as", x, other->ndim, other->shape);
}

/* unflatten(x, dim, size...): one dimension as several; its elements lie evenly, so it is a view */
static int unflatten(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "unflatten");
  int dim = tl_check_dim(L, 2, "unflatten", &x->view), before = x->view.ndim - 1;
  int64_t sizes[TL_MAX_DIMS], shape[2 * TL_MAX_DIMS];
  char text[TL_SHAPE_TEXT], what[32];
  int count = tl_check_size(L, 3, "unflatten", true, sizes);
  snprintf(what, sizeof what, "dimension %d of ", dim + 1);
  infer_size(L, "unflatten", what, tl_view_shape_text(&x->view, text), x->view.shape[dim], count,
             sizes);
  if (before + count > TL_MAX_DIMS) {
    tl_fail(L, "unflatten: %d dimensions are too many: at most %d", before + count, TL_MAX_DIMS);
  }
  memcpy(shape, x->view.shape, (size_t)dim * sizeof *shape);
  memcpy(shape + dim, sizes, (size_t)count * sizeof *shape);
  memcpy(shape + dim + count, x->view.shape + dim + 1, (size_t)(before - dim) * sizeof *shape);
  return view_to(L, "unflatten", x, before + count, shape);
}

static int contiguous(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "contiguous");
  tl_check_count(L, 1, "contiguous");
  lua_settop(L, 1);
  if (!tl_view_is_contiguous(&x->view)) {
    tl_enqueue_copy(L, TL_OP_contiguous, x, (tl_dtype)x->view.dtype);
  }
  return 1;
}

static int swap(lua_State *L, const char *name) {
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  tl_check_count(L, 3, name);
  tl_view swapped = x->view;
  int a = tl_check_dim(L, 2, name, &swapped), b = tl_check_dim(L, 3, name, &swapped);
  tl_view_transpose(&swapped, a, b);
  tl_tensor_alias(L, x, &swapped);
  return 1;
}

static int transpose(lua_State *L) { return swap(L, "transpose"); }

static int swapaxes(lua_State *L) { return swap(L, "swapaxes"); }

static int t(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "t");
  tl_check_count(L, 1, "t");
  tl_view turned = x->view;
  if (turned.ndim > 2) {
    return tl_fail(L, "t: wants at most 2 dimensions, not %d: use transpose", turned.ndim);
  }
  if (turned.ndim == 2) tl_view_transpose(&turned, 0, 1);
  tl_tensor_alias(L, x, &turned);
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
    {"size", size},
    {"stride", stride},
    {"numel", numel},
    {"dim", dim},
    {"element_size", element_size},
    {"nbytes", nbytes},
    {"t", t},
    {"transpose", transpose},
    {"swapaxes", swapaxes},
    {"reshape", reshape},
    {"reshape_as", reshape_as},
    {"view", view},
    {"view_as", view_as},
    {"unflatten", unflatten},
    {"contiguous", contiguous},
    {"is_contiguous", is_contiguous},
    {"is_ready", is_ready},
    {NULL, NULL},
};
