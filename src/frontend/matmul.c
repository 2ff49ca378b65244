/* Matrix products. */
#include <limits.h>

#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"

/* BLAS counts in int, and takes matrices (the last two dimensions) that lie by rows or by columns:
 * others are copied. */
static const tl_tensor *as_matrix(lua_State *L, tl_op op, const tl_tensor *tensor, tl_view *view) {
  tl_view matrix = {.ndim = 2};
  for (int d = 0; d < 2; d++) {
    matrix.shape[d] = view->shape[view->ndim - 2 + d];
    matrix.stride[d] = view->stride[view->ndim - 2 + d];
    if (matrix.shape[d] > INT_MAX || matrix.stride[d] > INT_MAX) {
      tl_fail(L, "%s: size %I is too large: at most %d", tl_ops[op].name,
              (LUAI_UACINT)(matrix.shape[d] > INT_MAX ? matrix.shape[d] : matrix.stride[d]),
              INT_MAX);
    }
  }
  if (tl_view_is_matrix(&matrix)) return tensor;
  tl_tensor *copy = tl_enqueue_copy(L, TL_OP_clone, tl_tensor_alias(L, tensor, view),
                                    (tl_dtype)view->dtype);
  *view = copy->view;
  return copy;
}

/* Pushes a product whose size is `out`; a, b and it are seen as n x k, k x m and n x m, times the
 * batch to which the dimensions before these broadcast. */
static int product(lua_State *L, tl_op op, const tl_view *out, const tl_view *batch, tl_view a,
                   tl_view b) {
  const tl_tensor *x = tl_tensor_check(L, 1, tl_ops[op].name);
  const tl_tensor *y = tl_tensor_check(L, 2, tl_ops[op].name);
  tl_tensor *result = tl_tensor_new(L, out, tl_ops[op].name);
  int top = lua_gettop(L), rows = batch->ndim, ndim = rows + 2;
  x = as_matrix(L, op, x, &a);
  y = as_matrix(L, op, y, &b);
  int64_t n = a.shape[a.ndim - 2], k = a.shape[a.ndim - 1], m = b.shape[b.ndim - 1];
  int64_t shape[TL_MAX_DIMS];
  for (int d = 0; d < rows; d++) shape[d] = batch->shape[d];
  shape[rows] = n;
  shape[rows + 1] = k;
  tl_view_expand(&a, &a, ndim, shape);
  shape[rows] = k;
  shape[rows + 1] = m;
  tl_view_expand(&b, &b, ndim, shape);
  shape[rows] = n;
  tl_view c;
  tl_error error;
  if (tl_view_make(&c, (tl_dtype)out->dtype, ndim, shape, &error) != TL_OK) {
    tl_fail(L, "%s: %s", tl_ops[op].name, error.text);
  }
  tl_operand operands[] = {tl_operand_of(result, &c, TL_WRITE | TL_WHOLE),
                           tl_operand_of(x, &a, TL_READ), tl_operand_of(y, &b, TL_READ)};
  tl_enqueue(L, op, 3, operands, NULL, 0);
  lua_settop(L, top);
  return 1;
}

static void check_operands(lua_State *L, tl_op op, tl_view *a, tl_view *b) {
  const char *name = tl_ops[op].name;
  *a = tl_tensor_check(L, 1, name)->view;
  *b = tl_tensor_check(L, 2, name)->view;
  tl_check_count(L, 2, name);
  if (a->dtype != b->dtype) {
    tl_fail(L, "%s: operands are %s and %s: convert one with :to()", name,
            tl_dtype_name((tl_dtype)a->dtype), tl_dtype_name((tl_dtype)b->dtype));
  }
  if (a->dtype == TL_bool) tl_fail(L, "%s: wants numbers, not bool: convert with :to()", name);
}

