/* The table of operators (tensor/ops.def) as a table of Lua, for help and the reference. */
#include "frontend/functions.h"
#include "tensor/op.h"

static const char *const families[] = {
    [TL_ELEMENTWISE] = "elementwise", [TL_FILL] = "fill",       [TL_COPY] = "copy",
    [TL_GENERATE] = "generate",       [TL_MATMUL] = "matmul",   [TL_LINALG] = "linalg",
    [TL_REDUCE] = "reduce",           [TL_COMPARE] = "compare", [TL_INDEX] = "index",
    [TL_ALONG] = "along",             [TL_ALLOCATE] = "allocate",
};

static const char *const kinds[] = {
    [TL_NUMERIC] = "numeric", [TL_REAL] = "real", [TL_ROUND] = "round",
    [TL_TEST] = "test",       [TL_BITS] = "bits",
};

static void set(lua_State *L, const char *field, const char *text) {
  lua_pushstring(L, text); /* NULL is nil */
  lua_setfield(L, -2, field);
}

/* operators(): the rows that have a doc, in the table's order, each a table of name, family, doc,
 * example and value; element-wise ones have arity and kind as well, and some a metamethod. */
static int operators(lua_State *L) {
  lua_newtable(L);
  for (int op = TL_OP_none + 1; op < TL_OP_COUNT; op++) {
    const tl_op_row *row = &tl_ops[op];
    if (!row->doc) continue;
    lua_newtable(L);
    set(L, "name", row->name);
    set(L, "family", families[row->family]);
    set(L, "doc", row->doc);
    set(L, "example", row->example);
    set(L, "value", row->value);
    set(L, "metamethod", row->metamethod);
    if (row->arity > 0) {
      set(L, "kind", kinds[row->kind]);
      lua_pushinteger(L, row->arity);
      lua_setfield(L, -2, "arity");
    }
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
  return 1;
}

const luaL_Reg tl_operator_functions[] = {{"operators", operators}, {NULL, NULL}};
