/* Loads and stores with a stride and a conversion. */
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "backend/cpu/kernels/isa.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/loop.h"
#include "tensor/half.h"

/* An element as the number that it is, and a number as an element. */
#define FROM_float32(x) (x)
#define FROM_float64(x) (x)
#define FROM_float16(x) tl_float16_to_float(x)
#define FROM_bfloat16(x) tl_bfloat16_to_float(x)
#define FROM_int64(x) (x)
#define FROM_int32(x) (x)
#define FROM_int16(x) (x)
#define FROM_int8(x) (x)
#define FROM_uint8(x) (x)
#define FROM_bool(x) ((x) != 0)

#define REAL_TO_float32(x) (float)(x)
#define REAL_TO_float64(x) (double)(x)
#define REAL_TO_float16(x) tl_float16_from_float(tl_float_to_odd((double)(x)))
#define REAL_TO_bfloat16(x) tl_bfloat16_from_float(tl_float_to_odd((double)(x)))
#define REAL_TO_int64(x) tl_to_int64((double)(x))
#define REAL_TO_int32(x) tl_to_int32((double)(x))
#define REAL_TO_int16(x) (int16_t)tl_to_int32((double)(x))
#define REAL_TO_int8(x) (int8_t)tl_to_int32((double)(x))
#define REAL_TO_uint8(x) (uint8_t)tl_to_int32((double)(x))
#define REAL_TO_bool(x) ((x) != 0)

#define INTEGER_TO_float32(x) (float)(x)
#define INTEGER_TO_float64(x) (double)(x)
#define INTEGER_TO_float16(x) REAL_TO_float16(x)
#define INTEGER_TO_bfloat16(x) REAL_TO_bfloat16(x)
#define INTEGER_TO_int64(x) (x)
#define INTEGER_TO_int32(x) (int32_t)(x)
#define INTEGER_TO_int16(x) (int16_t)(x)
#define INTEGER_TO_int8(x) (int8_t)(x)
#define INTEGER_TO_uint8(x) (uint8_t)(x)
#define INTEGER_TO_bool(x) ((x) != 0)

/* Floats go to the halves without the way through double. */
#define FLOAT_TO_float16(x) tl_float16_from_float(x)
#define FLOAT_TO_bfloat16(x) tl_bfloat16_from_float(x)

#define LOAD(name, to_type, from_type, convert)                                             \
  static void load_##name(void *to, const void *from, int64_t stride, size_t n) {           \
    to_type *out = to;                                                                      \
    const from_type *in = from;                                                             \
    if (stride == 1) {                                                                      \
      TL_INDEPENDENT for (size_t i = 0; i < n; i++) out[i] = (to_type)convert(in[i]);       \
    } else if (stride == 0) {                                                               \
      const to_type value = (to_type)convert(in[0]);                                        \
      TL_INDEPENDENT for (size_t i = 0; i < n; i++) out[i] = value;                         \
    } else {                                                                                \
      for (size_t i = 0; i < n; i++) out[i] = (to_type)convert(in[(int64_t)i * stride]);    \
    }                                                                                       \
  }

#define STORE(name, to_type, from_type, convert)                                            \
  static void store_##name(void *to, const void *from, int64_t stride, size_t n) {          \
    to_type *out = to;                                                                      \
    const from_type *in = from;                                                             \
    if (stride == 1) {                                                                      \
      TL_INDEPENDENT for (size_t i = 0; i < n; i++) out[i] = (to_type)convert(in[i]);       \
    } else {                                                                                \
      for (size_t i = 0; i < n; i++) out[(int64_t)i * stride] = (to_type)convert(in[i]);    \
    }                                                                                       \
  }

/* Elements as they are, by their size. */
#define COPY(bits)                                                                          \
  static void load_##bits(void *to, const void *from, int64_t stride, size_t n) {           \
    uint##bits##_t *out = to;                                                               \
    const uint##bits##_t *in = from;                                                        \
    if (stride == 1) {                                                                      \
      memcpy(out, in, n * sizeof *out);                                                     \
    } else if (stride == 0) {                                                               \
      TL_INDEPENDENT for (size_t i = 0; i < n; i++) out[i] = in[0];                         \
    } else {                                                                                \
      for (size_t i = 0; i < n; i++) out[i] = in[(int64_t)i * stride];                      \
    }                                                                                       \
  }                                                                                         \
  static void store_##bits(void *to, const void *from, int64_t stride, size_t n) {          \
    uint##bits##_t *out = to;                                                               \
    const uint##bits##_t *in = from;                                                        \
    if (stride == 1) {                                                                      \
      memcpy(out, in, n * sizeof *out);                                                     \
    } else {                                                                                \
      for (size_t i = 0; i < n; i++) out[(int64_t)i * stride] = in[i];                      \
    }                                                                                       \
  }

