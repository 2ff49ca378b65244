#include "frontend/arguments.h"

#include <math.h>
#include <string.h>

const char *tl_describe(lua_State *L, int index) {
  if (lua_isnone(L, index)) return "missing";
  return lua_type(L, index) == LUA_TNUMBER ? luaL_tolstring(L, index, NULL)
                                           : luaL_typename(L, index);
}

const char *tl_describe_value(lua_State *L, int index) {
  int type = lua_type(L, index);
  return type == LUA_TSTRING || type == LUA_TNUMBER || type == LUA_TBOOLEAN
             ? luaL_tolstring(L, index, NULL)
             : tl_describe(L, index);
}

tl_dtype tl_check_dtype(lua_State *L, int index, const char *name) {
  int dtype = lua_type(L, index) == LUA_TSTRING ? tl_dtype_find(lua_tostring(L, index)) : -1;
  if (dtype < 0) {
    lua_pushliteral(L, "");
    for (int i = 0; i < TL_DTYPE_COUNT; i++) {
      lua_pushfstring(L, "%s%s", i > 0 ? ", " : "", tl_dtype_name((tl_dtype)i));
      lua_concat(L, 2);
    }
    const char *all = lua_tostring(L, -1);
    tl_fail(L, "%s: '%s' is not a dtype: %s", name, tl_describe_value(L, index), all);
  }
  return (tl_dtype)dtype;
}

void tl_check_device(lua_State *L, int index, const char *name) {
  if (lua_type(L, index) != LUA_TSTRING || strcmp(lua_tostring(L, index), "cpu") != 0) {
    tl_fail(L, "%s: there is no device '%s' here, only 'cpu'", name,
            tl_describe_value(L, index));
  }
}

static tl_options check_options(lua_State *L, const char *name, bool random) {
  tl_options options = {.dtype = TL_float32};
  int top = lua_gettop(L);
  if (top == 0 || lua_type(L, top) != LUA_TTABLE) return options;
  bool is_array = lua_rawlen(L, top) > 0, any = false;
  lua_pushnil(L);
  while (lua_next(L, top)) {
    if (is_array && lua_isinteger(L, -2)) {
      lua_pop(L, 1);
      continue;
    }
    any = true;
    const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
    if (key && strcmp(key, "dtype") == 0) {
      options.dtype = tl_check_dtype(L, lua_gettop(L), name);
      options.has_dtype = true;
    } else if (key && strcmp(key, "device") == 0) {
      tl_check_device(L, lua_gettop(L), name);
    } else if (key && strcmp(key, "generator") == 0 && random) {
      options.generator = tl_generator_test(L, -1);
      if (!options.generator) {
        tl_fail(L, "%s: generator must be a generator, not %s", name, tl_describe(L, -1));
      }
    } else {
      tl_fail(L, "%s: unknown option '%s': dtype or device", name, tl_describe_value(L, -2));
    }
    lua_pop(L, 1);
  }
  /* A lone {} is the size of a 0-dimensional tensor. */
  if (!is_array && (any || top > 1)) lua_settop(L, top - 1);
  return options;
}

tl_options tl_check_options(lua_State *L, const char *name) {
  return check_options(L, name, false);
}

tl_options tl_check_random_options(lua_State *L, const char *name) {
  tl_options options = check_options(L, name, true);
  if (!tl_dtype_is_floating(options.dtype)) {
    tl_fail(L, "%s: wants a floating-point dtype, not %s", name, tl_dtype_name(options.dtype));
  }
  return options;
}

/* An integer, or a float with an integer's value. */
static bool to_integer(lua_State *L, int index, int64_t *value) {
  int is_integer = 0;
  *value = 0;
  if (lua_type(L, index) == LUA_TNUMBER) *value = lua_tointegerx(L, index, &is_integer);
  return is_integer;
}

static int64_t check_one_size(lua_State *L, int index, const char *name, bool wildcard) {
  int64_t size;
  if (!to_integer(L, index, &size)) {
    tl_fail(L, "%s: size %s is not an integer", name, tl_describe_value(L, index));
  }
  if (size < 0 && !(wildcard && size == -1)) {
    tl_fail(L, "%s: size %I is negative", name, (LUAI_UACINT)size);
  }
  return size;
}

int tl_check_size(lua_State *L, int first, const char *name, bool wildcard, int64_t *shape) {
  int top = lua_gettop(L);
  bool table = top >= first && lua_type(L, first) == LUA_TTABLE;
  if (top < first) tl_fail(L, "%s: a size is missing: numbers or a table", name);
  if (table && top > first) tl_fail(L, "%s: too many arguments after the size", name);
  int64_t ndim = table ? (int64_t)lua_rawlen(L, first) : top - first + 1;
  if (ndim > TL_MAX_DIMS) {
    tl_fail(L, "%s: %I dimensions are too many: at most %d", name, (LUAI_UACINT)ndim,
            TL_MAX_DIMS);
  }
  for (int d = 0; d < ndim; d++) {
    if (!table) {
      shape[d] = check_one_size(L, first + d, name, wildcard);
      continue;
    }
    lua_rawgeti(L, first, d + 1);
    shape[d] = check_one_size(L, lua_gettop(L), name, wildcard);
    lua_pop(L, 1);
  }
  return (int)ndim;
}

void tl_check_shape(lua_State *L, int first, const char *name, tl_dtype dtype, tl_view *view) {
  int64_t shape[TL_MAX_DIMS];
  tl_error error;
  int ndim = tl_check_size(L, first, name, false, shape);
  if (tl_view_make(view, dtype, ndim, shape, &error) != TL_OK) {
    tl_fail(L, "%s: %s", name, error.text);
  }
}

