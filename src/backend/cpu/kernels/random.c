/* Vectorised Philox and Box-Muller.  Only IEEE + - * / sqrt and integer operations in a fixed
 * order, uncontracted: every instruction set gives the same bits.
 *
 * Philox runs in 64-bit lanes, one group of four words a lane, since that is where the 32 x 32 to
 * 64-bit multiplication leaves its result: the upper half is shifted down for the next round, the
 * lower half is used where it stands, and whatever lies above it is ignored.  Lanes hold groups in
 * the order 0, h, 1, h + 1, 2, ... (h is half the lanes): then the sines and cosines of a block
 * come into element order by interleaving within 128 bits, the cheapest shuffle there is. */
#include "backend/cpu/kernels/random.h"

#include <string.h>

#include "backend/cpu/kernels/isa.h"
#include "tensor/philox.h"

#if defined __x86_64__
#include <immintrin.h>
#else
#include <math.h>
#endif

#if defined __AVX512F__
#define BYTES 64
#elif defined __AVX2__
#define BYTES 32
#else
#define BYTES 16
#endif
#define LANES (BYTES / 8) /* groups in a vector */

typedef uint32_t v_u32 __attribute__((vector_size(BYTES)));
typedef int32_t v_i32 __attribute__((vector_size(BYTES)));
typedef uint64_t v_u64 __attribute__((vector_size(BYTES)));
typedef float v_f32 __attribute__((vector_size(BYTES)));
typedef double v_f64 __attribute__((vector_size(BYTES)));

#define INLINE static inline __attribute__((always_inline))

/* LANE_GROUPS: the group of each 64-bit lane.  ZIP: elements of two vectors, interleaved within
 * 128 bits, lower and upper halves. */
#if BYTES == 64
#define LANE_GROUPS 0, 4, 1, 5, 2, 6, 3, 7
#define ZIP_LOW_32 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define ZIP_HIGH_32 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define ZIP_LOW_64 0, 8, 2, 10, 4, 12, 6, 14
#define ZIP_HIGH_64 1, 9, 3, 11, 5, 13, 7, 15
#define X86(name) _mm512_##name
typedef __m512i x86_int;
typedef __m512 x86_f32;
typedef __m512d x86_f64;
#elif BYTES == 32
#define LANE_GROUPS 0, 2, 1, 3
#define ZIP_LOW_32 0, 8, 1, 9, 4, 12, 5, 13
#define ZIP_HIGH_32 2, 10, 3, 11, 6, 14, 7, 15
#define ZIP_LOW_64 0, 4, 2, 6
#define ZIP_HIGH_64 1, 5, 3, 7
#define X86(name) _mm256_##name
typedef __m256i x86_int;
typedef __m256 x86_f32;
typedef __m256d x86_f64;
#else
#define LANE_GROUPS 0, 1
#define ZIP_LOW_32 0, 4, 1, 5
#define ZIP_HIGH_32 2, 6, 3, 7
#define ZIP_LOW_64 0, 2
#define ZIP_HIGH_64 1, 3
#if defined __x86_64__
#define X86(name) _mm_##name
typedef __m128i x86_int;
typedef __m128 x86_f32;
typedef __m128d x86_f64;
#endif
#endif

/* What vector extensions cannot say: the products of the lanes' lower halves, and square roots. */
#if defined __x86_64__
INLINE v_u64 mul_low(v_u64 a, v_u64 b) { return (v_u64)X86(mul_epu32)((x86_int)a, (x86_int)b); }
INLINE v_f32 sqrt_f32(v_f32 x) { return (v_f32)X86(sqrt_ps)((x86_f32)x); }
INLINE v_f64 sqrt_f64(v_f64 x) { return (v_f64)X86(sqrt_pd)((x86_f64)x); }
#else
INLINE v_u64 mul_low(v_u64 a, v_u64 b) { return (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF); }
INLINE v_f32 sqrt_f32(v_f32 x) {
  return (v_f32){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])};
}
INLINE v_f64 sqrt_f64(v_f64 x) { return (v_f64){sqrt(x[0]), sqrt(x[1])}; }
#endif

/* A stream that a call reads from its position on. */
typedef struct stream {
  v_u64 key[TL_PHILOX_ROUNDS][2];
  uint64_t offset; /* of the position */
  uint64_t group;  /* of the position, 0 to 65535 */
} stream;

INLINE void stream_open(stream *s, uint64_t seed, uint64_t position) {
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < TL_PHILOX_ROUNDS; round++) {
    s->key[round][0] = (v_u64){0} + k0;
    s->key[round][1] = (v_u64){0} + k1;
    k0 += TL_PHILOX_W0;
    k1 += TL_PHILOX_W1;
  }
  s->offset = position >> TL_PHILOX_OFFSET_BITS;
  s->group = (position >> 2) & 0xFFFF;
}

