#include "frontend/tensor.h"

#include <string.h>

#include "frontend/allocator.h"
#include "frontend/trace.h"

static const char tensor_tag;

tl_tensor *tl_tensor_test(lua_State *L, int index) {
  tl_tensor *tensor = lua_touserdata(L, index);
  if (!tensor || lua_rawlen(L, index) != sizeof *tensor) return NULL; /* light: 0 long */
  return tensor->tag == &tensor_tag ? tensor : NULL;
}

tl_tensor *tl_tensor_check(lua_State *L, int index, const char *name) {
  tl_tensor *tensor = tl_tensor_test(L, index);
  if (!tensor) {
    tl_fail(L, "%s: argument %d must be a tensor, not %s", name, index,
            lua_isnone(L, index) ? "missing" : luaL_typename(L, index));
  } else if (!tensor->storage) {
    tl_fail(L, "%s: argument %d is a tensor that has been closed", name, index);
  }
  return tensor;
}

static void copy_view(tl_view *to, const tl_view *from) {
  size_t bytes = from->ndim * sizeof from->shape[0];
  to->offset = from->offset;
  to->dtype = from->dtype;
  to->ndim = from->ndim;
  memcpy(to->shape, from->shape, bytes);
  memcpy(to->stride, from->stride, bytes);
}

static inline tl_tensor *push_closed(lua_State *L, const tl_view *view) {
  tl_tensor *tensor = lua_newuserdatauv(L, sizeof *tensor, 0);
  tensor->tag = &tensor_tag;
  tensor->storage = NULL;
  lua_pushvalue(L, lua_upvalueindex(TL_UPVALUE_METATABLE));
  lua_setmetatable(L, -2);
  copy_view(&tensor->view, view);
  return tensor;
}

tl_tensor *tl_tensor_push(lua_State *L, const tl_view *view) { return push_closed(L, view); }

static tl_tensor *tell_trace(lua_State *L, tl_context *context, tl_tensor *tensor) {
  if (tl_trace_is_active(context)) tl_trace_add_storage(L, context, tensor->storage);
  return tensor;
}

tl_tensor *tl_tensor_new(lua_State *L, const tl_view *view, const char *name) {
  tl_context *context = tl_context_of(L);
  tl_engine *engine = tl_context_engine(L, context);
  size_t bytes = (size_t)tl_view_numel(view) * tl_dtype_size((tl_dtype)view->dtype);
  tl_context_charge(L, context, bytes);
  tl_tensor *tensor = push_closed(L, view);
  tl_error error;
  tl_status status = tl_engine_storage(engine, bytes, &tensor->storage, &error);
  if (status == TL_NO_MEMORY) { /* some of it may be garbage */
    lua_gc(L, LUA_GCCOLLECT);
    status = tl_engine_storage(engine, bytes, &tensor->storage, &error);
  }
  if (status == TL_INTERRUPTED) tl_raise(L, &error);
  if (status != TL_OK) tl_fail(L, "%s: %s", name, error.text);
  context->live += bytes;
  return context->trace ? tell_trace(L, context, tensor) : tensor;
}

tl_tensor *tl_tensor_alias(lua_State *L, const tl_tensor *tensor, const tl_view *view) {
  tl_tensor *alias = push_closed(L, view);
  if (!tensor->storage) return alias; /* a finalizer has just closed it: then this is closed, too */
  tl_storage_retain(tensor->storage);
  alias->storage = tensor->storage;
  return alias;
}

const void *tl_tensor_read(lua_State *L, const tl_tensor *tensor, const char *name) {
  tl_context *context = tl_context_of(L);
  tl_error error;
  if (context->trace) tl_trace_refuse_read(L, context, name);
  if (tl_engine_wait(context->engine, tensor->storage, &error) != TL_OK) {
    tl_raise(L, &error);
  }
  return tensor->storage->data;
}

void tl_tensor_drop(tl_context *context, tl_tensor *tensor) {
  tl_storage *storage = tensor->storage;
  tensor->storage = NULL;
  if (!storage || !context->engine) return; /* stopped: the storage went with the engine */
  if (storage->handles == 1) context->live -= storage->bytes;
  tl_engine_drop(context->engine, storage);
}

int tl_tensor_close(lua_State *L) {
  tl_tensor *tensor = tl_tensor_test(L, 1);
  if (tensor) tl_tensor_drop(tl_context_of(L), tensor);
  return 0;
}

static void freed(void *context, void *tensor) { tl_tensor_drop(context, tensor); }

void tl_tensor_collect(lua_State *L, tl_context *context) {
  if (tl_allocator_serve(L, sizeof(tl_tensor), &tensor_tag, freed, context)) return;
  lua_getfield(L, -1, "__close");
  lua_setfield(L, -2, "__gc");
}
