/* Element-wise programs: a few steps over registers, and the loop over elements that runs them.
 *
 * Registers 0 .. inputs-1 hold the inputs; each step writes a register; the register of the last
 * step is the output.  A program without steps copies its input (and casts it). */
#ifndef TL_TENSOR_PROGRAM_H
#define TL_TENSOR_PROGRAM_H

#include <stdint.h>

#include "tensor/op.h"
#include "tensor/view.h"

enum {
  TL_IMMEDIATE = 255,  /* as a register: the step's immediate value, the same for all elements */
  TL_MAX_LOOP_VIEWS = 4
};

typedef struct tl_step {
  uint16_t op; /* tl_op, unary or binary; a fill writes its immediate */
  uint8_t out, a, b;
  double immediate;
} tl_step;

/* Parameters of the families TL_ELEMENTWISE, TL_FILL and TL_COPY.  Steps compute in `dtype`, to
 * which inputs are cast as they are loaded. */
typedef struct tl_program {
  uint8_t dtype;
  uint8_t nsteps;
  tl_step steps[];
} tl_program;

/* A loop nest over views of one shape, with as few dimensions as their strides allow. */
typedef struct tl_loop {
  int ndim; /* at least 1 */
  int64_t shape[TL_MAX_DIMS];
  int64_t stride[TL_MAX_LOOP_VIEWS][TL_MAX_DIMS];
} tl_loop;

/* The views must have one shape (see tl_view_expand).  The order of elements is that of the first
 * view's memory. */
void tl_loop_make(tl_loop *loop, int nviews, const tl_view *const *views);

#endif
