/* tensor.compile(f): f, traced once for each signature of its arguments and replayed afterwards. */
#include <stdlib.h>
#include <string.h>

#include "frontend/arguments.h"
#include "frontend/functions.h"
#include "frontend/tensor.h"
#include "frontend/trace.h"

/* Numbers are part of a signature, so a function called with a counter would have a trace for each;
 * the one used longest ago makes room. */
enum { MAX_TRACES = 128 };

/* Upvalues of the compiled function, behind those of all functions. */
enum { UPVALUE_FUNCTION = TL_UPVALUES + 1, UPVALUE_COMPILED, UPVALUES = UPVALUE_COMPILED };

typedef struct tl_entry {
  struct tl_entry *next;
  tl_trace *trace;
  size_t size;
  char key[]; /* the signature */
} tl_entry;

/* A userdata; while f is traced, its user value is the Lua thread that does. */
typedef struct tl_compiled {
  tl_context *context;
  tl_entry *entries; /* the one used last comes first */
  int count;
  tl_entry *pending; /* being traced */
  char *key; /* of the call at hand */
  size_t size, capacity;
} tl_compiled;

/* ---- signatures ---- */

static void append(lua_State *L, tl_compiled *compiled, const void *bytes, size_t size) {
  if (compiled->size + size > compiled->capacity) {
    size_t capacity = 2 * (compiled->size + size) + 128;
    char *key = realloc(compiled->key, capacity);
    if (!key) tl_fail(L, "compile: not enough memory");
    compiled->key = key;
    compiled->capacity = capacity;
  }
  memcpy(compiled->key + compiled->size, bytes, size);
  compiled->size += size;
}

/* dtype, shape and strides; and where it lies against the first argument with its storage. */
static void append_tensor(lua_State *L, tl_compiled *compiled, int index, const tl_tensor *tensor) {
  const tl_view *view = &tensor->view;
  const tl_tensor *first = tensor;
  int argument = 1;
  for (; argument < index; argument++) {
    const tl_tensor *other = tl_tensor_test(L, argument);
    if (!other || other->storage != tensor->storage) continue;
    first = other;
    break;
  }
  char head[3] = {'t', (char)view->dtype, (char)view->ndim};
  int64_t place[2] = {argument, view->offset - first->view.offset};
  append(L, compiled, head, sizeof head);
  append(L, compiled, place, sizeof place);
  append(L, compiled, view->shape, view->ndim * sizeof view->shape[0]);
  append(L, compiled, view->stride, view->ndim * sizeof view->stride[0]);
}

static void append_value(lua_State *L, tl_compiled *compiled, int index) {
  const tl_tensor *tensor = tl_tensor_test(L, index);
  if (tensor && !tensor->storage) {
    tl_fail(L, "compile: argument %d is a tensor that has been closed", index);
  } else if (tensor) {
    append_tensor(L, compiled, index, tensor);
  } else if (lua_isinteger(L, index)) {
    lua_Integer value = lua_tointeger(L, index);
    append(L, compiled, "i", 1);
    append(L, compiled, &value, sizeof value);
  } else if (lua_type(L, index) == LUA_TNUMBER) {
    lua_Number value = lua_tonumber(L, index);
    append(L, compiled, "n", 1);
    append(L, compiled, &value, sizeof value);
  } else if (lua_type(L, index) == LUA_TSTRING) {
    size_t length;
    const char *text = lua_tolstring(L, index, &length);
    append(L, compiled, "s", 1);
    append(L, compiled, &length, sizeof length);
    append(L, compiled, text, length);
  } else if (lua_isboolean(L, index)) {
    append(L, compiled, lua_toboolean(L, index) ? "1" : "0", 1);
  } else if (lua_isnil(L, index)) {
    append(L, compiled, "-", 1);
  } else {
    tl_fail(L, "compile: argument %d is a %s: a compiled function takes tensors, numbers, strings, "
            "booleans and nil", index, luaL_typename(L, index));
  }
}

/* ---- traces by signature ---- */

static tl_trace *find(tl_compiled *compiled) {
  for (tl_entry **link = &compiled->entries; *link; link = &(*link)->next) {
    tl_entry *entry = *link;
    if (entry->size != compiled->size || memcmp(entry->key, compiled->key, entry->size) != 0) {
      continue;
    }
    *link = entry->next;
    entry->next = compiled->entries;
    compiled->entries = entry;
    return entry->trace;
  }
  return NULL;
}

static void remove_entry(tl_compiled *compiled, tl_entry **link) {
  tl_entry *entry = *link;
  *link = entry->next;
  compiled->count--;
  tl_trace_free(compiled->context, entry->trace);
  free(entry);
}

