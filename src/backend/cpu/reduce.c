/* Reductions and comparisons.
 *
 * Where the work is cut depends on the shapes alone.  Many results: each lane makes some of them
 * whole.  Few results over many elements: each lane makes parts, in scratch, and finish() combines
 * them in order.  Results that lie side by side while the elements of one do not, and results of
 * few elements, are made a block of them at a time (by columns). */
#include <math.h>
#include <stdalign.h>

#include "backend/cpu/families.h"
#include "tensor/parameters.h"

enum {
  MANY_RESULTS = 32,
  MAX_PARTS = 4096, /* so that scratch, 8 bytes for each part of each result, stays below 512 MiB */
  COLUMNS = 512,    /* results of a block */
  FEW_ELEMENTS = 32 /* of a result: by columns is quicker whatever the strides */
};

typedef struct tl_reduction {
  const tl_operand *out, *in;
  int64_t results, count; /* count elements make one result */
  int64_t parts;          /* of a result, each made on its own */
  int64_t block;          /* results that are made at the same time */
  bool has_program, by_columns;
} tl_reduction;

static bool is_by_columns(const tl_reduction *r) {
  int kept = r->out->ndim;
  if (r->has_program || kept == 0 || r->in->ndim != kept + 1 || r->count == 0) return false;
  if (r->in->shape[kept - 1] < 8) return false;
  bool beside = r->in->stride[kept - 1] == 1 && r->in->stride[kept] != 1;
  return beside || r->count < FEW_ELEMENTS;
}

static tl_reduction reduction_of(const tl_command *command) {
  const tl_reduce *parameters = command->parameters;
  tl_reduction r = {.out = &command->operands[0], .in = &command->operands[1]};
  r.results = tl_operand_numel(r.out);
  r.count = parameters->count;
  r.has_program = parameters->program != NULL;
  r.by_columns = is_by_columns(&r);
  r.block = r.by_columns ? COLUMNS : 1;
  int64_t blocks = (r.results + r.block - 1) / r.block;
  int64_t of_block = r.by_columns && r.results < COLUMNS ? r.count * r.results : r.count * r.block;
  r.parts = blocks < MANY_RESULTS && of_block > 2 * TL_CHUNK_ELEMENTS ? tl_chunks_of(of_block) : 1;
  if (r.parts > MAX_PARTS) r.parts = MAX_PARTS;
  if (r.parts > r.count) r.parts = 1;
  return r;
}

void tl_reduce_plan(const tl_command *command, tl_plan *plan) {
  const tl_reduce *parameters = command->parameters;
  if (parameters->located) {
    tl_arg_plan(command, plan);
    return;
  }
  tl_reduction r = reduction_of(command);
  float cost = 0.5f;
  if (parameters->program) {
    cost += tl_program_cost(parameters->program, command->operands + 1, command->noperands - 1);
  }
  plan->cost = 50 + cost * (float)r.results * (float)r.count;
  int64_t blocks = (r.results + r.block - 1) / r.block;
  if (r.parts > 1) {
    plan->chunks = (uint32_t)(blocks * r.parts);
    plan->scratch_size = (uint32_t)(r.results * r.parts * (int64_t)sizeof(tl_scalar));
  } else {
    int64_t of_block = r.block * (r.count > 0 ? r.count : 1);
    int64_t per_chunk = TL_CHUNK_ELEMENTS / of_block;
    per_chunk = per_chunk < 1 ? 1 : per_chunk;
    int64_t chunks = (blocks + per_chunk - 1) / per_chunk;
    plan->chunks = chunks < 1 ? 1 : chunks > TL_MAX_CHUNKS ? TL_MAX_CHUNKS : (uint32_t)chunks;
  }
}

/* The part of a result's elements that a chunk makes. */
static void part_range(const tl_reduction *r, int64_t part, int64_t *first, int64_t *count) {
  if (!r->by_columns) {
    tl_chunk_range(r->count, (uint32_t)r->parts, (uint32_t)part, first, count);
    return;
  }
  int64_t rows = (r->count + r->parts - 1) / r->parts;
  *first = rows * part < r->count ? rows * part : r->count;
  *count = r->count - *first < rows ? r->count - *first : rows;
}

/* ---- operators ---- */

