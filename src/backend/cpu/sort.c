/* Sorting of lines, and what is read off a sorted line: topk, median, kthvalue, mode.
 *
 * Every value is turned into an unsigned key whose order is that of the values, nan behind all
 * others, and goes with its place in the line.  Keys are sorted by their digits, the lowest first,
 * which is stable and takes time in proportion to the length; short lines by insertion.  Keys of up
 * to 32 bits and their places share a word.  When only some ranks are wanted, most other elements
 * are dropped before.  Lines are divided among the chunks and never cut. */
#include <string.h>

#include "backend/cpu/along.h"

enum {
  FEW = 48, /* are sorted by insertion */
  MANY = 16384,
  FEW_BITS = 8, /* of a digit of few keys, and of many */
  MANY_BITS = 11,
  MAX_DIGITS = (64 + MANY_BITS - 1) / MANY_BITS << MANY_BITS, /* of all passes */
  SELECT_BITS = 11, /* of the digit by which elements are dropped */
  SELECT_DIGITS = 1 << SELECT_BITS,
  SELECT_LEAST = 256, /* elements of a line for which it is done */
  CHUNK = TL_CHUNK_ELEMENTS / 4,
};

typedef struct tl_sorting {
  tl_op op;
  const tl_operand *values, *indices, *in; /* the first two: or NULL */
  int64_t lines, size, per_chunk;
  int64_t first, wanted; /* ranks */
  uint64_t flip;         /* all bits when descending */
  tl_dtype dtype;
  bool is_wide;
} tl_sorting;

/* From the bits of a float, `infinity` being those of infinity: -0 is 0, and every nan the last. */
#define FLOAT_KEY(name, T, infinity)                       \
  static T name##_key(T bits) {                            \
    const T sign = (T)((T)1 << (sizeof(T) * 8 - 1));       \
    if ((T)(bits & ~sign) > (T)infinity) return (T) ~(T)0; \
    if (bits == sign) return sign;                         \
    return bits & sign ? (T)~bits : (T)(bits | sign);      \
  }
FLOAT_KEY(float16, uint16_t, 0x7c00)
FLOAT_KEY(bfloat16, uint16_t, 0x7f80)
FLOAT_KEY(float32, uint32_t, 0x7f800000)
FLOAT_KEY(float64, uint64_t, 0x7ff0000000000000)

#define SIGNED_KEY(name, T) \
  static T name##_key(T bits) { return (T)(bits ^ (T)1 << (sizeof(T) * 8 - 1)); }
SIGNED_KEY(int64, uint64_t)
SIGNED_KEY(int32, uint32_t)
SIGNED_KEY(int16, uint16_t)
SIGNED_KEY(int8, uint8_t)

static uint8_t uint8_key(uint8_t bits) { return bits; }
static uint8_t bool_key(uint8_t bits) { return bits != 0; }

/* Keys of up to 32 bits, in lines of as many elements. */
#define T uint64_t
#define NAME(function) narrow_##function
#define KEY(element) ((element) >> 32)
#define PLACE(element) ((element) & UINT32_MAX)
#define MAKE(key, place) ((key) << 32 | (place))
#include "backend/cpu/sort_elements.h"

typedef struct tl_wide {
  uint64_t key, place;
} tl_wide;

#define T tl_wide
#define NAME(function) wide_##function
#define KEY(element) ((element).key)
#define PLACE(element) ((element).place)
#define MAKE(key, place) ((tl_wide){key, place})
#include "backend/cpu/sort_elements.h"

/* ---- lines ---- */

static tl_sorting sorting_of(const tl_command *command) {
  const tl_along *parameters = command->parameters;
  const tl_operand *operands = command->operands;
  const tl_operand *in = &operands[command->noperands - 1];
  tl_sorting s = {.op = (tl_op)command->op,
                  .values = command->op == TL_OP_argsort ? NULL : &operands[0],
                  .indices = command->op == TL_OP_msort ? NULL : in - 1,
                  .in = in,
                  .lines = tl_line_count(in),
                  .size = tl_line_size(in),
                  .first = parameters->first,
                  .wanted = tl_line_size(&operands[0]),
                  .flip = parameters->descending ? UINT64_MAX : 0,
                  .dtype = (tl_dtype)in->dtype};
  s.is_wide = tl_dtype_size(s.dtype) > sizeof(uint32_t) || s.size > UINT32_MAX;
  s.per_chunk = s.size > 0 && s.size < CHUNK ? CHUNK / s.size : 1;
  while ((s.lines + s.per_chunk - 1) / s.per_chunk > TL_MAX_CHUNKS) s.per_chunk *= 2;
  return s;
}

