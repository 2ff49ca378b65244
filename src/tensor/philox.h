/* The Philox4x32-10 stream: which random words belong to which element.  The order is that of
 * cuRAND's CURAND_RNG_PSEUDO_PHILOX4_32_10, as its host generator (CUDA 13.0) shows it, so that a
 * seed means the same on every device.  Scalar and plain: the kernels are checked against it.
 *
 * A stream is a seed, which is Philox's key (low word first), and a 64-bit position: the upper
 * 46 bits are an offset, the lower 18 a place among the offset's 65536 groups of four words.
 * Group s of offset o is philox((o_low, o_high, s, 0), key).
 *
 *   A 32-bit element is one word: the one at position p is word p mod 4 of group p/4 mod 2^16 of
 *   offset p/2^18.
 *   A 64-bit element is two words, low one first.  Elements 4q..4q+3 share a group number: the
 *   first two are that group of the offset, the others that group of the offset after it.  So
 *   2^18 elements take two offsets, and a position that passes a multiple of 2^18 skips one.
 *
 * A generator starts at position 0.  A call of n elements, uniform or normal, begins at its
 * position and leaves it just behind the last element, whether n is even or odd: calls continue
 * each other without a gap, as cuRAND's do.  When the width changes, the generator first goes on
 * to an offset that no element has touched (tl_philox_fresh32, 64), so that no word serves twice.
 * Only there does it differ from cuRAND's, which keeps 65536 positions, one for each group.
 *
 * Uniforms lie in (0, 1].  The elements at an even position and the one after are a pair: of the
 * uniforms u, v there the normals are sqrt(-2 log u) sin(2 pi v), then sqrt(-2 log u) cos(2 pi v)
 * (G. Box, M. Muller, Annals of Mathematical Statistics 29, 1958). */
#ifndef TL_TENSOR_PHILOX_H
#define TL_TENSOR_PHILOX_H

#include <stdint.h>

/* Multipliers and key increments: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", SC'11. */
#define TL_PHILOX_M0 0xD2511F53u
#define TL_PHILOX_M1 0xCD9E8D57u
#define TL_PHILOX_W0 0x9E3779B9u /* golden ratio */
#define TL_PHILOX_W1 0xBB67AE85u /* sqrt(3) - 1 */
#define TL_PHILOX_ROUNDS 10

#define TL_PHILOX_OFFSET_BITS 18 /* positions of one offset: 2^18, four words for each of 2^16 */

typedef struct tl_philox_words {
  uint32_t w[4];
} tl_philox_words;

static inline tl_philox_words tl_philox(tl_philox_words counter, uint32_t key0, uint32_t key1) {
  uint32_t *c = counter.w;
  for (int round = 0; round < TL_PHILOX_ROUNDS; round++) {
    uint64_t p0 = (uint64_t)TL_PHILOX_M0 * c[0];
    uint64_t p1 = (uint64_t)TL_PHILOX_M1 * c[2];
    c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ key0;
    c[1] = (uint32_t)p1;
    c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ key1;
    c[3] = (uint32_t)p0;
    key0 += TL_PHILOX_W0;
    key1 += TL_PHILOX_W1;
  }
  return counter;
}

/* The four words of a group (0 to 65535) of an offset. */
static inline tl_philox_words tl_philox_group(uint64_t seed, uint64_t offset, uint32_t group) {
  tl_philox_words counter = {{(uint32_t)offset, (uint32_t)(offset >> 32), group, 0}};
  return tl_philox(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
}

/* The group that holds the 32-bit element at a position: it is word position % 4. */
static inline tl_philox_words tl_philox_group32(uint64_t seed, uint64_t position) {
  return tl_philox_group(seed, position >> TL_PHILOX_OFFSET_BITS, (position >> 2) & 0xFFFF);
}

/* The group that holds the 64-bit element at a position: words 0, 1 if it is even, else 2, 3. */
static inline tl_philox_words tl_philox_group64(uint64_t seed, uint64_t position) {
  uint64_t second = (position >> 1) & 1;
  return tl_philox_group(seed, (position >> TL_PHILOX_OFFSET_BITS) + second,
                         (position >> 2) & 0xFFFF);
}

/* The position count elements further on: of element `count` of a call that starts at `position`,
 * and of the generator after `count` elements. */
static inline uint64_t tl_philox_advance32(uint64_t position, uint64_t count) {
  return position + count;
}

static inline uint64_t tl_philox_advance64(uint64_t position, uint64_t count) {
  uint64_t block = (uint64_t)1 << TL_PHILOX_OFFSET_BITS;
  return position + count + ((position % block + count) & ~(block - 1));
}

/* Where a generator whose last elements were 32-bit (64-bit) goes on with the other width. */
static inline uint64_t tl_philox_fresh32(uint64_t position) {
  uint64_t block = (uint64_t)1 << TL_PHILOX_OFFSET_BITS;
  return tl_philox_advance32(position, (block - position % block) % block);
}

static inline uint64_t tl_philox_fresh64(uint64_t position) {
  uint64_t block = (uint64_t)1 << TL_PHILOX_OFFSET_BITS;
  return tl_philox_advance64(position, (block - position % block) % block);
}

#endif