/* An operator on elements of one dtype that is computed in. */
typedef struct tl_reducer {
  tl_reduce_kernel *run;
  tl_columns_kernel *columns;
  tl_columns_kernel *totals; /* the same for totals, which are double or int64_t */
  bool is_sum, is_integer;
} tl_reducer;

static tl_reducer reducer_of(const tl_cpu *cpu, const tl_command *command, tl_dtype dtype) {
  const tl_reduce_kernels *kernels = cpu->kernels->reduce;
  tl_dtype total = dtype == TL_int64 ? TL_int64 : TL_float64;
  tl_reduce_kernel *const *run = kernels->sum;
  tl_columns_kernel *const *columns = kernels->sum_columns;
  switch (command->op) {
    case TL_OP_any: /* of bools, 0 or 1 */
    case TL_OP_max:
    case TL_OP_amax:
      run = kernels->max;
      columns = kernels->max_columns;
      break;
    case TL_OP_all:
    case TL_OP_min:
    case TL_OP_amin:
      run = kernels->min;
      columns = kernels->min_columns;
      break;
    case TL_OP_prod:
      run = kernels->prod;
      columns = kernels->prod_columns;
      break;
    default: break;
  }
  return (tl_reducer){run[dtype], columns[dtype], columns[total], run == kernels->sum,
                      dtype == TL_int64};
}

/* What no elements give; where nothing would, they were refused. */
static tl_scalar nothing(const tl_command *command, tl_dtype dtype) {
  bool is_one = command->op == TL_OP_prod || command->op == TL_OP_all;
  return tl_scalar_integer(is_one, dtype);
}

/* One more value into an accumulated one. */
static tl_scalar combine(const tl_reducer *reducer, tl_scalar total, tl_scalar value) {
  reducer->totals(&total, &value, 1);
  return total;
}

static void store_result(const tl_command *command, const tl_reduction *r, int64_t index,
                         tl_scalar value, tl_dtype dtype) {
  tl_dtype out_dtype = (tl_dtype)r->out->dtype;
  char *out = tl_operand_address(r->out);
  value = tl_scalar_convert(value, dtype, tl_dtype_compute(out_dtype));
  if (command->op == TL_OP_mean) value.real /= (double)r->count;
  tl_dtype_store(out_dtype, out + (size_t)index * tl_dtype_size(out_dtype), value);
}

/* Where the elements to reduce come from: an operand, or a register of a program. */
typedef struct tl_source {
  const tl_cpu *cpu;
  const tl_operand *operand;
  tl_evaluator *evaluator; /* or NULL */
  uint8_t reg;
  tl_dtype dtype; /* computed in */
  bool is_direct; /* the operand's elements lie in order, in that dtype */
  char *block;    /* of TL_BLOCK elements */
} tl_source;

static const void *next_block(const tl_source *source, int64_t at, int64_t n) {
  const tl_operand *operand = source->operand;
  if (source->evaluator) {
    void *registers[TL_MAX_REGISTERS];
    /* Nothing of it can fail: what can is not joined. */
    tl_evaluate(source->evaluator, at, (size_t)n, registers, NULL);
    return registers[source->reg];
  }
  if (source->is_direct) {
    return (const char *)tl_operand_address(operand) + (size_t)at * tl_dtype_size(source->dtype);
  }
  tl_load_block(source->cpu, source->block, source->dtype, operand, at, n);
  return source->block;
}

/* The reduction of elements first .. first+count-1, in row-major order: in the same blocks wherever
 * they come from, so that the bits are the same. */
static tl_scalar reduce_run(const tl_source *source, const tl_reducer *reducer, int64_t first,
                            int64_t count) {
  tl_scalar total = {0};
  double lost = 0;
  for (int64_t at = 0; at < count; at += TL_BLOCK) {
    int64_t n = count - at < TL_BLOCK ? count - at : TL_BLOCK;
    tl_scalar value = reducer->run(next_block(source, first + at, n), (size_t)n);
    if (at == 0) {
      total = value;
    } else if (!reducer->is_sum || reducer->is_integer) {
      total = combine(reducer, total, value);
    } else { /* compensated, as within a block */
      double sum = total.real, block = value.real, next = sum + block;
      lost += fabs(sum) >= fabs(block) ? (sum - next) + block : (block - next) + sum;
      total.real = next;
    }
  }
  if (lost != 0 && isfinite(total.real)) total.real += lost; /* -0 + 0 would be 0 */
  return total;
}

