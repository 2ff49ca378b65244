/* Commands: what the frontend enqueues and a backend runs.
 *
 * A command lies in the queue's ring in one piece: this struct, its operands, their shapes and
 * strides, its parameters.  It says which storages it reads and writes, and nothing else orders it
 * among the others. */
#ifndef TL_ENGINE_COMMAND_H
#define TL_ENGINE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/storage.h"
#include "tensor/op.h"
#include "tensor/view.h"

enum {
  TL_READ = 1,
  TL_WRITE = 2, /* with TL_READ: some elements of the operand, in an order of its own */
  TL_WHOLE = 4, /* with TL_WRITE: every byte of the storage is written and none is read before, so
                   that what it held (an error, perhaps) no longer matters */
  TL_FRESH = 8, /* with TL_WHOLE: the storage is new, nothing has seen it before */
  TL_INLINE = 16, /* set by the engine: the storage needs no buffer; its size, which would say so
                     too, lies in the frontend's cache line */
};

typedef struct tl_operand {
  tl_storage *storage;
  int64_t offset;               /* elements */
  const int64_t *shape, *stride; /* `ndim` of each */
  uint8_t dtype, ndim, access;
} tl_operand;

typedef struct tl_command {
  uint32_t size; /* bytes in the ring, all told */
  uint16_t op;   /* tl_op; TL_OP_none pads the ring's end */
  uint8_t noperands;
  bool inject_fault; /* fails instead of running (fault.h) */
  uint32_t chunks;   /* pieces that can run at the same time; set by the backend's plan */
  float cost;        /* nanoseconds on one core, estimated by the backend's plan */
  uint64_t ticket;   /* counts the operations before it, itself included; releases do not count */
  const char *source; /* where it was enqueued; outlives the engine */
  int32_t line;
  uint32_t scratch_size;
  const void *parameters;
  void *scratch;              /* `scratch_size` bytes while it runs */
  _Atomic(struct tl_failure *) failure; /* why it failed by itself, when it did */
  tl_operand operands[];
} tl_command;

static inline void *tl_operand_address(const tl_operand *operand) {
  return (char *)operand->storage->data +
         operand->offset * (int64_t)tl_dtype_size((tl_dtype)operand->dtype);
}

static inline int64_t tl_operand_numel(const tl_operand *operand) {
  int64_t count = 1;
  for (int d = 0; d < operand->ndim; d++) count *= operand->shape[d];
  return count;
}

#endif
