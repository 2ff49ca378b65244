/* Sorting and searching: nothing here waits. */
#include "frontend/along.h"
#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "tensor/parameters.h"

/* Pushes `length` elements of each line, from rank `first` on, and their places; of argsort these
 * alone, of msort those.  Returns how many tensors that is. */
static int enqueue_sort(lua_State *L, tl_op op, const tl_along_view *along, bool descending,
                        int64_t first, int64_t length, bool dropped) {
  tl_along_results results = {.length = length, .dropped = dropped, .count = 2};
  results.dtypes[0] = (tl_dtype)along->view.dtype;
  results.dtypes[1] = TL_int64;
  if (op == TL_OP_msort || op == TL_OP_argsort) results.count = 1;
  if (op == TL_OP_argsort) results.dtypes[0] = TL_int64;
  tl_along parameters = {.descending = descending, .first = first};
  tl_enqueue_along(L, op, along, &results, &parameters, sizeof parameters);
  return results.count;
}

/* name(x [, dim [, descending [, stable]]]), or options of these names.  It always is stable. */
static int sort_all(lua_State *L, tl_op op) {
  static const char *const options[] = {"descending", "stable", NULL};
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  tl_check_count(L, 4, name);
  lua_settop(L, 4);
  tl_push_options(L, 2, name, options);
  bool descending = tl_check_flag(L, 5, options[0], name, false);
  descending = tl_check_flag(L, 3, options[0], name, descending);
  tl_check_flag(L, 6, options[1], name, true);
  tl_check_flag(L, 4, options[1], name, true);
  tl_along_view along = tl_check_along(L, x, 2, -1, name);
  return enqueue_sort(L, op, &along, descending, 0, tl_along_size(&along), false);
}

static int sort(lua_State *L) { return sort_all(L, TL_OP_sort); }
static int argsort(lua_State *L) { return sort_all(L, TL_OP_argsort); }

static int msort(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "msort");
  tl_check_count(L, 1, "msort");
  tl_along_view along = tl_check_along(L, x, 2, 1, "msort");
  return enqueue_sort(L, TL_OP_msort, &along, false, 0, tl_along_size(&along), false);
}

/* A number of elements, of which a line has enough. */
static int64_t check_number(lua_State *L, const tl_along_view *along, int64_t least,
                            const char *name) {
  int64_t k = tl_check_integer(L, 2, name);
  char text[TL_SHAPE_TEXT];
  if (k < least || k > tl_along_size(along)) {
    tl_fail(L, "%s: k = %I is not a number from %I to %I, the size of dimension %d of %s", name,
            (LUAI_UACINT)k, (LUAI_UACINT)least, (LUAI_UACINT)tl_along_size(along), along->dim + 1,
            tl_view_shape_text(&along->tensor->view, text));
  }
  return k;
}

/* topk(x, k [, dim [, largest [, sorted]]]), or options of these names.  It always is sorted. */
static int topk(lua_State *L) {
  static const char *const options[] = {"largest", "sorted", NULL};
  const tl_tensor *x = tl_tensor_check(L, 1, "topk");
  tl_check_count(L, 5, "topk");
  lua_settop(L, 5);
  tl_push_options(L, 3, "topk", options);
  bool largest = tl_check_flag(L, 6, options[0], "topk", true);
  largest = tl_check_flag(L, 4, options[0], "topk", largest);
  tl_check_flag(L, 7, options[1], "topk", true);
  tl_check_flag(L, 5, options[1], "topk", true);
  tl_along_view along = tl_check_along(L, x, 3, -1, "topk");
  int64_t k = check_number(L, &along, 0, "topk");
  return enqueue_sort(L, TL_OP_topk, &along, largest, 0, k, false);
}

static int kthvalue(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "kthvalue");
  tl_check_count(L, 4, "kthvalue");
  bool keep = tl_check_flag(L, 4, "keepdim", "kthvalue", false);
  tl_along_view along = tl_check_along(L, x, 3, -1, "kthvalue");
  int64_t k = check_number(L, &along, 1, "kthvalue");
  return enqueue_sort(L, TL_OP_kthvalue, &along, false, k - 1, 1, !keep);
}

/* median(x), of all elements, or median(x, dim [, keepdim]): the lower one of two. */
static int median(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "median");
  tl_check_count(L, 3, "median");
  bool keep = tl_check_flag(L, 3, "keepdim", "median", false), all = lua_isnoneornil(L, 2);
  if (all && keep) tl_fail(L, "median: keepdim is for a dimension: that of all has none");
  tl_along_view along = all ? tl_along_all(L, x) : tl_check_along(L, x, 2, 0, "median");
  tl_check_not_empty(L, &along, "median");
  int64_t rank = (tl_along_size(&along) - 1) / 2;
  enqueue_sort(L, TL_OP_median, &along, false, rank, 1, !keep);
  if (!all) return 2;
  lua_pop(L, 1);
  return 1;
}

