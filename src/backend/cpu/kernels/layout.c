/* Loads and stores with a stride and a cast. */
#include <string.h>

#include "backend/cpu/kernels/isa.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/loop.h"

#define MOVE(to_name, to_type, from_name, from_type)                                        \
  static void load_##to_name##_##from_name(void *to, const void *from, int64_t stride,      \
                                           size_t n) {                                      \
    to_type *out = to;                                                                      \
    const from_type *in = from;                                                             \
    if (stride == 1 && TL_##to_name == TL_##from_name) {                                    \
      memcpy(out, in, n * sizeof(to_type));                                                 \
    } else if (stride == 1) {                                                               \
      TL_INDEPENDENT for (size_t i = 0; i < n; i++) out[i] = (to_type)in[i];                \
    } else if (stride == 0) {                                                               \
      const to_type value = (to_type)in[0];                                                 \
      TL_INDEPENDENT for (size_t i = 0; i < n; i++) out[i] = value;                         \
    } else {                                                                                \
      for (size_t i = 0; i < n; i++) out[i] = (to_type)in[(int64_t)i * stride];             \
    }                                                                                       \
  }                                                                                         \
  static void store_##to_name##_##from_name(void *to, const void *from, int64_t stride,     \
                                            size_t n) {                                     \
    to_type *out = to;                                                                      \
    const from_type *in = from;                                                             \
    if (stride == 1 && TL_##to_name == TL_##from_name) {                                    \
      memcpy(out, in, n * sizeof(to_type));                                                 \
    } else if (stride == 1) {                                                               \
      TL_INDEPENDENT for (size_t i = 0; i < n; i++) out[i] = (to_type)in[i];                \
    } else {                                                                                \
      for (size_t i = 0; i < n; i++) out[(int64_t)i * stride] = (to_type)in[i];             \
    }                                                                                       \
  }

MOVE(float32, float, float32, float)
MOVE(float32, float, float64, double)
MOVE(float64, double, float32, float)
MOVE(float64, double, float64, double)

#define PAIR(kind, to, from) [TL_##to][TL_##from] = kind##_##to##_##from
#define ALL_PAIRS(kind)                                                  \
  {                                                                      \
    PAIR(kind, float32, float32), PAIR(kind, float32, float64),          \
        PAIR(kind, float64, float32), PAIR(kind, float64, float64)       \
  }

const tl_layout_kernels TL_ISA_NAME(tl_layout_kernels) = {
    .load = ALL_PAIRS(load),
    .store = ALL_PAIRS(store),
};
