#include "frontend/generator.h"

#include <string.h>

#include "frontend/arguments.h"
#include "frontend/functions.h"
#include "frontend/trace.h"
#include "tensor/philox.h"

static const char TYPE[] = "tensor.generator";

uint64_t tl_generator_draw(tl_generator *generator, tl_dtype dtype, uint64_t count) {
  uint64_t position = generator->position;
  if (position > 0 && generator->drawn != dtype) {
    position = generator->drawn == TL_float32 ? tl_philox_fresh32(position)
                                              : tl_philox_fresh64(position);
  }
  generator->drawn = dtype;
  generator->position = dtype == TL_float32 ? tl_philox_advance32(position, count)
                                            : tl_philox_advance64(position, count);
  return position;
}

tl_generator *tl_generator_test(lua_State *L, int index) { return luaL_testudata(L, index, TYPE); }

static void refuse_in_trace(lua_State *L, const char *name) {
  tl_context *context = tl_context_of(L);
  if (context->trace) tl_trace_refuse_effect(L, context, name);
}

static void seed(lua_State *L, tl_generator *generator, int index) {
  uint64_t value = (uint64_t)tl_check_integer(L, index, "manual_seed");
  refuse_in_trace(L, "manual_seed");
  *generator = (tl_generator){.seed = value};
}

/* What a stream needs to go on where it is, as a string. */
static int push_state(lua_State *L, const tl_generator *generator) {
  uint64_t state[] = {generator->seed, generator->position, generator->drawn};
  lua_pushlstring(L, (const char *)state, sizeof state);
  return 1;
}

static void set_state(lua_State *L, tl_generator *generator, int index, const char *name) {
  uint64_t state[3] = {0, 0, TL_DTYPE_COUNT};
  size_t size = 0;
  const char *text = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &size) : NULL;
  if (size == sizeof state) memcpy(state, text, size);
  if (state[2] != TL_float32 && state[2] != TL_float64) {
    tl_fail(L, "%s: argument %d is not the state of a generator", name, index);
  }
  refuse_in_trace(L, name);
  *generator = (tl_generator){state[0], state[1], (tl_dtype)state[2]};
}

/* ---- functions of the library: of the context's stream ---- */

static int library_manual_seed(lua_State *L) {
  tl_check_count(L, 1, "manual_seed");
  seed(L, &tl_context_of(L)->random, 1);
  return 0;
}

static int library_initial_seed(lua_State *L) {
  tl_check_count(L, 0, "initial_seed");
  lua_pushinteger(L, (lua_Integer)tl_context_of(L)->random.seed);
  return 1;
}

static int get_rng_state(lua_State *L) {
  tl_check_count(L, 0, "get_rng_state");
  return push_state(L, &tl_context_of(L)->random);
}

static int set_rng_state(lua_State *L) {
  tl_check_count(L, 1, "set_rng_state");
  set_state(L, &tl_context_of(L)->random, 1, "set_rng_state");
  return 0;
}

/* ---- generators ---- */

static tl_generator *check_self(lua_State *L, const char *name, int most) {
  tl_generator *generator = tl_generator_test(L, 1);
  if (!generator) {
    tl_fail(L, "%s: argument 1 must be a generator, not %s", name, tl_describe(L, 1));
  }
  tl_check_count(L, most, name);
  return generator;
}

static int generator_manual_seed(lua_State *L) {
  seed(L, check_self(L, "manual_seed", 2), 2);
  lua_settop(L, 1);
  return 1;
}

static int generator_initial_seed(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)check_self(L, "initial_seed", 1)->seed);
  return 1;
}

static int generator_get_state(lua_State *L) {
  return push_state(L, check_self(L, "get_state", 1));
}

static int generator_set_state(lua_State *L) {
  set_state(L, check_self(L, "set_state", 2), 2, "set_state");
  lua_settop(L, 1);
  return 1;
}

static int new_generator(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"manual_seed", generator_manual_seed}, {"initial_seed", generator_initial_seed},
      {"get_state", generator_get_state},     {"set_state", generator_set_state},
      {NULL, NULL},
  };
  tl_check_count(L, 1, "generator");
  tl_context *context = tl_context_of(L);
  uint64_t value = context->random.seed;
  if (!lua_isnoneornil(L, 1)) value = (uint64_t)tl_check_integer(L, 1, "generator");
  tl_generator *generator = lua_newuserdatauv(L, sizeof *generator, 0);
  *generator = (tl_generator){.seed = value};
  if (luaL_newmetatable(L, TYPE)) {
    lua_newtable(L);
    for (int i = 1; i <= TL_UPVALUES; i++) lua_pushvalue(L, lua_upvalueindex(i));
    luaL_setfuncs(L, methods, TL_UPVALUES);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, TYPE);
    lua_setfield(L, -2, "__metatable");
  }
  lua_setmetatable(L, -2);
  return 1;
}

const luaL_Reg tl_generator_functions[] = {
    {"manual_seed", library_manual_seed}, {"initial_seed", library_initial_seed},
    {"get_rng_state", get_rng_state},     {"set_rng_state", set_rng_state},
    {"generator", new_generator},         {NULL, NULL},
};
