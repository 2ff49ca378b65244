/* Element-wise programs: a few steps over registers, and the loop over elements that runs them.
 *
 * Registers 0 .. inputs-1 hold the inputs; each step writes a register of its own.  Outputs are
 * registers: a program without steps copies its input (and casts it).  The operands of a command
 * that runs a program are its outputs, then its inputs, all of one shape. */
#ifndef TL_TENSOR_PROGRAM_H
#define TL_TENSOR_PROGRAM_H

#include <stdint.h>

#include "tensor/op.h"
#include "tensor/view.h"

enum {
  TL_IMMEDIATE = 255, /* as a register: the step's immediate value, the same for all elements */
  TL_MAX_LOOP_VIEWS = 4, /* of one step: its output and three inputs */
  TL_MAX_STEPS = 16,
  TL_MAX_INPUTS = 8,
  TL_MAX_OUTPUTS = 4,
  TL_MAX_REGISTERS = TL_MAX_INPUTS + TL_MAX_STEPS,
};

typedef struct tl_step {
  uint16_t op; /* tl_op, element-wise; a fill writes its immediate */
  uint8_t out, a, b, c; /* TL_IMMEDIATE where there is none */
  tl_scalar immediate; /* of the dtype that the program computes in */
} tl_step;

/* Parameters of the families TL_ELEMENTWISE, TL_FILL and TL_COPY.  Steps compute in `dtype`, to
 * which inputs are cast as they are loaded, and from which outputs are as they are stored.  It is
 * one of those that programs compute in, or, without steps, may be the dtype of both operands. */
typedef struct tl_program {
  uint8_t dtype;
  uint8_t nsteps;
  uint8_t noutputs;
  uint8_t outputs[TL_MAX_OUTPUTS]; /* registers */
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
