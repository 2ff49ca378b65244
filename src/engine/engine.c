#include "engine/engine.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "engine/execute.h"
#include "engine/failure.h"
#include "engine/fault.h"
#include "engine/queue.h"
#include "engine/scheduler.h"

/* The ring holds about a thousand small commands, and stays in the frontend's own cache: with one
 * of 2 MiB an operation on 1x2 takes 0.65 microseconds, with this one 0.45. */
static const size_t QUEUE_BYTES = 256 << 10;

/* Commands are handed over when this many have gathered, or this much work. */
enum { BATCH_COMMANDS = 32 };
static const float BATCH_COST = 10e3f; /* nanoseconds */

enum { SLAB_STORAGES = 64, MAX_RELEASES = 32 };

typedef struct tl_slab {
  struct tl_slab *next;
  tl_storage storages[SLAB_STORAGES];
} tl_slab;

typedef struct tl_worker {
  pthread_t thread;
  struct tl_engine *engine;
  tl_lane lane;
} tl_worker;

struct tl_engine {
  tl_engine_options options;
  tl_queue queue;
  tl_pool pool;
  tl_scheduler scheduler;
  tl_faults faults;
  bool started, away;
  int nworkers; /* running threads; options.threads once started */
  tl_worker *workers;
  tl_lane lane; /* of the frontend while it waits */
  uint64_t busy; /* of lanes that are gone */

  uint64_t ticket; /* of the last operation */
  int batch_count; /* not yet published */
  float batch_cost;
  tl_command *last_release; /* the command at the head, while it is an unpublished release */
  tl_storage *free_storages;
  tl_slab *slabs;
  size_t reserved;
  uint64_t blocked;
};

/* Lanes that may run while the frontend runs too, and while it waits. */
static unsigned lanes_beside(const tl_engine *engine) {
  int threads = engine->options.threads;
  return threads > 1 && !engine->away ? (unsigned)threads - 1 : (unsigned)threads;
}

/* ---- life ---- */

tl_status tl_engine_open(tl_engine **out, const tl_engine_options *options, tl_error *error) {
  tl_faults faults;
  tl_status status = tl_faults_parse(&faults, options->faults, error);
  if (status != TL_OK) return status;
  tl_engine *engine = aligned_alloc(alignof(tl_engine), sizeof *engine);
  if (!engine) return tl_error_set(error, TL_NO_MEMORY, "no memory for the engine");
  memset(engine, 0, sizeof *engine);
  engine->options = *options;
  engine->faults = faults;
  status = tl_queue_init(&engine->queue, QUEUE_BYTES, error);
  if (status == TL_OK) {
    tl_pool_init(&engine->pool, options->backend);
    status = tl_scheduler_init(&engine->scheduler, &engine->queue, options->backend, &engine->pool,
                               options->fusion && !options->synchronous, error);
    if (status != TL_OK) {
      tl_pool_destroy(&engine->pool);
      tl_queue_destroy(&engine->queue);
    }
  }
  if (status != TL_OK) {
    free(engine);
    return status;
  }
  *out = engine;
  return TL_OK;
}

static void *worker_main(void *argument) {
  tl_worker *worker = argument;
  tl_scheduler_work(&worker->engine->scheduler, &worker->lane);
  return NULL;
}

static void stop(tl_engine *engine) {
  tl_scheduler_stop(&engine->scheduler);
  for (int i = 0; i < engine->nworkers; i++) {
    pthread_join(engine->workers[i].thread, NULL);
    engine->busy += atomic_load(&engine->workers[i].lane.busy);
  }
  free(engine->workers);
  engine->workers = NULL;
  engine->nworkers = 0;
  engine->started = false;
  engine->scheduler.stopping = false;
}

/* Signals are for the frontend: the workers block them all. */
static tl_status start(tl_engine *engine, tl_error *error) {
  int threads = engine->options.threads;
  engine->workers = aligned_alloc(alignof(tl_worker), (size_t)threads * sizeof(tl_worker));
  if (!engine->workers) return tl_error_set(error, TL_NO_MEMORY, "no memory for the engine");
  memset(engine->workers, 0, (size_t)threads * sizeof(tl_worker));
  engine->scheduler.limit = lanes_beside(engine);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = 0;
  for (int i = 0; i < threads && !failed; i++) {
    engine->workers[i].engine = engine;
    failed = pthread_create(&engine->workers[i].thread, NULL, worker_main, &engine->workers[i]);
    if (!failed) engine->nworkers++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    stop(engine);
    return tl_error_set(error, TL_NO_MEMORY, "cannot start %d threads: %s", threads,
                        strerror(failed));
  }
  engine->started = true;
  return TL_OK;
}

