/* The C functions of the library, by file.  Each list is of functions or methods or both; the
 * library's table and the tensors' methods are made from them (library.c). */
#ifndef TL_FRONTEND_FUNCTIONS_H
#define TL_FRONTEND_FUNCTIONS_H

#include <lauxlib.h>

extern const luaL_Reg tl_create_functions[];      /* zeros, randn, ...: functions only */
extern const luaL_Reg tl_elementwise_functions[]; /* from ops.def */
extern const luaL_Reg tl_elementwise_metamethods[];
extern const luaL_Reg tl_inplace_functions[]; /* fill_, copy_, ... */
extern const luaL_Reg tl_matmul_functions[];
extern const luaL_Reg tl_reduce_functions[];
extern const luaL_Reg tl_along_functions[]; /* argmax, cumsum, ... */
extern const luaL_Reg tl_sort_functions[];  /* sort, median, searchsorted, ... */
extern const luaL_Reg tl_count_functions[]; /* bincount, unique, ... */
extern const luaL_Reg tl_shape_functions[]; /* reshape, size, stride, ... */
extern const luaL_Reg tl_view_functions[];  /* permute, expand, narrow, ... */
extern const luaL_Reg tl_like_functions[];  /* zeros_like, ... */
extern const luaL_Reg tl_range_functions[]; /* empty, linspace, ...: functions only */
extern const luaL_Reg tl_read_functions[];  /* item, totable, allclose, ... */
extern const luaL_Reg tl_read_metamethods[];
extern const luaL_Reg tl_index_metamethods[];
extern const luaL_Reg tl_index_functions[];  /* index, index_put, index_put_ */
extern const luaL_Reg tl_gather_functions[]; /* gather, scatter_, index_select, ... */
extern const luaL_Reg tl_mask_functions[];   /* masked_fill_, nonzero, ... */
extern const luaL_Reg tl_compile_functions[]; /* compile: a function only */
extern const luaL_Reg tl_generator_functions[]; /* manual_seed, generator, ...: functions only */
extern const luaL_Reg tl_linalg_functions[]; /* for lua/tensor/linalg.lua and einsum.lua */
extern const luaL_Reg tl_operator_functions[]; /* for lua/tensor/catalogue.lua */
extern const luaL_Reg tl_control_functions[]; /* sync, manual_seed, ...: functions only */

int tl_create_tensor(lua_State *L); /* tensor(table), without the library itself as argument */

/* For lua/tensor/files.lua: readers and writers (files.h), and what it asks about dtypes. */
extern const luaL_Reg tl_file_functions[];
int tl_file_open_reader(lua_State *L);
int tl_file_open_string(lua_State *L);
int tl_file_open_writer(lua_State *L);

/* For tensor.benchmark: pushes seconds now, seconds that the frontend was blocked, seconds of all
 * lanes at work, and how many operations are queued. */
int tl_control_measure(lua_State *L);

/* For the Lua part: empty(name, dtype, shape), on behalf of the function `name`. */
int tl_range_empty(lua_State *L);

/* __index: upvalue 3 is the table of methods. */
int tl_index_read(lua_State *L);

#endif
