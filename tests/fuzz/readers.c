/* libFuzzer's harness for the readers of files: TENSORLUA_FUZZ names the format.
 *
 * The parsers are Lua, which the compiler cannot instrument: a hook counts the lines of the
 * library's files instead, so that libFuzzer sees which inputs reach new ones. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "frontend/allocator.h"
#include "frontend/library.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COUNTERS = 1 << 13, FULL_COLLECTION = 64 /* inputs */ };

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[COUNTERS];

static lua_State *L;

/* A reader gives tensors whose elements can be read, or raises one sentence of its own. */
static const char script[] =
    "local parse = require('tensor.formats').parse\n"
    "local function try(format, bytes, options)\n"
    "  local ok, value = pcall(parse, format, bytes, options)\n"
    "  if not ok then\n"
    "    assert(type(value) == 'string', 'an error that is no string')\n"
    "    local own = value:find(\"load: 'bytes'\", 1, true) and not value:find '\\n'\n"
    "    if not own then error(value, 0) end\n"
    "    return\n"
    "  end\n"
    "  for _, x in pairs(type(value) == 'table' and value or {value}) do\n"
    "    local rows = 1\n" /* 2^40 x 0 is a tensor too, though not one for a table */
    "    for _, size in ipairs(x.shape) do rows = rows * math.max(size, 1) end\n"
    "    if rows < 10000 then x:totable() end\n"
    "  end\n"
    "end\n"
    "return function(format, bytes)\n"
    "  try(format, bytes)\n"
    "  if format == 'csv' then\n"
    "    try(format, bytes, {header = true, dtype = 'float64', delimiter = ';'})\n"
    "  end\n"
    "end\n";

static void count_line(lua_State *state, lua_Debug *event) {
  lua_getinfo(state, "S", event);
  uint32_t hash = (uint32_t)event->currentline * 2654435761u;
  for (const char *c = event->short_src; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
  counters[hash >> 8 & (COUNTERS - 1)]++;
}

static void stop(const char *message) {
  fprintf(stderr, "fuzz: %s\n", message ? message : "(no message)");
  abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  setenv("TENSORLUA_MEMORY", "256M", 1);
  setenv("TENSORLUA_THREADS", "1", 1);
  setenv("TENSORLUA_SYNC", "1", 1);
  tl_allocator *allocator = tl_allocator_new();
  L = allocator ? lua_newstate(tl_allocator_function, allocator) : NULL;
  if (!L) stop("no memory for a Lua state");
  luaL_openlibs(L);
  tl_allocator_offer(L, allocator);
  luaL_requiref(L, "tensor", luaopen_tensor, 1);
  if (luaL_loadbuffer(L, script, sizeof script - 1, "=fuzz") || lua_pcall(L, 0, 1, 0)) {
    stop(lua_tostring(L, -1));
  }
  lua_replace(L, 1);
  lua_settop(L, 1);
  lua_sethook(L, count_line, LUA_MASKLINE, 0);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static unsigned inputs;
  const char *format = getenv("TENSORLUA_FUZZ");
  lua_pushvalue(L, 1);
  lua_pushstring(L, format ? format : "npy");
  lua_pushlstring(L, (const char *)data, size);
  if (lua_pcall(L, 2, 0, 0)) stop(lua_tostring(L, -1));
  if (++inputs % FULL_COLLECTION == 0) lua_gc(L, LUA_GCCOLLECT);
  return 0;
}
