/* Elements that indices or a mask pick out of a tensor: what x[key], gather, scatter_ and their
 * like enqueue. */
#ifndef TL_FRONTEND_PICK_H
#define TL_FRONTEND_PICK_H

#include "frontend/tensor.h"
#include "tensor/parameters.h"

/* By indices.  All views have the shape of what is picked. */
typedef struct tl_pick {
  const tl_tensor *tensor;
  tl_view at; /* the tensor's offset and strides; 0 along dimensions that indices answer for */
  int count;
  const tl_tensor *indices[TL_MAX_INDICES];
  tl_view views[TL_MAX_INDICES];
  tl_index parameters;
} tl_pick;

/* Begins a pick of what `at` says, without indices yet.  Errors name the size of `whole`. */
void tl_pick_begin(tl_pick *pick, const tl_tensor *tensor, const tl_view *whole, const tl_view *at);

/* Adds an index into dimension `dim` (or TL_FLAT) of `whole`, along which elements of the tensor
 * are `stride` apart. */
void tl_pick_add(tl_pick *pick, const tl_tensor *index, const tl_view *view, int dim,
                 int64_t stride);

/* Pushes what is picked, as a tensor of its own. */
tl_tensor *tl_pick_gather(lua_State *L, tl_op op, const tl_pick *pick);

/* Writes to what is picked, or adds, the elements of `value` (of the tensor's dtype) that `view`
 * shows in its shape.  Neither value nor indices may overlap the tensor. */
void tl_pick_scatter(lua_State *L, tl_op op, const tl_pick *pick, const tl_tensor *value,
                     const tl_view *view, bool add);

/* ---- by a mask ---- */

/* Pushes what a mask picks, whose dimensions are those of the tensor from `dim` on: the true
 * elements, instead of these, have one dimension.  Waits for their number. */
tl_tensor *tl_mask_select(lua_State *L, tl_op op, const tl_tensor *tensor, const tl_tensor *mask,
                          int dim);

/* Writes a value (of any dtype), which broadcasts to what the mask picks; without `exactly` it may
 * have more than is picked.  Does not wait: whether the numbers agree is seen when it runs. */
void tl_mask_write(lua_State *L, tl_op op, const tl_tensor *tensor, const tl_tensor *mask, int dim,
                   const tl_tensor *value, bool exactly);

/* Pushes the indices of the true elements of a mask, n x dimensions, from 1.  Waits for n. */
tl_tensor *tl_mask_nonzero(lua_State *L, tl_op op, const tl_tensor *mask);

/* ---- operands ---- */

/* The input, or a pushed copy of it: one that does not overlap what is written. */
const tl_tensor *tl_apart(lua_State *L, const tl_tensor *written, const tl_tensor *input);

/* The value, or a pushed copy of it: one of that dtype. */
const tl_tensor *tl_as_dtype(lua_State *L, const tl_tensor *value, tl_dtype dtype);

/* The elements in one dimension: a pushed view of the tensor, or of a copy of it. */
const tl_tensor *tl_flattened(lua_State *L, const tl_tensor *x);

/* The value at a stack index, a number or a tensor, as a tensor. */
const tl_tensor *tl_check_value(lua_State *L, int index, const char *name, tl_dtype dtype);

/* The tensor of integers, or of bools, at a stack index. */
const tl_tensor *tl_check_indices(lua_State *L, int index, const char *name);
const tl_tensor *tl_check_mask(lua_State *L, int index, const char *name);

#endif
