/* The kernels against cuRAND's host generator, which needs the CUDA toolkit but no GPU: uniforms
 * equal to the bit, normals to the last bits, and calls that continue each other alike. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <curand.h>

#include "backend/cpu/kernels/random.h"
#include "tensor/philox.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define BLOCK ((uint64_t)1 << TL_PHILOX_OFFSET_BITS)

enum { LONGEST = 4 * 65536 * 5 + 7 };

static double *ours, *theirs; /* LONGEST elements of either width */

static int make_buffers(void **state) {
  (void)state;
  ours = malloc(LONGEST * sizeof *ours);
  theirs = malloc(LONGEST * sizeof *theirs);
  return ours && theirs ? 0 : -1;
}

static int free_buffers(void **state) {
  (void)state;
  free(ours);
  free(theirs);
  return 0;
}

static curandGenerator_t generator_new(uint64_t seed) {
  curandGenerator_t generator;
  assert_int_equal(curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10), 0);
  assert_int_equal(curandSetPseudoRandomGeneratorSeed(generator, seed), 0);
  return generator;
}

/* Draws n elements from both sides at once and compares them; the position behind them. */
static uint64_t compare_f32(curandGenerator_t generator, int normal, uint64_t seed,
                            uint64_t position, size_t n) {
  const tl_random_kernels *kernels = &tl_random_kernels_baseline;
  float *a = (float *)ours, *b = (float *)theirs;
  if (normal) {
    kernels->normal_f32(a, seed, position, n);
    assert_int_equal(curandGenerateNormal(generator, b, n, 0, 1), 0);
    for (size_t i = 0; i < n; i++) assert_true(fabsf(a[i] - b[i]) <= 1e-6f * fmaxf(1, fabsf(b[i])));
  } else {
    kernels->uniform_f32(a, seed, position, n);
    assert_int_equal(curandGenerateUniform(generator, b, n), 0);
    assert_memory_equal(a, b, n * sizeof *a);
  }
  return tl_philox_advance32(position, n);
}

static uint64_t compare_f64(curandGenerator_t generator, int normal, uint64_t seed,
                            uint64_t position, size_t n) {
  const tl_random_kernels *kernels = &tl_random_kernels_baseline;
  if (normal) {
    kernels->normal_f64(ours, seed, position, n);
    assert_int_equal(curandGenerateNormalDouble(generator, theirs, n, 0, 1), 0);
    for (size_t i = 0; i < n; i++) {
      assert_true(fabs(ours[i] - theirs[i]) <= 4e-15 * fmax(1, fabs(theirs[i])));
    }
  } else {
    kernels->uniform_f64(ours, seed, position, n);
    assert_int_equal(curandGenerateUniformDouble(generator, theirs, n), 0);
    assert_memory_equal(ours, theirs, n * sizeof *ours);
  }
  return tl_philox_advance64(position, n);
}

typedef uint64_t compare_fn(curandGenerator_t generator, int normal, uint64_t seed,
                            uint64_t position, size_t n);
static compare_fn *const widths[] = {compare_f32, compare_f64};

static const uint64_t seeds[] = {0, 1, 42, 0x9e3779b97f4a7c15, UINT64_MAX};

/* One call after another, uniform and normal, odd and even, over the offsets' borders. */
static void test_calls(void **state) {
  static const size_t counts[] = {10, 10, 1, 2, 7, 4 * 65536 * 2 + 5, 3, 262144, 100001,
                                  LONGEST, 262143, 5};
  (void)state;
  for (size_t w = 0; w < COUNT(widths); w++) {
    for (size_t s = 0; s < COUNT(seeds); s++) {
      curandGenerator_t generator = generator_new(seeds[s]);
      uint64_t position = 0;
      for (size_t i = 0; i < COUNT(counts); i++) {
        position = widths[w](generator, (i + s) % 2, seeds[s], position, counts[i]);
      }
      assert_int_equal(curandDestroyGenerator(generator), 0);
    }
  }
}

/* A position is what cuRAND calls an offset; in float64 only where an offset of ours begins. */
static void test_far_positions(void **state) {
  static const uint64_t positions[] = {5, BLOCK - 1, BLOCK + 3, 7 * BLOCK,
                                       ((uint64_t)1 << 50) - 6, (uint64_t)1 << 50,
                                       ((uint64_t)1 << 63) + BLOCK};
  (void)state;
  for (size_t w = 0; w < COUNT(widths); w++) {
    curandGenerator_t generator = generator_new(42);
    for (size_t i = 0; i < COUNT(positions); i++) {
      if (w == 1 && positions[i] % BLOCK != 0) continue;
      for (int normal = 0; normal < 2; normal++) {
        assert_int_equal(curandSetGeneratorOffset(generator, positions[i]), 0);
        widths[w](generator, normal, 42, positions[i], 300000);
      }
    }
    assert_int_equal(curandDestroyGenerator(generator), 0);
  }
}

/* After whole offsets the width may change without a gap. */
static void test_width_changes(void **state) {
  curandGenerator_t generator = generator_new(42);
  uint64_t position = 0;
  (void)state;
  for (int round = 0; round < 2; round++) {
    position = compare_f32(generator, round, 42, tl_philox_fresh64(position), BLOCK);
    position = compare_f64(generator, round, 42, tl_philox_fresh32(position), 2 * BLOCK);
  }
  assert_int_equal(curandDestroyGenerator(generator), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_calls),
      cmocka_unit_test(test_far_positions),
      cmocka_unit_test(test_width_changes),
  };
  return cmocka_run_group_tests_name("random against cuRAND", tests, make_buffers, free_buffers);
}
