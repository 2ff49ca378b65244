/* The queue: a ring of commands of any size, with one producer.
 *
 * Positions are bytes since the beginning and only grow; four of them move through the ring:
 *     reclaimed <= retired <= issued <= published <= head
 * The producer writes at the head and publishes in batches, because handing a cache line to another
 * core costs far more than writing it.  The scheduler issues, in order, and retires, in order.  The
 * producer reclaims what has retired: the storages that it released, and the room. */
#ifndef TL_ENGINE_QUEUE_H
#define TL_ENGINE_QUEUE_H

#include <stdalign.h>
#include <stdatomic.h>

#include "engine/command.h"

enum { TL_QUEUE_ALIGNMENT = 64 };

typedef struct tl_queue {
  char *ring;
  size_t capacity; /* bytes, a power of two */

  /* the producer's */
  uint64_t head, reclaimed;
  uint64_t end; /* behind the last command; the head may already be past padding */

  alignas(64) _Atomic uint64_t published;
  alignas(64) _Atomic uint64_t issued; /* written by the scheduler, under its lock */
  alignas(64) _Atomic uint64_t retired;
  _Atomic uint64_t retired_ticket;
} tl_queue;

tl_status tl_queue_init(tl_queue *queue, size_t capacity, tl_error *error);
void tl_queue_destroy(tl_queue *queue);

/* Room for a command of `size` bytes at the head (which is moved past padding), or NULL when what
 * has been reclaimed does not suffice.  tl_queue_append then takes it in. */
tl_command *tl_queue_reserve(tl_queue *queue, size_t size);
void tl_queue_append(tl_queue *queue, tl_command *command);

/* Makes the unpublished command at the head `size` bytes large in place; false when it cannot. */
bool tl_queue_extend(tl_queue *queue, tl_command *command, size_t size);

/* The command at `*position`, which is moved past padding first; there must be one before `end`,
 * else NULL. */
tl_command *tl_queue_at(const tl_queue *queue, uint64_t *position, uint64_t end);

#endif
