#include "engine/scheduler.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/execute.h"

/* How long a lane looks for work before it sleeps; waking it costs about 5 microseconds. */
static const uint64_t SPIN_TIME = 50000; /* nanoseconds */

/* How often a waiting frontend looks whether the user wants to interrupt. */
static const long INTERRUPT_POLL = 20000000; /* nanoseconds */

uint64_t tl_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The number of the oldest unit in `mask`, which is not empty. */
static uint64_t oldest_of(const tl_scheduler *s, uint64_t mask) {
  for (uint64_t unit = s->oldest;; unit++) {
    if (mask & tl_unit_bit(unit)) return unit;
  }
}

tl_status tl_scheduler_init(tl_scheduler *s, tl_queue *queue, tl_backend *backend, tl_pool *pool,
                            bool fusion, tl_error *error) {
  memset(s, 0, sizeof *s);
  s->fusion = (tl_fusion){.enabled = fusion, .pool = pool};
  s->queue = queue;
  s->backend = backend;
  s->pool = pool;
  s->limit = 1;
  s->fused = aligned_alloc(alignof(tl_fused), TL_WINDOW * sizeof *s->fused);
  pthread_condattr_t monotonic;
  if (!s->fused || pthread_condattr_init(&monotonic) || pthread_mutex_init(&s->lock, NULL)) {
    free(s->fused);
    return tl_error_set(error, TL_NO_MEMORY, "no memory for the scheduler");
  }
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&s->work, NULL);
  pthread_cond_init(&s->done, &monotonic);
  pthread_condattr_destroy(&monotonic);
  return TL_OK;
}

void tl_scheduler_destroy(tl_scheduler *s) {
  while (s->failures) {
    tl_failure *failure = s->failures;
    s->failures = failure->next;
    tl_failure_drop(failure);
  }
  for (uint64_t unit = s->oldest; unit < s->next; unit++) {
    tl_command *command = s->window[unit % TL_WINDOW].command;
    if (!command || !s->window[unit % TL_WINDOW].fused) continue; /* the ring's are the queue's */
    if (command->scratch) tl_pool_give(s->pool, command->scratch, command->scratch_size);
    tl_failure_drop(command->failure);
  }
  while (s->fusion.recipes) tl_recipe_drop(&s->fusion, s->fusion.recipes);
  free(s->fused);
  pthread_cond_destroy(&s->done);
  pthread_cond_destroy(&s->work);
  pthread_mutex_destroy(&s->lock);
}

/* ---- finish and retire ---- */

/* Its failure is told from now on by the scheduler.  A virtual value may fail long after what was
 * enqueued behind it.  Of a script that never looks at its failures the first thousand are kept. */
static void collect_failure(tl_scheduler *s, tl_command *command) {
  enum { MAX_FAILURES = 1000 };
  tl_failure *failure = command->failure;
  if (!failure) return;
  if (failure == &tl_failure_nameless) {
    s->nameless_failure = true;
    return;
  }
  command->failure = NULL;
  tl_failure **link = &s->failures;
  while (*link && (*link)->ticket <= failure->ticket) link = &(*link)->next;
  if (!*link && s->nfailures >= MAX_FAILURES) {
    tl_failure_drop(failure);
    return;
  }
  failure->next = *link;
  *link = failure;
  s->nfailures++;
}

static void retire(tl_scheduler *s) {
  uint64_t before = s->oldest;
  uint64_t position = 0, ticket = 0;
  for (; s->oldest < s->next && s->finished & tl_unit_bit(s->oldest); s->oldest++) {
    tl_unit *unit = &s->window[s->oldest % TL_WINDOW];
    s->finished &= ~tl_unit_bit(s->oldest);
    if (unit->failed) {
      uint64_t at = unit->begin;
      for (tl_command *c; (c = tl_queue_at(s->queue, &at, unit->end)); at += c->size) {
        collect_failure(s, c);
      }
      if (unit->fused && unit->command) collect_failure(s, unit->command);
    }
    position = unit->end;
    ticket = unit->ticket;
  }
  if (s->oldest == before) return;
  atomic_store_explicit(&s->queue->retired_ticket, ticket, memory_order_relaxed);
  atomic_store_explicit(&s->queue->retired, position, memory_order_release);
}

