/* Functions along one dimension of a tensor: arguments, results and commands that they share. */
#ifndef TL_FRONTEND_ALONG_H
#define TL_FRONTEND_ALONG_H

#include "frontend/tensor.h"

/* A tensor, as a view of at least one dimension, and one of these (from 0). */
typedef struct tl_along_view {
  const tl_tensor *tensor;
  tl_view view;
  int dim;
} tl_along_view;

/* Along the dimension that argument `index` names; where it is none and `usual` is not 0, along
 * that one, which may be negative. */
tl_along_view tl_check_along(lua_State *L, const tl_tensor *x, int index, int usual,
                             const char *name);

/* Along all elements as one line; pushes a tensor that has them so. */
tl_along_view tl_along_all(lua_State *L, const tl_tensor *x);

static inline int64_t tl_along_size(const tl_along_view *along) {
  return along->view.shape[along->dim];
}

/* Results of a command along a dimension, whose lines are `length` long; with `dropped` (and length
 * 1) they do not have that dimension. */
typedef struct tl_along_results {
  int64_t length;
  bool dropped;
  int count;
  tl_dtype dtypes[2];
} tl_along_results;

/* Pushes the results and enqueues the command that makes them, one after the other its operands,
 * before the tensor's. */
void tl_enqueue_along(lua_State *L, tl_op op, const tl_along_view *along,
                      const tl_along_results *results, const void *parameters,
                      size_t parameters_size);

/* max, min, argmax or argmin along a dimension: pushes one element for each line, with their places
 * (counted from 1) or these alone. */
void tl_enqueue_located(lua_State *L, tl_op op, const tl_along_view *along, bool dropped);

/* name(x, dim [, keepdim]) for max and min: returns 2. */
int tl_extreme_along(lua_State *L, tl_op op);

/* Raises unless a line has elements to choose from. */
void tl_check_not_empty(lua_State *L, const tl_along_view *along, const char *name);

/* An argument, or option, that is true or false; `usual` when it is nil. */
bool tl_check_flag(lua_State *L, int index, const char *what, const char *name, bool usual);

/* Pushes the values of these options (ending with NULL), in their order: those in the table that is
 * the last argument, if it is one and not before `first`; nil takes its place. */
void tl_push_options(lua_State *L, int first, const char *name, const char *const *options);

#endif
