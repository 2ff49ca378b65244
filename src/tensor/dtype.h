/* Element types.  TL_DTYPES is the only list of them: a row has the name, the C type of an element
 * in memory, and the dtype in which programs compute with it.  Those in which they do come first.
 *
 * The 16-bit floating-point types are kept as their bits (half.h); a bool is a byte, 0 or 1. */
#ifndef TL_TENSOR_DTYPE_H
#define TL_TENSOR_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#define TL_DTYPES(X)             \
  X(float32, float, float32)     \
  X(float64, double, float64)    \
  X(int64, int64_t, int64)       \
  X(float16, uint16_t, float32)  \
  X(bfloat16, uint16_t, float32) \
  X(int32, int32_t, int64)       \
  X(int16, int16_t, int64)       \
  X(int8, int8_t, int64)         \
  X(uint8, uint8_t, int64)       \
  X(bool, uint8_t, int64)

typedef enum tl_dtype {
#define X(name, type, compute) TL_##name,
  TL_DTYPES(X)
#undef X
  TL_DTYPE_COUNT,
  TL_COMPUTE_COUNT = TL_int64 + 1
} tl_dtype;

/* One value on its way to or from a tensor: an integer where the dtype computed in is int64,
 * otherwise a double. */
typedef union tl_scalar {
  double real;
  int64_t integer;
} tl_scalar;

/* Bytes of one element. */
static inline size_t tl_dtype_size(tl_dtype dtype) {
  static const uint8_t sizes[TL_DTYPE_COUNT] = {
#define X(name, type, compute) sizeof(type),
      TL_DTYPES(X)
#undef X
  };
  return sizes[dtype];
}

/* float32, float64 or int64: every value of the dtype is one of that, too. */
static inline tl_dtype tl_dtype_compute(tl_dtype dtype) {
  static const uint8_t computes[TL_DTYPE_COUNT] = {
#define X(name, type, compute) TL_##compute,
      TL_DTYPES(X)
#undef X
  };
  return (tl_dtype)computes[dtype];
}

static inline int tl_dtype_is_floating(tl_dtype dtype) {
  return tl_dtype_compute(dtype) != TL_int64;
}

const char *tl_dtype_name(tl_dtype dtype);
int tl_dtype_find(const char *name); /* a tl_dtype, or -1 */

/* The dtype in which two tensors meet, as PyTorch has it: the least that holds the values of both,
 * except that integers meet a floating-point type in that.  A Lua number does not take part. */
tl_dtype tl_dtype_promote(tl_dtype a, tl_dtype b);

/* The value as an integer: what a conversion in C gives, and for what it leaves undefined (out of
 * range, nan) the least one, as x86 has it and therefore NumPy. */
static inline int64_t tl_to_int64(double x) {
  return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}
static inline int32_t tl_to_int32(double x) {
  return x > -0x1p31 - 1 && x < 0x1p31 ? (int32_t)x : INT32_MIN;
}

/* A scalar of the dtype computed in, as one of another. */
tl_scalar tl_scalar_convert(tl_scalar value, tl_dtype from, tl_dtype to);

/* An integer as a scalar of the dtype in which `dtype` is computed. */
static inline tl_scalar tl_scalar_integer(int64_t value, tl_dtype dtype) {
  return tl_scalar_convert((tl_scalar){.integer = value}, TL_int64, tl_dtype_compute(dtype));
}

/* One element at an address in host memory as a scalar of tl_dtype_compute(dtype), and back. */
tl_scalar tl_dtype_load(tl_dtype dtype, const void *address);
void tl_dtype_store(tl_dtype dtype, void *address, tl_scalar value);

#endif
