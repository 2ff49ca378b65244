/* Tiles: how a program walks operands that lie in memory in orders of their own.
 *
 * Row by row, an operand that is transposed to the others would be read a cache line for each
 * element.  A tile reaches a line or two along the memory of every operand instead, so it has a few
 * dozen elements along the fastest dimension of each. */
#include "backend/cpu/families.h"

enum {
  WIDTH = 32, /* elements that a tile has along each operand's memory, if they fit in a block */
  LINE = 16,  /* elements that row by row are enough */
  GRAIN = 8,  /* a tile's sizes are multiples of this where there is a choice */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t distance(const tl_operand *operand, int d) {
  return operand->stride[d] < 0 ? -operand->stride[d] : operand->stride[d];
}

/* The dimensions along which the operand has elements, from the closest to each other on. */
static int order_of_memory(const tl_operand *operand, int *order) {
  int count = 0;
  for (int d = operand->ndim - 1; d >= 0; d--) {
    if (operand->stride[d] == 0 || operand->shape[d] == 1) continue;
    int at = count++;
    for (; at > 0 && distance(operand, order[at - 1]) > distance(operand, d); at--) {
      order[at] = order[at - 1];
    }
    order[at] = d;
  }
  return count;
}

/* Whether elements that are next to each other in memory are not so row by row. */
static bool is_out_of_order(const tl_operand *operand) {
  int order[TL_MAX_DIMS], count = order_of_memory(operand, order);
  int64_t reach = 1;
  for (int i = 0; i < count && reach < LINE; i++) {
    for (int j = i + 1; j < count; j++) {
      if (order[j] > order[i]) return true;
    }
    reach *= operand->shape[order[i]];
  }
  return false;
}

/* Lets the tile reach `width` elements along the operand's memory. */
static void stretch(int64_t *extent, const tl_operand *operand, int64_t width) {
  int order[TL_MAX_DIMS], count = order_of_memory(operand, order);
  int64_t reach = 1;
  for (int i = 0; i < count && reach < width; i++) {
    int d = order[i];
    int64_t wanted = least(operand->shape[d], (width + reach - 1) / reach);
    if (extent[d] < wanted) extent[d] = wanted;
    reach *= wanted;
  }
}

static int64_t product(int n, const int64_t *extent) {
  int64_t count = 1;
  for (int d = 0; d < n; d++) count *= extent[d];
  return count;
}

/* As wide as fits; then what is left of a block goes to the innermost dimensions; then as few tiles
 * as that takes share the elements evenly. */
static void choose_extents(tl_tiles *tiles, const tl_command *command) {
  int ndim = tiles->ndim;
  int64_t *extent = tiles->extent, width = WIDTH;
  do {
    for (int d = 0; d < ndim; d++) extent[d] = 1;
    for (int i = 0; i < command->noperands; i++) stretch(extent, &command->operands[i], width);
    width /= 2;
  } while (product(ndim, extent) > TL_BLOCK);
  for (int d = ndim - 1; d >= 0; d--) {
    extent[d] = least(tiles->shape[d], extent[d] * (TL_BLOCK / product(ndim, extent)));
  }
  for (int d = 0; d < ndim; d++) {
    int64_t most = extent[d], count = (tiles->shape[d] + most - 1) / most;
    extent[d] = (tiles->shape[d] + count - 1) / count;
    extent[d] = least(most, (extent[d] + GRAIN - 1) / GRAIN * GRAIN);
  }
}

bool tl_tiles_make(tl_tiles *tiles, const tl_command *command) {
  const tl_operand *operands = command->operands;
  bool in_order = true;
  for (int i = 0; i < command->noperands && in_order; i++) in_order = !is_out_of_order(&operands[i]);
  if (in_order || tl_operand_numel(&operands[0]) <= TL_BLOCK) return false;

  tiles->ndim = operands[0].ndim;
  tiles->shape = operands[0].shape;
  choose_extents(tiles, command);
  tiles->count = 1;
  tiles->tile_ndim = 0;
  for (int d = 0; d < tiles->ndim; d++) {
    tiles->count *= (tiles->shape[d] + tiles->extent[d] - 1) / tiles->extent[d];
    if (tiles->extent[d] > 1) tiles->tile_dim[tiles->tile_ndim++] = d;
  }
  for (int i = 0; i < command->noperands; i++) {
    for (int k = 0; k < tiles->tile_ndim; k++) {
      tiles->tile_stride[i][k] = operands[i].stride[tiles->tile_dim[k]];
    }
    tiles->tile[i] = operands[i];
    tiles->tile[i].ndim = (uint8_t)tiles->tile_ndim;
    tiles->tile[i].shape = tiles->tile_shape;
    tiles->tile[i].stride = tiles->tile_stride[i];
  }
  tiles->whole = operands;
  tiles->noperands = command->noperands;
  return true;
}

int64_t tl_tiles_move(tl_tiles *tiles, int64_t index) {
  int64_t first[TL_MAX_DIMS], size[TL_MAX_DIMS];
  for (int d = tiles->ndim - 1; d >= 0; d--) {
    int64_t count = (tiles->shape[d] + tiles->extent[d] - 1) / tiles->extent[d];
    first[d] = index % count * tiles->extent[d];
    size[d] = least(tiles->extent[d], tiles->shape[d] - first[d]);
    index /= count;
  }
  for (int i = 0; i < tiles->noperands; i++) {
    const tl_operand *whole = &tiles->whole[i];
    int64_t offset = whole->offset;
    for (int d = 0; d < tiles->ndim; d++) offset += first[d] * whole->stride[d];
    tiles->tile[i].offset = offset;
  }
  int64_t count = 1;
  for (int k = 0; k < tiles->tile_ndim; k++) {
    count *= tiles->tile_shape[k] = size[tiles->tile_dim[k]];
  }
  return count;
}
