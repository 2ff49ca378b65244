/* Moves between a dense block of rows and columns and a grid of elements in memory: strided,
 * broadcast, transposed.  Elements are 1, 2, 4 or 8 bytes that nobody looks into. */
#include <stdbool.h>
#include <string.h>

#include "backend/cpu/kernels/isa.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/loop.h"

typedef uint8_t quarter __attribute__((vector_size(16), aligned(1), may_alias));

/* memcpy for runs that are mostly short. */
TL_INLINE void copy_run(void *to, const void *from, size_t bytes) {
  if (bytes < sizeof(quarter) || bytes > 512) {
    memcpy(to, from, bytes);
    return;
  }
  char *out = to;
  const char *in = from;
  size_t last = bytes - sizeof(quarter);
  for (size_t i = 0; i < last; i += sizeof(quarter)) *(quarter *)(out + i) = *(quarter *)(in + i);
  *(quarter *)(out + last) = *(quarter *)(in + last);
}

/* What is written already becomes `count` copies of it, one behind the other. */
static void repeat(char *out, size_t bytes, size_t count) {
  size_t whole = bytes * count, done = bytes;
  for (; done < whole; done *= 2) {
    memcpy(out + done, out, done < whole - done ? done : whole - done);
  }
}

/* Vectors of 16 bytes: `at` picks the lower or the upper halves of a and b, and their elements
 * take turns. */
#define TURNS_8(a, b, at) __builtin_shufflevector(a, b, at, at + 2)
#define TURNS_4(a, b, at) __builtin_shufflevector(a, b, at, at + 4, at + 1, at + 5)
#define TURNS_2(a, b, at)                                                                  \
  __builtin_shufflevector(a, b, at, at + 8, at + 1, at + 9, at + 2, at + 10, at + 3, at + 11)
#define TURNS_1(a, b, at)                                                                        \
  __builtin_shufflevector(a, b, at, at + 16, at + 1, at + 17, at + 2, at + 18, at + 3, at + 19, \
                          at + 4, at + 20, at + 5, at + 21, at + 6, at + 22, at + 7, at + 23)

#ifdef __clang__
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

enum { AHEAD = 128 }; /* bytes that are fetched before they are needed */

/* One round of turns rotates the bits of an element's place in a square of SIDE x SIDE by one, so
 * log2(SIDE) of them exchange its row and its column.
 *
 * transpose: out[r][c] = in[c][r], both in patches of whole cache lines; the squares at the far
 * ends overlap those before. */
