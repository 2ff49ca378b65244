/* Methods that overwrite a tensor, and copies. */
#include <string.h>

#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"

static int fill_(lua_State *L) {
  tl_tensor *x = tl_tensor_check(L, 1, "fill_");
  tl_check_count(L, 2, "fill_");
  tl_scalar value = tl_check_scalar(L, 2, "fill_", (tl_dtype)x->view.dtype);
  tl_enqueue_fill(L, TL_OP_fill_, x, false, value);
  lua_settop(L, 1);
  return 1;
}

static int zero_(lua_State *L) {
  tl_tensor *x = tl_tensor_check(L, 1, "zero_");
  tl_check_count(L, 1, "zero_");
  tl_enqueue_fill(L, TL_OP_zero_, x, false, (tl_scalar){0});
  return 1;
}

static int copy_(lua_State *L) {
  tl_tensor *x = tl_tensor_check(L, 1, "copy_");
  const tl_tensor *y = tl_tensor_check(L, 2, "copy_");
  tl_check_count(L, 2, "copy_");
  if (!tl_view_broadcasts_to(&y->view, x->view.ndim, x->view.shape)) {
    char text_x[TL_SHAPE_TEXT], text_y[TL_SHAPE_TEXT];
    tl_fail(L, "copy_: cannot broadcast %s to the size of the tensor written, %s",
            tl_view_shape_text(&y->view, text_y), tl_view_shape_text(&x->view, text_x));
  }
  tl_dtype moved = tl_copy_dtype((tl_dtype)y->view.dtype, (tl_dtype)x->view.dtype);
  tl_enqueue_step(L, TL_OP_copy_, x, false, moved, NULL, 1, &y);
  lua_settop(L, 1);
  return 1;
}

static int clone(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "clone");
  tl_check_count(L, 1, "clone");
  tl_enqueue_copy(L, TL_OP_clone, x, (tl_dtype)x->view.dtype);
  return 1;
}

/* x:to(dtype), x:to(device), x:to{dtype = ..., device = ...} */
static int to(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "to");
  tl_check_count(L, 2, "to");
  tl_dtype dtype = (tl_dtype)x->view.dtype;
  if (lua_type(L, 2) == LUA_TTABLE && lua_rawlen(L, 2) == 0) {
    tl_options options = tl_check_options(L, "to");
    if (options.has_dtype) dtype = options.dtype;
  } else if (lua_type(L, 2) == LUA_TSTRING && tl_dtype_find(lua_tostring(L, 2)) < 0) {
    if (strcmp(lua_tostring(L, 2), "cpu") != 0) {
      tl_fail(L, "to: '%s' is neither a dtype ('float32', 'int64', ...) nor a device ('cpu')",
              lua_tostring(L, 2));
    }
  } else {
    dtype = tl_check_dtype(L, 2, "to");
  }
  if (dtype == (tl_dtype)x->view.dtype) {
    lua_settop(L, 1);
  } else {
    tl_enqueue_copy(L, TL_OP_to, x, dtype);
  }
  return 1;
}

const luaL_Reg tl_inplace_functions[] = {
    {"fill_", fill_}, {"zero_", zero_}, {"copy_", copy_},
    {"clone", clone}, {"to", to},       {NULL, NULL},
};
