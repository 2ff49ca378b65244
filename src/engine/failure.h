/* Failures: why an operation that was already queued did not give its value.
 *
 * One is made when a command fails, and shared by every storage that depends on it. */
#ifndef TL_ENGINE_FAILURE_H
#define TL_ENGINE_FAILURE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "engine/command.h"
#include "tensor/status.h"

typedef struct tl_failure {
  atomic_int references;
  bool seen;               /* the frontend's: it was raised */
  uint64_t ticket;         /* of the command that failed */
  uint32_t chunk;          /* of it */
  struct tl_failure *next; /* in the list of retired failures, in program order; before that, of a
                              later chunk of the command, for which this one stands */
  tl_error error;
} tl_failure;

/* Stands for a failure that there was no memory to describe.  It may be shared by many commands at
 * once, so it is in no list. */
extern tl_failure tl_failure_nameless;

/* A failure of `command` because of `reason`, with one reference: its text names the operation and
 * where it was enqueued.  The nameless one when there is no memory for it. */
tl_failure *tl_failure_make(const tl_command *command, const tl_error *reason);
tl_failure *tl_failure_say(const char *sentence); /* the same for no command, with this text */
tl_failure *tl_failure_share(tl_failure *failure);
void tl_failure_drop(tl_failure *failure); /* NULL is allowed */

#endif
