/* Linear algebra without iteration: by the factors of Gauss, Cholesky and Householder. */
#include <math.h>
#include <string.h>

#include "backend/cpu/linalg.h"

/* The factors of a square matrix, in its place. */
static tl_flaw factor(tl_problem *p, void *a, lapack_int *pivots) {
  lapack_int n = p->rows, info;
  TL_LAPACK(p, getrf, &n, &n, a, &n, pivots, &info);
  return info > 0 ? TL_SINGULAR : TL_FLAWLESS;
}

tl_flaw tl_linalg_solve(tl_problem *p) {
  lapack_int n = p->rows, info;
  void *a = tl_problem_buffer(p, 0, (int64_t)n * n, p->size);
  void *x = tl_problem_buffer(p, 1, (int64_t)n * p->right, p->size);
  lapack_int *pivots = tl_problem_buffer(p, 2, n, sizeof *pivots);
  if (p->missing) return TL_FLAWLESS;
  tl_problem_load(p, 0, false, a);
  tl_flaw flaw = factor(p, a, pivots);
  if (flaw != TL_FLAWLESS) return flaw;
  tl_problem_load(p, 1, true, x);
  TL_LAPACK(p, getrs, "T", &n, &p->right, a, &n, pivots, x, &n, &info);
  tl_problem_store(p, 0, x);
  return TL_FLAWLESS;
}

tl_flaw tl_linalg_inv(tl_problem *p) {
  lapack_int n = p->rows, info, ask = -1;
  double answer;
  void *a = tl_problem_result(p, 0);
  lapack_int *pivots = tl_problem_buffer(p, 0, n, sizeof *pivots);
  if (!p->work) {
    TL_LAPACK(p, getri, &n, a, &n, pivots, (void *)&answer, &ask, &info);
    tl_problem_work(p, &answer);
  }
  if (p->missing) return TL_FLAWLESS;
  tl_problem_load(p, 0, false, a);
  tl_flaw flaw = factor(p, a, pivots);
  if (flaw == TL_FLAWLESS) TL_LAPACK(p, getri, &n, a, &n, pivots, p->work, &p->work_size, &info);
  return flaw;
}

tl_flaw tl_linalg_det(tl_problem *p) {
  lapack_int n = p->rows;
  void *a = tl_problem_buffer(p, 0, (int64_t)n * n, p->size);
  lapack_int *pivots = tl_problem_buffer(p, 1, n, sizeof *pivots);
  if (p->missing) return TL_FLAWLESS;
  tl_problem_load(p, 0, false, a);
  factor(p, a, pivots); /* of a singular matrix too: with a 0 on the diagonal */
  double product = 1, logarithm = 0;
  bool negative = false;
  for (lapack_int i = 0; i < n; i++) {
    double x = tl_lapack_get(p->dtype, (char *)a + ((size_t)n + 1) * (size_t)i * p->size);
    negative ^= (x < 0) != (pivots[i] != i + 1);
    product *= fabs(x);
    logarithm += log(fabs(x));
  }
  if (p->command->op == TL_OP_linalg_det) {
    bool turned = negative && product != 0;
    tl_lapack_set(p->dtype, tl_problem_result(p, 0), turned ? -product : product);
  } else {
    double sign = isnan(logarithm) ? NAN : logarithm == -INFINITY ? 0 : negative ? -1 : 1;
    tl_lapack_set(p->dtype, tl_problem_result(p, 0), sign);
    tl_lapack_set(p->dtype, tl_problem_result(p, 1), logarithm);
  }
  return TL_FLAWLESS;
}

tl_flaw tl_linalg_cholesky(tl_problem *p) {
  lapack_int n = p->rows;
  bool upper = p->parameters->upper;
  char *a = tl_problem_result(p, 0);
  tl_problem_load(p, 0, false, a);
  TL_LAPACK(p, potrf, upper ? "L" : "U", &n, (void *)a, &n, &p->detail);
  for (lapack_int i = 0; i < n; i++) {
    char *row = a + (size_t)n * (size_t)i * p->size;
    /* A nan is no positive number, but not every LAPACK says so. */
    bool is_nan = isnan(tl_lapack_get(p->dtype, row + (size_t)i * p->size));
    if (p->detail == 0 && is_nan) p->detail = i + 1;
    if (upper) {
      memset(row, 0, (size_t)i * p->size);
    } else {
      memset(row + ((size_t)i + 1) * p->size, 0, (size_t)(n - 1 - i) * p->size);
    }
  }
  return p->detail > 0 ? TL_NOT_POSITIVE : TL_FLAWLESS;
}

/* LAPACK makes L Q of what it takes for a matrix by columns. */
tl_flaw tl_linalg_qr(tl_problem *p) {
  lapack_int m = p->rows, n = p->columns, k = tl_lapack_least(m, n), info, ask = -1;
  bool with_q = p->nresults > 1;
  lapack_int lines = p->parameters->full ? m : k; /* of R, and columns of Q */
  char *a = tl_problem_buffer(p, 0, (int64_t)m * n, p->size);
  void *tau = tl_problem_buffer(p, 1, k, p->size);
  char *q = with_q ? tl_problem_result(p, 0) : NULL, *r = tl_problem_result(p, with_q);
  if (!p->work) {
    double answer[2];
    TL_LAPACK(p, gelqf, &n, &m, (void *)a, &n, tau, (void *)&answer[0], &ask, &info);
    if (with_q) {
      TL_LAPACK(p, orglq, &lines, &m, &k, (void *)q, &lines, tau, (void *)&answer[1], &ask, &info);
    }
    bool second = with_q && tl_lapack_get(p->dtype, &answer[1]) > tl_lapack_get(p->dtype, answer);
    tl_problem_work(p, &answer[second]);
  }
  if (p->missing) return TL_FLAWLESS;
  tl_problem_load(p, 0, false, a);
  TL_LAPACK(p, gelqf, &n, &m, (void *)a, &n, tau, p->work, &p->work_size, &info);
  size_t line = (size_t)n * p->size;
  memset(r, 0, (size_t)lines * line);
  for (lapack_int i = 0; i < k; i++) {
    size_t before = (size_t)i * p->size;
    memcpy(r + (size_t)i * line + before, a + (size_t)i * line + before, line - before);
  }
  for (lapack_int i = 0; i < m && with_q; i++) {
    memcpy(q + (size_t)i * (size_t)lines * p->size, a + (size_t)i * line, (size_t)k * p->size);
  }
  if (with_q) {
    TL_LAPACK(p, orglq, &lines, &m, &k, (void *)q, &lines, tau, p->work, &p->work_size, &info);
  }
  return TL_FLAWLESS;
}
