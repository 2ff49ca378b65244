#include "frontend/host_call.h"

#include <stdbool.h>
#include <stdio.h>

#include <lauxlib.h>

#include "frontend/interrupt.h"

/* Runs where the error was raised, so the stack that it describes is still there. */
static int explain(lua_State *L) {
  if (!lua_isstring(L, 1)) {
    if (luaL_callmeta(L, 1, "__tostring") && lua_type(L, -1) == LUA_TSTRING) return 1;
    lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
    lua_replace(L, 1);
  }
  luaL_traceback(L, L, lua_tostring(L, 1), 1);
  return 1;
}

int tl_host_call(lua_State *L, int nargs, int nresults) {
  int function = lua_gettop(L) - nargs;
  lua_pushcfunction(L, explain);
  lua_insert(L, function);
  tl_interrupt_arm(L);
  int status = lua_pcall(L, nargs, nresults, function);
  bool late = tl_interrupt_disarm();
  lua_remove(L, function);
  if (status == LUA_OK && late) {
    lua_settop(L, function - 1);
    lua_pushliteral(L, "interrupted!");
    status = LUA_ERRRUN;
  }
  return status;
}

void tl_host_check(lua_State *L, int status) {
  if (status != LUA_OK) lua_error(L);
}

void tl_host_report(lua_State *L, const char *program) {
  const char *message = "(error without a message)";
  if (lua_type(L, -1) == LUA_TSTRING) message = lua_tostring(L, -1);
  fflush(stdout); /* what the script wrote comes first, also when both go to one file */
  fprintf(stderr, "%s%s%s\n", program ? program : "", program ? ": " : "", message);
}
