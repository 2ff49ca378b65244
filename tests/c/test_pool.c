/* The pool: sizes in classes, the warmest buffer first, bounded idle memory, and a backend that has
 * nothing left. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/pool.h"
#include "toy.h"

static const size_t MiB = 1 << 20;

static toy_backend backend;
static tl_pool pool;

static int open_pool(void **state) {
  (void)state;
  toy_init(&backend);
  tl_pool_init(&pool, &backend.base);
  return 0;
}

static int close_pool(void **state) {
  (void)state;
  tl_pool_destroy(&pool);
  return toy_is_whole(&backend) ? 0 : -1;
}

static size_t held(void) { return atomic_load(&backend.bytes); }

/* What the pool asks of the backend for so many bytes. */
static size_t class_size(size_t bytes) {
  size_t before = held(), size;
  void *buffer = tl_pool_take(&pool, bytes);
  assert_non_null(buffer);
  size = held() - before;
  assert_int_equal(pool.used, size);
  tl_pool_give(&pool, buffer, bytes);
  tl_pool_destroy(&pool);
  tl_pool_init(&pool, &backend.base);
  return size;
}

static void test_classes(void **state) {
  (void)state;
  assert_int_equal(class_size(0), 64);
  assert_int_equal(class_size(1), 64);
  assert_int_equal(class_size(64), 64);
  assert_int_equal(class_size(65), 80);
  assert_int_equal(class_size(4 * MiB), 4 * MiB);
  assert_int_equal(class_size(4 * MiB + 1), 5 * MiB);
  size_t before = 0;
  for (size_t bytes = 64; bytes < 9 * MiB; bytes += 1 + bytes / 50) {
    size_t size = class_size(bytes);
    assert_in_range(size, bytes, bytes + bytes / 4); /* a fifth of the buffer */
    assert_true(size >= before);
    assert_int_equal(class_size(size), size);
    before = size;
  }
}

static void test_last_given_first_taken(void **state) {
  (void)state;
  void *a = tl_pool_take(&pool, 1000), *b = tl_pool_take(&pool, 1000);
  void *other = tl_pool_take(&pool, 2000);
  assert_ptr_not_equal(a, b);
  tl_pool_give(&pool, a, 1000);
  tl_pool_give(&pool, b, 1000);
  tl_pool_give(&pool, other, 2000);
  assert_ptr_equal(tl_pool_take(&pool, 1000), b);
  assert_ptr_equal(tl_pool_take(&pool, 1001), a); /* of the same class */
  assert_ptr_equal(tl_pool_take(&pool, 2000), other);
  void *fresh = tl_pool_take(&pool, 1000);
  assert_true(fresh != a && fresh != b && fresh != other);
  assert_int_equal(pool.cached, 0);
  tl_pool_give(&pool, fresh, 1000);
  tl_pool_give(&pool, a, 1001);
  tl_pool_give(&pool, b, 1000);
  tl_pool_give(&pool, other, 2000);
  assert_int_equal(pool.used, 0);
  assert_int_equal(pool.cached, held());
}

static void test_idle_memory_is_bounded(void **state) {
  (void)state;
  enum { COUNT = 12 };
  void *buffers[COUNT];
  for (int i = 0; i < COUNT; i++) buffers[i] = tl_pool_take(&pool, 16 * MiB);
  for (int i = 0; i < 8; i++) tl_pool_give(&pool, buffers[i], 16 * MiB);
  assert_int_equal(pool.cached, 128 * MiB);
  for (int i = 8; i < COUNT; i++) {
    tl_pool_give(&pool, buffers[i], 16 * MiB);
    assert_int_equal(pool.cached, 128 * MiB);
    assert_int_equal(held(), pool.cached + pool.used);
  }
}

/* As much as is in use may be idle, however much it is. */
static void test_idle_memory_follows_use(void **state) {
  (void)state;
  enum { COUNT = 20 };
  void *buffers[COUNT];
  for (int i = 0; i < COUNT; i++) buffers[i] = tl_pool_take(&pool, 16 * MiB);
  for (int i = 0; i < COUNT; i++) {
    tl_pool_give(&pool, buffers[i], 16 * MiB);
    size_t bound = pool.used > 128 * MiB ? pool.used : 128 * MiB;
    size_t given = (size_t)(i + 1) * 16 * MiB;
    assert_true(pool.cached <= bound);
    if (i < COUNT / 2) assert_int_equal(pool.cached, given);
  }
  assert_int_equal(held(), pool.cached);
}

