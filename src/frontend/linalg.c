/* Linear algebra: checks the arguments of lua/tensor/linalg.lua, makes the results, and enqueues
 * one command for all matrices of a batch. */
#include <float.h>
#include <limits.h>
#include <string.h>

#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "tensor/parameters.h"

/* LAPACK counts in int, also the elements of its workspace: four n x n matrices and some. */
enum { LARGEST = INT_MAX, LARGEST_IN_WORKSPACE = 23000 };

/* A command under construction: its results, which are pushed, and then its arguments. */
typedef struct tl_call {
  tl_op op;
  const char *name;
  tl_dtype dtype;
  int nbatch; /* dimensions before the matrices, and their sizes */
  int64_t batch[TL_MAX_DIMS];
  int nresults, noperands;
  const tl_tensor *tensors[TL_MAX_OPERANDS];
  tl_view views[TL_MAX_OPERANDS];
  tl_linalg parameters;
} tl_call;

/* ---- arguments ---- */

static void check_dtype(lua_State *L, const char *name, const tl_view *view) {
  if (view->dtype == TL_float32 || view->dtype == TL_float64) return;
  tl_fail(L, "%s: wants float32 or float64, not %s: convert it with :to()", name,
          tl_dtype_name((tl_dtype)view->dtype));
}

static void check_sizes(lua_State *L, const char *name, const tl_view *view, int64_t largest) {
  int64_t rows = view->shape[view->ndim - 2], columns = view->shape[view->ndim - 1];
  int64_t least = rows < columns ? rows : columns;
  char text[TL_SHAPE_TEXT];
  if (rows > INT_MAX || columns > INT_MAX || least > largest) {
    tl_fail(L, "%s: matrices of size %s are larger than LAPACK takes", name,
            tl_shape_text(2, view->shape + view->ndim - 2, text));
  }
}

/* Begins a call whose argument 1 is matrices. */
static void begin(lua_State *L, tl_call *call, tl_op op, bool square, int64_t largest) {
  const char *name = tl_ops[op].name;
  const tl_view *view = &tl_tensor_check(L, 1, name)->view;
  char text[TL_SHAPE_TEXT];
  check_dtype(L, name, view);
  if (view->ndim < 2) {
    tl_fail(L, "%s: wants matrices, not size %s", name, tl_view_shape_text(view, text));
  }
  if (square && view->shape[view->ndim - 1] != view->shape[view->ndim - 2]) {
    tl_fail(L, "%s: wants square matrices, not size %s", name, tl_view_shape_text(view, text));
  }
  check_sizes(L, name, view, largest);
  memset(call, 0, sizeof *call);
  call->op = op;
  call->name = name;
  call->dtype = (tl_dtype)view->dtype;
  call->nbatch = view->ndim - 2;
  memcpy(call->batch, view->shape, sizeof call->batch);
}

static int64_t rows_of(const tl_view *view) { return view->shape[view->ndim - 2]; }
static int64_t columns_of(const tl_view *view) { return view->shape[view->ndim - 1]; }

static int64_t least_of(const tl_view *view) {
  int64_t rows = rows_of(view), columns = columns_of(view);
  return rows < columns ? rows : columns;
}

/* An optional boolean or number. */
static bool to_boolean(lua_State *L, const tl_call *call, int index, const char *what, bool usual) {
  if (lua_isnoneornil(L, index)) return usual;
  if (!lua_isboolean(L, index)) {
    tl_fail(L, "%s: %s must be true or false, not %s", call->name, what,
            tl_describe_value(L, index));
  }
  return lua_toboolean(L, index);
}

static double to_tolerance(lua_State *L, const tl_call *call, int index, const char *what,
                           double usual) {
  if (lua_isnoneornil(L, index)) return usual;
  double value = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : -1;
  if (!(value >= 0)) {
    tl_fail(L, "%s: %s must be a number from 0 on, not %s", call->name, what,
            tl_describe_value(L, index));
  }
  return value;
}

