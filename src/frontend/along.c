/* Along one dimension: what such functions share, and argmax, argmin and the scans. */
#include "frontend/along.h"

#include <string.h>

#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "tensor/parameters.h"

/* ---- arguments ---- */

tl_along_view tl_check_along(lua_State *L, const tl_tensor *x, int index, int usual,
                             const char *name) {
  tl_along_view along = {.tensor = x, .view = x->view};
  if (along.view.ndim == 0) {
    along.view.ndim = 1;
    along.view.shape[0] = along.view.stride[0] = 1;
  }
  if (usual != 0 && lua_isnoneornil(L, index)) {
    along.dim = usual > 0 ? usual - 1 : along.view.ndim + usual;
  } else {
    along.dim = tl_check_dim(L, index, name, &along.view);
  }
  return along;
}

tl_along_view tl_along_all(lua_State *L, const tl_tensor *x) {
  tl_along_view along = {.dim = 0};
  int64_t numel = tl_view_numel(&x->view);
  if (!tl_view_reshape(&along.view, &x->view, 1, &numel)) {
    x = tl_enqueue_copy(L, TL_OP_clone, x, (tl_dtype)x->view.dtype);
    tl_view_reshape(&along.view, &x->view, 1, &numel);
  }
  along.tensor = tl_tensor_alias(L, x, &along.view);
  return along;
}

void tl_check_not_empty(lua_State *L, const tl_along_view *along, const char *name) {
  char text[TL_SHAPE_TEXT];
  if (tl_along_size(along) > 0) return;
  tl_fail(L, "%s: a tensor of size %s has no elements to choose from", name,
          tl_view_shape_text(&along->tensor->view, text));
}

bool tl_check_flag(lua_State *L, int index, const char *what, const char *name, bool usual) {
  if (lua_isnoneornil(L, index)) return usual;
  if (!lua_isboolean(L, index)) {
    tl_fail(L, "%s: %s must be true or false, not %s", name, what, luaL_typename(L, index));
  }
  return lua_toboolean(L, index);
}

/* Raises for a key, below the top of the stack, that is not an option. */
static void check_option(lua_State *L, const char *name, const char *const *options) {
  const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
  int count = 0;
  for (; options[count]; count++) {
    if (key && strcmp(key, options[count]) == 0) return;
  }
  const char *given = tl_describe_value(L, -2);
  lua_pushliteral(L, "");
  for (int i = 0; i < count; i++) {
    const char *separator = i == 0 ? "" : i + 1 < count ? ", " : " or ";
    lua_pushfstring(L, "%s%s", separator, options[i]);
    lua_concat(L, 2);
  }
  tl_fail(L, "%s: unknown option '%s': %s", name, given, lua_tostring(L, -1));
}

void tl_push_options(lua_State *L, int first, const char *name, const char *const *options) {
  int table = lua_gettop(L);
  while (table >= first && lua_isnil(L, table)) table--;
  bool given = table >= first && lua_type(L, table) == LUA_TTABLE;
  if (given) {
    lua_pushnil(L);
    while (lua_next(L, table)) {
      check_option(L, name, options);
      lua_pop(L, 1);
    }
  }
  for (int i = 0; options[i]; i++) {
    lua_pushstring(L, options[i]);
    if (given) {
      lua_rawget(L, table);
    } else {
      lua_pop(L, 1);
      lua_pushnil(L);
    }
  }
  if (!given) return;
  lua_pushnil(L);
  lua_replace(L, table);
}

/* ---- commands ---- */

/* Views of one shape, but for their sizes along `dim`: that dimension becomes the last, and of the
 * others those become one that follow each other in the memory of all. */
static void make_lines(int nviews, tl_view *views, int dim) {
  tl_view lines[TL_MAX_LOOP_VIEWS] = {{0}};
  int ndim = 0;
  for (int d = 0; d < views[0].ndim; d++) {
    int64_t size = views[0].shape[d];
    if (d == dim || size == 1) continue;
    bool joins = ndim > 0;
    for (int v = 0; v < nviews && joins; v++) {
      joins = lines[v].stride[ndim - 1] == size * views[v].stride[d];
    }
    for (int v = 0; v < nviews; v++) {
      if (joins) {
        lines[v].shape[ndim - 1] *= size;
        lines[v].stride[ndim - 1] = views[v].stride[d];
      } else {
        lines[v].shape[ndim] = size;
        lines[v].stride[ndim] = views[v].stride[d];
      }
    }
    if (!joins) ndim++;
  }
  for (int v = 0; v < nviews; v++) {
    lines[v].shape[ndim] = views[v].shape[dim];
    lines[v].stride[ndim] = views[v].stride[dim];
    views[v].ndim = (uint8_t)(ndim + 1);
    memcpy(views[v].shape, lines[v].shape, sizeof lines[v].shape);
    memcpy(views[v].stride, lines[v].stride, sizeof lines[v].stride);
  }
}