/* Nothing waits for the unit any more on account of this command. */
static void clear_hazards(tl_scheduler *s, const tl_command *command, uint64_t bit) {
  for (int i = 0; i < command->noperands; i++) {
    tl_storage *storage = command->operands[i].storage;
    if (!storage) continue;
    storage->readers &= ~bit;
    storage->writer &= ~bit;
    tl_storage_settle(&s->fusion, storage);
  }
}

/* The unit that is to compute a recipe, and waits for this one, finds nothing to do. */
static void forestall(tl_scheduler *s, const tl_recipe *recipe) {
  for (uint64_t unit = s->oldest; unit < s->next; unit++) {
    if (s->window[unit % TL_WINDOW].recipe == recipe) s->window[unit % TL_WINDOW].command = NULL;
  }
}

/* The values of its commands exist after all. */
static void drop_recipes(tl_scheduler *s, const tl_unit *unit) {
  uint64_t at = unit->begin;
  for (tl_command *c; (c = tl_queue_at(s->queue, &at, unit->end)); at += c->size) {
    if (c->op == TL_OP_release) continue;
    tl_recipe *recipe = c->operands[0].storage->recipe;
    if (!recipe) continue;
    if (recipe->computing) {
      forestall(s, recipe);
    } else {
      tl_recipe_drop(&s->fusion, recipe);
    }
  }
}

/* Wakes as many sleeping lanes as there is work for; those that spin look for themselves. */
static void wake_lanes(tl_scheduler *s) {
  unsigned items = tl_count_bits(s->ready) + (s->open ? s->limit : 0);
  if (items == 0 && s->queue->issued < atomic_load(&s->queue->published)) items = 1;
  if (items == 0) return;
  atomic_fetch_add(&s->events, 1);
  unsigned taken = s->active + s->spinning;
  for (unsigned i = 0; i < items && i < s->sleeping && taken < s->limit; i++, taken++) {
    pthread_cond_signal(&s->work);
  }
}

static void finish_unit(tl_scheduler *s, uint64_t number, bool failed) {
  tl_unit *unit = &s->window[number % TL_WINDOW];
  uint64_t bit = tl_unit_bit(number);
  uint64_t at = unit->begin;
  for (tl_command *c; (c = tl_queue_at(s->queue, &at, unit->end)); at += c->size) {
    clear_hazards(s, c, bit);
  }
  if (unit->by_one) drop_recipes(s, unit);
  if (unit->recipe) {
    clear_hazards(s, tl_fused_command(&s->fused[number % TL_WINDOW]), bit);
    tl_recipe_drop(&s->fusion, unit->recipe);
  }
  unit->failed = failed;
  s->open &= ~bit;
  s->finished |= bit;
  for (uint64_t mask = s->waiting; mask; mask &= mask - 1) {
    uint64_t lowest = mask & (~mask + 1);
    unsigned slot = 0;
    while (lowest >> slot != 1) slot++;
    s->window[slot].waits &= ~bit;
    if (s->window[slot].waits == 0) {
      s->waiting &= ~lowest;
      s->ready |= lowest;
    }
  }
  retire(s);
  if (s->frontend_waits) {
    atomic_fetch_add(&s->events, 1);
    pthread_cond_signal(&s->done);
  }
}

/* ---- run ---- */

typedef struct tl_work {
  uint64_t unit;
  bool starts; /* not yet begun: the whole unit, or the opening of its chunks */
  unsigned chunk;
} tl_work;

/* Takes the oldest work there is among some units; the lane is then active. */
static bool pick(tl_scheduler *s, uint64_t among, tl_work *work) {
  if (s->active >= s->limit) return false;
  for (;;) {
    uint64_t units = (s->ready | s->open) & among;
    if (units == 0) return false;
    work->unit = oldest_of(s, units);
    uint64_t bit = tl_unit_bit(work->unit);
    if (s->ready & bit) {
      s->ready &= ~bit;
      work->starts = true;
      break;
    }
    tl_unit *unit = &s->window[work->unit % TL_WINDOW];
    work->starts = false;
    work->chunk = atomic_fetch_add(&unit->next_chunk, 1);
    if (work->chunk < unit->command->chunks) break;
    s->open &= ~bit; /* all chunks are taken */
  }
  s->active++;
  return true;
}

static const uint64_t ANY = ~(uint64_t)0;