/* What a singular value may be, of the largest one, and still be rounding. */
static double rounding_of(const tl_view *view) {
  int64_t rows = rows_of(view), columns = columns_of(view);
  double epsilon = view->dtype == TL_float32 ? FLT_EPSILON : DBL_EPSILON;
  return epsilon * (double)(rows > columns ? rows : columns);
}

/* ---- results and commands ---- */

static const int64_t NONE = -1;

/* Pushes a result of the batch's sizes and up to two more, which may be NONE. */
static void add_result(lua_State *L, tl_call *call, tl_dtype dtype, int64_t rows,
                       int64_t columns) {
  int64_t shape[TL_MAX_DIMS];
  int ndim = call->nbatch;
  tl_view *view = &call->views[call->noperands];
  tl_error error;
  memcpy(shape, call->batch, sizeof shape);
  if (rows != NONE) shape[ndim++] = rows;
  if (columns != NONE) shape[ndim++] = columns;
  if (tl_view_make(view, dtype, ndim, shape, &error) != TL_OK) {
    tl_fail(L, "%s: %s", call->name, error.text);
  }
  call->tensors[call->noperands++] = tl_tensor_new(L, view, call->name);
  call->nresults++;
}

/* The last result's vectors are matrices of one column for the backend. */
static void as_columns(tl_view *view) {
  view->shape[view->ndim] = view->stride[view->ndim] = 1;
  view->ndim++;
}

/* An argument, of which there is one matrix or one for each of the batch. */
static void add_argument(lua_State *L, tl_call *call, int index, const tl_view *view) {
  int64_t shape[TL_MAX_DIMS];
  memcpy(shape, call->batch, sizeof shape);
  shape[call->nbatch] = rows_of(view);
  shape[call->nbatch + 1] = columns_of(view);
  tl_view_expand(&call->views[call->noperands], view, call->nbatch + 2, shape);
  call->tensors[call->noperands++] = tl_tensor_check(L, index, call->name);
}

/* Enqueues; returns how many results there are. */
static int submit(lua_State *L, tl_call *call) {
  tl_operand operands[TL_MAX_OPERANDS];
  for (int i = 0; i < call->noperands; i++) {
    int access = i < call->nresults ? TL_WRITE | TL_WHOLE : TL_READ;
    operands[i] = tl_operand_of(call->tensors[i], &call->views[i], access);
  }
  tl_enqueue(L, call->op, call->noperands, operands, &call->parameters, sizeof call->parameters);
  return call->nresults;
}

static int submit_one(lua_State *L, tl_call *call) {
  tl_view view = tl_tensor_check(L, 1, call->name)->view;
  add_argument(L, call, 1, &view);
  return submit(L, call);
}

/* ---- square matrices ---- */

/* The right sides of a x = b: vectors, when b is one or one for each of a's batch.  Makes the
 * call's batch that of both. */
static bool begin_right(lua_State *L, tl_call *call, const tl_view *a, tl_view *b) {
  char text_a[TL_SHAPE_TEXT], text_b[TL_SHAPE_TEXT];
  *b = tl_tensor_check(L, 2, call->name)->view;
  if (b->dtype != a->dtype) {
    tl_fail(L, "%s: operands are %s and %s: convert one with :to()", call->name,
            tl_dtype_name((tl_dtype)a->dtype), tl_dtype_name((tl_dtype)b->dtype));
  }
  bool vectors = b->ndim == 1;
  if (b->ndim > 1 && b->ndim == a->ndim - 1) {
    vectors = memcmp(a->shape, b->shape, b->ndim * sizeof *b->shape) == 0;
  }
  tl_view right = *b;
  if (vectors) as_columns(&right);
  if (right.ndim < 2 || rows_of(&right) != rows_of(a)) {
    tl_fail(L, "%s: sizes %s and %s do not fit: wants as many rows in both", call->name,
            tl_view_shape_text(a, text_a), tl_view_shape_text(b, text_b));
  }
  *b = right;
  tl_view batch_a = *a, batch_b = *b, batch;
  tl_error error;
  batch_a.ndim = (uint8_t)(batch_a.ndim - 2);
  batch_b.ndim = (uint8_t)(batch_b.ndim - 2);
  if (tl_view_broadcast(&batch, call->dtype, &batch_a, &batch_b, "", &error) != TL_OK) {
    tl_fail(L, "%s: sizes %s and %s do not fit: their batches do not broadcast", call->name,
            tl_view_shape_text(a, text_a), tl_view_shape_text(b, text_b));
  }
  call->nbatch = batch.ndim;
  memcpy(call->batch, batch.shape, sizeof call->batch);
  check_sizes(L, call->name, b, LARGEST);
  return vectors;
}

