/* Linear algebra: one matrix of a batch at a time, through LAPACK.
 *
 * LAPACK wants matrices by columns.  One that lies by rows is its transpose by columns, so the
 * routines work on that where they can, in the result's own memory: of n x n inverses, triangles
 * and determinants nothing changes, the roles of U and Vh do, and Q R of A is L Q of A's.
 *
 * What is called is the LAPACK within OpenBLAS, by LAPACKE's header.  LAPACKE's own functions would
 * add copies and checks that are made here already, and bring in three more libraries. */
#ifndef TL_CPU_LINALG_H
#define TL_CPU_LINALG_H

#include <lapack.h>

#include "backend/cpu/families.h"
#include "tensor/parameters.h"

/* What a matrix can be that a routine has no result for. */
typedef enum tl_flaw {
  TL_FLAWLESS,
  TL_SINGULAR,
  TL_NOT_POSITIVE, /* definite */
  TL_NOT_FINITE,
  TL_NOT_CONVERGED,
} tl_flaw;

enum { TL_PROBLEM_BUFFERS = 5 };

typedef struct tl_problem {
  const tl_cpu *cpu;
  const tl_command *command;
  const tl_linalg *parameters;
  tl_dtype dtype;
  size_t size;               /* of an element */
  int nresults;              /* the command's operands before its arguments */
  int64_t batch, index;      /* matrices, and the one at hand, from 0 */
  lapack_int rows, columns;  /* of the first argument */
  lapack_int right;          /* columns of the second one, if there is one */
  lapack_int detail;         /* about the flaw */
  void *buffers[TL_PROBLEM_BUFFERS]; /* kept from matrix to matrix */
  void *work;                        /* likewise, of work_size elements */
  lapack_int work_size, integers_size; /* of a buffer of integers, where LAPACK says how large */
  size_t missing; /* bytes that could not be had: then nothing was done, whatever is returned */
} tl_problem;

#define TL_LAPACK(problem, name, ...)                                \
  ((problem)->dtype == TL_float32 ? LAPACK_s##name(__VA_ARGS__) : LAPACK_d##name(__VA_ARGS__))

/* Buffer number `slot`, of `count` elements of `size` bytes; NULL, and noted, when there is no
 * memory. */
void *tl_problem_buffer(tl_problem *problem, int slot, int64_t count, size_t size);

/* Makes `work` as large as LAPACK said that it wants, in the first element of `answer`. */
void tl_problem_work(tl_problem *problem, const void *answer);

/* Where the matrix at hand of an operand that is written lies. */
void *tl_problem_result(const tl_problem *problem, int operand);

/* The matrix at hand of argument 0 or 1, by rows or by columns. */
void tl_problem_load(const tl_problem *problem, int argument, bool by_columns, void *to);

/* The result from a matrix by columns. */
void tl_problem_store(const tl_problem *problem, int operand, const void *from);

/* One number at an address, of any dtype that results have. */
static inline double tl_lapack_get(tl_dtype dtype, const void *address) {
  return tl_dtype_load(dtype, address).real;
}
static inline void tl_lapack_set(tl_dtype dtype, void *address, double value) {
  tl_scalar real = {.real = value};
  tl_dtype_store(dtype, address, tl_scalar_convert(real, TL_float64, tl_dtype_compute(dtype)));
}

static inline lapack_int tl_lapack_least(lapack_int a, lapack_int b) { return a < b ? a : b; }

/* One matrix of a command of that name. */
tl_flaw tl_linalg_solve(tl_problem *problem);
tl_flaw tl_linalg_inv(tl_problem *problem);
tl_flaw tl_linalg_det(tl_problem *problem); /* slogdet too */
tl_flaw tl_linalg_cholesky(tl_problem *problem);
tl_flaw tl_linalg_qr(tl_problem *problem);
tl_flaw tl_linalg_svd(tl_problem *problem); /* svdvals too */
tl_flaw tl_linalg_matrix_rank(tl_problem *problem);
tl_flaw tl_linalg_pinv(tl_problem *problem);
tl_flaw tl_linalg_lstsq(tl_problem *problem);
tl_flaw tl_linalg_eigh(tl_problem *problem); /* eigvalsh too */
tl_flaw tl_linalg_eig(tl_problem *problem);  /* eigvals too */

#endif
