/* Functions, methods, metamethods and in-place methods of the element-wise rows of ops.def. */
#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"

static int unary(lua_State *L, tl_op op) {
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  /* -x gives x twice */
  if (lua_gettop(L) > 1 && !lua_rawequal(L, 1, 2)) tl_check_count(L, 1, name);
  tl_view view;
  tl_view_make_like(&view, (tl_dtype)x->view.dtype, &x->view);
  tl_tensor *out = tl_tensor_new(L, &view, name);
  tl_step step = {.op = (uint16_t)op, .a = 0, .b = TL_IMMEDIATE, .out = 1};
  tl_enqueue_step(L, op, out, true, (tl_dtype)view.dtype, &step, 1, &x);
  return 1;
}

static int unary_in_place(lua_State *L, tl_op op, const char *name) {
  tl_tensor *x = tl_tensor_check(L, 1, name);
  tl_check_count(L, 1, name);
  tl_step step = {.op = (uint16_t)op, .a = 0, .b = TL_IMMEDIATE, .out = 1};
  tl_enqueue_step(L, op, x, false, (tl_dtype)x->view.dtype, &step, 1,
                  (const tl_tensor *const[]){x});
  lua_settop(L, 1);
  return 1;
}

/* The operands of a binary operator, tensors or numbers, as a step and its inputs. */
typedef struct tl_pair {
  tl_step step;
  int ninputs;
  const tl_tensor *inputs[2];
} tl_pair;

static uint8_t read_operand(lua_State *L, int index, const char *name, tl_pair *pair) {
  if (lua_type(L, index) == LUA_TNUMBER) {
    pair->step.immediate = lua_tonumber(L, index);
    return TL_IMMEDIATE;
  }
  const tl_tensor *tensor = tl_tensor_test(L, index);
  if (!tensor) {
    tl_fail(L, "%s: operand %d must be a tensor or a number, not %s", name, index,
            tl_describe(L, index));
  } else if (!tensor->storage) {
    tl_fail(L, "%s: operand %d is a tensor that has been closed", name, index);
  }
  pair->inputs[pair->ninputs] = tensor;
  return (uint8_t)pair->ninputs++;
}

static void read_pair(lua_State *L, tl_op op, const char *name, tl_pair *pair) {
  *pair = (tl_pair){.step = {.op = (uint16_t)op}};
  pair->step.a = read_operand(L, 1, name, pair);
  pair->step.b = read_operand(L, 2, name, pair);
  pair->step.out = (uint8_t)pair->ninputs;
  if (pair->ninputs == 0) tl_fail(L, "%s: one of the operands must be a tensor", name);
}

static tl_dtype dtype_of(const tl_pair *pair) {
  tl_dtype dtype = (tl_dtype)pair->inputs[0]->view.dtype;
  return pair->ninputs == 1 ? dtype
                            : tl_dtype_promote(dtype, (tl_dtype)pair->inputs[1]->view.dtype);
}

static int binary(lua_State *L, tl_op op) {
  const char *name = tl_ops[op].name;
  tl_pair pair;
  tl_view view;
  tl_error error;
  read_pair(L, op, name, &pair);
  tl_check_count(L, 2, name);
  tl_dtype dtype = dtype_of(&pair);
  if (tl_view_broadcast(&view, dtype, &pair.inputs[0]->view,
                        &pair.inputs[pair.ninputs - 1]->view, name, &error) != TL_OK) {
    tl_raise(L, &error);
  }
  tl_tensor *out = tl_tensor_new(L, &view, name);
  tl_enqueue_step(L, op, out, true, dtype, &pair.step, pair.ninputs, pair.inputs);
  return 1;
}

static int binary_in_place(lua_State *L, tl_op op, const char *name) {
  tl_tensor *out = tl_tensor_check(L, 1, name);
  tl_check_count(L, 2, name);
  tl_pair pair;
  read_pair(L, op, name, &pair);
  const tl_view *other = &pair.inputs[pair.ninputs - 1]->view;
  if (!tl_view_broadcasts_to(other, out->view.ndim, out->view.shape)) {
    char text_out[TL_SHAPE_TEXT], text_other[TL_SHAPE_TEXT];
    tl_fail(L, "%s: cannot broadcast %s to the size of the tensor written, %s", name,
            tl_view_shape_text(other, text_other), tl_view_shape_text(&out->view, text_out));
  }
  tl_enqueue_step(L, op, out, false, dtype_of(&pair), &pair.step, pair.ninputs, pair.inputs);
  lua_settop(L, 1);
  return 1;
}

#define TL_UNARY(name, metamethod, formula, low, high, doc, example, value)         \
  static int op_##name(lua_State *L) { return unary(L, TL_OP_##name); }             \
  static int op_##name##_(lua_State *L) {                                           \
    return unary_in_place(L, TL_OP_##name, #name "_");                              \
  }
#define TL_BINARY(name, metamethod, formula, low, high, doc, example, value)        \
  static int op_##name(lua_State *L) { return binary(L, TL_OP_##name); }            \
  static int op_##name##_(lua_State *L) {                                           \
    return binary_in_place(L, TL_OP_##name, #name "_");                             \
  }
#define TL_OTHER(name, family, doc, example, value)
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY

const luaL_Reg tl_elementwise_functions[] = {
#define TL_UNARY(name, metamethod, formula, low, high, doc, example, value) \
  {#name, op_##name}, {#name "_", op_##name##_},
#define TL_BINARY TL_UNARY
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
    {NULL, NULL},
};

/* A NULL name among them is an operator that Lua has no sign for. */
const luaL_Reg tl_elementwise_metamethods[] = {
#define TL_UNARY(name, metamethod, formula, low, high, doc, example, value) \
  {metamethod, op_##name},
#define TL_BINARY TL_UNARY
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
    {NULL, NULL},
};