/* Elements of n results, one of each, as a block. */
static const void *row_of(const tl_source *source, const tl_reduction *r, const char *from,
                          int64_t n) {
  int64_t stride = r->in->stride[r->out->ndim - 1];
  if (stride == 1 && r->in->dtype == source->dtype) return from;
  const tl_layout_kernels *kernels = source->cpu->kernels->layout;
  kernels->load[source->dtype][r->in->dtype](source->block, from, stride, (size_t)n);
  return source->block;
}

/* Results first .. first+count-1, of which part `part` of the elements. */
static void reduce_columns(const tl_source *source, const tl_reducer *reducer,
                           const tl_command *command, const tl_reduction *r, int64_t first,
                           int64_t count, int64_t part) {
  int64_t size = (int64_t)tl_dtype_size((tl_dtype)r->in->dtype);
  int64_t row_size = (int64_t)tl_dtype_size(source->dtype);
  int kept = r->out->ndim;
  int64_t width = r->in->shape[kept - 1], step = r->in->stride[kept], first_row, rows;
  tl_view kept_view = {.ndim = (uint8_t)kept};
  for (int d = 0; d < kept; d++) {
    kept_view.shape[d] = r->in->shape[d];
    kept_view.stride[d] = r->in->stride[d];
  }
  part_range(r, part, &first_row, &rows);
  if (rows == 0) return;
  const char *base = (char *)tl_operand_address(r->in) + first_row * step * size;
  alignas(64) tl_scalar totals[COLUMNS];
  for (int64_t end = first + count; first < end;) {
    int64_t n = width - first % width;
    if (n > COLUMNS) n = COLUMNS;
    if (n > end - first) n = end - first;
    const char *from = base + tl_view_element(&kept_view, first) * size;
    const char *row = row_of(source, r, from, n);
    for (int64_t i = 0; i < n; i++) totals[i] = tl_dtype_load(source->dtype, row + i * row_size);
    for (int64_t k = 1; k < rows; k++) {
      reducer->columns(totals, row_of(source, r, from + k * step * size, n), (size_t)n);
    }
    for (int64_t i = 0; i < n; i++) {
      if (r->parts > 1) {
        ((tl_scalar *)command->scratch)[(first + i) * r->parts + part] = totals[i];
      } else {
        store_result(command, r, first + i, totals[i], source->dtype);
      }
    }
    first += n;
  }
}

/* What makes one result, as an operand of its own. */
static tl_operand source_of(const tl_command *command, const tl_reduction *r, int64_t result) {
  const tl_reduce *parameters = command->parameters;
  tl_operand in = *r->in;
  int kept = in.ndim - parameters->dims;
  for (int d = kept - 1; d >= 0; d--) {
    in.offset += result % in.shape[d] * in.stride[d];
    result /= in.shape[d];
  }
  in.shape += kept;
  in.stride += kept;
  in.ndim = (uint8_t)parameters->dims;
  return in;
}

/* The reduction of part of one result. */
static tl_scalar reduce_part(tl_source *source, const tl_reducer *reducer,
                             const tl_command *command, const tl_reduction *r, int64_t result,
                             int64_t first, int64_t count) {
  if (count == 0) return nothing(command, source->dtype);
  if (source->evaluator) return reduce_run(source, reducer, result * r->count + first, count);
  tl_operand in = source_of(command, r, result);
  source->operand = &in;
  source->is_direct = in.dtype == source->dtype && tl_operand_is_contiguous(&in);
  return reduce_run(source, reducer, first, count);
}

static void reduce_chunk(tl_source *source, const tl_command *command, const tl_reduction *r,
                         uint32_t chunk) {
  tl_reducer reducer = reducer_of(source->cpu, command, source->dtype);
  int64_t blocks = (r->results + r->block - 1) / r->block;
  int64_t per_chunk = (blocks * r->parts + command->chunks - 1) / command->chunks * r->block;
  int64_t first_result = per_chunk * (chunk / r->parts), part = chunk % r->parts, first, count;
  int64_t results = r->results - first_result < per_chunk ? r->results - first_result : per_chunk;
  if (r->by_columns) {
    if (results > 0) {
      reduce_columns(source, &reducer, command, r, first_result, results, part);
    }
  } else if (r->parts > 1) {
    part_range(r, part, &first, &count);
    if (count == 0) return;
    ((tl_scalar *)command->scratch)[chunk] =
        reduce_part(source, &reducer, command, r, first_result, first, count);
  } else {
    for (int64_t i = first_result; i < first_result + results; i++) {
      store_result(command, r, i, reduce_part(source, &reducer, command, r, i, 0, r->count),
                   source->dtype);
    }
  }
}

