/* Scans: each element of a line becomes the sum (product, maximum, ...) of those up to it.
 *
 * Floating-point numbers are accumulated in double precision and rounded once for each result;
 * integers wrap around.  Lines are divided among the chunks and never cut. */
#include <math.h>
#include <stdalign.h>

#include "backend/cpu/along.h"

enum { COLUMNS = 512 /* lines beside each other that are taken together */ };

typedef struct tl_scan {
  const tl_operand *values, *indices, *in; /* indices: or NULL */
  int64_t lines, size, per_chunk;
  tl_dtype dtype; /* accumulated in: float64 or int64 */
  bool across;
} tl_scan;

static tl_scan scan_of(const tl_command *command) {
  const tl_operand *in = &command->operands[command->noperands - 1];
  tl_scan scan = {.values = &command->operands[0],
                  .indices = command->noperands > 2 ? &command->operands[1] : NULL,
                  .in = in,
                  .lines = tl_line_count(in),
                  .size = tl_line_size(in),
                  .dtype = tl_dtype_is_floating((tl_dtype)in->dtype) ? TL_float64 : TL_int64,
                  .across = tl_lines_are_across(in)};
  int64_t size = scan.size < 1 ? 1 : scan.size;
  scan.per_chunk = size < TL_CHUNK_ELEMENTS ? TL_CHUNK_ELEMENTS / size : 1;
  if (scan.across && scan.per_chunk < COLUMNS) scan.per_chunk = COLUMNS;
  while ((scan.lines + scan.per_chunk - 1) / scan.per_chunk > TL_MAX_CHUNKS) scan.per_chunk *= 2;
  return scan;
}

void tl_scan_plan(const tl_command *command, tl_plan *plan) {
  tl_scan scan = scan_of(command);
  int64_t chunks = (scan.lines + scan.per_chunk - 1) / scan.per_chunk;
  float each = command->op == TL_OP_logcumsumexp ? 30 : 2;
  plan->chunks = chunks < 1 ? 1 : (uint32_t)chunks;
  plan->cost = 50 + each * (float)scan.lines * (float)scan.size;
}

/* ---- operators ---- */

/* What a line has come to. */
typedef struct tl_total {
  tl_scalar value;
  int64_t index; /* of the element that is the value */
} tl_total;

/* n more elements of a line from number `at` on; and number `at` of n lines. */
typedef struct tl_scanner {
  void (*along)(tl_total *total, int64_t at, const void *in, void *values, int64_t *indices,
                int64_t n);
  void (*across)(tl_total *totals, int64_t at, const void *in, void *values, int64_t *indices,
                 int64_t n);
  tl_scalar first; /* of a line, before any element */
} tl_scanner;

static double log_add(double a, double b) {
  double most = a > b || a != a ? a : b, least = a > b || a != a ? b : a;
  if (most == least && isinf(most)) return most;
  return most + log1p(exp(least - most));
}

static int64_t wrapped_sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t wrapped_product(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

#define SCAN(name, T, member, formula)                                                       \
  static void name##_along(tl_total *total, int64_t at, const void *in, void *values,        \
                           int64_t *indices, int64_t n) {                                    \
    (void)at, (void)indices;                                                                 \
    const T *x = in;                                                                         \
    T *out = values, a = total->value.member;                                                \
    for (int64_t i = 0; i < n; i++) {                                                        \
      T b = x[i];                                                                            \
      out[i] = a = formula;                                                                  \
    }                                                                                        \
    total->value.member = a;                                                                 \
  }                                                                                          \
  static void name##_across(tl_total *totals, int64_t at, const void *in, void *values,      \
                            int64_t *indices, int64_t n) {                                   \
    (void)at, (void)indices;                                                                 \
    const T *x = in;                                                                         \
    T *out = values;                                                                         \
    for (int64_t i = 0; i < n; i++) {                                                        \
      T a = totals[i].value.member, b = x[i];                                                \
      out[i] = totals[i].value.member = formula;                                             \
    }                                                                                        \
  }

/* Of equal ones the last; a nan stays, but for the next one. */
#define EXTREME(name, T, member, better)                                                     \
  static void name##_step(tl_total *total, T x, int64_t at) {                                \
    T before = total->value.member;                                                          \
    if (at == 0 || x != x || (before == before && x better before)) {                        \
      total->value.member = x;                                                               \
      total->index = at + 1;                                                                 \
    }                                                                                        \
  }                                                                                          \
  static void name##_along(tl_total *total, int64_t at, const void *in, void *values,        \
                           int64_t *indices, int64_t n) {                                    \
    const T *x = in;                                                                         \
    T *out = values;                                                                         \
    for (int64_t i = 0; i < n; i++) {                                                        \
      name##_step(total, x[i], at + i);                                                      \
      out[i] = total->value.member;                                                          \
      indices[i] = total->index;                                                             \
    }                                                                                        \
  }                                                                                          \
  static void name##_across(tl_total *totals, int64_t at, const void *in, void *values,      \
                            int64_t *indices, int64_t n) {                                   \
    const T *x = in;                                                                         \
    T *out = values;                                                                         \
    for (int64_t i = 0; i < n; i++) {                                                        \
      name##_step(&totals[i], x[i], at);                                                     \
      out[i] = totals[i].value.member;                                                       \
      indices[i] = totals[i].index;                                                          \
    }                                                                                        \
  }

