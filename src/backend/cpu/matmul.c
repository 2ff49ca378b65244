/* Matrix products as panels, each one single-threaded BLAS call (or a loop, of integers). */
#include <cblas.h>
#include <string.h>

#include "backend/cpu/families.h"

/* A product from SPLIT_FLOPS on is cut into panels for the lanes to share: PANELS of them, but none
 * narrower than NARROWEST, since the other operand is packed again for each, and none of more than
 * PANEL_FLOPS, so that an interrupt is not long in coming.  The cut depends on the shapes alone, so
 * that a product gives the same bits on any number of threads. */
static const double SPLIT_FLOPS = 2e7, PANEL_FLOPS = 1e10;
enum { PANELS = 8, NARROWEST = 128, MULTIPLE = 64 }; /* columns: a multiple of BLAS's own tiles */

/* Small products of a batch are taken together until a chunk costs this much. */
static const double GROUP_COST = 50e3; /* nanoseconds */

/* A matrix of a batch; shape and stride are the operand's last two. */
typedef struct tl_matrix {
  const char *data;
  const int64_t *shape, *stride;
} tl_matrix;

typedef struct tl_product {
  const tl_operand *c, *a, *b;
  tl_dtype dtype;
  int64_t n, k, m;       /* c is n x m, a is n x k, b is k x m */
  bool by_rows;          /* which side of c is cut */
  int64_t panel, panels; /* rows or columns of a panel, and how many panels a product has */
  int64_t batch, group;  /* products in all, and those that a chunk takes when they are whole */
} tl_product;

/* In a row, small products cost less than the one by itself. */
static double cost_of(const tl_product *p) {
  return (p->batch > 1 ? 100 : 500) + (double)p->n * (double)p->m * (double)p->k / 40;
}

