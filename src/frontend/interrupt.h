/* Ctrl-C, from the signal to a Lua error.
 *
 * While armed, the first SIGINT sets a flag and a debug hook, and gives SIGINT back to its default
 * action, so that a second one ends a process that does not react.  Whichever sees the interrupt
 * first consumes it and raises `interrupted!`: the hook in running Lua code, or a C function that
 * polls the flag while it is blocked.  Never armed (in a stock interpreter), nothing is pending.
 *
 * A hook belongs to one Lua thread, here the armed one: a coroutine that neither blocks in a
 * polling function nor returns is ended by the second Ctrl-C only, as in Lua's own interpreter. */
#ifndef TL_FRONTEND_INTERRUPT_H
#define TL_FRONTEND_INTERRUPT_H

#include <stdbool.h>

#include <lua.h>

/* Makes SIGINT interrupt L, the state's main thread.  Arming does not nest. */
void tl_interrupt_arm(lua_State *L);

/* Restores what SIGINT did before.  True if an interrupt was still pending; it is consumed. */
bool tl_interrupt_disarm(void);

/* True from a SIGINT until it is consumed.  For any thread: a wait of the engine polls it. */
bool tl_interrupt_pending(void);

/* True if a SIGINT came since the last arming, consumed or not. */
bool tl_interrupt_seen(void);

/* Consumes the interrupt and raises `interrupted!` in L, any thread of the armed state. */
int tl_interrupt_raise(lua_State *L);

#endif
