/* The largest and smallest elements of lines, and where they are first.
 *
 * As for other reductions, where the work is cut depends on the shapes alone: many lines are
 * divided among the chunks; of few long ones each chunk makes a part, in scratch, and finish() puts
 * the parts together. */
#include <stdalign.h>

#include "backend/cpu/along.h"

enum {
  MANY_LINES = 32,
  MAX_PARTS = 4096, /* of a line */
  BLOCK = 4096,     /* elements that are looked at together */
  COLUMNS = 512,    /* lines beside each other, or short ones, that are */
  SHORT = 64,       /* elements of a line for which the vector kernels do not pay */
};

typedef struct tl_arg {
  const tl_operand *values, *indices, *in; /* values: or NULL */
  int64_t lines, size, parts;
  int64_t per_chunk; /* lines */
  tl_dtype dtype;    /* compared in */
  bool largest, across;
} tl_arg;

/* The best of a part of a line; index -1: of none. */
typedef struct tl_best {
  tl_scalar value;
  int64_t index;
} tl_best;

static tl_arg arg_of(const tl_command *command) {
  const tl_reduce *parameters = command->parameters;
  const tl_operand *last = &command->operands[command->noperands - 1];
  tl_arg arg = {.values = command->noperands > 2 ? &command->operands[0] : NULL,
                .indices = last - 1,
                .in = last,
                .lines = tl_line_count(last),
                .size = parameters->count,
                .parts = 1,
                .dtype = tl_dtype_compute((tl_dtype)last->dtype),
                .largest = command->op == TL_OP_max || command->op == TL_OP_argmax,
                .across = tl_lines_are_across(last)};
  int64_t width = arg.across ? COLUMNS : 1;
  int64_t groups = (arg.lines + width - 1) / width;
  int64_t elements = arg.size * (arg.lines < width ? arg.lines : width); /* of a group */
  arg.per_chunk = width;
  if (groups < MANY_LINES && elements > 2 * TL_CHUNK_ELEMENTS) {
    arg.parts = tl_chunks_of(elements);
    if (arg.parts > MAX_PARTS) arg.parts = MAX_PARTS;
    if (arg.parts > arg.size) arg.parts = 1;
  } else if (elements > 0 && elements < TL_CHUNK_ELEMENTS) {
    arg.per_chunk *= TL_CHUNK_ELEMENTS / elements;
  }
  while ((arg.lines + arg.per_chunk - 1) / arg.per_chunk > TL_MAX_CHUNKS) arg.per_chunk *= 2;
  return arg;
}

void tl_arg_plan(const tl_command *command, tl_plan *plan) {
  tl_arg arg = arg_of(command);
  int64_t groups = (arg.lines + arg.per_chunk - 1) / arg.per_chunk;
  plan->cost = 50 + (20 + 0.5f * (float)arg.size) * (float)arg.lines;
  plan->chunks = groups < 1 ? 1 : (uint32_t)(groups * arg.parts);
  if (arg.parts > 1) plan->scratch_size = (uint32_t)(arg.lines * arg.parts) * sizeof(tl_best);
}

static bool is_nan(const tl_arg *arg, tl_scalar x) {
  return arg->dtype != TL_int64 && x.real != x.real;
}

/* Whether a later value takes the place of the best one: nan does of all but nan. */
static bool is_better(const tl_arg *arg, tl_scalar x, const tl_best *best) {
  if (best->index < 0) return true;
  if (arg->dtype == TL_int64) {
    return arg->largest ? x.integer > best->value.integer : x.integer < best->value.integer;
  }
  if (is_nan(arg, best->value)) return false;
  return is_nan(arg, x) || (arg->largest ? x.real > best->value.real : x.real < best->value.real);
}

