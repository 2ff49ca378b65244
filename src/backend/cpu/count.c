/* Counting: bincount, histc, one_hot, and the groups of equal elements that unique gives. */
#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "backend/cpu/along.h"

/* What bincount and histc count in. */
static tl_dtype counter_dtype(const tl_command *command) {
  return command->noperands > 2 ? TL_float64 : TL_int64; /* with weights or without */
}

/* The counters' memory, unless they are the result itself. */
static size_t counter_bytes(const tl_command *command) {
  const tl_operand *out = &command->operands[0];
  bool counts = command->op == TL_OP_bincount || command->op == TL_OP_histc;
  if (!counts || out->dtype == counter_dtype(command)) return 0;
  return (size_t)tl_operand_numel(out) * sizeof(tl_scalar);
}

void tl_count_plan(const tl_command *command, tl_plan *plan) {
  const tl_operand *in = &command->operands[command->op == TL_OP_unique ? 4 : 1];
  int64_t numel = tl_operand_numel(in);
  plan->cost = 50 + 3 * (float)numel;
  if (command->op == TL_OP_one_hot) {
    plan->chunks = tl_chunks_of(tl_operand_numel(&command->operands[0]));
  }
  tl_work_plan(plan, counter_bytes(command));
}

/* Operand 0 (n counters) of operand 1 (indices from 1), weighed by operand 2 if there is one. */
static tl_status count_bins(const tl_cpu *cpu, const tl_command *command, tl_scalar *counters,
                            tl_error *error) {
  const tl_operand *out = &command->operands[0], *in = &command->operands[1];
  const tl_operand *weights = command->noperands > 2 ? &command->operands[2] : NULL;
  int64_t bins = tl_operand_numel(out), numel = tl_operand_numel(in), index_block[TL_BLOCK];
  double weight_block[TL_BLOCK];
  for (int64_t at = 0, n; at < numel; at += n) {
    n = numel - at < TL_BLOCK ? numel - at : TL_BLOCK;
    const int64_t *index = tl_elements(cpu, in, TL_int64, at, n, index_block);
    const double *weight = NULL;
    if (weights) weight = tl_elements(cpu, weights, TL_float64, at, n, weight_block);
    for (int64_t i = 0; i < n; i++) {
      if (index[i] < 1 || index[i] > bins) {
        return tl_error_set(error, TL_INVALID, "%lld is not the index of a bin from 1 to %lld",
                            (long long)index[i], (long long)bins);
      }
      if (weight) {
        counters[index[i] - 1].real += weight[i];
      } else {
        counters[index[i] - 1].integer++;
      }
    }
  }
  return TL_OK;
}

/* The least and the largest of the values; false when they are not all finite. */
static bool find_range(const tl_cpu *cpu, const tl_operand *in, double *low, double *high) {
  alignas(64) double block[TL_BLOCK];
  const tl_reduce_kernels *kernels = cpu->kernels->reduce;
  int64_t numel = tl_operand_numel(in);
  for (int64_t at = 0, n; at < numel; at += n) {
    n = numel - at < TL_BLOCK ? numel - at : TL_BLOCK;
    const double *x = tl_elements(cpu, in, TL_float64, at, n, block);
    double least = kernels->min[TL_float64](x, (size_t)n).real;
    double most = kernels->max[TL_float64](x, (size_t)n).real;
    if (!(most - least < HUGE_VAL)) return false;
    if (at == 0 || least < *low) *low = least;
    if (at == 0 || most > *high) *high = most;
  }
  return true;
}

