/* A toy backend for the engine's tests: each command says in its parameters how it is cut and what
 * a chunk does.  Its memory is counted, and dirty when it is handed out.  For suites that include
 * cmocka.h before it. */
#ifndef TL_TESTS_TOY_H
#define TL_TESTS_TOY_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/engine.h"

#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define TOY_SANITIZED 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define TOY_SANITIZED 1
#endif
#endif
#ifndef TOY_SANITIZED
#define TOY_SANITIZED 0
#endif

/* The first member of every command's parameters. */
typedef struct toy_work {
  tl_plan plan;
  tl_status (*run)(const tl_command *command, uint32_t chunk, tl_error *error);
  tl_status (*finish)(const tl_command *command, tl_error *error); /* when it wants scratch */
} toy_work;

typedef struct toy_backend {
  tl_backend base;
  atomic_size_t buffers, bytes; /* handed out */
  atomic_bool exhausted;        /* gives no memory */
  atomic_bool broken;           /* was given back what it never gave */
} toy_backend;

enum { TOY_HEADER = 64, TOY_DIRTY = 1 << 16 };

static inline void toy_plan(tl_backend *self, const tl_command *command, tl_plan *plan) {
  (void)self;
  *plan = ((const toy_work *)command->parameters)->plan;
}

static inline tl_status toy_run(tl_backend *self, const tl_command *command, uint32_t chunk,
                                tl_error *error) {
  (void)self;
  return ((const toy_work *)command->parameters)->run(command, chunk, error);
}

static inline tl_status toy_finish(tl_backend *self, const tl_command *command, tl_error *error) {
  (void)self;
  return ((const toy_work *)command->parameters)->finish(command, error);
}

static inline void *toy_allocate(tl_backend *self, size_t bytes) {
  toy_backend *toy = (toy_backend *)self;
  if (atomic_load(&toy->exhausted)) return NULL;
  char *block = aligned_alloc(64, TOY_HEADER + (bytes + 63) / 64 * 64);
  if (!block) return NULL;
  memcpy(block, &bytes, sizeof bytes);
  memset(block + TOY_HEADER, 0xCB, bytes < TOY_DIRTY ? bytes : TOY_DIRTY);
  atomic_fetch_add(&toy->buffers, 1);
  atomic_fetch_add(&toy->bytes, bytes);
  return block + TOY_HEADER;
}

static inline void toy_release(tl_backend *self, void *buffer, size_t bytes) {
  toy_backend *toy = (toy_backend *)self;
  char *block = (char *)buffer - TOY_HEADER;
  size_t allocated;
  memcpy(&allocated, block, sizeof allocated);
  if (allocated != bytes) atomic_store(&toy->broken, true);
  atomic_fetch_sub(&toy->buffers, 1);
  atomic_fetch_sub(&toy->bytes, bytes);
  free(block);
}

static inline void toy_init(toy_backend *toy) {
  memset(toy, 0, sizeof *toy);
  toy->base = (tl_backend){"toy", toy_plan, toy_run, toy_finish, toy_allocate, toy_release};
}

/* Whether all memory has come back, as it was given. */
static inline bool toy_is_whole(toy_backend *toy) {
  return atomic_load(&toy->buffers) == 0 && atomic_load(&toy->bytes) == 0 &&
         !atomic_load(&toy->broken);
}

static inline void toy_sleep(long microseconds) {
  nanosleep(&(struct timespec){microseconds / 1000000, microseconds % 1000000 * 1000}, NULL);
}

/* Waits until the value is reached; false after ten seconds. */
static inline bool toy_await(atomic_int *count, int value) {
  for (int tries = 0; tries < 200000; tries++) {
    if (atomic_load(count) >= value) return true;
    toy_sleep(50);
  }
  return false;
}

/* An engine over a toy backend, and what the directed tests' commands tell each other.  Static: it
 * begins as zeros. */
typedef struct toy_scene {
  toy_backend backend;
  tl_engine *engine;
  int submitted;
  atomic_int started, finished, gate, inside, most, wrong;
} toy_scene;

/* A directed test's command. */
typedef struct toy_task {
  toy_work work;
  toy_scene *scene;
  int id; /* counts the scene's commands, from 1 on */
} toy_task;