/* mode(x [, dim [, keepdim]]) */
static int mode(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "mode");
  tl_check_count(L, 3, "mode");
  bool keep = tl_check_flag(L, 3, "keepdim", "mode", false);
  tl_along_view along = tl_check_along(L, x, 2, -1, "mode");
  tl_check_not_empty(L, &along, "mode");
  return enqueue_sort(L, TL_OP_mode, &along, false, 0, 1, !keep);
}

/* ---- searching ---- */

/* Contiguous, as the dtype in which values are compared. */
static const tl_tensor *as_searched(lua_State *L, const tl_tensor *x, tl_dtype dtype) {
  if ((tl_dtype)x->view.dtype == dtype && tl_view_is_contiguous(&x->view)) return x;
  return tl_enqueue_copy(L, TL_OP_to, x, dtype);
}

static tl_dtype searched_dtype(const tl_tensor *a, const tl_tensor *b) {
  tl_dtype met = tl_dtype_promote((tl_dtype)a->view.dtype, (tl_dtype)b->view.dtype);
  return tl_dtype_is_floating(met) ? TL_float64 : TL_int64;
}

/* Pushes the result, of the shape of `values`. */
static int search(lua_State *L, tl_op op, tl_dtype dtype, const tl_tensor *sorted,
                  const tl_tensor *values, const tl_along *parameters) {
  tl_view view, searched = sorted->view;
  tl_view_make_like(&view, dtype, &values->view);
  tl_tensor *out = tl_tensor_new(L, &view, tl_ops[op].name);
  tl_view wanted = values->view;
  if (wanted.ndim == 0) {
    wanted.ndim = view.ndim = 1;
    wanted.shape[0] = wanted.stride[0] = view.shape[0] = view.stride[0] = 1;
  }
  tl_operand operands[] = {tl_operand_of(out, &view, TL_WRITE | TL_WHOLE),
                           tl_operand_of(sorted, &searched, TL_READ),
                           tl_operand_of(values, &wanted, TL_READ)};
  tl_enqueue(L, op, 3, operands, parameters, sizeof *parameters);
  return 1;
}

/* Values to search for: a tensor, or a number as one without dimensions. */
static const tl_tensor *check_values(lua_State *L, int index, const char *name) {
  if (lua_type(L, index) != LUA_TNUMBER) return tl_tensor_check(L, index, name);
  return tl_enqueue_number(L, index, name, lua_isinteger(L, index) ? TL_int64 : TL_float64);
}

/* searchsorted(sorted, values [, {right = true}]) */
static int searchsorted(lua_State *L) {
  static const char *const options[] = {"right", NULL};
  const tl_tensor *sorted = tl_tensor_check(L, 1, "searchsorted");
  tl_check_count(L, 3, "searchsorted");
  lua_settop(L, 3);
  tl_push_options(L, 3, "searchsorted", options);
  tl_along parameters = {.right = tl_check_flag(L, 4, options[0], "searchsorted", false)};
  parameters.right = tl_check_flag(L, 3, options[0], "searchsorted", parameters.right);
  const tl_tensor *values = check_values(L, 2, "searchsorted");
  const tl_view *a = &sorted->view, *b = &values->view;
  bool fits = a->ndim == 1 || (a->ndim > 1 && a->ndim == b->ndim);
  for (int d = 0; d + 1 < a->ndim && fits; d++) fits = a->shape[d] == b->shape[d];
  if (!fits) {
    char text_a[TL_SHAPE_TEXT], text_b[TL_SHAPE_TEXT];
    tl_fail(L, "searchsorted: what is sorted must have one dimension, or those of the values but "
            "for the last: not %s for %s", tl_view_shape_text(a, text_a),
            tl_view_shape_text(b, text_b));
  }
  sorted = as_searched(L, sorted, searched_dtype(sorted, values));
  return search(L, TL_OP_searchsorted, TL_int64, sorted, values, &parameters);
}

/* isin(x, among) */
static int isin(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "isin");
  tl_check_count(L, 2, "isin");
  const tl_tensor *among = check_values(L, 2, "isin");
  tl_along_view all = tl_along_all(L, as_searched(L, among, searched_dtype(x, among)));
  enqueue_sort(L, TL_OP_msort, &all, false, 0, tl_along_size(&all), false);
  tl_along parameters = {0};
  return search(L, TL_OP_isin, TL_bool, tl_tensor_test(L, -1), x, &parameters);
}

const luaL_Reg tl_sort_functions[] = {
    {"sort", sort},         {"argsort", argsort}, {"msort", msort},
    {"topk", topk},         {"median", median},   {"kthvalue", kthvalue},
    {"mode", mode},         {"isin", isin},       {"searchsorted", searchsorted},
    {NULL, NULL},
};
