#include "frontend/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_bool pending, seen; /* lock-free, so a signal handler may set them */
static lua_State *volatile armed;
static struct sigaction previous;

static void stop(lua_State *L, lua_Debug *event) {
  (void)event;
  /* A coroutine born between signal and consumption inherits the hook and outlives the reason. */
  lua_sethook(L, NULL, 0, 0);
  if (tl_interrupt_pending()) tl_interrupt_raise(L);
}

/* The hook is looked at because a script may have set one of its own since. */
static void consume(void) {
  atomic_store(&pending, false);
  if (lua_gethook(armed) == stop) lua_sethook(armed, NULL, 0, 0);
}

/* lua_sethook is the one function of Lua that a signal handler may call. */
static void on_signal(int signal) {
  (void)signal;
  atomic_store(&seen, true);
  atomic_store(&pending, true);
  lua_sethook(armed, stop, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

void tl_interrupt_arm(lua_State *L) {
  /* Without SA_RESTART, so that a blocked read returns too. */
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
  sigemptyset(&action.sa_mask);
  armed = L;
  atomic_store(&pending, false);
  atomic_store(&seen, false);
  sigaction(SIGINT, &action, &previous);
}

bool tl_interrupt_disarm(void) {
  sigaction(SIGINT, &previous, NULL);
  bool late = tl_interrupt_pending();
  consume();
  return late;
}

bool tl_interrupt_pending(void) {
  return atomic_load_explicit(&pending, memory_order_relaxed);
}

bool tl_interrupt_seen(void) {
  return atomic_load_explicit(&seen, memory_order_relaxed);
}

int tl_interrupt_raise(lua_State *L) {
  consume();
  lua_pushliteral(L, "interrupted!");
  return lua_error(L);
}