/* The result of a x = b, for a with `rows` unknowns. */
static void add_solution(lua_State *L, tl_call *call, bool vectors, int64_t rows,
                         const tl_view *b) {
  add_result(L, call, call->dtype, rows, vectors ? NONE : columns_of(b));
  if (vectors) as_columns(&call->views[0]);
}

static int solve(lua_State *L) {
  tl_call call;
  tl_view b;
  begin(L, &call, TL_OP_linalg_solve, true, LARGEST);
  tl_check_count(L, 2, call.name);
  tl_view a = tl_tensor_check(L, 1, call.name)->view;
  bool vectors = begin_right(L, &call, &a, &b);
  add_solution(L, &call, vectors, rows_of(&a), &b);
  add_argument(L, &call, 1, &a);
  add_argument(L, &call, 2, &b);
  return submit(L, &call);
}

static int inv(lua_State *L) {
  tl_call call;
  begin(L, &call, TL_OP_linalg_inv, true, LARGEST);
  tl_check_count(L, 1, call.name);
  int64_t n = rows_of(&tl_tensor_check(L, 1, call.name)->view);
  add_result(L, &call, call.dtype, n, n);
  return submit_one(L, &call);
}

static int determinant(lua_State *L, tl_op op, int results) {
  tl_call call;
  begin(L, &call, op, true, LARGEST);
  tl_check_count(L, 1, call.name);
  for (int i = 0; i < results; i++) add_result(L, &call, call.dtype, NONE, NONE);
  return submit_one(L, &call);
}

static int det(lua_State *L) { return determinant(L, TL_OP_linalg_det, 1); }
static int slogdet(lua_State *L) { return determinant(L, TL_OP_linalg_slogdet, 2); }

static int cholesky(lua_State *L) {
  tl_call call;
  begin(L, &call, TL_OP_linalg_cholesky, true, LARGEST);
  tl_check_count(L, 2, call.name);
  call.parameters.upper = to_boolean(L, &call, 2, "upper", false);
  int64_t n = rows_of(&tl_tensor_check(L, 1, call.name)->view);
  add_result(L, &call, call.dtype, n, n);
  return submit_one(L, &call);
}

/* ---- eigenvalues ---- */

static int symmetric(lua_State *L, tl_op op, bool vectors) {
  tl_call call;
  begin(L, &call, op, true, LARGEST_IN_WORKSPACE);
  tl_check_count(L, 2, call.name);
  const char *triangle = lua_isnoneornil(L, 2) ? "L" : lua_tostring(L, 2);
  if (!triangle || (strcmp(triangle, "L") != 0 && strcmp(triangle, "U") != 0)) {
    tl_fail(L, "%s: UPLO must be 'L' or 'U', not %s", call.name, tl_describe_value(L, 2));
  }
  call.parameters.upper = *triangle == 'U';
  int64_t n = rows_of(&tl_tensor_check(L, 1, call.name)->view);
  add_result(L, &call, call.dtype, n, NONE);
  if (vectors) add_result(L, &call, call.dtype, n, n);
  return submit_one(L, &call);
}

