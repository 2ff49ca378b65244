/* Storages: bytes on a device, with two owners who never share a field.
 *
 * The frontend (one thread) counts handles.  The engine keeps the scheduling state, under the
 * scheduler's lock, and what the hazards protect: whichever unit may write a storage now is the
 * only one that touches these fields. */
#ifndef TL_ENGINE_STORAGE_H
#define TL_ENGINE_STORAGE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TL_INLINE_BYTES = 64 }; /* a storage this small needs no buffer */

typedef struct tl_storage {
  /* the frontend's */
  size_t bytes;
  uint32_t handles;
  uint32_t slot;           /* in the trace that used it last (frontend/trace.c) */
  bool queued;             /* some command has it as an operand */
  uint64_t last_write;     /* ticket of the last command that writes it; 0: none yet */
  uint64_t asked_for;      /* the last_write for which a command `read` was enqueued */
  struct tl_storage *next; /* in the list of free ones */

  /* the scheduler's: units in flight that read it since its last write, and the one that writes */
  alignas(64) uint64_t readers;
  uint64_t writer;
  struct tl_recipe *recipe; /* of a virtual value (fusion.h) */
  struct tl_hold *holds;    /* recipes that read it */

  /* protected by the hazards */
  struct tl_failure *poison; /* why its value does not exist, or NULL */
  void *data;                /* NULL until the first write runs */
  _Atomic uint64_t done;     /* ticket of the last write that has run; released to the frontend */
  char inline_data[TL_INLINE_BYTES]; /* its beginning shares the cache line above */

  bool kept; /* the scheduler's too: released, and kept for the recipes that read it */
} tl_storage;

#endif