/* What the elements are computed in. */
static tl_dtype dtype_of(const tl_command *command) {
  const tl_reduce *parameters = command->parameters;
  return parameters->program ? (tl_dtype)parameters->program->dtype
                             : tl_dtype_compute((tl_dtype)command->operands[1].dtype);
}

void tl_reduce_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk) {
  const tl_reduce *parameters = command->parameters;
  if (parameters->located) {
    tl_arg_run(cpu, command, chunk);
    return;
  }
  tl_reduction r = reduction_of(command);
  tl_source source = {.cpu = cpu, .reg = parameters->reg, .dtype = dtype_of(command)};
  if (parameters->program) {
    tl_evaluator evaluator;
    source.evaluator = &evaluator;
    tl_evaluator_init(&evaluator, cpu, parameters->program, command->operands + 1,
                      command->noperands - 1, parameters->reg, NULL);
    reduce_chunk(&source, command, &r, chunk);
    cpu->kernels->layout->fence();
  } else {
    alignas(64) char block[TL_BLOCK * sizeof(double)];
    source.block = block;
    reduce_chunk(&source, command, &r, chunk);
  }
}

void tl_reduce_finish(const tl_cpu *cpu, const tl_command *command) {
  if (((const tl_reduce *)command->parameters)->located) {
    tl_arg_finish(command);
    return;
  }
  tl_reduction r = reduction_of(command);
  tl_dtype dtype = dtype_of(command);
  tl_reducer reducer = reducer_of(cpu, command, dtype);
  const tl_scalar *part = command->scratch;
  for (int64_t i = 0; i < r.results; i++) {
    tl_scalar total = *part++;
    for (int64_t p = 1; p < r.parts; p++, part++) {
      int64_t first, count;
      part_range(&r, p, &first, &count);
      if (count > 0) total = combine(&reducer, total, *part);
    }
    store_result(command, &r, i, total, dtype);
  }
}

/* ---- comparison ---- */

void tl_compare_plan(const tl_command *command, tl_plan *plan) {
  int64_t numel = tl_operand_numel(&command->operands[1]);
  plan->cost = 50 + 1 * (float)numel;
  plan->chunks = tl_chunks_of(numel);
  plan->scratch_size = plan->chunks * (uint32_t)sizeof(double);
}

void tl_compare_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk) {
  const tl_compare *parameters = command->parameters;
  const tl_reduce_kernels *kernels = cpu->kernels->reduce;
  const tl_operand *x = &command->operands[1], *y = &command->operands[2];
  bool integers = tl_dtype_compute((tl_dtype)x->dtype) == TL_int64 &&
                  tl_dtype_compute((tl_dtype)y->dtype) == TL_int64 && parameters->relative == 0 &&
                  parameters->absolute == 0;
  tl_dtype dtype = integers ? TL_int64 : TL_float64;
  alignas(64) char x_block[TL_BLOCK * sizeof(double)], y_block[TL_BLOCK * sizeof(double)];
  size_t differing = 0;
  int64_t first, count;
  tl_chunk_range(tl_operand_numel(x), command->chunks, chunk, &first, &count);
  for (int64_t at = first, end = first + count; at < end; at += TL_BLOCK) {
    int64_t n = end - at < TL_BLOCK ? end - at : TL_BLOCK;
    const void *a = x_block, *b = y_block;
    tl_load_block(cpu, x_block, dtype, x, at, n);
    tl_load_block(cpu, y_block, dtype, y, at, n);
    differing += integers ? kernels->differing_integers(a, b, (size_t)n)
                          : kernels->differing(a, b, (size_t)n, parameters->relative,
                                               parameters->absolute);
  }
  ((double *)command->scratch)[chunk] = (double)differing;
}

void tl_compare_finish(const tl_command *command) {
  tl_scalar total = {0};
  for (uint32_t i = 0; i < command->chunks; i++) total.real += ((double *)command->scratch)[i];
  tl_dtype_store(TL_float64, tl_operand_address(&command->operands[0]), total);
}