/* Where a value, or nan, is first among n elements that have it; in groups, for vector code. */
#define FIND(T, mask)                                                                    \
  static int64_t find_##T(const void *elements, int64_t n, T value) {                    \
    enum { GROUP = 32 };                                                                 \
    const T *x = elements;                                                               \
    int64_t i = 0;                                                                       \
    if (value != value) {                                                                \
      while (x[i] == x[i]) i++;                                                          \
      return i;                                                                          \
    }                                                                                    \
    for (; i + GROUP <= n; i += GROUP) {                                                 \
      mask found = 0;                                                                    \
      for (int j = 0; j < GROUP; j++) found |= x[i + j] == value;                        \
      if (found) break;                                                                  \
    }                                                                                    \
    while (x[i] != value) i++;                                                           \
    return i;                                                                            \
  }
FIND(float, int32_t)
FIND(double, int64_t)
FIND(int64_t, int64_t)

static int64_t find(tl_dtype dtype, const void *block, int64_t n, tl_scalar value) {
  if (dtype == TL_int64) return find_int64_t(block, n, value.integer);
  if (dtype == TL_float64) return find_double(block, n, value.real);
  return find_float(block, n, (float)value.real);
}

static void look_along(const tl_cpu *cpu, const tl_arg *arg, int64_t line, int64_t first,
                       int64_t count, tl_best *best) {
  alignas(64) char buffer[BLOCK * sizeof(double)];
  const tl_reduce_kernels *kernels = cpu->kernels->reduce;
  tl_reduce_kernel *extreme = (arg->largest ? kernels->max : kernels->min)[arg->dtype];
  size_t size = tl_dtype_size(arg->dtype);
  best->index = -1;
  for (int64_t at = first, end = first + count; at < end; at += BLOCK) {
    int64_t n = end - at < BLOCK ? end - at : BLOCK;
    const char *block = tl_elements(cpu, arg->in, arg->dtype, line * arg->size + at, n, buffer);
    tl_scalar value = extreme(block, (size_t)n);
    if (!is_better(arg, value, best)) continue;
    int64_t i = find(arg->dtype, block, n, value);
    best->value = tl_dtype_load(arg->dtype, block + (size_t)i * size); /* of 0 and -0 this one */
    best->index = at + i;
    if (is_nan(arg, value)) return;
  }
}

/* n lines of `size` elements, one behind the other; and one more element of each of n lines. */
#define LOOK(T, member)                                                                  \
  static void short_##T(const void *lines, int64_t size, bool largest, tl_best *best, int64_t n) { \
    const T *x = lines;                                                                  \
    for (int64_t i = 0; i < n; i++, x += size) {                                         \
      T value = x[0];                                                                    \
      int64_t at = 0;                                                                    \
      for (int64_t k = 1; k < size && value == value; k++) {                             \
        bool better = largest ? x[k] > value : x[k] < value;                             \
        if (!better && x[k] == x[k]) continue;                                           \
        value = x[k];                                                                    \
        at = k;                                                                          \
      }                                                                                  \
      best[i].value.member = value;                                                      \
      best[i].index = at;                                                                \
    }                                                                                    \
  }                                                                                      \
  static void step_##T(const void *row, int64_t k, bool largest, tl_best *best, int64_t n) { \
    const T *x = row;                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                    \
      T value = x[i], before = (T)best[i].value.member;                                  \
      bool better = largest ? value > before : value < before;                           \
      if (better || (value != value && before == before)) {                              \
        best[i].value.member = value;                                                    \
        best[i].index = k;                                                               \
      }                                                                                  \
    }                                                                                    \
  }
LOOK(float, real)
LOOK(double, real)
LOOK(int64_t, integer)

/* `lines` lines, together at most BLOCK elements. */
static void look_short(const tl_cpu *cpu, const tl_arg *arg, int64_t line, int64_t lines,
                       tl_best *best) {
  alignas(64) char buffer[BLOCK * sizeof(double)];
  const void *block = tl_elements(cpu, arg->in, arg->dtype, line * arg->size, lines * arg->size,
                                  buffer);
  if (arg->dtype == TL_float32) {
    short_float(block, arg->size, arg->largest, best, lines);
  } else if (arg->dtype == TL_float64) {
    short_double(block, arg->size, arg->largest, best, lines);
  } else {
    short_int64_t(block, arg->size, arg->largest, best, lines);
  }
}

