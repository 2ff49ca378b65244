#include "backend/cpu/families.h"

bool tl_operand_is_contiguous(const tl_operand *operand) {
  int64_t step = 1;
  for (int d = operand->ndim - 1; d >= 0; d--) {
    if (operand->shape[d] != 1 && operand->stride[d] != step) return false;
    step *= operand->shape[d];
  }
  return true;
}

/* Calls `move` for each run along the innermost dimension. */
static void for_each_run(const tl_operand *operand, char *block, size_t block_size, int64_t first,
                         int64_t count, tl_move_kernel *move, bool load) {
  int64_t index[TL_MAX_DIMS];
  int last = operand->ndim - 1;
  char *base = tl_operand_address(operand);
  int64_t size = (int64_t)tl_dtype_size((tl_dtype)operand->dtype);
  int64_t inner = last >= 0 ? operand->shape[last] : 1;
  int64_t stride = last >= 0 ? operand->stride[last] : 1;
  int64_t at = 0, rest = first; /* `at`: element offset of the run's beginning */
  for (int d = last; d >= 0; d--) {
    index[d] = rest % operand->shape[d];
    rest /= operand->shape[d];
    at += index[d] * operand->stride[d];
  }
  while (count > 0) {
    int64_t run = last >= 0 ? inner - index[last] : 1;
    if (run > count) run = count;
    char *address = base + at * size;
    if (load) {
      move(block, address, stride, (size_t)run);
    } else {
      move(address, block, stride, (size_t)run);
    }
    block += run * (int64_t)block_size;
    count -= run;
    if (count == 0) return;
    at -= index[last] * stride;
    index[last] = 0;
    for (int d = last - 1; d >= 0; d--) {
      at += operand->stride[d];
      if (++index[d] < operand->shape[d]) break;
      at -= operand->shape[d] * operand->stride[d];
      index[d] = 0;
    }
  }
}

void tl_load_block(const tl_cpu *cpu, void *to, tl_dtype dtype, const tl_operand *from,
                   int64_t first, int64_t count) {
  for_each_run(from, to, tl_dtype_size(dtype), first, count,
               cpu->kernels->layout->load[dtype][from->dtype], true);
}

void tl_store_block(const tl_cpu *cpu, const tl_operand *to, int64_t first, int64_t count,
                    const void *from, tl_dtype dtype) {
  for_each_run(to, (char *)(uintptr_t)from, tl_dtype_size(dtype), first, count,
               cpu->kernels->layout->store[to->dtype][dtype], false);
}
