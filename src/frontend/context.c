#include "frontend/context.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/cpu/cpu.h"
#include "frontend/allocator.h"
#include "frontend/interrupt.h"

/* The collector hears of this many bytes at a time. */
static const size_t CHARGE_STEP = 8 << 20;

/* A full collection runs when the live bytes have grown by half and by this much more since the
 * last: young collections, which are cheap, do not find what has lived through two of them. */
static const size_t FULL_MARGIN = 64 << 20;

static tl_context *contexts;
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the environment ---- */

static int environment_threads(lua_State *L) {
  const char *text = getenv("TENSORLUA_THREADS");
  if (!text || !*text) return tl_cpu_cores();
  char *end;
  long threads = strtol(text, &end, 10);
  if (*end || threads < 1 || threads > 1024) {
    tl_fail(L, "TENSORLUA_THREADS: '%s' is not a number from 1 to 1024", text);
  }
  return (int)threads;
}

/* A number of bytes, with K, M, G or T behind it for powers of 1024. */
static size_t environment_memory(lua_State *L) {
  const char *text = getenv("TENSORLUA_MEMORY");
  if (!text || !*text) return tl_cpu_memory() / 5 * 4;
  char *end;
  double bytes = strtod(text, &end);
  const char *units = "KMGT", *unit = *end ? strchr(units, *end) : NULL;
  if (unit) {
    for (const char *u = units; u <= unit; u++) bytes *= 1024;
    end++;
  }
  if (*end || !(bytes >= 1 && bytes < 1e18)) {
    tl_fail(L, "TENSORLUA_MEMORY: '%s' is not a size such as 512M or 4G", text);
  }
  return (size_t)bytes;
}

static bool environment_switch(lua_State *L, const char *name, bool usual) {
  const char *text = getenv(name);
  if (!text || !*text) return usual;
  if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) {
    tl_fail(L, "%s: '%s' is neither 0 nor 1", name, text);
  }
  return *text == '1';
}

static void environment_device(lua_State *L) {
  const char *text = getenv("TENSORLUA_DEVICE");
  if (text && *text && strcmp(text, "cpu") != 0) {
    tl_fail(L, "TENSORLUA_DEVICE: there is no device '%s' here, only 'cpu'", text);
  }
}

static uint64_t fresh_seed(void) {
  uint64_t seed;
  FILE *file = fopen("/dev/urandom", "rb");
  bool read = file && fread(&seed, sizeof seed, 1, file) == 1;
  if (file) fclose(file);
  if (!read) seed = (uint64_t)time(NULL) * 1000003u ^ (uint64_t)getpid();
  return seed >> 11; /* so that it prints as a Lua integer and fits a double */
}

/* ---- life ---- */

static int close_context(lua_State *L) {
  tl_context *context = lua_touserdata(L, 1);
  tl_allocator_forget(L);
  tl_context_stop(context);
  pthread_mutex_lock(&contexts_lock);
  for (tl_context **link = &contexts; *link; link = &(*link)->next) {
    if (*link != context) continue;
    *link = context->next;
    break;
  }
  pthread_mutex_unlock(&contexts_lock);
  while (context->sources) {
    tl_source_name *name = context->sources;
    context->sources = name->next;
    free(name);
  }
  return 0;
}

tl_context *tl_context_push(lua_State *L) {
  tl_context *context = lua_newuserdatauv(L, sizeof *context, 0);
  memset(context, 0, sizeof *context);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, close_context);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  context->threads = environment_threads(L);
  environment_device(L);
  environment_switch(L, "TENSORLUA_SYNC", false);
  context->fusion = environment_switch(L, "TENSORLUA_FUSION", true);
  environment_memory(L);
  context->random.seed = fresh_seed();
  static bool registered;
  pthread_mutex_lock(&contexts_lock);
  if (!registered) registered = atexit(tl_context_stop_all) == 0;
  context->next = contexts;
  contexts = context;
  pthread_mutex_unlock(&contexts_lock);
  return context;
}

void tl_context_stop(tl_context *context) {
  if (context->engine) tl_engine_close(context->engine);
  context->engine = NULL;
  context->stopped = true;
}

void tl_context_stop_all(void) {
  pthread_mutex_lock(&contexts_lock);
  for (tl_context *context = contexts; context; context = context->next) tl_context_stop(context);
  pthread_mutex_unlock(&contexts_lock);
}

