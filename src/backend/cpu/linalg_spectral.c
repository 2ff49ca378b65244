/* Linear algebra by iteration: singular values, eigenvalues, and what is made from them.
 *
 * With nan or inf LAPACK's iterations may complain on the terminal or take long: such matrices are
 * refused. */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "backend/cpu/linalg.h"

static bool is_finite(tl_dtype dtype, const void *values, size_t count) {
  bool finite = true;
  if (dtype == TL_float32) {
    for (size_t i = 0; i < count; i++) finite &= isfinite(((const float *)values)[i]) != 0;
  } else {
    for (size_t i = 0; i < count; i++) finite &= isfinite(((const double *)values)[i]) != 0;
  }
  return finite;
}

/* ---- singular values ---- */

/* The matrix at hand is V S U, each by columns, of its transpose; `job` is LAPACK's: A, S or N. */
static tl_flaw decompose(tl_problem *p, const char *job, void *s, void *v, void *u) {
  lapack_int m = p->rows, n = p->columns, k = tl_lapack_least(m, n), info, ask = -1;
  lapack_int lines = *job == 'A' ? m : k;
  void *a = tl_problem_buffer(p, 0, (int64_t)m * n, p->size);
  lapack_int *integers = tl_problem_buffer(p, 1, 8 * (int64_t)k, sizeof *integers);
  if (!p->work && !p->missing) {
    double answer;
    TL_LAPACK(p, gesdd, job, &n, &m, a, &n, s, v, &n, u, &lines, (void *)&answer, &ask, integers,
              &info);
    tl_problem_work(p, &answer);
  }
  if (p->missing) return TL_FLAWLESS;
  tl_problem_load(p, 0, false, a);
  if (!is_finite(p->dtype, a, (size_t)m * (size_t)n)) return TL_NOT_FINITE;
  TL_LAPACK(p, gesdd, job, &n, &m, a, &n, s, v, &n, u, &lines, p->work, &p->work_size, integers,
            &info);
  return info ? TL_NOT_CONVERGED : TL_FLAWLESS;
}

tl_flaw tl_linalg_svd(tl_problem *p) {
  if (p->nresults == 1) return decompose(p, "N", tl_problem_result(p, 0), NULL, NULL);
  return decompose(p, p->parameters->full ? "A" : "S", tl_problem_result(p, 1),
                   tl_problem_result(p, 2), tl_problem_result(p, 0));
}

/* How many of the singular values, which fall, do not count as 0. */
static lapack_int rank_of(const tl_problem *p, const void *s) {
  lapack_int count = tl_lapack_least(p->rows, p->columns), rank = 0;
  double least = fmax(p->parameters->absolute,
                      p->parameters->relative * tl_lapack_get(p->dtype, s));
  while (rank < count &&
         tl_lapack_get(p->dtype, (const char *)s + (size_t)rank * p->size) > least) {
    rank++;
  }
  return rank;
}

static void store_rank(const tl_problem *p, int operand, lapack_int rank) {
  tl_lapack_set((tl_dtype)p->command->operands[operand].dtype, tl_problem_result(p, operand),
                 rank);
}

tl_flaw tl_linalg_matrix_rank(tl_problem *p) {
  void *s = tl_problem_buffer(p, 2, tl_lapack_least(p->rows, p->columns), p->size);
  tl_flaw flaw = decompose(p, "N", s, NULL, NULL);
  if (flaw == TL_FLAWLESS && !p->missing) store_rank(p, 0, rank_of(p, s));
  return flaw;
}

