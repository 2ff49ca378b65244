/* Failures of what was already queued: which are raised, where, how often, and with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "toy.h"

static toy_scene scene;

/* ---- what commands do ---- */

static tl_status succeed(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk, (void)error;
  atomic_fetch_add(&toy_task_of(command)->scene->finished, 1);
  return TL_OK;
}

static tl_status break_down(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk;
  atomic_fetch_add(&toy_task_of(command)->scene->started, 1);
  return tl_error_set(error, TL_FAILED, "broke in %d", toy_task_of(command)->id);
}

/* Fails when another one has. */
static tl_status break_late(const tl_command *command, uint32_t chunk, tl_error *error) {
  toy_await(&toy_task_of(command)->scene->started, 1);
  return break_down(command, chunk, error);
}

static tl_status break_last_chunk(const tl_command *command, uint32_t chunk, tl_error *error) {
  return chunk + 1 == command->chunks ? break_down(command, chunk, error) : TL_OK;
}

/* Every chunk fails with its own words; the second one long after the third. */
static tl_status break_each(const tl_command *command, uint32_t chunk, tl_error *error) {
  toy_scene *s = toy_task_of(command)->scene;
  if (chunk == 0) return TL_OK;
  if (chunk == 1) {
    toy_await(&s->started, 1);
    toy_sleep(2000);
  }
  atomic_fetch_add(&s->started, 1);
  return tl_error_set(error, TL_FAILED, "broke in chunk %u", chunk);
}

static tl_status hold(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk, (void)error;
  toy_await(&toy_task_of(command)->scene->gate, 1);
  return TL_OK;
}

static tl_status finish_well(const tl_command *command, tl_error *error) {
  return succeed(command, 0, error);
}

static tl_status finish_badly(const tl_command *command, tl_error *error) {
  return break_down(command, 0, error);
}

static toy_work chunked(toy_function *run, tl_status (*finish)(const tl_command *, tl_error *)) {
  return (toy_work){{.chunks = 6, .cost = 1e6f, .scratch_size = 500}, run, finish};
}

/* ---- what the frontend sees; `id` is the command's that failed, 0: none ---- */

static void check(int id, tl_status status, const tl_error *error) {
  if (id == 0) {
    if (status != TL_OK) fail_msg("%s", error->text);
    return;
  }
  char text[TL_ERROR_TEXT];
  snprintf(text, sizeof text, "exp: broke in %d (queued at toy.lua:%d)", id, id);
  assert_int_equal(status, TL_FAILED);
  assert_int_equal(error->status, TL_FAILED);
  assert_string_equal(error->text, text);
}

static void value_gives(tl_storage *storage, int id) {
  tl_error error;
  tl_status status = tl_engine_wait(scene.engine, storage, &error);
  check(id, status, &error);
}

static void drain_gives(int id) {
  tl_error error;
  tl_status status = tl_engine_drain(scene.engine, &error);
  check(id, status, &error);
}

static tl_storage *new_value(toy_work work) {
  tl_storage *storage = toy_storage(&scene, 800);
  toy_queue(&scene, work, storage, TOY_OVERWRITE, NULL);
  return storage;
}

/* ---- tests ---- */

static void test_unread_failure_is_drained(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    new_value(toy_small(break_down));
    new_value(toy_large(break_down));
    drain_gives(1);
    drain_gives(2); /* each once */
    drain_gives(0);
    toy_close(&scene);
  }
}

static void test_released_failure_is_drained(void **state) {
  (void)state;
  toy_open(&scene, 2);
  tl_engine_drop(scene.engine, new_value(toy_small(break_down)));
  tl_engine_drop(scene.engine, new_value(toy_large(break_down)));
  drain_gives(1);
  drain_gives(2);
  drain_gives(0);
  tl_engine_counters counters;
  tl_engine_count(scene.engine, &counters);
  assert_int_equal(counters.reserved, 0);
  toy_close(&scene);
}

static void test_first_in_program_order(void **state) {
  (void)state;
  for (int threads = 2; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    new_value(toy_large(break_late)); /* the second one fails first in time */
    new_value(toy_large(break_down));
    drain_gives(1);
    drain_gives(2);
    drain_gives(0);
    toy_close(&scene);
  }
}

static void test_failure_sticks(void **state) {
  (void)state;
  toy_open(&scene, 2);
  tl_storage *broken = new_value(toy_small(break_down)), *heir = toy_storage(&scene, 8);
  value_gives(broken, 1);
  value_gives(broken, 1);
  toy_queue(&scene, toy_small(succeed), heir, TOY_OVERWRITE, broken);
  value_gives(heir, 1);
  drain_gives(0); /* it was seen */
  value_gives(heir, 1);
  tl_engine_drop(scene.engine, broken);
  drain_gives(0);
  value_gives(heir, 1);
  assert_int_equal(atomic_load(&scene.finished), 0); /* the heir's command never ran */
  toy_close(&scene);
}

