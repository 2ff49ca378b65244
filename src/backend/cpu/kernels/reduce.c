/* Reductions over contiguous elements.  The order of additions is fixed by n alone: sixteen lanes,
 * each lane in order, the lanes then in pairs. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/isa.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/loop.h"

TL_INLINE double combine(const double *lane) {
  double sum[TL_LANES];
  memcpy(sum, lane, sizeof sum);
  for (int width = TL_LANES / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; i++) sum[i] += sum[i + width];
  }
  return sum[0];
}

/* A lane adds at most `most` values before it is combined: 16 doubles, as NumPy does, so that the
 * rounding error stays that of pairwise summation; floats, which double precision holds exactly, may
 * be more.  Sums of blocks are compensated (Neumaier, 1974). */
#define SUM(T, most)                                                                       \
  enum { BLOCK_##T = most * TL_LANES };                                                    \
  TL_INLINE double sum_block_##T(const T *x, size_t n) {                                   \
    double lane[TL_LANES] = {0};                                                           \
    size_t i = 0;                                                                          \
    for (; i + TL_LANES <= n; i += TL_LANES) {                                             \
      for (int j = 0; j < TL_LANES; j++) lane[j] += (double)x[i + (size_t)j];              \
    }                                                                                      \
    for (int j = 0; i < n; i++, j++) lane[j] += (double)x[i];                              \
    return combine(lane);                                                                  \
  }                                                                                        \
  static tl_scalar sum_##T(const void *in, size_t n) {                                     \
    const T *x = in;                                                                       \
    double sum = 0, lost = 0;                                                              \
    for (size_t at = 0; at < n; at += BLOCK_##T) {                                         \
      double block = sum_block_##T(x + at, n - at < BLOCK_##T ? n - at : BLOCK_##T);       \
      double next = sum + block;                                                           \
      lost += fabs(sum) >= fabs(block) ? (sum - next) + block : (block - next) + sum;      \
      sum = next;                                                                          \
    }                                                                                      \
    return (tl_scalar){.real = isfinite(sum) ? sum + lost : sum};                          \
  }                                                                                        \
  static void sum_columns_##T(tl_scalar *sums, const void *row, size_t n) {                \
    const T *x = row;                                                                      \
    TL_INDEPENDENT for (size_t i = 0; i < n; i++) sums[i].real += (double)x[i];            \
  }                                                                                        \
  TL_INLINE double prod_block_##T(const T *x, size_t n) {                                  \
    double lane[TL_LANES], product = 1;                                                    \
    for (int j = 0; j < TL_LANES; j++) lane[j] = 1;                                        \
    size_t i = 0;                                                                          \
    for (; i + TL_LANES <= n; i += TL_LANES) {                                             \
      for (int j = 0; j < TL_LANES; j++) lane[j] *= (double)x[i + (size_t)j];              \
    }                                                                                      \
    for (int j = 0; i < n; i++, j++) lane[j] *= (double)x[i];                              \
    for (int j = 0; j < TL_LANES; j++) product *= lane[j];                                 \
    return product;                                                                        \
  }                                                                                        \
  static tl_scalar prod_##T(const void *in, size_t n) {                                    \
    const T *x = in;                                                                       \
    double product = 1;                                                                    \
    for (size_t at = 0; at < n; at += BLOCK_##T) {                                         \
      product *= prod_block_##T(x + at, n - at < BLOCK_##T ? n - at : BLOCK_##T);          \
    }                                                                                      \
    return (tl_scalar){.real = product};                                                   \
  }                                                                                        \
  static void prod_columns_##T(tl_scalar *products, const void *row, size_t n) {           \
    const T *x = row;                                                                      \
    TL_INDEPENDENT for (size_t i = 0; i < n; i++) products[i].real *= (double)x[i];        \
  }

TL_INLINE double max_of(double a, double b) {
  return ((b > a) | (b != b) | ((b == a) & (copysign(1, a) < 0))) ? b : a;
}

TL_INLINE double min_of(double a, double b) {
  return ((b < a) | (b != b) | ((b == a) & (copysign(1, b) < 0))) ? b : a;
}

