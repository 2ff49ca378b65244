/* The tensor library as Lua sees it, and its end. */
#ifndef TL_FRONTEND_LIBRARY_H
#define TL_FRONTEND_LIBRARY_H

#include <lua.h>
#include <stdbool.h>

/* Exported: the one symbol of tensor.so. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
int luaopen_tensor(lua_State *L);

/* Waits for everything queued in this state, and raises the first failure that nobody has seen. */
void tl_library_finish(lua_State *L);

/* This thread is about to wait for the user, or is back: meanwhile its core is free for the queue,
 * and everything queued is started. */
void tl_library_away(lua_State *L, bool away);

/* Stops and joins the threads of every state's engine, after the commands that they are running;
 * what is still queued does not run.  Idempotent; also called when the process exits. */
void tl_library_stop(void);

#endif
