/* Functions that make tensors. */
#include <math.h>
#include <stdio.h>

#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "frontend/trace.h"
#include "tensor/parameters.h"

/* ---- from Lua values ---- */

typedef struct tl_table_reader {
  lua_State *L;
  int ndim;
  int64_t shape[TL_MAX_DIMS];
  int64_t position[TL_MAX_DIMS]; /* of the element being read, from 1 */
  int type; /* Lua's, of the elements: numbers or booleans, as the first one is */
  tl_dtype dtype;
  char *to;
} tl_table_reader;

static int refuse(const tl_table_reader *reader, int depth, const char *what) {
  char text[TL_SHAPE_TEXT + 1] = "";
  size_t length = 0;
  for (int d = 0; d < depth; d++) {
    length += (size_t)snprintf(text + length, sizeof text - length, "[%lld]",
                               (long long)reader->position[d]);
  }
  return tl_fail(reader->L, "tensor: element %s is %s", text, what);
}

/* The shape is that of the first element of each level. */
static void read_shape(tl_table_reader *reader) {
  lua_State *L = reader->L;
  lua_pushvalue(L, 1);
  while (lua_type(L, -1) == LUA_TTABLE) {
    if (reader->ndim == TL_MAX_DIMS) {
      tl_fail(L, "tensor: tables nested deeper than %d dimensions", TL_MAX_DIMS);
    }
    reader->shape[reader->ndim] = (int64_t)lua_rawlen(L, -1);
    if (reader->shape[reader->ndim++] == 0) break;
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
  }
  reader->type = lua_type(L, -1) == LUA_TBOOLEAN ? LUA_TBOOLEAN : LUA_TNUMBER;
  lua_pop(L, 1);
}

/* Reads the value on top of the stack, a table of dimension `depth` or an element. */
static void read_level(tl_table_reader *reader, int depth) {
  lua_State *L = reader->L;
  char what[96];
  if (depth == reader->ndim) {
    if (lua_type(L, -1) != reader->type) {
      snprintf(what, sizeof what, "a %s, not a %s", luaL_typename(L, -1),
               lua_typename(L, reader->type));
      refuse(reader, depth, what);
    }
    tl_dtype_store(reader->dtype, reader->to, tl_check_scalar(L, -1, "tensor", reader->dtype));
    reader->to += tl_dtype_size(reader->dtype);
    return;
  }
  if (lua_type(L, -1) != LUA_TTABLE) {
    snprintf(what, sizeof what, "a %s where the first ones are tables", luaL_typename(L, -1));
    refuse(reader, depth, what);
  }
  if ((int64_t)lua_rawlen(L, -1) != reader->shape[depth]) {
    snprintf(what, sizeof what, "ragged: %lld elements, and %lld in those before",
             (long long)lua_rawlen(L, -1), (long long)reader->shape[depth]);
    refuse(reader, depth, what);
  }
  for (int64_t i = 1; i <= reader->shape[depth]; i++) {
    reader->position[depth] = i;
    lua_rawgeti(L, -1, i);
    read_level(reader, depth + 1);
    lua_pop(L, 1);
  }
}

int tl_create_tensor(lua_State *L) {
  tl_options options = tl_check_options(L, "tensor");
  tl_check_count(L, 1, "tensor");
  if (lua_type(L, 1) != LUA_TTABLE && lua_type(L, 1) != LUA_TNUMBER &&
      lua_type(L, 1) != LUA_TBOOLEAN) {
    tl_fail(L, "tensor: argument 1 must be a number or a table of numbers, not %s",
            lua_isnone(L, 1) ? "missing" : luaL_typename(L, 1));
  }
  tl_table_reader reader = {.L = L, .dtype = options.dtype};
  tl_view view;
  tl_error error;
  read_shape(&reader);
  if (reader.type == LUA_TBOOLEAN && !options.has_dtype) reader.dtype = TL_bool;
  if (tl_view_make(&view, reader.dtype, reader.ndim, reader.shape, &error) != TL_OK) {
    tl_fail(L, "tensor: %s", error.text);
  }
  tl_tensor *tensor = tl_tensor_new(L, &view, "tensor");
  reader.to = tl_engine_fill(tl_context_of(L)->engine, tensor->storage);
  if (!reader.to) {
    tl_fail(L, "tensor: out of memory: cannot allocate %I bytes",
            (LUAI_UACINT)tensor->storage->bytes);
  }
  lua_pushvalue(L, 1);
  read_level(&reader, 0);
  lua_pop(L, 1);
  return 1;
}

/* ---- of one value ---- */

static int filled(lua_State *L, tl_op op, int value) {
  tl_view view;
  tl_options options = tl_check_options(L, tl_ops[op].name);
  tl_check_shape(L, 1, tl_ops[op].name, options.dtype, &view);
  tl_enqueue_fill(L, op, tl_tensor_new(L, &view, tl_ops[op].name), true,
                  tl_scalar_integer(value, options.dtype));
  return 1;
}

