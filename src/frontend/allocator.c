#include "frontend/allocator.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLAB_BYTES = 1 << 16 }; /* and its alignment */

typedef struct tl_block {
  struct tl_block *next;
} tl_block;

struct tl_allocator {
  size_t block_size; /* of a tensor, Lua's own header included; 0: not known yet */
  size_t offset;     /* of the userdata in its block */
  bool probing;      /* both are being found out */
  void *probe;
  const void *tag;
  void (*freed)(void *argument, void *userdata);
  void *argument;
  tl_block *free;
  /* Addresses of slabs, hashed; `capacity` is a power of two, at most half are in use. */
  char **slabs;
  size_t count, capacity;
};

static const char allocator_key;

tl_allocator *tl_allocator_new(void) { return calloc(1, sizeof(tl_allocator)); }

void tl_allocator_delete(tl_allocator *allocator) {
  for (size_t i = 0; i < allocator->capacity; i++) free(allocator->slabs[i]);
  free(allocator->slabs);
  free(allocator);
}

static size_t slot_of(char *const *slabs, size_t capacity, const char *slab) {
  size_t slot = ((uintptr_t)slab / SLAB_BYTES) * 0x9E3779B9u & (capacity - 1);
  while (slabs[slot] && slabs[slot] != slab) slot = (slot + 1) & (capacity - 1);
  return slot;
}

/* Whether a block of the tensors' size is one of ours. */
static bool is_from_slab(const tl_allocator *a, const void *block) {
  const char *slab = (const char *)block - (uintptr_t)block % SLAB_BYTES;
  return a->count > 0 && a->slabs[slot_of(a->slabs, a->capacity, slab)] == slab;
}

static bool make_room(tl_allocator *a) {
  if (2 * (a->count + 1) <= a->capacity) return true;
  size_t capacity = a->capacity ? 2 * a->capacity : 16;
  char **slabs = calloc(capacity, sizeof *slabs);
  if (!slabs) return false;
  for (size_t i = 0; i < a->capacity; i++) {
    if (a->slabs[i]) slabs[slot_of(slabs, capacity, a->slabs[i])] = a->slabs[i];
  }
  free(a->slabs);
  a->slabs = slabs;
  a->capacity = capacity;
  return true;
}

static bool add_slab(tl_allocator *a) {
  char *slab = make_room(a) ? aligned_alloc(SLAB_BYTES, SLAB_BYTES) : NULL;
  if (!slab) return false;
  a->slabs[slot_of(a->slabs, a->capacity, slab)] = slab;
  a->count++;
  size_t step = (a->block_size + alignof(max_align_t) - 1) / alignof(max_align_t) *
                alignof(max_align_t);
  for (size_t at = 0; at + step <= SLAB_BYTES; at += step) {
    tl_block *block = (tl_block *)(void *)(slab + at);
    block->next = a->free;
    a->free = block;
  }
  return true;
}

static const void **tag_of(const tl_allocator *a, void *block) {
  return (const void **)(void *)((char *)block + a->offset);
}

static void *take(tl_allocator *a) {
  if (!a->free && !add_slab(a)) return NULL;
  tl_block *block = a->free;
  a->free = block->next;
  *tag_of(a, block) = NULL; /* not a tensor before its owner says so */
  return block;
}

static void give(tl_allocator *a, void *block) {
  if (a->freed && *tag_of(a, block) == a->tag) {
    a->freed(a->argument, (char *)block + a->offset);
  }
  tl_block *link = block;
  link->next = a->free;
  a->free = link;
}

void *tl_allocator_function(void *allocator, void *block, size_t old_size, size_t new_size) {
  tl_allocator *a = allocator;
  if (!block && old_size == LUA_TUSERDATA) {
    if (a->probing) {
      a->block_size = new_size;
      return a->probe = malloc(new_size);
    }
    if (new_size == a->block_size) return take(a);
  }
  if (new_size > 0) return realloc(block, new_size);
  if (block && old_size == a->block_size && is_from_slab(a, block)) {
    give(a, block);
  } else {
    free(block);
  }
  return NULL;
}

void tl_allocator_offer(lua_State *L, tl_allocator *allocator) {
  lua_pushlightuserdata(L, allocator);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &allocator_key);
}

static tl_allocator *allocator_of(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &allocator_key);
  tl_allocator *a = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return a;
}

bool tl_allocator_serve(lua_State *L, size_t size, const void *tag,
                        void (*freed)(void *argument, void *userdata), void *argument) {
  tl_allocator *a = allocator_of(L);
  if (!a) return false;
  if (!a->offset) {
    a->probing = true;
    const char *userdata = lua_newuserdatauv(L, size, 0);
    a->probing = false;
    a->offset = (size_t)(userdata - (const char *)a->probe);
    lua_pop(L, 1);
  }
  a->tag = tag;
  a->argument = argument;
  a->freed = freed;
  return true;
}

void tl_allocator_forget(lua_State *L) {
  tl_allocator *a = allocator_of(L);
  if (a) a->freed = NULL;
}
