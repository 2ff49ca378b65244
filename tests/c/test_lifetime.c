/* How long things live: storages, their memory in a budget, and an engine that is closed with work
 * still queued. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "toy.h"

static toy_scene scene;

/* ---- what commands do ---- */

static tl_status note(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk, (void)error;
  atomic_fetch_add(&toy_task_of(command)->scene->finished, 1);
  return TL_OK;
}

static tl_status doze(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)command, (void)chunk, (void)error;
  toy_sleep(200);
  return TL_OK;
}

static tl_status hold(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk;
  if (toy_await(&toy_task_of(command)->scene->gate, 1)) return TL_OK;
  return tl_error_set(error, TL_FAILED, "the gate stayed shut");
}

static tl_status copy_word(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk, (void)error;
  const uint64_t *from = command->operands[1].storage->data;
  memcpy(command->operands[0].storage->data, from ? from : &(uint64_t){0}, sizeof *from);
  return TL_OK;
}

static tl_status finish_nothing(const tl_command *command, tl_error *error) {
  (void)command, (void)error;
  return TL_OK;
}

/* ---- storages ---- */

/* A value that no command writes: given by the frontend, dropped while readers still wait. */
static void test_filled_storage_outlives_its_handle(void **state) {
  (void)state;
  for (size_t bytes = 8; bytes <= 800; bytes *= 100) {
    toy_open(&scene, 2);
    tl_storage *gated = toy_storage(&scene, 8), *copy;
    tl_storage *filled = toy_storage(&scene, bytes);
    *(uint64_t *)tl_engine_fill(scene.engine, filled) = 12345;
    toy_queue(&scene, toy_large(hold), gated, TOY_OVERWRITE, filled);
    copy = toy_storage(&scene, 8);
    toy_queue(&scene, toy_large(copy_word), copy, TOY_OVERWRITE, filled);
    toy_queue(&scene, toy_large(note), gated, TOY_CHANGE, filled);
    tl_engine_drop(scene.engine, filled);
    tl_storage *next = toy_storage(&scene, bytes);
    *(uint64_t *)tl_engine_fill(scene.engine, next) = 99999;
    atomic_store(&scene.gate, 1);
    toy_wait(&scene, copy);
    assert_int_equal(*(uint64_t *)copy->data, 12345);
    toy_drain(&scene);
    toy_close(&scene);
  }
}

static void test_budget_waits_for_releases(void **state) {
  (void)state;
  tl_error error;
  tl_engine_counters counters;
  tl_engine_options options = {.threads = 2, .memory = 10000};
  assert_int_equal(toy_open_with(&scene, options, &error), TL_OK);
  for (int i = 0; i < 1000; i++) {
    tl_storage *storage = toy_storage(&scene, 4000);
    toy_queue(&scene, toy_large(note), storage, TOY_OVERWRITE, NULL);
    tl_engine_count(scene.engine, &counters);
    assert_in_range(counters.reserved, 4000, 10000);
    tl_engine_drop(scene.engine, storage);
  }
  tl_storage *held = toy_storage(&scene, 8000), *none = NULL;
  assert_int_equal(tl_engine_storage(scene.engine, 8000, &none, &error), TL_NO_MEMORY);
  assert_string_equal(error.text, "out of memory: 8000 bytes wanted, 8000 of 10000 in use");
  assert_int_equal(tl_engine_storage(scene.engine, SIZE_MAX, &none, &error), TL_NO_MEMORY);
  tl_engine_drop(scene.engine, held);
  tl_engine_count(scene.engine, &counters);
  assert_int_equal(counters.reserved, 0);
  assert_int_equal(counters.enqueued, 1000);
  toy_close(&scene);
}

/* A storage lives until its last handle goes. */
static void test_handles(void **state) {
  (void)state;
  tl_engine_counters counters;
  toy_open(&scene, 2);
  tl_storage *storage = toy_storage(&scene, 800);
  tl_storage_retain(storage);
  toy_queue(&scene, toy_small(note), storage, TOY_OVERWRITE, NULL);
  tl_engine_drop(scene.engine, storage);
  toy_drain(&scene);
  tl_engine_count(scene.engine, &counters);
  assert_int_equal(counters.reserved, 800);
  assert_non_null(storage->data);
  tl_engine_drop(scene.engine, storage);
  toy_drain(&scene);
  tl_engine_count(scene.engine, &counters);
  assert_int_equal(counters.reserved, 0);
  toy_close(&scene);
}

/* ---- the end ---- */

static void test_close_with_work_queued(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    toy_work works[] = {toy_small(doze), toy_large(doze), toy_chunked(doze, 9),
                        toy_chunked(doze, 4)};
    works[3].plan.scratch_size = 5000;
    works[3].finish = finish_nothing;
    tl_storage *storages[30];
    for (int i = 0; i < 30; i++) storages[i] = toy_storage(&scene, i % 2 ? 8 : 3000);
    for (int i = 0; i < 2000; i++) {
      toy_queue(&scene, works[i % 4], storages[i % 30], TOY_OVERWRITE, NULL);
      if (i % 30 == 29) {
        tl_engine_drop(scene.engine, storages[i % 7]);
        storages[i % 7] = toy_storage(&scene, 500);
      }
    }
    toy_close(&scene);
  }
}

static atomic_int interrupt;
static bool is_interrupted(void) { return atomic_load(&interrupt); }

/* Interrupts the wait that runs it. */
static tl_status interrupt_wait(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)command, (void)chunk, (void)error;
  atomic_store(&interrupt, 1);
  toy_sleep(100);
  return TL_OK;
}

static void test_close_with_chunks_open(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    for (int i = 0; i < 20; i++) {
      tl_error error;
      tl_engine_options options = {.threads = threads, .interrupted = is_interrupted};
      assert_int_equal(toy_open_with(&scene, options, &error), TL_OK);
      toy_work work = toy_chunked(interrupt_wait, 9);
      work.plan.cost = 6000;
      work.plan.scratch_size = 1000;
      work.finish = finish_nothing;
      tl_storage *storage = toy_storage(&scene, 800);
      toy_queue(&scene, work, storage, TOY_OVERWRITE, NULL);
      tl_status status = tl_engine_wait(scene.engine, storage, &error);
      assert_true(status == TL_INTERRUPTED || status == TL_OK);
      atomic_store(&interrupt, 0);
      toy_close(&scene);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_filled_storage_outlives_its_handle),
      cmocka_unit_test(test_budget_waits_for_releases),
      cmocka_unit_test(test_handles),
      cmocka_unit_test(test_close_with_work_queued),
      cmocka_unit_test(test_close_with_chunks_open),
  };
  return cmocka_run_group_tests_name("lifetime", tests, NULL, NULL);
}