/* Sixteen values, and the masks that comparing them gives. */
typedef float lanes_float __attribute__((vector_size(TL_LANES * sizeof(float)), aligned(4)));
typedef int32_t mask_float __attribute__((vector_size(TL_LANES * sizeof(float))));
typedef double lanes_double __attribute__((vector_size(TL_LANES * sizeof(double)), aligned(8)));
typedef int64_t mask_double __attribute__((vector_size(TL_LANES * sizeof(double))));

/* nan, once met, stays: it compares false with everything.  -0 is less than 0 (IEEE 754-2019), so
 * that the result does not depend on the order: of two equal values the one is taken if `other`, of
 * which the sign bit is set. */
#define EXTREME(name, T, better, other)                                                           \
  static tl_scalar name##_##T(const void *in, size_t n) {                                  \
    const T *x = in;                                                                       \
    lanes_##T lane;                                                                        \
    for (int j = 0; j < TL_LANES; j++) lane[j] = x[0];                                     \
    size_t i = 0;                                                                          \
    for (; i + TL_LANES <= n; i += TL_LANES) {                                             \
      lanes_##T v = *(const lanes_##T *)(const void *)(x + i);                             \
      mask_##T take = (v better lane) | (v != v) | ((v == lane) & ((mask_##T)other < 0));  \
      lane = (lanes_##T)(((mask_##T)v & take) | ((mask_##T)lane & ~take));                 \
    }                                                                                      \
    double most = (double)lane[0];                                                         \
    for (; i < n; i++) most = name##_of(most, (double)x[i]);                               \
    for (int j = 1; j < TL_LANES; j++) most = name##_of(most, (double)lane[j]);            \
    return (tl_scalar){.real = most};                                                      \
  }                                                                                        \
  static void name##_columns_##T(tl_scalar *most, const void *row, size_t n) {             \
    const T *x = row;                                                                      \
    TL_INDEPENDENT                                                                         \
    for (size_t i = 0; i < n; i++) most[i].real = name##_of(most[i].real, (double)x[i]);   \
  }

/* Integers wrap around, so the order does not matter. */
#define INTEGERS(name, first, formula)                                                      \
  static tl_scalar name##_int64(const void *in, size_t n) {                                \
    const int64_t *x = in;                                                                 \
    int64_t total = first;                                                                 \
    for (size_t i = 0; i < n; i++) {                                                       \
      int64_t a = total, b = x[i];                                                         \
      total = formula;                                                                     \
    }                                                                                      \
    return (tl_scalar){.integer = total};                                                  \
  }                                                                                        \
  static void name##_columns_int64(tl_scalar *totals, const void *row, size_t n) {         \
    const int64_t *x = row;                                                                \
    TL_INDEPENDENT                                                                         \
    for (size_t i = 0; i < n; i++) {                                                       \
      int64_t a = totals[i].integer, b = x[i];                                             \
      totals[i].integer = formula;                                                         \
    }                                                                                      \
  }

/* Equal infinities are close; an infinite bound must not make others so. */
static size_t differing(const double *x, const double *y, size_t n, double relative,
                        double absolute) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    bool close = fabs(x[i] - y[i]) <= absolute + relative * fabs(y[i]) && isfinite(y[i]);
    count += !(x[i] == y[i] || close);
  }
  return count;
}

static size_t differing_integers(const int64_t *x, const int64_t *y, size_t n) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += x[i] != y[i];
  return count;
}

SUM(float, 64)
SUM(double, 16)
EXTREME(max, float, >, lane)
EXTREME(max, double, >, lane)
EXTREME(min, float, <, v)
EXTREME(min, double, <, v)
INTEGERS(sum, 0, a + b)
INTEGERS(prod, 1, a * b)
INTEGERS(max, x[0], a > b ? a : b)
INTEGERS(min, x[0], a < b ? a : b)

#define EACH(name) \
  {[TL_float32] = name##_float, [TL_float64] = name##_double, [TL_int64] = name##_int64}

const tl_reduce_kernels TL_ISA_NAME(tl_reduce_kernels) = {
    .sum = EACH(sum),
    .prod = EACH(prod),
    .max = EACH(max),
    .min = EACH(min),
    .sum_columns = EACH(sum_columns),
    .prod_columns = EACH(prod_columns),
    .max_columns = EACH(max_columns),
    .min_columns = EACH(min_columns),
    .differing = differing,
    .differing_integers = differing_integers,
};
