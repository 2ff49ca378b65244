/* Element-wise kernels: every row of ops.def as loops over each dtype. */
#include <string.h>

#include "backend/cpu/kernels/isa.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/loop.h"
#include "backend/cpu/kernels/math.h"

/* What formulas name beside C's functions, for each dtype computed in. */

#define FLOATING(T, suffix, f)                                                              \
  TL_INLINE T absolute_##suffix(T x) { return fabs##f(x); }                                 \
  TL_INLINE T floor_divide_##suffix(T x, T y) { return floor##f(x / y); }                   \
  /* The remainder with the sign of y, as Lua has it. */                                    \
  TL_INLINE T floor_mod_##suffix(T x, T y) {                                                \
    T r = fmod##f(x, y);                                                                    \
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;                                        \
  }
FLOATING(float, float32, f)
FLOATING(double, float64, )

/* Integers wrap around (-fwrapv).  What has no value (division by zero, a negative power) is
 * refused before the loop; here it only must not trap, as the least integer over -1 would. */
TL_INLINE int64_t absolute_int64(int64_t x) { return x < 0 ? -x : x; }
TL_INLINE int64_t fmod_int64(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }
TL_INLINE int64_t floor_mod_int64(int64_t x, int64_t y) {
  int64_t r = fmod_int64(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
TL_INLINE int64_t floor_divide_int64(int64_t x, int64_t y) {
  return y == 0 ? 0 : y == -1 ? -x : (x - floor_mod_int64(x, y)) / y;
}
TL_INLINE int64_t pow_int64(int64_t x, int64_t y) {
  int64_t power = 1;
  for (; y > 0; y >>= 1, x *= x) power *= y & 1 ? x : 1;
  return power;
}
/* By a negative number: to the right, where the sign comes in from the left. */
TL_INLINE int64_t shift_left_int64(int64_t x, int64_t y) {
  int64_t left = y > 63 ? 0 : (int64_t)((uint64_t)x << (y & 63));
  return y >= 0 ? left : x >> (y < -63 ? 63 : -y & 63);
}

/* The loop runs over whole vectors; the rest goes through the same code in padded copies, since the
 * scalar functions of libm round differently from the vector ones. */
#define UNARY(function, T, formula)                                                 \
  TL_COMPILED_ONCE void function##_loop(T *out, const T *a, size_t n) {             \
    TL_INDEPENDENT                                                                  \
    for (size_t i = 0; i < n / TL_LANES * TL_LANES; i++) {                          \
      T x = a[i];                                                                   \
      out[i] = formula;                                                             \
    }                                                                               \
  }                                                                                 \
  static void function(void *to, const void *from, const void *unused, size_t n) {  \
    (void)unused;                                                                   \
    T *out = to;                                                                    \
    const T *a = from;                                                              \
    size_t whole = n / TL_LANES * TL_LANES, rest = n - whole;                       \
    if (whole) function##_loop(out, a, whole);                                      \
    if (rest) {                                                                     \
      T padded[TL_LANES] = {0};                                                     \
      memcpy(padded, a + whole, rest * sizeof(T));                                  \
      function##_loop(padded, padded, TL_LANES);                                    \
      memcpy(out + whole, padded, rest * sizeof(T));                                \
    }                                                                               \
  }

/* step_a and step_b: 1 for a block, 0 for one value. */
#define BINARY_FORM(function, T, step_a, step_b, formula)                           \
  TL_COMPILED_ONCE void function##_loop(T *out, const T *a, const T *b, size_t n) { \
    const T a0 = a[0], b0 = b[0];                                                   \
    TL_INDEPENDENT                                                                  \
    for (size_t i = 0; i < n / TL_LANES * TL_LANES; i++) {                          \
      T x = step_a ? a[i] : a0, y = step_b ? b[i] : b0;                             \
      out[i] = formula;                                                             \
    }                                                                               \
  }                                                                                 \
  static void function(void *to, const void *from_a, const void *from_b, size_t n) { \
    T *out = to;                                                                    \
    const T *a = from_a, *b = from_b;                                               \
    size_t whole = n / TL_LANES * TL_LANES, rest = n - whole;                       \
    if (whole) function##_loop(out, a, b, whole);                                   \
    if (rest) {                                                                     \
      T padded_a[TL_LANES] = {0}, padded_b[TL_LANES] = {0}, padded_out[TL_LANES];   \
      memcpy(padded_a, a + whole * step_a, (step_a ? rest : 1) * sizeof(T));        \
      memcpy(padded_b, b + whole * step_b, (step_b ? rest : 1) * sizeof(T));        \
      function##_loop(padded_out, padded_a, padded_b, TL_LANES);                    \
      memcpy(out + whole, padded_out, rest * sizeof(T));                            \
    }                                                                               \
  }

#define TERNARY(function, T, formula)                                               \
  TL_COMPILED_ONCE void function##_loop(T *out, const T *a, const T *b, const T *c, size_t n) { \
    TL_INDEPENDENT                                                                  \
    for (size_t i = 0; i < n; i++) {                                                \
      T x = a[i], y = b[i], z = c[i];                                               \
      out[i] = formula;                                                             \
    }                                                                               \
  }                                                                                 \
  static void function(void *to, const void *a, const void *b, const void *c, size_t n) { \
    function##_loop(to, a, b, c, n);                                                \
  }

