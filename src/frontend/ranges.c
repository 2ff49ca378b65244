/* Tensors without values yet, of numbers evenly spaced, and in the shape of others. */
#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "tensor/parameters.h"

/* ---- empty ---- */

/* The command gives the storage its buffer, so that it can be read before it is written. */
static int push_empty(lua_State *L, const char *name, const tl_view *view) {
  tl_tensor *out = tl_tensor_new(L, view, name);
  tl_operand operand = tl_operand_of(out, &out->view, TL_WRITE | TL_WHOLE | TL_FRESH);
  tl_enqueue(L, TL_OP_empty, 1, &operand, NULL, 0);
  return 1;
}

static int empty(lua_State *L) {
  tl_view view;
  tl_options options = tl_check_options(L, "empty");
  tl_check_shape(L, 1, "empty", options.dtype, &view);
  return push_empty(L, "empty", &view);
}

int tl_range_empty(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  tl_view view;
  tl_dtype dtype = tl_check_dtype(L, 2, name);
  tl_check_shape(L, 3, name, dtype, &view);
  return push_empty(L, name, &view);
}

/* ---- in the shape of another ---- */

/* The contiguous view of the shape of argument 1, as the dtype of the options or its own. */
static void check_like(lua_State *L, const char *name, int arguments, tl_view *view) {
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  tl_options options = tl_check_options(L, name);
  tl_check_count(L, arguments, name);
  tl_dtype dtype = options.has_dtype ? options.dtype : (tl_dtype)x->view.dtype;
  tl_error error;
  if (tl_view_make(view, dtype, x->view.ndim, x->view.shape, &error) != TL_OK) {
    tl_fail(L, "%s: %s", name, error.text);
  }
}

static int like(lua_State *L, tl_op op, const char *name, int value) {
  tl_view view;
  check_like(L, name, 1, &view);
  tl_enqueue_fill(L, op, tl_tensor_new(L, &view, name), true,
                  tl_scalar_integer(value, (tl_dtype)view.dtype));
  return 1;
}

static int zeros_like(lua_State *L) { return like(L, TL_OP_zeros, "zeros_like", 0); }

static int ones_like(lua_State *L) { return like(L, TL_OP_ones, "ones_like", 1); }

static int full_like(lua_State *L) {
  tl_view view;
  check_like(L, "full_like", 2, &view);
  tl_scalar value = tl_check_scalar(L, 2, "full_like", (tl_dtype)view.dtype);
  tl_enqueue_fill(L, TL_OP_full, tl_tensor_new(L, &view, "full_like"), true, value);
  return 1;
}

static int empty_like(lua_State *L) {
  tl_view view;
  check_like(L, "empty_like", 1, &view);
  return push_empty(L, "empty_like", &view);
}

/* ---- evenly spaced ---- */

/* `count` numbers of a floating-point dtype from first to last, the last of them to the bit. */
static tl_tensor *push_linspace(lua_State *L, const char *name, tl_dtype dtype, double first,
                                double last, int64_t count) {
  tl_view view;
  tl_error error;
  if (tl_view_make(&view, dtype, 1, &count, &error) != TL_OK) {
    tl_fail(L, "%s: %s", name, error.text);
  }
  tl_tensor *out = tl_tensor_new(L, &view, name);
  tl_generate parameters = {.start.real = first};
  if (count > 1) parameters.step.real = (last - first) / (double)(count - 1);
  tl_operand operand = tl_operand_of(out, &out->view, TL_WRITE | TL_WHOLE | TL_FRESH);
  tl_enqueue(L, TL_OP_linspace, 1, &operand, &parameters, sizeof parameters);
  if (count > 1) {
    tl_view_select(&view, 0, count - 1);
    tl_enqueue_fill(L, TL_OP_fill_, tl_tensor_alias(L, out, &view), false,
                    (tl_scalar){.real = last});
    lua_pop(L, 1);
  }
  return out;
}

static int linspace(lua_State *L) {
  tl_options options = tl_check_options(L, "linspace");
  tl_check_count(L, 3, "linspace");
  double first = tl_check_number(L, 1, "linspace"), last = tl_check_number(L, 2, "linspace");
  int64_t count = tl_check_integer(L, 3, "linspace");
  bool floating = tl_dtype_is_floating(options.dtype);
  const tl_tensor *out = push_linspace(L, "linspace", floating ? options.dtype : TL_float64, first,
                                       last, count);
  if (!floating) tl_enqueue_copy(L, TL_OP_to, out, options.dtype); /* rounded to zero */
  return 1;
}

/* logspace(first, last, n [, base]): base to the power of evenly spaced numbers, computed in
 * float64: an exponent rounded to float32 would cost the power up to five digits. */
static int logspace(lua_State *L) {
  tl_options options = tl_check_options(L, "logspace");
  tl_check_count(L, 4, "logspace");
  double first = tl_check_number(L, 1, "logspace"), last = tl_check_number(L, 2, "logspace");
  int64_t count = tl_check_integer(L, 3, "logspace");
  double base = lua_isnoneornil(L, 4) ? 10 : tl_check_number(L, 4, "logspace");
  const tl_tensor *exponents = push_linspace(L, "logspace", TL_float64, first, last, count);
  tl_view view;
  tl_view_make_like(&view, options.dtype, &exponents->view);
  tl_tensor *out = tl_tensor_new(L, &view, "logspace");
  tl_step step = {.op = TL_OP_pow,
                  .out = 1,
                  .a = TL_IMMEDIATE,
                  .b = 0,
                  .c = TL_IMMEDIATE,
                  .immediate.real = base};
  tl_enqueue_step(L, TL_OP_pow, out, true, TL_float64, &step, 1, &exponents);
  return 1;
}

const luaL_Reg tl_like_functions[] = {
    {"zeros_like", zeros_like}, {"ones_like", ones_like},   {"full_like", full_like},
    {"empty_like", empty_like}, {NULL, NULL},
};

const luaL_Reg tl_range_functions[] = {
    {"empty", empty}, {"linspace", linspace}, {"logspace", logspace}, {NULL, NULL},
};