void tl_engine_close(tl_engine *engine) {
  stop(engine);
  tl_queue *queue = &engine->queue;
  uint64_t at = atomic_load(&queue->retired);
  for (tl_command *c; (c = tl_queue_at(queue, &at, queue->end)); at += c->size) {
    if (c->scratch) tl_pool_give(&engine->pool, c->scratch, c->scratch_size);
    tl_failure_drop(c->failure);
  }
  tl_scheduler_destroy(&engine->scheduler);
  while (engine->slabs) {
    tl_slab *slab = engine->slabs;
    engine->slabs = slab->next;
    for (int i = 0; i < SLAB_STORAGES; i++) tl_storage_empty(&slab->storages[i], &engine->pool);
    free(slab);
  }
  tl_pool_destroy(&engine->pool);
  tl_queue_destroy(queue);
  free(engine);
}

int tl_engine_threads(const tl_engine *engine) { return engine->options.threads; }

/* ---- publishing and waiting ---- */

static bool is_drained(const void *argument) {
  const tl_queue *queue = argument;
  return atomic_load_explicit(&queue->retired, memory_order_acquire) == queue->end;
}

enum { QUIETLY, WAKE, WAKE_URGENTLY };

static void publish(tl_engine *engine, int wake) {
  uint64_t before = atomic_load_explicit(&engine->queue.published, memory_order_relaxed);
  engine->last_release = NULL;
  engine->batch_count = 0;
  engine->batch_cost = 0;
  if (before != engine->queue.end) atomic_store(&engine->queue.published, engine->queue.end);
  if (wake == QUIETLY || !engine->started || is_drained(&engine->queue)) return;
  bool lags = atomic_load_explicit(&engine->queue.issued, memory_order_relaxed) < before;
  tl_scheduler_notify(&engine->scheduler, lags || wake == WAKE_URGENTLY);
}

/* Waits, working, for anything or for the value of a storage; all must be published.  What is left
 * in the queue then goes on without this thread. */
static bool help(tl_engine *engine, bool (*reached)(const void *), const void *argument,
                 const tl_storage *wanted, bool (*interrupted)(void)) {
  tl_wait wait = {reached, argument, wanted, interrupted};
  uint64_t start_time = tl_clock();
  if (engine->options.threads > 1) {
    atomic_store(&engine->scheduler.limit, (unsigned)engine->options.threads);
  }
  bool done = tl_scheduler_help(&engine->scheduler, &engine->lane, &wait);
  atomic_store(&engine->scheduler.limit, lanes_beside(engine));
  if (!is_drained(&engine->queue)) tl_scheduler_notify(&engine->scheduler, true);
  engine->blocked += tl_clock() - start_time;
  return done;
}

/* Something has retired that is not reclaimed yet. */
static bool has_retired(const void *argument) {
  const tl_queue *queue = argument;
  return atomic_load_explicit(&queue->retired, memory_order_acquire) != queue->reclaimed;
}

static bool has_value(const void *argument) {
  const tl_storage *storage = argument;
  return atomic_load_explicit(&storage->done, memory_order_acquire) >= storage->last_write;
}

static tl_status interrupted(tl_error *error) {
  return tl_error_set(error, TL_INTERRUPTED, "interrupted");
}

static void take_back(tl_engine *engine, tl_storage *storage) {
  engine->reserved -= storage->bytes;
  storage->next = engine->free_storages;
  engine->free_storages = storage;
}

/* Takes back the storages of retired releases, and the room of retired commands. */
static void reclaim(tl_engine *engine) {
  tl_queue *queue = &engine->queue;
  uint64_t retired = atomic_load_explicit(&queue->retired, memory_order_acquire);
  for (tl_command *c; (c = tl_queue_at(queue, &queue->reclaimed, retired));
       queue->reclaimed += c->size) {
    if (c->op != TL_OP_release) continue;
    for (int i = 0; i < c->noperands; i++) {
      if (c->operands[i].storage) take_back(engine, c->operands[i].storage);
    }
  }
  tl_scheduler *scheduler = &engine->scheduler;
  if (!atomic_load_explicit(&scheduler->fusion.has_freed, memory_order_relaxed)) return;
  pthread_mutex_lock(&scheduler->lock);
  tl_storage *freed = scheduler->fusion.freed;
  scheduler->fusion.freed = NULL;
  scheduler->fusion.has_freed = false;
  pthread_mutex_unlock(&scheduler->lock);
  while (freed) {
    tl_storage *next = freed->next;
    take_back(engine, freed);
    freed = next;
  }
}