tl_engine *tl_context_engine(lua_State *L, tl_context *context) {
  if (context->engine) return context->engine;
  if (context->stopped) tl_fail(L, "tensor: the engine has been stopped");
  tl_error error;
  tl_engine_options options = {
      .threads = context->threads,
      .synchronous = environment_switch(L, "TENSORLUA_SYNC", false),
      .fusion = context->fusion,
      .memory = environment_memory(L),
      .faults = getenv("TENSORLUA_FAULT"),
      .interrupted = tl_interrupt_pending,
  };
  const char *isa = getenv("TENSORLUA_ISA");
  if (tl_cpu_open(&options.backend, isa && *isa ? isa : NULL, &error) != TL_OK ||
      tl_engine_open(&context->engine, &options, &error) != TL_OK) {
    tl_raise(L, &error);
  }
  return context->engine;
}

/* ---- the collector ---- */

void tl_context_charge(lua_State *L, tl_context *context, size_t bytes) {
  context->uncharged += bytes;
  if (context->uncharged < CHARGE_STEP) return;
  if (!lua_gc(L, LUA_GCISRUNNING)) return;
  if (context->live > context->live_at_full / 2 * 3 + FULL_MARGIN) {
    lua_gc(L, LUA_GCCOLLECT);
    context->live_at_full = context->live;
  } else {
    lua_gc(L, LUA_GCSTEP, 0); /* told how many bytes, Lua would collect its whole heap each time */
  }
  context->uncharged = 0;
}

/* ---- errors and where they come from ---- */

/* A copy of a file's name that lives as long as the context. */
static const char *remember(lua_State *L, tl_context *context, const char *text) {
  for (tl_source_name *name = context->sources; name; name = name->next) {
    if (strcmp(name->text, text) == 0) return name->text;
  }
  tl_source_name *name = malloc(sizeof *name);
  if (!name) tl_fail(L, "not enough memory");
  snprintf(name->text, sizeof name->text, "%s", text);
  name->next = context->sources;
  context->sources = name;
  return name->text;
}

/* Whether a function's file is one of the library's own Lua files: what they do is done by whoever
 * called them. */
static bool is_library(const lua_Debug *function) {
  static const char folder[] = "@lua/tensor/";
  return strncmp(function->source, folder, sizeof folder - 1) == 0;
}

void tl_context_source(lua_State *L, tl_context *context, const char **source, int *line) {
  static const char caller_key;
  lua_Debug call;
  for (int level = 1; lua_getstack(L, level, &call); level++) {
    lua_getinfo(L, "lf", &call);
    if (call.currentline < 0) { /* a C function */
      lua_pop(L, 1);
      continue;
    }
    const void *caller = lua_topointer(L, -1);
    if (caller == context->caller) {
      lua_pop(L, 1);
    } else { /* the name costs most, so it is asked for once for a run of calls */
      lua_Debug function;
      lua_pushvalue(L, -1);
      lua_getinfo(L, ">S", &function);
      if (is_library(&function)) {
        lua_pop(L, 1);
        continue;
      }
      context->caller = NULL;
      context->caller_source = remember(L, context, function.short_src);
      lua_rawsetp(L, LUA_REGISTRYINDEX, &caller_key);
      context->caller = caller;
    }
    *line = call.currentline;
    *source = context->caller_source;
    return;
  }
  *source = "?";
  *line = 0;
}

static const char names_key;

void tl_context_push_names(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &names_key) == LUA_TTABLE) return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &names_key);
}

/* Pushes the position that an error is put down to, and the name (or nil) of the library's function
 * in Lua that was called there: what fails within it may be another. */
static void push_caller(lua_State *L) {
  lua_Debug call;
  lua_pushliteral(L, "");
  lua_pushnil(L);
  int name = lua_gettop(L), names = name + 1;
  tl_context_push_names(L);
  for (int level = 1; lua_getstack(L, level, &call); level++) {
    lua_getinfo(L, "Slf", &call);
    if (is_library(&call)) {
      lua_rawget(L, names);
      if (!lua_isnil(L, -1)) lua_copy(L, -1, name);
    } else if (call.currentline >= 0) { /* C functions have no line */
      lua_pushfstring(L, "%s:%d: ", call.short_src, call.currentline);
      lua_copy(L, -1, name - 1);
      break;
    }
    lua_settop(L, names);
  }
  lua_settop(L, name);
}

int tl_fail(lua_State *L, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *text = lua_pushvfstring(L, format, arguments);
  va_end(arguments);
  push_caller(L);
  const char *name = lua_tostring(L, -1);
  size_t length = name ? strlen(name) : 0;
  bool named = !name || (strncmp(text, name, length) == 0 && text[length] == ':');
  lua_pushfstring(L, "%s%s%s%s", lua_tostring(L, -2), named ? "" : name, named ? "" : ": ", text);
  return lua_error(L);
}

int tl_raise(lua_State *L, const tl_error *error) {
  if (error->status == TL_INTERRUPTED) return tl_interrupt_raise(L);
  return tl_fail(L, "%s", error->text);
}
