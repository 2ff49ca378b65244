#include "engine/pool.h"

#include <limits.h>

/* Cached buffers beyond this, and beyond what is in use, go back to the backend. */
enum { MAX_IDLE_BYTES = 128 << 20 };

/* A free buffer holds the link to the next; no buffer is smaller than a cache line. */
typedef struct tl_pool_buffer {
  struct tl_pool_buffer *next;
} tl_pool_buffer;

/* Sizes are rounded up to four classes an octave (1, 1.25, 1.5, 1.75 times a power of two), so at
 * most a fifth of a buffer is lost. */
static unsigned size_class(size_t bytes, size_t *rounded) {
  if (bytes < 64) bytes = 64;
  unsigned shift = 0;
  while ((bytes - 1) >> shift >= 8) shift++; /* 4 <= (bytes - 1) >> shift < 8 */
  size_t quarters = ((bytes - 1) >> shift) + 1;
  *rounded = quarters << shift;
  return 4 * shift + (unsigned)quarters - 5;
}

void tl_pool_init(tl_pool *pool, tl_backend *backend) {
  *pool = (tl_pool){.backend = backend};
  pthread_mutex_init(&pool->lock, NULL);
}

/* The class with free buffers that has been left alone for longest; there must be one. */
static unsigned stalest_class(const tl_pool *pool) {
  unsigned stalest = TL_POOL_CLASSES;
  for (unsigned class = 0; class < TL_POOL_CLASSES; class++) {
    if (!pool->free[class]) continue;
    if (stalest == TL_POOL_CLASSES || pool->touched[class] < pool->touched[stalest]) {
      stalest = class;
    }
  }
  return stalest;
}

/* Sizes that are in use keep their buffers: a new one costs more in page faults than most
 * operations on it. */
static void drop_cached(tl_pool *pool, size_t keep) {
  while (pool->cached > keep) {
    unsigned class = stalest_class(pool);
    tl_pool_buffer *buffer = pool->free[class];
    size_t rounded = (size_t)(class % 4 + 5) << class / 4;
    pool->free[class] = buffer->next;
    pool->cached -= rounded;
    pool->backend->release(pool->backend, buffer, rounded);
  }
}

void tl_pool_destroy(tl_pool *pool) {
  drop_cached(pool, 0);
  pthread_mutex_destroy(&pool->lock);
}

void tl_pool_trim(tl_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  drop_cached(pool, 0);
  pthread_mutex_unlock(&pool->lock);
}

void *tl_pool_take(tl_pool *pool, size_t bytes) {
  size_t rounded;
  unsigned class = size_class(bytes, &rounded);
  pthread_mutex_lock(&pool->lock);
  pool->touched[class] = ++pool->clock;
  tl_pool_buffer *buffer = pool->free[class];
  if (buffer) {
    pool->free[class] = buffer->next;
    pool->cached -= rounded;
  }
  pool->used += rounded;
  if (pool->used + pool->cached > pool->peak) pool->peak = pool->used + pool->cached;
  pthread_mutex_unlock(&pool->lock);
  if (buffer) return buffer;

  void *fresh = pool->backend->allocate(pool->backend, rounded);
  if (fresh) return fresh;
  tl_pool_trim(pool); /* other sizes may hold what is missing */
  fresh = pool->backend->allocate(pool->backend, rounded);
  if (!fresh) {
    pthread_mutex_lock(&pool->lock);
    pool->used -= rounded;
    pthread_mutex_unlock(&pool->lock);
  }
  return fresh;
}

void tl_pool_give(tl_pool *pool, void *buffer, size_t bytes) {
  size_t rounded;
  unsigned class = size_class(bytes, &rounded);
  pthread_mutex_lock(&pool->lock);
  tl_pool_buffer *link = buffer;
  pool->touched[class] = ++pool->clock;
  link->next = pool->free[class];
  pool->free[class] = link;
  pool->used -= rounded;
  pool->cached += rounded;
  if (pool->cached > MAX_IDLE_BYTES && pool->cached > pool->used) {
    drop_cached(pool, pool->used > MAX_IDLE_BYTES ? pool->used : MAX_IDLE_BYTES);
  }
  pthread_mutex_unlock(&pool->lock);
}
