/* The scalar parameters of commands, by family; element-wise ones are in program.h. */
#ifndef TL_TENSOR_PARAMETERS_H
#define TL_TENSOR_PARAMETERS_H

#include "tensor/program.h"

/* TL_GENERATE: operand 0 is written, contiguous.  arange, linspace give start + i * step (scalars
 * of the dtype that operand 0 is computed in); rand and randn give the elements of the stream of
 * `seed` from `position` on, in float32 or float64 (see philox.h). */
typedef struct tl_generate {
  tl_scalar start, step;
  uint64_t seed, position;
} tl_generate;

/* TL_MATMUL has none: operand 0 (n x m, contiguous) = operand 1 (n x k) times operand 2 (k x m),
 * all of one dtype, for whose strides tl_view_is_matrix holds. */

/* TL_REDUCE: operand 0 (contiguous) is operand 1 reduced along its last `dims` dimensions, over
 * `count` elements each: at least one unless it is a sum or a mean.
 *
 * With a program (a group that ends in a reduction, see engine/fusion.h) the operands behind 0 are
 * the program's, and what is reduced is its register `reg`, row-major: the last dimensions of it
 * that have `count` elements together. */
typedef struct tl_reduce {
  int dims;
  uint8_t reg;
  int64_t count;
  const tl_program *program; /* or NULL */
} tl_reduce;

/* TL_COMPARE: operand 0 (one float64) = how many elements of operands 1 and 2 (of one shape) are
 * not within |x - y| <= absolute + relative |y|; nan is within nothing. */
typedef struct tl_compare {
  double relative, absolute;
} tl_compare;

#endif
