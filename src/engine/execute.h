/* Execution of one command on one or several lanes: its buffers, its errors, its value.
 *
 * begin once, then each chunk once, then end once; tl_execute_command does it all on one thread. */
#ifndef TL_ENGINE_EXECUTE_H
#define TL_ENGINE_EXECUTE_H

#include "engine/backend.h"
#include "engine/pool.h"

/* Whether an operand has no value, so that the command has none either. */
bool tl_execute_inherits(const tl_command *command);

/* False when there is nothing to run: an operand has no value, or the buffers could not be had. */
bool tl_execute_begin(tl_pool *pool, tl_command *command);
void tl_execute_chunk(tl_backend *backend, tl_command *command, uint32_t chunk);

/* Gives the outputs their value or their failure, and tells the frontend that they have it. */
void tl_execute_end(tl_backend *backend, tl_pool *pool, tl_command *command);

void tl_execute_command(tl_backend *backend, tl_pool *pool, tl_command *command);

/* Lets go of the buffer and the failure of a storage. */
void tl_storage_empty(tl_storage *storage, tl_pool *pool);

#endif