/* Idle buffers of sizes that nobody asks for any more go first, not the large one in use. */
static void test_stale_sizes_go_first(void **state) {
  (void)state;
  void *stale[14], *large = tl_pool_take(&pool, 40 * MiB);
  for (int i = 0; i < 14; i++) stale[i] = tl_pool_take(&pool, 8 * MiB);
  for (int i = 0; i < 14; i++) tl_pool_give(&pool, stale[i], 8 * MiB);
  for (int i = 0; i < 3; i++) {
    tl_pool_give(&pool, large, 40 * MiB);
    assert_true(pool.cached <= 128 * MiB);
    assert_ptr_equal(tl_pool_take(&pool, 40 * MiB), large);
  }
  assert_int_equal(pool.cached, 11 * 8 * MiB); /* three made place, once */
  tl_pool_give(&pool, large, 40 * MiB);
}

static void test_nothing_left(void **state) {
  (void)state;
  void *kept = tl_pool_take(&pool, 5000), *idle = tl_pool_take(&pool, 3000);
  tl_pool_give(&pool, idle, 3000);
  size_t used = pool.used;
  atomic_store(&backend.exhausted, true);
  assert_null(tl_pool_take(&pool, 100000));
  assert_int_equal(pool.used, used);
  assert_int_equal(pool.cached, 0); /* it may have held what was missing */
  assert_int_equal(held(), used);
  tl_pool_give(&pool, kept, 5000);
  assert_ptr_equal(tl_pool_take(&pool, 5000), kept); /* needs no backend */
  atomic_store(&backend.exhausted, false);
  void *fresh = tl_pool_take(&pool, 100000);
  assert_non_null(fresh);
  tl_pool_give(&pool, fresh, 100000);
  tl_pool_give(&pool, kept, 5000);
}

/* A backend with room for one buffer: idle ones of other sizes make place. */
static void *allocate_one(tl_backend *self, size_t bytes) {
  return held() > 0 ? NULL : toy_allocate(self, bytes);
}

static void test_idle_buffers_make_place(void **state) {
  (void)state;
  backend.base.allocate = allocate_one;
  void *buffer = tl_pool_take(&pool, 3000);
  assert_null(tl_pool_take(&pool, 5000));
  tl_pool_give(&pool, buffer, 3000);
  buffer = tl_pool_take(&pool, 5000);
  assert_non_null(buffer);
  assert_int_equal(pool.cached, 0);
  tl_pool_give(&pool, buffer, 5000);
}

static void *take_and_give(void *argument) {
  unsigned random = (unsigned)(uintptr_t)argument;
  unsigned char own = (unsigned char)random;
  bool intact = true;
  for (int i = 0; i < (TOY_SANITIZED ? 2000 : 20000); i++) {
    random = random * 1664525u + 1013904223u;
    size_t bytes = 64 + (random >> 8) % 1000;
    unsigned char *buffer = tl_pool_take(&pool, bytes);
    if (!buffer) return NULL;
    memset(buffer, own, bytes);
    for (size_t b = 0; b < bytes; b += 63) intact &= buffer[b] == own;
    tl_pool_give(&pool, buffer, bytes);
  }
  return intact ? argument : NULL;
}

static void test_threads(void **state) {
  (void)state;
  pthread_t threads[4];
  void *result;
  for (uintptr_t i = 0; i < 4; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, (void *)(i + 1)), 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], &result);
    assert_non_null(result);
  }
  assert_int_equal(pool.used, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_classes, open_pool, close_pool),
      cmocka_unit_test_setup_teardown(test_last_given_first_taken, open_pool, close_pool),
      cmocka_unit_test_setup_teardown(test_idle_memory_is_bounded, open_pool, close_pool),
      cmocka_unit_test_setup_teardown(test_idle_memory_follows_use, open_pool, close_pool),
      cmocka_unit_test_setup_teardown(test_stale_sizes_go_first, open_pool, close_pool),
      cmocka_unit_test_setup_teardown(test_nothing_left, open_pool, close_pool),
      cmocka_unit_test_setup_teardown(test_idle_buffers_make_place, open_pool, close_pool),
      cmocka_unit_test_setup_teardown(test_threads, open_pool, close_pool),
  };
  return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