/* With enough products for the lanes, each is left whole. */
static int64_t panel_of(const tl_product *p, int64_t side) {
  double flops = 2.0 * (double)p->n * (double)p->m * (double)p->k;
  bool is_short = flops <= PANELS * PANEL_FLOPS;
  if (flops < SPLIT_FLOPS || (p->batch >= PANELS && is_short)) return side;
  int64_t panels = is_short ? PANELS : (int64_t)(flops / PANEL_FLOPS);
  int64_t panel = (side + panels - 1) / panels;
  if (panel < NARROWEST) panel = NARROWEST;
  return (panel + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
}

static tl_product product_of(const tl_command *command) {
  tl_product p = {.c = &command->operands[0], .a = &command->operands[1],
                  .b = &command->operands[2]};
  int rows = p.c->ndim - 2;
  p.dtype = (tl_dtype)p.c->dtype;
  p.n = p.c->shape[rows];
  p.m = p.c->shape[rows + 1];
  p.k = p.a->shape[rows + 1];
  p.batch = p.group = 1;
  for (int d = 0; d < rows; d++) p.batch *= p.c->shape[d];
  p.by_rows = p.n > p.m;
  int64_t side = p.by_rows ? p.n : p.m;
  p.panel = panel_of(&p, side);
  p.panels = side > p.panel ? (side + p.panel - 1) / p.panel : 1;
  if (p.panels == 1) {
    int64_t least = (p.batch + TL_MAX_CHUNKS - 1) / TL_MAX_CHUNKS;
    p.group = 1 + (int64_t)(GROUP_COST / cost_of(&p));
    if (p.group < least) p.group = least;
  }
  return p;
}

void tl_matmul_plan(const tl_command *command, tl_plan *plan) {
  tl_product p = product_of(command);
  int64_t chunks = (p.batch + p.group - 1) / p.group * p.panels;
  plan->chunks = chunks > 1 ? (uint32_t)chunks : 1;
  plan->cost = (float)(cost_of(&p) * (double)p.batch);
}

/* BLAS takes a matrix by rows, or by columns as a transposed one by rows. */
static CBLAS_TRANSPOSE layout_of(const tl_matrix *matrix, blasint *leading) {
  const int64_t *shape = matrix->shape, *strides = matrix->stride;
  bool by_rows = shape[1] <= 1 || (strides[1] == 1 && shape[0] > 1);
  if (shape[0] <= 1 && strides[1] == 1) by_rows = true;
  int64_t lines = shape[by_rows ? 0 : 1], length = shape[by_rows ? 1 : 0];
  int64_t stride = lines > 1 ? strides[by_rows ? 0 : 1] : length; /* one line: any will do */
  *leading = (blasint)(stride > 1 ? stride : 1);
  return by_rows ? CblasNoTrans : CblasTrans;
}

static void gemm(tl_dtype dtype, int64_t n, int64_t m, int64_t k, const tl_matrix *a,
                 const tl_matrix *b, void *c, int64_t c_stride) {
  blasint lda, ldb;
  CBLAS_TRANSPOSE trans_a = layout_of(a, &lda), trans_b = layout_of(b, &ldb);
  const void *a_data = a->data, *b_data = b->data;
  if (dtype == TL_float32) {
    cblas_sgemm(CblasRowMajor, trans_a, trans_b, (blasint)n, (blasint)m, (blasint)k, 1, a_data, lda,
                b_data, ldb, 0, c, (blasint)c_stride);
  } else {
    cblas_dgemm(CblasRowMajor, trans_a, trans_b, (blasint)n, (blasint)m, (blasint)k, 1, a_data, lda,
                b_data, ldb, 0, c, (blasint)c_stride);
  }
}

/* y (contiguous) = `rows` x `columns` matrix, or its transpose, times x. */
static void gemv(tl_dtype dtype, bool transpose, int64_t rows, int64_t columns,
                 const tl_matrix *matrix, const void *x, int64_t x_stride, void *y) {
  blasint leading;
  bool by_rows = layout_of(matrix, &leading) == CblasNoTrans;
  CBLAS_TRANSPOSE trans = by_rows == transpose ? CblasTrans : CblasNoTrans;
  blasint stored_rows = (blasint)(by_rows ? rows : columns);
  blasint stored_columns = (blasint)(by_rows ? columns : rows);
  blasint x_step = (blasint)(x_stride > 0 ? x_stride : 1); /* 0: x has one element */
  const void *data = matrix->data;
  if (dtype == TL_float32) {
    cblas_sgemv(CblasRowMajor, trans, stored_rows, stored_columns, 1, data, leading, x, x_step, 0,
                y, 1);
  } else {
    cblas_dgemv(CblasRowMajor, trans, stored_rows, stored_columns, 1, data, leading, x, x_step, 0,
                y, 1);
  }
}

/* Integers, for which there is no BLAS: a row of c at a time; they wrap around. */
static void multiply_integers(int64_t n, int64_t m, int64_t k, const tl_matrix *a,
                              const tl_matrix *b, uint64_t *c, int64_t c_stride) {
  const uint64_t *x = (const void *)a->data, *y = (const void *)b->data;
  for (int64_t i = 0; i < n; i++, c += c_stride) {
    memset(c, 0, (size_t)m * sizeof *c);
    for (int64_t l = 0; l < k; l++) {
      const uint64_t factor = x[i * a->stride[0] + l * a->stride[1]];
      const uint64_t *row = y + l * b->stride[0];
      for (int64_t j = 0; j < m; j++) c[j] += factor * row[j * b->stride[1]];
    }
  }
}

/* c (n x m, rows c_stride apart) = a times b; a product with a vector is a gemv. */
static void multiply(tl_dtype dtype, int64_t n, int64_t m, int64_t k, const tl_matrix *a,
                     const tl_matrix *b, void *c, int64_t c_stride) {
  if (k == 0) {
    for (int64_t i = 0; i < n; i++) {
      size_t size = tl_dtype_size(dtype);
      memset((char *)c + (size_t)(i * c_stride) * size, 0, (size_t)m * size);
    }
  } else if (dtype == TL_int64) {
    multiply_integers(n, m, k, a, b, c, c_stride);
  } else if (m == 1 && c_stride == 1) {
    gemv(dtype, false, n, k, a, b->data, b->stride[0], c);
  } else if (n == 1) {
    gemv(dtype, true, k, m, b, a->data, a->stride[1], c);
  } else {
    gemm(dtype, n, m, k, a, b, c, c_stride);
  }
}

/* Matrix `index` of an operand, in the row-major order of its batch. */
static tl_matrix matrix_of(const tl_operand *operand, int64_t index) {
  int64_t offset = 0;
  int rows = operand->ndim - 2;
  for (int d = rows - 1; d >= 0 && index > 0; d--) {
    offset += index % operand->shape[d] * operand->stride[d];
    index /= operand->shape[d];
  }
  int64_t size = (int64_t)tl_dtype_size((tl_dtype)operand->dtype);
  return (tl_matrix){.data = (const char *)tl_operand_address(operand) + offset * size,
                     .shape = operand->shape + rows, .stride = operand->stride + rows};
}

static void run_panel(const tl_product *p, int64_t product, int64_t number) {
  int64_t size = (int64_t)tl_dtype_size(p->dtype);
  int64_t first = number * p->panel, side = p->by_rows ? p->n : p->m;
  int64_t count = side - first < p->panel ? side - first : p->panel;
  tl_matrix a = matrix_of(p->a, product), b = matrix_of(p->b, product);
  char *c = (char *)tl_operand_address(p->c) + product * p->n * p->m * size;
  if (p->by_rows) {
    a.data += first * a.stride[0] * size;
    multiply(p->dtype, count, p->m, p->k, &a, &b, c + first * p->m * size, p->m);
  } else {
    b.data += first * b.stride[1] * size;
    multiply(p->dtype, p->n, count, p->k, &a, &b, c + first * size, p->m);
  }
}

void tl_matmul_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk) {
  (void)cpu;
  tl_product p = product_of(command);
  int64_t first = (int64_t)chunk / p.panels * p.group;
  if (p.n == 0 || p.m == 0) return;
  for (int64_t i = first; i < first + p.group && i < p.batch; i++) {
    run_panel(&p, i, (int64_t)chunk % p.panels);
  }
}
