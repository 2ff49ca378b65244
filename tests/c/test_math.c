/* The kernels' functions of one element, in loops as the kernels have them and compiled with their
 * flags, against the scalar ones of libm: float32 against double, float64 against long double. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/kernels/math.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* name, and how many units in the last place float32 and float64 may be off */
#define UNARY_ROWS(X) \
  X(exp, 2, 4)        \
  X(exp2, 1, 4)       \
  X(expm1, 1, 4)      \
  X(log, 2, 4)        \
  X(log2, 1, 4)       \
  X(log10, 1, 4)      \
  X(log1p, 1, 4)      \
  X(sin, 1, 4)        \
  X(cos, 1, 4)        \
  X(tan, 1, 4)        \
  X(asin, 1, 4)       \
  X(acos, 1, 4)       \
  X(atan, 1, 4)       \
  X(sinh, 1, 4)       \
  X(cosh, 1, 4)       \
  X(tanh, 2, 4)       \
  X(asinh, 1, 4)      \
  X(acosh, 1, 4)      \
  X(atanh, 1, 4)      \
  X(sigmoid, 2, 4)    \
  X(silu, 2, 4)       \
  X(erf, 2, 4)        \
  X(erfc, 1, 4)       \
  X(cbrt, 1, 4)       \
  X(lgamma, 1, 4)
#define BINARY_ROWS(X) \
  X(pow, 2, 4)         \
  X(atan2, 1, 4)       \
  X(hypot, 1, 4)

typedef void loop_float32(float *out, const float *a, const float *b, size_t n);
typedef void loop_float64(double *out, const double *a, const double *b, size_t n);

#define LOOP(T, name, formula)                                                         \
  TL_COMPILED_ONCE void name(T *out, const T *a, const T *b, size_t n) {               \
    TL_INDEPENDENT                                                                     \
    for (size_t i = 0; i < n / TL_LANES * TL_LANES; i++) {                             \
      T x = a[i], y = b[i];                                                            \
      (void)y;                                                                         \
      out[i] = formula;                                                                \
    }                                                                                  \
  }