static bool pick_any(tl_scheduler *s, tl_work *work) {
  if (!(s->ready | s->open)) tl_scheduler_issue(s);
  if (pick(s, ANY, work)) return true;
  tl_scheduler_issue(s); /* what looked open was not */
  return pick(s, ANY, work);
}

/* The units that the last write to a storage depends on, itself included. */
static uint64_t needed_for(const tl_scheduler *s, const tl_storage *storage) {
  uint64_t needed = storage->writer, looked_at = 0;
  while (needed & ~looked_at) {
    uint64_t unit = oldest_of(s, needed & ~looked_at);
    looked_at |= tl_unit_bit(unit);
    needed |= s->window[unit % TL_WINDOW].waits;
  }
  return needed;
}

static bool pick_wanted(tl_scheduler *s, const tl_storage *storage, tl_work *work) {
  if (!storage) return pick_any(s, work);
  tl_scheduler_issue_to(s, storage->last_write);
  uint64_t needed = needed_for(s, storage);
  /* It may be far behind the window, or a value that a later command asks for. */
  return needed ? pick(s, needed, work) : pick_any(s, work);
}

/* Runs the unit's commands one after the other; only the releases among them if it is fused. */
static bool run_in_order(tl_scheduler *s, const tl_unit *unit, bool releases_only) {
  bool failed = false;
  uint64_t at = unit->begin;
  for (tl_command *c; (c = tl_queue_at(s->queue, &at, unit->end)); at += c->size) {
    if (releases_only && c->op != TL_OP_release) continue;
    tl_execute_command(s->backend, s->pool, c);
    failed |= c->failure != NULL;
  }
  return failed;
}

static void end_command(tl_scheduler *s, tl_unit *unit) {
  tl_execute_end(s->backend, s->pool, unit->command);
  if (unit->fused) run_in_order(s, unit, true);
}

/* Begins the unit's command; false when there is nothing to run.  A joined command whose inputs or
 * buffers are not all to be had is undone: its commands then fail, or not, one by one. */
static bool begin_command(tl_scheduler *s, tl_unit *unit) {
  bool joined = unit->fused && !unit->recipe;
  if (joined && tl_execute_inherits(unit->command)) {
    unit->by_one = true;
    return false;
  }
  if (tl_execute_begin(s->pool, unit->command)) return true;
  if (joined) {
    tl_failure_drop(unit->command->failure);
    unit->command->failure = NULL;
    unit->by_one = true;
  }
  return false;
}

/* Runs chunks of a unit from `chunk` on, all that are left or one.  The next chunk is taken before
 * this one is given up: as long as a lane holds a chunk, the unit is alive.  Returns whether the
 * command is finished. */
static bool run_chunks(tl_scheduler *s, tl_unit *unit, unsigned chunk, bool only_one) {
  tl_command *command = unit->command;
  for (;;) {
    tl_execute_chunk(s->backend, command, chunk);
    unsigned next = only_one ? command->chunks : atomic_fetch_add(&unit->next_chunk, 1);
    bool more = next < command->chunks;
    if (atomic_fetch_sub(&unit->chunks_left, 1) == 1) {
      end_command(s, unit);
      return true;
    }
    if (!more) return false;
    chunk = next;
  }
}

/* Called and left with the lock held. */
static void run(tl_scheduler *s, tl_work *work, tl_lane *lane, bool only_one) {
  tl_unit *unit = &s->window[work->unit % TL_WINDOW];
  if (s->ready | s->open) wake_lanes(s);
  pthread_mutex_unlock(&s->lock);
  uint64_t start = tl_clock();
  bool finished, failed = false;
  if (!work->starts) {
    finished = run_chunks(s, unit, work->chunk, only_one);
  } else if (!unit->command) {
    failed = run_in_order(s, unit, false);
    finished = true;
  } else if (begin_command(s, unit)) {
    atomic_store(&unit->next_chunk, 1);
    atomic_store(&unit->chunks_left, unit->command->chunks);
    pthread_mutex_lock(&s->lock);
    s->open |= tl_unit_bit(work->unit);
    wake_lanes(s);
    pthread_mutex_unlock(&s->lock);
    finished = run_chunks(s, unit, 0, only_one);
  } else if (unit->by_one) {
    failed = run_in_order(s, unit, false);
    finished = true;
  } else {
    end_command(s, unit);
    finished = true;
  }
  atomic_fetch_add_explicit(&lane->busy, tl_clock() - start, memory_order_relaxed);
  pthread_mutex_lock(&s->lock);
  s->active--;
  if (finished) {
    if (unit->command && !unit->by_one) failed = unit->command->failure != NULL;
    finish_unit(s, work->unit, failed);
  }
}