static tl_status mark_seen(tl_failure *failure, tl_error *error) {
  failure->seen = true;
  *error = failure->error;
  return error->status;
}

static void ask_for(tl_engine *engine, tl_storage *storage);

bool tl_engine_is_ready(tl_engine *engine, tl_storage *storage) {
  if (has_value(storage)) return true;
  ask_for(engine, storage);
  publish(engine, WAKE_URGENTLY);
  return false;
}

tl_status tl_engine_wait(tl_engine *engine, tl_storage *storage, tl_error *error) {
  if (!has_value(storage)) {
    ask_for(engine, storage);
    publish(engine, QUIETLY);
    if (!help(engine, has_value, storage, storage, engine->options.interrupted)) {
      return interrupted(error);
    }
  }
  return storage->poison ? mark_seen(storage->poison, error) : TL_OK;
}

static tl_status drain(tl_engine *engine, bool (*poll)(void), tl_error *error) {
  publish(engine, QUIETLY);
  if (!is_drained(&engine->queue) && !help(engine, is_drained, &engine->queue, NULL, poll)) {
    return interrupted(error);
  }
  reclaim(engine);
  return TL_OK;
}

tl_status tl_engine_drain(tl_engine *engine, tl_error *error) {
  tl_status status = drain(engine, engine->options.interrupted, error);
  tl_scheduler *scheduler = &engine->scheduler;
  pthread_mutex_lock(&scheduler->lock);
  while (scheduler->failures && status == TL_OK) {
    tl_failure *first = scheduler->failures;
    scheduler->failures = first->next;
    scheduler->nfailures--;
    if (!first->seen) status = mark_seen(first, error);
    tl_failure_drop(first);
  }
  if (scheduler->nameless_failure && status == TL_OK) {
    scheduler->nameless_failure = false;
    status = mark_seen(&tl_failure_nameless, error);
  }
  pthread_mutex_unlock(&scheduler->lock);
  return status;
}

tl_status tl_engine_set_threads(tl_engine *engine, int threads, tl_error *error) {
  if (engine->started) {
    tl_status status = drain(engine, engine->options.interrupted, error);
    if (status != TL_OK) return status;
    stop(engine);
    engine->options.threads = threads;
    return start(engine, error); /* values may have been left virtual, for the lanes to compute */
  }
  engine->options.threads = threads;
  return TL_OK;
}

tl_status tl_engine_set_fusion(tl_engine *engine, bool fusion, tl_error *error) {
  tl_status status = drain(engine, engine->options.interrupted, error);
  if (status != TL_OK) return status;
  pthread_mutex_lock(&engine->scheduler.lock);
  engine->scheduler.fusion.enabled = fusion && !engine->options.synchronous;
  pthread_mutex_unlock(&engine->scheduler.lock);
  return TL_OK;
}

void tl_engine_away(tl_engine *engine, bool away) {
  if (engine->away == away) return;
  engine->away = away;
  if (!engine->started) return;
  tl_scheduler_set_limit(&engine->scheduler, lanes_beside(engine));
  publish(engine, WAKE_URGENTLY);
}

/* ---- storages ---- */

static tl_status grow_slabs(tl_engine *engine, tl_error *error) {
  tl_slab *slab = aligned_alloc(alignof(tl_slab), sizeof *slab);
  if (!slab) return tl_error_set(error, TL_NO_MEMORY, "out of memory");
  memset(slab, 0, sizeof *slab);
  slab->next = engine->slabs;
  engine->slabs = slab;
  for (int i = SLAB_STORAGES - 1; i >= 0; i--) {
    slab->storages[i].next = engine->free_storages;
    engine->free_storages = &slab->storages[i];
  }
  return TL_OK;
}

static bool over_budget(const tl_engine *engine, size_t bytes) {
  size_t budget = engine->options.memory;
  return budget && (bytes > budget || engine->reserved > budget - bytes);
}

static bool has_no_recipes(const void *argument) {
  const tl_scheduler *scheduler = argument;
  return !scheduler->fusion.recipes && is_drained(scheduler->queue);
}

/* Computes what was left virtual, so that what was kept for it is freed.  `any`: there was some.
 * False when the user interrupts. */
