#include "backend/cpu/families.h"

enum { TILE_ROWS = 16, TILE_COLUMNS = 64 }; /* at most: a row of a tile is a cache line or more */

static int64_t largest_divisor(int64_t size, int64_t most) {
  int64_t divisor = size < most ? size : most;
  while (divisor > 1 && size % divisor != 0) divisor--;
  return divisor;
}

/* The dimension along which some operand is contiguous while it is strided along the last one. */
static int transposed_dim(const tl_command *command) {
  int last = command->operands[0].ndim - 1;
  for (int i = 0; i < command->noperands; i++) {
    const tl_operand *operand = &command->operands[i];
    if (operand->stride[last] == 0 || operand->stride[last] == 1) continue;
    for (int d = 0; d < last; d++) {
      if (operand->stride[d] == 1 && operand->shape[d] > 1) return d;
    }
  }
  return -1;
}

bool tl_tiles_make(const tl_command *command, tl_tiles *tiles) {
  int ndim = command->operands[0].ndim, last = ndim - 1, row = transposed_dim(command);
  if (row < 0 || ndim + 2 > TL_MAX_DIMS) return false;
  const int64_t *shape = command->operands[0].shape;
  int64_t rows = largest_divisor(shape[row], TILE_ROWS);
  int64_t columns = largest_divisor(shape[last], TILE_COLUMNS);
  if (rows < 4 || columns < 8) return false;
  for (int d = 0; d < ndim; d++) tiles->shape[d] = shape[d];
  tiles->shape[row] /= rows;
  tiles->shape[last] /= columns;
  tiles->shape[ndim] = rows;
  tiles->shape[ndim + 1] = columns;
  for (int i = 0; i < command->noperands; i++) {
    const int64_t *from = command->operands[i].stride;
    int64_t *to = tiles->stride[i];
    for (int d = 0; d < ndim; d++) to[d] = from[d];
    to[row] *= rows;
    to[last] *= columns;
    to[ndim] = from[row];
    to[ndim + 1] = from[last];
    tiles->operands[i] = command->operands[i];
    tiles->operands[i].shape = tiles->shape;
    tiles->operands[i].stride = to;
    tiles->operands[i].ndim = (uint8_t)(ndim + 2);
  }
  return true;
}
