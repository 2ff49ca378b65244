/* Traces: the commands that a function enqueues, recorded once and submitted again.
 *
 * A trace names storages by slots.  A slot is an argument's storage, one captured from outside the
 * function (the trace has a handle on it), one that tensor{...} filled (its bytes are kept), or one
 * that the function made, which gets a fresh storage at each replay and loses it with its last use.
 *
 * While a function is traced it sees stand-ins for its tensor arguments: views of storages of their
 * own, which never have a value.  So an argument is told from a captured tensor that is the same
 * one; the commands are submitted with the storages stood for. */
#ifndef TL_FRONTEND_TRACE_H
#define TL_FRONTEND_TRACE_H

#include "frontend/context.h"

typedef struct tl_trace tl_trace;

/* Starts recording everything that the context enqueues, for a call with the values at stack
 * indices 1 to nargs, and pushes what the function gets for them.  `owner` becomes the trace and,
 * when it is abandoned, NULL.  L must stay while the trace is active. */
void tl_trace_begin(lua_State *L, tl_context *context, int nargs, tl_trace **owner);

/* Ends it after the function has run.  Its results lie from stack index `first` on, what it was
 * given from index `given` on; the results become those of the eager call.  Raises when they, or
 * what it did, cannot be repeated; then the trace is still to be abandoned. */
void tl_trace_end(lua_State *L, tl_context *context, int nargs, int given, int first);

/* Drops the trace being recorded, if any. */
void tl_trace_abandon(tl_context *context);

/* Submits the commands again for the arguments at stack indices 1 to nargs, whose signature must be
 * the recorded one's, and pushes the results: returns how many. */
int tl_trace_replay(lua_State *L, tl_context *context, tl_trace *trace);

bool tl_trace_in_use(const tl_trace *trace); /* a replay is under way */
void tl_trace_free(tl_context *context, tl_trace *trace);

/* ---- hooks: for functions that find context->trace set ---- */

/* Whether a function is being traced.  An error in a coroutine can leave context->trace behind;
 * then it is abandoned here. */
bool tl_trace_is_active(tl_context *context);

/* Records the draft, whose source line is known, and submits it; raises what goes wrong. */
void tl_trace_enqueue(lua_State *L, tl_context *context, const tl_draft *draft);

/* A storage was made for the function being traced. */
void tl_trace_add_storage(lua_State *L, tl_context *context, tl_storage *storage);

/* Raises that `name` gives a value, which a trace cannot have. */
void tl_trace_refuse_read(lua_State *L, tl_context *context, const char *name);

/* Raises that a replay would not repeat what `name` does. */
void tl_trace_refuse_effect(lua_State *L, tl_context *context, const char *name);

#endif
