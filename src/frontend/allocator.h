/* The allocator of our own Lua states: malloc, but for tensors.
 *
 * A finalizer costs about 100 ns, and Lua tells its allocator the kind of each new object and the
 * size of each block it frees.  So userdata of the size of tensors come from slabs here, and when
 * the collector frees one that carries the tensors' tag, a function releases what it holds: tensors
 * need no __gc.  In a state with another allocator (a stock lua5.4) they have one. */
#ifndef TL_FRONTEND_ALLOCATOR_H
#define TL_FRONTEND_ALLOCATOR_H

#include <lua.h>
#include <stdbool.h>

typedef struct tl_allocator tl_allocator;

tl_allocator *tl_allocator_new(void);              /* NULL: no memory */
void tl_allocator_delete(tl_allocator *allocator); /* after lua_close */

/* A lua_Alloc whose first argument is a tl_allocator. */
void *tl_allocator_function(void *allocator, void *block, size_t old_size, size_t new_size);

/* Says that L allocates through `allocator`, before the library is opened. */
void tl_allocator_offer(lua_State *L, tl_allocator *allocator);

/* For the library: from now on, when a userdata of `size` bytes (and no user values) is freed whose
 * first word is `tag`, calls freed(argument, userdata); it must not use L.  False when L was not
 * offered an allocator. */
bool tl_allocator_serve(lua_State *L, size_t size, const void *tag,
                        void (*freed)(void *argument, void *userdata), void *argument);

/* Ends it: `argument` is about to go. */
void tl_allocator_forget(lua_State *L);

#endif
