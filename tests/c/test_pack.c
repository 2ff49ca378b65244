/* Packing and unpacking against plain loops: every size of element, every instruction set that
 * this machine has, grids of all kinds and sizes.  Nothing but the grid's elements is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/kernels/kernels.h"

enum { MOST = 150, GUARD = 64 };

static uint32_t state = 1;

static int64_t draw(int64_t low, int64_t high) { /* both included */
  state = state * 1664525 + 1013904223;
  return low + (int64_t)(state >> 8) % (high - low + 1);
}

/* Positions of a grid's elements are in the first `extent` elements of the memory, all of it. */
typedef struct tl_case {
  tl_grid grid;
  int64_t first, extent;
} tl_case;

static tl_case make_case(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  int64_t down = (rows - 1) * row_stride, along = (columns - 1) * column_stride;
  int64_t first = (down < 0 ? -down : 0) + (along < 0 ? -along : 0);
  int64_t last = first + (down > 0 ? down : 0) + (along > 0 ? along : 0);
  return (tl_case){{rows, columns, row_stride, column_stride}, first, last + 1};
}

/* Strides with which no two elements lie in the same place, unless they are broadcast. */
static tl_case draw_case(bool broadcast) {
  static const int64_t sizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100};
  int64_t rows = draw(0, 2) ? sizes[draw(0, 13)] : draw(1, MOST);
  int64_t columns = draw(0, 2) ? sizes[draw(0, 13)] : draw(1, MOST);
  int64_t step = draw(0, 1) ? 1 : draw(2, 5);
  bool transposed = draw(0, 1);
  int64_t inner = transposed ? rows : columns;
  int64_t outer_stride = inner * step + (draw(0, 1) ? 0 : draw(0, 20));
  int64_t row_stride = transposed ? step : outer_stride;
  int64_t column_stride = transposed ? outer_stride : step;
  if (broadcast && draw(0, 3) == 0) row_stride = 0;
  if (broadcast && draw(0, 3) == 0) column_stride = 0;
  if (draw(0, 5) == 0) row_stride = -row_stride;
  if (draw(0, 5) == 0) column_stride = -column_stride;
  return make_case(rows, columns, row_stride, column_stride);
}

static char *filled(size_t bytes) {
  char *memory = malloc(bytes); /* exact, for the sanitizers */
  assert_non_null(memory);
  for (size_t i = 0; i < bytes; i++) memory[i] = (char)draw(0, 255);
  return memory;
}

static void check_pack(const tl_pack_kernels *kernels, int class, const tl_case *c) {
  const tl_grid *grid = &c->grid;
  size_t size = (size_t)1 << class, block_bytes = (size_t)(grid->rows * grid->columns) * size;
  char *memory = filled((size_t)c->extent * size), *block = filled(block_bytes);
  kernels->pack[class](block, memory + (size_t)c->first * size, grid);
  for (int64_t r = 0; r < grid->rows; r++) {
    for (int64_t k = 0; k < grid->columns; k++) {
      int64_t at = c->first + r * grid->row_stride + k * grid->column_stride;
      assert_memory_equal(block + (size_t)(r * grid->columns + k) * size,
                          memory + (size_t)at * size, size);
    }
  }
  free(memory);
  free(block);
}

static void check_unpack(const tl_pack_kernels *kernels, int class, const tl_case *c) {
  const tl_grid *grid = &c->grid;
  size_t size = (size_t)1 << class, block_bytes = (size_t)(grid->rows * grid->columns) * size;
  size_t bytes = (size_t)c->extent * size;
  char *memory = filled(bytes), *block = filled(block_bytes), *expected = malloc(bytes);
  assert_non_null(expected);
  memcpy(expected, memory, bytes);
  for (int64_t r = 0; r < grid->rows; r++) {
    for (int64_t k = 0; k < grid->columns; k++) {
      int64_t at = c->first + r * grid->row_stride + k * grid->column_stride;
      memcpy(expected + (size_t)at * size, block + (size_t)(r * grid->columns + k) * size, size);
    }
  }
  kernels->unpack[class](memory + (size_t)c->first * size, block, grid);
  assert_memory_equal(memory, expected, bytes);
  free(memory);
  free(block);
  free(expected);
}

static void each_isa(void (*check)(const tl_kernels *kernels)) {
  static const char *const names[] = {"baseline", "avx2", "avx512"};
  int run = 0;
  for (int i = 0; i < 3; i++) {
    const tl_kernels *kernels = tl_kernels_choose(names[i]);
    if (!kernels) continue;
    check(kernels);
    run++;
  }
  assert_true(run > 0);
}

static void check_random(const tl_kernels *kernels) {
  for (int i = 0; i < 1500; i++) {
    tl_case any = draw_case(true), apart = draw_case(false);
    check_pack(kernels->pack, i % 4, &any);
    check_unpack(kernels->pack, i % 4, &apart);
  }
}

static void test_random_grids(void **unused) {
  (void)unused;
  each_isa(check_random);
}

/* All sizes around those of a square and of a patch. */
static void check_transposed(const tl_kernels *kernels) {
  for (int class = 0; class < 4; class++) {
    for (int64_t rows = 1; rows <= 70; rows += rows < 20 ? 1 : 7) {
      for (int64_t columns = 1; columns <= 70; columns += columns < 20 ? 1 : 7) {
        tl_case c = make_case(rows, columns, 1, rows + 3);
        check_pack(kernels->pack, class, &c);
      }
    }
  }
}

static void test_transposed_grids(void **unused) {
  (void)unused;
  each_isa(check_transposed);
}

static void check_stream(const tl_kernels *kernels) {
  for (int i = 0; i < 300; i++) {
    size_t bytes = (size_t)draw(0, 400), at = (size_t)draw(0, GUARD);
    char *from = filled(bytes + 1), *to = filled(bytes + 2 * GUARD);
    char expected[400 + 2 * GUARD];
    memcpy(expected, to, bytes + 2 * GUARD);
    memcpy(expected + at, from + 1, bytes);
    kernels->layout->stream(to + at, from + 1, bytes);
    kernels->layout->fence();
    assert_memory_equal(to, expected, bytes + 2 * GUARD);
    free(from);
    free(to);
  }
}

static void test_streaming_at_any_address(void **unused) {
  (void)unused;
  each_isa(check_stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_grids),
      cmocka_unit_test(test_transposed_grids),
      cmocka_unit_test(test_streaming_at_any_address),
  };
  return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
