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
static float step_cost(const tl_program *program, const tl_step *step) {
  switch (step->op) {
    case TL_OP_pow: return 4;
    case TL_OP_remainder:
    case TL_OP_fmod: return 10;
    case TL_OP_floor_divide: return program->dtype == TL_int64 ? 10 : 0.2f;
    case TL_OP_sqrt:
    case TL_OP_rsqrt:
    case TL_OP_reciprocal:
    case TL_OP_div: return 0.2f;
    default: return tl_ops[step->op].kind == TL_REAL ? 1 : 0.1f;
  }
}

float tl_program_cost(const tl_program *program, const tl_operand *operands, int noperands) {
  float cost = 0.2f;
  for (int i = 0; i < program->nsteps; i++) cost += step_cost(program, &program->steps[i]);
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

static void fill(void *out, tl_dtype dtype, tl_scalar value, size_t n) {
  if (dtype == TL_float32) {
    float *x = out, v = (float)value.real;
    for (size_t i = 0; i < n; i++) x[i] = v;
  } else { /* float64 and int64, whose bits the scalar holds */
    tl_scalar *x = out;
    for (size_t i = 0; i < n; i++) x[i] = value;
  }
}

/* Integers that have no result: 0 to divide by, negative powers. */
static tl_status check_integers(uint16_t op, const int64_t *y, size_t n, tl_error *error) {
  if (!tl_op_can_fail((tl_op)op)) return TL_OK;
  bool power = op == TL_OP_pow;
  for (size_t i = 0; i < n; i++) {
    if (power && y[i] < 0) {
      return tl_error_set(error, TL_INVALID,
                          "an integer to the power %lld: convert it to a float dtype",
                          (long long)y[i]);
    }
    if (!power && y[i] == 0) {
      return tl_error_set(error, TL_INVALID, "integer division by zero");
    }
  }
  return TL_OK;
}

static tl_status run_step(const tl_cpu *cpu, const tl_step *step, tl_dtype dtype, void *out,
                          void *const *registers, size_t n, tl_error *error) {
  const tl_elementwise_kernels *kernels = cpu->kernels->elementwise;
  const tl_op_row *row = &tl_ops[step->op];
  alignas(8) char immediate[8];
  tl_dtype_store(dtype, immediate, step->immediate);
  const void *a = step->a == TL_IMMEDIATE ? immediate : registers[step->a];
  const void *b = step->b == TL_IMMEDIATE ? immediate : registers[step->b];
  switch (row->family == TL_ELEMENTWISE ? row->arity : 0) {
    case 0: fill(out, dtype, step->immediate, n); return TL_OK;
    case 1: kernels->unary[dtype][step->op](out, a, NULL, n); return TL_OK;
    case 2: {
      tl_form form = step->a == TL_IMMEDIATE   ? TL_VALUE_BLOCK
                     : step->b == TL_IMMEDIATE ? TL_BLOCK_VALUE
                                               : TL_BLOCK_BLOCK;
      tl_status status = dtype == TL_int64
                             ? check_integers(step->op, b, form == TL_BLOCK_VALUE ? 1 : n, error)
                             : TL_OK;
      if (status == TL_OK) kernels->binary[dtype][step->op][form](out, a, b, n);
      return status;
    }
    default:
      kernels->ternary[dtype][step->op](out, a, b, registers[step->c], n);
      return TL_OK;
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
    if (step->c != TL_IMMEDIATE) last_use[step->c] = s;
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
    const uint8_t read[] = {step->a, step->b, step->c};
    for (int i = 0; i < 3; i++) {
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

tl_status tl_evaluate(tl_evaluator *evaluator, int64_t at, size_t n, void **registers,
                      tl_error *error) {
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
    tl_status status = run_step(cpu, step, dtype, registers[step->out], registers, n, error);
    if (status != TL_OK) return status;
  }
  for (int o = 0; o < program->noutputs; o++) {
    const tl_operand *out = &evaluator->outputs[o];
    const void *values = registers[program->outputs[o]];
    if (layout->place[program->outputs[o]].direct == out) continue;
    tl_store_block(cpu, out, at, (int64_t)n, values, dtype, layout->streams[o]);
  }
  return TL_OK;
}

/* Small commands are of one step over operands that are used in place: then there is nothing to lay
 * out, which takes longer than the step. */
static bool is_plain(const tl_command *command) {
  const tl_program *program = command->parameters;
  if (program->nsteps != 1 || command->chunks > 1) return false;
  if (tl_operand_numel(&command->operands[0]) > TL_BLOCK) return false;
  for (int i = 0; i < command->noperands; i++) {
    if (!is_in_place(&command->operands[i], (tl_dtype)program->dtype)) return false;
  }
  return true;
}

static tl_status run_plain(const tl_cpu *cpu, const tl_command *command, tl_error *error) {
  const tl_program *program = command->parameters;
  void *registers[TL_MAX_LOOP_VIEWS];
  for (int i = 1; i < command->noperands; i++) {
    registers[i - 1] = tl_operand_address(&command->operands[i]);
  }
  return run_step(cpu, &program->steps[0], (tl_dtype)program->dtype,
                  tl_operand_address(&command->operands[0]), registers,
                  (size_t)tl_operand_numel(&command->operands[0]), error);
}

static tl_status run_rows(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                          tl_error *error) {
  tl_status status = TL_OK;
  tl_evaluator evaluator;
  tl_evaluator_init(&evaluator, cpu, command->parameters, command->operands, command->noperands,
                    TL_IMMEDIATE, NULL);
  int64_t first, count;
  tl_chunk_range(tl_operand_numel(&command->operands[0]), command->chunks, chunk, &first, &count);
  for (int64_t at = first, end = first + count; at < end && status == TL_OK; at += TL_BLOCK) {
    void *registers[TL_MAX_REGISTERS];
    size_t n = end - at < TL_BLOCK ? (size_t)(end - at) : TL_BLOCK;
    status = tl_evaluate(&evaluator, at, n, registers, error);
  }
  return status;
}

tl_status tl_elementwise_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                             tl_error *error) {
  if (is_plain(command)) return run_plain(cpu, command, error);
  tl_tiles tiles;
  tl_status status = tl_tiles_make(&tiles, command)
                         ? tl_tiles_run(cpu, &tiles, command, chunk, error)
                         : run_rows(cpu, command, chunk, error);
  cpu->kernels->layout->fence();
  return status;
}
