#include "engine/execute.h"

#include "engine/failure.h"

static bool is_written(const tl_operand *operand) { return operand->access & TL_WRITE; }
static bool is_overwritten(const tl_operand *operand) { return operand->access & TL_WHOLE; }

/* The oldest failure that the command's value would depend on. */
static tl_failure *inherited_failure(const tl_command *command) {
  tl_failure *oldest = NULL;
  for (int i = 0; i < command->noperands; i++) {
    tl_failure *failure = command->operands[i].storage->poison;
    if (is_overwritten(&command->operands[i]) || !failure) continue;
    if (!oldest || failure->ticket < oldest->ticket) oldest = failure;
  }
  return oldest;
}

static void poison_outputs(tl_command *command, tl_failure *failure) {
  for (int i = 0; i < command->noperands; i++) {
    tl_storage *storage = command->operands[i].storage;
    if (!is_written(&command->operands[i]) || storage->poison == failure) continue;
    tl_failure_drop(storage->poison);
    storage->poison = tl_failure_share(failure);
  }
}

/* Of several chunks that fail the first one says why, whichever was quicker: the same in every run.
 * What it replaces stays behind it as long as chunks run, which may be looking at it. */
static void fail(tl_command *command, uint32_t chunk, const tl_error *reason) {
  tl_failure *failure = tl_failure_make(command, reason), *other = atomic_load(&command->failure);
  if (failure != &tl_failure_nameless) failure->chunk = chunk;
  do {
    if (other && (other->chunk <= chunk || failure == &tl_failure_nameless)) {
      tl_failure_drop(failure);
      return;
    }
    if (failure != &tl_failure_nameless) failure->next = other;
  } while (!atomic_compare_exchange_weak(&command->failure, &other, failure));
}

/* All chunks have run. */
static void drop_replaced(tl_failure *failure) {
  if (failure == &tl_failure_nameless) return;
  for (tl_failure *later = failure->next, *next; later; later = next) {
    next = later->next;
    tl_failure_drop(later);
  }
  failure->next = NULL;
}

static tl_status allocate(tl_pool *pool, tl_command *command, tl_error *error) {
  for (int i = 0; i < command->noperands; i++) {
    tl_storage *storage = command->operands[i].storage;
    if (!is_written(&command->operands[i]) || storage->data) continue;
    if (command->operands[i].access & TL_INLINE) {
      storage->data = storage->inline_data;
    } else if (!(storage->data = tl_pool_take(pool, storage->bytes))) {
      return tl_error_set(error, TL_NO_MEMORY, "out of memory: cannot allocate %zu bytes",
                          storage->bytes);
    }
  }
  if (command->scratch_size && !(command->scratch = tl_pool_take(pool, command->scratch_size))) {
    return tl_error_set(error, TL_NO_MEMORY, "out of memory: cannot allocate %u bytes",
                        (unsigned)command->scratch_size);
  }
  return TL_OK;
}

bool tl_execute_inherits(const tl_command *command) {
  return inherited_failure(command) != NULL;
}

bool tl_execute_begin(tl_pool *pool, tl_command *command) {
  tl_failure *inherited = inherited_failure(command);
  if (inherited) {
    poison_outputs(command, inherited);
    return false;
  }
  tl_error error;
  if (command->inject_fault) {
    tl_error_set(&error, TL_FAILED, "injected failure");
    fail(command, 0, &error);
    return false;
  }
  if (allocate(pool, command, &error) != TL_OK) {
    fail(command, 0, &error);
    return false;
  }
  for (int i = 0; i < command->noperands; i++) {
    tl_operand *operand = &command->operands[i];
    if (is_overwritten(operand) && operand->storage->poison) {
      tl_failure_drop(operand->storage->poison);
      operand->storage->poison = NULL;
    }
  }
  return true;
}

void tl_execute_chunk(tl_backend *backend, tl_command *command, uint32_t chunk) {
  tl_error error;
  const tl_failure *failure = atomic_load_explicit(&command->failure, memory_order_acquire);
  if (failure && failure->chunk < chunk) return;
  if (backend->run(backend, command, chunk, &error) != TL_OK) fail(command, chunk, &error);
}

void tl_execute_end(tl_backend *backend, tl_pool *pool, tl_command *command) {
  if (command->failure) drop_replaced(command->failure);
  if (command->scratch) {
    tl_error error;
    if (!command->failure && backend->finish(backend, command, &error) != TL_OK) {
      fail(command, 0, &error);
    }
    tl_pool_give(pool, command->scratch, command->scratch_size);
    command->scratch = NULL;
  }
  if (command->failure) poison_outputs(command, command->failure);
  for (int i = 0; i < command->noperands; i++) {
    if (!is_written(&command->operands[i])) continue;
    atomic_store_explicit(&command->operands[i].storage->done, command->ticket,
                          memory_order_release);
  }
}

void tl_storage_empty(tl_storage *storage, tl_pool *pool) {
  if (storage->data && storage->data != storage->inline_data) {
    tl_pool_give(pool, storage->data, storage->bytes);
  }
  storage->data = NULL;
  tl_failure_drop(storage->poison);
  storage->poison = NULL;
  atomic_store_explicit(&storage->done, 0, memory_order_relaxed);
}

void tl_execute_command(tl_backend *backend, tl_pool *pool, tl_command *command) {
  if (command->op == TL_OP_read) return;
  if (command->op == TL_OP_release) {
    for (int i = 0; i < command->noperands; i++) {
      tl_storage *storage = command->operands[i].storage;
      if (storage) tl_storage_empty(storage, pool);
    }
    return;
  }
  if (tl_execute_begin(pool, command)) {
    for (uint32_t chunk = 0; chunk < command->chunks; chunk++) {
      tl_execute_chunk(backend, command, chunk);
    }
  }
  tl_execute_end(backend, pool, command);
}
