/* The reading loop: chunks from standard input, each run as it is complete. */
#ifndef TL_FRONTEND_HOST_REPL_H
#define TL_FRONTEND_HOST_REPL_H

#include <lua.h>

/* Reads until the end of standard input.  A line is tried as an expression first, whose values go
 * through the global `print`; an incomplete chunk goes on in the next line.  Errors, and Ctrl-C,
 * end the chunk and not the loop.  Prompts are the globals _PROMPT and _PROMPT2.  Never raises. */
void tl_host_repl(lua_State *L);

#endif
