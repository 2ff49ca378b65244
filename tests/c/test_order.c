/* What runs when: dependent commands one after the other, independent ones at the same time on as
 * many lanes as there are, and nothing that is queued is left behind. */
#include <pthread.h>
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

/* Finishes when the gate has opened. */
static tl_status hold(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk;
  toy_scene *s = toy_task_of(command)->scene;
  atomic_fetch_add(&s->started, 1);
  if (!toy_await(&s->gate, 1)) return tl_error_set(error, TL_FAILED, "the gate stayed shut");
  atomic_fetch_add(&s->finished, 1);
  return TL_OK;
}

static tl_status meet(const tl_command *command, int others, tl_error *error) {
  toy_scene *s = toy_task_of(command)->scene;
  atomic_fetch_add(&s->started, 1);
  if (!toy_await(&s->started, others)) return tl_error_set(error, TL_FAILED, "ran alone");
  atomic_fetch_add(&s->finished, 1);
  return TL_OK;
}

static tl_status meet_two(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk;
  return meet(command, 2, error);
}

static tl_status meet_three(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk;
  return meet(command, 3, error);
}

static void enter(toy_scene *s) {
  int inside = atomic_fetch_add(&s->inside, 1) + 1, most = atomic_load(&s->most);
  while (inside > most && !atomic_compare_exchange_weak(&s->most, &most, inside)) {}
}

static tl_status crowd(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk, (void)error;
  toy_scene *s = toy_task_of(command)->scene;
  enter(s);
  toy_sleep(200);
  atomic_fetch_sub(&s->inside, 1);
  return TL_OK;
}

/* Only chunks of one command may be inside at a time, and none of an earlier one later: `inside` is
 * the command's id and the number of its chunks there. */
static tl_status exclude(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk, (void)error;
  const toy_task *task = toy_task_of(command);
  atomic_int *inside = &task->scene->inside;
  int now = atomic_load(inside), then;
  do {
    int id = now / 16, chunks = now % 16;
    if (task->id < id || (task->id > id && chunks > 0)) {
      atomic_fetch_add(&task->scene->wrong, 1);
      return TL_OK;
    }
    then = task->id * 16 + (task->id == id ? chunks : 0) + 1;
  } while (!atomic_compare_exchange_weak(inside, &now, then));
  if (task->id % 16 == 0) toy_sleep(100);
  atomic_fetch_sub(inside, 1);
  return TL_OK;
}

/* A command that runs until the gate opens, on a lane and not on this thread. */
static tl_storage *occupy_lane(void) {
  tl_storage *storage = toy_storage(&scene, 8);
  int started = atomic_load(&scene.started);
  toy_queue(&scene, toy_large(hold), storage, TOY_OVERWRITE, NULL);
  assert_true(toy_await(&scene.started, started + 1));
  return storage;
}

/* ---- hazards ---- */

static void test_dependent_never_overlap(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    tl_storage *storage = toy_storage(&scene, 4096);
    toy_work works[] = {toy_small(exclude), toy_large(exclude), toy_chunked(exclude, 5),
                        toy_medium(exclude)};
    toy_queue(&scene, works[0], storage, TOY_OVERWRITE, NULL);
    for (int i = 0; i < 400; i++) {
      toy_queue(&scene, works[i * 7 / 3 % 4], storage, i % 3 ? TOY_CHANGE : TL_WRITE, NULL);
    }
    toy_drain(&scene);
    assert_int_equal(atomic_load(&scene.wrong), 0);
    assert_int_equal(atomic_load(&scene.inside), 401 * 16);
    toy_close(&scene);
  }
}

/* Notes an error when it runs before everything that was queued before it has finished. */
static tl_status come_last(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk, (void)error;
  const toy_task *task = toy_task_of(command);
  if (atomic_load(&task->scene->finished) != task->id - 1) atomic_fetch_add(&task->scene->wrong, 1);
  atomic_fetch_add(&task->scene->finished, 1);
  return TL_OK;
}

