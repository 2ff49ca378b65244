/* What a Lua state's tensor library keeps: its engine, its random stream, its pace of collection.
 *
 * Every C function of the library has two upvalues: the metatable of tensors and the context. */
#ifndef TL_FRONTEND_CONTEXT_H
#define TL_FRONTEND_CONTEXT_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "frontend/generator.h"
#include "tensor/dtype.h"

enum { TL_UPVALUE_METATABLE = 1, TL_UPVALUE_CONTEXT = 2, TL_UPVALUES = 2 };

typedef struct tl_source_name {
  struct tl_source_name *next;
  char text[LUA_IDSIZE];
} tl_source_name;

typedef struct tl_context {
  tl_engine *engine; /* opened by the first tensor */
  bool stopped;
  int threads;
  bool fusion;
  struct tl_context *next; /* of all contexts of the process */

  tl_generator random; /* the stream that random functions take from */

  struct tl_trace *trace; /* of the function that is being traced (trace.h), or NULL */

  size_t live;          /* bytes of storages with handles */
  size_t uncharged;     /* bytes since the collector last heard of them */
  size_t live_at_full;  /* live bytes that the last full collection left */

  tl_source_name *sources;
  const void *caller;        /* the Lua function that enqueued last; the registry keeps it alive */
  const char *caller_source; /* and its file */
} tl_context;

/* Pushes a new context (a userdata that must stay alive), set up from the environment. */
tl_context *tl_context_push(lua_State *L);

/* The context of the running function. */
static inline tl_context *tl_context_of(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(TL_UPVALUE_CONTEXT));
}

/* Its engine, opened if need be; raises when that fails. */
tl_engine *tl_context_engine(lua_State *L, tl_context *context);

void tl_context_stop(tl_context *context); /* closes its engine for good */
void tl_context_stop_all(void);

/* Tells Lua's collector of `bytes` that a new tensor will hold, which it cannot see.  May collect,
 * and so run finalizers: call it before anything is half made. */
void tl_context_charge(lua_State *L, tl_context *context, size_t bytes);

/* Where the running C function was called from: file (which lives as long as the context) and line
 * of the innermost Lua function that is not the library's own. */
void tl_context_source(lua_State *L, tl_context *context, const char **source, int *line);

/* Raises an error, as luaL_error does, at the line of that function: also when C code is in
 * between, as print() is when it waits for a value, and pcall() when it calls a function. */
int tl_fail(lua_State *L, const char *format, ...);

/* Pushes the table of the names of the library's functions in Lua: their errors begin with them. */
void tl_context_push_names(lua_State *L);

/* The same for an error from below; an interrupt becomes `interrupted!`. */
int tl_raise(lua_State *L, const tl_error *error);

#endif