tl_flaw tl_linalg_pinv(tl_problem *p) {
  lapack_int m = p->rows, n = p->columns, k = tl_lapack_least(m, n);
  char *s = tl_problem_buffer(p, 2, k, p->size);
  char *v = tl_problem_buffer(p, 3, (int64_t)n * k, p->size);
  void *u = tl_problem_buffer(p, 4, (int64_t)m * k, p->size), *out = tl_problem_result(p, 0);
  tl_flaw flaw = decompose(p, "S", s, v, u);
  if (flaw != TL_FLAWLESS || p->missing) return flaw;
  lapack_int rank = rank_of(p, s);
  for (lapack_int i = 0; i < rank; i++) {
    void *column = v + (size_t)i * (size_t)n * p->size;
    double factor = 1 / tl_lapack_get(p->dtype, s + (size_t)i * p->size);
    if (p->dtype == TL_float32) {
      cblas_sscal(n, (float)factor, column, 1);
    } else {
      cblas_dscal(n, factor, column, 1);
    }
  }
  if (rank == 0) {
    memset(out, 0, (size_t)m * (size_t)n * p->size);
  } else if (p->dtype == TL_float32) {
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasTrans, n, m, rank, 1, (float *)(void *)v, n, u, k,
                0, out, m);
  } else {
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasTrans, n, m, rank, 1, (double *)(void *)v, n, u, k,
                0, out, m);
  }
  return TL_FLAWLESS;
}

/* Moves columns of `rows` elements from `before` apart to `after` apart. */
static void respace(const tl_problem *p, char *matrix, lapack_int rows, size_t before,
                    size_t after) {
  size_t bytes = (size_t)rows * p->size;
  for (lapack_int i = 0; i < p->right; i++) {
    size_t column = (size_t)(after > before ? p->right - 1 - i : i) * p->size;
    memmove(matrix + column * after, matrix + column * before, bytes);
  }
}

tl_flaw tl_linalg_lstsq(tl_problem *p) {
  lapack_int m = p->rows, n = p->columns, lines = m > n ? m : n, info, ask = -1, rank;
  lapack_int sides = p->right > 0 ? p->right : 1;
  void *a = tl_problem_buffer(p, 0, (int64_t)m * n, p->size), *s = tl_problem_result(p, 2);
  char *b = tl_problem_buffer(p, 1, (int64_t)lines * sides, p->size);
  double relative = p->parameters->relative;
  float relative_float = (float)relative;
  void *condition = p->dtype == TL_float32 ? (void *)&relative_float : (void *)&relative;
  if (p->missing) return TL_FLAWLESS;
  if (!p->work) {
    double answer;
    TL_LAPACK(p, gelsd, &m, &n, &sides, a, &m, (void *)b, &lines, s, condition, &rank,
              (void *)&answer, &ask, &p->integers_size, &info);
    tl_problem_work(p, &answer);
  }
  lapack_int *integers = tl_problem_buffer(p, 2, p->integers_size, sizeof *integers);
  if (p->missing) return TL_FLAWLESS;
  memset(b, 0, (size_t)lines * (size_t)sides * p->size);
  tl_problem_load(p, 0, true, a);
  tl_problem_load(p, 1, true, b);
  if (!is_finite(p->dtype, a, (size_t)m * (size_t)n) ||
      !is_finite(p->dtype, b, (size_t)m * (size_t)p->right)) {
    return TL_NOT_FINITE;
  }
  respace(p, b, m, (size_t)m, (size_t)lines);
  TL_LAPACK(p, gelsd, &m, &n, &sides, a, &m, (void *)b, &lines, s, condition, &rank, p->work,
            &p->work_size, integers, &info);
  if (info) return TL_NOT_CONVERGED;
  respace(p, b, n, (size_t)lines, (size_t)n);
  tl_problem_store(p, 0, b);
  store_rank(p, 1, rank);
  return TL_FLAWLESS;
}

/* ---- eigenvalues ---- */

static void transpose(const tl_problem *p, void *matrix) {
  size_t n = (size_t)p->rows;
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < i; j++) {
      if (p->dtype == TL_float32) {
        float *x = matrix, value = x[i * n + j];
        x[i * n + j] = x[j * n + i];
        x[j * n + i] = value;
      } else {
        double *x = matrix, value = x[i * n + j];
        x[i * n + j] = x[j * n + i];
        x[j * n + i] = value;
      }
    }
  }
}

