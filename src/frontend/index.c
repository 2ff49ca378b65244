/* Indexing: x[i], x[{...}], x[indices], x[mask], x.shape and the methods. */
#include <string.h>

#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"
#include "frontend/key.h"

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

/* x[key], the key at stack index 2: a view, or with tensors in the key a tensor of its own. */
static int read_key(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "index");
  tl_key key;
  tl_pick pick;
  tl_key_read(L, 2, "index", &x->view, &key);
  if (key.count == 0) {
    tl_tensor_alias(L, x, &key.view);
  } else if (tl_key_is_mask(&key)) {
    x = tl_tensor_alias(L, x, &key.view);
    tl_mask_select(L, TL_OP_index, x, key.tensors[0].tensor, key.tensors[0].dim);
  } else {
    tl_key_pick(L, TL_OP_index, x, &key, false, &pick);
    tl_pick_gather(L, TL_OP_index, &pick);
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
  return read_key(L);
}

/* index(x, key): x[key] */
static int index_function(lua_State *L) {
  tl_tensor_check(L, 1, "index");
  tl_check_count(L, 2, "index");
  return read_key(L);
}

static void check_broadcasts(lua_State *L, const char *name, const tl_view *value,
                             const tl_view *part) {
  char text[TL_SHAPE_TEXT], wanted[TL_SHAPE_TEXT];
  if (tl_view_broadcasts_to(value, part->ndim, part->shape)) return;
  tl_fail(L, "%s: cannot broadcast %s to the size of the part written, %s", name,
          tl_view_shape_text(value, text), tl_view_shape_text(part, wanted));
}

/* What was picked by indices becomes the value, or takes it up. */
static void write_picked(lua_State *L, tl_op op, const tl_tensor *part, tl_key *key,
                         const tl_tensor *value, bool add) {
  tl_pick pick;
  tl_view view;
  tl_key_pick(L, op, part, key, true, &pick);
  check_broadcasts(L, tl_ops[op].name, &value->view, &pick.at);
  value = tl_apart(L, part, tl_as_dtype(L, value, (tl_dtype)part->view.dtype));
  tl_view_expand(&view, &value->view, pick.at.ndim, pick.at.shape);
  tl_pick_scatter(L, op, &pick, value, &view, add);
}

/* The key at stack index 2, the value at 3. */
static void write_key(lua_State *L, tl_op op, const tl_tensor *x, bool add) {
  const char *name = tl_ops[op].name;
  tl_key key;
  tl_key_read(L, 2, name, &x->view, &key);
  tl_tensor *part = tl_tensor_alias(L, x, &key.view);
  tl_dtype dtype = (tl_dtype)x->view.dtype;
  bool number = lua_type(L, 3) == LUA_TNUMBER || lua_type(L, 3) == LUA_TBOOLEAN;
  if (!number && !tl_tensor_test(L, 3)) {
    tl_fail(L, "%s: the value must be a number or a tensor, not %s", name, tl_describe(L, 3));
  }
  if (number && key.count == 0 && !add) {
    tl_enqueue_fill(L, TL_OP_fill_, part, false, tl_check_scalar(L, 3, name, dtype));
    return;
  }
  const tl_tensor *value = tl_check_value(L, 3, name, dtype);
  if (tl_key_is_mask(&key) && !add) {
    tl_mask_write(L, op, part, key.tensors[0].tensor, key.tensors[0].dim, value, true);
  } else if (key.count > 0 || add) {
    write_picked(L, op, part, &key, value, add);
  } else {
    check_broadcasts(L, name, &value->view, &key.view);
    tl_dtype moved = tl_copy_dtype((tl_dtype)value->view.dtype, dtype);
    tl_enqueue_step(L, TL_OP_copy_, part, false, moved, NULL, 1, &value);
  }
}

/* x[key] = value, a number or a tensor that broadcasts */
static int index_write(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "index");
  if (lua_type(L, 2) == LUA_TSTRING) {
    return tl_fail(L, "index: a tensor has no field '%s' to set", lua_tostring(L, 2));
  }
  write_key(L, TL_OP_index, x, false);
  return 0;
}

/* name(x, key, value [, accumulate]) */
static int put_any(lua_State *L, tl_op op, bool in_place) {
  const char *name = tl_ops[op].name;
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  int result = 1;
  tl_check_count(L, 4, name);
  if (!lua_isnoneornil(L, 4) && !lua_isboolean(L, 4)) {
    tl_fail(L, "%s: accumulate must be true or false, not %s", name, luaL_typename(L, 4));
  }
  lua_settop(L, 4);
  if (!in_place) {
    tl_key key;
    tl_key_read(L, 2, name, &x->view, &key); /* what is wrong with it is said before the copy */
    x = tl_enqueue_copy(L, TL_OP_clone, x, (tl_dtype)x->view.dtype);
    result = lua_gettop(L);
  }
  write_key(L, op, x, lua_toboolean(L, 4));
  lua_pushvalue(L, result);
  return 1;
}

static int index_put(lua_State *L) { return put_any(L, TL_OP_index_put, false); }
static int index_put_(lua_State *L) { return put_any(L, TL_OP_index_put_, true); }

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

const luaL_Reg tl_index_functions[] = {
    {"index", index_function}, {"index_put", index_put}, {"index_put_", index_put_}, {NULL, NULL},
};