static int eigh(lua_State *L) { return symmetric(L, TL_OP_linalg_eigh, true); }
static int eigvalsh(lua_State *L) { return symmetric(L, TL_OP_linalg_eigvalsh, false); }

static int general(lua_State *L, tl_op op, bool vectors) {
  tl_call call;
  begin(L, &call, op, true, LARGEST_IN_WORKSPACE);
  tl_check_count(L, 1, call.name);
  int64_t n = rows_of(&tl_tensor_check(L, 1, call.name)->view);
  for (int i = 0; i < 2; i++) add_result(L, &call, call.dtype, n, NONE);
  for (int i = 0; i < 2 && vectors; i++) add_result(L, &call, call.dtype, n, n);
  return submit_one(L, &call);
}

static int eig(lua_State *L) { return general(L, TL_OP_linalg_eig, true); }
static int eigvals(lua_State *L) { return general(L, TL_OP_linalg_eigvals, false); }

/* ---- matrices of any size ---- */

/* qr(a, mode): with mode "r" the only result is r. */
static int qr(lua_State *L) {
  tl_call call;
  begin(L, &call, TL_OP_linalg_qr, false, LARGEST);
  tl_check_count(L, 2, call.name);
  const char *mode = lua_isnoneornil(L, 2) ? "reduced" : lua_tostring(L, 2);
  bool only_r = mode && strcmp(mode, "r") == 0;
  call.parameters.full = mode && strcmp(mode, "complete") == 0;
  if (!only_r && !call.parameters.full && !(mode && strcmp(mode, "reduced") == 0)) {
    tl_fail(L, "%s: mode must be 'reduced', 'complete' or 'r', not %s", call.name,
            tl_describe_value(L, 2));
  }
  tl_view a = tl_tensor_check(L, 1, call.name)->view;
  int64_t lines = call.parameters.full ? rows_of(&a) : least_of(&a);
  if (!only_r) add_result(L, &call, call.dtype, rows_of(&a), lines);
  add_result(L, &call, call.dtype, lines, columns_of(&a));
  return submit_one(L, &call);
}

static int svd(lua_State *L) {
  tl_call call;
  begin(L, &call, TL_OP_linalg_svd, false, LARGEST_IN_WORKSPACE);
  tl_check_count(L, 2, call.name);
  bool full = call.parameters.full = to_boolean(L, &call, 2, "full_matrices", true);
  tl_view a = tl_tensor_check(L, 1, call.name)->view;
  int64_t rows = rows_of(&a), columns = columns_of(&a), least = least_of(&a);
  if (full) check_sizes(L, call.name, &(tl_view){.ndim = 2, .shape = {rows, rows}}, LARGEST);
  add_result(L, &call, call.dtype, rows, full ? rows : least);
  add_result(L, &call, call.dtype, least, NONE);
  add_result(L, &call, call.dtype, full ? columns : least, columns);
  return submit_one(L, &call);
}

static int svdvals(lua_State *L) {
  tl_call call;
  begin(L, &call, TL_OP_linalg_svdvals, false, LARGEST_IN_WORKSPACE);
  tl_check_count(L, 1, call.name);
  add_result(L, &call, call.dtype, least_of(&tl_tensor_check(L, 1, call.name)->view), NONE);
  return submit_one(L, &call);
}

/* Arguments 2 and 3: atol, and rtol, which is 0 when only the other is given. */
static void read_tolerances(lua_State *L, tl_call *call) {
  tl_check_count(L, 3, call->name);
  double absolute = to_tolerance(L, call, 2, "atol", 0);
  double usual = absolute > 0 ? 0 : rounding_of(&tl_tensor_check(L, 1, call->name)->view);
  call->parameters.absolute = absolute;
  call->parameters.relative = to_tolerance(L, call, 3, "rtol", usual);
}

/* Ranks are int64 where there is such a dtype. */
static tl_dtype count_dtype(const tl_call *call) {
  int dtype = tl_dtype_find("int64");
  return dtype < 0 ? call->dtype : (tl_dtype)dtype;
}

