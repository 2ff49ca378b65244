/* Functions of one element for the kernels' loops: tl_NAME_float32 and tl_NAME_float64.  None has a
 * branch, so that gcc makes vector code of a loop over them (lgamma apart, which calls libm).  A
 * value depends on the argument and the instruction set alone.
 *
 * float32 results are within 2 units in the last place of the correctly rounded one for every
 * argument, float64 within 4; special values, subnormals and the sign of zero are C's.  The float32
 * functions that are called most have kernels of their own here, which call nothing; the others are
 * the double function rounded, which is off by 0.500001 units at most.  So are sine and cosine: no
 * reduction without a branch serves arguments up to 2^128 in less time. */
#ifndef TL_CPU_KERNELS_MATH_H
#define TL_CPU_KERNELS_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/loop.h"

/* glibc's vector library has these; its own headers tell gcc so only under -ffast-math, which this
 * project does not use.  clang is told by -fveclib=libmvec where that works, and has scalar loops
 * for the rest. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define TL_VECTOR __attribute__((simd("notinbranch"), const))
TL_VECTOR double exp(double);
TL_VECTOR double log(double);
TL_VECTOR double sin(double);
TL_VECTOR double cos(double);
TL_VECTOR double pow(double, double);
#if __GLIBC_PREREQ(2, 35)
TL_VECTOR double exp2(double);
TL_VECTOR double expm1(double);
TL_VECTOR double log2(double);
TL_VECTOR double log10(double);
TL_VECTOR double log1p(double);
TL_VECTOR double tan(double);
TL_VECTOR double asin(double);
TL_VECTOR double acos(double);
TL_VECTOR double atan(double);
TL_VECTOR double atan2(double, double);
TL_VECTOR double sinh(double);
TL_VECTOR double cosh(double);
TL_VECTOR double tanh(double);
TL_VECTOR double asinh(double);
TL_VECTOR double acosh(double);
TL_VECTOR double atanh(double);
TL_VECTOR double erf(double);
TL_VECTOR double erfc(double);
TL_VECTOR double cbrt(double);
TL_VECTOR double hypot(double, double);
#endif
#endif

/* ---- the double functions ------------------------------------------------------------------ */

#define TL_MATH_FLOAT64(name) \
  TL_INLINE double tl_##name##_float64(double x) { return name(x); }
#define TL_MATH_ROUNDED(name)         \
  TL_MATH_FLOAT64(name)               \
  TL_INLINE float tl_##name##_float32(float x) { return (float)name((double)x); }

TL_MATH_FLOAT64(exp)
TL_MATH_FLOAT64(log)
TL_MATH_FLOAT64(tanh)
TL_MATH_FLOAT64(erf)
TL_MATH_ROUNDED(exp2)
TL_MATH_ROUNDED(expm1)
TL_MATH_ROUNDED(log2)
TL_MATH_ROUNDED(log10)
TL_MATH_ROUNDED(log1p)
TL_MATH_ROUNDED(sin)
TL_MATH_ROUNDED(cos)
TL_MATH_ROUNDED(tan)
TL_MATH_ROUNDED(asin)
TL_MATH_ROUNDED(acos)
TL_MATH_ROUNDED(atan)
TL_MATH_ROUNDED(sinh)
TL_MATH_ROUNDED(cosh)
TL_MATH_ROUNDED(asinh)
TL_MATH_ROUNDED(acosh)
TL_MATH_ROUNDED(atanh)
TL_MATH_ROUNDED(erfc)
TL_MATH_ROUNDED(cbrt)
#undef TL_MATH_FLOAT64
#undef TL_MATH_ROUNDED

