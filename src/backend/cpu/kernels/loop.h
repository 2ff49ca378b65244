/* For the kernels alone: loops that must become vector code. */
#ifndef TL_CPU_KERNELS_LOOP_H
#define TL_CPU_KERNELS_LOOP_H

/* No iteration depends on another, though out may be an input. */
#ifdef __clang__
#define TL_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TL_INDEPENDENT _Pragma("GCC ivdep")
#endif

#define TL_INLINE static inline __attribute__((always_inline))

/* A multiple of every vector's length, so that a loop over a multiple of it has no scalar tail. */
enum { TL_LANES = 16 };

#endif
