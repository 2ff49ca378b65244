/* Runs element-wise programs, block by block.
 *
 * An operand that lies contiguous in the program's dtype is used in place; any other is loaded into
 * a block.  So each step is one loop over contiguous memory that stays in L1. */
#include <stdalign.h>
#include <string.h>

#include "backend/cpu/families.h"
#include "tensor/program.h"

enum { MAX_REGISTERS = 8 };

/* Nanoseconds an element, roughly; the scheduler only needs the order of magnitude. */
static float step_cost(const tl_step *step) {
  switch (step->op) {
    case TL_OP_exp:
    case TL_OP_log:
    case TL_OP_tanh:
    case TL_OP_sigmoid: return 1;
    case TL_OP_pow: return 4;
    case TL_OP_remainder: return 10;
    default: return 0.1f;
  }
}

void tl_elementwise_plan(const tl_command *command, tl_plan *plan) {
  const tl_program *program = command->parameters;
  float cost = 0.2f;
  for (int i = 0; i < program->nsteps; i++) cost += step_cost(&program->steps[i]);
  for (int i = 0; i < command->noperands; i++) {
    if (command->operands[i].ndim != 1 || command->operands[i].stride[0] != 1) cost += 1;
  }
  int64_t numel = tl_operand_numel(&command->operands[0]);
  plan->cost = 20 + cost * (float)numel;
  plan->chunks = tl_chunks_of(numel);
}

static bool is_in_place(const tl_operand *operand, tl_dtype dtype) {
  return operand->ndim == 1 && operand->stride[0] == 1 && operand->dtype == dtype;
}

static void fill(void *out, tl_dtype dtype, double value, size_t n) {
  if (dtype == TL_float32) {
    float *x = out, v = (float)value;
    for (size_t i = 0; i < n; i++) x[i] = v;
  } else {
    double *x = out;
    for (size_t i = 0; i < n; i++) x[i] = value;
  }
}

static void run_step(const tl_cpu *cpu, const tl_step *step, tl_dtype dtype, void *out,
                     void *const *registers, size_t n) {
  const tl_elementwise_kernels *kernels = cpu->kernels->elementwise;
  alignas(8) char immediate[8];
  tl_dtype_store(dtype, immediate, step->immediate);
  const void *a = step->a == TL_IMMEDIATE ? immediate : registers[step->a];
  switch (tl_ops[step->op].family == TL_ELEMENTWISE ? tl_ops[step->op].arity : 0) {
    case 0: fill(out, dtype, step->immediate, n); break;
    case 1: kernels->unary[dtype][step->op](out, a, NULL, n); break;
    default: {
      const void *b = step->b == TL_IMMEDIATE ? immediate : registers[step->b];
      tl_form form = step->a == TL_IMMEDIATE   ? TL_VALUE_BLOCK
                     : step->b == TL_IMMEDIATE ? TL_BLOCK_VALUE
                                               : TL_BLOCK_BLOCK;
      kernels->binary[dtype][step->op][form](out, a, b, n);
    }
  }
}

void tl_elementwise_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk) {
  const tl_program *program = command->parameters;
  tl_dtype dtype = (tl_dtype)program->dtype;
  size_t size = tl_dtype_size(dtype);
  const tl_operand *out = &command->operands[0], *inputs = out + 1;
  int ninputs = command->noperands - 1;
  alignas(64) char blocks[MAX_REGISTERS][TL_BLOCK * sizeof(double)];
  void *registers[MAX_REGISTERS] = {0};
  bool out_in_place = is_in_place(out, dtype);
  int64_t first, count;
  tl_chunk_range(tl_operand_numel(out), command->chunks, chunk, &first, &count);
  for (int64_t at = first, end = first + count; at < end; at += TL_BLOCK) {
    size_t n = end - at < TL_BLOCK ? (size_t)(end - at) : TL_BLOCK;
    char *result = out_in_place ? (char *)tl_operand_address(out) + (size_t)at * size : blocks[0];
    for (int i = 0; i < ninputs; i++) {
      if (is_in_place(&inputs[i], dtype)) {
        registers[i] = (char *)tl_operand_address(&inputs[i]) + (size_t)at * size;
      } else {
        registers[i] = program->nsteps ? blocks[i + 1] : result;
        tl_load_block(cpu, registers[i], dtype, &inputs[i], at, (int64_t)n);
      }
    }
    void *last = registers[0];
    for (int i = 0; i < program->nsteps; i++) {
      const tl_step *step = &program->steps[i];
      last = i + 1 == program->nsteps ? (void *)result : blocks[step->out + 1];
      run_step(cpu, step, dtype, last, registers, n);
      registers[step->out] = last;
    }
    if (!out_in_place) {
      tl_store_block(cpu, out, at, (int64_t)n, last, dtype);
    } else if (last != (void *)result) {
      memcpy(result, last, n * size);
    }
  }
}