/* `lines` lines beside each other, at most COLUMNS. */
static void look_across(const tl_cpu *cpu, const tl_arg *arg, int64_t line, int64_t lines,
                        int64_t first, int64_t count, tl_best *best) {
  alignas(64) char buffer[COLUMNS * sizeof(double)];
  size_t size = tl_dtype_size(arg->dtype);
  tl_column in = tl_column_of(arg->in, line);
  bool direct = arg->in->dtype == arg->dtype && in.stride == 1;
  tl_move_kernel *load = cpu->kernels->layout->load[arg->dtype][arg->in->dtype];
  for (int64_t k = first; k < first + count; k++) {
    const char *row = in.base + k * in.step;
    if (!direct) {
      load(buffer, row, in.stride, (size_t)lines);
      row = buffer;
    }
    if (k == first) {
      for (int64_t i = 0; i < lines; i++) {
        best[i] = (tl_best){tl_dtype_load(arg->dtype, row + (size_t)i * size), k};
      }
    } else if (arg->dtype == TL_float32) {
      step_float(row, k, arg->largest, best, lines);
    } else if (arg->dtype == TL_float64) {
      step_double(row, k, arg->largest, best, lines);
    } else {
      step_int64_t(row, k, arg->largest, best, lines);
    }
  }
}

static void store_best(const tl_arg *arg, int64_t line, const tl_best *best) {
  if (arg->values) {
    tl_dtype dtype = (tl_dtype)arg->values->dtype;
    char *values = tl_operand_address(arg->values);
    tl_dtype_store(dtype, values + (size_t)line * tl_dtype_size(dtype), best->value);
  }
  ((int64_t *)tl_operand_address(arg->indices))[line] = best->index + 1;
}

/* The elements of a line that make one part. */
static void part_range(const tl_arg *arg, int64_t part, int64_t *first, int64_t *count) {
  int64_t size = (arg->size + arg->parts - 1) / arg->parts;
  *first = size * part < arg->size ? size * part : arg->size;
  *count = arg->size - *first < size ? arg->size - *first : size;
}

void tl_arg_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk) {
  tl_arg arg = arg_of(command);
  tl_best best[COLUMNS];
  int64_t part = chunk % arg.parts, first, count;
  int64_t line = chunk / arg.parts * arg.per_chunk, end = line + arg.per_chunk;
  if (end > arg.lines) end = arg.lines;
  part_range(&arg, part, &first, &count);
  for (int64_t lines = 1; line < end; line += lines) {
    if (arg.across) {
      int64_t width = arg.in->shape[arg.in->ndim - 2];
      lines = width - line % width;
      if (lines > COLUMNS) lines = COLUMNS;
      if (lines > end - line) lines = end - line;
      for (int64_t i = 0; i < lines; i++) best[i].index = -1;
      look_across(cpu, &arg, line, lines, first, count, best);
    } else if (arg.size <= SHORT) {
      lines = BLOCK / arg.size < COLUMNS ? BLOCK / arg.size : COLUMNS;
      if (lines > end - line) lines = end - line;
      look_short(cpu, &arg, line, lines, best);
    } else {
      look_along(cpu, &arg, line, first, count, best);
    }
    for (int64_t i = 0; i < lines; i++) {
      if (arg.parts > 1) {
        ((tl_best *)command->scratch)[(line + i) * arg.parts + part] = best[i];
      } else {
        store_best(&arg, line + i, &best[i]);
      }
    }
  }
}

void tl_arg_finish(const tl_command *command) {
  tl_arg arg = arg_of(command);
  const tl_best *part = command->scratch;
  for (int64_t line = 0; line < arg.lines; line++) {
    tl_best best = {.index = -1};
    for (int64_t p = 0; p < arg.parts; p++, part++) {
      if (part->index >= 0 && is_better(&arg, part->value, &best)) best = *part;
    }
    store_best(&arg, line, &best);
  }
}