/* Only one triangle is read. */
static bool triangle_is_finite(const tl_problem *p, const char *matrix) {
  size_t n = (size_t)p->rows;
  bool finite = true;
  for (size_t i = 0; i < n && finite; i++) {
    size_t first = p->parameters->upper ? i : 0, end = p->parameters->upper ? n : i + 1;
    finite = is_finite(p->dtype, matrix + (i * n + first) * p->size, end - first);
  }
  return finite;
}

tl_flaw tl_linalg_eigh(tl_problem *p) {
  lapack_int n = p->rows, info, ask = -1;
  bool vectors = p->nresults > 1;
  const char *job = vectors ? "V" : "N", *triangle = p->parameters->upper ? "L" : "U";
  void *w = tl_problem_result(p, 0);
  void *a = vectors ? tl_problem_result(p, 1)
                    : tl_problem_buffer(p, 0, (int64_t)n * n, p->size);
  if (!p->work) {
    double answer;
    TL_LAPACK(p, syevd, job, triangle, &n, a, &n, w, (void *)&answer, &ask,
              &p->integers_size, &ask, &info);
    tl_problem_work(p, &answer);
  }
  lapack_int *integers = tl_problem_buffer(p, 1, p->integers_size, sizeof *integers);
  if (p->missing) return TL_FLAWLESS;
  tl_problem_load(p, 0, false, a);
  if (!triangle_is_finite(p, a)) return TL_NOT_FINITE;
  TL_LAPACK(p, syevd, job, triangle, &n, a, &n, w, p->work, &p->work_size, integers,
            &p->integers_size, &info);
  if (info) return TL_NOT_CONVERGED;
  if (vectors) transpose(p, a);
  return TL_FLAWLESS;
}

/* LAPACK gives of each conjugate pair the real and the imaginary part of one vector. */
static void unpack(const tl_problem *p, const char *packed) {
  size_t n = (size_t)p->rows;
  char *real = tl_problem_result(p, 2), *imaginary = tl_problem_result(p, 3);
  const char *w = tl_problem_result(p, 1);
  for (size_t j = 0; j < n; j++) {
    double part = tl_lapack_get(p->dtype, w + j * p->size); /* of a pair the first is positive */
    const char *column = packed + n * (part < 0 ? j - 1 : j) * p->size;
    for (size_t i = 0; i < n; i++) {
      size_t to = (i * n + j) * p->size;
      double other = part == 0 ? 0 : tl_lapack_get(p->dtype, column + (n + i) * p->size);
      memcpy(real + to, column + i * p->size, p->size);
      tl_lapack_set(p->dtype, imaginary + to, part < 0 ? -other : other);
    }
  }
}

tl_flaw tl_linalg_eig(tl_problem *p) {
  lapack_int n = p->rows, one = 1, info, ask = -1;
  bool vectors = p->nresults > 2;
  const char *job = vectors ? "V" : "N";
  void *real = tl_problem_result(p, 0), *imaginary = tl_problem_result(p, 1);
  void *a = tl_problem_buffer(p, 0, (int64_t)n * n, p->size);
  void *v = vectors ? tl_problem_buffer(p, 1, (int64_t)n * n, p->size) : a;
  if (!p->work) {
    double answer;
    TL_LAPACK(p, geev, "N", job, &n, a, &n, real, imaginary, a, &one, v, &n, (void *)&answer, &ask,
              &info);
    tl_problem_work(p, &answer);
  }
  if (p->missing) return TL_FLAWLESS;
  tl_problem_load(p, 0, true, a);
  if (!is_finite(p->dtype, a, (size_t)n * (size_t)n)) return TL_NOT_FINITE;
  TL_LAPACK(p, geev, "N", job, &n, a, &n, real, imaginary, a, &one, v, &n, p->work, &p->work_size,
            &info);
  if (info) return TL_NOT_CONVERGED;
  if (vectors) unpack(p, v);
  return TL_FLAWLESS;
}
