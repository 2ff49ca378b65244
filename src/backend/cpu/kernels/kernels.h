/* The kernels that are compiled once per instruction set, as one table for each.
 *
 * What a kernel computes for an element depends on the element's value alone: not on its position,
 * the length or the alignment (whole vectors are always used, a tail is padded). */
#ifndef TL_CPU_KERNELS_H
#define TL_CPU_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "backend/cpu/kernels/random.h"
#include "tensor/dtype.h"
#include "tensor/op.h"

/* The tables are indexed by the dtype computed in: float32, float64 or int64. */

/* How the operands of a binary kernel are given: one value for each element, or one for all. */
typedef enum tl_form { TL_BLOCK_BLOCK, TL_BLOCK_VALUE, TL_VALUE_BLOCK, TL_FORMS } tl_form;

/* out[0 .. n-1] from a and b (NULL for unary operators); out may be a or b, or overlap neither. */
typedef void tl_elementwise_kernel(void *out, const void *a, const void *b, size_t n);

/* The same from a, b and c, each one value for each element. */
typedef void tl_ternary_kernel(void *out, const void *a, const void *b, const void *c, size_t n);

typedef struct tl_elementwise_kernels {
  tl_elementwise_kernel *unary[TL_COMPUTE_COUNT][TL_OP_COUNT];
  tl_elementwise_kernel *binary[TL_COMPUTE_COUNT][TL_OP_COUNT][TL_FORMS];
  tl_ternary_kernel *ternary[TL_COMPUTE_COUNT][TL_OP_COUNT];
} tl_elementwise_kernels;

/* out[i] = cast of in[i * stride] and out[i * stride] = cast of in[i]; strides count elements. */
typedef void tl_move_kernel(void *out, const void *in, int64_t stride, size_t n);

/* From any dtype to one that is computed in, as loads, and back, as stores; beyond that, from a
 * dtype to itself.  There are no loads of floating-point numbers as integers. */
typedef struct tl_layout_kernels {
  tl_move_kernel *load[TL_DTYPE_COUNT][TL_DTYPE_COUNT];  /* [to][from] */
  tl_move_kernel *store[TL_DTYPE_COUNT][TL_DTYPE_COUNT]; /* [to][from] */

  /* Copies past the caches; other threads see it after fence(). */
  void (*stream)(void *out, const void *in, size_t bytes);
  void (*fence)(void);
} tl_layout_kernels;

/* Elements that lie row_stride and column_stride elements apart. */
typedef struct tl_grid {
  int64_t rows, columns, row_stride, column_stride;
} tl_grid;

/* To or from a dense block, which does not overlap the grid; by log2 of the elements' size. */
typedef struct tl_pack_kernels {
  void (*pack[4])(void *block, const void *from, const tl_grid *grid);
  void (*unpack[4])(void *to, const void *block, const tl_grid *grid);
} tl_pack_kernels;

typedef tl_scalar tl_reduce_kernel(const void *in, size_t n);
typedef void tl_columns_kernel(tl_scalar *totals, const void *row, size_t n);

/* Reductions of n >= 1 contiguous elements.  Floating-point numbers are reduced in double
 * precision, float64 sums in compensated blocks; integers wrap around.  `columns` is the same for n
 * totals at once, one more row of each. */
typedef struct tl_reduce_kernels {
  tl_reduce_kernel *sum[TL_COMPUTE_COUNT], *prod[TL_COMPUTE_COUNT], *max[TL_COMPUTE_COUNT],
      *min[TL_COMPUTE_COUNT];
  tl_columns_kernel *sum_columns[TL_COMPUTE_COUNT], *prod_columns[TL_COMPUTE_COUNT],
      *max_columns[TL_COMPUTE_COUNT], *min_columns[TL_COMPUTE_COUNT];
  /* How many are not within |x - y| <= absolute + relative |y|; how many differ. */
  size_t (*differing)(const double *x, const double *y, size_t n, double relative,
                      double absolute);
  size_t (*differing_integers)(const int64_t *x, const int64_t *y, size_t n);
} tl_reduce_kernels;

typedef struct tl_kernels {
  const char *isa;
  const tl_elementwise_kernels *elementwise;
  const tl_layout_kernels *layout;
  const tl_pack_kernels *pack;
  const tl_reduce_kernels *reduce;
  const tl_random_kernels *random;
} tl_kernels;

extern const tl_elementwise_kernels tl_elementwise_kernels_baseline, tl_elementwise_kernels_avx2,
    tl_elementwise_kernels_avx512;
extern const tl_layout_kernels tl_layout_kernels_baseline, tl_layout_kernels_avx2,
    tl_layout_kernels_avx512;
extern const tl_pack_kernels tl_pack_kernels_baseline, tl_pack_kernels_avx2, tl_pack_kernels_avx512;
extern const tl_reduce_kernels tl_reduce_kernels_baseline, tl_reduce_kernels_avx2,
    tl_reduce_kernels_avx512;

/* The best table for this machine, or the one that is asked for ("baseline", "avx2", "avx512");
 * NULL when this machine cannot run that.  `isa` may be NULL. */
const tl_kernels *tl_kernels_choose(const char *isa);

#endif
