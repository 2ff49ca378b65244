/* Random numbers: the published Philox vectors, the values and the order that seeds stand for, and
 * what every kernel table must keep: the same bits whatever the instruction set, the cut into
 * calls and the alignment. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/kernels/random.h"
#include "tensor/philox.h"

/* The kernels' source once more, under a name of its own, to give its conversions extreme words
 * that no short search of a stream finds. */
#undef TL_ISA
#define TL_ISA test
#include "backend/cpu/kernels/random.c"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define BLOCK ((uint64_t)1 << TL_PHILOX_OFFSET_BITS)

typedef struct table {
  const char *name;
  const tl_random_kernels *kernels;
} table;

/* The tables that this processor can run; the baseline comes first. */
static table tables[3];
static size_t table_count;

static int find_tables(void **state) {
  (void)state;
  table_count = 0;
  tables[table_count++] = (table){"baseline", &tl_random_kernels_baseline};
#if defined __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    tables[table_count++] = (table){"avx2", &tl_random_kernels_avx2};
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    tables[table_count++] = (table){"avx512", &tl_random_kernels_avx512};
  }
#endif
  return 0;
}

enum { UNIFORM_F32, UNIFORM_F64, NORMAL_F32, NORMAL_F64, KINDS };

static size_t kind_size(int kind) {
  return kind == UNIFORM_F32 || kind == NORMAL_F32 ? sizeof(float) : sizeof(double);
}

static uint64_t advance(int kind, uint64_t position, uint64_t count) {
  return kind_size(kind) == sizeof(float) ? tl_philox_advance32(position, count)
                                          : tl_philox_advance64(position, count);
}

static void generate(const tl_random_kernels *kernels, int kind, void *dst, uint64_t seed,
                     uint64_t position, size_t n) {
  switch (kind) {
  case UNIFORM_F32: kernels->uniform_f32(dst, seed, position, n); break;
  case UNIFORM_F64: kernels->uniform_f64(dst, seed, position, n); break;
  case NORMAL_F32: kernels->normal_f32(dst, seed, position, n); break;
  case NORMAL_F64: kernels->normal_f64(dst, seed, position, n); break;
  }
}

