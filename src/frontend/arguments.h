/* Arguments of the surface: sizes, options, dimensions, numbers.  `name` is the function's name,
 * with which every error begins. */
#ifndef TL_FRONTEND_ARGUMENTS_H
#define TL_FRONTEND_ARGUMENTS_H

#include "frontend/tensor.h"

typedef struct tl_options {
  tl_dtype dtype;
  bool has_dtype;          /* it was given */
  tl_generator *generator; /* NULL: the context's; Lua may free it when it next allocates */
} tl_options;

/* Reads the options of the last argument, when it is a table: one without an array part, which is
 * taken off the stack, or one that is a size or values as well ({2, 3, dtype = "float64"}), which
 * stays.  Raises for an option that there is not. */
tl_options tl_check_options(lua_State *L, const char *name);

/* The same for a random function: `generator` is an option too, and the dtype floating-point. */
tl_options tl_check_random_options(lua_State *L, const char *name);

/* The size in arguments first .. top: numbers or one table.  A size of -1 is allowed where
 * `wildcard` says so.  Returns the number of dimensions. */
int tl_check_size(lua_State *L, int first, const char *name, bool wildcard, int64_t *shape);

/* The contiguous view of that size. */
void tl_check_shape(lua_State *L, int first, const char *name, tl_dtype dtype, tl_view *view);

/* A Lua dimension (from 1, or negative from the end) of a tensor, as one from 0. */
int tl_check_dim(lua_State *L, int index, const char *name, const tl_view *view);

/* The dimensions (from 0) that argument `index` names: one, a table of them, or none for all. */
void tl_check_dims(lua_State *L, int index, const char *name, const tl_view *view, bool *named);

/* A Lua index (likewise) into dimension `dim` (from 0), as one from 0. */
int64_t tl_check_index(lua_State *L, int index, const char *name, const tl_view *view, int dim);

/* A number; strings are not converted. */
double tl_check_number(lua_State *L, int index, const char *name);
/* A number or a boolean as a scalar of the dtype in which `dtype` is computed. */
tl_scalar tl_check_scalar(lua_State *L, int index, const char *name, tl_dtype dtype);

int64_t tl_check_integer(lua_State *L, int index, const char *name);

/* At most `most` arguments; nil behind them does not count. */
void tl_check_count(lua_State *L, int most, const char *name);

/* A value of a wrong type as a message names it: by its type, or a number itself; and a wrong
 * value: text, numbers and booleans themselves. */
const char *tl_describe(lua_State *L, int index);
const char *tl_describe_value(lua_State *L, int index);

/* Pushes a table of sizes or strides, which prints as it is written: {2, 3}. */
void tl_push_sizes(lua_State *L, int ndim, const int64_t *sizes);

tl_dtype tl_check_dtype(lua_State *L, int index, const char *name);
void tl_check_device(lua_State *L, int index, const char *name);

#endif
