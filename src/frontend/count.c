/* Counting values.  bincount, unique, and one_hot without the number of classes wait, since the
 * sizes of their results depend on values. */
#include <math.h>

#include "frontend/along.h"
#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "tensor/parameters.h"

static void check_integers(lua_State *L, const tl_tensor *x, const char *name) {
  tl_dtype dtype = (tl_dtype)x->view.dtype;
  if (tl_dtype_is_floating(dtype)) {
    tl_fail(L, "%s: wants a tensor of integers, not %s", name, tl_dtype_name(dtype));
  }
}

/* Waits for the largest of some integers: 0 of none. */
static int64_t read_largest(lua_State *L, const tl_tensor *x, const char *name) {
  int top = lua_gettop(L);
  if (tl_view_numel(&x->view) == 0) return 0;
  tl_along_view all = tl_along_all(L, x);
  tl_enqueue_located(L, TL_OP_max, &all, true);
  const void *data = tl_tensor_read(L, tl_tensor_test(L, -2), name);
  int64_t largest = tl_dtype_load((tl_dtype)x->view.dtype, data).integer;
  lua_settop(L, top);
  return largest;
}

/* Pushes a tensor and enqueues the command that writes it from `x` and perhaps another one. */
static tl_tensor *enqueue_count(lua_State *L, tl_op op, tl_dtype dtype, int ndim,
                                const int64_t *shape, const tl_tensor *x, const tl_tensor *other,
                                const tl_along *parameters) {
  tl_view view;
  tl_error error;
  if (tl_view_make(&view, dtype, ndim, shape, &error) != TL_OK) {
    tl_fail(L, "%s: %s", tl_ops[op].name, error.text);
  }
  tl_tensor *out = tl_tensor_new(L, &view, tl_ops[op].name);
  tl_operand operands[3] = {tl_operand_of(out, &view, TL_WRITE | TL_WHOLE),
                            tl_operand_of(x, &x->view, TL_READ)};
  if (other) operands[2] = tl_operand_of(other, &other->view, TL_READ);
  tl_enqueue(L, op, other ? 3 : 2, operands, parameters, sizeof *parameters);
  return out;
}

/* bincount(x [, weights [, minlength]]); options weights and minlength */
static int bincount(lua_State *L) {
  static const char *const options[] = {"weights", "minlength", NULL};
  const tl_tensor *x = tl_tensor_check(L, 1, "bincount"), *weights = NULL;
  tl_check_count(L, 3, "bincount");
  lua_settop(L, 3);
  tl_push_options(L, 2, "bincount", options);
  for (int i = 0; i < 2; i++) {
    if (!lua_isnil(L, 4 + i)) lua_copy(L, 4 + i, 2 + i);
  }
  check_integers(L, x, "bincount");
  char text[TL_SHAPE_TEXT], other[TL_SHAPE_TEXT];
  if (x->view.ndim != 1) {
    tl_fail(L, "bincount: wants one dimension, not a tensor of size %s",
            tl_view_shape_text(&x->view, text));
  }
  tl_dtype dtype = TL_int64;
  if (!lua_isnil(L, 2)) {
    weights = tl_tensor_check(L, 2, "bincount");
    if (!tl_view_same_shape(&weights->view, &x->view)) {
      tl_fail(L, "bincount: weights of size %s are not for a tensor of size %s",
              tl_view_shape_text(&weights->view, other), tl_view_shape_text(&x->view, text));
    }
    dtype = weights->view.dtype == TL_float32 ? TL_float32 : TL_float64;
  }
  int64_t least = lua_isnil(L, 3) ? 0 : tl_check_integer(L, 3, "bincount");
  if (least < 0) tl_fail(L, "bincount: minlength %I is negative", (LUAI_UACINT)least);
  int64_t size = read_largest(L, x, "bincount");
  if (size < least) size = least;
  tl_along parameters = {0};
  const tl_tensor *out =
      enqueue_count(L, TL_OP_bincount, dtype, 1, &size, x, weights, &parameters);
  tl_tensor_read(L, out, "bincount");
  return 1;
}

/* histc(x [, bins = 100 [, min = 0 [, max = 0]]]) */
static int histc(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "histc");
  tl_check_count(L, 4, "histc");
  int64_t bins = lua_isnoneornil(L, 2) ? 100 : tl_check_integer(L, 2, "histc");
  tl_along parameters = {0};
  if (!lua_isnoneornil(L, 3)) parameters.low = tl_check_number(L, 3, "histc");
  if (!lua_isnoneornil(L, 4)) parameters.high = tl_check_number(L, 4, "histc");
  if (bins < 1) tl_fail(L, "histc: %I bins are too few: at least 1", (LUAI_UACINT)bins);
  double width = parameters.high - parameters.low;
  if (!(width >= 0) || !isfinite(width)) {
    tl_fail(L, "histc: cannot make bins from %f to %f", parameters.low, parameters.high);
  }
  tl_dtype dtype = (tl_dtype)x->view.dtype;
  if (!tl_dtype_is_floating(dtype)) {
    tl_fail(L, "histc: wants a floating-point tensor, not %s: convert with :to()",
            tl_dtype_name(dtype));
  }
  enqueue_count(L, TL_OP_histc, dtype, 1, &bins, x, NULL, &parameters);
  return 1;
}

