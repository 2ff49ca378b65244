/* What a backend implements: a struct of functions, and itself as their context.
 *
 * plan() is called by the frontend as it enqueues and must be quick; run() and finish() are called
 * by the engine's threads, several at a time, each for another chunk or another command. */
#ifndef TL_ENGINE_BACKEND_H
#define TL_ENGINE_BACKEND_H

#include "engine/command.h"
#include "tensor/status.h"

typedef struct tl_plan {
  uint32_t chunks;      /* at least 1; depends on the command only, never on threads or timing */
  float cost;           /* nanoseconds on one core, roughly */
  uint32_t scratch_size; /* bytes that the command needs while it runs, shared by its chunks */
} tl_plan;

typedef struct tl_backend {
  const char *device; /* "cpu" */

  void (*plan)(struct tl_backend *self, const tl_command *command, tl_plan *plan);

  /* Runs chunk 0 .. chunks-1; what a chunk writes no other chunk touches. */
  tl_status (*run)(struct tl_backend *self, const tl_command *command, uint32_t chunk,
                   tl_error *error);

  /* Runs once after the last chunk of a command that asked for scratch. */
  tl_status (*finish)(struct tl_backend *self, const tl_command *command, tl_error *error);

  /* Device memory, aligned to 64 bytes; allocate() gives NULL when there is none. */
  void *(*allocate)(struct tl_backend *self, size_t bytes);
  void (*release)(struct tl_backend *self, void *buffer, size_t bytes);
} tl_backend;

#endif
