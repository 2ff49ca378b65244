/* Functions, methods, metamethods and in-place methods of the element-wise rows of ops.def. */
#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"

enum { MAX_OPERANDS = 3 };

/* The operands of an operator, tensors or numbers, and what they are computed in. */
typedef struct tl_operation {
  tl_op op;
  const char *name; /* of the function */
  int noperands;
  const tl_tensor *tensors[MAX_OPERANDS]; /* the arguments; NULL: a number */
  tl_dtype compute, result;
} tl_operation;

static bool is_number(lua_State *L, int index) {
  return lua_type(L, index) == LUA_TNUMBER || lua_type(L, index) == LUA_TBOOLEAN;
}

static void read_operands(lua_State *L, tl_operation *o) {
  bool any = false;
  for (int i = 0; i < o->noperands; i++) {
    const tl_tensor *tensor = tl_tensor_test(L, i + 1);
    o->tensors[i] = tensor;
    any = any || tensor;
    if (!tensor && o->noperands == 1) {
      tl_tensor_check(L, 1, o->name);
    } else if (!tensor && !is_number(L, i + 1)) {
      tl_fail(L, "%s: operand %d must be a tensor or a number, not %s", o->name, i + 1,
              tl_describe(L, i + 1));
    } else if (tensor && !tensor->storage) {
      tl_fail(L, "%s: %s %d is a tensor that has been closed", o->name,
              o->noperands == 1 ? "argument" : "operand", i + 1);
    }
  }
  if (!any) tl_fail(L, "%s: one of the operands must be a tensor", o->name);
}

/* The condition of where() says yes or no whatever the others are computed in. */
static void read_condition(lua_State *L, tl_operation *o) {
  if (!o->tensors[0]) {
    tl_fail(L, "%s: the condition must be a tensor, not %s", o->name, tl_describe(L, 1));
  }
  if (o->tensors[0]->view.dtype == TL_bool) return;
  o->tensors[0] = tl_enqueue_truth(L, o->op, o->tensors[0]);
}

/* How much an operand says about the dtype: bool, integer, floating-point. */
static int category(tl_dtype dtype) {
  return dtype == TL_bool ? 0 : tl_dtype_is_floating(dtype) ? 2 : 1;
}

/* The dtype in which operands first .. meet, as PyTorch has it: tensors with dimensions decide, one
 * without them, or a number, only where it is of a higher category. */
static tl_dtype meet(lua_State *L, const tl_operation *o, int first) {
  int ranked[3] = {-1, -1, -1}; /* of tensors with dimensions, of those without, of numbers */
  for (int i = first; i < o->noperands; i++) {
    int rank = 2;
    tl_dtype dtype = TL_bool;
    if (o->tensors[i]) {
      rank = o->tensors[i]->view.ndim > 0 ? 0 : 1;
      dtype = (tl_dtype)o->tensors[i]->view.dtype;
    } else if (lua_type(L, i + 1) == LUA_TNUMBER) {
      dtype = lua_isinteger(L, i + 1) ? TL_int64 : TL_float32;
    }
    ranked[rank] = ranked[rank] < 0 ? (int)dtype
                                    : (int)tl_dtype_promote((tl_dtype)ranked[rank], dtype);
  }
  int met = ranked[0];
  for (int rank = 1; rank < 3; rank++) {
    if (ranked[rank] < 0) continue;
    if (met < 0 || category((tl_dtype)ranked[rank]) > category((tl_dtype)met)) met = ranked[rank];
  }
  return (tl_dtype)met;
}

static void infer_dtypes(lua_State *L, tl_operation *o) {
  tl_kind kind = tl_ops[o->op].kind;
  tl_dtype met = meet(L, o, o->op == TL_OP_where ? 1 : 0);
  if (kind == TL_BITS && tl_dtype_is_floating(met)) {
    tl_fail(L, "%s: wants integers or booleans, not %s", o->name, tl_dtype_name(met));
  }
  if (met == TL_bool && (o->op == TL_OP_neg || o->op == TL_OP_sub)) {
    tl_fail(L, "%s: bools have no such result: use %s, or convert with :to()", o->name,
            o->op == TL_OP_neg ? "logical_not" : "logical_xor");
  }
  if (met == TL_bool && o->op == TL_OP_bitwise_not) o->op = TL_OP_logical_not;
  if (kind == TL_REAL && !tl_dtype_is_floating(met)) met = TL_float32;
  o->compute = tl_dtype_compute(met);
  o->result = kind == TL_TEST ? TL_bool : met;
}

/* The size that the tensors broadcast to. */
static void infer_size(lua_State *L, const tl_operation *o, tl_view *view) {
  const tl_view *views[MAX_OPERANDS] = {NULL};
  int count = 0;
  for (int i = 0; i < o->noperands; i++) {
    if (o->tensors[i]) views[count++] = &o->tensors[i]->view;
  }
  tl_view both;
  tl_error error;
  tl_status status = TL_OK;
  if (count == 3) {
    status = tl_view_broadcast(&both, o->result, views[0], views[1], o->name, &error);
    views[0] = &both;
    views[1] = views[2];
  }
  if (count == 1) {
    tl_view_make_like(view, o->result, views[0]);
  } else if (status == TL_OK) {
    status = tl_view_broadcast(view, o->result, views[0], views[1], o->name, &error);
  }
  if (status != TL_OK) tl_raise(L, &error);
}