static int matrix_rank(lua_State *L) {
  tl_call call;
  begin(L, &call, TL_OP_linalg_matrix_rank, false, LARGEST_IN_WORKSPACE);
  read_tolerances(L, &call);
  add_result(L, &call, count_dtype(&call), NONE, NONE);
  return submit_one(L, &call);
}

static int pinv(lua_State *L) {
  tl_call call;
  begin(L, &call, TL_OP_linalg_pinv, false, LARGEST_IN_WORKSPACE);
  read_tolerances(L, &call);
  tl_view a = tl_tensor_check(L, 1, call.name)->view;
  add_result(L, &call, call.dtype, columns_of(&a), rows_of(&a));
  return submit_one(L, &call);
}

/* lstsq(a, b, rcond): solution, rank, singular values, and whether b is vectors. */
static int lstsq(lua_State *L) {
  tl_call call;
  tl_view b;
  begin(L, &call, TL_OP_linalg_lstsq, false, LARGEST_IN_WORKSPACE);
  tl_check_count(L, 3, call.name);
  tl_view a = tl_tensor_check(L, 1, call.name)->view;
  call.parameters.relative = to_tolerance(L, &call, 3, "rcond", rounding_of(&a));
  bool vectors = begin_right(L, &call, &a, &b);
  add_solution(L, &call, vectors, columns_of(&a), &b);
  add_result(L, &call, count_dtype(&call), NONE, NONE);
  add_result(L, &call, call.dtype, least_of(&a), NONE);
  add_argument(L, &call, 1, &a);
  add_argument(L, &call, 2, &b);
  int results = submit(L, &call);
  lua_pushboolean(L, vectors);
  return results + 1;
}

/* ---- for einsum ---- */

/* regroup(x, {{1, 3}, {}, {2}}): a view in which each dimension is the diagonal of some of x (which
 * have one size), or of size 1. */
static int regroup(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "einsum");
  luaL_checktype(L, 2, LUA_TTABLE);
  tl_view view = {.offset = x->view.offset, .dtype = x->view.dtype};
  lua_Integer ndim = luaL_len(L, 2);
  if (ndim > TL_MAX_DIMS) {
    tl_fail(L, "einsum: %I dimensions are too many: at most %d", (LUAI_UACINT)ndim, TL_MAX_DIMS);
  }
  for (view.ndim = 0; view.ndim < ndim; view.ndim++) {
    int64_t *size = &view.shape[view.ndim], *stride = &view.stride[view.ndim];
    *size = 1;
    *stride = 0;
    lua_geti(L, 2, view.ndim + 1);
    lua_Integer count = luaL_len(L, -1);
    for (lua_Integer i = 1; i <= count; i++) {
      lua_geti(L, -1, i);
      int dim = tl_check_dim(L, lua_gettop(L), "einsum", &x->view);
      if (i > 1 && *size != x->view.shape[dim]) {
        tl_fail(L, "einsum: a diagonal of sizes %I and %I is not one", (LUAI_UACINT)*size,
                (LUAI_UACINT)x->view.shape[dim]);
      }
      *size = x->view.shape[dim];
      *stride += x->view.stride[dim];
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  tl_tensor_alias(L, tl_tensor_check(L, 1, "einsum"), &view);
  return 1;
}

const luaL_Reg tl_linalg_functions[] = {
    {"solve", solve},   {"inv", inv},           {"det", det},   {"slogdet", slogdet},
    {"qr", qr},         {"cholesky", cholesky}, {"svd", svd},   {"svdvals", svdvals},
    {"eigh", eigh},     {"eigvalsh", eigvalsh}, {"eig", eig},   {"eigvals", eigvals},
    {"lstsq", lstsq},   {"pinv", pinv},         {"regroup", regroup},
    {"matrix_rank", matrix_rank},               {NULL, NULL},
};
