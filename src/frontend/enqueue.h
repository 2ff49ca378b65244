/* From checked arguments to commands in the queue. */
#ifndef TL_FRONTEND_ENQUEUE_H
#define TL_FRONTEND_ENQUEUE_H

#include "frontend/tensor.h"
#include "tensor/program.h"

/* Submits a draft whose source line is filled in here; raises what goes wrong. */
void tl_enqueue(lua_State *L, tl_draft *draft);

/* An operand that is the whole of a view. */
tl_operand tl_operand_of(const tl_tensor *tensor, const tl_view *view, int access);

/* out = step over `inputs` (at most 2, each broadcasting to out's shape), computed in `dtype`.
 * step NULL copies the one input.  `fresh`: out was just made and is overwritten whole.  Inputs
 * that overlap what is written, other than element by element, are copied first. */
void tl_enqueue_step(lua_State *L, tl_op op, tl_tensor *out, bool fresh, tl_dtype dtype,
                     const tl_step *step, int ninputs, const tl_tensor *const *inputs);

/* Pushes a contiguous copy as `dtype`, made by a command named `op`, of the family TL_COPY. */
tl_tensor *tl_enqueue_copy(lua_State *L, tl_op op, const tl_tensor *tensor, tl_dtype dtype);

/* Every element of out becomes `value`. */
void tl_enqueue_fill(lua_State *L, tl_op op, tl_tensor *out, bool fresh, double value);

#endif
