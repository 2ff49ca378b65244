/* Streams of random numbers: a seed, and how much of its stream (tensor/philox.h) has been taken.
 *
 * The context has one that random functions take from; tensor.generator() makes others. */
#ifndef TL_FRONTEND_GENERATOR_H
#define TL_FRONTEND_GENERATOR_H

#include <lua.h>
#include <stdint.h>

#include "tensor/dtype.h"

typedef struct tl_generator {
  uint64_t seed, position;
  tl_dtype drawn; /* by the last draw; a change of width leaves what is left of its offset */
} tl_generator;

/* Takes `count` elements of a dtype, float32 or float64, and returns the position of the first:
 * when they are enqueued rather than computed, so that neither threads nor timing matter. */
uint64_t tl_generator_draw(tl_generator *generator, tl_dtype dtype, uint64_t count);

/* The generator at a stack index, or NULL when the value is something else. */
tl_generator *tl_generator_test(lua_State *L, int index);

#endif