/* Memory for a line at a time: copies of it and of its results, which are used where the operands'
 * own memory cannot be, and the elements. */
typedef struct tl_work {
  size_t bytes; /* all told */
  size_t values, places, elements, spare; /* where each begins, behind the line */
} tl_work;

static tl_work work_of(const tl_sorting *s) {
  size_t line = (size_t)s->size * tl_dtype_size(s->dtype);
  size_t elements = (size_t)s->size * (s->is_wide ? sizeof(tl_wide) : sizeof(uint64_t));
  size_t sizes[] = {line, (size_t)s->wanted * tl_dtype_size(s->dtype),
                    (size_t)s->wanted * sizeof(int64_t), elements, elements};
  size_t begin[5], at = 0;
  for (int i = 0; i < 5; i++) {
    begin[i] = at;
    at += (sizes[i] + 63) / 64 * 64;
  }
  return (tl_work){at, begin[1], begin[2], begin[3], begin[4]};
}

void tl_sort_plan(const tl_command *command, tl_plan *plan) {
  tl_sorting s = sorting_of(command);
  int64_t chunks = (s.lines + s.per_chunk - 1) / s.per_chunk;
  plan->chunks = chunks < 1 ? 1 : (uint32_t)chunks;
  plan->cost = 50 + (100 + (s.is_wide ? 20 : 10) * (float)s.size) * (float)s.lines;
  tl_work_plan(plan, work_of(&s).bytes);
}

static void take(void *values, const void *line, const int64_t *places, int64_t n, size_t size) {
#define CASE(T)                                                      \
  case sizeof(T): {                                                  \
    T *to = values;                                                  \
    const T *from = line;                                            \
    for (int64_t i = 0; i < n; i++) to[i] = from[places[i] - 1];     \
    break;                                                           \
  }
  switch (size) {
    CASE(uint8_t)
    CASE(uint16_t)
    CASE(uint32_t)
    CASE(uint64_t)
    default: break;
  }
#undef CASE
}

static void sort_line(const tl_cpu *cpu, const tl_sorting *s, int64_t line, char *memory) {
  tl_work work = work_of(s);
  int64_t first = line * s->wanted;
  const void *in = tl_elements(cpu, s->in, s->dtype, line * s->size, s->size, memory);
  int64_t *places = (int64_t *)(void *)(memory + work.places);
  if (s->indices) places = tl_elements_target(s->indices, TL_int64, first, places);
  void *elements = memory + work.elements, *spare = memory + work.spare;
  if (s->is_wide) {
    wide_places(s, in, elements, spare, places);
  } else {
    narrow_places(s, in, elements, spare, places);
  }
  if (s->values) {
    void *values = tl_elements_target(s->values, s->dtype, first, memory + work.values);
    take(values, in, places, s->wanted, tl_dtype_size(s->dtype));
    tl_elements_store(cpu, s->values, s->dtype, first, s->wanted, values);
  }
  if (s->indices) tl_elements_store(cpu, s->indices, TL_int64, first, s->wanted, places);
}

tl_status tl_sort_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                      tl_error *error) {
  tl_sorting s = sorting_of(command);
  int64_t line = chunk * s.per_chunk, end = line + s.per_chunk;
  if (end > s.lines) end = s.lines;
  if (s.wanted == 0 || line >= end) return TL_OK;
  char *memory = tl_work_take(command, work_of(&s).bytes, error);
  if (!memory) return TL_NO_MEMORY;
  for (; line < end; line++) sort_line(cpu, &s, line, memory);
  tl_work_give(command, memory);
  return TL_OK;
}
