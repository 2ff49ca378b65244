/* Commands of linear algebra: which matrices a chunk takes, and what is told of those without a
 * result. */
#include "backend/cpu/linalg.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/system.h"

/* Small matrices are taken together until a chunk costs this much. */
static const double GROUP_COST = 50e3; /* nanoseconds */

typedef struct tl_routine {
  tl_flaw (*run)(tl_problem *problem);
  double weight; /* nanoseconds for rows x columns x the lesser of them, roughly */
} tl_routine;

static tl_routine routine_of(tl_op op) {
  switch (op) {
    case TL_OP_linalg_solve: return (tl_routine){tl_linalg_solve, 0.08};
    case TL_OP_linalg_inv: return (tl_routine){tl_linalg_inv, 0.12};
    case TL_OP_linalg_det:
    case TL_OP_linalg_slogdet: return (tl_routine){tl_linalg_det, 0.04};
    case TL_OP_linalg_cholesky: return (tl_routine){tl_linalg_cholesky, 0.02};
    case TL_OP_linalg_qr: return (tl_routine){tl_linalg_qr, 0.3};
    case TL_OP_linalg_svd: return (tl_routine){tl_linalg_svd, 0.5};
    case TL_OP_linalg_svdvals: return (tl_routine){tl_linalg_svd, 0.2};
    case TL_OP_linalg_matrix_rank: return (tl_routine){tl_linalg_matrix_rank, 0.2};
    case TL_OP_linalg_pinv: return (tl_routine){tl_linalg_pinv, 0.5};
    case TL_OP_linalg_lstsq: return (tl_routine){tl_linalg_lstsq, 0.3};
    case TL_OP_linalg_eigh:
    case TL_OP_linalg_eigvalsh: return (tl_routine){tl_linalg_eigh, 0.2};
    default: return (tl_routine){tl_linalg_eig, 1.4}; /* eig, eigvals */
  }
}

static bool is_written(const tl_operand *operand) { return operand->access & TL_WRITE; }

static tl_problem problem_of(const tl_command *command) {
  tl_problem problem = {.command = command, .parameters = command->parameters, .batch = 1};
  while (is_written(&command->operands[problem.nresults])) problem.nresults++;
  const tl_operand *first = &command->operands[problem.nresults];
  int matrix = first->ndim - 2;
  problem.dtype = (tl_dtype)first->dtype;
  problem.size = tl_dtype_size(problem.dtype);
  problem.rows = (lapack_int)first->shape[matrix];
  problem.columns = (lapack_int)first->shape[matrix + 1];
  for (int d = 0; d < matrix; d++) problem.batch *= first->shape[d];
  if (problem.nresults + 1 < command->noperands) {
    problem.right = (lapack_int)command->operands[problem.nresults + 1].shape[matrix + 1];
  }
  return problem;
}

static double cost_of(const tl_problem *p) {
  double least = tl_lapack_least(p->rows, p->columns);
  double size = (double)p->rows * p->columns * (least + p->right);
  return 2000 + size * routine_of(p->command->op).weight;
}

static int64_t group_of(const tl_problem *p) {
  int64_t group = 1 + (int64_t)(GROUP_COST / cost_of(p));
  int64_t least = (p->batch + TL_MAX_CHUNKS - 1) / TL_MAX_CHUNKS;
  return group > least ? group : least;
}

/* What the first matrix of a chunk without a result is like, in the command's scratch. */
typedef struct tl_report {
  int64_t matrix; /* from 1; 0: all have one */
  int32_t flaw, detail;
} tl_report;

void tl_linalg_plan(const tl_command *command, tl_plan *plan) {
  tl_problem problem = problem_of(command);
  int64_t group = group_of(&problem), chunks = (problem.batch + group - 1) / group;
  plan->chunks = chunks > 1 ? (uint32_t)chunks : 1;
  plan->cost = (float)(cost_of(&problem) * (double)problem.batch);
  plan->scratch_size = plan->chunks * (uint32_t)sizeof(tl_report);
}

/* ---- for the routines ---- */

void *tl_problem_buffer(tl_problem *p, int slot, int64_t count, size_t size) {
  size_t bytes = (size_t)(count > 0 ? count : 1) * size;
  if (!p->buffers[slot]) p->buffers[slot] = tl_cpu_allocate(bytes);
  if (!p->buffers[slot]) p->missing = bytes;
  return p->buffers[slot];
}

void tl_problem_work(tl_problem *p, const void *answer) {
  double wanted = tl_lapack_get(p->dtype, answer);
  wanted += 1 + wanted / (1 << 20); /* the answer may have been rounded down */
  p->work_size = wanted < INT_MAX ? (lapack_int)wanted : INT_MAX;
  p->work = tl_cpu_allocate((size_t)p->work_size * p->size);
  if (!p->work) p->missing = (size_t)p->work_size * p->size;
}

static int64_t elements_of(const tl_problem *p, const tl_operand *operand) {
  return tl_operand_numel(operand) / p->batch;
}