/* Pushes a result, and gives the view of it that has all dimensions of the input's. */
static const tl_tensor *push_result(lua_State *L, const char *name, const tl_along_view *along,
                                    const tl_along_results *results, tl_dtype dtype,
                                    tl_view *full) {
  tl_view view;
  tl_error error;
  int64_t shape[TL_MAX_DIMS];
  int ndim = along->view.ndim, kept = 0;
  memcpy(shape, along->view.shape, sizeof shape);
  shape[along->dim] = results->length;
  if (tl_view_make(full, dtype, ndim, shape, &error) != TL_OK) {
    tl_fail(L, "%s: %s", name, error.text);
  }
  bool dropped = results->dropped || (along->tensor->view.ndim == 0 && results->length == 1);
  for (int d = 0; d < ndim; d++) {
    if (d != along->dim || !dropped) shape[kept++] = shape[d];
  }
  tl_view_make(&view, dtype, kept, shape, &error);
  return tl_tensor_new(L, &view, name);
}

void tl_enqueue_along(lua_State *L, tl_op op, const tl_along_view *along,
                      const tl_along_results *results, const void *parameters,
                      size_t parameters_size) {
  const tl_tensor *tensors[TL_MAX_LOOP_VIEWS];
  tl_view views[TL_MAX_LOOP_VIEWS];
  tl_operand operands[TL_MAX_LOOP_VIEWS];
  int count = results->count;
  for (int i = 0; i < count; i++) {
    tensors[i] =
        push_result(L, tl_ops[op].name, along, results, results->dtypes[i], &views[i]);
  }
  tensors[count] = along->tensor;
  views[count] = along->view;
  make_lines(count + 1, views, along->dim);
  for (int i = 0; i <= count; i++) {
    operands[i] = tl_operand_of(tensors[i], &views[i], i < count ? TL_WRITE | TL_WHOLE : TL_READ);
  }
  tl_enqueue(L, op, count + 1, operands, parameters, parameters_size);
}

void tl_enqueue_located(lua_State *L, tl_op op, const tl_along_view *along, bool dropped) {
  bool has_values = op == TL_OP_max || op == TL_OP_min;
  tl_along_results results = {.length = 1, .dropped = dropped, .count = has_values ? 2 : 1};
  results.dtypes[0] = (tl_dtype)along->view.dtype;
  results.dtypes[has_values ? 1 : 0] = TL_int64;
  tl_reduce parameters = {.dims = 1, .located = true, .count = tl_along_size(along)};
  tl_enqueue_along(L, op, along, &results, &parameters, sizeof parameters);
}

/* ---- functions ---- */

int tl_extreme_along(lua_State *L, tl_op op) {
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  tl_check_count(L, 3, name);
  bool keep = tl_check_flag(L, 3, "keepdim", name, false);
  tl_along_view along = tl_check_along(L, x, 2, 0, name);
  tl_check_not_empty(L, &along, name);
  tl_enqueue_located(L, op, &along, !keep);
  return 2;
}

/* name(x), of all elements, or name(x, dim [, keepdim]) */
static int arg(lua_State *L, tl_op op) {
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  tl_check_count(L, 3, name);
  bool keep = tl_check_flag(L, 3, "keepdim", name, false);
  if (!lua_isnoneornil(L, 2)) {
    tl_along_view along = tl_check_along(L, x, 2, 0, name);
    tl_check_not_empty(L, &along, name);
    tl_enqueue_located(L, op, &along, !keep);
    return 1;
  }
  if (tl_view_numel(&x->view) == 0) {
    char text[TL_SHAPE_TEXT];
    tl_fail(L, "%s: a tensor of size %s has no elements to choose from", name,
            tl_view_shape_text(&x->view, text));
  }
  int ndim = x->view.ndim;
  tl_along_view along = tl_along_all(L, x);
  tl_enqueue_located(L, op, &along, true);
  if (!keep) return 1;
  tl_view view;
  tl_error error;
  int64_t ones[TL_MAX_DIMS];
  for (int d = 0; d < ndim; d++) ones[d] = 1;
  tl_view_make(&view, TL_int64, ndim, ones, &error);
  tl_tensor_alias(L, tl_tensor_test(L, -1), &view);
  return 1;
}

/* name(x, dim) */
static int scan(lua_State *L, tl_op op) {
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  tl_check_count(L, 2, name);
  tl_along_view along = tl_check_along(L, x, 2, 0, name);
  bool has_indices = op == TL_OP_cummax || op == TL_OP_cummin;
  tl_dtype dtype = (tl_dtype)x->view.dtype;
  if (op == TL_OP_logcumsumexp && !tl_dtype_is_floating(dtype)) {
    tl_fail(L, "%s: wants a floating-point tensor, not %s: convert with :to()", name,
            tl_dtype_name(dtype));
  }
  if (!has_indices && !tl_dtype_is_floating(dtype)) dtype = TL_int64;
  tl_along_results results = {.length = tl_along_size(&along),
                              .count = has_indices ? 2 : 1,
                              .dtypes = {dtype, TL_int64}};
  tl_enqueue_along(L, op, &along, &results, NULL, 0);
  return results.count;
}

#define ALONG(name, function) \
  static int op_##name(lua_State *L) { return function(L, TL_OP_##name); }
ALONG(argmax, arg)
ALONG(argmin, arg)
ALONG(cumsum, scan)
ALONG(cumprod, scan)
ALONG(cummax, scan)
ALONG(cummin, scan)
ALONG(logcumsumexp, scan)

const luaL_Reg tl_along_functions[] = {
    {"argmax", op_argmax},   {"argmin", op_argmin},
    {"cumsum", op_cumsum},   {"cumprod", op_cumprod},
    {"cummax", op_cummax},   {"cummin", op_cummin},
    {"logcumsumexp", op_logcumsumexp}, {NULL, NULL},
};
