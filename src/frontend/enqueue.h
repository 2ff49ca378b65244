/* From checked arguments to commands in the queue. */
#ifndef TL_FRONTEND_ENQUEUE_H
#define TL_FRONTEND_ENQUEUE_H

#include "frontend/tensor.h"
#include "tensor/program.h"

/* Submits a command, whose source line is filled in here; raises what goes wrong. */
void tl_enqueue(lua_State *L, tl_op op, int noperands, const tl_operand *operands,
                const void *parameters, size_t parameters_size);

/* Raises when two elements of a view that is to be written are one in memory: it was expanded, or
 * has windows that overlap. */
void tl_check_unfolded(lua_State *L, tl_op op, const tl_view *view);

/* An operand that is the whole of a view. */
tl_operand tl_operand_of(const tl_tensor *tensor, const tl_view *view, int access);

/* out = step over `inputs` (at most 3, each broadcasting to out's shape), computed in `dtype`.
 * step NULL copies the one input.  `fresh`: out was just made and is overwritten whole.  Inputs
 * that overlap what is written, other than element by element, are copied first. */
void tl_enqueue_step(lua_State *L, tl_op op, tl_tensor *out, bool fresh, tl_dtype dtype,
                     const tl_step *step, int ninputs, const tl_tensor *const *inputs);

/* The dtype in which a program that only copies moves elements: their own when it stays. */
tl_dtype tl_copy_dtype(tl_dtype from, tl_dtype to);

/* Pushes a contiguous copy as `dtype`, made by a command named `op`, of the family TL_COPY. */
tl_tensor *tl_enqueue_copy(lua_State *L, tl_op op, const tl_tensor *tensor, tl_dtype dtype);

/* Pushes a tensor of bools: whether each element is not 0.  `op` is the one that asks. */
tl_tensor *tl_enqueue_truth(lua_State *L, tl_op op, const tl_tensor *tensor);

/* Every element of out becomes `value`, of the dtype in which out is computed. */
void tl_enqueue_fill(lua_State *L, tl_op op, tl_tensor *out, bool fresh, tl_scalar value);

/* Pushes a 0-dimensional tensor of the number or boolean at a stack index, for the function
 * `name`. */
tl_tensor *tl_enqueue_number(lua_State *L, int index, const char *name, tl_dtype dtype);

#endif
