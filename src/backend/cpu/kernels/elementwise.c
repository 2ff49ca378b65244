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

/* The remainder with the sign of y, as Lua has it. */
TL_INLINE float floor_mod_float32(float x, float y) {
  float r = fmodf(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
TL_INLINE double floor_mod_float64(double x, double y) {
  double r = fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
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

#define BINARY(function, T, formula)                \
  BINARY_FORM(function##_blocks, T, 1, 1, formula)  \
  BINARY_FORM(function##_value, T, 1, 0, formula)   \
  BINARY_FORM(value_##function, T, 0, 1, formula)

#define TL_OTHER(name, family, doc, example, value)

#define floor_mod floor_mod_float64
#define TL_UNARY(name, metamethod, formula, low, high, doc, example, value) \
  UNARY(name##_float64, double, formula)
#define TL_BINARY(name, metamethod, formula, low, high, doc, example, value) \
  BINARY(name##_float64, double, formula)
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
#undef floor_mod

/* The formulas name C's double functions; here they mean the float ones. */
#define floor_mod floor_mod_float32
#define fabs fabsf
#define exp expf
#define log logf
#define sqrt sqrtf
#define tanh tanhf
#define floor floorf
#define pow powf
#define TL_UNARY(name, metamethod, formula, low, high, doc, example, value) \
  UNARY(name##_float32, float, formula)
#define TL_BINARY(name, metamethod, formula, low, high, doc, example, value) \
  BINARY(name##_float32, float, formula)
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
#undef fabs
#undef exp
#undef log
#undef sqrt
#undef tanh
#undef floor
#undef pow

const tl_elementwise_kernels TL_ISA_NAME(tl_elementwise_kernels) = {
    .unary =
        {
#define TL_BINARY(name, metamethod, formula, low, high, doc, example, value)
#define TL_UNARY(name, metamethod, formula, low, high, doc, example, value) \
  [TL_float32][TL_OP_##name] = name##_float32,                              \
  [TL_float64][TL_OP_##name] = name##_float64,
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
        },
    .binary =
        {
#define TL_UNARY(name, metamethod, formula, low, high, doc, example, value)
#define TL_BINARY(name, metamethod, formula, low, high, doc, example, value)             \
  [TL_float32][TL_OP_##name] = {name##_float32_blocks, name##_float32_value,             \
                                value_##name##_float32},                                 \
  [TL_float64][TL_OP_##name] = {name##_float64_blocks, name##_float64_value,             \
                                value_##name##_float64},
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
        },
};