static bool settle(tl_engine *engine, bool *any) {
  tl_scheduler *scheduler = &engine->scheduler;
  pthread_mutex_lock(&scheduler->lock);
  *any = scheduler->settling = scheduler->fusion.recipes != NULL;
  pthread_mutex_unlock(&scheduler->lock);
  if (!*any) return true;
  bool done = help(engine, has_no_recipes, scheduler, NULL, engine->options.interrupted);
  pthread_mutex_lock(&scheduler->lock);
  scheduler->settling = false;
  pthread_mutex_unlock(&scheduler->lock);
  reclaim(engine);
  return done;
}

tl_status tl_engine_storage(tl_engine *engine, size_t bytes, tl_storage **out, tl_error *error) {
  while (over_budget(engine, bytes)) {
    publish(engine, WAKE);
    if (is_drained(&engine->queue) && !has_retired(&engine->queue)) {
      bool any;
      if (!settle(engine, &any)) return interrupted(error);
      if (any) continue;
      return tl_error_set(error, TL_NO_MEMORY,
                          "out of memory: %zu bytes wanted, %zu of %zu in use", bytes,
                          engine->reserved, engine->options.memory);
    }
    if (!help(engine, has_retired, &engine->queue, NULL, engine->options.interrupted)) {
      return interrupted(error);
    }
    reclaim(engine);
  }
  if (!engine->free_storages) reclaim(engine);
  if (!engine->free_storages) {
    tl_status status = grow_slabs(engine, error);
    if (status != TL_OK) return status;
  }
  tl_storage *storage = engine->free_storages;
  engine->free_storages = storage->next;
  engine->reserved += bytes;
  storage->bytes = bytes;
  storage->handles = 1;
  storage->queued = false;
  storage->last_write = storage->asked_for = 0;
  *out = storage;
  return TL_OK;
}

void *tl_engine_fill(tl_engine *engine, tl_storage *storage) {
  storage->data = storage->bytes <= TL_INLINE_BYTES ? storage->inline_data
                                                    : tl_pool_take(&engine->pool, storage->bytes);
  return storage->data;
}

void tl_engine_poison(tl_storage *storage, const char *sentence) {
  storage->poison = tl_failure_say(sentence);
}

void tl_storage_retain(tl_storage *storage) { storage->handles++; }

/* ---- submitting ---- */

static size_t align8(size_t size) { return (size + 7) / 8 * 8; }

/* Room in the ring, waiting for it if need be. */
static tl_command *reserve(tl_engine *engine, size_t size, bool (*poll)(void)) {
  tl_command *command;
  while (!(command = tl_queue_reserve(&engine->queue, size))) {
    publish(engine, WAKE);
    if (!has_retired(&engine->queue) && !help(engine, has_retired, &engine->queue, NULL, poll)) {
      return NULL;
    }
    reclaim(engine);
  }
  return command;
}

static void append(tl_engine *engine, tl_command *command) {
  tl_queue_append(&engine->queue, command);
  engine->batch_count++;
  engine->batch_cost += command->cost;
  if (engine->batch_count >= BATCH_COMMANDS || engine->batch_cost >= BATCH_COST) {
    publish(engine, WAKE);
  }
}

/* Copies the draft, so that nothing in the command points outside it and the storages. */
static void fill_command(tl_command *command, const tl_draft *draft) {
  char *at = (char *)&command->operands[draft->noperands];
  for (int i = 0; i < draft->noperands; i++) {
    const tl_operand *from = &draft->operands[i];
    tl_operand *to = &command->operands[i];
    *to = *from;
    if (from->storage->bytes <= TL_INLINE_BYTES) to->access |= TL_INLINE;
    size_t bytes = from->ndim * sizeof(int64_t);
    if (bytes == 0) continue;
    to->stride = memcpy(at, from->stride, bytes);
    at += bytes;
    /* Also the place of no sizes at all, which were not copied, may be the place of these. */
    if (i > 0 && from->shape == draft->operands[i - 1].shape &&
        from->ndim <= draft->operands[i - 1].ndim) {
      to->shape = command->operands[i - 1].shape;
    } else {
      to->shape = memcpy(at, from->shape, bytes);
      at += bytes;
    }
  }
  command->parameters = draft->parameters_size
                            ? memcpy(at, draft->parameters, draft->parameters_size)
                            : NULL;
  command->op = (uint16_t)draft->op;
  command->noperands = (uint8_t)draft->noperands;
  command->source = draft->source;
  command->line = draft->line;
  command->scratch = NULL;
  atomic_init(&command->failure, NULL);
}