static void check_dims(lua_State *L, tl_op op, const tl_view *a, int a_ndim, const tl_view *b,
                       int b_ndim) {
  static const char *const kinds[] = {"", "a vector", "a matrix"};
  char text_a[TL_SHAPE_TEXT], text_b[TL_SHAPE_TEXT];
  if (a->ndim == a_ndim && b->ndim == b_ndim) return;
  tl_fail(L, "%s: wants %s and %s, not sizes %s and %s", tl_ops[op].name, kinds[a_ndim],
          kinds[b_ndim], tl_view_shape_text(a, text_a), tl_view_shape_text(b, text_b));
}

static void check_inner(lua_State *L, tl_op op, const tl_view *a, const tl_view *b) {
  char text_a[TL_SHAPE_TEXT], text_b[TL_SHAPE_TEXT];
  int64_t size_a = a->shape[a->ndim - 1], size_b = b->shape[b->ndim > 1 ? b->ndim - 2 : 0];
  if (size_a == size_b) return;
  tl_fail(L, "%s: cannot multiply %s by %s: inner sizes %I and %I differ", tl_ops[op].name,
          tl_view_shape_text(a, text_a), tl_view_shape_text(b, text_b), (LUAI_UACINT)size_a,
          (LUAI_UACINT)size_b);
}

/* A vector seen as a matrix of one row, or of one column. */
static void as_row(tl_view *v) {
  v->ndim = 2;
  v->shape[1] = v->shape[0];
  v->stride[1] = v->stride[0];
  v->shape[0] = v->stride[0] = 1;
}

static void as_column(tl_view *v) {
  v->ndim = 2;
  v->shape[1] = v->stride[1] = 1;
}

/* The product of operands of the given numbers of dimensions, 1 or 2. */
static int multiply(lua_State *L, tl_op op, int a_ndim, int b_ndim) {
  tl_view a, b, out;
  tl_error error;
  check_operands(L, op, &a, &b);
  check_dims(L, op, &a, a_ndim, &b, b_ndim);
  check_inner(L, op, &a, &b);
  int64_t shape[2];
  int ndim = 0;
  if (a_ndim == 2) shape[ndim++] = a.shape[0];
  if (b_ndim == 2) shape[ndim++] = b.shape[1];
  if (tl_view_make(&out, (tl_dtype)a.dtype, ndim, shape, &error) != TL_OK) {
    tl_fail(L, "%s: %s", tl_ops[op].name, error.text);
  }
  if (a_ndim == 1) as_row(&a);
  if (b_ndim == 1) as_column(&b);
  return product(L, op, &out, &(tl_view){.ndim = 0}, a, b);
}

static int multiply_mm(lua_State *L) { return multiply(L, TL_OP_mm, 2, 2); }
static int multiply_mv(lua_State *L) { return multiply(L, TL_OP_mv, 2, 1); }
static int multiply_dot(lua_State *L) { return multiply(L, TL_OP_dot, 1, 1); }

/* The batch to which the dimensions before the matrices broadcast. */
static void check_batch(lua_State *L, tl_op op, const tl_view *a, const tl_view *b,
                        tl_view *batch) {
  tl_view batch_a = *a, batch_b = *b;
  char text_a[TL_SHAPE_TEXT], text_b[TL_SHAPE_TEXT];
  tl_error error;
  batch_a.ndim = (uint8_t)(a->ndim - 2);
  batch_b.ndim = (uint8_t)(b->ndim - 2);
  if (tl_view_broadcast(batch, (tl_dtype)a->dtype, &batch_a, &batch_b, "", &error) != TL_OK) {
    tl_fail(L, "%s: cannot multiply %s by %s: their batches do not broadcast", tl_ops[op].name,
            tl_view_shape_text(a, text_a), tl_view_shape_text(b, text_b));
  }
}

/* One matrix for the whole batch makes it one product, when the batch's rows lie as those of one
 * matrix do. */