static void test_write_waits_for_readers(void **state) {
  (void)state;
  for (int threads = 2; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    tl_storage *shared = toy_storage(&scene, 800), *to[3];
    toy_queue(&scene, toy_small(note), shared, TOY_OVERWRITE, NULL);
    for (int i = 0; i < 3; i++) {
      to[i] = toy_storage(&scene, 800);
      /* two meet: readers run at the same time */
      toy_queue(&scene, i ? toy_large(meet_two) : toy_large(note), to[i], TOY_OVERWRITE, shared);
    }
    toy_queue(&scene, toy_large(come_last), shared, TOY_CHANGE, NULL);
    toy_queue(&scene, toy_large(come_last), to[0], TOY_OVERWRITE, shared);
    toy_drain(&scene);
    assert_int_equal(atomic_load(&scene.finished), 6);
    assert_int_equal(atomic_load(&scene.wrong), 0);
    toy_close(&scene);
  }
}

/* ---- lanes ---- */

static void test_all_results_wait(void **state) {
  (void)state;
  enum { RESULTS = 3 };
  tl_storage *results[RESULTS];
  tl_operand operands[RESULTS];
  tl_error error;
  toy_open(&scene, 3);
  toy_task task = {toy_chunked(hold, 2), &scene, ++scene.submitted};
  for (int i = 0; i < RESULTS; i++) {
    results[i] = toy_storage(&scene, 8);
    operands[i] = toy_operand(results[i], TOY_OVERWRITE);
  }
  tl_draft draft = {.op = TL_OP_exp,
                    .noperands = RESULTS,
                    .operands = operands,
                    .parameters = &task,
                    .parameters_size = sizeof task};
  assert_int_equal(tl_engine_submit(scene.engine, &draft, &error), TL_OK);
  for (int i = 0; i < RESULTS; i++) {
    toy_queue(&scene, toy_medium(note), toy_storage(&scene, 8), TOY_OVERWRITE, results[i]);
  }
  assert_true(toy_await(&scene.started, 2));
  for (int i = 0; i < RESULTS; i++) assert_false(tl_engine_is_ready(scene.engine, results[i]));
  toy_sleep(1000);
  assert_int_equal(atomic_load(&scene.finished), 0);
  atomic_store(&scene.gate, 1);
  for (int i = RESULTS - 1; i >= 0; i--) toy_wait(&scene, results[i]);
  toy_drain(&scene);
  assert_int_equal(atomic_load(&scene.finished), 2 + RESULTS);
  toy_close(&scene);
}

static void test_independent_meet(void **state) {
  (void)state;
  for (int threads = 2; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    for (int i = 0; i < 2; i++) {
      toy_queue(&scene, toy_large(meet_two), toy_storage(&scene, 800), TOY_OVERWRITE, NULL);
    }
    toy_drain(&scene);
    assert_int_equal(atomic_load(&scene.finished), 2);
    toy_close(&scene);
  }
}

static void test_chunks_meet(void **state) {
  (void)state;
  for (int threads = 2; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    tl_storage *storage = toy_storage(&scene, 800);
    toy_queue(&scene, toy_chunked(meet_two, 2), storage, TOY_OVERWRITE, NULL);
    toy_wait(&scene, storage);
    assert_int_equal(atomic_load(&scene.finished), 2);
    toy_close(&scene);
  }
}

/* Of four lanes one is the frontend's; while it is busy elsewhere, the others work. */
static void test_lanes_need_no_frontend(void **state) {
  (void)state;
  toy_open(&scene, 4);
  tl_storage *last = NULL;
  for (int i = 0; i < 3; i++) {
    last = toy_storage(&scene, 800);
    toy_queue(&scene, toy_large(meet_three), last, TOY_OVERWRITE, NULL);
  }
  assert_true(toy_gets_ready(&scene, last));
  toy_drain(&scene);
  assert_int_equal(atomic_load(&scene.finished), 3);
  toy_close(&scene);
}

/* A lane that fell asleep wakes for work that comes while another one is busy. */
static void test_late_command_finds_a_lane(void **state) {
  (void)state;
  toy_open(&scene, 4);
  occupy_lane();
  toy_sleep(20000);
  tl_storage *late = toy_storage(&scene, 800);
  toy_queue(&scene, toy_large(note), late, TOY_OVERWRITE, NULL);
  bool ready = toy_gets_ready(&scene, late);
  atomic_store(&scene.gate, 1);
  toy_drain(&scene);
  assert_true(ready);
  toy_close(&scene);
}

