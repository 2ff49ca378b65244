/* Every allocation in the frontend's path is failed in turn: each time there is an error (or none,
 * where a retry succeeds), nothing leaks, and a later run works.  The linker sends the program's
 * own allocations here (--wrap); Lua's go through an allocator that wraps the program's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "frontend/allocator.h"
#include "frontend/library.h"

static atomic_long blocks;    /* allocated and not freed */
static atomic_long requests;  /* allocations asked for in this run */
static atomic_long first, last; /* those of them that fail; 0: none */

static bool fails(void) {
  long request = atomic_fetch_add(&requests, 1) + 1;
  return request >= atomic_load(&first) && request <= atomic_load(&last);
}

static void *counted(void *block) {
  if (block) atomic_fetch_add(&blocks, 1);
  return block;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *block);

void *__wrap_malloc(size_t size) { return fails() ? NULL : counted(__real_malloc(size)); }

void *__wrap_calloc(size_t count, size_t size) {
  return fails() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size) {
  return block ? __real_realloc(block, size) : __wrap_malloc(size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  return fails() ? NULL : counted(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *block) {
  if (block) atomic_fetch_sub(&blocks, 1);
  __real_free(block);
}

/* A bit of everything that allocates; inputs larger than what lies in a storage itself. */
static const char script[] =
    "local tensor = require 'tensor'\n"
    "local x = tensor.ones(20, 20)\n"
    "local y = x * 2 + 1\n"
    "local z = (x:mm(y) - y:t():exp()):sum(1)\n"
    "x:add_(y[1]); x[{ {1, 3}, {} }] = 7; x:copy_(x:t())\n"
    "assert(#z:totable() == 20 and #tostring(x) > 0)\n"
    "local t = tensor{{1, 2}, {3, 4}}\n"
    "assert(t == tensor{{1, 2}, {3, 4}} and t:mean():item() == 2.5)\n"
    "for _, row in pairs(t) do row:mul_(2) end\n"
    "local r = tensor.randn(30, 30, {dtype = 'float64'}):to('float32'):reshape(-1)\n"
    "assert(r:max() > -100)\n"
    "assert(tensor.ones(5, 4096):argsort()[5][1]:item() == 1)\n"
    "for i = 1, 200 do local temporary = x + i end\n"
    "tensor.set_num_threads(2)\n"
    "tensor.sync()\n";

/* The functions in Lua, all of which are loaded when the first is asked for: thousands of
 * allocations, of which every STRIDE-th is failed. */
static const char loading_script[] =
    "local tensor = require 'tensor'\n"
    "assert(tensor.ones(2, 3):flatten():softmax(1):numel() == 6)\n"
    "tensor.sync()\n";
enum { STRIDE = 211 };

static int open_and_run(lua_State *L) {
  tl_allocator_offer(L, lua_touserdata(L, 1));
  luaL_requiref(L, "_G", luaopen_base, 1);
  luaL_requiref(L, "package", luaopen_package, 1);
  luaL_requiref(L, "string", luaopen_string, 1);
  luaL_requiref(L, "table", luaopen_table, 1);
  luaL_requiref(L, "math", luaopen_math, 1);
  luaL_requiref(L, "tensor", luaopen_tensor, 1);
  const char *text = lua_touserdata(L, 2);
  if (luaL_loadstring(L, text) != LUA_OK) lua_error(L);
  lua_call(L, 0, 0);
  tl_library_finish(L);
  return 0;
}

/* Blocks that exist and grow; Lua relies on it that shrinking does not fail. */
static void *failing_function(void *allocator, void *block, size_t old_size, size_t new_size) {
  if (block && new_size > old_size && fails()) return NULL;
  return tl_allocator_function(allocator, block, old_size, new_size);
}

/* Runs the script in a state of its own with some allocations failing; whether it succeeded. */
static bool run_once(const char *text, long from, long to) {
  tl_allocator *allocator = tl_allocator_new();
  lua_State *L = allocator ? lua_newstate(failing_function, allocator) : NULL;
  assert_non_null(L);
  atomic_store(&requests, 0);
  atomic_store(&first, from);
  atomic_store(&last, to);
  lua_pushcfunction(L, open_and_run);
  lua_pushlightuserdata(L, allocator);
  lua_pushlightuserdata(L, (void *)(uintptr_t)text);
  bool ok = lua_pcall(L, 2, 0, 0) == LUA_OK;
  atomic_store(&last, 0);
  if (!ok) {
    const char *message = lua_tostring(L, -1);
    if (!message || !strstr(message, "memory")) {
      fail_msg("allocation %ld: unexpected error: %s", from, message ? message : "(no string)");
    }
  }
  lua_close(L);
  tl_library_stop();
  tl_allocator_delete(allocator);
  if (atomic_load(&blocks) != 0) {
    fail_msg("allocation %ld: %ld blocks leak", from, atomic_load(&blocks));
  }
  return ok;
}

/* `length` allocations fail, from every step-th one in turn on. */
static void fail_in_turn(const char *text, long length, long step) {
  assert_true(run_once(text, 0, 0));
  long total = atomic_load(&requests), errors = 0;
  assert_true(total > 100);
  for (long nth = 1; nth <= total; nth += step) errors += !run_once(text, nth, nth + length - 1);
  assert_true(errors > 0);
  assert_true(run_once(text, 0, 0));
  print_message("%ld allocations, every %ld. failed in turn, %ld errors\n", total, step, errors);
}

/* Lua collects garbage and tries once more. */
static void one_failure(void **state) {
  (void)state;
  fail_in_turn(script, 1, 1);
}

static void no_more_memory(void **state) {
  (void)state;
  fail_in_turn(script, 1000000, 1);
}

static void no_more_memory_while_loading(void **state) {
  (void)state;
  fail_in_turn(loading_script, 1000000, STRIDE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_failure),
      cmocka_unit_test(no_more_memory),
      cmocka_unit_test(no_more_memory_while_loading),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