#define UNARY_LOOPS(name, ulps32, ulps64)                    \
  LOOP(float, name##_loop_float32, tl_##name##_float32(x))   \
  LOOP(double, name##_loop_float64, tl_##name##_float64(x))
#define BINARY_LOOPS(name, ulps32, ulps64)                      \
  LOOP(float, name##_loop_float32, tl_##name##_float32(x, y))   \
  LOOP(double, name##_loop_float64, tl_##name##_float64(x, y))
UNARY_ROWS(UNARY_LOOPS)
BINARY_ROWS(BINARY_LOOPS)

/* What libm lacks. */
static double sigmoid(double x) { return (double)(1 / (1 + expl(-(long double)x))); }
static long double sigmoidl(long double x) { return 1 / (1 + expl(-x)); }
static double silu(double x) { return (double)(x / (1 + expl(-(long double)x))); }
static long double silul(long double x) { return x / (1 + expl(-x)); }

/* libm is called through pointers that the compiler cannot see through, one value at a time. */
typedef struct row {
  const char *name;
  int arity;
  uint64_t ulps32, ulps64;
  loop_float32 *float32;
  loop_float64 *float64;
  double (*volatile one)(double);
  double (*volatile two)(double, double);
  long double (*volatile long_one)(long double);
  long double (*volatile long_two)(long double, long double);
} row;

static row rows[] = {
#define UNARY_ROW(name, ulps32, ulps64)                                                 \
  {#name, 1, ulps32, ulps64, name##_loop_float32, name##_loop_float64, name, NULL, name##l, \
   NULL},
#define BINARY_ROW(name, ulps32, ulps64)                                                \
  {#name, 2, ulps32, ulps64, name##_loop_float32, name##_loop_float64, NULL, name, NULL, \
   name##l},
    UNARY_ROWS(UNARY_ROW) BINARY_ROWS(BINARY_ROW)};

static float want_float32(const row *r, float x, float y) {
  return (float)(r->arity == 1 ? r->one(x) : r->two(x, y));
}

static double want_float64(const row *r, double x, double y) {
  return (double)(r->arity == 1 ? r->long_one(x) : r->long_two(x, y));
}

/* How far apart, in steps from one number to the next; signs must agree, of zeros too. */
static uint64_t steps_float32(float x, float y) {
  if (x != x && y != y) return 0;
  uint32_t a = tl_bits_of_float32(x), b = tl_bits_of_float32(y);
  if (x != x || y != y || (a ^ b) >> 31) return UINT64_MAX;
  return a > b ? a - b : b - a;
}

static uint64_t steps_float64(double x, double y) {
  if (x != x && y != y) return 0;
  uint64_t a, b;
  memcpy(&a, &x, sizeof a);
  memcpy(&b, &y, sizeof b);
  if (x != x || y != y || (a ^ b) >> 63) return UINT64_MAX;
  return a > b ? a - b : b - a;
}

/* A block of arguments, which is run when it is full. */
enum { BLOCK = 4096 };
static float a32[BLOCK], b32[BLOCK], out32[BLOCK];
static double a64[BLOCK], b64[BLOCK], out64[BLOCK];
static size_t filled;

static void run_float32(const row *r, uint64_t ulps) {
  size_t n = filled;
  filled = 0;
  r->float32(out32, a32, b32, BLOCK);
  for (size_t i = 0; i < n; i++) {
    float want = want_float32(r, a32[i], b32[i]);
    if (steps_float32(out32[i], want) > ulps) {
      fail_msg("%s(%a, %a) is %a, not %a", r->name, a32[i], b32[i], out32[i], want);
    }
  }
}

static void run_float64(const row *r, uint64_t ulps) {
  size_t n = filled;
  filled = 0;
  r->float64(out64, a64, b64, BLOCK);
  for (size_t i = 0; i < n; i++) {
    double want = want_float64(r, a64[i], b64[i]);
    if (steps_float64(out64[i], want) > ulps) {
      fail_msg("%s(%a, %a) is %a, not %a", r->name, a64[i], b64[i], out64[i], want);
    }
  }
}

static void put_float32(const row *r, float x, float y) {
  a32[filled] = x;
  b32[filled] = y;
  if (++filled == BLOCK) run_float32(r, r->ulps32);
}

static void put_float64(const row *r, double x, double y) {
  a64[filled] = x;
  b64[filled] = y;
  if (++filled == BLOCK) run_float64(r, r->ulps64);
}

/* Where something begins or ends: functions' ranges, arms of the kernels, magnitudes. */
static const float edges[] = {
    0x1p-149f, 0x1p-126f, 0x1p-24f, 0x1p-12f, 0.25f,     0.5f,     0x1.6a09e6p-1f, 0.9f,
    1,         1.5f,      2,        3.14159274f, 1.57079637f, 3.93f, 3.95f,  9.02f,  9.5f,
    10.05f,    38.5f,     45.1f,    88.72284f, 89.4f,     87.33655f, 103.97208f, 104,    126,
    128,       149,       150,      1000,     0x1p22f,   0x1p23f,  0x1p24f, 0x1p31f, 1e10f,
    1e20f,     1e30f,     0x1.fffffep127f,
};

static uint64_t random_word(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

static void test_float32(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(rows); k++) {
    const row *r = &rows[k];
    if (r->arity != 1) continue;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 4099) {
      put_float32(r, tl_float32_of_bits((uint32_t)bits), 0);
    }
    for (size_t e = 0; e < COUNT(edges); e++) {
      uint32_t bits = tl_bits_of_float32(edges[e]);
      for (uint32_t i = 0; i < 256; i++) {
        put_float32(r, tl_float32_of_bits(bits + i - 128), 0);
        put_float32(r, -tl_float32_of_bits(bits + i - 128), 0);
      }
    }
    for (int n = 1; n < 2000; n++) { /* where sines and cosines are least, gamma has poles */
      float turn = (float)(n * 1.5707963267948966);
      put_float32(r, nextafterf(turn, 0), 0);
      put_float32(r, turn, 0);
      put_float32(r, nextafterf(turn, INFINITY), 0);
      put_float32(r, (float)-n / 2, 0);
    }
    run_float32(r, r->ulps32);
  }
}

static void test_float64(void **state) {
  (void)state;
  uint64_t seed = 88172645463325252u;
  for (size_t k = 0; k < COUNT(rows); k++) {
    const row *r = &rows[k];
    if (r->arity != 1) continue;
    for (int i = 0; i < 10000; i++) { /* of all magnitudes; of most functions' range */
      double x;
      uint64_t word = random_word(&seed);
      memcpy(&x, &word, sizeof x);
      put_float64(r, x, 0);
      put_float64(r, ldexp((double)(int64_t)word, (int)(word % 24) - 74), 0);
    }
    for (size_t e = 0; e < COUNT(edges); e++) {
      for (double x = 0.999; x < 1.001; x += 0.0001) {
        put_float64(r, edges[e] * x, 0);
        put_float64(r, edges[e] * -x, 0);
      }
    }
    for (double x = 700; x < 750; x += 0.125) { /* thresholds of exponentials */
      put_float64(r, x, 0);
      put_float64(r, -x, 0);
      put_float64(r, x + 320, 0);
      put_float64(r, -x - 320, 0);
    }
    run_float64(r, r->ulps64);
  }
}

static void test_binary_float32(void **state) {
  (void)state;
  uint64_t seed = 88172645463325252u;
  for (size_t k = 0; k < COUNT(rows); k++) {
    const row *r = &rows[k];
    if (r->arity != 2) continue;
    for (int i = 0; i < 100000; i++) {
      uint64_t word = random_word(&seed);
      float x = tl_float32_of_bits((uint32_t)word), y = tl_float32_of_bits((uint32_t)(word >> 32));
      float unit = (float)(int32_t)(word >> 16) * 0x1p-31f;
      put_float32(r, x, y);
      put_float32(r, (float)(word & 0xFFFFFF) * 0x1p-22f, 64 * unit);
      put_float32(r, 1 + (float)(word >> 60) * 0x1p-20f, 0x1p22f * unit);
      put_float32(r, fabsf(x), (float)(151 / log2(fabs((double)x)) * unit));
      put_float32(r, -(float)(word & 0xFF), (float)(int)(word >> 56) - 128);
    }
    run_float32(r, r->ulps32);
  }
}

static void test_binary_float64(void **state) {
  (void)state;
  uint64_t seed = 88172645463325252u;
  for (size_t k = 0; k < COUNT(rows); k++) {
    const row *r = &rows[k];
    if (r->arity != 2) continue;
    for (int i = 0; i < 10000; i++) {
      uint64_t word = random_word(&seed), other = random_word(&seed);
      double x, unit = (double)(int64_t)other * 0x1p-63;
      memcpy(&x, &word, sizeof x);
      put_float64(r, x, 64 * unit);
      put_float64(r, (double)word * 0x1p-60, 100 * unit);
      put_float64(r, fabs(x), 1080 / log2(fabs(x)) * unit);
    }
    run_float64(r, r->ulps64);
  }
}

/* Each with each, to the bit. */
static void test_special_values(void **state) {
  (void)state;
  static const float values[] = {0, 1, 2, 3, 0.5f, 1.5f, 2.5f, 0x1p23f + 1, 0x1p24f + 2, 0x1p-149f,
                                 0x1p-126f, 0x1.fffffep127f, INFINITY, NAN, 104, 150, 1024};
  for (size_t k = 0; k < COUNT(rows); k++) {
    const row *r = &rows[k];
    for (size_t i = 0; i < 2 * COUNT(values); i++) {
      for (size_t j = 0; j < (r->arity == 2 ? 2 * COUNT(values) : 1); j++) {
        float x = i % 2 ? -values[i / 2] : values[i / 2];
        float y = j % 2 ? -values[j / 2] : values[j / 2];
        float want = want_float32(r, x, y);
        double long_want = want_float64(r, x, y);
        bool special = want == 0 || want - want != 0;
        put_float32(r, x, y);
        run_float32(r, special ? 0 : r->ulps32);
        special = long_want == 0 || long_want - long_want != 0;
        put_float64(r, x, y);
        run_float64(r, special ? 0 : r->ulps64);
      }
    }
  }
}

/* A power that is a float is that float. */
static void test_exact_powers(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(rows); k++) {
    const row *r = &rows[k];
    if (strcmp(r->name, "pow") != 0) continue;
    for (int n = 0; n < 4096; n++) {
      a32[filled] = (float)n;
      b32[filled++] = 2;
      if (filled == BLOCK) run_float32(r, 0);
    }
    for (int n = -256; n < 256; n++) {
      a32[filled] = (float)n;
      b32[filled++] = 3;
      a32[filled] = (float)(n * n) / 16;
      b32[filled++] = 0.5f;
      a32[filled] = 2;
      b32[filled++] = (float)n;
    }
    run_float32(r, 0);
  }
}

/* The value depends on the argument alone: not on where in a block it is, nor on the others. */
static void test_position(void **state) {
  (void)state;
  uint64_t seed = 88172645463325252u;
  for (size_t k = 0; k < COUNT(rows); k++) {
    const row *r = &rows[k];
    for (size_t i = 0; i < BLOCK; i++) {
      a64[i] = a32[i] = (float)(int32_t)random_word(&seed) * 0x1p-29f;
      b64[i] = b32[i] = (float)(int32_t)random_word(&seed) * 0x1p-29f;
    }
    r->float32(out32, a32, b32, BLOCK);
    r->float64(out64, a64, b64, BLOCK);
    for (size_t i = 0; i < BLOCK; i++) {
      size_t lane = (i / 7) % TL_LANES;
      float x32[TL_LANES] = {0}, y32[TL_LANES] = {0};
      double x64[TL_LANES] = {0}, y64[TL_LANES] = {0};
      x64[lane] = x32[lane] = a32[i];
      y64[lane] = y32[lane] = b32[i];
      r->float32(x32, x32, y32, TL_LANES);
      r->float64(x64, x64, y64, TL_LANES);
      if (steps_float32(x32[lane], out32[i]) || steps_float64(x64[lane], out64[i])) {
        fail_msg("%s(%a, %a) is another value elsewhere", r->name, a32[i], b32[i]);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_float32),        cmocka_unit_test(test_float64),
      cmocka_unit_test(test_binary_float32), cmocka_unit_test(test_binary_float64),
      cmocka_unit_test(test_special_values), cmocka_unit_test(test_exact_powers),
      cmocka_unit_test(test_position),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