/* The counters of the LANES groups from the `first` after the stream's position; the fourth word
 * is 0. Here and in the rounds the upper half of a word's lane may hold anything. */
INLINE void counters_32(const stream *s, uint64_t first, v_u64 c[4]) {
  v_u64 group = (v_u64){LANE_GROUPS} + (s->group + first);
  v_u64 offset = (group >> 16) + s->offset;
  c[0] = offset;
  c[1] = offset >> 32;
  c[2] = group & 0xFFFF;
  c[3] = (v_u64){0};
}

/* Each group number twice: of an offset, then of the next one. */
INLINE void counters_64(const stream *s, uint64_t first, v_u64 c[4]) {
  v_u64 place = (v_u64){LANE_GROUPS} + first;
  v_u64 group = (place >> 1) + s->group;
  v_u64 offset = ((group >> 16) << 1) + (place & 1) + s->offset;
  c[0] = offset;
  c[1] = offset >> 32;
  c[2] = group & 0xFFFF;
  c[3] = (v_u64){0};
}

/* Two vectors at once: one alone waits for the multiplier's latency. */
INLINE void philox(const stream *s, v_u64 c[4], v_u64 d[4]) {
  const v_u64 m0 = (v_u64){0} + TL_PHILOX_M0, m1 = (v_u64){0} + TL_PHILOX_M1;
#pragma GCC unroll 10
  for (int round = 0; round < TL_PHILOX_ROUNDS; round++) {
    v_u64 k0 = s->key[round][0], k1 = s->key[round][1];
    v_u64 p0 = mul_low(c[0], m0), p1 = mul_low(c[2], m1);
    v_u64 q0 = mul_low(d[0], m0), q1 = mul_low(d[2], m1);
    c[0] = (p1 >> 32) ^ c[1] ^ k0;
    d[0] = (q1 >> 32) ^ d[1] ^ k0;
    c[1] = p1;
    d[1] = q1;
    c[2] = (p0 >> 32) ^ c[3] ^ k1;
    d[2] = (q0 >> 32) ^ d[3] ^ k1;
    c[3] = p0;
    d[3] = q0;
  }
}

/* The random integers of the pairs, x first: two 32-bit pairs of a group side by side, or one
 * pair of 53-bit integers, low word ^ high word << 21. */
INLINE void integers_32(const v_u64 c[4], v_u64 *x, v_u64 *y) {
  *x = (c[0] & 0xFFFFFFFF) | (c[2] << 32);
  *y = (c[1] & 0xFFFFFFFF) | (c[3] << 32);
}

INLINE void integers_64(const v_u64 c[4], v_u64 *x, v_u64 *y) {
  *x = (c[0] & 0xFFFFFFFF) ^ ((c[1] & 0xFFFFFFFF) << 21);
  *y = (c[2] & 0xFFFFFFFF) ^ ((c[3] & 0xFFFFFFFF) << 21);
}

INLINE v_f32 float_f32(v_u64 x) { return __builtin_convertvector((v_u32)x, v_f32); }

/* Exact, below 2^53: 2^84 + the upper half, 2^52 + the lower half, written as bits. */
INLINE v_f64 float_f64(v_u64 x) {
  v_f64 high = (v_f64)((x >> 32) | 0x4530000000000000);
  v_f64 low = (v_f64)((x & 0xFFFFFFFF) | 0x4330000000000000);
  return (high - (0x1p84 + 0x1p52)) + low;
}

INLINE void uniform_pair_f32(v_u64 *x, v_u64 *y) {
  *x = (v_u64)(float_f32(*x) * 0x1p-32f + 0x1p-33f);
  *y = (v_u64)(float_f32(*y) * 0x1p-32f + 0x1p-33f);
}

INLINE void uniform_pair_f64(v_u64 *x, v_u64 *y) {
  *x = (v_u64)(float_f64(*x) * 0x1p-53 + 0x1p-54);
  *y = (v_u64)(float_f64(*y) * 0x1p-53 + 0x1p-54);
}