static inline const toy_task *toy_task_of(const tl_command *command) { return command->parameters; }

static inline tl_status toy_open_with(toy_scene *scene, tl_engine_options options,
                                      tl_error *error) {
  if (scene->engine) { /* a test has failed: the next one must not share the scene with it */
    atomic_store(&scene->gate, 1);
    tl_engine_close(scene->engine);
  }
  memset(scene, 0, sizeof *scene);
  toy_init(&scene->backend);
  options.backend = &scene->backend.base;
  return tl_engine_open(&scene->engine, &options, error);
}

static inline void toy_open(toy_scene *scene, int threads) {
  tl_error error;
  tl_status status = toy_open_with(scene, (tl_engine_options){.threads = threads}, &error);
  assert_int_equal(status, TL_OK);
}

static inline void toy_close(toy_scene *scene) {
  tl_engine_close(scene->engine);
  scene->engine = NULL;
  assert_true(toy_is_whole(&scene->backend));
}

static inline tl_storage *toy_storage(toy_scene *scene, size_t bytes) {
  tl_storage *storage;
  tl_error error;
  assert_int_equal(tl_engine_storage(scene->engine, bytes, &storage, &error), TL_OK);
  return storage;
}

static inline tl_operand toy_operand(tl_storage *storage, int access) {
  return (tl_operand){.storage = storage, .dtype = TL_float64, .access = (uint8_t)access};
}

/* A command that overwrites `to`, or changes it when `access` says so, and reads `from`, unless it
 * is NULL.  Its place is toy.lua, and its number there is the line. */
static inline tl_status toy_submit(toy_scene *scene, toy_work work, tl_storage *to, int access,
                                   tl_storage *from, tl_error *error) {
  toy_task task = {work, scene, ++scene->submitted};
  tl_operand operands[] = {toy_operand(to, access), toy_operand(from, TL_READ)};
  tl_draft draft = {
      .op = TL_OP_exp,
      .noperands = from ? 2 : 1,
      .operands = operands,
      .parameters = &task,
      .parameters_size = sizeof task,
      .source = "toy.lua",
      .line = task.id,
  };
  return tl_engine_submit(scene->engine, &draft, error);
}

/* The same where it must succeed. */
static inline void toy_queue(toy_scene *scene, toy_work work, tl_storage *to, int access,
                             tl_storage *from) {
  tl_error error;
  assert_int_equal(toy_submit(scene, work, to, access, from, &error), TL_OK);
}

enum { TOY_OVERWRITE = TL_WRITE | TL_WHOLE, TOY_CHANGE = TL_READ | TL_WRITE };

typedef tl_status toy_function(const tl_command *command, uint32_t chunk, tl_error *error);

static inline toy_work toy_small(toy_function *run) {
  return (toy_work){.plan = {.chunks = 1, .cost = 100}, .run = run};
}

/* A unit of its own, that alone is not worth a hand-over. */
static inline toy_work toy_medium(toy_function *run) {
  return (toy_work){.plan = {.chunks = 1, .cost = 6000}, .run = run};
}

static inline toy_work toy_large(toy_function *run) {
  return (toy_work){.plan = {.chunks = 1, .cost = 1e6f}, .run = run};
}

static inline toy_work toy_chunked(toy_function *run, unsigned chunks) {
  return (toy_work){.plan = {.chunks = chunks, .cost = 1e6f}, .run = run};
}

static inline void toy_wait(toy_scene *scene, tl_storage *storage) {
  tl_error error;
  if (tl_engine_wait(scene->engine, storage, &error) != TL_OK) fail_msg("%s", error.text);
}

static inline void toy_drain(toy_scene *scene) {
  tl_error error;
  if (tl_engine_drain(scene->engine, &error) != TL_OK) fail_msg("%s", error.text);
}

/* Whether the value is there within ten seconds, without waiting for it. */
static inline bool toy_gets_ready(toy_scene *scene, tl_storage *storage) {
  for (int tries = 0; tries < 200000; tries++) {
    if (tl_engine_is_ready(scene->engine, storage)) return true;
    toy_sleep(50);
  }
  return false;
}

#endif
