/* The scheduler: turns commands into units, and runs each when its operands are ready.
 *
 * It works like an out-of-order processor.  A window of 64 units is in flight.  Commands are issued
 * into it in order: a large command is a unit, a run of small ones becomes one (a bundle), since it
 * is the hand-over that costs.  A unit waits for the units whose results it reads or overwrites; a
 * storage keeps them as a bit mask of the window, so a hazard is a bit and nothing is allocated.
 * Ready units run on any lane, the oldest first; a large one is taken chunk by chunk by every free
 * lane.  Finished units retire in order, which makes errors precise and frees the ring in order.
 *
 * One lock guards it all.  There is no scheduler thread: whichever lane has nothing to run issues
 * the next commands. */
#ifndef TL_ENGINE_SCHEDULER_H
#define TL_ENGINE_SCHEDULER_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/backend.h"
#include "engine/failure.h"
#include "engine/fusion.h"
#include "engine/pool.h"
#include "engine/queue.h"

enum { TL_WINDOW = 64 };

typedef struct tl_unit {
  uint64_t begin, end; /* positions in the queue */
  uint64_t waits;      /* units that must finish first */
  uint64_t ticket;     /* of its last command */
  bool failed;         /* one of its commands has a failure of its own */
  tl_command *command; /* when it is taken in chunks, else NULL */
  bool fused;          /* the command stands for those between begin and end (fusion.h) */
  bool by_one;         /* but they were run one by one, since an input had failed */
  struct tl_recipe *recipe; /* that it computes, or NULL */
  atomic_uint next_chunk, chunks_left;
} tl_unit;

typedef struct tl_scheduler {
  tl_queue *queue;
  tl_backend *backend;
  tl_pool *pool;

  pthread_mutex_t lock;
  pthread_cond_t work; /* lanes wait here for something to run */
  pthread_cond_t done; /* the frontend waits here for something to finish */
  tl_unit window[TL_WINDOW];
  tl_fused *fused;                          /* TL_WINDOW of them: the commands of fused units */
  tl_fusion fusion;
  bool settling; /* recipes that keep released storages are to be computed */
  uint64_t oldest, next;                    /* units oldest .. next-1 are in flight */
  uint64_t last_ticket;                     /* of the last command issued */
  uint64_t waiting, ready, open, finished; /* by window slot; open: chunks are there to take */
  atomic_uint limit;           /* lanes that may run now */
  unsigned active;             /* lanes that do */
  unsigned spinning, sleeping; /* lanes that look for work, and that wait on `work` */
  atomic_bool frontend_waits;
  bool stopping;
  tl_failure *failures; /* retired and perhaps not seen, in program order */
  int nfailures;
  bool nameless_failure;                /* one retired that there was no memory to describe */

  alignas(64) atomic_uint awake; /* lanes that run, or that will look for work before they sleep */
  atomic_uint events;            /* changes when there is something new to run */
} tl_scheduler;

/* Time spent running commands, of one thread that may run them. */
typedef struct tl_lane {
  alignas(64) _Atomic uint64_t busy; /* nanoseconds */
} tl_lane;

tl_status tl_scheduler_init(tl_scheduler *scheduler, tl_queue *queue, tl_backend *backend,
                            tl_pool *pool, bool fusion, tl_error *error);
void tl_scheduler_destroy(tl_scheduler *scheduler);

/* A worker's life: runs what is ready until `stopping` is set. */
void tl_scheduler_work(tl_scheduler *scheduler, tl_lane *lane);

/* The frontend's wait: this thread runs commands too, until reached(argument) or interrupted() is
 * true (interrupted may be NULL).  Returns whether it was reached, which is asked under the lock.
 * When it is the value of a storage that is wanted, the thread runs only what that depends on, so
 * that nothing else can keep it; NULL: anything. */
typedef struct tl_wait {
  bool (*reached)(const void *argument);
  const void *argument;
  const tl_storage *wanted;
  bool (*interrupted)(void);
} tl_wait;

bool tl_scheduler_help(tl_scheduler *scheduler, tl_lane *lane, const tl_wait *wait);

/* After commands were published: wakes a lane when none is awake; `urgent`: also when one more may
 * run, since those that are awake do not keep up. */
void tl_scheduler_notify(tl_scheduler *scheduler, bool urgent);

/* How many lanes may run at once. */
void tl_scheduler_set_limit(tl_scheduler *scheduler, unsigned limit);

void tl_scheduler_stop(tl_scheduler *scheduler); /* lanes leave tl_scheduler_work soon */

uint64_t tl_clock(void); /* nanoseconds, monotonic */

/* ---- between scheduler.c and issue.c, under the lock ---- */

/* Makes published commands into units until there is enough for every lane that may run, or until
 * the command of a ticket is among them. */
void tl_scheduler_issue(tl_scheduler *scheduler);
void tl_scheduler_issue_to(tl_scheduler *scheduler, uint64_t ticket);

static inline uint64_t tl_unit_bit(uint64_t unit) { return (uint64_t)1 << unit % TL_WINDOW; }

static inline unsigned tl_count_bits(uint64_t mask) {
  unsigned count = 0;
  for (; mask; mask &= mask - 1) count++;
  return count;
}

#endif