/* The known answers for philox4x32-10 that Random123 publishes. */
static void test_philox_vectors(void **state) {
  static const struct {
    tl_philox_words counter;
    uint32_t key[2];
    tl_philox_words answer;
  } known[] = {
      {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       {0xffffffff, 0xffffffff},
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       {0xa4093822, 0x299f31d0},
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(known); i++) {
    tl_philox_words w = tl_philox(known[i].counter, known[i].key[0], known[i].key[1]);
    assert_memory_equal(&w, &known[i].answer, sizeof w);
  }
}

/* What a seed begins with, on every device and in every release. */
static void test_known_values(void **state) {
  static const double normals[] = {0.194019, -0.97019, 1.92393, -1.23562, 2.16137};
  static const double doubles[] = {0.46858679418029187, 0.34086151490420996, 0.3270632689464365,
                                   0.45431535865175282, 0.12624985156592777};
  static const double normal_doubles[] = {1.0360235505368471, -0.6653743849976409,
                                          0.42328043627196804, -1.4338887543449035};
  (void)state;
  for (size_t t = 0; t < table_count; t++) {
    float f[COUNT(normals)];
    double d[COUNT(doubles)];
    tables[t].kernels->normal_f32(f, 42, 0, COUNT(f));
    for (size_t i = 0; i < COUNT(f); i++) assert_true(fabs(f[i] - normals[i]) < 6e-6);
    tables[t].kernels->uniform_f64(d, 42, 0, COUNT(doubles));
    assert_memory_equal(d, doubles, sizeof doubles);
    tables[t].kernels->normal_f64(d, 42, 0, COUNT(normal_doubles));
    for (size_t i = 0; i < COUNT(normal_doubles); i++) {
      assert_true(fabs(d[i] - normal_doubles[i]) < 1e-14);
    }
  }
}

static void test_positions(void **state) {
  (void)state;
  assert_int_equal(tl_philox_advance32(BLOCK - 1, 2), BLOCK + 1);
  assert_int_equal(tl_philox_advance64(BLOCK - 2, 1), BLOCK - 1);
  assert_int_equal(tl_philox_advance64(BLOCK - 1, 1), 2 * BLOCK);
  assert_int_equal(tl_philox_advance64(3, 5 * BLOCK), 10 * BLOCK + 3);
  for (uint64_t i = 0; i < 4 * BLOCK; i += 1000) { /* in steps, as in one go */
    uint64_t halfway = tl_philox_advance64(77, i / 3);
    assert_int_equal(tl_philox_advance64(halfway, i - i / 3), tl_philox_advance64(77, i));
  }
  assert_int_equal(tl_philox_fresh32(0), 0);
  assert_int_equal(tl_philox_fresh32(BLOCK), BLOCK);
  assert_int_equal(tl_philox_fresh32(BLOCK + 1), 2 * BLOCK);
  assert_int_equal(tl_philox_fresh64(0), 0);
  assert_int_equal(tl_philox_fresh64(2 * BLOCK), 2 * BLOCK);
  assert_int_equal(tl_philox_fresh64(2 * BLOCK + 1), 4 * BLOCK);
}

/* The element at a position, from the scalar Philox and libm. */
static double reference(int kind, uint64_t seed, uint64_t position) {
  const double pi = 3.14159265358979323846;
  double u, v;
  if (kind_size(kind) == sizeof(float)) {
    tl_philox_words w = tl_philox_group32(seed, position);
    uint64_t pair = position & 2;
    if (kind == UNIFORM_F32) return (float)w.w[position & 3] * 0x1p-32f + 0x1p-33f;
    u = (float)w.w[pair] * 0x1p-32f + 0x1p-33f;
    v = w.w[pair + 1] * 0x1p-32 + 0x1p-33;
  } else {
    tl_philox_words w = tl_philox_group64(seed, position);
    u = (double)(w.w[0] ^ (uint64_t)w.w[1] << 21) * 0x1p-53 + 0x1p-54;
    v = (double)(w.w[2] ^ (uint64_t)w.w[3] << 21) * 0x1p-53 + 0x1p-54;
    if (kind == UNIFORM_F64) return position & 1 ? v : u;
  }
  u = sqrt(-2.0 * log(u));
  return position & 1 ? u * cos(2 * pi * v) : u * sin(2 * pi * v);
}

static void test_reference(void **state) {
  static const uint64_t starts[] = {0, 1, 2, 3, 1000001, BLOCK - 700, 3 * BLOCK - 5,
                                    ((uint64_t)1 << 50) - 333, ((uint64_t)1 << 63) + 2};
  static const uint64_t seeds[] = {0, 42, 0x123456789abcdef0, UINT64_MAX};
  static const double bounds[] = {0, 0, 5e-6, 1e-14};
  enum { N = 1500 };
  double memory[N];
  (void)state;
  for (size_t t = 0; t < table_count; t++) {
    for (int kind = 0; kind < KINDS; kind++) {
      for (size_t j = 0; j < COUNT(starts) * COUNT(seeds); j++) {
        uint64_t start = starts[j / COUNT(seeds)], seed = seeds[j % COUNT(seeds)];
        generate(tables[t].kernels, kind, memory, seed, start, N);
        for (size_t i = 0; i < N; i++) {
          double want = reference(kind, seed, advance(kind, start, i));
          double got = kind_size(kind) == sizeof(float) ? ((float *)memory)[i] : memory[i];
          assert_true(fabs(got - want) <= bounds[kind] * fmax(1, fabs(want)));
        }
      }
    }
  }
}

/* Any cut of a range into calls gives the bits of the whole, on any instruction set, and writes
 * nothing behind its end. */
static void test_same_bits(void **state) {
  enum { N = 40000 };
  unsigned char *whole = malloc(N * sizeof(double)), *pieces = malloc((N + 2) * sizeof(double));
  const uint64_t start = BLOCK - 11111, seed = 0xfedcba9876543210;
  uint32_t random = 1;
  (void)state;
  assert_non_null(whole);
  assert_non_null(pieces);
  for (int kind = 0; kind < KINDS; kind++) {
    size_t size = kind_size(kind), bytes = N * size;
    generate(&tl_random_kernels_baseline, kind, whole, seed, start, N);
    for (size_t t = 0; t < table_count; t++) {
      for (size_t longest = 1; longest < 4 * N; longest = longest * 5 + 1) {
        unsigned char *dst = pieces + size; /* aligned for its type only */
        memset(pieces, 0xA5, bytes + 2 * size);
        for (size_t i = 0, n; i < N; i += n) {
          random = random * 1664525u + 1013904223u;
          n = (random >> 8) % (longest + 1);
          if (n > N - i) n = N - i;
          generate(tables[t].kernels, kind, dst + i * size, seed, advance(kind, start, i), n);
        }
        assert_memory_equal(dst, whole, bytes);
        for (size_t i = 0; i < size; i++) {
          assert_int_equal(pieces[i], 0xA5);
          assert_int_equal(dst[bytes + i], 0xA5);
        }
      }
    }
  }
  free(whole);
  free(pieces);
}

/* Mean, variance, skewness and kurtosis within five standard errors; pairs do not correlate. */
static void test_moments(void **state) {
  enum { N = 1 << 20 };
  double *memory = malloc(N * sizeof *memory);
  (void)state;
  assert_non_null(memory);
  for (int kind = 0; kind < KINDS; kind++) {
    int normal = kind >= NORMAL_F32;
    double mean = 0, m2 = 0, m3 = 0, m4 = 0, pairs = 0, before = 0;
    double variance = normal ? 1.0 : 1.0 / 12, kurtosis = normal ? 3.0 : 1.8;
    generate(tables[table_count - 1].kernels, kind, memory, 42, 0, N);
    if (kind_size(kind) == sizeof(float)) {
      for (size_t i = N; i-- > 0;) memory[i] = ((float *)memory)[i];
    }
    for (size_t i = 0; i < N; i++) mean += memory[i] / N;
    for (size_t i = 0; i < N; i++) {
      double x = memory[i] - mean, y = x * x;
      m2 += y / N;
      m3 += y * x / N;
      m4 += y * y / N;
      pairs += x * before / N;
      before = x;
    }
    assert_true(fabs(mean - (normal ? 0.0 : 0.5)) < 5 * sqrt(variance / N));
    assert_true(fabs(m2 / variance - 1) < 5 * sqrt((kurtosis - 1) / N));
    assert_true(fabs(m3 / pow(m2, 1.5)) < 5 * sqrt(6.0 / N));
    assert_true(fabs(m4 / (m2 * m2) - kurtosis) < 5 * sqrt(24.0 / N));
    assert_true(fabs(pairs / m2) < 5 / sqrt(N));
  }
  free(memory);
}

/* The lowest, the highest and the middle words: uniforms in (0, 1], normals finite, and as large
 * as the radius allows. */
static void test_extremes(void **state) {
  static const uint32_t words[] = {0, 1, 2, 0x3fffffff, 0x40000000, 0x7fffffff, 0x80000000,
                                   0xbfffffff, 0xc0000000, 0xfffffeff, 0xffffff00, 0xffffff7f,
                                   0xffffff80, 0xfffffffe, 0xffffffff};
  const uint64_t top = ((uint64_t)1 << 53) - 1;
  float f[BYTES / sizeof(float)];
  double d[BYTES / sizeof(double)], largest = 0;
  (void)state;
  for (size_t i = 0; i < COUNT(words) * COUNT(words); i++) {
    v_u64 x = (v_u64)((v_u32){0} + words[i / COUNT(words)]);
    v_u64 y = (v_u64)((v_u32){0} + words[i % COUNT(words)]);
    v_u64 p = x, q = y;
    uniform_pair_f32(&p, &q);
    memcpy(f, &p, sizeof f);
    assert_true(f[0] >= 0x1p-33f && f[0] <= 1);
    p = x, q = y;
    normal_pair_f32(&p, &q);
    memcpy(f, &p, sizeof f);
    assert_true(isfinite(f[0]) && fabsf(f[0]) < 6.77f);
    memcpy(f, &q, sizeof f);
    assert_true(isfinite(f[0]) && fabsf(f[0]) < 6.77f);
    if (fabsf(f[0]) > largest) largest = fabsf(f[0]);
  }
  assert_true(largest > 6.76);
  largest = 0;
  for (size_t i = 0; i < COUNT(words) * COUNT(words); i++) {
    for (int far = 0; far < 2; far++) { /* 53 bits; from the top, the low words are distances */
      uint64_t a = words[i / COUNT(words)], b = (uint64_t)words[i % COUNT(words)] << 21;
      v_u64 p = (v_u64){0} + (far ? top - a : a), q = (v_u64){0} + (far ? top - b : b);
      v_u64 x = p, y = q;
      uniform_pair_f64(&x, &y);
      memcpy(d, &x, sizeof d);
      assert_true(d[0] >= 0x1p-54 && d[0] <= 1);
      normal_pair_f64(&p, &q);
      memcpy(d, &p, sizeof d);
      assert_true(isfinite(d[0]) && fabs(d[0]) < 8.66);
      memcpy(d, &q, sizeof d);
      assert_true(isfinite(d[0]) && fabs(d[0]) < 8.66);
      if (fabs(d[0]) > largest) largest = fabs(d[0]);
    }
  }
  assert_true(largest > 8.65);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_philox_vectors), cmocka_unit_test(test_known_values),
      cmocka_unit_test(test_positions),      cmocka_unit_test(test_reference),
      cmocka_unit_test(test_same_bits),      cmocka_unit_test(test_moments),
      cmocka_unit_test(test_extremes),
  };
  return cmocka_run_group_tests_name("random", tests, find_tables, NULL);
}