void *tl_problem_result(const tl_problem *p, int number) {
  const tl_operand *operand = &p->command->operands[number];
  size_t size = tl_dtype_size((tl_dtype)operand->dtype);
  return (char *)tl_operand_address(operand) + (size_t)(p->index * elements_of(p, operand)) * size;
}

void tl_problem_load(const tl_problem *p, int argument, bool by_columns, void *to) {
  tl_operand operand = p->command->operands[p->nresults + argument];
  int64_t shape[TL_MAX_DIMS], stride[TL_MAX_DIMS], count = elements_of(p, &operand);
  int row = operand.ndim - 2, column = operand.ndim - 1;
  memcpy(shape, operand.shape, operand.ndim * sizeof *shape);
  memcpy(stride, operand.stride, operand.ndim * sizeof *stride);
  if (by_columns) {
    shape[row] = operand.shape[column];
    shape[column] = operand.shape[row];
    stride[row] = operand.stride[column];
    stride[column] = operand.stride[row];
  }
  operand.shape = shape;
  operand.stride = stride;
  if (count > 0) tl_load_block(p->cpu, to, p->dtype, &operand, p->index * count, count);
}

void tl_problem_store(const tl_problem *p, int number, const void *from) {
  tl_operand operand = p->command->operands[number];
  int64_t rows = operand.shape[operand.ndim - 2], columns = operand.shape[operand.ndim - 1];
  int64_t shape[] = {columns, rows}, stride[] = {1, columns};
  operand.ndim = 2;
  operand.shape = shape;
  operand.stride = stride;
  operand.offset += p->index * rows * columns;
  if (rows * columns == 0) return;
  tl_store_block(p->cpu, &operand, 0, rows * columns, from, p->dtype, false);
}

/* ---- running ---- */

static void set_diagonal(const tl_problem *p, int operand, lapack_int n) {
  char *at = tl_problem_result(p, operand);
  for (lapack_int i = 0; i < n; i++, at += ((size_t)n + 1) * p->size) {
    tl_lapack_set(p->dtype, at, 1);
  }
}

/* The results for a matrix without elements: what does not depend on it is 0 but for determinants,
 * and for orthogonal matrices. */
static void run_empty(const tl_problem *p) {
  tl_op op = p->command->op;
  for (int i = 0; i < p->nresults; i++) {
    const tl_operand *result = &p->command->operands[i];
    size_t count = (size_t)elements_of(p, result);
    memset(tl_problem_result(p, i), 0, count * tl_dtype_size((tl_dtype)result->dtype));
  }
  if (op == TL_OP_linalg_det || op == TL_OP_linalg_slogdet) set_diagonal(p, 0, 1);
  bool is_svd = op == TL_OP_linalg_svd;
  if (!p->parameters->full || (!is_svd && op != TL_OP_linalg_qr)) return;
  set_diagonal(p, 0, p->rows);
  if (is_svd) set_diagonal(p, 2, p->columns);
}

tl_status tl_linalg_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                        tl_error *error) {
  tl_problem problem = problem_of(command);
  tl_routine routine = routine_of(command->op);
  tl_report report = {0, TL_FLAWLESS, 0};
  int64_t group = group_of(&problem), end = (chunk + INT64_C(1)) * group;
  problem.cpu = cpu;
  for (problem.index = end - group; problem.index < end && problem.index < problem.batch;
       problem.index++) {
    if (problem.rows == 0 || problem.columns == 0) {
      run_empty(&problem);
      continue;
    }
    report.flaw = (int32_t)routine.run(&problem);
    if (report.flaw != TL_FLAWLESS || problem.missing) break;
  }
  if (report.flaw != TL_FLAWLESS) report.matrix = problem.index + 1;
  report.detail = problem.detail;
  ((tl_report *)command->scratch)[chunk] = report;
  for (int i = 0; i < TL_PROBLEM_BUFFERS; i++) free(problem.buffers[i]);
  free(problem.work);
  return !problem.missing ? TL_OK
                          : tl_error_set(error, TL_NO_MEMORY,
                                         "out of memory: cannot allocate %zu bytes",
                                         problem.missing);
}

/* Of several matrices without a result the first is told, whichever lane met it when. */
tl_status tl_linalg_finish(const tl_command *command, tl_error *error) {
  const tl_report *report = command->scratch, *end = report + command->chunks;
  while (report < end && !report->matrix) report++;
  if (report == end) return TL_OK;
  char name[64] = "the matrix", text[64] = "";
  if (command->operands[command->noperands - 1].ndim > 2) {
    snprintf(name, sizeof name, "matrix %" PRId64 " of the batch", report->matrix);
  }
  const char *flaw = text;
  switch ((tl_flaw)report->flaw) {
    case TL_SINGULAR: flaw = "is singular"; break;
    case TL_NOT_POSITIVE:
      snprintf(text, sizeof text, "is not positive-definite: its leading minor of order %d is not",
               (int)report->detail);
      break;
    case TL_NOT_FINITE: flaw = "has elements that are not finite"; break;
    default: flaw = "is one for which the iteration does not converge"; break;
  }
  return tl_error_set(error, TL_FAILED, "%s %s", name, flaw);
}