static void merge_rows(tl_view *a, tl_view *batch, const tl_view *b) {
  int64_t rows = 1;
  if (b->ndim > 2) return;
  for (int d = 0; d < a->ndim - 1; d++) rows *= a->shape[d];
  int64_t shape[2] = {rows, a->shape[a->ndim - 1]};
  tl_view merged;
  if (rows == 0 || rows > INT_MAX || shape[1] == 0 || !tl_view_reshape(&merged, a, 2, shape)) {
    return;
  }
  *a = merged;
  batch->ndim = 0;
}

/* The product of batches: one operand has more than two dimensions, the other at least one. */
static int multiply_batches(lua_State *L, tl_op op, tl_view a, tl_view b) {
  tl_view batch, out;
  tl_error error;
  bool is_row = a.ndim == 1, is_column = b.ndim == 1;
  check_inner(L, op, &a, &b);
  if (is_row) as_row(&a);
  if (is_column) as_column(&b);
  check_batch(L, op, &a, &b, &batch);
  int64_t shape[TL_MAX_DIMS];
  int ndim = 0;
  for (; ndim < batch.ndim; ndim++) shape[ndim] = batch.shape[ndim];
  if (!is_row) shape[ndim++] = a.shape[a.ndim - 2];
  if (!is_column) shape[ndim++] = b.shape[b.ndim - 1];
  if (tl_view_make(&out, (tl_dtype)a.dtype, ndim, shape, &error) != TL_OK) {
    tl_fail(L, "%s: %s", tl_ops[op].name, error.text);
  }
  merge_rows(&a, &batch, &b);
  return product(L, op, &out, &batch, a, b);
}

static int multiply_matmul(lua_State *L) {
  tl_view a, b;
  check_operands(L, TL_OP_matmul, &a, &b);
  if (a.ndim < 1 || b.ndim < 1) {
    return tl_fail(L, "matmul: wants at least one dimension, not %d and %d", a.ndim, b.ndim);
  }
  if (a.ndim <= 2 && b.ndim <= 2) return multiply(L, TL_OP_matmul, a.ndim, b.ndim);
  return multiply_batches(L, TL_OP_matmul, a, b);
}

static int multiply_bmm(lua_State *L) {
  tl_view a, b;
  char text_a[TL_SHAPE_TEXT], text_b[TL_SHAPE_TEXT];
  check_operands(L, TL_OP_bmm, &a, &b);
  if (a.ndim != 3 || b.ndim != 3 || a.shape[0] != b.shape[0]) {
    tl_fail(L, "bmm: wants two batches of as many matrices, not sizes %s and %s",
            tl_view_shape_text(&a, text_a), tl_view_shape_text(&b, text_b));
  }
  return multiply_batches(L, TL_OP_bmm, a, b);
}

/* Products are computed as programs are: the halves in float32, integers in int64. */
static int convert(lua_State *L, lua_CFunction multiplication) {
  const tl_tensor *x = tl_tensor_test(L, 1), *y = tl_tensor_test(L, 2);
  bool open = x && y && x->storage && y->storage && x->view.dtype == y->view.dtype;
  tl_dtype dtype = open ? (tl_dtype)x->view.dtype : TL_float32, compute = tl_dtype_compute(dtype);
  if (dtype == compute || dtype == TL_bool) return multiplication(L);
  for (int i = 1; i <= 2; i++) {
    tl_enqueue_copy(L, TL_OP_to, tl_tensor_test(L, i), compute);
    lua_replace(L, i);
  }
  multiplication(L);
  tl_enqueue_copy(L, TL_OP_to, tl_tensor_test(L, -1), dtype);
  return 1;
}

#define PRODUCT(name) \
  static int name(lua_State *L) { return convert(L, multiply_##name); }
PRODUCT(mm)
PRODUCT(mv)
PRODUCT(dot)
PRODUCT(matmul)
PRODUCT(bmm)

const luaL_Reg tl_matmul_functions[] = {
    {"mm", mm}, {"mv", mv}, {"dot", dot}, {"matmul", matmul}, {"bmm", bmm}, {NULL, NULL},
};
