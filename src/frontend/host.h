/* The Lua side of the program: one state from its birth to its end, with the tensor library in
 * scope.  It includes nothing of Lua, and main.c decides through it what runs.
 *
 * Every function that returns bool has reported its failure on standard error.  None raises. */
#ifndef TL_FRONTEND_HOST_H
#define TL_FRONTEND_HOST_H

#include <stdbool.h>

typedef struct tl_host tl_host;

/* The versions of the program and of Lua, in one line without its newline. */
const char *tl_host_version(void);

/* Makes a state with the standard libraries, `tensor`, `sync` and `benchmark`.  `program` is what
 * messages begin with and must outlive the host.  Without `environment`, Lua's own variables
 * (LUA_PATH, LUA_CPATH, LUA_INIT) are ignored.  NULL on failure; tl_host_close frees it. */
tl_host *tl_host_open(const char *program, bool environment);

/* Makes the global table `arg`: argv[script] is arg[0], what precedes it has negative indices.
 * Without a script (script == argc) argv[0] is arg[0]. */
bool tl_host_set_arguments(tl_host *host, int argc, char **argv, int script);

/* Runs what LUA_INIT_5_4, or else LUA_INIT, holds: a chunk, or the file named after an `@`. */
bool tl_host_run_init(tl_host *host);

/* Runs a chunk of text; `name` is its name in messages, after an `=`. */
bool tl_host_run_string(tl_host *host, const char *code, const char *name);

/* Runs a file, or standard input when path is NULL, with `arguments` given arg[1] and on. */
bool tl_host_run_file(tl_host *host, const char *path, bool arguments);

/* Requires a module into the global of its name, or into `global` for "global=module". */
bool tl_host_require(tl_host *host, const char *module);

/* Lets `warn` and errors in finalizers be written to standard error. */
void tl_host_warn(tl_host *host);

/* Runs chunks from standard input until its end. */
void tl_host_read_loop(tl_host *host);

/* Runs what is still queued and reports an error that nobody has seen (false), unless it is the one
 * that ended the script; after an interrupt it drops the queue instead.  Then closes the state and
 * stops the engine's threads. */
bool tl_host_close(tl_host *host);

#endif
