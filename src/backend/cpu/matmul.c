/* Matrix products as panels, each one single-threaded BLAS call. */
#include <cblas.h>
#include <string.h>

#include "backend/cpu/families.h"

/* A product from SPLIT_FLOPS on is cut into panels for the lanes to share: PANELS of them, but none
 * narrower than NARROWEST, since the other operand is packed again for each, and none of more than
 * PANEL_FLOPS, so that an interrupt is not long in coming.  The cut depends on the shapes alone, so
 * that a product gives the same bits on any number of threads. */
static const double SPLIT_FLOPS = 2e7, PANEL_FLOPS = 1e10;
enum { PANELS = 8, NARROWEST = 128, MULTIPLE = 64 }; /* columns: a multiple of BLAS's own tiles */

typedef struct tl_product {
  const tl_operand *c, *a, *b;
  int64_t n, k, m; /* c is n x m, a is n x k, b is k x m */
  bool by_rows;    /* which side of c is cut */
  int64_t panel;   /* rows or columns of a panel */
} tl_product;

static tl_product product_of(const tl_command *command) {
  tl_product p = {.c = &command->operands[0], .a = &command->operands[1],
                  .b = &command->operands[2]};
  p.n = p.c->shape[0];
  p.m = p.c->shape[1];
  p.k = p.a->shape[1];
  p.by_rows = p.n > p.m;
  int64_t side = p.by_rows ? p.n : p.m;
  double flops = 2.0 * (double)p.n * (double)p.m * (double)p.k;
  if (flops < SPLIT_FLOPS) {
    p.panel = side;
    return p;
  }
  int64_t panels = flops > PANELS * PANEL_FLOPS ? (int64_t)(flops / PANEL_FLOPS) : PANELS;
  p.panel = (side + panels - 1) / panels;
  if (p.panel < NARROWEST) p.panel = NARROWEST;
  p.panel = (p.panel + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
  return p;
}

void tl_matmul_plan(const tl_command *command, tl_plan *plan) {
  tl_product p = product_of(command);
  int64_t side = p.by_rows ? p.n : p.m;
  plan->chunks = side > p.panel ? (uint32_t)((side + p.panel - 1) / p.panel) : 1;
  plan->cost = 500 + (float)p.n * (float)p.m * (float)p.k / 40;
}

/* BLAS takes a matrix by rows, or by columns as a transposed one by rows. */
static CBLAS_TRANSPOSE layout_of(const tl_operand *matrix, blasint *leading) {
  bool by_rows = matrix->shape[1] <= 1 || (matrix->stride[1] == 1 && matrix->shape[0] > 1);
  if (matrix->shape[0] <= 1 && matrix->stride[1] == 1) by_rows = true;
  int64_t lines = matrix->shape[by_rows ? 0 : 1], length = matrix->shape[by_rows ? 1 : 0];
  int64_t stride = lines > 1 ? matrix->stride[by_rows ? 0 : 1] : length; /* one line: any will do */
  *leading = (blasint)(stride > 1 ? stride : 1);
  return by_rows ? CblasNoTrans : CblasTrans;
}

static void gemm(tl_dtype dtype, int64_t n, int64_t m, int64_t k, const tl_operand *a,
                 const void *a_data, const tl_operand *b, const void *b_data, void *c,
                 int64_t c_stride) {
  blasint lda, ldb;
  CBLAS_TRANSPOSE trans_a = layout_of(a, &lda), trans_b = layout_of(b, &ldb);
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
                 const tl_operand *matrix, const void *data, const void *x, int64_t x_stride,
                 void *y) {
  blasint leading;
  bool by_rows = layout_of(matrix, &leading) == CblasNoTrans;
  CBLAS_TRANSPOSE trans = by_rows == transpose ? CblasTrans : CblasNoTrans;
  blasint stored_rows = (blasint)(by_rows ? rows : columns);
  blasint stored_columns = (blasint)(by_rows ? columns : rows);
  blasint x_step = (blasint)(x_stride > 0 ? x_stride : 1); /* 0: x has one element */
  if (dtype == TL_float32) {
    cblas_sgemv(CblasRowMajor, trans, stored_rows, stored_columns, 1, data, leading, x, x_step, 0,
                y, 1);
  } else {
    cblas_dgemv(CblasRowMajor, trans, stored_rows, stored_columns, 1, data, leading, x, x_step, 0,
                y, 1);
  }
}

/* c (n x m, rows c_stride apart) = a times b; a product with a vector is a gemv. */
static void multiply(tl_dtype dtype, int64_t n, int64_t m, int64_t k, const tl_operand *a,
                     const void *a_data, const tl_operand *b, const void *b_data, void *c,
                     int64_t c_stride) {
  if (k == 0) {
    for (int64_t i = 0; i < n; i++) {
      size_t size = tl_dtype_size(dtype);
      memset((char *)c + (size_t)(i * c_stride) * size, 0, (size_t)m * size);
    }
  } else if (m == 1 && c_stride == 1) {
    gemv(dtype, false, n, k, a, a_data, b_data, b->stride[0], c);
  } else if (n == 1) {
    gemv(dtype, true, k, m, b, b_data, a_data, a->stride[1], c);
  } else {
    gemm(dtype, n, m, k, a, a_data, b, b_data, c, c_stride);
  }
}

void tl_matmul_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk) {
  (void)cpu;
  tl_product p = product_of(command);
  int64_t size = (int64_t)tl_dtype_size((tl_dtype)p.c->dtype);
  int64_t first = (int64_t)chunk * p.panel, side = p.by_rows ? p.n : p.m;
  int64_t count = side - first < p.panel ? side - first : p.panel;
  if (p.n == 0 || p.m == 0) return;
  const char *a = tl_operand_address(p.a), *b = tl_operand_address(p.b);
  char *c = tl_operand_address(p.c);
  if (p.by_rows) {
    multiply((tl_dtype)p.c->dtype, count, p.m, p.k, p.a, a + first * p.a->stride[0] * size, p.b, b,
             c + first * p.m * size, p.m);
  } else {
    multiply((tl_dtype)p.c->dtype, p.n, count, p.k, p.a, a, p.b, b + first * p.b->stride[1] * size,
             c + first * size, p.m);
  }
}
