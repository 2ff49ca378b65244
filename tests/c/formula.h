/* What the replayed commands compute: a fold over their operands that any change of order, place or
 * value shows in.  The arithmetic is shared by the toy backend and the sequential run. */
#ifndef TL_TESTS_FORMULA_H
#define TL_TESTS_FORMULA_H

#include <inttypes.h>
#include <sched.h>

#include "toy.h"

enum { OUTPUTS = 2, INPUTS = 3, NEVER = 1000, GIVE_WAY = 1, STALL = 2 };

/* Outputs are the first operands.  Each element is folded from the salt, its old value if that is
 * read, and one element of each input, in this order. */
typedef struct formula {
  toy_work work;
  uint64_t salt;
  uint32_t failing_chunk; /* the number of chunks stands for finish() */
  uint8_t outputs;
  bool real;      /* doubles, else integers */
  uint16_t delay; /* 0: none, GIVE_WAY, STALL, or loops */
} formula;

static inline int64_t place(const tl_operand *operand, int64_t index) {
  int64_t element = operand->offset;
  for (int d = operand->ndim; d-- > 0;) {
    element += index % operand->shape[d] * operand->stride[d];
    index /= operand->shape[d];
  }
  return element;
}

static inline uint64_t fold(bool real, uint64_t value, uint64_t other) {
  if (!real) return ((value << 7 | value >> 57) ^ other) * UINT64_C(0x9E3779B97F4A7C15) + 1;
  double x, y;
  memcpy(&x, &value, sizeof x);
  memcpy(&y, &other, sizeof y);
  x = 0.7 * x - 0.3 * y; /* stays within -1 and 1 */
  memcpy(&value, &x, sizeof x);
  return value;
}

static inline uint64_t real_word(uint64_t word) {
  double value = (double)(word >> 11) * 0x1p-53;
  memcpy(&word, &value, sizeof value);
  return word;
}

/* data[k]: the words of operand k's storage. */
static inline uint64_t element_value(const formula *recipe, int noperands,
                                     const tl_operand *operands, const uint64_t *const *data,
                                     int output, int64_t index) {
  uint64_t value = recipe->real ? real_word(recipe->salt) : recipe->salt;
  if (operands[output].access & TL_READ) {
    value = fold(recipe->real, value, data[output][place(&operands[output], index)]);
  }
  for (int k = recipe->outputs; k < noperands; k++) {
    int64_t from = (index + (int64_t)(recipe->salt & 0xFF)) % tl_operand_numel(&operands[k]);
    value = fold(recipe->real, value, data[k][place(&operands[k], from)]);
  }
  return value;
}

static inline void pause_for(uint16_t delay) {
  if (delay == GIVE_WAY) sched_yield();
  if (delay == STALL) toy_sleep(20000);
  for (volatile uint16_t i = 1; i < delay;) i++;
}

static inline tl_status no_value(const formula *recipe, tl_error *error) {
  return tl_error_set(error, TL_FAILED, "no value for %016" PRIx64, recipe->salt);
}

static inline tl_status run_recipe(const tl_command *command, uint32_t chunk, tl_error *error) {
  const formula *recipe = command->parameters;
  pause_for(recipe->delay);
  if (chunk == recipe->failing_chunk) return no_value(recipe, error);
  const uint64_t *data[OUTPUTS + INPUTS];
  for (int k = 0; k < command->noperands; k++) data[k] = command->operands[k].storage->data;
  uint64_t *scratch = command->scratch;
  for (int k = 0; k < recipe->outputs; k++) {
    const tl_operand *out = &command->operands[k];
    uint64_t *words = out->storage->data;
    int64_t count = tl_operand_numel(out);
    int64_t first = count * chunk / command->chunks, end = count * (chunk + 1) / command->chunks;
    for (int64_t i = first; i < end; i++) {
      uint64_t value = element_value(recipe, command->noperands, command->operands, data, k, i);
      *(scratch ? &scratch[i] : &words[place(out, i)]) = value;
    }
    if (scratch) scratch += count;
  }
  return TL_OK;
}

static inline tl_status finish_recipe(const tl_command *command, tl_error *error) {
  const formula *recipe = command->parameters;
  pause_for(recipe->delay);
  if (command->chunks == recipe->failing_chunk) return no_value(recipe, error);
  const uint64_t *scratch = command->scratch;
  for (int k = 0; k < recipe->outputs; k++) {
    const tl_operand *out = &command->operands[k];
    uint64_t *words = out->storage->data;
    int64_t count = tl_operand_numel(out);
    for (int64_t i = 0; i < count; i++) words[place(out, i)] = *scratch++;
  }
  return TL_OK;
}

#endif
