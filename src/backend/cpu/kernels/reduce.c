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

/* A lane adds at most 64 values before it is combined: the rounding error stays that of pairwise
 * summation, and sums of blocks are compensated (Neumaier, 1974). */
enum { SUM_BLOCK = 64 * TL_LANES };

#define SUM(T)                                                                             \
  TL_INLINE double sum_block_##T(const T *x, size_t n) {                                   \
    double lane[TL_LANES] = {0};                                                           \
    size_t i = 0;                                                                          \
    for (; i + TL_LANES <= n; i += TL_LANES) {                                             \
      for (int j = 0; j < TL_LANES; j++) lane[j] += (double)x[i + (size_t)j];              \
    }                                                                                      \
    for (int j = 0; i < n; i++, j++) lane[j] += (double)x[i];                              \
    return combine(lane);                                                                  \
  }                                                                                        \
  static double sum_##T(const void *in, size_t n) {                                        \
    const T *x = in;                                                                       \
    double sum = 0, lost = 0;                                                              \
    for (size_t at = 0; at < n; at += SUM_BLOCK) {                                         \
      double block = sum_block_##T(x + at, n - at < SUM_BLOCK ? n - at : SUM_BLOCK);       \
      double next = sum + block;                                                           \
      lost += fabs(sum) >= fabs(block) ? (sum - next) + block : (block - next) + sum;      \
      sum = next;                                                                          \
    }                                                                                      \
    return isfinite(sum) ? sum + lost : sum;                                               \
  }                                                                                        \
  static void sum_columns_##T(double *sums, const void *row, size_t n) {                   \
    const T *x = row;                                                                      \
    TL_INDEPENDENT for (size_t i = 0; i < n; i++) sums[i] += (double)x[i];                 \
  }

TL_INLINE double max_of(double a, double b) {
  return ((b > a) | (b != b) | ((b == a) & (signbit(a) != 0))) ? b : a;
}

TL_INLINE double min_of(double a, double b) {
  return ((b < a) | (b != b) | ((b == a) & (signbit(b) != 0))) ? b : a;
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
  static double name##_##T(const void *in, size_t n) {                                     \
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
    return most;                                                                           \
  }                                                                                        \
  static void name##_columns_##T(double *most, const void *row, size_t n) {                \
    const T *x = row;                                                                      \
    TL_INDEPENDENT                                                                         \
    for (size_t i = 0; i < n; i++) most[i] = name##_of(most[i], (double)x[i]);             \
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

SUM(float)
SUM(double)
EXTREME(max, float, >, lane)
EXTREME(max, double, >, lane)
EXTREME(min, float, <, v)
EXTREME(min, double, <, v)

#define BOTH(name) {[TL_float32] = name##_float, [TL_float64] = name##_double}

const tl_reduce_kernels TL_ISA_NAME(tl_reduce_kernels) = {
    .sum = BOTH(sum),
    .max = BOTH(max),
    .min = BOTH(min),
    .sum_columns = BOTH(sum_columns),
    .max_columns = BOTH(max_columns),
    .min_columns = BOTH(min_columns),
    .differing = differing,
};