#define TRANSPOSE(size, T)                                                                        \
  enum { SIDE_##size = 16 / size };                                                               \
  typedef T vector_##size __attribute__((vector_size(16), aligned(size), may_alias));             \
  TL_INLINE void transpose_square_##size(T *out, int64_t out_stride, const T *in,                 \
                                         int64_t in_stride) {                                     \
    enum { SIDE = SIDE_##size, HALF = SIDE / 2 };                                                 \
    vector_##size a[SIDE], b[SIDE];                                                               \
    UNROLLED for (int i = 0; i < SIDE; i++) a[i] = *(const vector_##size *)(in + i * in_stride);  \
    UNROLLED for (int round = SIDE; round > 1; round /= 2) {                                      \
      UNROLLED for (int i = 0; i < HALF; i++) {                                                   \
        b[2 * i] = TURNS_##size(a[i], a[i + HALF], 0);                                            \
        b[2 * i + 1] = TURNS_##size(a[i], a[i + HALF], HALF);                                     \
      }                                                                                           \
      UNROLLED for (int i = 0; i < SIDE; i++) a[i] = b[i];                                        \
    }                                                                                             \
    UNROLLED for (int i = 0; i < SIDE; i++) *(vector_##size *)(out + i * out_stride) = a[i];      \
  }                                                                                               \
  static void transpose_##size(T *out, int64_t rows, int64_t columns, const T *in,                \
                               int64_t in_stride) {                                               \
    enum { SIDE = SIDE_##size, PATCH = 64 / size };                                               \
    for (int64_t patch_c = 0; patch_c < columns; patch_c += PATCH) {                              \
      for (int64_t patch_r = 0; patch_r < rows; patch_r += PATCH) {                               \
        for (int64_t i = 0; i < PATCH && patch_c + i < columns; i += SIDE) {                      \
          int64_t c = least(patch_c + i, columns - SIDE);                                         \
          UNROLLED for (int k = 0; k < SIDE; k++) {                                               \
            __builtin_prefetch(in + (c + k) * in_stride + patch_r + AHEAD / size);                \
          }                                                                                       \
          for (int64_t j = 0; j < PATCH && patch_r + j < rows; j += SIDE) {                       \
            int64_t r = least(patch_r + j, rows - SIDE);                                          \
            transpose_square_##size(out + r * columns + c, columns, in + c * in_stride + r,       \
                                    in_stride);                                                   \
          }                                                                                       \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }

TL_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

#define STRIDED(T, stride) \
  TL_INDEPENDENT for (int64_t i = 0; i < n; i++) out[i] = in[i * (stride)]

/* Short rows are not worth a loop each, and a column whose elements are closer to each other than
 * those of a row is read from fewer cache lines: then the loops are over columns. */
enum { FEW = 8 };

TL_INLINE bool is_by_columns(int64_t rows, int64_t columns, int64_t down, int64_t along) {
  return columns < FEW || (rows >= FEW && (down < 0 ? -down : down) < (along < 0 ? -along : along));
}

#define PACK(size, T)                                                                             \
  TL_INLINE void gather_##size(T *out, const T *in, int64_t stride, int64_t n) {                  \
    if (stride == 1) {                                                                            \
      copy_run(out, in, (size_t)n * size);                                                        \
    } else if (stride == 2) {                                                                     \
      STRIDED(T, 2);                                                                              \
    } else if (stride == 3) {                                                                     \
      STRIDED(T, 3);                                                                              \
    } else if (stride == 4) {                                                                     \
      STRIDED(T, 4);                                                                              \
    } else if (stride == 0) {                                                                     \
      const T value = *in;                                                                        \
      TL_INDEPENDENT for (int64_t i = 0; i < n; i++) out[i] = value;                              \
    } else {                                                                                      \
      for (int64_t i = 0; i < n; i++) out[i] = in[i * stride];                                    \
    }                                                                                             \
  }                                                                                               \
  static void pack_##size(void *block, const void *from, const tl_grid *grid) {                   \
    T *out = block;                                                                               \
    const T *in = from;                                                                           \
    const int64_t rows = grid->rows, columns = grid->columns;                                     \
    const int64_t down = grid->row_stride, along = grid->column_stride;                           \
    if (rows == 1 || down == along * columns) {                                                   \
      gather_##size(out, in, along, rows * columns);                                              \
    } else if (down == 0) {                                                                       \
      gather_##size(out, in, along, columns);                                                     \
      repeat(block, (size_t)columns * size, (size_t)rows);                                        \
    } else if (down == 1 && rows >= SIDE_##size && columns >= SIDE_##size && along != 0) {        \
      transpose_##size(out, rows, columns, in, along);                                            \
    } else if (is_by_columns(rows, columns, down, along)) {                                        \
      for (int64_t c = 0; c < columns; c++) {                                                     \
        for (int64_t r = 0; r < rows; r++) out[r * columns + c] = in[r * down + c * along];       \
      }                                                                                           \
    } else {                                                                                      \
      for (int64_t r = 0; r < rows; r++) {                                                        \
        gather_##size(out + r * columns, in + r * down, along, columns);                          \
      }                                                                                           \
    }                                                                                             \
  }                                                                                               \
  static void unpack_##size(void *to, const void *block, const tl_grid *grid) {                   \
    T *out = to;                                                                                  \
    const T *in = block;                                                                          \
    int64_t rows = grid->rows, columns = grid->columns;                                           \
    const int64_t down = grid->row_stride, along = grid->column_stride;                           \
    if (rows > 1 && down == along * columns) {                                                    \
      columns *= rows;                                                                            \
      rows = 1;                                                                                   \
    }                                                                                             \
    if (is_by_columns(rows, columns, down, along)) {                                              \
      for (int64_t c = 0; c < columns; c++) {                                                     \
        for (int64_t r = 0; r < rows; r++) out[r * down + c * along] = in[r * columns + c];       \
      }                                                                                           \
    } else if (along == 1) {                                                                      \
      for (int64_t r = 0; r < rows; r++) {                                                        \
        copy_run(out + r * down, in + r * columns, (size_t)columns * size);                       \
      }                                                                                           \
    } else {                                                                                      \
      for (int64_t r = 0; r < rows; r++) {                                                        \
        for (int64_t c = 0; c < columns; c++) out[r * down + c * along] = in[r * columns + c];    \
      }                                                                                           \
    }                                                                                             \
  }

#define MOVES(size, T) TRANSPOSE(size, T) PACK(size, T)
MOVES(1, uint8_t)
MOVES(2, uint16_t)
MOVES(4, uint32_t)
MOVES(8, uint64_t)

const tl_pack_kernels TL_ISA_NAME(tl_pack_kernels) = {
    .pack = {pack_1, pack_2, pack_4, pack_8},
    .unpack = {unpack_1, unpack_2, unpack_4, unpack_8},
};
