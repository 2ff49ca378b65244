#include "backend/cpu/families.h"
#include "tensor/parameters.h"
#include "tensor/philox.h"

void tl_generate_plan(const tl_command *command, tl_plan *plan) {
  int64_t numel = tl_operand_numel(&command->operands[0]);
  plan->cost = 50 + 2 * (float)numel;
  plan->chunks = tl_chunks_of(numel);
}

static void arange(const tl_generate *parameters, tl_dtype dtype, char *out, int64_t first,
                   int64_t count) {
  bool integers = tl_dtype_compute(dtype) == TL_int64;
  size_t size = tl_dtype_size(dtype);
  for (int64_t i = first; i < first + count; i++, out += size) {
    tl_scalar value;
    if (integers) { /* in unsigned arithmetic, which may wrap around */
      value.integer = (int64_t)((uint64_t)parameters->start.integer +
                                (uint64_t)i * (uint64_t)parameters->step.integer);
    } else {
      value.real = parameters->start.real + (double)i * parameters->step.real;
    }
    tl_dtype_store(dtype, out, value);
  }
}

void tl_generate_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk) {
  const tl_generate *parameters = command->parameters;
  const tl_random_kernels *random = cpu->kernels->random;
  const tl_operand *operand = &command->operands[0];
  tl_dtype dtype = (tl_dtype)operand->dtype;
  int64_t first, count;
  tl_chunk_range(tl_operand_numel(operand), command->chunks, chunk, &first, &count);
  char *out = (char *)tl_operand_address(operand) + (size_t)first * tl_dtype_size(dtype);
  uint64_t seed = parameters->seed;
  bool normal = command->op == TL_OP_randn;
  if (command->op == TL_OP_arange || command->op == TL_OP_linspace) {
    arange(parameters, dtype, out, first, count);
  } else if (dtype == TL_float32) {
    uint64_t position = tl_philox_advance32(parameters->position, (uint64_t)first);
    (normal ? random->normal_f32 : random->uniform_f32)((float *)(void *)out, seed, position,
                                                        (size_t)count);
  } else {
    uint64_t position = tl_philox_advance64(parameters->position, (uint64_t)first);
    (normal ? random->normal_f64 : random->uniform_f64)((double *)(void *)out, seed, position,
                                                        (size_t)count);
  }
}
