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
 * all of one dtype that programs compute in, for whose strides tl_view_is_matrix holds.  Dimensions
 * before these two, the same in all operands, count a batch of such products. */

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

/* TL_INDEX: elements of a tensor x at places that indices or a mask name, and another tensor.
 *
 * By indices: operand 0 is written, operand 1 read; x is operand 1 of a gather and operand 0 of a
 * scatter; the indices (integers, from 1 or negative from the end) follow.  All are of one shape.
 * The place of an element in x is that of its position by the strides of x (0 along dimensions that
 * indices answer for) plus, for each index, its value, counted from 0, times `stride`.
 *
 * By a mask of bools, looked at in blocks of `block` elements, of which there are at most
 * TL_MAX_BLOCKS: operand 0 of TL_LOCATE gets, as int64, how many elements of the mask (operand 1)
 * are true before each block, and in all.  The others have the mask and that as their last two
 * operands.  The first dimensions of x are the mask's; the other tensor has one dimension of the
 * true elements instead.  Operand 0 of TL_COORDINATES (n x dimensions, contiguous) gets the true
 * elements' indices, from 1. */
typedef enum tl_index_mode {
  TL_GATHER,
  TL_SCATTER,     /* in order: of elements with one place the last stays */
  TL_SCATTER_ADD, /* in order, too */
  TL_LOCATE,
  TL_SELECT,      /* out, x */
  TL_PLACE,       /* x, values */
  TL_COORDINATES, /* out */
} tl_index_mode;

enum {
  TL_MAX_INDICES = TL_MAX_DIMS,
  TL_FLAT = TL_MAX_DIMS, /* as a dimension: all elements, in row-major order */
  TL_MAX_BLOCKS = 1 << 16,
};

typedef struct tl_index {
  uint8_t mode;
  uint8_t ndim, dim[TL_MAX_INDICES]; /* of the tensor that errors name, and of each index in it */
  bool exactly; /* TL_PLACE: there must be as many values as true elements, else at least */
  int64_t shape[TL_MAX_DIMS];
  int64_t stride[TL_MAX_INDICES];
  int64_t block;
} tl_index;

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
