#include <stddef.h>
#include <string.h>

#include "backend/cpu/kernels/kernels.h"

#define TABLE(isa)                                                                        \
  {                                                                                       \
    #isa, &tl_elementwise_kernels_##isa, &tl_layout_kernels_##isa, &tl_pack_kernels_##isa, \
        &tl_reduce_kernels_##isa, &tl_random_kernels_##isa                                \
  }

static const tl_kernels baseline = TABLE(baseline);

#ifdef __x86_64__
static const tl_kernels avx2 = TABLE(avx2), avx512 = TABLE(avx512);

const tl_kernels *tl_kernels_choose(const char *isa) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      (!isa || strcmp(isa, avx512.isa) == 0)) {
    return &avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      (!isa || strcmp(isa, avx2.isa) == 0)) {
    return &avx2;
  }
  return !isa || strcmp(isa, baseline.isa) == 0 ? &baseline : NULL;
}
#else
const tl_kernels *tl_kernels_choose(const char *isa) {
  return !isa || strcmp(isa, baseline.isa) == 0 ? &baseline : NULL;
}
#endif
