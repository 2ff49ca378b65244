/* The 16-bit floating-point types as bits, to and from float and double: IEEE 754's binary16, and
 * bfloat16, the upper half of a float.  Rounding is to nearest, ties to even; from double it is
 * done once.  Written without branches, so that loops become vector code. */
#ifndef TL_TENSOR_HALF_H
#define TL_TENSOR_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t tl_float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float tl_float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The exponent is read as a float's, 112 too small; the product also normalises subnormals. */
static inline float tl_float16_to_float(uint16_t half) {
  uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
  uint32_t finite = tl_float_bits(tl_float_of_bits(magnitude) * 0x1p112f);
  uint32_t bits = magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : finite;
  return tl_float_of_bits(bits | (uint32_t)(half & 0x8000) << 16);
}

static inline uint16_t tl_float16_from_float(float x) {
  uint32_t bits = tl_float_bits(x), magnitude = bits & 0x7fffffff;
  uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
  /* Beside 0.5 a float's last bit is binary16's smallest subnormal. */
  uint32_t subnormal = tl_float_bits(tl_float_of_bits(magnitude) + 0.5f) - 0x3f000000;
  uint32_t half = magnitude < 0x38800000 ? subnormal : normal;
  half = magnitude >= 0x477ff000 ? 0x7c00 : half; /* 65520 rounds to infinity */
  half = magnitude > 0x7f800000 ? 0x7e00 : half;
  return (uint16_t)(half | (bits >> 16 & 0x8000));
}

static inline float tl_bfloat16_to_float(uint16_t half) {
  return tl_float_of_bits((uint32_t)half << 16);
}

static inline uint16_t tl_bfloat16_from_float(float x) {
  uint32_t bits = tl_float_bits(x);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16 | 0x40) : rounded);
}

/* A float with an odd last bit unless it is exact, so that rounding it further rounds x itself
 * (Boldo and Melquiond, 2008). */
static inline float tl_float_to_odd(double x) {
  float near = (float)x;
  uint32_t bits = tl_float_bits(near), away = (x > (double)near) == (bits >> 31 == 0);
  uint32_t moved = away ? bits + 1 : bits - 1;
  return (double)near == x || x != x || (bits & 1) || (bits & 0x7fffffff) == 0x7f800000
             ? near
             : tl_float_of_bits(moved);
}

#endif
