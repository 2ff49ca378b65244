#include "frontend/library.h"

#include <string.h>

#include "frontend/context.h"
#include "frontend/embedded.h"
#include "frontend/functions.h"
#include "frontend/tensor.h"
#include "version.h"

/* Registry keys, by address: the context, and the table of modules (see embedded.h), with what
 * their chunks are given at its index 1 and their globals at 2. */
static const char context_key, modules_key;

/* ---- Lua files compiled in ---- */

void tl_embedded_require(lua_State *L, const char *module) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &modules_key);
  if (lua_getfield(L, -1, module) != LUA_TNIL) {
    lua_remove(L, -2);
    return;
  }
  lua_pop(L, 1);
  const tl_embedded *file = tl_embedded_files;
  while (file->module && strcmp(file->module, module) != 0) file++;
  if (!file->module) tl_fail(L, "module '%s' is not part of this program", module);
  lua_pushfstring(L, "@%s", file->path);
  if (luaL_loadbufferx(L, (const char *)file->text, file->size, lua_tostring(L, -1), "t") !=
      LUA_OK) {
    lua_error(L);
  }
  lua_rawgeti(L, -3, 2);
  lua_setupvalue(L, -2, 1); /* its _ENV */
  lua_pushstring(L, module);
  lua_rawgeti(L, -4, 1);
  lua_call(L, 2, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, -4, module);
  lua_replace(L, -3);
  lua_pop(L, 1);
}

/* Pushes a copy of the globals as they are now: the modules, which are loaded when they are first
 * needed, work whatever the script does to its own. */
static void push_globals(lua_State *L) {
  lua_newtable(L);
  lua_pushglobaltable(L);
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -5);
  }
  lua_pop(L, 1);
}

/* The same through require(), for scripts and tests: package.preload's loaders. */
static int preload(lua_State *L) {
  tl_embedded_require(L, luaL_checkstring(L, 1));
  return 1;
}

/* ---- the library's table ---- */

/* Adds functions, which have the library's upvalues, to the table on top of the stack. */
static void add(lua_State *L, int metatable, int context, const luaL_Reg *functions) {
  for (const luaL_Reg *f = functions; f->func; f++) {
    if (!f->name) continue;
    lua_pushvalue(L, metatable);
    lua_pushvalue(L, context);
    lua_pushcclosure(L, f->func, TL_UPVALUES);
    lua_setfield(L, -2, f->name);
  }
}

/* __index of the library and of the methods: the functions that are written in Lua are loaded when
 * a name is asked for that C does not have. */
static int load_functions(lua_State *L) {
  tl_embedded_require(L, "tensor.functions");
  lua_settop(L, 2);
  lua_rawget(L, 1);
  return 1;
}

/* For the Lua part: fail(text) raises it at the line of whoever called the library. */
static int fail(lua_State *L) { return tl_fail(L, "%s", luaL_checkstring(L, 1)); }

/* check(name, x, ...): the first arguments of the function `name`, which must be tensors. */
static int check(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  lua_pushvalue(L, 1);
  lua_remove(L, 1);
  for (int i = 1; i < lua_gettop(L); i++) tl_tensor_check(L, i, name);
  return 0;
}

/* kind(x): the type of a value; "tensor" for an open tensor, "closed tensor" for a closed one. */
static int kind(lua_State *L) {
  const tl_tensor *tensor = tl_tensor_test(L, 1);
  lua_pushstring(L, !tensor ? luaL_typename(L, 1) : tensor->storage ? "tensor" : "closed tensor");
  return 1;
}

/* promote(a, b): the dtype in which two dtypes meet. */
static int promote(lua_State *L) {
  int a = tl_dtype_find(luaL_checkstring(L, 1)), b = tl_dtype_find(luaL_checkstring(L, 2));
  lua_pushstring(L, tl_dtype_name(tl_dtype_promote((tl_dtype)a, (tl_dtype)b)));
  return 1;
}

/* compute(dtype): the dtype in which it is computed, "int64" unless it is a floating-point one. */
static int compute(lua_State *L) {
  tl_dtype dtype = (tl_dtype)tl_dtype_find(luaL_checkstring(L, 1));
  lua_pushstring(L, tl_dtype_name(tl_dtype_compute(dtype)));
  return 1;
}

/* tensor{...}: the library is the first argument of its own __call. */
static int call(lua_State *L) {
  lua_remove(L, 1);
  return tl_create_tensor(L);
}

