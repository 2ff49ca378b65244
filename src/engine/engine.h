/* The engine: takes commands from one thread, runs them on its own, and tells when a value is
 * there.
 *
 * All functions are for the one thread that made the engine (the frontend), and none but those that
 * say so waits.  Errors come as a tl_status and a sentence. */
#ifndef TL_ENGINE_ENGINE_H
#define TL_ENGINE_ENGINE_H

#include "engine/backend.h"

typedef struct tl_engine tl_engine;

typedef struct tl_engine_options {
  tl_backend *backend;
  int threads;             /* lanes, the waiting frontend counted in; at least 1 */
  bool synchronous;        /* each command runs to its end before tl_engine_submit returns */
  bool fusion;             /* element-wise commands are joined (fusion.h) */
  size_t memory;           /* budget in bytes for all storages; 0: no bound */
  const char *faults;      /* see fault.h; may be NULL */
  bool (*interrupted)(void); /* asked while waiting; may be NULL */
} tl_engine_options;

/* The threads start with the first command. */
tl_status tl_engine_open(tl_engine **engine, const tl_engine_options *options, tl_error *error);

/* Stops the threads after the commands that they are running, frees every storage, and the engine.
 * What is still queued does not run: drain first if it should. */
void tl_engine_close(tl_engine *engine);

int tl_engine_threads(const tl_engine *engine);

/* Waits for everything and goes on with another number of lanes. */
tl_status tl_engine_set_threads(tl_engine *engine, int threads, tl_error *error);

/* Waits for everything and switches fusion on or off. */
tl_status tl_engine_set_fusion(tl_engine *engine, bool fusion, tl_error *error);

/* A storage without value, with one handle.  May wait until the budget allows it; TL_NO_MEMORY when
 * it does not even after everything queued has run. */
tl_status tl_engine_storage(tl_engine *engine, size_t bytes, tl_storage **storage, tl_error *error);

/* The bytes of a new storage, for the caller to write before any command uses it.  NULL: none. */
void *tl_engine_fill(tl_engine *engine, tl_storage *storage);

/* Gives a storage that no command has used this sentence as its failure. */
void tl_engine_poison(tl_storage *storage, const char *sentence);

void tl_storage_retain(tl_storage *storage); /* one more handle */

/* One handle less.  With the last one the storage is released, in program order.  May wait for
 * room; never fails. */
void tl_engine_drop(tl_engine *engine, tl_storage *storage);

/* What tl_engine_submit copies into the queue.  The operands that are written come first. */
typedef struct tl_draft {
  tl_op op;
  int noperands;
  const tl_operand *operands;
  const void *parameters;
  size_t parameters_size; /* bytes */
  const char *source;     /* outlives the engine */
  int line;
} tl_draft;

enum { TL_MAX_OPERANDS = 10 };

/* Enqueues.  Waits only when the queue is full, or when the engine is synchronous. */
tl_status tl_engine_submit(tl_engine *engine, const tl_draft *draft, tl_error *error);

/* Whether the last write to the storage has run (or failed).  Starts it if it was held back. */
bool tl_engine_is_ready(tl_engine *engine, tl_storage *storage);

/* Waits until the value is there: TL_OK, or its failure, or TL_INTERRUPTED.  After TL_OK
 * storage->data can be read until the next command that writes it is submitted. */
tl_status tl_engine_wait(tl_engine *engine, tl_storage *storage, tl_error *error);

/* Waits for everything, and gives the first failure in program order that nobody has seen. */
tl_status tl_engine_drain(tl_engine *engine, tl_error *error);

/* The frontend is about to wait for something else (input, another process), or is back: meanwhile
 * its core is free for the lanes. */
void tl_engine_away(tl_engine *engine, bool away);

typedef struct tl_engine_counters {
  uint64_t enqueued, retired; /* operations; releases do not count */
  uint64_t blocked;           /* nanoseconds that the frontend has waited */
  uint64_t busy;              /* nanoseconds of all lanes, the waiting frontend's included */
  size_t reserved;            /* bytes of all storages not yet released by the engine */
  size_t used, pooled;        /* bytes of buffers: of values, and kept for the next ones */
  size_t peak;                /* bytes: the most that both have been */
  size_t virtual_bytes;       /* bytes that values without a buffer would take (fusion.h) */
  size_t budget;              /* bytes; 0: none */
} tl_engine_counters;

void tl_engine_count(tl_engine *engine, tl_engine_counters *counters);

/* Gives pooled buffers back to the system. */
void tl_engine_trim(tl_engine *engine);

#endif
