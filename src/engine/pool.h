/* The pool: device buffers that are used again while they are still warm in cache. */
#ifndef TL_ENGINE_POOL_H
#define TL_ENGINE_POOL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/backend.h"

enum { TL_POOL_CLASSES = 4 * 64 };

typedef struct tl_pool {
  tl_backend *backend;
  pthread_mutex_t lock;
  struct tl_pool_buffer *free[TL_POOL_CLASSES]; /* stacks: the last one given is taken first */
  uint64_t touched[TL_POOL_CLASSES];            /* `clock` when last taken from or given to */
  uint64_t clock;                               /* counts both */
  size_t used, cached, peak;                    /* bytes; peak: the most of both together */
} tl_pool;

void tl_pool_init(tl_pool *pool, tl_backend *backend);
void tl_pool_destroy(tl_pool *pool); /* returns the cached buffers to the backend */

/* Returns the cached buffers to the backend.  Any thread. */
void tl_pool_trim(tl_pool *pool);

/* A buffer of at least `bytes`, or NULL; give it back with the same number.  Any thread. */
void *tl_pool_take(tl_pool *pool, size_t bytes);
void tl_pool_give(tl_pool *pool, void *buffer, size_t bytes);

#endif