tl_status tl_engine_submit(tl_engine *engine, const tl_draft *draft, tl_error *error) {
  if (!engine->started) {
    tl_status status = start(engine, error);
    if (status != TL_OK) return status;
  }
  size_t size = sizeof(tl_command) + align8(draft->parameters_size);
  for (int i = 0; i < draft->noperands; i++) {
    size += sizeof(tl_operand) + 2 * draft->operands[i].ndim * sizeof(int64_t);
  }
  engine->last_release = NULL;
  tl_command *command = reserve(engine, size, engine->options.interrupted);
  if (!command) return interrupted(error);
  fill_command(command, draft);
  command->inject_fault = engine->faults.count && tl_faults_hit(&engine->faults, command);
  command->ticket = ++engine->ticket;
  for (int i = 0; i < draft->noperands; i++) {
    tl_storage *storage = draft->operands[i].storage;
    storage->queued = true;
    if (draft->operands[i].access & TL_WRITE) storage->last_write = command->ticket;
  }
  tl_plan plan = {.chunks = 1};
  engine->options.backend->plan(engine->options.backend, command, &plan);
  command->chunks = plan.chunks;
  command->cost = plan.cost;
  command->scratch_size = plan.scratch_size;
  append(engine, command);
  return engine->options.synchronous ? tl_engine_wait(engine, draft->operands[0].storage, error)
                                     : TL_OK;
}

/* A command of the engine's own on one storage; it waits for room without a poll. */
static tl_command *submit_internal(tl_engine *engine, tl_op op, tl_storage *storage, int access) {
  tl_operand operand = {.storage = storage, .access = (uint8_t)access};
  tl_draft draft = {.op = op, .noperands = 1, .operands = &operand};
  tl_command *command = reserve(engine, sizeof *command + sizeof operand, NULL);
  fill_command(command, &draft);
  command->inject_fault = false;
  command->ticket = engine->ticket;
  command->chunks = 1;
  command->cost = 50;
  command->scratch_size = 0;
  append(engine, command);
  return command;
}

/* Releases that follow each other share a command. */
static void submit_release(tl_engine *engine, tl_storage *storage) {
  tl_operand operand = {.storage = storage, .access = TL_WRITE};
  tl_command *last = engine->last_release;
  if (last && last->noperands < MAX_RELEASES &&
      tl_queue_extend(&engine->queue, last,
                      sizeof *last + (last->noperands + 1u) * sizeof operand)) {
    last->operands[last->noperands++] = operand;
    return;
  }
  tl_command *command = submit_internal(engine, TL_OP_release, storage, TL_WRITE);
  if (engine->batch_count > 0) engine->last_release = command;
}

/* A value may have been left virtual: a command that reads it makes the scheduler compute it. */
static void ask_for(tl_engine *engine, tl_storage *storage) {
  size_t least = TL_FUSE_ELEMENTS * tl_dtype_size(TL_float32);
  if (storage->bytes < least || storage->asked_for == storage->last_write) return;
  storage->asked_for = storage->last_write;
  engine->last_release = NULL;
  submit_internal(engine, TL_OP_read, storage, TL_READ);
}

void tl_engine_drop(tl_engine *engine, tl_storage *storage) {
  if (--storage->handles > 0) return;
  if (!storage->queued) {
    tl_storage_empty(storage, &engine->pool);
    take_back(engine, storage);
    return;
  }
  submit_release(engine, storage);
}

void tl_engine_count(tl_engine *engine, tl_engine_counters *counters) {
  counters->enqueued = engine->ticket;
  counters->retired =
      atomic_load_explicit(&engine->queue.retired_ticket, memory_order_acquire);
  counters->blocked = engine->blocked;
  counters->busy = engine->busy + atomic_load_explicit(&engine->lane.busy, memory_order_relaxed);
  for (int i = 0; i < engine->nworkers; i++) {
    counters->busy += atomic_load_explicit(&engine->workers[i].lane.busy, memory_order_relaxed);
  }
  counters->reserved = engine->reserved;
  counters->budget = engine->options.memory;
  pthread_mutex_lock(&engine->scheduler.lock);
  counters->virtual_bytes = engine->scheduler.fusion.virtual_bytes;
  pthread_mutex_unlock(&engine->scheduler.lock);
  pthread_mutex_lock(&engine->pool.lock);
  counters->used = engine->pool.used;
  counters->pooled = engine->pool.cached;
  counters->peak = engine->pool.peak;
  pthread_mutex_unlock(&engine->pool.lock);
}

void tl_engine_trim(tl_engine *engine) { tl_pool_trim(&engine->pool); }
