/* Tensors as Lua values: a view and a handle on its storage, in a userdata.
 *
 * A tensor is made closed (without storage), gets its metatable, and only then the storage: an
 * error in between leaks nothing, and whatever sees it closed says so. */
#ifndef TL_FRONTEND_TENSOR_H
#define TL_FRONTEND_TENSOR_H

#include "frontend/context.h"
#include "tensor/view.h"

typedef struct tl_tensor {
  const void *tag;     /* tells a tensor from other userdata */
  tl_storage *storage; /* NULL once closed */
  tl_view view;
} tl_tensor;

/* The tensor at a stack index, or NULL when the value is something else. */
tl_tensor *tl_tensor_test(lua_State *L, int index);

/* The same, but raises for another value and for a closed tensor; `name` is the function's. */
tl_tensor *tl_tensor_check(lua_State *L, int index, const char *name);

/* Pushes a tensor with a storage of its own for a view that is contiguous from 0.  May collect
 * garbage first; raises when the memory is not to be had. */
tl_tensor *tl_tensor_new(lua_State *L, const tl_view *view, const char *name);

/* Pushes a closed tensor for a view, whose owner gives it a storage. */
tl_tensor *tl_tensor_push(lua_State *L, const tl_view *view);

/* Pushes another view of the storage of a tensor, which must stay on the stack meanwhile. */
tl_tensor *tl_tensor_alias(lua_State *L, const tl_tensor *tensor, const tl_view *view);

/* Waits until the value is there and returns the address of the storage's first byte, in host
 * memory; raises its failure, and in a function being traced that `name` reads. */
const void *tl_tensor_read(lua_State *L, const tl_tensor *tensor, const char *name);

/* Gives up the tensor's handle on its storage; it is closed then.  Does not touch Lua. */
void tl_tensor_drop(tl_context *context, tl_tensor *tensor);

int tl_tensor_close(lua_State *L); /* __close, and __gc where there is one */

/* Makes the collector drop tensors that it frees: by the allocator, when the state has ours, or
 * else by __gc in the metatable on top of the stack. */
void tl_tensor_collect(lua_State *L, tl_context *context);

#endif