static void test_oldest_failure_is_inherited(void **state) {
  (void)state;
  toy_open(&scene, 4);
  tl_storage *first = new_value(toy_large(break_late)), *second = new_value(toy_large(break_down));
  tl_storage *third = toy_storage(&scene, 8);
  toy_queue(&scene, toy_small(succeed), third, TOY_OVERWRITE, second);
  toy_queue(&scene, toy_small(succeed), third, TOY_CHANGE, first);
  toy_queue(&scene, toy_small(break_down), third, TOY_CHANGE, second); /* and never runs */
  value_gives(third, 1);
  value_gives(second, 2);
  toy_queue(&scene, toy_small(succeed), second, TL_WRITE, first);
  value_gives(second, 1); /* of both operands the older */
  drain_gives(0);
  toy_close(&scene);
}

static void test_independent_values_are_untouched(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    toy_open(&scene, 2);
    tl_storage *well = new_value(toy_small(succeed));
    tl_storage *broken = new_value(i ? toy_small(break_down) : toy_large(break_down));
    tl_storage *beside = new_value(toy_small(succeed)); /* in one bundle with it */
    toy_queue(&scene, toy_small(succeed), well, TOY_CHANGE, beside);
    value_gives(beside, 0);
    value_gives(well, 0);
    value_gives(broken, 2);
    drain_gives(0);
    toy_close(&scene);
  }
}

static void test_overwriting_heals(void **state) {
  (void)state;
  toy_open(&scene, 2);
  tl_storage *storage = new_value(toy_small(break_down));
  toy_queue(&scene, toy_small(succeed), storage, TL_WRITE, NULL); /* in part */
  value_gives(storage, 1);
  toy_queue(&scene, toy_large(succeed), storage, TOY_OVERWRITE, NULL);
  value_gives(storage, 0);
  toy_queue(&scene, toy_large(break_down), storage, TOY_OVERWRITE, NULL);
  value_gives(storage, 4);
  toy_queue(&scene, toy_small(break_down), storage, TOY_OVERWRITE, NULL); /* a failure of its own */
  value_gives(storage, 5);
  drain_gives(0);
  toy_close(&scene);
}

static void test_failed_chunks(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    tl_storage *one = new_value(chunked(break_last_chunk, finish_well));
    tl_storage *all = new_value(chunked(break_down, finish_well));
    value_gives(one, 1);
    value_gives(all, 2);
    assert_int_equal(atomic_load(&scene.finished), 0); /* finish() is left out */
    tl_storage *end = new_value(chunked(succeed, finish_badly));
    value_gives(end, 3);
    assert_int_equal(atomic_load(&scene.finished), 6);
    drain_gives(0);
    toy_close(&scene);
  }
}

/* The first chunk that fails is told, whichever is quicker. */
static void test_first_of_failed_chunks(void **state) {
  (void)state;
  for (int threads = 2; threads <= 4; threads++) {
    toy_open(&scene, threads);
    tl_storage *storage = toy_storage(&scene, 8);
    tl_error error;
    toy_queue(&scene, toy_chunked(break_each, 6), storage, TOY_OVERWRITE, NULL);
    assert_int_equal(tl_engine_wait(scene.engine, storage, &error), TL_FAILED);
    assert_non_null(strstr(error.text, "broke in chunk 1 "));
    toy_close(&scene);
  }
}

static void test_no_memory(void **state) {
  (void)state;
  tl_error error;
  toy_open(&scene, 2);
  atomic_store(&scene.backend.exhausted, true);
  tl_storage *inlined = toy_storage(&scene, TL_INLINE_BYTES);
  toy_queue(&scene, toy_small(succeed), inlined, TOY_OVERWRITE, NULL);
  value_gives(inlined, 0); /* needs no buffer */
  toy_queue(&scene, chunked(succeed, finish_well), inlined, TOY_CHANGE, NULL);
  assert_int_equal(tl_engine_wait(scene.engine, inlined, &error), TL_NO_MEMORY);
  assert_string_equal(error.text,
                      "exp: out of memory: cannot allocate 500 bytes (queued at toy.lua:2)");
  tl_storage *storage = new_value(toy_small(succeed));
  assert_int_equal(tl_engine_wait(scene.engine, storage, &error), TL_NO_MEMORY);
  assert_string_equal(error.text,
                      "exp: out of memory: cannot allocate 800 bytes (queued at toy.lua:3)");
  assert_null(tl_engine_fill(scene.engine, toy_storage(&scene, 800)));
  atomic_store(&scene.backend.exhausted, false);
  toy_queue(&scene, toy_small(succeed), storage, TOY_OVERWRITE, NULL);
  value_gives(storage, 0);
  drain_gives(0);
  toy_close(&scene);
}