SCAN(sum_real, double, real, a + b)
SCAN(product_real, double, real, a * b)
SCAN(logsumexp, double, real, log_add(a, b))
SCAN(sum_integer, int64_t, integer, wrapped_sum(a, b))
SCAN(product_integer, int64_t, integer, wrapped_product(a, b))
EXTREME(max_real, double, real, >=)
EXTREME(min_real, double, real, <=)
EXTREME(max_integer, int64_t, integer, >=)
EXTREME(min_integer, int64_t, integer, <=)

#define OF(dtype, name)                                                \
  ((dtype) == TL_int64                                                 \
       ? (tl_scanner){name##_integer_along, name##_integer_across, {0}} \
       : (tl_scanner){name##_real_along, name##_real_across, {0}})

static tl_scanner scanner_of(const tl_command *command, tl_dtype dtype) {
  tl_scanner scanner;
  switch (command->op) {
    case TL_OP_cumprod:
      scanner = OF(dtype, product);
      scanner.first = tl_scalar_convert((tl_scalar){.integer = 1}, TL_int64, dtype);
      return scanner;
    case TL_OP_cummax: return OF(dtype, max);
    case TL_OP_cummin: return OF(dtype, min);
    case TL_OP_logcumsumexp:
      return (tl_scanner){logsumexp_along, logsumexp_across, {.real = -INFINITY}};
    default: return OF(dtype, sum);
  }
}

/* ---- lines ---- */

/* One line after the other; short ones several at a time. */
static void scan_along(const tl_cpu *cpu, const tl_scan *scan, const tl_scanner *scanner,
                       int64_t line, int64_t lines) {
  alignas(64) char in_block[TL_BLOCK * sizeof(double)], out_block[TL_BLOCK * sizeof(double)];
  int64_t index_block[TL_BLOCK];
  tl_total total = {scanner->first, 0};
  int64_t at = line * scan->size, end = (line + lines) * scan->size, place = 0; /* in the line */
  for (int64_t count; at < end; at += count) {
    count = end - at < TL_BLOCK ? end - at : TL_BLOCK;
    const char *in = tl_elements(cpu, scan->in, scan->dtype, at, count, in_block);
    char *out = tl_elements_target(scan->values, scan->dtype, at, out_block);
    for (int64_t i = 0, n; i < count; i += n) {
      n = scan->size - place < count - i ? scan->size - place : count - i;
      scanner->along(&total, place, in + (size_t)i * sizeof(double),
                     out + (size_t)i * sizeof(double), index_block + i, n);
      place += n;
      if (place < scan->size) continue;
      place = 0;
      total.value = scanner->first;
    }
    tl_elements_store(cpu, scan->values, scan->dtype, at, count, out);
    if (!scan->indices) continue;
    tl_store_block(cpu, scan->indices, at, count, index_block, TL_int64, false);
  }
}

/* `lines` lines beside each other, at most COLUMNS. */
static void scan_across(const tl_cpu *cpu, const tl_scan *scan, const tl_scanner *scanner,
                        int64_t line, int64_t lines) {
  alignas(64) char in_row[COLUMNS * sizeof(double)], out_row[COLUMNS * sizeof(double)];
  int64_t index_row[COLUMNS];
  tl_total totals[COLUMNS];
  const tl_layout_kernels *kernels = cpu->kernels->layout;
  tl_column in = tl_column_of(scan->in, line), out = tl_column_of(scan->values, line);
  tl_column indices = {0};
  if (scan->indices) indices = tl_column_of(scan->indices, line);
  for (int64_t i = 0; i < lines; i++) totals[i] = (tl_total){scanner->first, 0};
  for (int64_t k = 0; k < scan->size; k++) {
    kernels->load[scan->dtype][scan->in->dtype](in_row, in.base + k * in.step, in.stride,
                                                (size_t)lines);
    scanner->across(totals, k, in_row, out_row, index_row, lines);
    kernels->store[scan->values->dtype][scan->dtype](out.base + k * out.step, out_row, out.stride,
                                                     (size_t)lines);
    if (!scan->indices) continue;
    kernels->store[TL_int64][TL_int64](indices.base + k * indices.step, index_row, indices.stride,
                                       (size_t)lines);
  }
}

void tl_scan_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk) {
  tl_scan scan = scan_of(command);
  tl_scanner scanner = scanner_of(command, scan.dtype);
  int64_t line = chunk * scan.per_chunk, end = line + scan.per_chunk;
  if (end > scan.lines) end = scan.lines;
  if (scan.size == 0 || line >= end) return;
  if (!scan.across) {
    scan_along(cpu, &scan, &scanner, line, end - line);
    return;
  }
  int64_t width = scan.in->shape[scan.in->ndim - 2];
  for (int64_t lines; line < end; line += lines) {
    lines = width - line % width;
    if (lines > COLUMNS) lines = COLUMNS;
    if (lines > end - line) lines = end - line;
    scan_across(cpu, &scan, &scanner, line, lines);
  }
}
