/* Matrix products. */
#include <limits.h>

#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"

/* BLAS counts in int, and takes matrices that lie by rows or by columns: others are copied. */
static const tl_tensor *as_matrix(lua_State *L, tl_op op, const tl_tensor *tensor, tl_view *view) {
  for (int d = 0; d < 2; d++) {
    if (view->shape[d] > INT_MAX || view->stride[d] > INT_MAX) {
      tl_fail(L, "%s: size %I is too large: at most %d", tl_ops[op].name,
              (LUAI_UACINT)(view->shape[d] > INT_MAX ? view->shape[d] : view->stride[d]),
              INT_MAX);
    }
  }
  if (tl_view_is_matrix(view)) return tensor;
  tl_tensor *copy = tl_enqueue_copy(L, TL_OP_clone, tl_tensor_alias(L, tensor, view),
                                    (tl_dtype)view->dtype);
  *view = copy->view;
  return copy;
}

/* Pushes a product whose size is `out`; a, b and it are seen as n x k, k x m and n x m. */
static int product(lua_State *L, tl_op op, const tl_view *out, tl_view a, tl_view b) {
  const tl_tensor *x = tl_tensor_check(L, 1, tl_ops[op].name);
  const tl_tensor *y = tl_tensor_check(L, 2, tl_ops[op].name);
  tl_tensor *result = tl_tensor_new(L, out, tl_ops[op].name);
  int top = lua_gettop(L);
  x = as_matrix(L, op, x, &a);
  y = as_matrix(L, op, y, &b);
  tl_view c;
  tl_error error;
  if (tl_view_make(&c, (tl_dtype)out->dtype, 2, (int64_t[]){a.shape[0], b.shape[1]}, &error) !=
      TL_OK) {
    tl_fail(L, "%s: %s", tl_ops[op].name, error.text);
  }
  tl_operand operands[] = {tl_operand_of(result, &c, TL_WRITE | TL_WHOLE),
                           tl_operand_of(x, &a, TL_READ), tl_operand_of(y, &b, TL_READ)};
  tl_draft draft = {.op = op, .noperands = 3, .operands = operands};
  tl_enqueue(L, &draft);
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
  if (a->dtype != TL_float32 && a->dtype != TL_float64) {
    tl_fail(L, "%s: wants float32 or float64, not %s: convert with :to()", name,
            tl_dtype_name((tl_dtype)a->dtype));
  }
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
  int64_t size_a = a->shape[a->ndim - 1], size_b = b->shape[0];
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
  return product(L, op, &out, a, b);
}

static int mm(lua_State *L) { return multiply(L, TL_OP_mm, 2, 2); }
static int mv(lua_State *L) { return multiply(L, TL_OP_mv, 2, 1); }
static int dot(lua_State *L) { return multiply(L, TL_OP_dot, 1, 1); }

static int matmul(lua_State *L) {
  int a = tl_tensor_check(L, 1, "matmul")->view.ndim;
  int b = tl_tensor_check(L, 2, "matmul")->view.ndim;
  if (a < 1 || a > 2 || b < 1 || b > 2) {
    return tl_fail(L, "matmul: wants vectors or matrices, not %d and %d dimensions", a, b);
  }
  return multiply(L, TL_OP_matmul, a, b);
}

const luaL_Reg tl_matmul_functions[] = {
    {"mm", mm}, {"mv", mv}, {"dot", dot}, {"matmul", matmul}, {NULL, NULL},
};
