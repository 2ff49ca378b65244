/* What the Lua part (lua/tensor/files.lua) cannot do well: bytes between tensors and files.
 *
 * A reader gives the bytes of a file, or of a string, or of a part of either that may be deflated:
 * as strings, or straight into a new tensor.  A writer puts strings and tensors into a temporary
 * file, which takes the place of the one it is for when all is written.  Both are userdata that the
 * library's own Lua files alone get to see; closing them, or the collector, frees what they hold,
 * and a writer that was not committed leaves nothing behind.
 *
 * Each knows how its messages begin, with the function and the file: "load: 'x.npy'".  What follows
 * says what is wrong with the file. */
#ifndef TL_FRONTEND_FILES_H
#define TL_FRONTEND_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frontend/tensor.h"

enum {
  TL_FILE_BUFFER = 1 << 16, /* bytes */
  TL_FILE_PIECE = 1 << 24,  /* bytes moved before Ctrl-C is looked for */
};

/* Pushes a userdata of `bytes` zeros with `values` user values.  The first call for `name` makes
 * its metatable, with methods that get the upvalues of the calling function. */
void *tl_file_push(lua_State *L, size_t bytes, int values, const char *name,
                   const luaL_Reg *methods, lua_CFunction close);

/* The path at an argument; one with a zero in it is refused. */
const char *tl_file_check_path(lua_State *L, int index, const char *prefix);

/* Raises the error of a file; an interrupt becomes `interrupted!`. */
int tl_file_raise(lua_State *L, const char *prefix, const tl_error *error);

/* The numbers of a tensor in a file are little-endian, unless it says otherwise.  Turns `count`
 * elements of `size` bytes round. */
bool tl_file_is_native(bool big);
void tl_file_swap(void *data, size_t count, size_t size);

#endif