static void test_injected_faults(void **state) {
  (void)state;
  tl_error error;
  tl_engine_options options = {.threads = 2, .faults = "exp:2,alloc:3"};
  assert_int_equal(toy_open_with(&scene, options, &error), TL_OK);
  tl_storage *storages[4];
  for (int i = 0; i < 4; i++) storages[i] = new_value(toy_small(succeed));
  for (int i = 0; i < 4; i++) {
    tl_status status = tl_engine_wait(scene.engine, storages[i], &error);
    if (i != 1 && i != 2) {
      assert_int_equal(status, TL_OK);
      continue;
    }
    char text[TL_ERROR_TEXT];
    snprintf(text, sizeof text, "exp: injected failure (queued at toy.lua:%d)", i + 1);
    assert_int_equal(status, TL_FAILED);
    assert_string_equal(error.text, text);
  }
  drain_gives(0);
  toy_close(&scene);
  options.faults = "exp:x";
  assert_int_equal(toy_open_with(&scene, options, &error), TL_INVALID);
}

static void test_synchronous_submit_raises(void **state) {
  (void)state;
  tl_error error;
  tl_engine_options options = {.threads = 2, .synchronous = true};
  assert_int_equal(toy_open_with(&scene, options, &error), TL_OK);
  tl_storage *storage = toy_storage(&scene, 800);
  toy_queue(&scene, toy_large(succeed), storage, TOY_OVERWRITE, NULL);
  assert_int_equal(atomic_load(&scene.finished), 1);
  tl_status status = toy_submit(&scene, toy_large(break_down), storage, TOY_CHANGE, NULL, &error);
  check(2, status, &error);
  status = toy_submit(&scene, toy_small(succeed), storage, TOY_CHANGE, NULL, &error);
  check(2, status, &error);
  value_gives(storage, 2);
  drain_gives(0);
  toy_close(&scene);
}

static bool is_interrupted(void) { return atomic_load(&scene.inside) > 0; }

static void test_interrupted_drain_loses_nothing(void **state) {
  (void)state;
  tl_error error;
  tl_engine_options options = {.threads = 2, .interrupted = is_interrupted};
  assert_int_equal(toy_open_with(&scene, options, &error), TL_OK);
  new_value(toy_small(break_down));
  tl_storage *slow = new_value(toy_large(hold));
  tl_engine_is_ready(scene.engine, slow);
  assert_true(toy_await(&scene.started, 1));
  atomic_store(&scene.inside, 1);
  assert_int_equal(tl_engine_drain(scene.engine, &error), TL_INTERRUPTED);
  atomic_store(&scene.inside, 0);
  atomic_store(&scene.gate, 1);
  drain_gives(1);
  drain_gives(0);
  toy_close(&scene);
}

/* Those of retired commands, of storages, and of commands that finished out of order. */
static void test_close_frees_failures(void **state) {
  (void)state;
  toy_open(&scene, 4);
  tl_storage *broken = new_value(toy_small(break_down));
  value_gives(broken, 1);
  tl_storage *slow = new_value(toy_large(hold));
  for (int i = 0; i < 20; i++) {
    toy_work broken_work = i % 2 ? toy_large(break_down) : chunked(break_down, finish_well);
    tl_storage *storage = new_value(broken_work);
    toy_queue(&scene, toy_small(succeed), slow, TOY_CHANGE, storage);
  }
  assert_true(toy_await(&scene.started, 5));
  atomic_store(&scene.gate, 1);
  toy_close(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unread_failure_is_drained),
      cmocka_unit_test(test_released_failure_is_drained),
      cmocka_unit_test(test_first_in_program_order),
      cmocka_unit_test(test_failure_sticks),
      cmocka_unit_test(test_oldest_failure_is_inherited),
      cmocka_unit_test(test_independent_values_are_untouched),
      cmocka_unit_test(test_overwriting_heals),
      cmocka_unit_test(test_failed_chunks),
      cmocka_unit_test(test_first_of_failed_chunks),
      cmocka_unit_test(test_no_memory),
      cmocka_unit_test(test_injected_faults),
      cmocka_unit_test(test_synchronous_submit_raises),
      cmocka_unit_test(test_interrupted_drain_loses_nothing),
      cmocka_unit_test(test_close_frees_failures),
  };
  return cmocka_run_group_tests_name("failure", tests, NULL, NULL);
}
