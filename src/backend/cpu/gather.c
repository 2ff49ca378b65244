/* Elements that indices or a mask pick out of a tensor x, from it and to it.
 *
 * They are moved in rows: the elements along the last dimension where no index depends on that, or
 * else single ones.  Other dimensions that no index depends on are lines: the same rows, again for
 * each of them.  A large command is cut along one dimension.  Of a scatter that is one where no two
 * elements can have the same place, if there is any: so each place gets its elements in order,
 * whatever the number of threads. */
#include <string.h>

#include "backend/cpu/families.h"
#include "tensor/parameters.h"

/* ---- rows ---- */

/* `count` rows of `length` elements, at offsets in elements. */
typedef struct tl_rows {
  char *to;
  const char *from;
  const int64_t *to_at, *from_at;
  int64_t to_stride, from_stride, length, count;
} tl_rows;

typedef void tl_rows_kernel(const tl_rows *rows);

#define ROWS(name, type, combine)                                                           \
  static void name(const tl_rows *rows) {                                                   \
    int64_t to_stride = rows->to_stride, from_stride = rows->from_stride;                   \
    for (int64_t i = 0; i < rows->count; i++) {                                             \
      type *to = (type *)(void *)rows->to + rows->to_at[i];                                 \
      const type *from = (const type *)(const void *)rows->from + rows->from_at[i];         \
      for (int64_t j = 0; j < rows->length; j++) {                                          \
        to[j * to_stride] = (type)combine(to[j * to_stride], from[j * from_stride]);        \
      }                                                                                     \
    }                                                                                       \
  }

#define NEW(x, y) (y)
#define SUM(x, y) ((x) + (y))
#define EITHER(x, y) ((x) | (y))

ROWS(move_8, uint8_t, NEW)
ROWS(move_16, uint16_t, NEW)
ROWS(move_32, uint32_t, NEW)
ROWS(move_64, uint64_t, NEW)

/* Integers wrap around, whatever their sign. */
ROWS(add_8, uint8_t, SUM)
ROWS(add_16, uint16_t, SUM)
ROWS(add_32, uint32_t, SUM)
ROWS(add_64, uint64_t, SUM)
ROWS(add_float32, float, SUM)
ROWS(add_float64, double, SUM)
ROWS(add_bool, uint8_t, EITHER)

