/* The Lua files compiled into the program.  The build writes the array; path is what tracebacks
 * show, relative to the repository: lua/tensor/format.lua for the module tensor.format. */
#ifndef TL_EMBEDDED_H
#define TL_EMBEDDED_H

#include <lua.h>
#include <stddef.h>

typedef struct tl_embedded {
  const char *module;
  const char *path;
  const unsigned char *text; /* size bytes, and a zero after them */
  size_t size;
} tl_embedded;

/* In the order of their paths; ends with an entry whose module is NULL. */
extern const tl_embedded tl_embedded_files[];

/* Pushes what the module returns, loading it the first time: its chunk is called with its name and
 * a table of the library and what is internal to it.  Raises when it cannot. */
void tl_embedded_require(lua_State *L, const char *module);

#endif
