/* The keys of x[key]: integers, ranges, tensors of integers and masks of bools. */
#ifndef TL_FRONTEND_KEY_H
#define TL_FRONTEND_KEY_H

#include "frontend/pick.h"

/* A tensor in a key: indices for one dimension, or a mask for as many as it has. */
typedef struct tl_key_tensor {
  const tl_tensor *tensor; /* on the stack */
  int dim;                 /* of the view, the first that it is for */
  int entry;               /* that dimension in the whole */
} tl_key_tensor;

typedef struct tl_key {
  tl_view whole; /* what the key is for */
  tl_view view;  /* what its integers and ranges leave of that */
  int count;     /* of tensors */
  tl_key_tensor tensors[TL_MAX_DIMS];
} tl_key;

/* Reads the key at a stack index, and pushes the tensors in it. */
void tl_key_read(lua_State *L, int index, const char *name, const tl_view *whole, tl_key *key);

/* Whether the only tensor in it is a mask. */
bool tl_key_is_mask(const tl_key *key);

/* What the tensors in the key pick out of `tensor`, of which `key->view` is a view.  Masks among
 * them are made into indices, so it waits for how many elements of these are true.  With `apart`
 * the indices are such that do not overlap the tensor. */
void tl_key_pick(lua_State *L, tl_op op, const tl_tensor *tensor, tl_key *key, bool apart,
                 tl_pick *pick);

#endif
