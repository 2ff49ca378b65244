#include "backend/cpu/families.h"

bool tl_operand_is_contiguous(const tl_operand *operand) {
  int64_t step = 1;
  for (int d = operand->ndim - 1; d >= 0; d--) {
    if (operand->shape[d] != 1 && operand->stride[d] != step) return false;
    step *= operand->shape[d];
  }
  return true;
}

/* Walks elements first .. first+count-1 of an operand, in row-major order, as grids: whole rows of
 * the innermost dimension, as many as lie at equal distances, or a part of one. */
typedef struct tl_walk {
  const tl_operand *operand;
  int64_t index[TL_MAX_DIMS];
  int64_t at;   /* the grid's beginning, in elements from the operand's */
  int64_t left; /* elements, this grid's among them */
  int64_t most; /* elements of a grid of several rows */
  tl_grid grid;
} tl_walk;

static void find_grid(tl_walk *walk) {
  const tl_operand *operand = walk->operand;
  int last = operand->ndim - 1;
  tl_grid *grid = &walk->grid;
  *grid = (tl_grid){.rows = 1, .columns = 1, .row_stride = 0, .column_stride = 1};
  if (last < 0) return;
  grid->columns = operand->shape[last] - walk->index[last];
  grid->column_stride = operand->stride[last];
  if (grid->columns > walk->left) grid->columns = walk->left;
  if (last > 0 && grid->columns == operand->shape[last]) {
    int64_t rows = (walk->left < walk->most ? walk->left : walk->most) / grid->columns;
    int64_t there = operand->shape[last - 1] - walk->index[last - 1];
    grid->rows = rows < 1 ? 1 : rows < there ? rows : there;
    grid->row_stride = operand->stride[last - 1];
  }
}

static void begin(tl_walk *walk, const tl_operand *operand, int64_t first, int64_t count,
                  bool casts) {
  walk->operand = operand;
  walk->at = 0;
  walk->left = count;
  walk->most = casts ? TL_BLOCK : INT64_MAX;
  for (int d = operand->ndim - 1; d >= 0; d--) {
    walk->index[d] = first % operand->shape[d];
    first /= operand->shape[d];
    walk->at += walk->index[d] * operand->stride[d];
  }
  find_grid(walk);
}

static void step(tl_walk *walk) {
  const tl_operand *operand = walk->operand;
  int d = operand->ndim - 1;
  int64_t steps = walk->grid.columns;
  walk->left -= walk->grid.rows * walk->grid.columns;
  if (walk->left == 0) return;
  if (steps == operand->shape[d] && d > 0) {
    d--;
    steps = walk->grid.rows;
  }
  walk->index[d] += steps;
  walk->at += steps * operand->stride[d];
  while (walk->index[d] == operand->shape[d]) {
    walk->at -= walk->index[d] * operand->stride[d];
    walk->index[d--] = 0;
    walk->index[d]++;
    walk->at += operand->stride[d];
  }
  find_grid(walk);
}

static int size_class(tl_dtype dtype) { return __builtin_ctz((unsigned)tl_dtype_size(dtype)); }

/* Another dtype is cast run by run where there are runs, otherwise all of it is packed before. */
void tl_load_block(const tl_cpu *cpu, void *to, tl_dtype dtype, const tl_operand *from,
                   int64_t first, int64_t count) {
  alignas(64) char packed[TL_BLOCK * sizeof(double)];
  const tl_dtype own = (tl_dtype)from->dtype;
  const int64_t size = (int64_t)tl_dtype_size(dtype), own_size = (int64_t)tl_dtype_size(own);
  const char *base = tl_operand_address(from);
  char *block = to;
  tl_walk walk;
  if (count == 0) return;
  for (begin(&walk, from, first, count, dtype != own); walk.left > 0; step(&walk)) {
    const tl_grid *grid = &walk.grid;
    const int64_t n = grid->rows * grid->columns;
    const char *address = base + walk.at * own_size;
    if (dtype == own) {
      cpu->kernels->pack->pack[size_class(own)](block, address, grid);
    } else if (grid->rows == 1) {
      cpu->kernels->layout->load[dtype][own](block, address, grid->column_stride, (size_t)n);
    } else {
      cpu->kernels->pack->pack[size_class(own)](packed, address, grid);
      cpu->kernels->layout->load[dtype][own](block, packed, 1, (size_t)n);
    }
    block += n * size;
  }
}

static void stream_rows(const tl_cpu *cpu, char *to, const char *block, const tl_grid *grid,
                        int64_t size) {
  for (int64_t r = 0; r < grid->rows; r++) {
    cpu->kernels->layout->stream(to + r * grid->row_stride * size, block + r * grid->columns * size,
                                 (size_t)(grid->columns * size));
  }
}

void tl_store_block(const tl_cpu *cpu, const tl_operand *to, int64_t first, int64_t count,
                    const void *from, tl_dtype dtype, bool streams) {
  alignas(64) char packed[TL_BLOCK * sizeof(double)];
  const tl_dtype own = (tl_dtype)to->dtype;
  const int64_t size = (int64_t)tl_dtype_size(dtype), own_size = (int64_t)tl_dtype_size(own);
  char *base = tl_operand_address(to);
  const char *block = from;
  tl_walk walk;
  if (count == 0) return;
  if (streams && tl_operand_is_contiguous(to)) {
    cpu->kernels->layout->stream(base + first * size, from, (size_t)(count * size));
    return;
  }
  for (begin(&walk, to, first, count, dtype != own); walk.left > 0; step(&walk)) {
    const tl_grid *grid = &walk.grid;
    const int64_t n = grid->rows * grid->columns;
    char *address = base + walk.at * own_size;
    if (streams) {
      stream_rows(cpu, address, block, grid, size);
    } else if (dtype == own) {
      cpu->kernels->pack->unpack[size_class(own)](address, block, grid);
    } else if (grid->rows == 1) {
      cpu->kernels->layout->store[own][dtype](address, block, grid->column_stride, (size_t)n);
    } else {
      cpu->kernels->layout->store[own][dtype](packed, block, 1, (size_t)n);
      cpu->kernels->pack->unpack[size_class(own)](address, packed, grid);
    }
    block += n * size;
  }
}