/* one_hot(x [, classes]): waits for the largest class when their number is not given. */
static int one_hot(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "one_hot");
  tl_check_count(L, 2, "one_hot");
  check_integers(L, x, "one_hot");
  if (x->view.ndim == TL_MAX_DIMS) {
    tl_fail(L, "one_hot: %d dimensions are too many: at most %d", TL_MAX_DIMS, TL_MAX_DIMS - 1);
  }
  int64_t shape[TL_MAX_DIMS], classes;
  if (lua_isnoneornil(L, 2)) {
    classes = read_largest(L, x, "one_hot");
    if (classes < 1) {
      tl_fail(L, "one_hot: there is no class in the tensor: give their number");
    }
  } else {
    classes = tl_check_integer(L, 2, "one_hot");
    if (classes < 1) {
      tl_fail(L, "one_hot: %I classes are too few: at least 1", (LUAI_UACINT)classes);
    }
  }
  for (int d = 0; d < x->view.ndim; d++) shape[d] = x->view.shape[d];
  shape[x->view.ndim] = classes;
  tl_along parameters = {0};
  enqueue_count(L, TL_OP_one_hot, TL_int64, x->view.ndim + 1, shape, x, NULL, &parameters);
  return 1;
}

/* Pushes a copy of the first `count` elements of the tensor at a stack index. */
static void push_first(lua_State *L, int index, int64_t count) {
  const tl_tensor *x = tl_tensor_test(L, index);
  tl_view view = x->view;
  tl_view_range(&view, 0, 0, count, 1);
  tl_enqueue_copy(L, TL_OP_clone, tl_tensor_alias(L, x, &view), (tl_dtype)view.dtype);
  lua_remove(L, -2);
}

/* name(x [, {return_inverse = true, return_counts = true}]): waits for the number of groups. */
static int groups(lua_State *L, tl_op op) {
  static const char *const options[] = {"return_inverse", "return_counts", NULL};
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  tl_check_count(L, 2, name);
  lua_settop(L, 2);
  tl_push_options(L, 2, name, options);
  if (!lua_isnil(L, 2)) {
    tl_fail(L, "%s: the options must be a table, not %s", name, tl_describe(L, 2));
  }
  bool inverse = tl_check_flag(L, 3, options[0], name, false);
  bool counts = tl_check_flag(L, 4, options[1], name, false);

  tl_along_view all = tl_along_all(L, x);
  const tl_tensor *sorted = all.tensor, *places = NULL;
  if (op == TL_OP_unique) {
    tl_along_results results = {.length = tl_along_size(&all), .count = 2};
    results.dtypes[0] = (tl_dtype)x->view.dtype;
    results.dtypes[1] = TL_int64;
    tl_along parameters = {0};
    tl_enqueue_along(L, TL_OP_sort, &all, &results, &parameters, sizeof parameters);
    sorted = tl_tensor_test(L, -2);
    places = tl_tensor_test(L, -1);
  } else if (!tl_view_is_contiguous(&sorted->view)) {
    sorted = tl_enqueue_copy(L, TL_OP_clone, sorted, (tl_dtype)x->view.dtype);
  }

  tl_view views[4], as_x; /* values, group of each element, counts, number of groups */
  tl_error error;
  tl_tensor *made[4];
  int first = lua_gettop(L) + 1;
  tl_view_make_like(&views[0], (tl_dtype)x->view.dtype, &all.view);
  tl_view_make_like(&views[1], TL_int64, &all.view);
  views[2] = views[1];
  tl_view_make(&views[3], TL_int64, 0, NULL, &error);
  tl_operand operands[6];
  for (int i = 0; i < 4; i++) made[i] = tl_tensor_new(L, &views[i], name);
  for (int i = 0; i < 4; i++) operands[i] = tl_operand_of(made[i], &views[i], TL_WRITE | TL_WHOLE);
  operands[4] = tl_operand_of(sorted, &sorted->view, TL_READ);
  if (places) operands[5] = tl_operand_of(places, &places->view, TL_READ);
  tl_enqueue(L, op, places ? 6 : 5, operands, NULL, 0);
  int64_t number = *(const int64_t *)tl_tensor_read(L, made[3], name);

  tl_view_make_like(&as_x, TL_int64, &x->view);
  push_first(L, first, number);
  if (inverse) tl_tensor_alias(L, made[1], &as_x);
  if (counts) push_first(L, first + 2, number);
  return 1 + inverse + counts;
}

static int unique(lua_State *L) { return groups(L, TL_OP_unique); }
static int unique_consecutive(lua_State *L) { return groups(L, TL_OP_unique_consecutive); }

const luaL_Reg tl_count_functions[] = {
    {"bincount", bincount}, {"histc", histc},
    {"one_hot", one_hot},   {"unique", unique},
    {"unique_consecutive", unique_consecutive}, {NULL, NULL},
};
