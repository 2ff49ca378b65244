/* Searching in sorted lines: searchsorted, isin. */
#include <stdalign.h>

#include "backend/cpu/along.h"

/* Operand 0 is written, 1 is what is searched (contiguous, float64 or int64, as the lines of the
 * others or one for all), 2 what is looked for. */
static int64_t searched_line(const tl_command *command, int64_t line) {
  return tl_line_count(&command->operands[1]) == 1 ? 0 : line;
}

void tl_search_plan(const tl_command *command, tl_plan *plan) {
  int64_t numel = tl_operand_numel(&command->operands[0]);
  float steps = 1;
  for (int64_t n = tl_line_size(&command->operands[1]); n > 0; n /= 2) steps++;
  plan->chunks = tl_chunks_of(numel);
  plan->cost = 50 + 3 * steps * (float)numel;
}

/* How many elements come before `value`: those that are less (nan is greatest), or, `behind`, that
 * are not greater. */
#define SEARCH(name, T)                                                                 \
  static bool is_less_##name(T a, T b) { return a < b || (b != b && a == a); }          \
  static int64_t search_##name(const T *sorted, int64_t n, T value, bool behind) {      \
    int64_t first = 0;                                                                  \
    while (n > 0) {                                                                     \
      int64_t half = n / 2;                                                             \
      T x = sorted[first + half];                                                       \
      bool before = behind ? !is_less_##name(value, x) : is_less_##name(x, value);      \
      first = before ? first + half + 1 : first;                                        \
      n = before ? n - half - 1 : half;                                                 \
    }                                                                                   \
    return first;                                                                       \
  }                                                                                     \
  static void search_all_##name(const tl_command *command, const void *line, int64_t n, \
                                const void *wanted, int64_t count, int64_t *out) {      \
    const tl_along *parameters = command->parameters;                                   \
    const T *sorted = line, *values = wanted;                                           \
    bool asks = command->op == TL_OP_isin;                                              \
    for (int64_t i = 0; i < count; i++) {                                               \
      int64_t at = search_##name(sorted, n, values[i], parameters->right);              \
      out[i] = asks ? at < n && sorted[at] == values[i] : at + 1;                       \
    }                                                                                   \
  }
SEARCH(real, double)
SEARCH(integer, int64_t)

void tl_search_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk) {
  const tl_operand *out = &command->operands[0], *in = &command->operands[1],
                   *values = &command->operands[2];
  alignas(64) char block[TL_BLOCK * sizeof(double)];
  int64_t places[TL_BLOCK], n = tl_line_size(in), size = tl_line_size(values), first, count;
  tl_dtype dtype = (tl_dtype)in->dtype;
  tl_chunk_range(tl_operand_numel(out), command->chunks, chunk, &first, &count);
  for (int64_t at = first, end = first + count, some; at < end; at += some) {
    some = size - at % size;
    if (some > end - at) some = end - at;
    if (some > TL_BLOCK) some = TL_BLOCK;
    const char *sorted = tl_operand_address(in);
    sorted += searched_line(command, at / size) * n * (int64_t)sizeof(double);
    const void *wanted = tl_elements(cpu, values, dtype, at, some, block);
    if (dtype == TL_int64) {
      search_all_integer(command, sorted, n, wanted, some, places);
    } else {
      search_all_real(command, sorted, n, wanted, some, places);
    }
    tl_store_block(cpu, out, at, some, places, TL_int64, false);
  }
}
