/* Element-wise kernels: every row of ops.def as loops over each dtype. */
#include <math.h>
#include <string.h>

#include "backend/cpu/kernels/isa.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/loop.h"

/* glibc's vector library has these; its own headers tell gcc so only under -ffast-math, which this
 * project does not use.  clang is told by -fveclib=libmvec. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define TL_VECTOR __attribute__((simd("notinbranch"), const))
TL_VECTOR float expf(float);
TL_VECTOR double exp(double);
TL_VECTOR float logf(float);
TL_VECTOR double log(double);
TL_VECTOR float powf(float, float);
TL_VECTOR double pow(double, double);
#if __GLIBC_PREREQ(2, 35)
TL_VECTOR float tanhf(float);
TL_VECTOR double tanh(double);
#endif
#endif

/* What formulas name beside C's functions, for each dtype computed in. */

#define FLOATING(T, suffix, f)                                                              \
  TL_INLINE T absolute_##suffix(T x) { return fabs##f(x); }                                      \
  TL_INLINE T sigmoid_##suffix(T x) { return 1 / (1 + exp##f(-x)); }                             \
  TL_INLINE T floor_divide_##suffix(T x, T y) { return floor##f(x / y); }                        \
  /* The remainder with the sign of y, as Lua has it. */                                    \
  TL_INLINE T floor_mod_##suffix(T x, T y) {                                                     \
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
#define sigmoid sigmoid_float64
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
#undef sigmoid
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

/* The formulas name C's double functions; here they mean the float ones. */
#define absolute absolute_float32
#define sigmoid sigmoid_float32
#define floor_divide floor_divide_float32
#define floor_mod floor_mod_float32
#define sqrt sqrtf
#define exp expf
#define exp2 exp2f
#define expm1 expm1f
#define log logf
#define log1p log1pf
#define log2 log2f
#define log10 log10f
#define sin sinf
#define cos cosf
#define tan tanf
#define asin asinf
#define acos acosf
#define atan atanf
#define sinh sinhf
#define cosh coshf
#define tanh tanhf
#define asinh asinhf
#define acosh acoshf
#define atanh atanhf
#define erf erff
#define erfc erfcf
#define lgamma lgammaf
#define floor floorf
#define ceil ceilf
#define nearbyint nearbyintf
#define trunc truncf
#define fmod fmodf
#define pow powf
#define atan2 atan2f
#define hypot hypotf
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

/* A row of the tables has kernels named after it, as written there: not what the names stand for
 * above. */
#undef absolute
#undef sigmoid
#undef floor_divide
#undef floor_mod
#undef sqrt
#undef exp
#undef exp2
#undef expm1
#undef log
#undef log1p
#undef log2
#undef log10
#undef sin
#undef cos
#undef tan
#undef asin
#undef acos
#undef atan
#undef sinh
#undef cosh
#undef tanh
#undef asinh
#undef acosh
#undef atanh
#undef erf
#undef erfc
#undef lgamma
#undef floor
#undef ceil
#undef nearbyint
#undef trunc
#undef fmod
#undef pow
#undef atan2
#undef hypot
#undef copysign
#define UNARY_ROW(name, dtype) [TL_##dtype][TL_OP_##name] = loop_##name##_##dtype,
#define BINARY_ROW(name, dtype) \
  [TL_##dtype][TL_OP_##name] = {loop_##name##_##dtype##_blocks, loop_##name##_##dtype##_value, \
                                value_loop_##name##_##dtype},
#define ROWS(row, name, kind)                                           \
  FLOATS_##kind(row(name, float32) row(name, float64)) INTEGERS_##kind(row(name, int64))

const tl_elementwise_kernels TL_ISA_NAME(tl_elementwise_kernels) = {
    .unary =
        {
#define TL_BINARY(...)
#define TL_TERNARY(...)
#define TL_UNARY(name, kind, ...) ROWS(UNARY_ROW, name, kind)
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
        },
    .binary =
        {
#define TL_UNARY(...)
#define TL_BINARY(name, kind, ...) ROWS(BINARY_ROW, name, kind)
#include "tensor/ops.def"
#undef TL_BINARY
#undef TL_TERNARY
        },
    .ternary =
        {
#define TL_BINARY(...)
#define TL_TERNARY(name, kind, ...) ROWS(UNARY_ROW, name, kind)
#include "tensor/ops.def"
        },
};
