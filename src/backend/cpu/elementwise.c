/* Runs element-wise programs, block by block.
 *
 * An operand that lies contiguous in the program's dtype is used in place; any other is loaded into
 * a block.  So each step is one loop over contiguous memory that stays in L1. */
#include <stdalign.h>
#include <string.h>

#include "backend/cpu/families.h"

/* Outputs larger than this go past the caches: nobody will find them there anyway. */
static const int64_t STREAM_BYTES = 16 << 20;

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

float tl_program_cost(const tl_program *program, const tl_operand *operands, int noperands) {
  float cost = 0.2f;
  for (int i = 0; i < program->nsteps; i++) cost += step_cost(&program->steps[i]);
  for (int i = 0; i < noperands; i++) {
    if (operands[i].ndim != 1 || operands[i].stride[0] != 1) cost += 1;
  }
  return cost;
}

void tl_elementwise_plan(const tl_command *command, tl_plan *plan) {
  int64_t numel = tl_operand_numel(&command->operands[0]);
  plan->cost = 20 + (float)numel * tl_program_cost(command->parameters, command->operands,
                                                   command->noperands);
  tl_tiles tiles;
  if (tl_tiles_make(&tiles, command)) {
    plan->chunks = tiles.count < TL_MAX_CHUNKS ? (uint32_t)tiles.count : TL_MAX_CHUNKS;
  } else {
    plan->chunks = tl_chunks_of(numel);
  }
}