/* Box-Muller.  The polynomials are minimax in relative error, by Remez exchange in 200-bit
 * arithmetic; the coefficients were rounded one by one from the lowest, the others refitted.
 *
 * Radius: u = 2^e m with m in [sqrt 1/2, sqrt 2), by integer arithmetic on its bits (0x3F3504F3 is
 * sqrt 1/2). With t = (m - 1)/(m + 1), at most 0.172, -2 log m = -4 atanh t = t (-4 + t^2 P(t^2)).
 * It is 0 for u = 1, and positive below.  u stays scaled by 2^32 (2^53) until e is taken.
 *
 * Angle: adding 1.5 2^23 (2^52) rounds to an integer k, which the sum's lowest bits then show.
 * r is what is left of the angle over k half turns, at most a quarter turn; an odd k changes both
 * signs, which the radius can carry.  The cosine is the sine of a quarter turn less |r|. */

/* t^2 P, error 2^-30. */
INLINE v_f32 log_poly_f32(v_f32 w) {
  return w * (-0x1.55557ap+0f + w * (-0x1.995ed6p-1f + w * -0x1.31e08p-1f));
}

/* sin r, |r| <= pi/2, error 2^-27. */
INLINE v_f32 sin_f32(v_f32 r) {
  v_f32 z = r * r;
  v_f32 p = 0x1.110edap-7f + z * (-0x1.9f70eep-13f + z * 0x1.5dc8c4p-19f);
  return r + r * z * (-0x1.55554cp-3f + z * p);
}

/* The angle is rounded as cuRAND's host code rounds it. */
INLINE void normal_pair_f32(v_u64 *x, v_u64 *y) {
  v_u32 u = (v_u32)(float_f32(*x) + 0.5f) + (0x3F800000 - 0x3F3504F3);
  v_f32 e = __builtin_convertvector((v_i32)(u >> 23), v_f32) - (127.0f + 32.0f);
  v_f32 f = (v_f32)((u & 0x7FFFFF) + 0x3F3504F3) - 1.0f;
  v_f32 t = f / (f + 2.0f);
  v_f32 radius = sqrt_f32(t * (log_poly_f32(t * t) - 4.0f) + e * -0x1.62e430p+0f); /* 2 log 2 */

  const float step = 0x1p-32f * 0x1.921fb6p+2f; /* 2 pi */
  v_f32 angle = float_f32(*y) * step + step / 2;
  v_f32 k = angle * 0x1.45f306p-2f + 0x1.8p23f; /* 1/pi */
  v_u32 sign = (v_u32)k << 31;
  k -= 0x1.8p23f;
  v_f32 r = angle - k * 0x1.921fb0p+1f - k * 0x1.5110b4p-21f; /* pi: 21 bits, and the rest */
  v_f32 co = 0x1.921fb6p+0f - (v_f32)((v_u32)r & 0x7FFFFFFF);
  radius = (v_f32)((v_u32)radius ^ sign);
  *x = (v_u64)(radius * sin_f32(r));
  *y = (v_u64)(radius * sin_f32(co));
}

/* t^2 P, error 2^-59. */
INLINE v_f64 log_poly_f64(v_f64 w) {
  v_f64 p = -0x1.74663ced85a9ap-2 + w * (-0x1.39a1e8c5711a1p-2 + w * -0x1.2f03ba61e81d5p-2);
  p = -0x1.24924941e1560p-1 + w * (-0x1.c71c521450a32p-2 + w * p);
  return w * (-0x1.5555555555592p+0 + w * (-0x1.999999997ff19p-1 + w * p));
}

/* sin pi r, |r| <= 1/2, error 2^-54: that of pi. */
INLINE v_f64 sinpi_f64(v_f64 r) {
  v_f64 z = r * r;
  v_f64 p = 0x1.e8db76919c51ap-12 + z * (-0x1.6bda5bc767383p-16 + z * 0x1.2ac38d0568b53p-21);
  p = 0x1.507833e752a5ap-4 + z * (-0x1.e306fb7b25cf7p-8 + z * p);
  p = 0x1.466bc67757ff6p+1 + z * (-0x1.32d2cce4ddd0cp-1 + z * p);
  return r * (0x1.921fb54442d18p+1 + z * (-0x1.4abbce625be0fp+2 + z * p));
}

/* The angle is kept in half turns, so that its reduction is exact. */
INLINE void normal_pair_f64(v_u64 *x, v_u64 *y) {
  v_u64 u = (v_u64)(float_f64(*x) + 0.5) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD);
  v_f64 e = (v_f64)((u >> 52) | 0x4330000000000000) - (0x1p52 + 1023.0 + 53.0);
  v_f64 f = (v_f64)((u & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD) - 1.0;
  v_f64 t = f / (f + 2.0);
  v_f64 radius =
      sqrt_f64(t * (log_poly_f64(t * t) - 4.0) + e * -0x1.62e42fefa39efp+0); /* 2 log 2 */

  v_f64 angle = float_f64(*y) * 0x1p-52 + 0x1p-53;
  v_f64 k = angle + 0x1.8p52;
  v_u64 sign = (v_u64)k << 63;
  v_f64 r = angle - (k - 0x1.8p52);
  v_f64 co = 0.5 - (v_f64)((v_u64)r & 0x7FFFFFFFFFFFFFFF);
  radius = (v_f64)((v_u64)radius ^ sign);
  *x = (v_u64)(radius * sinpi_f64(r));
  *y = (v_u64)(radius * sinpi_f64(co));
}

