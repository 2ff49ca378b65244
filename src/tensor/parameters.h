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
 * all of one dtype, for whose strides tl_view_is_matrix holds.  Dimensions before these two, the
 * same in all operands, count a batch of such products. */

/* TL_LINALG: the last two dimensions of an operand are a matrix (of det, values and ranks: fewer),
 * those before them count a batch, in the order of memory where they are written.  The operands
 * that are written (contiguous) come first, in the order of the Lua function's results, then its
 * arguments.  Complex results are two operands, the real and the imaginary part. */
typedef struct tl_linalg {
  bool full;  /* qr, svd: orthogonal matrices that are square */
  bool upper; /* cholesky, eigh: the triangle that is read, and that cholesky gives */
  double absolute, relative; /* lstsq, pinv, matrix_rank: singular values up to the larger of
                                `absolute` and `relative` times the largest one count as 0 */
} tl_linalg;

/* TL_REDUCE: operand 0 (contiguous) is operand 1 reduced along its last `dims` dimensions, over
 * `count` elements each: at least one unless it is a sum or a mean.
 *
 * With a program (a group that ends in a reduction, see engine/fusion.h) the operands behind 0 are
 * the program's, and what is reduced is its register `reg`, row-major: the last dimensions of it
 * that have `count` elements together.
 *
 * `located`: max, min, argmax or argmin along the last dimension of the last operand, with the
 * place of the first such element: the operands before it, the values (not of argmax and argmin)
 * and the indices, counted from 1, have one element where it has a line. */
typedef struct tl_reduce {
  int dims;
  uint8_t reg;
  bool located;
  int64_t count;
  const tl_program *program; /* or NULL */
} tl_reduce;

/* TL_COMPARE: operand 0 (one float64) = how many elements of operands 1 and 2 (of one shape) are
 * not within |x - y| <= absolute + relative |y|; nan is within nothing. */
typedef struct tl_compare {
  double relative, absolute;
} tl_compare;

/* TL_ALONG: commands along the last dimension of their operands, whose other dimensions count lines
 * and agree.  Those that are written come first.
 *
 * Scans (without parameters) and sorting write the values, and then the indices, counted from 1, of
 * where they were; sums and msort have no indices, argsort no values.  Of a sorted line they write
 * the part that begins at rank `first`, as long as the lines of operand 0.
 *
 * For the operands of searching and counting see backend/cpu/search.c and count.c. */
typedef struct tl_along {
  bool descending;  /* sort, argsort, topk */
  bool right;       /* searchsorted: behind equal ones */
  int64_t first;    /* from 0 */
  double low, high; /* histc: of the bins; when they are equal, those of the values */
} tl_along;

#endif