/* Looks, for a moment and without the lock, whether something to run turns up. */
static void spin(tl_scheduler *s, unsigned events, uint64_t issued) {
  for (uint64_t start = tl_clock(); tl_clock() - start < SPIN_TIME;) {
    for (int i = 0; i < 32; i++) {
      if (atomic_load_explicit(&s->events, memory_order_relaxed) != events ||
          atomic_load_explicit(&s->queue->published, memory_order_relaxed) > issued) {
        return;
      }
    }
  }
}

/* Whether a lane that finds nothing to take need not even look at what is published. */
static bool is_closed(const tl_scheduler *s) {
  return s->active + s->spinning >= s->limit || s->next - s->oldest == TL_WINDOW;
}

void tl_scheduler_work(tl_scheduler *s, tl_lane *lane) {
  tl_work work;
  bool rested = false; /* has spun since it last ran something */
  pthread_mutex_lock(&s->lock);
  atomic_fetch_add(&s->awake, 1);
  while (!s->stopping) {
    if (pick_any(s, &work)) {
      run(s, &work, lane, false);
      rested = false;
    } else if (!rested && !is_closed(s)) {
      unsigned events = atomic_load(&s->events);
      uint64_t issued = s->queue->issued;
      s->spinning++;
      pthread_mutex_unlock(&s->lock);
      spin(s, events, issued);
      pthread_mutex_lock(&s->lock);
      s->spinning--;
      rested = true;
    } else {
      /* Not awake first, then a look: tl_scheduler_notify's caller has published first. */
      atomic_fetch_sub(&s->awake, 1);
      if (is_closed(s) || atomic_load(&s->queue->published) == s->queue->issued) {
        s->sleeping++;
        pthread_cond_wait(&s->work, &s->lock);
        s->sleeping--;
      }
      atomic_fetch_add(&s->awake, 1);
      rested = false;
    }
  }
  atomic_fetch_sub(&s->awake, 1);
  pthread_mutex_unlock(&s->lock);
}

void tl_scheduler_notify(tl_scheduler *s, bool urgent) {
  unsigned awake = atomic_load(&s->awake);
  if (awake >= s->limit || (awake > 0 && !urgent)) return; /* one will look before it sleeps */
  pthread_mutex_lock(&s->lock);
  pthread_cond_signal(&s->work);
  pthread_mutex_unlock(&s->lock);
}

void tl_scheduler_set_limit(tl_scheduler *s, unsigned limit) {
  pthread_mutex_lock(&s->lock);
  s->limit = limit;
  pthread_cond_broadcast(&s->work);
  pthread_mutex_unlock(&s->lock);
}

static void wait_done(tl_scheduler *s) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += INTERRUPT_POLL;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  pthread_cond_timedwait(&s->done, &s->lock, &until);
}

bool tl_scheduler_help(tl_scheduler *s, tl_lane *lane, const tl_wait *wait) {
  tl_work work;
  s->frontend_waits = true; /* before the lock: a lane that lingers holds it */
  pthread_mutex_lock(&s->lock);
  bool done, rested = false;
  while (!(done = wait->reached(wait->argument)) && !(wait->interrupted && wait->interrupted())) {
    if (pick_wanted(s, wait->wanted, &work)) {
      run(s, &work, lane, true);
      rested = false;
      continue;
    }
    wake_lanes(s); /* what this thread leaves alone is for them */
    if (!rested) {
      unsigned events = atomic_load(&s->events);
      pthread_mutex_unlock(&s->lock);
      spin(s, events, UINT64_MAX);
      pthread_mutex_lock(&s->lock);
    } else {
      wait_done(s);
    }
    rested = !rested;
  }
  s->frontend_waits = false;
  pthread_mutex_unlock(&s->lock);
  return done;
}

void tl_scheduler_stop(tl_scheduler *s) {
  pthread_mutex_lock(&s->lock);
  s->stopping = true;
  pthread_cond_broadcast(&s->work);
  pthread_mutex_unlock(&s->lock);
  atomic_fetch_add(&s->events, 1);
}