static void test_no_more_lanes_than_threads(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    for (int i = 0; i < 60; i++) {
      toy_queue(&scene, i % 2 ? toy_large(crowd) : toy_chunked(crowd, 3), toy_storage(&scene, 800),
                TOY_OVERWRITE, NULL);
    }
    bool began = toy_await(&scene.most, 1);
    toy_sleep(3000);
    int without_frontend = atomic_load(&scene.most);
    toy_drain(&scene);
    assert_true(began);
    assert_in_range(without_frontend, 1, threads > 1 ? threads - 1 : 1);
    assert_in_range(atomic_load(&scene.most), 1, threads);
    toy_close(&scene);
  }
}

static void test_set_threads(void **state) {
  (void)state;
  tl_error error;
  toy_open(&scene, 1);
  tl_storage *storage = toy_storage(&scene, 800);
  toy_queue(&scene, toy_large(note), storage, TOY_OVERWRITE, NULL);
  assert_int_equal(tl_engine_set_threads(scene.engine, 4, &error), TL_OK);
  assert_int_equal(tl_engine_threads(scene.engine), 4);
  assert_int_equal(atomic_load(&scene.finished), 1);
  for (int i = 0; i < 3; i++) {
    toy_queue(&scene, toy_large(meet_three), toy_storage(&scene, 800), TOY_OVERWRITE, NULL);
  }
  toy_drain(&scene);
  assert_int_equal(tl_engine_set_threads(scene.engine, 1, &error), TL_OK);
  toy_queue(&scene, toy_large(note), storage, TOY_OVERWRITE, NULL);
  toy_wait(&scene, storage);
  toy_close(&scene);
}

/* While the frontend is away, its core is a lane's. */
static void test_away(void **state) {
  (void)state;
  toy_open(&scene, 2);
  tl_storage *storages[2];
  for (int i = 0; i < 2; i++) {
    storages[i] = toy_storage(&scene, 800);
    toy_queue(&scene, toy_medium(meet_two), storages[i], TOY_OVERWRITE, NULL);
  }
  tl_engine_away(scene.engine, true);
  bool met = toy_await(&scene.finished, 2);
  tl_engine_away(scene.engine, false);
  toy_drain(&scene);
  assert_true(met);
  toy_close(&scene);
}

/* What was held back must not lie there until the frontend returns. */
static void test_away_hands_over(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    tl_storage *storage = toy_storage(&scene, 8);
    toy_queue(&scene, toy_small(note), storage, TOY_OVERWRITE, NULL);
    toy_drain(&scene);
    toy_sleep(20000); /* all lanes are asleep */
    toy_queue(&scene, toy_small(note), storage, TOY_OVERWRITE, NULL);
    tl_engine_away(scene.engine, true);
    bool ran = toy_await(&scene.finished, 2);
    tl_engine_away(scene.engine, false);
    toy_drain(&scene);
    assert_true(ran);
    toy_close(&scene);
  }
}

/* ---- the waiting frontend ---- */

static pthread_t frontend;

static tl_status tell_thread(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk, (void)error;
  if (pthread_equal(pthread_self(), frontend)) {
    atomic_fetch_add(&toy_task_of(command)->scene->inside, 1);
  }
  return TL_OK;
}

/* What was not handed over yet needs no other thread.  On a busy machine a lane may still look for
 * work, and be quicker; but it falls asleep in the end. */
static void test_frontend_runs_it_itself(void **state) {
  (void)state;
  frontend = pthread_self();
  for (int threads = 1; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    tl_storage *storage = toy_storage(&scene, 8);
    toy_queue(&scene, toy_small(note), storage, TOY_OVERWRITE, NULL);
    toy_wait(&scene, storage);
    for (int tries = 0; tries < 100 && atomic_load(&scene.inside) == 0; tries++) {
      toy_sleep(20000);
      toy_queue(&scene, toy_small(tell_thread), storage, TOY_OVERWRITE, NULL);
      toy_wait(&scene, storage);
    }
    assert_int_equal(atomic_load(&scene.inside), 1);
    toy_close(&scene);
  }
}

