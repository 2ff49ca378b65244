/* Loads and stores with a stride and a cast. */
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

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

#if defined(__AVX512F__)
typedef __m512i vector;
#define STREAM(to, from) _mm512_stream_si512((to), _mm512_loadu_si512(from))
#elif defined(__AVX2__)
typedef __m256i vector;
#define STREAM(to, from) _mm256_stream_si256((to), _mm256_loadu_si256(from))
#elif defined(__SSE2__)
typedef __m128i vector;
#define STREAM(to, from) _mm_stream_si128((to), _mm_loadu_si128(from))
#endif

#ifdef STREAM
static void stream(void *out, const void *in, size_t bytes) {
  size_t head = -(uintptr_t)out % 64; /* a part of a line goes through the caches */
  if (head > bytes) head = bytes;
  memcpy(out, in, head);
  bytes -= head;
  size_t whole = bytes / 64 * 64 / sizeof(vector);
  vector *to = (vector *)(void *)((char *)out + head);
  const vector *from = (const vector *)(const void *)((const char *)in + head);
  for (size_t i = 0; i < whole; i++) STREAM(to + i, from + i);
  memcpy(to + whole, from + whole, bytes % 64);
}

static void fence(void) { _mm_sfence(); }
#else
static void stream(void *out, const void *in, size_t bytes) { memcpy(out, in, bytes); }

static void fence(void) {}
#endif

#define PAIR(kind, to, from) [TL_##to][TL_##from] = kind##_##to##_##from
#define ALL_PAIRS(kind)                                                  \
  {                                                                      \
    PAIR(kind, float32, float32), PAIR(kind, float32, float64),          \
        PAIR(kind, float64, float32), PAIR(kind, float64, float64)       \
  }

const tl_layout_kernels TL_ISA_NAME(tl_layout_kernels) = {
    .load = ALL_PAIRS(load),
    .store = ALL_PAIRS(store),
    .stream = stream,
    .fence = fence,
};
