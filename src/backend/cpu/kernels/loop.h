/* For the kernels alone: loops that must become vector code. */
#ifndef TL_CPU_KERNELS_LOOP_H
#define TL_CPU_KERNELS_LOOP_H

/* No iteration depends on another, though out may be an input.  One vector at a time: several would
 * leave a scalar rest of a loop over a multiple of TL_LANES. */
#ifdef __clang__
#define TL_INDEPENDENT _Pragma("clang loop vectorize(assume_safety) interleave_count(1)")
#else
#define TL_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* A function that is compiled once, for all its callers: a copy for a constant argument might be
 * scalar code, and round differently. */
#ifdef __clang__
#define TL_COMPILED_ONCE static __attribute__((noinline))
#else
#define TL_COMPILED_ONCE static __attribute__((noinline, noclone))
#endif

#define TL_INLINE static inline __attribute__((always_inline))

/* A multiple of every vector's length, so that a loop over a multiple of it has no scalar tail. */
enum { TL_LANES = 16 };

#endif