static void add_entry(tl_compiled *compiled, tl_entry *entry) {
  entry->next = compiled->entries;
  compiled->entries = entry;
  if (++compiled->count <= MAX_TRACES) return;
  tl_entry **oldest = NULL;
  for (tl_entry **link = &entry->next; *link; link = &(*link)->next) {
    if (!tl_trace_in_use((*link)->trace)) oldest = link;
  }
  if (oldest) remove_entry(compiled, oldest);
}

/* ---- calling ---- */

static void drop_pending(tl_compiled *compiled) {
  tl_entry *entry = compiled->pending;
  if (!entry) return;
  if (entry->trace && entry->trace == compiled->context->trace) {
    tl_trace_abandon(compiled->context);
  } else if (entry->trace) {
    tl_trace_free(compiled->context, entry->trace);
  }
  compiled->pending = NULL;
  free(entry);
}

/* __close: the call that traced is over; a call of another thread may be under way by now. */
static int close_call(lua_State *L) {
  tl_compiled *compiled = lua_touserdata(L, 1);
  if (lua_getiuservalue(L, 1, 1) != LUA_TTHREAD || lua_tothread(L, -1) != L) return 0;
  drop_pending(compiled);
  lua_pushnil(L);
  lua_setiuservalue(L, 1, 1);
  return 0;
}

static int collect(lua_State *L) {
  tl_compiled *compiled = lua_touserdata(L, 1);
  drop_pending(compiled);
  while (compiled->entries) remove_entry(compiled, &compiled->entries);
  free(compiled->key);
  compiled->key = NULL;
  compiled->capacity = 0;
  return 0;
}

static int call_function(lua_State *L, int nargs, int first) {
  lua_pushvalue(L, lua_upvalueindex(UPVALUE_FUNCTION));
  for (int i = 0; i < nargs; i++) lua_pushvalue(L, first + i);
  int below = lua_gettop(L) - nargs - 1;
  lua_call(L, nargs, LUA_MULTRET);
  return lua_gettop(L) - below;
}

/* Runs f on stand-ins for the arguments.  An error passes through, with its traceback: closing the
 * compiled object drops what has been recorded. */
static int trace_call(lua_State *L, tl_context *context, tl_compiled *compiled, int nargs) {
  drop_pending(compiled);
  tl_entry *entry = malloc(sizeof *entry + compiled->size);
  if (!entry) tl_fail(L, "compile: not enough memory");
  entry->trace = NULL;
  entry->size = compiled->size; /* f may call its compiled self, and so change the key */
  memcpy(entry->key, compiled->key, compiled->size);
  compiled->pending = entry;
  lua_pushvalue(L, lua_upvalueindex(UPVALUE_COMPILED));
  int slot = lua_gettop(L), given = slot + 1;
  lua_pushthread(L);
  lua_setiuservalue(L, slot, 1);
  lua_toclose(L, slot);
  tl_trace_begin(L, context, nargs, &entry->trace);
  int nresults = call_function(L, nargs, given);
  tl_trace_end(L, context, nargs, given, lua_gettop(L) - nresults + 1);
  compiled->pending = NULL;
  add_entry(compiled, entry);
  return nresults;
}

static int call_compiled(lua_State *L) {
  tl_context *context = tl_context_of(L);
  tl_compiled *compiled = lua_touserdata(L, lua_upvalueindex(UPVALUE_COMPILED));
  int nargs = lua_gettop(L);
  luaL_checkstack(L, 2 * nargs + LUA_MINSTACK, "compile: too many arguments");
  compiled->size = 0;
  append(L, compiled, &nargs, sizeof nargs); /* so a key is never empty */
  for (int i = 1; i <= nargs; i++) append_value(L, compiled, i);
  if (context->trace && tl_trace_is_active(context)) return call_function(L, nargs, 1);
  tl_trace *trace = find(compiled);
  return trace ? tl_trace_replay(L, context, trace) : trace_call(L, context, compiled, nargs);
}

static int compile(lua_State *L) {
  tl_check_count(L, 1, "compile");
  if (lua_type(L, 1) != LUA_TFUNCTION && luaL_getmetafield(L, 1, "__call") == LUA_TNIL) {
    tl_fail(L, "compile: wants a function, not %s", tl_describe(L, 1));
  }
  lua_settop(L, 1);
  for (int i = 1; i <= TL_UPVALUES; i++) lua_pushvalue(L, lua_upvalueindex(i));
  lua_pushvalue(L, 1);
  tl_compiled *compiled = lua_newuserdatauv(L, sizeof *compiled, 1);
  *compiled = (tl_compiled){.context = tl_context_of(L)};
  if (luaL_newmetatable(L, "tensor.compiled")) {
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, close_call);
    lua_setfield(L, -2, "__close");
  }
  lua_setmetatable(L, -2);
  lua_pushcclosure(L, call_compiled, UPVALUES);
  return 1;
}

const luaL_Reg tl_compile_functions[] = {{"compile", compile}, {NULL, NULL}};