/* out = the operator over the operands. */
static void enqueue(lua_State *L, const tl_operation *o, tl_tensor *out, bool fresh) {
  tl_step step = {.op = (uint16_t)o->op, .a = TL_IMMEDIATE, .b = TL_IMMEDIATE, .c = TL_IMMEDIATE};
  uint8_t *const registers[MAX_OPERANDS] = {&step.a, &step.b, &step.c};
  const tl_tensor *inputs[MAX_OPERANDS];
  int ninputs = 0;
  for (int i = 0; i < o->noperands; i++) {
    const tl_tensor *tensor = o->tensors[i];
    if (!tensor && o->noperands > 2) tensor = tl_enqueue_number(L, i + 1, o->name, o->compute);
    if (tensor) {
      *registers[i] = (uint8_t)ninputs;
      inputs[ninputs++] = tensor;
    } else {
      step.immediate = tl_check_scalar(L, i + 1, o->name, o->compute);
    }
  }
  step.out = (uint8_t)ninputs;
  tl_enqueue_step(L, o->op, out, fresh, o->compute, &step, ninputs, inputs);
}

static bool leaves_alone(const tl_operation *o) { /* integers that are rounded */
  return tl_ops[o->op].kind == TL_ROUND && !tl_dtype_is_floating(o->result);
}

static int apply(lua_State *L, tl_op op) {
  tl_operation o = {.op = op, .name = tl_ops[op].name, .noperands = tl_ops[op].arity};
  read_operands(L, &o);
  /* -x gives x twice */
  if (o.noperands > 1 || !lua_rawequal(L, 1, 2)) tl_check_count(L, o.noperands, o.name);
  if (op == TL_OP_where) read_condition(L, &o);
  infer_dtypes(L, &o);
  if (leaves_alone(&o)) {
    tl_enqueue_copy(L, op, o.tensors[0], o.result);
    return 1;
  }
  tl_view view;
  infer_size(L, &o, &view);
  tl_tensor *out = tl_tensor_new(L, &view, o.name);
  int top = lua_gettop(L);
  enqueue(L, &o, out, true);
  lua_settop(L, top);
  return 1;
}

static int apply_in_place(lua_State *L, tl_op op, const char *name) {
  tl_tensor *out = tl_tensor_check(L, 1, name);
  tl_operation o = {.op = op, .name = name, .noperands = tl_ops[op].arity};
  tl_check_count(L, o.noperands, name);
  read_operands(L, &o);
  infer_dtypes(L, &o);
  tl_dtype own = (tl_dtype)out->view.dtype;
  if (category(o.result) > category(own)) {
    tl_fail(L, "%s: the result is %s, which a tensor of %s cannot take", name,
            tl_dtype_name(o.result), tl_dtype_name(own));
  }
  for (int i = 1; i < o.noperands; i++) {
    if (!o.tensors[i]) continue;
    const tl_view *other = &o.tensors[i]->view;
    if (tl_view_broadcasts_to(other, out->view.ndim, out->view.shape)) continue;
    char text_out[TL_SHAPE_TEXT], text_other[TL_SHAPE_TEXT];
    tl_fail(L, "%s: cannot broadcast %s to the size of the tensor written, %s", name,
            tl_view_shape_text(other, text_other), tl_view_shape_text(&out->view, text_out));
  }
  if (!leaves_alone(&o)) enqueue(L, &o, out, false);
  lua_settop(L, 1);
  return 1;
}

#define TL_UNARY(name, ...)                                                                  \
  static int op_##name(lua_State *L) { return apply(L, TL_OP_##name); }                      \
  static int op_##name##_(lua_State *L) { return apply_in_place(L, TL_OP_##name, #name "_"); }
#define TL_BINARY TL_UNARY
#define TL_TERNARY(name, ...) \
  static int op_##name(lua_State *L) { return apply(L, TL_OP_##name); }
#define TL_OTHER(...)
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
#undef TL_TERNARY

const luaL_Reg tl_elementwise_functions[] = {
#define TL_UNARY(name, ...) {#name, op_##name}, {#name "_", op_##name##_},
#define TL_BINARY TL_UNARY
#define TL_TERNARY(name, ...) {#name, op_##name},
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
#undef TL_TERNARY
    {NULL, NULL},
};

/* A NULL name among them is an operator that Lua has no sign for. */
const luaL_Reg tl_elementwise_metamethods[] = {
#define TL_UNARY(name, kind, metamethod, ...) {metamethod, op_##name},
#define TL_BINARY TL_UNARY
#define TL_TERNARY TL_UNARY
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
#undef TL_TERNARY
    {NULL, NULL},
};
