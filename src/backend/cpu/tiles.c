/* Tiles: how a program runs over operands that lie in memory in orders of their own.
 *
 * Row by row, an operand that is transposed to the others is read a cache line for each element.  A
 * tile is a box of the elements, with runs of WIDTH along the memory of every operand, so that the
 * processor's prefetching follows them all.  Operands that are out of order are first packed into
 * panels, tile by tile: rows that stay in cache.  (The prefetching cannot follow two orders at the
 * same time: small tiles that take turns are half as fast.)  Then the program runs over the tile's
 * rows. */
#include "backend/cpu/families.h"

enum {
  WIDTH = 256,             /* elements of a run */
  SHORT_ROW = 2 * WIDTH,
  PANEL_BYTES = 256 << 10, /* all panels: a part of L2 */
  ALIGNMENT = 64,          /* of a panel */
  LINE = 16,               /* elements in a run with which row by row is good enough */
  GRAIN = 16,              /* a tile's sizes are multiples of this where there is a choice */
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

/* As wide as fits, and whole rows if they are short; then what room is left goes to the innermost
 * dimensions; then as few tiles as that takes share the elements evenly. */
static void choose_extents(tl_tiles *tiles, int64_t most) {
  int ndim = tiles->ndim;
  int64_t *extent = tiles->extent, width = WIDTH, row = tiles->shape[ndim - 1];
  do {
    for (int d = 0; d < ndim; d++) extent[d] = 1;
    if (row <= SHORT_ROW) extent[ndim - 1] = row;
    for (int i = 0; i < tiles->noperands; i++) stretch(extent, &tiles->whole[i], width);
    width /= 2;
  } while (product(ndim, extent) > most);
  for (int d = ndim - 1; d >= 0; d--) {
    extent[d] = least(tiles->shape[d], extent[d] * (most / product(ndim, extent)));
  }
  for (int d = 0; d < ndim; d++) {
    int64_t count = (tiles->shape[d] + extent[d] - 1) / extent[d];
    int64_t even = (tiles->shape[d] + count - 1) / count;
    extent[d] = least(extent[d], (even + GRAIN - 1) / GRAIN * GRAIN);
  }
}

bool tl_tiles_make(tl_tiles *tiles, const tl_command *command) {
  const tl_operand *operands = command->operands;
  const tl_program *program = command->parameters;
  int64_t packed_size = 0; /* bytes an element */
  if (operands[0].ndim < 2 || tl_operand_numel(&operands[0]) <= TL_BLOCK) return false;
  for (int i = 0; i < command->noperands; i++) {
    tiles->is_packed[i] = i >= program->noutputs && is_out_of_order(&operands[i]);
    if (tiles->is_packed[i]) packed_size += (int64_t)tl_dtype_size((tl_dtype)operands[i].dtype);
  }
  if (packed_size == 0) return false;

  tiles->ndim = operands[0].ndim;
  tiles->shape = operands[0].shape;
  tiles->whole = operands;
  tiles->noperands = command->noperands;
  int64_t most = TL_CHUNK_ELEMENTS;
  while (most * packed_size > PANEL_BYTES) most /= 2;
  choose_extents(tiles, most);
  tiles->count = 1;
  tiles->tile_ndim = 0;
  tiles->in_runs = true;
  for (int d = 0; d < tiles->ndim; d++) {
    tiles->count *= (tiles->shape[d] + tiles->extent[d] - 1) / tiles->extent[d];
    if (tiles->tile_ndim > 0 && tiles->extent[d] < tiles->shape[d]) tiles->in_runs = false;
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
  return true;
}

/* To tile `index`; returns the number of its elements. */
static int64_t move_to(tl_tiles *tiles, int64_t index) {
  int64_t first[TL_MAX_DIMS], size[TL_MAX_DIMS], count = 1;
  for (int d = tiles->ndim - 1; d >= 0; d--) {
    int64_t along = (tiles->shape[d] + tiles->extent[d] - 1) / tiles->extent[d];
    first[d] = index % along * tiles->extent[d];
    size[d] = least(tiles->extent[d], tiles->shape[d] - first[d]);
    index /= along;
  }
  for (int k = tiles->tile_ndim - 1; k >= 0; k--) {
    tiles->tile_shape[k] = size[tiles->tile_dim[k]];
    tiles->packed_stride[k] = count;
    count *= tiles->tile_shape[k];
  }
  for (int i = 0; i < tiles->noperands; i++) {
    tl_operand *tile = &tiles->tile[i];
    tile->storage = tiles->whole[i].storage;
    tile->offset = tiles->whole[i].offset;
    tile->stride = tiles->tile_stride[i];
    for (int d = 0; d < tiles->ndim; d++) tile->offset += first[d] * tiles->whole[i].stride[d];
  }
  return count;
}

/* Packs the `count` elements of the operands that are out of order. */
static void pack(const tl_cpu *cpu, tl_tiles *tiles, int64_t count) {
  int64_t used = 0; /* bytes of the panels */
  for (int i = 0; i < tiles->noperands; i++) {
    if (!tiles->is_packed[i]) continue;
    tl_operand *tile = &tiles->tile[i];
    int64_t size = (int64_t)tl_dtype_size((tl_dtype)tile->dtype);
    tl_load_block(cpu, (char *)tiles->panels.data + used, (tl_dtype)tile->dtype, tile, 0, count);
    tile->storage = &tiles->panels;
    tile->stride = tiles->packed_stride;
    tile->offset = used / size;
    used += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
}

tl_status tl_tiles_run(const tl_cpu *cpu, tl_tiles *tiles, const tl_command *command,
                       uint32_t chunk, tl_error *error) {
  tl_status status = TL_OK;
  alignas(ALIGNMENT) char panels[PANEL_BYTES + TL_MAX_INPUTS * ALIGNMENT];
  tl_evaluator evaluator;
  void *registers[TL_MAX_REGISTERS];
  tiles->panels.data = panels;
  tl_evaluator_init(&evaluator, cpu, command->parameters, command->operands, command->noperands,
                    TL_IMMEDIATE, tiles);
  int64_t per_chunk = (tiles->count + command->chunks - 1) / command->chunks;
  int64_t first = per_chunk * chunk, end = least(first + per_chunk, tiles->count);
  for (int64_t i = first; i < end && status == TL_OK; i++) {
    int64_t count = move_to(tiles, i);
    pack(cpu, tiles, count);
    for (int64_t at = 0; at < count && status == TL_OK; at += TL_BLOCK) {
      size_t n = (size_t)least(count - at, TL_BLOCK);
      status = tl_evaluate(&evaluator, at, n, registers, error);
    }
  }
  return status;
}