#define ADD_HALF(name)                                                                      \
  static uint16_t sum_##name(uint16_t x, uint16_t y) {                                      \
    tl_scalar sum = {.real = tl_dtype_load(TL_##name, &x).real +                            \
                             tl_dtype_load(TL_##name, &y).real};                            \
    tl_dtype_store(TL_##name, &x, sum);                                                     \
    return x;                                                                               \
  }                                                                                         \
  ROWS(add_##name, uint16_t, sum_##name)

ADD_HALF(float16)
ADD_HALF(bfloat16)

static tl_rows_kernel *const adders[TL_DTYPE_COUNT] = {
    [TL_float32] = add_float32, [TL_float64] = add_float64,   [TL_int64] = add_64,
    [TL_float16] = add_float16, [TL_bfloat16] = add_bfloat16, [TL_int32] = add_32,
    [TL_int16] = add_16,        [TL_int8] = add_8,            [TL_uint8] = add_8,
    [TL_bool] = add_bool,
};

static void move_whole(const tl_rows *rows, size_t size) {
  for (int64_t i = 0; i < rows->count; i++) {
    memcpy(rows->to + rows->to_at[i] * (int64_t)size, rows->from + rows->from_at[i] * (int64_t)size,
           (size_t)rows->length * size);
  }
}

static void move_rows(const tl_rows *rows, size_t size) {
  if (rows->length > 1 && rows->to_stride == 1 && rows->from_stride == 1) {
    move_whole(rows, size);
    return;
  }
  switch (size) {
    case 1: move_8(rows); break;
    case 2: move_16(rows); break;
    case 4: move_32(rows); break;
    default: move_64(rows); break;
  }
}

/* ---- places ---- */

/* Offsets of the positions first .. first+count-1, in row-major order. */
static void offsets_of(int ndim, const int64_t *shape, const int64_t *stride, int64_t first,
                       int64_t count, int64_t *at) {
  int64_t index[TL_MAX_DIMS], base = 0;
  int last = ndim - 1;
  if (ndim == 0) {
    if (count > 0) at[0] = 0;
    return;
  }
  for (int d = last; d >= 0; d--) {
    index[d] = first % shape[d];
    first /= shape[d];
    if (d < last) base += index[d] * stride[d];
  }
  while (count > 0) {
    int64_t run = shape[last] - index[last], step = stride[last];
    if (run > count) run = count;
    int64_t from = base + index[last] * step;
    for (int64_t i = 0; i < run; i++) at[i] = from + i * step;
    at += run;
    count -= run;
    index[last] = 0;
    for (int d = last - 1; d >= 0 && count > 0; d--) {
      base += stride[d];
      if (++index[d] < shape[d]) break;
      base -= shape[d] * stride[d];
      index[d] = 0;
    }
  }
}

static int64_t product(int ndim, const int64_t *shape) {
  int64_t count = 1;
  for (int d = 0; d < ndim; d++) count *= shape[d];
  return count;
}

/* Dimensions along which the same rows lie again. */
typedef struct tl_lines {
  int ndim;
  int64_t shape[TL_MAX_DIMS], to_stride[TL_MAX_DIMS], from_stride[TL_MAX_DIMS];
} tl_lines;

static void add_line_dim(tl_lines *lines, int64_t size, int64_t to_stride, int64_t from_stride) {
  lines->shape[lines->ndim] = size;
  lines->to_stride[lines->ndim] = to_stride;
  lines->from_stride[lines->ndim++] = from_stride;
}

enum { LINES = 64 }; /* whose offsets are made at a time */

/* The rows of all lines, by an adder or, without one, as they are. */
static void move_lines(const tl_lines *lines, const tl_rows *rows, tl_rows_kernel *adder,
                       size_t size) {
  int64_t total = product(lines->ndim, lines->shape), to[LINES], from[LINES];
  for (int64_t first = 0; first < total; first += LINES) {
    int64_t n = total - first < LINES ? total - first : LINES;
    offsets_of(lines->ndim, lines->shape, lines->to_stride, first, n, to);
    offsets_of(lines->ndim, lines->shape, lines->from_stride, first, n, from);
    for (int64_t i = 0; i < n; i++) {
      tl_rows line = *rows;
      line.to += to[i] * (int64_t)size;
      line.from += from[i] * (int64_t)size;
      if (adder) {
        adder(&line);
      } else {
        move_rows(&line, size);
      }
    }
  }
}

static tl_status out_of_range(const tl_index *p, int k, int64_t value, tl_error *error) {
  char text[TL_SHAPE_TEXT];
  tl_shape_text(p->ndim, p->shape, text);
  if (p->dim[k] == TL_FLAT) {
    return tl_error_set(error, TL_INVALID,
                        "index %lld is out of range for the %lld elements of a tensor of size %s",
                        (long long)value, (long long)product(p->ndim, p->shape), text);
  }
  return tl_error_set(error, TL_INVALID,
                      "index %lld is out of range for dimension %d of a tensor of size %s",
                      (long long)value, p->dim[k] + 1, text);
}

/* Adds to the offsets what the values of index k say. */
static tl_status add_index(const tl_index *p, int k, const int64_t *values, int64_t count,
                           int64_t *at, tl_error *error) {
  int64_t size = p->dim[k] == TL_FLAT ? product(p->ndim, p->shape) : p->shape[p->dim[k]];
  int64_t stride = p->stride[k];
  for (int64_t i = 0; i < count; i++) {
    int64_t value = values[i], place = value > 0 ? value - 1 : value + size;
    if (place < 0 || place >= size) return out_of_range(p, k, value, error);
    at[i] += place * stride;
  }
  return TL_OK;
}

/* ---- by indices ---- */

static bool is_gather(const tl_command *command) {
  return ((const tl_index *)command->parameters)->mode == TL_GATHER;
}

/* Whether elements that differ in that dimension go to different places, in any order then. */
static bool has_own_places(const tl_command *command, int dim) {
  return is_gather(command) || command->operands[0].stride[dim] != 0;
}

/* The dimension to cut: the longest of those that may be, or -1. */
static int cut_dim(const tl_command *command) {
  const tl_operand *out = &command->operands[0];
  int longest = -1;
  for (int d = 0; d < out->ndim; d++) {
    if (!has_own_places(command, d)) continue;
    if (longest < 0 || out->shape[d] > out->shape[longest]) longest = d;
  }
  return longest;
}

enum { NARROWEST = 64 }; /* rows are not cut to fewer elements */

static void plan_by_indices(const tl_command *command, tl_plan *plan) {
  const tl_operand *out = &command->operands[0];
  int64_t numel = tl_operand_numel(out);
  int dim = cut_dim(command);
  plan->cost = 50 + (float)numel * (1 + 1.5f * (float)(command->noperands - 2));
  plan->chunks = tl_chunks_of(numel);
  int64_t most = dim < 0 ? 1 : out->shape[dim];
  if (dim == out->ndim - 1) most /= NARROWEST;
  if (plan->chunks > most) plan->chunks = most > 0 ? (uint32_t)most : 1;
}

/* The part of a command that a chunk runs. */
typedef struct tl_part {
  int ndim; /* of the places: dimensions that indices depend on */
  int64_t shape[TL_MAX_DIMS], stride[2 + TL_MAX_INDICES][TL_MAX_DIMS];
  tl_operand operands[2 + TL_MAX_INDICES]; /* of that shape */
  tl_lines lines;
  int64_t length, row_stride[2];
} tl_part;

enum { FEW_PLACES = 16 }; /* these are not worth lines of their own */

static bool is_free(const tl_command *command, int dim) {
  for (int i = 2; i < command->noperands; i++) {
    if (command->operands[i].stride[dim] != 0) return false;
  }
  return true;
}

static void take_part(const tl_command *command, uint32_t chunk, tl_part *part) {
  const tl_operand *operands = command->operands;
  int ndim = operands[0].ndim, dim = cut_dim(command);
  int64_t shape[TL_MAX_DIMS], first = 0, places = 1;
  memcpy(shape, operands[0].shape, (size_t)ndim * sizeof *shape);
  if (command->chunks > 1) {
    int64_t size = shape[dim], each = (size + command->chunks - 1) / command->chunks;
    first = each * chunk < size ? each * chunk : size;
    shape[dim] = size - first < each ? size - first : each;
  }
  part->ndim = part->lines.ndim = 0;
  part->length = part->row_stride[0] = part->row_stride[1] = 1;
  for (int d = 0; d < ndim; d++) places *= is_free(command, d) ? 1 : shape[d];
  for (int d = 0; d < ndim; d++) {
    int64_t to_stride = operands[0].stride[d], from_stride = operands[1].stride[d];
    if (d == ndim - 1 && is_free(command, d)) {
      part->length = shape[d];
      part->row_stride[0] = to_stride;
      part->row_stride[1] = from_stride;
    } else if (places >= FEW_PLACES && is_free(command, d) && has_own_places(command, d)) {
      add_line_dim(&part->lines, shape[d], to_stride, from_stride);
    } else {
      for (int i = 0; i < command->noperands; i++) {
        part->stride[i][part->ndim] = operands[i].stride[d];
      }
      part->shape[part->ndim++] = shape[d];
    }
  }
  for (int i = 0; i < command->noperands; i++) {
    part->operands[i] = operands[i];
    if (first > 0) part->operands[i].offset += first * operands[i].stride[dim];
    part->operands[i].ndim = (uint8_t)part->ndim;
    part->operands[i].shape = part->shape;
    part->operands[i].stride = part->stride[i];
  }
}

static tl_status run_by_indices(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                                tl_error *error) {
  const tl_index *p = command->parameters;
  tl_part part;
  take_part(command, chunk, &part);
  int64_t count = part.length > 0 ? product(part.ndim, part.shape) : 0;
  int64_t to_at[TL_BLOCK], from_at[TL_BLOCK], values[TL_BLOCK];
  int64_t *picked_at = p->mode == TL_GATHER ? from_at : to_at;
  const tl_operand *to = &part.operands[0], *from = &part.operands[1];
  tl_rows_kernel *adder = p->mode == TL_SCATTER_ADD ? adders[to->dtype] : NULL;
  for (int64_t at = 0; at < count; at += TL_BLOCK) {
    int64_t n = count - at < TL_BLOCK ? count - at : TL_BLOCK;
    offsets_of(part.ndim, part.shape, part.stride[0], at, n, to_at);
    offsets_of(part.ndim, part.shape, part.stride[1], at, n, from_at);
    for (int i = 2; i < command->noperands; i++) {
      tl_load_block(cpu, values, TL_int64, &part.operands[i], at, n);
      tl_status status = add_index(p, i - 2, values, n, picked_at, error);
      if (status != TL_OK) return status;
    }
    tl_rows rows = {.to = tl_operand_address(to),
                    .from = tl_operand_address(from),
                    .to_at = to_at,
                    .from_at = from_at,
                    .to_stride = part.row_stride[0],
                    .from_stride = part.row_stride[1],
                    .length = part.length,
                    .count = n};
    move_lines(&part.lines, &rows, adder, tl_dtype_size((tl_dtype)to->dtype));
  }
  return TL_OK;
}

/* ---- by a mask ---- */

static const tl_operand *mask_of(const tl_command *command) {
  bool locates = ((const tl_index *)command->parameters)->mode == TL_LOCATE;
  return &command->operands[command->noperands - (locates ? 1 : 2)];
}

static int64_t blocks_of(const tl_command *command) {
  const tl_index *p = command->parameters;
  return (tl_operand_numel(mask_of(command)) + p->block - 1) / p->block;
}

static void plan_by_mask(const tl_command *command, tl_plan *plan) {
  const tl_index *p = command->parameters;
  int64_t blocks = blocks_of(command), numel = tl_operand_numel(mask_of(command));
  if (p->mode == TL_SELECT) numel = tl_operand_numel(&command->operands[1]);
  if (p->mode == TL_PLACE) numel = tl_operand_numel(&command->operands[0]);
  plan->cost = 50 + (p->mode == TL_LOCATE ? 0.1f : 2) * (float)numel;
  plan->chunks = blocks > 0 ? (uint32_t)blocks : 1;
  if (p->mode == TL_LOCATE) plan->scratch_size = plan->chunks * (uint32_t)sizeof(int64_t);
}

static void locate(const tl_cpu *cpu, const tl_command *command, uint32_t block) {
  const tl_index *p = command->parameters;
  const tl_operand *mask = mask_of(command);
  int64_t numel = tl_operand_numel(mask), count = 0;
  int64_t at = block * p->block, end = numel - at < p->block ? numel : at + p->block;
  for (; at < end; at += TL_BLOCK) {
    uint8_t is_true[TL_BLOCK];
    int64_t n = end - at < TL_BLOCK ? end - at : TL_BLOCK;
    tl_load_block(cpu, is_true, TL_bool, mask, at, n);
    for (int64_t i = 0; i < n; i++) count += is_true[i] != 0;
  }
  ((int64_t *)command->scratch)[block] = count;
}

void tl_index_finish(const tl_command *command) {
  int64_t blocks = blocks_of(command), before = 0;
  const int64_t *counts = command->scratch;
  int64_t *out = tl_operand_address(&command->operands[0]);
  for (int64_t b = 0; b < blocks; b++) {
    out[b] = before;
    before += counts[b];
  }
  out[blocks] = before;
}

/* The true elements among first .. first+n-1 of a mask: which they are, as offsets from `first`. */
static int64_t true_ones(const tl_cpu *cpu, const tl_operand *mask, int64_t first, int64_t n,
                         int64_t *which) {
  uint8_t is_true[TL_BLOCK];
  int64_t count = 0;
  tl_load_block(cpu, is_true, TL_bool, mask, first, n);
  for (int64_t i = 0; i < n; i++) {
    which[count] = i;
    count += is_true[i] != 0;
  }
  return count;
}

static void write_coordinates(const tl_operand *mask, int64_t first, const int64_t *which,
                              int64_t count, int64_t *out) {
  for (int64_t i = 0; i < count; i++, out += mask->ndim) {
    int64_t rest = first + which[i];
    for (int d = mask->ndim - 1; d > 0; d--) {
      out[d] = rest % mask->shape[d] + 1;
      rest /= mask->shape[d];
    }
    if (mask->ndim > 0) out[0] = rest + 1;
  }
}

/* What belongs to each true element: the dimensions behind the mask's. */
static void move_true(const tl_command *command, const int64_t *to_at, const int64_t *from_at,
                      int64_t count) {
  const tl_operand *to = &command->operands[0], *from = &command->operands[1];
  bool selects = ((const tl_index *)command->parameters)->mode == TL_SELECT;
  int behind = (selects ? to : from)->ndim - 1;
  tl_lines lines = {0};
  tl_rows rows = {.to = tl_operand_address(to),
                  .from = tl_operand_address(from),
                  .to_at = to_at,
                  .from_at = from_at,
                  .length = 1,
                  .count = count};
  for (int d = behind; d > 0; d--) {
    int64_t size = to->shape[to->ndim - d];
    int64_t to_stride = to->stride[to->ndim - d], from_stride = from->stride[from->ndim - d];
    if (d > 1) {
      add_line_dim(&lines, size, to_stride, from_stride);
    } else {
      rows.length = size;
      rows.to_stride = to_stride;
      rows.from_stride = from_stride;
    }
  }
  move_lines(&lines, &rows, NULL, tl_dtype_size((tl_dtype)to->dtype));
}

/* `values` true elements are called for, and `count` there are. */
static tl_status check_values(const tl_index *p, int64_t values, int64_t count, tl_error *error) {
  if (values == count || (!p->exactly && values > count)) return TL_OK;
  return tl_error_set(error, TL_INVALID, "%lld values for a mask with %lld true elements",
                      (long long)values, (long long)count);
}

/* Between counting and picking the frontend makes the result, and so may run a finalizer. */
static tl_status changed(tl_error *error) {
  return tl_error_set(error, TL_INVALID, "a finalizer has changed the mask");
}

static tl_status run_by_mask(const tl_cpu *cpu, const tl_command *command, uint32_t block,
                             tl_error *error) {
  const tl_index *p = command->parameters;
  const tl_operand *mask = mask_of(command), *to = &command->operands[0];
  const tl_operand *from = &command->operands[1];
  const tl_operand *x = p->mode == TL_SELECT ? from : to, *other = p->mode == TL_SELECT ? to : from;
  const int64_t *starts = tl_operand_address(mask + 1);
  if (p->mode == TL_PLACE) {
    tl_status status = check_values(p, from->shape[0], starts[blocks_of(command)], error);
    if (status != TL_OK) return status;
  }
  int64_t which[TL_BLOCK], places[TL_BLOCK], ordinals[TL_BLOCK];
  int64_t numel = tl_operand_numel(mask), before = starts[block];
  int64_t at = block * p->block, end = numel - at < p->block ? numel : at + p->block;
  for (; at < end; at += TL_BLOCK) {
    int64_t n = end - at < TL_BLOCK ? end - at : TL_BLOCK;
    int64_t count = true_ones(cpu, mask, at, n, which);
    if (count > starts[block + 1] - before) return changed(error);
    if (p->mode == TL_COORDINATES) {
      int64_t *out = tl_operand_address(to);
      write_coordinates(mask, at, which, count, out + before * mask->ndim);
    } else if (count > 0) {
      offsets_of(mask->ndim, mask->shape, x->stride, at, n, places);
      for (int64_t i = 0; i < count; i++) {
        places[i] = places[which[i]];
        ordinals[i] = (before + i) * other->stride[0];
      }
      bool selects = p->mode == TL_SELECT;
      move_true(command, selects ? ordinals : places, selects ? places : ordinals, count);
    }
    before += count;
  }
  return numel == 0 || before == starts[block + 1] ? TL_OK : changed(error);
}

/* ---- the family ---- */

static bool is_by_indices(const tl_command *command) {
  return ((const tl_index *)command->parameters)->mode <= TL_SCATTER_ADD;
}

void tl_index_plan(const tl_command *command, tl_plan *plan) {
  if (is_by_indices(command)) {
    plan_by_indices(command, plan);
  } else {
    plan_by_mask(command, plan);
  }
}

tl_status tl_index_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                       tl_error *error) {
  if (is_by_indices(command)) return run_by_indices(cpu, command, chunk, error);
  if (((const tl_index *)command->parameters)->mode == TL_LOCATE) {
    locate(cpu, command, chunk);
    return TL_OK;
  }
  return run_by_mask(cpu, command, chunk, error);
}