#define BINARY(function, T, formula)                \
  BINARY_FORM(function##_blocks, T, 1, 1, formula)  \
  BINARY_FORM(function##_value, T, 1, 0, formula)   \
  BINARY_FORM(value_##function, T, 0, 1, formula)

#define TL_OTHER(name, family, doc, example, value)

/* Which kinds have a formula over floating-point numbers, and which over integers. */
#define FLOATS_NUMERIC(...) __VA_ARGS__
#define FLOATS_REAL(...) __VA_ARGS__
#define FLOATS_ROUND(...) __VA_ARGS__
#define FLOATS_TEST(...) __VA_ARGS__
#define FLOATS_BITS(...)
#define INTEGERS_NUMERIC(...) __VA_ARGS__
#define INTEGERS_REAL(...)
#define INTEGERS_ROUND(...)
#define INTEGERS_TEST(...) __VA_ARGS__
#define INTEGERS_BITS(...) __VA_ARGS__

#define absolute absolute_float64
#define lgamma tl_lgamma_float64
#define sigmoid tl_sigmoid_float64
#define silu tl_silu_float64
#define floor_divide floor_divide_float64
#define floor_mod floor_mod_float64
#define TL_UNARY(name, kind, metamethod, formula, ...) \
  FLOATS_##kind(UNARY(loop_##name##_float64, double, formula))
#define TL_BINARY(name, kind, metamethod, formula, ...) \
  FLOATS_##kind(BINARY(loop_##name##_float64, double, formula))
#define TL_TERNARY(name, kind, metamethod, formula, ...) \
  FLOATS_##kind(TERNARY(loop_##name##_float64, double, formula))
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
#undef TL_TERNARY
#undef absolute
#undef lgamma
#undef sigmoid
#undef silu
#undef floor_divide
#undef floor_mod

#define absolute absolute_int64
#define fmod fmod_int64
#define floor_divide floor_divide_int64
#define floor_mod floor_mod_int64
#define pow pow_int64
#define shift_left shift_left_int64
#define TL_UNARY(name, kind, metamethod, formula, ...) \
  INTEGERS_##kind(UNARY(loop_##name##_int64, int64_t, formula))
#define TL_BINARY(name, kind, metamethod, formula, ...) \
  INTEGERS_##kind(BINARY(loop_##name##_int64, int64_t, formula))
#define TL_TERNARY(name, kind, metamethod, formula, ...) \
  INTEGERS_##kind(TERNARY(loop_##name##_int64, int64_t, formula))
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
#undef TL_TERNARY
#undef absolute
#undef fmod
#undef floor_divide
#undef floor_mod
#undef pow
#undef shift_left

/* The formulas name C's double functions; here they mean those of float32. */
#define absolute absolute_float32
#define sigmoid tl_sigmoid_float32
#define silu tl_silu_float32
#define floor_divide floor_divide_float32
#define floor_mod floor_mod_float32
#define sqrt sqrtf
#define exp tl_exp_float32
#define exp2 tl_exp2_float32
#define expm1 tl_expm1_float32
#define log tl_log_float32
#define log1p tl_log1p_float32
#define log2 tl_log2_float32
#define log10 tl_log10_float32
#define sin tl_sin_float32
#define cos tl_cos_float32
#define tan tl_tan_float32
#define asin tl_asin_float32
#define acos tl_acos_float32
#define atan tl_atan_float32
#define sinh tl_sinh_float32
#define cosh tl_cosh_float32
#define tanh tl_tanh_float32
#define asinh tl_asinh_float32
#define acosh tl_acosh_float32
#define atanh tl_atanh_float32
#define erf tl_erf_float32
#define erfc tl_erfc_float32
#define lgamma tl_lgamma_float32
#define floor floorf
#define ceil ceilf
#define nearbyint nearbyintf
#define trunc truncf
#define fmod fmodf
#define pow tl_pow_float32
#define atan2 tl_atan2_float32
#define hypot tl_hypot_float32
#define copysign copysignf
#define TL_UNARY(name, kind, metamethod, formula, ...) \
  FLOATS_##kind(UNARY(loop_##name##_float32, float, formula))
#define TL_BINARY(name, kind, metamethod, formula, ...) \
  FLOATS_##kind(BINARY(loop_##name##_float32, float, formula))
#define TL_TERNARY(name, kind, metamethod, formula, ...) \
  FLOATS_##kind(TERNARY(loop_##name##_float32, float, formula))
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
#undef TL_TERNARY

/* Names are pasted before they are expanded, so those defined above are not in the way here. */
const tl_elementwise_kernels TL_ISA_NAME(tl_elementwise_kernels) = {
    .unary =
        {
#define TL_BINARY(...)
#define TL_TERNARY(...)
#define TL_UNARY(name, kind, ...)                                     \
  FLOATS_##kind([TL_float32][TL_OP_##name] = loop_##name##_float32,   \
                [TL_float64][TL_OP_##name] = loop_##name##_float64, ) \
  INTEGERS_##kind([TL_int64][TL_OP_##name] = loop_##name##_int64, )
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
        },
    .binary =
        {
#define TL_UNARY(...)
#define FORMS(loop) {loop##_blocks, loop##_value, value_##loop}
#define TL_BINARY(name, kind, ...)                                           \
  FLOATS_##kind([TL_float32][TL_OP_##name] = FORMS(loop_##name##_float32),   \
                [TL_float64][TL_OP_##name] = FORMS(loop_##name##_float64), ) \
  INTEGERS_##kind([TL_int64][TL_OP_##name] = FORMS(loop_##name##_int64), )
#include "tensor/ops.def"
#undef TL_BINARY
#undef TL_TERNARY
        },
    .ternary =
        {
#define TL_BINARY(...)
#define TL_TERNARY(name, kind, ...)                                   \
  FLOATS_##kind([TL_float32][TL_OP_##name] = loop_##name##_float32,   \
                [TL_float64][TL_OP_##name] = loop_##name##_float64, ) \
  INTEGERS_##kind([TL_int64][TL_OP_##name] = loop_##name##_int64, )
#include "tensor/ops.def"
        },
};