static int zeros(lua_State *L) { return filled(L, TL_OP_zeros, 0); }

static int ones(lua_State *L) { return filled(L, TL_OP_ones, 1); }

static int full(lua_State *L) {
  tl_view view;
  tl_options options = tl_check_options(L, "full");
  tl_check_count(L, 2, "full");
  if (lua_isboolean(L, 2) && !options.has_dtype) options.dtype = TL_bool;
  tl_scalar value = tl_check_scalar(L, 2, "full", options.dtype);
  lua_settop(L, 1);
  tl_check_shape(L, 1, "full", options.dtype, &view);
  tl_enqueue_fill(L, TL_OP_full, tl_tensor_new(L, &view, "full"), true, value);
  return 1;
}

static int eye(lua_State *L) {
  tl_options options = tl_check_options(L, "eye");
  tl_check_count(L, 2, "eye");
  tl_check_integer(L, 1, "eye");
  if (lua_gettop(L) == 1) lua_pushvalue(L, 1);
  tl_view view;
  tl_check_shape(L, 1, "eye", options.dtype, &view);
  tl_tensor *out = tl_tensor_new(L, &view, "eye");
  tl_enqueue_fill(L, TL_OP_eye, out, true, (tl_scalar){0});
  int64_t rows = view.shape[0], columns = view.shape[1];
  tl_view diagonal = {
      .dtype = view.dtype,
      .ndim = 1,
      .shape = {rows < columns ? rows : columns},
      .stride = {columns + 1},
  };
  tl_enqueue_fill(L, TL_OP_eye, tl_tensor_alias(L, out, &diagonal), false,
                  tl_scalar_integer(1, options.dtype));
  lua_pop(L, 1);
  return 1;
}

/* ---- of computed values ---- */

static const tl_tensor *generate(lua_State *L, tl_op op, const tl_view *view,
                                 const tl_generate *parameters) {
  tl_tensor *out = tl_tensor_new(L, view, tl_ops[op].name);
  tl_operand operand = tl_operand_of(out, &out->view, TL_WRITE | TL_WHOLE);
  tl_enqueue(L, op, 1, &operand, parameters, sizeof *parameters);
  return out;
}

/* Drawn as float32 or float64; the halves are rounded from float32. */
static int random_tensor(lua_State *L, tl_op op) {
  tl_context *context = tl_context_of(L);
  tl_options options = tl_check_random_options(L, tl_ops[op].name);
  tl_generator *random = options.generator ? options.generator : &context->random;
  if (options.generator && context->trace) tl_trace_refuse_effect(L, context, tl_ops[op].name);
  tl_dtype drawn = tl_dtype_compute(options.dtype);
  tl_view view;
  tl_check_shape(L, 1, tl_ops[op].name, drawn, &view);
  tl_generate parameters = {.seed = random->seed};
  parameters.position = tl_generator_draw(random, drawn, (uint64_t)tl_view_numel(&view));
  const tl_tensor *out = generate(L, op, &view, &parameters);
  if (drawn != options.dtype) tl_enqueue_copy(L, TL_OP_to, out, options.dtype);
  return 1;
}

static int rand_uniform(lua_State *L) { return random_tensor(L, TL_OP_rand); }

static int rand_normal(lua_State *L) { return random_tensor(L, TL_OP_randn); }

/* Counts as Lua's numeric `for` does: from 1 when only the last is given, the last included. */
static int arange(lua_State *L) {
  tl_options options = tl_check_options(L, "arange");
  tl_check_count(L, 3, "arange");
  int given = lua_gettop(L);
  double last = tl_check_number(L, given > 1 ? 2 : 1, "arange"), start = 1, step = 1;
  if (given > 1) start = tl_check_number(L, 1, "arange");
  if (given > 2) step = tl_check_number(L, 3, "arange");
  double steps = floor((last - start) / step);
  if (step == 0 || !isfinite(steps)) {
    tl_fail(L, "arange: cannot count from %f to %f in steps of %f", start, last, step);
  }
  tl_generate parameters = {.start.real = start, .step.real = step};
  if (tl_dtype_compute(options.dtype) == TL_int64) {
    parameters.start.integer = given > 1 ? tl_check_integer(L, 1, "arange") : 1;
    parameters.step.integer = given > 2 ? tl_check_integer(L, 3, "arange") : 1;
  }
  int64_t count = steps < 0 ? 0 : steps < 9e18 ? (int64_t)steps + 1 : INT64_MAX;
  tl_view view;
  tl_error error;
  if (tl_view_make(&view, options.dtype, 1, &count, &error) != TL_OK) {
    tl_fail(L, "arange: %s", error.text);
  }
  generate(L, TL_OP_arange, &view, &parameters);
  return 1;
}

const luaL_Reg tl_create_functions[] = {
    {"zeros", zeros},       {"ones", ones},         {"full", full},     {"eye", eye},
    {"rand", rand_uniform}, {"randn", rand_normal}, {"arange", arange}, {NULL, NULL},
};