/* e^-|x| does not overflow, and keeps the subnormal results for x far below 0. */
TL_INLINE double tl_sigmoid_float64(double x) {
  double e = exp(-fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

/* x e / (1 + e) for e = e^x, x < 0.  Far below 0, where e is subnormal and the product need not be,
 * e is e^(x + 600) e^-600. */
TL_INLINE double tl_silu_float64(double x) {
  double a = -fabs(x), e = exp(x < -700 ? a + 600 : a), y = x < 0 ? x * e : x;
  return x < -700 ? y * 0x1.4dd4d0d12c071p-866 : y / (1 + e);
}

/* lgamma itself writes the sign to a global variable, which threads would race for. */
TL_INLINE double tl_lgamma_float64(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
TL_INLINE float tl_lgamma_float32(float x) { return (float)tl_lgamma_float64((double)x); }

TL_INLINE double tl_pow_float64(double x, double y) { return pow(x, y); }
TL_INLINE double tl_atan2_float64(double y, double x) { return atan2(y, x); }
TL_INLINE float tl_atan2_float32(float y, float x) { return (float)atan2((double)y, (double)x); }
TL_INLINE double tl_hypot_float64(double x, double y) { return hypot(x, y); }

/* The squares are exact, and neither overflow nor vanish. */
TL_INLINE float tl_hypot_float32(float x, float y) {
  float h = (float)sqrt((double)x * x + (double)y * y);
  return fabsf(x) == INFINITY || fabsf(y) == INFINITY ? INFINITY : h;
}

/* ---- float32 kernels -------------------------------------------------------------------------
 *
 * The polynomials are minimax, by Remez exchange in 120-bit arithmetic; the coefficients were
 * rounded one by one from the lowest, the others refitted.  The methods are those of Cody and Waite
 * (Software Manual for the Elementary Functions, 1980), of Tang's papers in ACM TOMS and of fdlibm.
 * The largest errors, in units in the last place of the exact result, are over all 2^32 floats,
 * with fma but for tanh; for pow over 12 million pairs.
 *
 * Comparisons are written so that nan takes the arm that yields nan. */

TL_INLINE uint32_t tl_bits_of_float32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

TL_INLINE float tl_float32_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* x y + z, rounded once where that costs nothing: half the time of these kernels. */
#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__)
#define TL_FMA(x, y, z) __builtin_fma(x, y, z)
#define TL_FMAF(x, y, z) __builtin_fmaf(x, y, z)
#else
#define TL_FMA(x, y, z) ((x) * (y) + (z))
#define TL_FMAF(x, y, z) ((x) * (y) + (z))
#endif

/* x = n log 2 + r, |r| < 0.35, for |x| < 2^15: n log 2 is 15 bits, exactly, and the rest.  Returns
 * r.  Adding 1.5 2^23 rounds to an integer, which the sum's lowest bits then show: `bits` becomes
 * theirs, with `bias` added. */
TL_INLINE float tl_exp_reduce(float x, float bias, uint32_t *bits) {
  float rounded = TL_FMAF(x, 0x1.715476p+0f, 0x1.8p23f + bias);
  float n = rounded - (0x1.8p23f + bias);
  *bits = tl_bits_of_float32(rounded);
  return TL_FMAF(n, -0x1.7f7d1cp-20f, TL_FMAF(n, -0x1.62e4p-1f, x));
}

/* (e^r - 1 - r) / r^2 for |r| < 0.35, so that e^r - 1 has relative error 2^-26. */
TL_INLINE float tl_exp_poly(float r) {
  float q = TL_FMAF(r, TL_FMAF(r, 0x1.6ce9acp-10f, 0x1.123284p-7f), 0x1.555534p-5f);
  return TL_FMAF(r, TL_FMAF(r, q, 0x1.5554a2p-3f), 0.5f);
}

TL_INLINE float tl_exp_tail(float r) { return TL_FMAF(r * r, tl_exp_poly(r), r); }

/* (1 + tail) 2^n in two steps, so that overflow and subnormal results are right, from the bits with
 * bias 2 * 127; |n| < 252. */
TL_INLINE float tl_exp_scale(float tail, uint32_t bits) {
  float scale = tl_float32_of_bits((bits >> 1) << 23);
  return TL_FMAF(scale, tail, scale) * tl_float32_of_bits((bits - (bits >> 1)) << 23);
}

/* e^x - 1 for -86 < x <= 0; `more` becomes e^x + 1. */
TL_INLINE float tl_exp_less_1(float x, float *more) {
  uint32_t bits;
  float tail = tl_exp_tail(tl_exp_reduce(x, 127, &bits));
  float scale = tl_float32_of_bits(bits << 23);
  *more = TL_FMAF(scale, tail, scale + 1);
  return TL_FMAF(scale, tail, scale - 1);
}

/* 1.1 units.  e^-104 rounds to 0, e^104 to infinity. */
TL_INLINE float tl_exp_float32(float x) {
  uint32_t bits;
  float a = -fabsf(x);
  a = a < -104 ? -104 : a;
  a = tl_float32_of_bits(tl_bits_of_float32(a) ^ (~tl_bits_of_float32(x) & 0x80000000));
  float r = tl_exp_reduce(a, 2 * 127, &bits);
  return tl_exp_scale(tl_exp_tail(r), bits);
}

/* 2.41 units.  See tl_sigmoid_float64. */
TL_INLINE float tl_sigmoid_float32(float x) {
  uint32_t bits;
  float a = -fabsf(x);
  a = a < -104 ? -104 : a;
  float r = tl_exp_reduce(a, 2 * 127, &bits);
  float e = tl_exp_scale(tl_exp_tail(r), bits);
  return (x < 0 ? e : 1) / (1 + e);
}

/* 1.6 units.  In double from e on, which is no subnormal there; below -112 the result is 0. */
TL_INLINE float tl_silu_float32(float x) {
  uint32_t bits;
  float a = -fabsf(x);
  a = a < -112 ? -112 : a;
  float tail = tl_exp_tail(tl_exp_reduce(a, 2 * 127, &bits));
  float scale = tl_float32_of_bits((bits >> 1) << 23);
  double e = TL_FMAF(scale, tail, scale);
  e *= (double)tl_float32_of_bits((bits - (bits >> 1)) << 23);
  e = x < -112 ? 0 : e;
  return (float)((x < 0 ? x * e : x) / (1 + e));
}

/* 2.0 units: (1 - e^-2|x|) / (1 + e^-2|x|), which is 1 from 9.02 on. */
TL_INLINE float tl_tanh_float32(float x) {
  float more, a = -fabsf(x);
  a = a < -9.5f ? -9.5f : a;
  float less = tl_exp_less_1(2 * a, &more);
  return copysignf(less / more, x);
}

/* 1.2 units.  Below 0.9 erf x = x + x S(x^2), relative error 2^-26; from there to where it rounds
 * to 1, 1 - e^L(-x), absolute error 2^-29: an exponential of a polynomial, as N. Juffa has it. */
TL_INLINE float tl_erf_float32(float x) {
  float a = -fabsf(x);
  a = a < -3.95f ? -3.95f : a;
  float w = a * a;
  float S = TL_FMAF(w, TL_FMAF(w, -0x1.3ba9cep-11f, 0x1.479c9ep-8f), -0x1.b69b96p-6f);
  S = TL_FMAF(w, TL_FMAF(w, TL_FMAF(w, S, 0x1.ce1b86p-4f), -0x1.8126ecp-2f), 0x1.06eba6p-3f);
  float L = TL_FMAF(a, TL_FMAF(a, 0x1.9dba3cp-13f, 0x1.90a170p-9f), 0x1.6d0cd6p-6f);
  L = TL_FMAF(a, TL_FMAF(a, L, 0x1.aa2b4ep-4f), -0x1.462b88p-1f);
  L = TL_FMAF(a, TL_FMAF(a, L, 0x1.20b48ap+0f), -0x1.7196a0p-13f);
  float more, y = tl_exp_less_1(L, &more);
  return copysignf(a > -0.9f ? TL_FMAF(a, S, a) : y, x);
}

/* x = 2^e (1 + f), 1 + f in [sqrt 1/2, sqrt 2), by integer arithmetic on the bits of x >= 0
 * (0x3F3504F3 is sqrt 1/2); returns f.  Subnormal numbers are scaled by 2^23 first.  e becomes
 * -infinity for 0, infinity for infinity. */
TL_INLINE float tl_log_reduce(float x, float *e) {
  uint32_t subnormal = (uint32_t)((int32_t)(tl_bits_of_float32(x) - 0x00800000) >> 31);
  uint32_t shift = subnormal & (23 << 23);
  uint32_t u = tl_bits_of_float32(x * tl_float32_of_bits(0x3F800000 + shift)) - 0x3F3504F3;
  float n = (float)((int32_t)(u - shift) >> 23);
  *e = TL_FMAF(n, ((x == 0) | (x == INFINITY)) ? INFINITY : 0, n);
  return tl_float32_of_bits((u & 0x7FFFFF) + 0x3F3504F3) - 1.0f;
}

/* 0.92 units.  log(1 + f) = f - s (f - R), s = f / (2 + f), R = 2 atanh s / s - 2; the error of s R
 * is 2^-30 relative to the sum. */
TL_INLINE float tl_log_float32(float x) {
  float e, f = tl_log_reduce(fabsf(x), &e);
  float s = f / (2 + f), w = s * s;
  float p = TL_FMAF(w, TL_FMAF(w, 0x1.321c16p-2f, 0x1.995cc2p-2f), 0x1.55557cp-1f);
  float low = TL_FMAF(s, TL_FMAF(-w, p, f), e * -0x1.7f7d1cp-20f);
  float y = TL_FMAF(e, 0x1.62e4p-1f, f - low);
  return tl_float32_of_bits(tl_bits_of_float32(y) | (x >= 0 ? 0 : 0xFFFFFFFF));
}

/* 0.92 units: |x|^y = 2^(y log2 |x|), the exponent in double.  With s = f / (2 + f), log2(1 + f) is
 * s times a polynomial in s^2, relative error 2^-37.  The quotient is taken in float and corrected
 * by a Newton step, as 1 / (2 + f) = (1 - s) / 2.  Before it is rounded the result is off by less
 * than half a unit, so that powers that are floats are exact. */
TL_INLINE float tl_pow_float32(float x, float y) {
  float e, a = fabsf(x), f = tl_log_reduce(a, &e);
  double s0 = f / (2 + f);
  double s = TL_FMA(TL_FMA(-s0, 2.0 + f, f), TL_FMA(-0.5, s0, 0.5), s0), w = s * s;
  double p = TL_FMA(w, 0x1.5d1f5e8863a05p-2, 0x1.a58aaf19e777cp-2);
  p = TL_FMA(w, TL_FMA(w, p, 0x1.277785b1461fbp-1), 0x1.ec709d0b81a56p-1);
  p = TL_FMA(w, p, 0x1.71547652bf37bp+1);
  double v = y * TL_FMA(s, p, e), b = fabs(v);
  v = copysign(b < 200 ? b : 200, v);
  double n = v + 0x1.8p52 - 0x1.8p52;
  double rest = (v - n) * 0x1.62e42fefa39efp-1;
  float r = (float)rest, low = (float)(rest - r);
  uint32_t bits = tl_bits_of_float32((float)n + (0x1.8p23f + 2 * 127));
  float power = tl_exp_scale(r + TL_FMAF(r * r, tl_exp_poly(r), low), bits);
  power = a == 1 ? 1 : power; /* of infinity, too */

  /* From 2^23 on all are integers, from 2^24 on even ones. */
  float c = fabsf(y), shifted = c + 0x1p23f;
  uint32_t lowest = tl_bits_of_float32(c < 0x1p23f ? shifted : c) << 31;
  int integer = (c >= 0x1p23f) | (shifted - 0x1p23f == c);
  uint32_t odd = (integer & (c < 0x1p24f)) ? lowest : 0;
  power = tl_float32_of_bits(tl_bits_of_float32(power) | (odd & tl_bits_of_float32(x)));
  power = ((x < 0) & (a < INFINITY) & !integer) ? NAN : power;
  power = ((x != x) | (y != y)) ? NAN : power;
  return ((x == 1) | (y == 0)) ? 1 : power;
}

#undef TL_FMA
#undef TL_FMAF

#endif
