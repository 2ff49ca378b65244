#include "engine/failure.h"

#include <stdlib.h>

tl_failure tl_failure_nameless = {
    .references = 1,
    .ticket = UINT64_MAX, /* of two failures the one with a name is told */
    .error = {TL_NO_MEMORY, "an operation failed, and there is no memory left to say which"},
};

/* With no text yet; NULL when there is no memory. */
static tl_failure *make(uint64_t ticket) {
  tl_failure *failure = malloc(sizeof *failure);
  if (!failure) return NULL;
  atomic_init(&failure->references, 1);
  failure->seen = false;
  failure->ticket = ticket;
  failure->chunk = 0;
  failure->next = NULL;
  return failure;
}

tl_failure *tl_failure_make(const tl_command *command, const tl_error *reason) {
  tl_failure *failure = make(command->ticket);
  if (!failure) return tl_failure_share(&tl_failure_nameless);
  tl_error_set(&failure->error, reason->status, "%s: %.380s (queued at %.80s:%d)",
               tl_ops[command->op].name, reason->text, command->source ? command->source : "?",
               (int)command->line);
  return failure;
}

tl_failure *tl_failure_say(const char *sentence) {
  tl_failure *failure = make(0);
  if (!failure) return tl_failure_share(&tl_failure_nameless);
  tl_error_set(&failure->error, TL_INVALID, "%s", sentence);
  return failure;
}

tl_failure *tl_failure_share(tl_failure *failure) {
  atomic_fetch_add_explicit(&failure->references, 1, memory_order_relaxed);
  return failure;
}

void tl_failure_drop(tl_failure *failure) {
  if (failure && atomic_fetch_sub_explicit(&failure->references, 1, memory_order_acq_rel) == 1) {
    free(failure);
  }
}