/* First and second elements of pairs, in element order. */
INLINE void zip_f32(v_u64 *x, v_u64 *y) {
  v_u32 a = (v_u32)*x, b = (v_u32)*y;
  *x = (v_u64)__builtin_shufflevector(a, b, ZIP_LOW_32);
  *y = (v_u64)__builtin_shufflevector(a, b, ZIP_HIGH_32);
}

INLINE void zip_f64(v_u64 *x, v_u64 *y) {
  v_u64 a = *x, b = *y;
  *x = __builtin_shufflevector(a, b, ZIP_LOW_64);
  *y = __builtin_shufflevector(a, b, ZIP_HIGH_64);
}

typedef struct random_kind {
  size_t size; /* bytes of an element */
  void (*counters)(const stream *s, uint64_t first, v_u64 c[4]);
  void (*integers)(const v_u64 c[4], v_u64 *x, v_u64 *y);
  void (*pair)(v_u64 *x, v_u64 *y); /* integers to elements */
  void (*zip)(v_u64 *x, v_u64 *y);
} random_kind;

/* Always inlined with a constant kind, so that its functions are, too. Integers and elements are
 * made in loops of their own: each has its constants in registers, and together they are a third
 * faster than one loop.  A block starts where four elements share a group number; the first is
 * cut at its start and the last at its end. */
INLINE void fill(const random_kind *kind, void *dst, uint64_t seed, uint64_t position, size_t n) {
  enum { SETS = 16, SET_BYTES = 2 * BYTES };
  char *out = dst, cut[SETS * SET_BYTES];
  size_t skip = (position & 3) * kind->size, left = n * kind->size;
  stream s;
  stream_open(&s, seed, position);
  for (uint64_t first = 0; left > 0; first += SETS * LANES) {
    size_t room = skip + left < sizeof cut ? skip + left : sizeof cut;
    size_t sets = (room + SET_BYTES - 1) / SET_BYTES;
    char *to = skip == 0 && room == sizeof cut ? out : cut;
    v_u64 x[SETS], y[SETS];
    for (size_t i = 0; i < sets; i += 2) {
      v_u64 c[4], d[4];
      kind->counters(&s, first + i * LANES, c);
      kind->counters(&s, first + i * LANES + LANES, d);
      philox(&s, c, d);
      kind->integers(c, &x[i], &y[i]);
      kind->integers(d, &x[i + 1], &y[i + 1]);
    }
    for (size_t i = 0; i < sets; i++) {
      v_u64 a = x[i], b = y[i];
      kind->pair(&a, &b);
      kind->zip(&a, &b);
      memcpy(to + i * SET_BYTES, &a, BYTES);
      memcpy(to + i * SET_BYTES + BYTES, &b, BYTES);
    }
    if (to == cut) memcpy(out, cut + skip, room - skip);
    out += room - skip;
    left -= room - skip;
    skip = 0;
  }
}

static void uniform_f32(float *dst, uint64_t seed, uint64_t position, size_t n) {
  const random_kind kind = {sizeof *dst, counters_32, integers_32, uniform_pair_f32, zip_f32};
  fill(&kind, dst, seed, position, n);
}

static void uniform_f64(double *dst, uint64_t seed, uint64_t position, size_t n) {
  const random_kind kind = {sizeof *dst, counters_64, integers_64, uniform_pair_f64, zip_f64};
  fill(&kind, dst, seed, position, n);
}

static void normal_f32(float *dst, uint64_t seed, uint64_t position, size_t n) {
  const random_kind kind = {sizeof *dst, counters_32, integers_32, normal_pair_f32, zip_f32};
  fill(&kind, dst, seed, position, n);
}

static void normal_f64(double *dst, uint64_t seed, uint64_t position, size_t n) {
  const random_kind kind = {sizeof *dst, counters_64, integers_64, normal_pair_f64, zip_f64};
  fill(&kind, dst, seed, position, n);
}

const tl_random_kernels TL_ISA_NAME(tl_random_kernels) = {uniform_f32, uniform_f64, normal_f32,
                                                          normal_f64};
