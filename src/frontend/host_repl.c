#include "frontend/host_repl.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <lauxlib.h>

#include "frontend/host_call.h"
#include "frontend/interrupt.h"
#include "frontend/library.h"

typedef struct reader {
  char *line; /* getline's */
  size_t capacity;
  bool ended;
} reader;

typedef enum reading { READ, ENDED, INTERRUPTED } reading;

/* Within step(), the stack holds these from the bottom up. */
enum { READER = 1, TEXT };

/* Raw access: a script may have forbidden unknown globals. */
static int prompt_text(lua_State *L) {
  lua_pushglobaltable(L);
  lua_insert(L, 1);
  if (lua_rawget(L, 1) == LUA_TNIL) return 1;
  luaL_tolstring(L, -1, NULL);
  return 1;
}

/* An error in making the prompt gives the usual one: raised, it would come again for ever. */
static void show_prompt(lua_State *L, const char *global, const char *usual) {
  lua_pushcfunction(L, prompt_text);
  lua_pushstring(L, global);
  const char *text = lua_pcall(L, 1, 1, 0) == LUA_OK ? lua_tostring(L, -1) : NULL;
  fputs(text ? text : usual, stdout);
  fflush(stdout);
  lua_pop(L, 1);
}

/* Pushes the next line without its newline, unless it returns something else than READ. */
static reading read_line(lua_State *L, reader *in) {
  tl_interrupt_arm(L);
  tl_library_away(L, true);
  ssize_t length = getline(&in->line, &in->capacity, stdin);
  tl_library_away(L, false);
  if (tl_interrupt_disarm()) {
    clearerr(stdin);
    puts("");
    return INTERRUPTED;
  }
  if (length < 0) return ENDED;
  if (length > 0 && in->line[length - 1] == '\n') length--;
  lua_pushlstring(L, in->line, (size_t)length);
  return READ;
}

/* Tells from the message on top of the stack whether the parser stopped at the end of the text. */
static bool stopped_at_end(lua_State *L) {
  static const char mark[] = "<eof>";
  size_t length, tail = sizeof mark - 1;
  const char *message = lua_tolstring(L, -1, &length);
  return message && length >= tail && memcmp(message + length - tail, mark, tail) == 0;
}

/* Pushes "return " followed by the text on top of the stack from its byte `from` on. */
static void push_return(lua_State *L, size_t from) {
  size_t length;
  const char *text = lua_tolstring(L, -1, &length);
  lua_pushliteral(L, "return ");
  lua_pushlstring(L, text + from, length - from);
  lua_concat(L, 2);
}

static int compile(lua_State *L, int index) {
  size_t length;
  const char *text = lua_tolstring(L, index, &length);
  return luaL_loadbuffer(L, text, length, "=stdin");
}

/* Compiles the text on top of the stack and pushes the function, or the message of the statement's
 * syntax error; *more tells that further lines could still make it an expression or statement. */
static int compile_either(lua_State *L, bool *more) {
  int text = lua_gettop(L);
  push_return(L, 0);
  int status = compile(L, -1);
  lua_remove(L, text + 1);
  if (status == LUA_OK) return status;
  *more = status == LUA_ERRSYNTAX && stopped_at_end(L);
  lua_settop(L, text);
  status = compile(L, text);
  *more = *more || (status == LUA_ERRSYNTAX && stopped_at_end(L));
  return status;
}

/* Reads lines until they make a chunk, and pushes its function. */
static reading read_chunk(lua_State *L, reader *in) {
  show_prompt(L, "_PROMPT", "> ");
  reading result = read_line(L, in);
  in->ended = result == ENDED;
  if (result != READ) return result;
  if (lua_tostring(L, TEXT)[0] == '=') { /* `=x` asks for a value, as in Lua 5.1 */
    push_return(L, 1);
    lua_replace(L, TEXT);
  }
  for (;;) {
    bool more = false;
    int status = compile_either(L, &more);
    if (status == LUA_OK) return READ;
    if (!more) lua_error(L);
    show_prompt(L, "_PROMPT2", ">> ");
    result = read_line(L, in);
    if (result == ENDED) lua_error(L); /* the message says what is missing */
    if (result != READ) return result;
    lua_pushliteral(L, "\n");
    lua_replace(L, TEXT + 1);
    lua_concat(L, 3);
  }
}

static void print_values(lua_State *L, int count) {
  luaL_checkstack(L, LUA_MINSTACK, "too many results to print");
  if (lua_getglobal(L, "print") == LUA_TNIL) luaL_error(L, "no global 'print' to show the values");
  lua_insert(L, -count - 1);
  tl_host_check(L, tl_host_call(L, count, 0));
}

/* Reads and runs one chunk. */
static int step(lua_State *L) {
  reader *in = lua_touserdata(L, READER);
  if (read_chunk(L, in) != READ) return 0;
  tl_host_check(L, tl_host_call(L, 0, LUA_MULTRET));
  int count = lua_gettop(L) - TEXT;
  if (count > 0) print_values(L, count);
  return 0;
}

/* tensor.help, which is looked for when it is called: its part of the library is loaded then. */
static int help(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield(L, -1, "tensor");
  lua_getfield(L, -1, "help");
  lua_insert(L, 1);
  lua_pop(L, 2);
  lua_call(L, lua_gettop(L) - 1, 0);
  return 0;
}

/* A global for the loop alone, unless a script before it has one of that name. */
static int offer_help(lua_State *L) {
  lua_pushglobaltable(L);
  lua_pushliteral(L, "help");
  if (lua_rawget(L, -2) != LUA_TNIL) return 0;
  lua_pushliteral(L, "help");
  lua_pushcfunction(L, help);
  lua_rawset(L, -4);
  return 0;
}

void tl_host_repl(lua_State *L) {
  reader in = {0};
  lua_pushcfunction(L, offer_help);
  if (lua_pcall(L, 0, 0, 0) != LUA_OK) lua_pop(L, 1); /* no memory: the loop says so soon */
  while (!in.ended) {
    lua_pushcfunction(L, step);
    lua_pushlightuserdata(L, &in);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
      tl_host_report(L, NULL);
      lua_pop(L, 1);
    }
  }
  puts("");
  free(in.line);
}