/* A small result is read while something long runs, or waits to run, that it does not need. */
static void pass_long_command(int threads, bool has_started) {
  toy_open(&scene, threads);
  tl_storage *slow = has_started ? occupy_lane() : toy_storage(&scene, 8);
  tl_storage *quick = toy_storage(&scene, 8);
  if (!has_started) toy_queue(&scene, toy_medium(hold), slow, TOY_OVERWRITE, NULL);
  toy_queue(&scene, toy_small(note), quick, TOY_OVERWRITE, NULL);
  toy_wait(&scene, quick);
  bool still_runs = !tl_engine_is_ready(scene.engine, slow);
  atomic_store(&scene.gate, 1);
  tl_error error;
  tl_engine_wait(scene.engine, slow, &error);
  toy_close(&scene);
  assert_true(still_runs);
}

static void test_read_beside_long_command(void **state) {
  (void)state;
  for (int threads = 2; threads <= 4; threads *= 2) pass_long_command(threads, true);
}

static void test_read_before_long_command(void **state) {
  (void)state;
  for (int threads = 2; threads <= 4; threads *= 2) pass_long_command(threads, false);
}

/* What becomes ready while the frontend helps runs on when it no longer does. */
static void test_nothing_is_left_behind(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    tl_storage *first = toy_storage(&scene, 8), *second = toy_storage(&scene, 8);
    bool ready = true;
    for (int i = 0; i < 10 && ready; i++) {
      toy_sleep(2000); /* all lanes are asleep */
      toy_queue(&scene, toy_medium(note), first, TOY_OVERWRITE, NULL);
      toy_queue(&scene, toy_small(note), second, TOY_OVERWRITE, first);
      toy_wait(&scene, first);
      ready = toy_gets_ready(&scene, second);
    }
    toy_drain(&scene);
    assert_true(ready);
    toy_close(&scene);
  }
}

static void test_is_ready_hands_over(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    toy_open(&scene, threads);
    tl_storage *storage = toy_storage(&scene, 8);
    for (int i = 0; i < 3; i++) {
      toy_queue(&scene, toy_small(note), storage, TOY_OVERWRITE, NULL);
      if (i == 1) { /* handed over already */
        tl_engine_away(scene.engine, true);
        tl_engine_away(scene.engine, false);
      }
      bool ready = toy_gets_ready(&scene, storage);
      if (!ready) toy_drain(&scene);
      assert_true(ready);
      toy_sleep(2000);
    }
    toy_close(&scene);
  }
}

/* ---- interrupts and back-pressure ---- */

static atomic_int interrupt;
static bool is_interrupted(void) { return atomic_load(&interrupt); }

static void open_interruptible(int threads) {
  tl_error error;
  tl_engine_options options = {.threads = threads, .interrupted = is_interrupted};
  assert_int_equal(toy_open_with(&scene, options, &error), TL_OK);
}

static void test_interrupted_waits(void **state) {
  (void)state;
  open_interruptible(2);
  tl_error error;
  tl_storage *slow = occupy_lane();
  atomic_store(&interrupt, 1);
  assert_int_equal(tl_engine_wait(scene.engine, slow, &error), TL_INTERRUPTED);
  assert_int_equal(error.status, TL_INTERRUPTED);
  assert_int_equal(tl_engine_drain(scene.engine, &error), TL_INTERRUPTED);
  assert_int_equal(tl_engine_set_threads(scene.engine, 1, &error), TL_INTERRUPTED);
  assert_int_equal(tl_engine_threads(scene.engine), 2);
  atomic_store(&interrupt, 0);
  atomic_store(&scene.gate, 1);
  toy_wait(&scene, slow);
  toy_drain(&scene);
  assert_int_equal(atomic_load(&scene.finished), 1);

  /* The wait hands over what it then does not run. */
  toy_sleep(20000);
  toy_queue(&scene, toy_small(note), slow, TOY_OVERWRITE, NULL);
  atomic_store(&interrupt, 1);
  assert_int_equal(tl_engine_wait(scene.engine, slow, &error), TL_INTERRUPTED);
  atomic_store(&interrupt, 0);
  bool ready = toy_gets_ready(&scene, slow);
  toy_drain(&scene);
  assert_true(ready);
  toy_close(&scene);
}

