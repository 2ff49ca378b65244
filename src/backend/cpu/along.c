#include "backend/cpu/along.h"

#include <stdlib.h>

#include "backend/cpu/system.h"

int64_t tl_line_count(const tl_operand *operand) {
  int64_t count = 1;
  for (int d = 0; d < operand->ndim - 1; d++) count *= operand->shape[d];
  return count;
}

bool tl_lines_are_across(const tl_operand *operand) {
  enum { LEAST = 8 }; /* lines beside each other */
  int last = operand->ndim - 1;
  if (last < 1 || operand->shape[last - 1] < LEAST) return false;
  int64_t across = operand->stride[last - 1], along = operand->stride[last];
  return llabs(across) < llabs(along);
}

tl_column tl_column_of(const tl_operand *operand, int64_t line) {
  int last = operand->ndim - 1;
  int64_t size = (int64_t)tl_dtype_size((tl_dtype)operand->dtype);
  tl_view lines = {.ndim = (uint8_t)last};
  for (int d = 0; d < last; d++) {
    lines.shape[d] = operand->shape[d];
    lines.stride[d] = operand->stride[d];
  }
  return (tl_column){(char *)tl_operand_address(operand) + tl_view_element(&lines, line) * size,
                     operand->stride[last] * size, operand->stride[last - 1]};
}

static char *in_place(const tl_operand *operand, tl_dtype dtype, int64_t first) {
  if (operand->dtype != dtype || !tl_operand_is_contiguous(operand)) return NULL;
  return (char *)tl_operand_address(operand) + (size_t)first * tl_dtype_size(dtype);
}

/* How many elements are loaded or stored at once. */
static int64_t piece_of(const tl_operand *operand, tl_dtype dtype, int64_t count) {
  return operand->dtype == dtype || count < TL_BLOCK ? count : TL_BLOCK;
}

const void *tl_elements(const tl_cpu *cpu, const tl_operand *operand, tl_dtype dtype, int64_t first,
                        int64_t count, void *buffer) {
  const void *place = in_place(operand, dtype, first);
  if (place) return place;
  size_t size = tl_dtype_size(dtype);
  for (int64_t at = 0, n; at < count; at += n) {
    n = piece_of(operand, dtype, count - at);
    tl_load_block(cpu, (char *)buffer + (size_t)at * size, dtype, operand, first + at, n);
  }
  return buffer;
}

void *tl_elements_target(const tl_operand *operand, tl_dtype dtype, int64_t first, void *buffer) {
  void *place = in_place(operand, dtype, first);
  return place ? place : buffer;
}

void tl_elements_store(const tl_cpu *cpu, const tl_operand *operand, tl_dtype dtype, int64_t first,
                       int64_t count, const void *target) {
  if (in_place(operand, dtype, first)) return;
  size_t size = tl_dtype_size(dtype);
  for (int64_t at = 0, n; at < count; at += n) {
    n = piece_of(operand, dtype, count - at);
    tl_store_block(cpu, operand, first + at, n, (const char *)target + (size_t)at * size, dtype,
                   false);
  }
}

void tl_work_plan(tl_plan *plan, size_t bytes) {
  if (plan->chunks == 1 && bytes <= UINT32_MAX) plan->scratch_size = (uint32_t)bytes;
}

void *tl_work_take(const tl_command *command, size_t bytes, tl_error *error) {
  if (command->scratch) return command->scratch;
  void *work = tl_cpu_allocate(bytes ? bytes : 1);
  if (!work) {
    tl_error_set(error, TL_NO_MEMORY, "out of memory: cannot allocate %zu bytes", bytes);
  }
  return work;
}

void tl_work_give(const tl_command *command, void *work) {
  if (work != command->scratch) free(work);
}

void tl_along_plan(const tl_command *command, tl_plan *plan) {
  switch (command->op) {
    case TL_OP_cumsum:
    case TL_OP_cumprod:
    case TL_OP_cummax:
    case TL_OP_cummin:
    case TL_OP_logcumsumexp: tl_scan_plan(command, plan); break;
    case TL_OP_searchsorted:
    case TL_OP_isin: tl_search_plan(command, plan); break;
    case TL_OP_bincount:
    case TL_OP_histc:
    case TL_OP_one_hot:
    case TL_OP_unique:
    case TL_OP_unique_consecutive: tl_count_plan(command, plan); break;
    default: tl_sort_plan(command, plan);
  }
}

tl_status tl_along_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                       tl_error *error) {
  switch (command->op) {
    case TL_OP_cumsum:
    case TL_OP_cumprod:
    case TL_OP_cummax:
    case TL_OP_cummin:
    case TL_OP_logcumsumexp: tl_scan_run(cpu, command, chunk); return TL_OK;
    case TL_OP_searchsorted:
    case TL_OP_isin: tl_search_run(cpu, command, chunk); return TL_OK;
    case TL_OP_bincount:
    case TL_OP_histc:
    case TL_OP_one_hot:
    case TL_OP_unique:
    case TL_OP_unique_consecutive: return tl_count_run(cpu, command, chunk, error);
    default: return tl_sort_run(cpu, command, chunk, error);
  }
}
