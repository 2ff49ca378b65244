/* Calls from the host into Lua: an error gets a traceback, Ctrl-C becomes an error, and what is
 * left in the end is a message for standard error. */
#ifndef TL_FRONTEND_HOST_CALL_H
#define TL_FRONTEND_HOST_CALL_H

#include <lua.h>

/* As lua_pcall, but interruptible, and a failure leaves a string with a traceback (or the text that
 * the error object's __tostring gives).  An interrupt that came too late for the call still fails
 * it.  May run out of memory: the caller is itself protected. */
int tl_host_call(lua_State *L, int nargs, int nresults);

/* Raises the message on top of the stack unless the status is LUA_OK. */
void tl_host_check(lua_State *L, int status);

/* Writes the message on top of the stack to standard error, after `program` and a colon unless
 * that is NULL.  Never raises; leaves the message where it is. */
void tl_host_report(lua_State *L, const char *program);

#endif