COPY(8)
COPY(16)
COPY(32)
COPY(64)

#define INTEGER_DTYPES(X) \
  X(int32, int32_t) X(int16, int16_t) X(int8, int8_t) X(uint8, uint8_t) X(bool, uint8_t)
#define HALF_DTYPES(X) X(float16, uint16_t) X(bfloat16, uint16_t)

#define LOAD_float32(name, type) LOAD(float32_##name, float, type, FROM_##name)
#define LOAD_float64(name, type) LOAD(float64_##name, double, type, FROM_##name)
#define LOAD_int64(name, type) LOAD(int64_##name, int64_t, type, FROM_##name)
LOAD_float32(float64, double)
LOAD_float32(int64, int64_t)
HALF_DTYPES(LOAD_float32)
INTEGER_DTYPES(LOAD_float32)
LOAD_float64(float32, float)
LOAD_float64(int64, int64_t)
HALF_DTYPES(LOAD_float64)
INTEGER_DTYPES(LOAD_float64)
INTEGER_DTYPES(LOAD_int64)

#define STORE_float32(name, type) STORE(name##_float32, type, float, REAL_TO_##name)
#define STORE_HALF_float32(name, type) STORE(name##_float32, type, float, FLOAT_TO_##name)
#define STORE_float64(name, type) STORE(name##_float64, type, double, REAL_TO_##name)
#define STORE_int64(name, type) STORE(name##_int64, type, int64_t, INTEGER_TO_##name)
STORE_float32(float64, double)
STORE_float32(int64, int64_t)
HALF_DTYPES(STORE_HALF_float32)
INTEGER_DTYPES(STORE_float32)
STORE_float64(float32, float)
STORE_float64(int64, int64_t)
HALF_DTYPES(STORE_float64)
INTEGER_DTYPES(STORE_float64)
STORE_int64(float32, float)
STORE_int64(float64, double)
HALF_DTYPES(STORE_int64)
INTEGER_DTYPES(STORE_int64)

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

#define SAME(kind)                                                            \
  [TL_float32][TL_float32] = kind##_32, [TL_float64][TL_float64] = kind##_64, \
  [TL_int64][TL_int64] = kind##_64, [TL_float16][TL_float16] = kind##_16,     \
  [TL_bfloat16][TL_bfloat16] = kind##_16, [TL_int32][TL_int32] = kind##_32,   \
  [TL_int16][TL_int16] = kind##_16, [TL_int8][TL_int8] = kind##_8,            \
  [TL_uint8][TL_uint8] = kind##_8, [TL_bool][TL_bool] = kind##_8,

#define LOADED_AS_float32(name, type) [TL_float32][TL_##name] = load_float32_##name,
#define LOADED_AS_float64(name, type) [TL_float64][TL_##name] = load_float64_##name,
#define LOADED_AS_int64(name, type) [TL_int64][TL_##name] = load_int64_##name,
#define STORED_FROM_float32(name, type) [TL_##name][TL_float32] = store_##name##_float32,
#define STORED_FROM_float64(name, type) [TL_##name][TL_float64] = store_##name##_float64,
#define STORED_FROM_int64(name, type) [TL_##name][TL_int64] = store_##name##_int64,

const tl_layout_kernels TL_ISA_NAME(tl_layout_kernels) = {
    .load = {SAME(load) LOADED_AS_float32(float64, ) LOADED_AS_float32(int64, )
             LOADED_AS_float64(float32, ) LOADED_AS_float64(int64, )
             HALF_DTYPES(LOADED_AS_float32) HALF_DTYPES(LOADED_AS_float64)
             INTEGER_DTYPES(LOADED_AS_float32) INTEGER_DTYPES(LOADED_AS_float64)
             INTEGER_DTYPES(LOADED_AS_int64)},
    .store = {SAME(store) STORED_FROM_float32(float64, ) STORED_FROM_float32(int64, )
              STORED_FROM_float64(float32, ) STORED_FROM_float64(int64, )
              STORED_FROM_int64(float32, ) STORED_FROM_int64(float64, )
              HALF_DTYPES(STORED_FROM_float32) HALF_DTYPES(STORED_FROM_float64)
              HALF_DTYPES(STORED_FROM_int64) INTEGER_DTYPES(STORED_FROM_float32)
              INTEGER_DTYPES(STORED_FROM_float64) INTEGER_DTYPES(STORED_FROM_int64)},
    .stream = stream,
    .fence = fence,
};
