/* Waiting for everything, timing, threads, seeds. */
#include <string.h>

#include "engine/scheduler.h"
#include "frontend/arguments.h"
#include "frontend/embedded.h"
#include "frontend/functions.h"
#include "frontend/trace.h"

static int sync(lua_State *L) {
  tl_check_count(L, 1, "sync");
  if (!lua_isnoneornil(L, 1)) tl_check_device(L, 1, "sync");
  tl_context *context = tl_context_of(L);
  tl_error error;
  if (context->trace) tl_trace_refuse_read(L, context, "sync");
  if (context->engine && tl_engine_drain(context->engine, &error) != TL_OK) tl_raise(L, &error);
  return 0;
}

static int set_num_threads(lua_State *L) {
  tl_context *context = tl_context_of(L);
  tl_check_count(L, 1, "set_num_threads");
  int64_t threads = tl_check_integer(L, 1, "set_num_threads");
  if (threads < 1 || threads > 1024) {
    tl_fail(L, "set_num_threads: %I is not a number from 1 to 1024", (LUAI_UACINT)threads);
  }
  tl_error error;
  if (context->engine &&
      tl_engine_set_threads(context->engine, (int)threads, &error) != TL_OK) {
    tl_raise(L, &error);
  }
  context->threads = (int)threads;
  return 0;
}

static int get_num_threads(lua_State *L) {
  tl_check_count(L, 0, "get_num_threads");
  lua_pushinteger(L, tl_context_of(L)->threads);
  return 1;
}

/* fusion(on): whether element-wise operations are joined; fusion() asks. */
static int fusion(lua_State *L) {
  tl_context *context = tl_context_of(L);
  tl_check_count(L, 1, "fusion");
  if (lua_gettop(L) == 0) {
    lua_pushboolean(L, context->fusion);
    return 1;
  }
  if (!lua_isboolean(L, 1)) {
    tl_fail(L, "fusion: wants true or false, not %s", luaL_typename(L, 1));
  }
  bool on = lua_toboolean(L, 1);
  tl_error error;
  if (context->engine && tl_engine_set_fusion(context->engine, on, &error) != TL_OK) {
    tl_raise(L, &error);
  }
  context->fusion = on;
  return 0;
}

/* memory(): bytes, by what they are for. */
static int memory(lua_State *L) {
  tl_context *context = tl_context_of(L);
  tl_check_count(L, 0, "memory");
  tl_engine_counters counters;
  tl_engine_count(tl_context_engine(L, context), &counters);
  const struct {
    const char *name;
    size_t bytes;
  } fields[] = {
      {"live", context->live},        {"used", counters.used},
      {"pooled", counters.pooled},    {"virtual", counters.virtual_bytes},
      {"peak", counters.peak},        {"budget", counters.budget},
  };
  lua_createtable(L, 0, sizeof fields / sizeof *fields);
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    lua_pushinteger(L, (lua_Integer)fields[i].bytes);
    lua_setfield(L, -2, fields[i].name);
  }
  return 1;
}

static int empty_cache(lua_State *L) {
  tl_check_count(L, 0, "empty_cache");
  tl_engine_trim(tl_context_engine(L, tl_context_of(L)));
  return 0;
}

int tl_control_measure(lua_State *L) {
  tl_engine_counters counters = {0};
  tl_context *context = tl_context_of(L);
  uint64_t now = tl_clock(); /* before the counters, which may wait for a lock */
  if (context->engine) tl_engine_count(context->engine, &counters);
  lua_pushnumber(L, (lua_Number)now * 1e-9);
  lua_pushnumber(L, (lua_Number)counters.blocked * 1e-9);
  lua_pushnumber(L, (lua_Number)counters.busy * 1e-9);
  lua_pushinteger(L, (lua_Integer)(counters.enqueued - counters.retired));
  return 4;
}

/* benchmark([name,] f [, options]); what it does is said in Lua, in tensor.benchmark. */
static int benchmark(lua_State *L) {
  int arguments = lua_gettop(L);
  tl_embedded_require(L, "tensor.benchmark");
  lua_insert(L, 1);
  lua_call(L, arguments, LUA_MULTRET);
  return lua_gettop(L);
}

const luaL_Reg tl_control_functions[] = {
    {"sync", sync},
    {"benchmark", benchmark},
    {"set_num_threads", set_num_threads},
    {"get_num_threads", get_num_threads},
    {"fusion", fusion},
    {"memory", memory},
    {"empty_cache", empty_cache},
    {NULL, NULL},
};