static void test_full_queue_waits(void **state) {
  (void)state;
  open_interruptible(2);
  tl_error error;
  tl_storage *storage = occupy_lane();
  tl_status status = TL_OK;
  atomic_store(&interrupt, 1);
  int queued = 0;
  while (status == TL_OK && queued < 1000000) {
    status = toy_submit(&scene, toy_small(note), storage, TOY_CHANGE, NULL, &error);
    if (status == TL_OK) queued++;
  }
  assert_int_equal(status, TL_INTERRUPTED);
  assert_in_range(queued, 1000, 100000);
  atomic_store(&interrupt, 0);
  atomic_store(&scene.gate, 1);
  toy_queue(&scene, toy_small(note), storage, TOY_CHANGE, NULL);
  toy_drain(&scene);
  assert_int_equal(atomic_load(&scene.finished), 1 + queued + 1);
  toy_close(&scene);
}

static int64_t draft_sizes[1] = {3}, draft_strides[1] = {1};

static tl_status look_for_draft(const tl_command *command, uint32_t chunk, tl_error *error) {
  (void)chunk, (void)error;
  const tl_operand *in = &command->operands[1];
  toy_scene *s = toy_task_of(command)->scene;
  if (in->shape == draft_sizes || in->stride == draft_strides) atomic_fetch_add(&s->wrong, 1);
  if (in->shape[0] != 3 || in->stride[0] != 1) atomic_fetch_add(&s->wrong, 1);
  return TL_OK;
}

/* Nothing in a command points into its draft, also where the operand before has its sizes in the
 * same place, but fewer: none, if it is 0-dimensional. */
static void test_sizes_are_copied(void **state) {
  (void)state;
  toy_open(&scene, 1);
  tl_storage *to = toy_storage(&scene, sizeof(double)), *from = toy_storage(&scene, 24);
  toy_queue(&scene, toy_small(note), from, TOY_OVERWRITE, NULL);
  toy_task task = {toy_small(look_for_draft), &scene, ++scene.submitted};
  tl_operand operands[] = {toy_operand(to, TOY_OVERWRITE), toy_operand(from, TL_READ)};
  operands[0].shape = operands[1].shape = draft_sizes;
  operands[0].stride = operands[1].stride = draft_strides;
  operands[1].ndim = 1;
  tl_draft draft = {
      .op = TL_OP_exp,
      .noperands = 2,
      .operands = operands,
      .parameters = &task,
      .parameters_size = sizeof task,
      .source = "toy.lua",
      .line = task.id,
  };
  tl_error error;
  assert_int_equal(tl_engine_submit(scene.engine, &draft, &error), TL_OK);
  toy_drain(&scene);
  assert_int_equal(atomic_load(&scene.wrong), 0);
  toy_close(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_dependent_never_overlap),
      cmocka_unit_test(test_write_waits_for_readers),
      cmocka_unit_test(test_all_results_wait),
      cmocka_unit_test(test_independent_meet),
      cmocka_unit_test(test_chunks_meet),
      cmocka_unit_test(test_lanes_need_no_frontend),
      cmocka_unit_test(test_late_command_finds_a_lane),
      cmocka_unit_test(test_no_more_lanes_than_threads),
      cmocka_unit_test(test_set_threads),
      cmocka_unit_test(test_away),
      cmocka_unit_test(test_away_hands_over),
      cmocka_unit_test(test_frontend_runs_it_itself),
      cmocka_unit_test(test_read_beside_long_command),
      cmocka_unit_test(test_read_before_long_command),
      cmocka_unit_test(test_nothing_is_left_behind),
      cmocka_unit_test(test_is_ready_hands_over),
      cmocka_unit_test(test_interrupted_waits),
      cmocka_unit_test(test_full_queue_waits),
      cmocka_unit_test(test_sizes_are_copied),
  };
  return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
