#include "engine/queue.h"

#include <stdlib.h>
#include <string.h>

static size_t round_up(size_t size) {
  return (size + TL_QUEUE_ALIGNMENT - 1) / TL_QUEUE_ALIGNMENT * TL_QUEUE_ALIGNMENT;
}

static tl_command *command_at(const tl_queue *queue, uint64_t position) {
  return (tl_command *)(void *)(queue->ring + (position & (queue->capacity - 1)));
}

tl_status tl_queue_init(tl_queue *queue, size_t capacity, tl_error *error) {
  memset(queue, 0, sizeof *queue);
  queue->ring = aligned_alloc(TL_QUEUE_ALIGNMENT, capacity);
  if (!queue->ring) return tl_error_set(error, TL_NO_MEMORY, "no memory for the queue");
  queue->capacity = capacity;
  return TL_OK;
}

void tl_queue_destroy(tl_queue *queue) {
  free(queue->ring);
  queue->ring = NULL;
}

static bool has_room(const tl_queue *queue, size_t size) {
  return queue->head + size - queue->reclaimed <= queue->capacity;
}

tl_command *tl_queue_reserve(tl_queue *queue, size_t size) {
  size = round_up(size);
  size_t to_end = queue->capacity - (queue->head & (queue->capacity - 1));
  if (size > to_end) {
    if (!has_room(queue, to_end + size)) return NULL;
    tl_command *padding = command_at(queue, queue->head);
    padding->size = (uint32_t)to_end;
    padding->op = TL_OP_none;
    queue->head += to_end;
  }
  if (!has_room(queue, size)) return NULL;
  tl_command *command = command_at(queue, queue->head);
  command->size = (uint32_t)size;
  return command;
}

void tl_queue_append(tl_queue *queue, tl_command *command) {
  queue->head += command->size;
  queue->end = queue->head;
}

bool tl_queue_extend(tl_queue *queue, tl_command *command, size_t size) {
  size_t larger = round_up(size);
  if (larger <= command->size) return true;
  if (queue->head != queue->end) return false;
  size_t more = larger - command->size;
  size_t at = queue->head & (queue->capacity - 1);
  if (at == 0 || at + more > queue->capacity || !has_room(queue, more)) return false;
  command->size = (uint32_t)larger;
  queue->head += more;
  queue->end = queue->head;
  return true;
}

tl_command *tl_queue_at(const tl_queue *queue, uint64_t *position, uint64_t end) {
  if (*position >= end) return NULL;
  tl_command *command = command_at(queue, *position);
  if (command->op == TL_OP_none) {
    *position += command->size;
    if (*position >= end) return NULL;
    command = command_at(queue, *position);
  }
  return command;
}
