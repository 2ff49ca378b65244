/* Random number kernels: fill contiguous memory from a Philox stream, in cuRAND's order
 * (tensor/philox.h says which words an element gets).  Element i of dst is the one at
 * tl_philox_advance32(position, i), or advance64 for float64: its bits depend on the seed and that
 * position alone, not on n, on how a range is cut into calls, on alignment or on the instruction
 * set.  dst needs only the alignment of its type.  No call fails, allocates or keeps state.
 *
 * Uniforms are cuRAND's to the bit, in (0, 1]: float32 x 2^-32 + 2^-33 of a word, float64
 * x 2^-53 + 2^-54 of x = low ^ high << 21.  Normals differ from its host generator in the last
 * bits only, and are always finite: at most 6.77 in magnitude (float32), 8.66 (float64). */
#ifndef TL_CPU_KERNELS_RANDOM_H
#define TL_CPU_KERNELS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct tl_random_kernels {
  void (*uniform_f32)(float *dst, uint64_t seed, uint64_t position, size_t n);
  void (*uniform_f64)(double *dst, uint64_t seed, uint64_t position, size_t n);
  void (*normal_f32)(float *dst, uint64_t seed, uint64_t position, size_t n);
  void (*normal_f64)(double *dst, uint64_t seed, uint64_t position, size_t n);
} tl_random_kernels;

extern const tl_random_kernels tl_random_kernels_baseline;
extern const tl_random_kernels tl_random_kernels_avx2;   /* x86-64 only */
extern const tl_random_kernels tl_random_kernels_avx512; /* x86-64 only */

#endif