int luaopen_tensor(lua_State *L) {
  static const luaL_Reg *const methods[] = {
      tl_elementwise_functions, tl_inplace_functions, tl_matmul_functions,
      tl_reduce_functions,      tl_shape_functions,   tl_read_functions,
      tl_along_functions,       tl_sort_functions,    tl_count_functions,
      tl_view_functions,        tl_like_functions,
      tl_index_functions,       tl_gather_functions,  tl_mask_functions,
  };
  static const luaL_Reg *const functions[] = {tl_create_functions, tl_control_functions,
                                              tl_compile_functions, tl_generator_functions,
                                              tl_range_functions};
  static const luaL_Reg *const metamethods[] = {
      tl_elementwise_metamethods, tl_read_metamethods, tl_index_metamethods};
  static const luaL_Reg closers[] = {{"__close", tl_tensor_close}, {NULL, NULL}};
  static const luaL_Reg callers[] = {{"__call", call}, {"__index", load_functions}, {NULL, NULL}};
  static const luaL_Reg loaders[] = {{"__index", load_functions}, {NULL, NULL}};
  static const luaL_Reg internals[] = {
      {"measure", tl_control_measure}, {"fail", fail},
      {"check", check},                {"require", preload},
      {"kind", kind},                  {"promote", promote},
      {"compute", compute},            {"empty", tl_range_empty},
      {NULL, NULL}};
  enum {
    COUNT = sizeof methods / sizeof methods[0],
    FUNCTIONS = sizeof functions / sizeof functions[0],
  };

  luaL_checkversion(L);
  lua_settop(L, 0);
  tl_context *context = tl_context_push(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &context_key);
  lua_newtable(L);                    /* 1: the metatable */
  lua_pushlightuserdata(L, context);  /* 2: the context */
  lua_newtable(L);                    /* 3: the methods */
  lua_newtable(L);                    /* 4: the library */
  for (int i = 0; i < COUNT; i++) {
    lua_pushvalue(L, 3);
    add(L, 1, 2, methods[i]);
    lua_pop(L, 1);
    add(L, 1, 2, methods[i]);
  }
  for (int i = 0; i < FUNCTIONS; i++) add(L, 1, 2, functions[i]);
  lua_pushliteral(L, TL_VERSION);
  lua_setfield(L, 4, "VERSION");
  for (int dtype = 0; dtype < TL_DTYPE_COUNT; dtype++) {
    lua_pushstring(L, tl_dtype_name((tl_dtype)dtype));
    lua_pushvalue(L, -1);
    lua_rawset(L, 4);
  }
  lua_newtable(L); /* the library's own metatable */
  add(L, 1, 2, callers);
  lua_setmetatable(L, 4);
  lua_newtable(L);
  add(L, 1, 2, loaders);
  lua_setmetatable(L, 3);

  lua_pushvalue(L, 1);
  for (int i = 0; i < 3; i++) add(L, 1, 2, metamethods[i]);
  add(L, 1, 2, closers);
  tl_tensor_collect(L, context);
  for (int i = 1; i <= 3; i++) lua_pushvalue(L, i);
  lua_pushcclosure(L, tl_index_read, TL_UPVALUES + 1);
  lua_setfield(L, 1, "__index");
  lua_pushliteral(L, "tensor");
  lua_setfield(L, 1, "__name");
  lua_pushliteral(L, "tensor");
  lua_setfield(L, 1, "__metatable");
  lua_settop(L, 4);

  lua_newtable(L); /* the modules */
  lua_newtable(L);
  add(L, 1, 2, internals);
  add(L, 1, 2, tl_file_functions);
  add(L, 1, 2, tl_operator_functions);
  lua_pushvalue(L, 4);
  lua_setfield(L, -2, "tensor");
  lua_pushvalue(L, 3);
  lua_setfield(L, -2, "methods");
  tl_context_push_names(L);
  lua_setfield(L, -2, "names");
  lua_pushinteger(L, TL_MAX_DIMS);
  lua_setfield(L, -2, "MAX_DIMS");
  lua_newtable(L);
  add(L, 1, 2, tl_linalg_functions);
  lua_setfield(L, -2, "linalg");
  lua_rawseti(L, 5, 1);
  push_globals(L);
  lua_rawseti(L, 5, 2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &modules_key);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  for (const tl_embedded *file = tl_embedded_files; file->module; file++) {
    lua_pushcfunction(L, preload);
    lua_setfield(L, -2, file->module);
  }
  lua_settop(L, 4);
  return 1;
}

/* ---- for the host ---- */

/* The state's engine, or NULL when there is none. */
static tl_engine *engine_of(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &context_key);
  const tl_context *context = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return context ? context->engine : NULL;
}

void tl_library_away(lua_State *L, bool away) {
  tl_engine *engine = engine_of(L);
  if (engine) tl_engine_away(engine, away);
}

void tl_library_finish(lua_State *L) {
  tl_engine *engine = engine_of(L);
  tl_error error;
  if (engine && tl_engine_drain(engine, &error) != TL_OK) {
    if (error.status == TL_INTERRUPTED) tl_raise(L, &error);
    lua_pushstring(L, error.text);
    lua_error(L);
  }
}

void tl_library_stop(void) { tl_context_stop_all(); }