int64_t tl_check_integer(lua_State *L, int index, const char *name) {
  int64_t value;
  if (!to_integer(L, index, &value)) {
    tl_fail(L, "%s: argument %d must be an integer, not %s", name, index,
            tl_describe(L, index));
  }
  return value;
}

double tl_check_number(lua_State *L, int index, const char *name) {
  if (lua_type(L, index) != LUA_TNUMBER) {
    tl_fail(L, "%s: argument %d must be a number, not %s", name, index,
            tl_describe(L, index));
  }
  return lua_tonumber(L, index);
}

tl_scalar tl_check_scalar(lua_State *L, int index, const char *name, tl_dtype dtype) {
  tl_scalar value;
  bool integers = tl_dtype_compute(dtype) == TL_int64;
  if (lua_type(L, index) == LUA_TBOOLEAN || lua_isinteger(L, index)) {
    int64_t given = lua_isinteger(L, index) ? lua_tointeger(L, index) : lua_toboolean(L, index);
    value.integer = given;
    return integers ? value : (tl_scalar){.real = (double)given};
  }
  value.real = tl_check_number(L, index, name);
  if (!integers) return value;
  return (tl_scalar){.integer = dtype == TL_bool ? value.real != 0 : tl_to_int64(value.real)};
}

/* __tostring of sizes: as they are written. */
static int sizes_text(lua_State *L) {
  luaL_Buffer text;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer count = (lua_Integer)lua_rawlen(L, 1);
  luaL_buffinit(L, &text);
  luaL_addchar(&text, '{');
  for (lua_Integer d = 1; d <= count; d++) {
    if (d > 1) luaL_addstring(&text, ", ");
    lua_rawgeti(L, 1, d);
    luaL_tolstring(L, -1, NULL);
    lua_remove(L, -2);
    luaL_addvalue(&text);
  }
  luaL_addchar(&text, '}');
  luaL_pushresult(&text);
  return 1;
}

void tl_push_sizes(lua_State *L, int ndim, const int64_t *sizes) {
  lua_createtable(L, ndim, 0);
  for (int d = 0; d < ndim; d++) {
    lua_pushinteger(L, sizes[d]);
    lua_rawseti(L, -2, d + 1);
  }
  if (luaL_newmetatable(L, "tensor.sizes")) {
    lua_pushcfunction(L, sizes_text);
    lua_setfield(L, -2, "__tostring");
  }
  lua_setmetatable(L, -2);
}

void tl_check_count(lua_State *L, int most, const char *name) {
  int count = lua_gettop(L);
  while (count > most && lua_isnil(L, count)) count--;
  if (count > most) {
    tl_fail(L, "%s: %d arguments are too many: at most %d", name, count, most);
  }
  if (lua_gettop(L) > most) lua_settop(L, most);
}

/* Counting from 1, or from the end when negative; -1 when out of range. */
static int64_t resolve(int64_t index, int64_t size) {
  if (index >= 1 && index <= size) return index - 1;
  if (index <= -1 && index >= -size) return size + index;
  return -1;
}

static int resolve_dim(lua_State *L, int64_t given, const char *name, const tl_view *view) {
  int64_t dim = resolve(given, view->ndim);
  char text[TL_SHAPE_TEXT];
  if (dim < 0) {
    tl_fail(L, "%s: dimension %I is out of range for a tensor of size %s", name,
            (LUAI_UACINT)given, tl_view_shape_text(view, text));
  }
  return (int)dim;
}

int tl_check_dim(lua_State *L, int index, const char *name, const tl_view *view) {
  return resolve_dim(L, tl_check_integer(L, index, name), name, view);
}

void tl_check_dims(lua_State *L, int index, const char *name, const tl_view *view, bool *named) {
  bool all = lua_isnoneornil(L, index), table = lua_type(L, index) == LUA_TTABLE;
  tl_view seen = *view;
  if (view->ndim == 0) { /* as if it had one dimension */
    seen.ndim = 1;
    seen.shape[0] = 1;
  }
  for (int d = 0; d < seen.ndim; d++) named[d] = all;
  if (!all && !table) named[tl_check_dim(L, index, name, &seen)] = true;
  for (lua_Integer i = 1; table && i <= (lua_Integer)lua_rawlen(L, index); i++) {
    int64_t given;
    lua_rawgeti(L, index, i);
    if (!to_integer(L, -1, &given)) {
      tl_fail(L, "%s: a dimension must be an integer, not %s", name, tl_describe(L, -1));
    }
    int dim = resolve_dim(L, given, name, &seen);
    if (named[dim]) tl_fail(L, "%s: dimension %d is named twice", name, dim + 1);
    named[dim] = true;
    lua_pop(L, 1);
  }
}

int64_t tl_check_index(lua_State *L, int index, const char *name, const tl_view *view, int dim) {
  int64_t given, position;
  if (!to_integer(L, index, &given)) {
    tl_fail(L, "%s: an index must be an integer or a range, not %s", name,
            tl_describe(L, index));
  }
  position = resolve(given, view->shape[dim]);
  char text[TL_SHAPE_TEXT];
  if (position < 0) {
    tl_fail(L, "%s: index %I is out of range for dimension %d of a tensor of size %s", name,
            (LUAI_UACINT)given, dim + 1, tl_view_shape_text(view, text));
  }
  return position;
}