/* Operand 0 (n counters) of operand 1: bins of equal width, the last one with its end. */
static tl_status count_histogram(const tl_cpu *cpu, const tl_command *command,
                                 tl_scalar *counters, tl_error *error) {
  const tl_along *parameters = command->parameters;
  const tl_operand *out = &command->operands[0], *in = &command->operands[1];
  alignas(64) double block[TL_BLOCK];
  int64_t bins = tl_operand_numel(out), numel = tl_operand_numel(in);
  double low = parameters->low, high = parameters->high;
  if (low == high && numel > 0 && !find_range(cpu, in, &low, &high)) {
    return tl_error_set(error, TL_INVALID,
                        "the values are not all finite: give the range of the bins");
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  double most = (double)bins, width = high - low;
  bool overflows = !isfinite(width * most);
  for (int64_t at = 0, n; at < numel; at += n) {
    n = numel - at < TL_BLOCK ? numel - at : TL_BLOCK;
    const double *x = tl_elements(cpu, in, TL_float64, at, n, block);
    for (int64_t i = 0; i < n; i++) {
      if (!(x[i] >= low && x[i] <= high)) continue;
      double bin = overflows ? (x[i] - low) / width * most : (x[i] - low) * most / width;
      counters[bin < most ? (int64_t)bin : bins - 1].integer++;
    }
  }
  return TL_OK;
}

/* Operand 0 has a line (contiguous int64) for each element of operand 1. */
static tl_status mark_classes(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                              tl_error *error) {
  const tl_operand *out = &command->operands[0], *in = &command->operands[1];
  int64_t classes = tl_line_size(out), numel = tl_operand_numel(in), index_block[TL_BLOCK];
  int64_t per_chunk = (numel + command->chunks - 1) / command->chunks;
  int64_t first = per_chunk * chunk, end = first + per_chunk < numel ? first + per_chunk : numel;
  int64_t *line = (int64_t *)tl_operand_address(out) + first * classes;
  for (int64_t at = first, n; at < end; at += n) {
    n = end - at < TL_BLOCK ? end - at : TL_BLOCK;
    const int64_t *index = tl_elements(cpu, in, TL_int64, at, n, index_block);
    for (int64_t i = 0; i < n; i++, line += classes) {
      if (index[i] < 1 || index[i] > classes) {
        return tl_error_set(error, TL_INVALID, "%lld is not a class from 1 to %lld",
                            (long long)index[i], (long long)classes);
      }
      memset(line, 0, (size_t)classes * sizeof *line);
      line[index[i] - 1] = 1;
    }
  }
  return TL_OK;
}

/* Runs of equal elements of operand 4 (one line, contiguous): their values (0), the number of its
 * run for each element (1), how long each is (2), how many there are (3).  Operand 5, if it is
 * there, says where the elements were before they were sorted.  nan equals nothing. */
static void find_groups(const tl_cpu *cpu, const tl_command *command) {
  const tl_operand *operands = command->operands, *in = &operands[4];
  int64_t numel = tl_operand_numel(in), groups = 0;
  int64_t *group_of = tl_operand_address(&operands[1]), *counts = tl_operand_address(&operands[2]);
  const int64_t *places = command->noperands > 5 ? tl_operand_address(&operands[5]) : NULL;
  tl_dtype dtype = tl_dtype_is_floating((tl_dtype)in->dtype) ? TL_float64 : TL_int64;
  size_t size = tl_dtype_size((tl_dtype)in->dtype);
  char *values = tl_operand_address(&operands[0]), *elements = tl_operand_address(in);
  alignas(64) tl_scalar block[TL_BLOCK];
  tl_scalar last = {0};
  for (int64_t at = 0, n; at < numel; at += n) {
    n = numel - at < TL_BLOCK ? numel - at : TL_BLOCK;
    const tl_scalar *x = tl_elements(cpu, in, dtype, at, n, block);
    for (int64_t i = 0; i < n; i++) {
      bool same = dtype == TL_int64 ? x[i].integer == last.integer : x[i].real == last.real;
      if (groups == 0 || !same) {
        memcpy(values + (size_t)groups * size, elements + (size_t)(at + i) * size, size);
        counts[groups++] = 0;
        last = x[i];
      }
      counts[groups - 1]++;
      group_of[places ? places[at + i] - 1 : at + i] = groups;
    }
  }
  *(int64_t *)tl_operand_address(&operands[3]) = groups;
}

tl_status tl_count_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                       tl_error *error) {
  if (command->op == TL_OP_one_hot) return mark_classes(cpu, command, chunk, error);
  if (command->op == TL_OP_unique || command->op == TL_OP_unique_consecutive) {
    find_groups(cpu, command);
    return TL_OK;
  }
  const tl_operand *out = &command->operands[0];
  int64_t bins = tl_operand_numel(out);
  tl_dtype dtype = counter_dtype(command);
  void *work = tl_work_take(command, counter_bytes(command), error);
  if (!work) return TL_NO_MEMORY;
  tl_scalar *counters = tl_elements_target(out, dtype, 0, work);
  memset(counters, 0, (size_t)bins * sizeof *counters);
  tl_status status = command->op == TL_OP_histc
                         ? count_histogram(cpu, command, counters, error)
                         : count_bins(cpu, command, counters, error);
  if (status == TL_OK) tl_elements_store(cpu, out, dtype, 0, bins, counters);
  tl_work_give(command, work);
  return status;
}