static bool is_in_place(const tl_operand *operand, tl_dtype dtype) {
  return operand->dtype == dtype && tl_operand_is_contiguous(operand);
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

static bool is_streamed(const tl_evaluator *evaluator, const tl_operand *out) {
  if (tl_operand_numel(out) * (int64_t)tl_dtype_size((tl_dtype)out->dtype) < STREAM_BYTES) {
    return false;
  }
  for (int i = 0; i < evaluator->ninputs; i++) {
    if (evaluator->inputs[i].storage == out->storage) return false; /* is being read */
  }
  return true;
}

/* Whether an output can be written where it belongs as soon as its step runs: no later step may
 * read the memory as an input. */
static bool is_written_early(const tl_evaluator *evaluator, int output, const int *last_use) {
  const tl_program *program = evaluator->program;
  int made = -1; /* the step that makes it */
  for (int s = 0; s < program->nsteps; s++) {
    if (program->steps[s].out == program->outputs[output]) made = s;
  }
  for (int i = 0; i < evaluator->ninputs; i++) {
    if (evaluator->inputs[i].storage == evaluator->outputs[output].storage && last_use[i] > made) {
      return false;
    }
  }
  return true;
}

/* Gives each register a place.  A block is used again as soon as its values have been read for the
 * last time; a step may write the block that it reads. */
static void lay_out(const tl_evaluator *evaluator, const tl_operand *operands,
                    const tl_tiles *tiles, tl_layout *layout) {
  const tl_program *program = evaluator->program;
  tl_dtype dtype = (tl_dtype)program->dtype;
  bool in_runs = !tiles || tiles->in_runs; /* contiguous operands are so in a block */
  int last_use[TL_MAX_REGISTERS];
  for (int r = 0; r < TL_MAX_REGISTERS; r++) {
    last_use[r] = -1;
    layout->place[r] = (tl_place){.block = -1};
  }
  for (int s = 0; s < program->nsteps; s++) {
    const tl_step *step = &program->steps[s];
    if (step->a != TL_IMMEDIATE) last_use[step->a] = s;
    if (step->b != TL_IMMEDIATE) last_use[step->b] = s;
  }
  if (evaluator->kept != TL_IMMEDIATE) last_use[evaluator->kept] = program->nsteps;
  for (int o = 0; o < program->noutputs; o++) {
    int r = program->outputs[o];
    bool in_place = is_in_place(&operands[o], dtype);
    layout->streams[o] = in_place && is_streamed(evaluator, &operands[o]);
    if (in_place && in_runs && !layout->streams[o] && is_written_early(evaluator, o, last_use)) {
      layout->place[r].direct = &evaluator->outputs[o];
    }
  }
  for (int o = 0; o < program->noutputs; o++) {
    last_use[program->outputs[o]] = program->nsteps; /* stored at the end */
  }
  bool used[TL_MAX_REGISTERS] = {false};
  int nblocks = 0;
  for (int i = 0; i < evaluator->ninputs; i++) {
    const tl_operand *whole = &operands[program->noutputs + i];
    bool is_packed = tiles && tiles->is_packed[program->noutputs + i];
    if (is_packed ? whole->dtype == dtype : in_runs && is_in_place(whole, dtype)) {
      layout->place[i].direct = &evaluator->inputs[i];
    } else if (!layout->place[i].direct) {
      layout->place[i].block = nblocks;
      used[nblocks++] = true;
    }
  }
  for (int s = 0; s < program->nsteps; s++) {
    const tl_step *step = &program->steps[s];
    const uint8_t read[] = {step->a, step->b};
    for (int i = 0; i < 2; i++) {
      if (read[i] == TL_IMMEDIATE || last_use[read[i]] != s) continue;
      if (layout->place[read[i]].block >= 0) used[layout->place[read[i]].block] = false;
    }
    tl_place *out = &layout->place[step->out];
    if (out->direct) continue;
    out->block = 0;
    while (used[out->block]) out->block++;
    used[out->block] = true;
  }
}

static void *address(const tl_place *place, char *scratch, size_t block_bytes, size_t offset) {
  return place->direct ? (char *)tl_operand_address(place->direct) + offset
                       : scratch + (size_t)place->block * block_bytes;
}

void tl_evaluator_init(tl_evaluator *evaluator, const tl_cpu *cpu, const tl_program *program,
                       const tl_operand *operands, int noperands, uint8_t kept,
                       const tl_tiles *tiles) {
  evaluator->kept = kept;
  evaluator->cpu = cpu;
  evaluator->program = program;
  evaluator->outputs = tiles ? tiles->tile : operands;
  evaluator->inputs = evaluator->outputs + program->noutputs;
  evaluator->ninputs = noperands - program->noutputs;
  lay_out(evaluator, operands, tiles, &evaluator->layout);
}

void tl_evaluate(tl_evaluator *evaluator, int64_t at, size_t n, void **registers) {
  const tl_cpu *cpu = evaluator->cpu;
  const tl_program *program = evaluator->program;
  const tl_layout *layout = &evaluator->layout;
  tl_dtype dtype = (tl_dtype)program->dtype;
  size_t size = tl_dtype_size(dtype);
  for (int r = 0; r < evaluator->ninputs + program->nsteps; r++) {
    registers[r] = address(&layout->place[r], evaluator->scratch, TL_BLOCK * size,
                           (size_t)at * size);
  }
  for (int i = 0; i < evaluator->ninputs; i++) {
    if (layout->place[i].direct == &evaluator->inputs[i]) continue;
    tl_load_block(cpu, registers[i], dtype, &evaluator->inputs[i], at, (int64_t)n);
  }
  for (int s = 0; s < program->nsteps; s++) {
    const tl_step *step = &program->steps[s];
    run_step(cpu, step, dtype, registers[step->out], registers, n);
  }
  for (int o = 0; o < program->noutputs; o++) {
    const tl_operand *out = &evaluator->outputs[o];
    const void *values = registers[program->outputs[o]];
    if (layout->place[program->outputs[o]].direct == out) continue;
    tl_store_block(cpu, out, at, (int64_t)n, values, dtype, layout->streams[o]);
  }
}

static void run_rows(const tl_cpu *cpu, const tl_command *command, uint32_t chunk) {
  tl_evaluator evaluator;
  tl_evaluator_init(&evaluator, cpu, command->parameters, command->operands, command->noperands,
                    TL_IMMEDIATE, NULL);
  int64_t first, count;
  tl_chunk_range(tl_operand_numel(&command->operands[0]), command->chunks, chunk, &first, &count);
  for (int64_t at = first, end = first + count; at < end; at += TL_BLOCK) {
    void *registers[TL_MAX_REGISTERS];
    tl_evaluate(&evaluator, at, end - at < TL_BLOCK ? (size_t)(end - at) : TL_BLOCK, registers);
  }
}

void tl_elementwise_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk) {
  tl_tiles tiles;
  if (tl_tiles_make(&tiles, command)) {
    tl_tiles_run(cpu, &tiles, command, chunk);
  } else {
    run_rows(cpu, command, chunk);
  }
  cpu->kernels->layout->fence();
}
