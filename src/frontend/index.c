/* Indexing: x[i], x[{...}], x.shape and the methods. */
#include <string.h>

#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"

/* A range, {}, {first, last} or {first, last, step}, on top of the stack, into dimension `entry` of
 * `whole`, which is dimension `dim` of what is left of it. */
static void take_range(lua_State *L, const char *name, const tl_view *whole, int entry,
                       tl_view *view, int dim) {
  int table = lua_gettop(L);
  int64_t given[3] = {1, -1, 1};
  int64_t size = whole->shape[entry];
  size_t entries = lua_rawlen(L, table);
  if (entries == 1 || entries > 3) {
    tl_fail(L, "%s: a range is {first, last} or {first, last, step}, or {} for all", name);
  }
  for (size_t i = 0; i < entries; i++) {
    lua_rawgeti(L, table, (lua_Integer)i + 1);
    int is_integer = 0;
    if (lua_type(L, -1) == LUA_TNUMBER) given[i] = lua_tointegerx(L, -1, &is_integer);
    if (!is_integer) {
      tl_fail(L, "%s: a range wants integers, not %s", name, tl_describe_value(L, -1));
    }
    lua_pop(L, 1);
  }
  int64_t first = given[0] < 0 ? size + given[0] : given[0] - 1;
  int64_t last = given[1] < 0 ? size + given[1] : given[1] - 1;
  char text[TL_SHAPE_TEXT];
  if (given[2] < 1) tl_fail(L, "%s: a range's step must be at least 1", name);
  /* One before the first and one behind the last are allowed, for an empty range. */
  if (entries > 0 && (given[0] == 0 || first < 0 || first > size || last < -1 || last >= size)) {
    tl_fail(L, "%s: range {%I, %I} is out of range for dimension %d of a tensor of size %s",
            name, (LUAI_UACINT)given[0], (LUAI_UACINT)given[1], entry + 1,
            tl_view_shape_text(whole, text));
  }
  int64_t count = last >= first ? (last - first) / given[2] + 1 : 0;
  tl_view_range(view, dim, first, count, given[2]);
}

/* The part of a view that the key at stack index 2 names. */
static void apply_key(lua_State *L, const char *name, tl_view *view) {
  char text[TL_SHAPE_TEXT];
  const tl_view whole = *view;
  bool table = lua_type(L, 2) == LUA_TTABLE;
  if (!table && lua_type(L, 2) != LUA_TNUMBER) {
    tl_fail(L, "%s: an index must be an integer or a table, not %s", name,
            luaL_typename(L, 2));
  }
  int64_t entries = table ? (int64_t)lua_rawlen(L, 2) : 1;
  if (entries > view->ndim) {
    tl_fail(L, "%s: %I indices are too many for a tensor of size %s", name,
            (LUAI_UACINT)entries, tl_view_shape_text(&whole, text));
  }
  for (int entry = 0, dim = 0; entry < entries; entry++) {
    if (table) {
      lua_rawgeti(L, 2, entry + 1);
    } else {
      lua_pushvalue(L, 2);
    }
    if (lua_type(L, -1) == LUA_TTABLE) {
      take_range(L, name, &whole, entry, view, dim++);
    } else {
      tl_view_select(view, dim, tl_check_index(L, lua_gettop(L), name, &whole, entry));
    }
    lua_pop(L, 1);
  }
}

static int read_field(lua_State *L, const tl_tensor *x, const char *field) {
  const tl_view *view = &x->view;
  if (strcmp(field, "shape") == 0) {
    tl_push_sizes(L, view->ndim, view->shape);
  } else if (strcmp(field, "ndim") == 0) {
    lua_pushinteger(L, view->ndim);
  } else if (strcmp(field, "dtype") == 0) {
    lua_pushstring(L, tl_dtype_name((tl_dtype)view->dtype));
  } else if (strcmp(field, "device") == 0) {
    lua_pushliteral(L, "cpu");
  } else {
    return 0;
  }
  return 1;
}

int tl_index_read(lua_State *L) {
  if (lua_type(L, 2) == LUA_TSTRING) {
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(TL_UPVALUES + 1)) != LUA_TNIL) return 1;
    if (read_field(L, tl_tensor_check(L, 1, "index"), lua_tostring(L, 2)) > 0) return 1;
    lua_pushvalue(L, 2);
    lua_gettable(L, lua_upvalueindex(TL_UPVALUES + 1)); /* perhaps one of those in Lua */
    return 1;
  }
  const tl_tensor *x = tl_tensor_check(L, 1, "index");
  tl_view view = x->view;
  apply_key(L, "index", &view);
  tl_tensor_alias(L, x, &view);
  return 1;
}

/* x[key] = value, a number or a tensor that broadcasts */
static int index_write(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "index");
  if (lua_type(L, 2) == LUA_TSTRING) {
    return tl_fail(L, "index: a tensor has no field '%s' to set", lua_tostring(L, 2));
  }
  tl_view view = x->view;
  apply_key(L, "index", &view);
  tl_tensor *part = tl_tensor_alias(L, x, &view);
  if (lua_type(L, 3) == LUA_TNUMBER || lua_type(L, 3) == LUA_TBOOLEAN) {
    tl_scalar number = tl_check_scalar(L, 3, "index", (tl_dtype)view.dtype);
    tl_enqueue_fill(L, TL_OP_fill_, part, false, number);
    return 0;
  }
  if (!tl_tensor_test(L, 3)) {
    return tl_fail(L, "index: the value must be a number or a tensor, not %s",
                   luaL_typename(L, 3));
  }
  const tl_tensor *value = tl_tensor_check(L, 3, "index");
  if (!tl_view_broadcasts_to(&value->view, view.ndim, view.shape)) {
    char text[TL_SHAPE_TEXT], wanted[TL_SHAPE_TEXT];
    return tl_fail(L, "index: cannot broadcast %s to the size of the part written, %s",
                   tl_view_shape_text(&value->view, text), tl_view_shape_text(&view, wanted));
  }
  tl_dtype moved = tl_copy_dtype((tl_dtype)value->view.dtype, (tl_dtype)view.dtype);
  tl_enqueue_step(L, TL_OP_copy_, part, false, moved, NULL, 1, &value);
  return 0;
}

static int length(lua_State *L) {
  const tl_view *view = &tl_tensor_check(L, 1, "#")->view;
  if (view->ndim == 0) return tl_fail(L, "#: a 0-dimensional tensor has no length");
  lua_pushinteger(L, view->shape[0]);
  return 1;
}

/* pairs(x): i, x[i] over the first dimension. */
static int next_row(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "pairs");
  int64_t before = tl_check_integer(L, 2, "pairs");
  if (x->view.ndim == 0 || before < 0 || before >= x->view.shape[0]) return 0;
  tl_view view = x->view;
  tl_view_select(&view, 0, before);
  lua_pushinteger(L, before + 1);
  tl_tensor_alias(L, x, &view);
  return 2;
}

static int pairs(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "pairs");
  if (x->view.ndim == 0) return tl_fail(L, "pairs: a 0-dimensional tensor has no rows");
  for (int i = 1; i <= TL_UPVALUES; i++) lua_pushvalue(L, lua_upvalueindex(i));
  lua_pushcclosure(L, next_row, TL_UPVALUES);
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 0);
  return 3;
}

const luaL_Reg tl_index_metamethods[] = {
    {"__newindex", index_write}, {"__len", length}, {"__pairs", pairs}, {NULL, NULL},
};
