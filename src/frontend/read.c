/* The blockers that give values: item, totable, tostring, comparisons to a boolean, wait. */
#include "frontend/arguments.h"
#include "frontend/embedded.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "frontend/trace.h"
#include "tensor/parameters.h"

static tl_scalar element(const tl_tensor *x, const char *data, int64_t at) {
  tl_dtype dtype = (tl_dtype)x->view.dtype;
  return tl_dtype_load(dtype, data + (size_t)at * tl_dtype_size(dtype));
}

/* As Lua has it: a boolean, an integer or a float. */
static void push_element(lua_State *L, const tl_tensor *x, const char *data, int64_t at) {
  tl_dtype dtype = (tl_dtype)x->view.dtype;
  tl_scalar value = element(x, data, at);
  if (dtype == TL_bool) {
    lua_pushboolean(L, value.integer != 0);
  } else if (tl_dtype_is_floating(dtype)) {
    lua_pushnumber(L, value.real);
  } else {
    lua_pushinteger(L, value.integer);
  }
}

static void push_item(lua_State *L, const tl_tensor *x, const char *name) {
  if (tl_view_numel(&x->view) != 1) {
    char text[TL_SHAPE_TEXT];
    tl_fail(L, "%s: wants one element, not a tensor of size %s%s", name,
            tl_view_shape_text(&x->view, text),
            name[0] == '<' ? ": element by element it is :lt() or :le()" : "");
  }
  push_element(L, x, tl_tensor_read(L, x, name), x->view.offset);
}

static int item(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "item");
  tl_check_count(L, 1, "item");
  push_item(L, x, "item");
  return 1;
}

static void push_level(lua_State *L, const tl_tensor *x, const char *data, int dim, int64_t at) {
  if (dim == x->view.ndim) {
    push_element(L, x, data, at);
    return;
  }
  int64_t size = x->view.shape[dim];
  lua_createtable(L, size < INT32_MAX ? (int)size : 0, 0);
  for (int64_t i = 0; i < size; i++) {
    push_level(L, x, data, dim + 1, at + i * x->view.stride[dim]);
    lua_rawseti(L, -2, i + 1);
  }
}

static int totable(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "totable");
  tl_check_count(L, 1, "totable");
  /* A handle of its own: making the tables may run a finalizer that closes the argument. */
  x = tl_tensor_alias(L, x, &x->view);
  push_level(L, x, tl_tensor_read(L, x, "totable"), 0, x->view.offset);
  return 1;
}

static int wait(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "wait");
  tl_check_count(L, 1, "wait");
  tl_tensor_read(L, x, "wait");
  return 1;
}

/* How it is written is said in Lua, in tensor.format. */
static int format(lua_State *L) {
  tl_tensor_read(L, tl_tensor_check(L, 1, "tostring"), "tostring");
  tl_embedded_require(L, "tensor.format");
  lua_getfield(L, -1, "format");
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

static int tostring(lua_State *L) {
  tl_tensor_check(L, 1, "tostring");
  tl_check_count(L, 1, "tostring");
  return format(L);
}

/* Text, numbers and tensors; Lua itself refuses anything else. */
static int concat(lua_State *L) {
  for (int i = 1; i <= 2; i++) {
    if (!tl_tensor_test(L, i) && !lua_isstring(L, i)) {
      tl_fail(L, "..: cannot concatenate a tensor and a %s value", luaL_typename(L, i));
    }
  }
  luaL_tolstring(L, 1, NULL);
  luaL_tolstring(L, 2, NULL);
  lua_concat(L, 2);
  return 1;
}

/* ---- comparisons ---- */

/* How many elements of x and y, broadcast to each other, are not close. */
static double count_differing(lua_State *L, tl_op op, const tl_tensor *x, const tl_tensor *y,
                              const tl_compare *parameters) {
  const char *name = tl_ops[op].name;
  tl_context *context = tl_context_of(L);
  if (context->trace) tl_trace_refuse_read(L, context, name);
  tl_view both, one, expanded_x, expanded_y;
  tl_error error;
  if (tl_view_broadcast(&both, TL_float64, &x->view, &y->view, name, &error) != TL_OK) {
    tl_raise(L, &error);
  }
  tl_view_make(&one, TL_float64, 0, NULL, &error);
  tl_tensor *count = tl_tensor_new(L, &one, name);
  tl_view_expand(&expanded_x, &x->view, both.ndim, both.shape);
  tl_view_expand(&expanded_y, &y->view, both.ndim, both.shape);
  tl_operand operands[] = {tl_operand_of(count, &one, TL_WRITE | TL_WHOLE),
                           tl_operand_of(x, &expanded_x, TL_READ),
                           tl_operand_of(y, &expanded_y, TL_READ)};
  tl_enqueue(L, op, 3, operands, parameters, sizeof *parameters);
  return element(count, tl_tensor_read(L, count, name), 0).real;
}

static int equal(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "equal"), *y = tl_tensor_check(L, 2, "equal");
  tl_check_count(L, 2, "equal");
  tl_compare exactly = {0, 0};
  bool same = x->view.dtype == y->view.dtype && tl_view_same_shape(&x->view, &y->view) &&
              count_differing(L, TL_OP_equal, x, y, &exactly) == 0;
  lua_pushboolean(L, same);
  return 1;
}

/* A tensor is never equal to another kind of userdata, and that is no error. */
static int same(lua_State *L) {
  if (tl_tensor_test(L, 1) && tl_tensor_test(L, 2)) return equal(L);
  lua_pushboolean(L, false);
  return 1;
}

static int allclose(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "allclose"), *y = tl_tensor_check(L, 2, "allclose");
  tl_check_count(L, 4, "allclose");
  tl_compare parameters = {1e-5, 1e-8};
  if (!lua_isnoneornil(L, 3)) parameters.relative = tl_check_number(L, 3, "allclose");
  if (!lua_isnoneornil(L, 4)) parameters.absolute = tl_check_number(L, 4, "allclose");
  lua_pushboolean(L, count_differing(L, TL_OP_allclose, x, y, &parameters) == 0);
  return 1;
}

/* A number, of which a bool is one, at a stack index. */
static void push_operand(lua_State *L, int index, const char *name) {
  if (lua_type(L, index) == LUA_TNUMBER) {
    lua_pushvalue(L, index);
    return;
  }
  push_item(L, tl_tensor_check(L, index, name), name);
  if (lua_isboolean(L, -1)) {
    lua_pushinteger(L, lua_toboolean(L, -1));
    lua_replace(L, -2);
  }
}

static int compare(lua_State *L, int operator, const char *name) {
  push_operand(L, 1, name);
  push_operand(L, 2, name);
  lua_pushboolean(L, lua_compare(L, -2, -1, operator));
  return 1;
}

static int less(lua_State *L) { return compare(L, LUA_OPLT, "<"); }
static int less_equal(lua_State *L) { return compare(L, LUA_OPLE, "<="); }

const luaL_Reg tl_read_functions[] = {
    {"item", item},         {"totable", totable}, {"tostring", tostring}, {"wait", wait},
    {"allclose", allclose}, {"equal", equal},     {NULL, NULL},
};

const luaL_Reg tl_read_metamethods[] = {
    {"__tostring", format}, {"__concat", concat}, {"__eq", same},
    {"__lt", less},           {"__le", less_equal}, {NULL, NULL},
};
