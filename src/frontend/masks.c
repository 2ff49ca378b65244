/* Functions of masks.  Those that give what is true wait for how many that is; the others, which
 * write there, do not. */
#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "frontend/pick.h"

/* Pushes a view of a tensor broadcast to a shape. */
static const tl_tensor *expanded(lua_State *L, const tl_tensor *x, const tl_view *like) {
  tl_view view;
  if (tl_view_same_shape(&x->view, like)) return x;
  tl_view_expand(&view, &x->view, like->ndim, like->shape);
  return tl_tensor_alias(L, x, &view);
}

/* The shape that a tensor and a mask broadcast to. */
static void broadcast(lua_State *L, const char *name, const tl_tensor *x, const tl_tensor *mask,
                      tl_view *both) {
  tl_error error;
  tl_dtype dtype = (tl_dtype)x->view.dtype;
  if (tl_view_broadcast(both, dtype, &x->view, &mask->view, name, &error) != TL_OK) {
    tl_raise(L, &error);
  }
}

static int masked_select(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "masked_select");
  const tl_tensor *mask = tl_check_mask(L, 2, "masked_select");
  tl_check_count(L, 2, "masked_select");
  tl_view both;
  broadcast(L, "masked_select", x, mask, &both);
  tl_mask_select(L, TL_OP_masked_select, expanded(L, x, &both), expanded(L, mask, &both), 0);
  return 1;
}

/* Where a mask says to write is x itself, to whose size it broadcasts, or else a new tensor. */
static void written_shape(lua_State *L, const char *name, const tl_tensor *x, const tl_tensor *mask,
                          bool in_place, tl_view *both) {
  if (in_place && !tl_view_broadcasts_to(&mask->view, x->view.ndim, x->view.shape)) {
    char text[TL_SHAPE_TEXT], text_mask[TL_SHAPE_TEXT];
    tl_fail(L, "%s: cannot broadcast a mask of size %s to the size of the tensor written, %s", name,
            tl_view_shape_text(&mask->view, text_mask), tl_view_shape_text(&x->view, text));
  }
  broadcast(L, name, x, mask, both);
}

/* name(x, mask, value) */
static int fill_any(lua_State *L, tl_op op, bool in_place) {
  const char *name = tl_ops[op].name;
  tl_tensor *x = tl_tensor_check(L, 1, name), *out = x;
  const tl_tensor *mask = tl_check_mask(L, 2, name);
  tl_dtype dtype = (tl_dtype)x->view.dtype;
  tl_view both;
  tl_check_count(L, 3, name);
  written_shape(L, name, x, mask, in_place, &both);
  const tl_tensor *value = tl_check_value(L, 3, name, dtype);
  if (value->view.ndim > 0) {
    tl_fail(L, "%s: the value has no dimensions, not %d", name, value->view.ndim);
  }
  const tl_tensor *inputs[] = {mask, tl_as_dtype(L, value, dtype), x};
  if (!in_place) out = tl_tensor_new(L, &both, name);
  int top = lua_gettop(L);
  tl_step step = {.op = TL_OP_where, .out = 3, .a = 0, .b = 1, .c = 2};
  tl_enqueue_step(L, op, out, !in_place, tl_dtype_compute(dtype), &step, 3, inputs);
  lua_settop(L, in_place ? 1 : top);
  return 1;
}

static int masked_fill(lua_State *L) { return fill_any(L, TL_OP_masked_fill, false); }
static int masked_fill_(lua_State *L) { return fill_any(L, TL_OP_masked_fill_, true); }

/* name(x, mask, values): each true element takes the next value. */
static int scatter_any(lua_State *L, tl_op op, bool in_place) {
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name), *mask = tl_check_mask(L, 2, name);
  const tl_tensor *values = tl_tensor_check(L, 3, name), *out = x;
  tl_view both;
  tl_check_count(L, 3, name);
  written_shape(L, name, x, mask, in_place, &both);
  if (!in_place) {
    out = tl_enqueue_copy(L, TL_OP_clone, expanded(L, x, &both), (tl_dtype)x->view.dtype);
  }
  int top = lua_gettop(L);
  tl_mask_write(L, op, out, expanded(L, mask, &both), 0, tl_flattened(L, values), false);
  lua_settop(L, in_place ? 1 : top);
  return 1;
}

static int masked_scatter(lua_State *L) { return scatter_any(L, TL_OP_masked_scatter, false); }
static int masked_scatter_(lua_State *L) { return scatter_any(L, TL_OP_masked_scatter_, true); }

static int nonzero_of(lua_State *L, tl_op op) {
  const tl_tensor *x = tl_tensor_check(L, 1, tl_ops[op].name);
  tl_check_count(L, 1, tl_ops[op].name);
  tl_mask_nonzero(L, op, x->view.dtype == TL_bool ? x : tl_enqueue_truth(L, op, x));
  return 1;
}

static int nonzero(lua_State *L) { return nonzero_of(L, TL_OP_nonzero); }
static int argwhere(lua_State *L) { return nonzero_of(L, TL_OP_argwhere); }

const luaL_Reg tl_mask_functions[] = {
    {"masked_select", masked_select},
    {"masked_fill", masked_fill},
    {"masked_fill_", masked_fill_},
    {"masked_scatter", masked_scatter},
    {"masked_scatter_", masked_scatter_},
    {"nonzero", nonzero},
    {"argwhere", argwhere},
    {NULL, NULL},
};
