#include "frontend/files.h"

#include <string.h>

#include "frontend/functions.h"
#include "frontend/interrupt.h"

void *tl_file_push(lua_State *L, size_t bytes, int values, const char *name,
                   const luaL_Reg *methods, lua_CFunction close) {
  void *object = lua_newuserdatauv(L, bytes, values);
  memset(object, 0, bytes);
  if (luaL_newmetatable(L, name)) {
    lua_newtable(L);
    for (int i = 1; i <= TL_UPVALUES; i++) lua_pushvalue(L, lua_upvalueindex(i));
    luaL_setfuncs(L, methods, TL_UPVALUES);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, close);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__gc");
    lua_setfield(L, -2, "__close");
  }
  lua_setmetatable(L, -2);
  return object;
}

const char *tl_file_check_path(lua_State *L, int index, const char *prefix) {
  size_t length;
  const char *path = luaL_checklstring(L, index, &length);
  if (strlen(path) != length) tl_fail(L, "%s is no path: there is a zero byte in it", prefix);
  return path;
}

int tl_file_raise(lua_State *L, const char *prefix, const tl_error *error) {
  if (error->status == TL_INTERRUPTED) return tl_interrupt_raise(L);
  return tl_fail(L, "%s %s", prefix, error->text);
}

bool tl_file_is_native(bool big) {
  const uint16_t one = 1;
  unsigned char first;
  memcpy(&first, &one, 1);
  return (first == 0) == big;
}

void tl_file_swap(void *data, size_t count, size_t size) {
  unsigned char *bytes = data;
  for (size_t i = 0; i < count; i++, bytes += size) {
    for (size_t a = 0, b = size - 1; a < b; a++, b--) {
      unsigned char byte = bytes[a];
      bytes[a] = bytes[b];
      bytes[b] = byte;
    }
  }
}

/* ---- for the Lua part: what it asks about dtypes and values ---- */

/* dtype_size(name): bytes of an element, or nil when this build has no such dtype. */
static int dtype_size(lua_State *L) {
  int dtype = tl_dtype_find(luaL_checkstring(L, 1));
  if (dtype < 0) {
    lua_pushnil(L);
  } else {
    lua_pushinteger(L, (lua_Integer)tl_dtype_size((tl_dtype)dtype));
  }
  return 1;
}

/* is_open(x): nil when x is no tensor, false when it has been closed. */
static int is_open(lua_State *L) {
  const tl_tensor *x = tl_tensor_test(L, 1);
  if (x) {
    lua_pushboolean(L, x->storage != NULL);
  } else {
    lua_pushnil(L);
  }
  return 1;
}

const luaL_Reg tl_file_functions[] = {
    {"open_reader", tl_file_open_reader},
    {"open_string", tl_file_open_string},
    {"open_writer", tl_file_open_writer},
    {"dtype_size", dtype_size},
    {"is_open", is_open},
    {NULL, NULL},
};
