#include "frontend/host.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "frontend/allocator.h"
#include "frontend/host_call.h"
#include "frontend/host_repl.h"
#include "frontend/interrupt.h"
#include "frontend/library.h"
#include "version.h"

struct tl_host {
  lua_State *L; /* between calls its stack holds the last failure's message, or nil */
  tl_allocator *allocator; /* of L */
  const char *program;
  bool environment;
  bool warnings;     /* warn() is on */
  bool warning_open; /* the pieces of one warning have begun */
  bool interrupted;  /* the last failure came with a Ctrl-C */
  bool ready;        /* the library is open */
};

enum { FAILURE = 1 };

const char *tl_host_version(void) {
  return "tensorlua " TL_VERSION "  " LUA_COPYRIGHT;
}

/* warn(): a message comes in pieces; a lone piece that begins with an `@` is a control message. */
static void warn(void *data, const char *piece, int continues) {
  tl_host *host = data;
  if (!host->warning_open && !continues && piece[0] == '@') {
    if (strcmp(piece, "@on") == 0) host->warnings = true;
    if (strcmp(piece, "@off") == 0) host->warnings = false;
    return;
  }
  if (host->warnings) {
    fprintf(stderr, "%s%s%s", host->warning_open ? "" : "Lua warning: ", piece,
            continues ? "" : "\n");
  }
  host->warning_open = continues;
}

/* Calls the function under protection with `request` as its argument. */
static bool run(tl_host *host, lua_CFunction function, void *request) {
  lua_State *L = host->L;
  lua_pushcfunction(L, function);
  lua_pushlightuserdata(L, request);
  if (lua_pcall(L, 1, 0, 0) == LUA_OK) return true;
  tl_host_report(L, host->program);
  lua_replace(L, FAILURE);
  host->interrupted = tl_interrupt_seen();
  return false;
}

static int open_libraries(lua_State *L) {
  const tl_host *host = lua_touserdata(L, 1);
  luaL_checkversion(L);
  lua_gc(L, LUA_GCSTOP);
  if (!host->environment) {
    lua_pushboolean(L, true);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV"); /* read by the package library */
  }
  luaL_openlibs(L);
  tl_allocator_offer(L, host->allocator);
  luaL_requiref(L, "tensor", luaopen_tensor, true);
  lua_getfield(L, -1, "sync");
  lua_setglobal(L, "sync");
  lua_getfield(L, -1, "benchmark");
  lua_setglobal(L, "benchmark");
  lua_gc(L, LUA_GCRESTART);
  lua_gc(L, LUA_GCGEN, 0, 0);
  return 0;
}

tl_host *tl_host_open(const char *program, bool environment) {
  tl_host *host = calloc(1, sizeof *host);
  tl_allocator *allocator = host ? tl_allocator_new() : NULL;
  lua_State *L = allocator ? lua_newstate(tl_allocator_function, allocator) : NULL;
  if (L == NULL) {
    fprintf(stderr, "%s: not enough memory for a Lua state\n", program);
    if (allocator) tl_allocator_delete(allocator);
    free(host);
    return NULL;
  }
  *host = (tl_host){
      .L = L, .allocator = allocator, .program = program, .environment = environment};
  lua_setwarnf(L, warn, host);
  lua_settop(L, FAILURE);
  host->ready = run(host, open_libraries, host);
  if (host->ready) return host;
  tl_host_close(host);
  return NULL;
}

typedef struct command_line {
  char **argv;
  int argc, script;
} command_line;

static int set_arguments(lua_State *L) {
  const command_line *line = lua_touserdata(L, 1);
  int zero = line->script < line->argc ? line->script : 0;
  lua_createtable(L, line->argc - zero, zero + 1);
  for (int i = 0; i < line->argc; i++) {
    lua_pushstring(L, line->argv[i]);
    lua_rawseti(L, -2, i - zero);
  }
  lua_setglobal(L, "arg");
  return 0;
}

bool tl_host_set_arguments(tl_host *host, int argc, char **argv, int script) {
  return run(host, set_arguments, &(command_line){argv, argc, script});
}

typedef struct chunk {
  const char *source; /* a path, or text */
  const char *name;
  bool arguments;
} chunk;

static int run_string(lua_State *L) {
  const chunk *code = lua_touserdata(L, 1);
  tl_host_check(L, luaL_loadbuffer(L, code->source, strlen(code->source), code->name));
  tl_host_check(L, tl_host_call(L, 0, 0));
  return 0;
}

bool tl_host_run_string(tl_host *host, const char *code, const char *name) {
  return run(host, run_string, &(chunk){code, name, false});
}

/* From the table and not from argv: what ran before may have changed it. */
static int push_arguments(lua_State *L) {
  if (lua_getglobal(L, "arg") != LUA_TTABLE) luaL_error(L, "'arg' is not a table");
  int table = lua_gettop(L);
  lua_Integer length = luaL_len(L, table);
  int count = length < INT_MAX / 2 ? (int)length : INT_MAX / 2;
  luaL_checkstack(L, count + LUA_MINSTACK, "too many arguments to script");
  for (int i = 1; i <= count; i++) lua_rawgeti(L, table, i);
  lua_remove(L, table);
  return count;
}

static int run_file(lua_State *L) {
  const chunk *file = lua_touserdata(L, 1);
  tl_host_check(L, luaL_loadfile(L, file->source));
  tl_host_check(L, tl_host_call(L, file->arguments ? push_arguments(L) : 0, 0));
  return 0;
}

bool tl_host_run_file(tl_host *host, const char *path, bool arguments) {
  return run(host, run_file, &(chunk){path, NULL, arguments});
}

bool tl_host_run_init(tl_host *host) {
  static const char *const names[] = {"=LUA_INIT" LUA_VERSUFFIX, "=LUA_INIT"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *value = getenv(names[i] + 1);
    if (value == NULL) continue;
    if (value[0] == '@') return tl_host_run_file(host, value + 1, false);
    return tl_host_run_string(host, value, names[i]);
  }
  return true;
}

static int require(lua_State *L) {
  const char *global = *(const char *const *)lua_touserdata(L, 1);
  const char *equals = strchr(global, '=');
  const char *module = equals ? equals + 1 : global;
  lua_pushlstring(L, global, equals ? (size_t)(equals - global) : strlen(global));
  lua_pushglobaltable(L);
  lua_insert(L, -2);
  lua_getglobal(L, "require");
  lua_pushstring(L, module);
  tl_host_check(L, tl_host_call(L, 1, 1));
  lua_settable(L, -3);
  return 0;
}

bool tl_host_require(tl_host *host, const char *module) {
  return run(host, require, &module);
}

void tl_host_warn(tl_host *host) {
  lua_warning(host->L, "@on", false);
}

void tl_host_read_loop(tl_host *host) {
  tl_host_repl(host->L);
}

static int finish(lua_State *L) {
  tl_library_finish(L);
  return 0;
}

/* True if the failure that was reported last says all of the message on top of the stack. */
static bool already_reported(lua_State *L) {
  const char *last = lua_type(L, FAILURE) == LUA_TSTRING ? lua_tostring(L, FAILURE) : NULL;
  const char *message = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  return last && message && strstr(last, message);
}

static bool drain(tl_host *host) {
  lua_State *L = host->L;
  tl_interrupt_arm(L);
  lua_pushcfunction(L, finish);
  int status = lua_pcall(L, 0, 0, 0);
  tl_interrupt_disarm();
  if (status == LUA_OK) return true;
  host->interrupted = tl_interrupt_seen();
  if (!already_reported(L)) tl_host_report(L, host->program);
  lua_replace(L, FAILURE);
  return false;
}

bool tl_host_close(tl_host *host) {
  bool ok = !host->ready || host->interrupted || drain(host);
  /* Before the finalizers, so that none of them waits for what the user asked to stop. */
  if (host->interrupted) tl_library_stop();
  lua_close(host->L);
  tl_library_stop();
  tl_allocator_delete(host->allocator);
  free(host);
  return ok;
}
