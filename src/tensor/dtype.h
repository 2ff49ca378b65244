/* Element types.  TL_DTYPES is the only list of them: a row has the name and the C type. */
#ifndef TL_TENSOR_DTYPE_H
#define TL_TENSOR_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#define TL_DTYPES(X) \
  X(float32, float)  \
  X(float64, double)

typedef enum tl_dtype {
#define X(name, type) TL_##name,
  TL_DTYPES(X)
#undef X
  TL_DTYPE_COUNT
} tl_dtype;

/* Bytes of one element. */
static inline size_t tl_dtype_size(tl_dtype dtype) {
  static const uint8_t sizes[TL_DTYPE_COUNT] = {
#define X(name, type) sizeof(type),
      TL_DTYPES(X)
#undef X
  };
  return sizes[dtype];
}

const char *tl_dtype_name(tl_dtype dtype);
int tl_dtype_find(const char *name); /* a tl_dtype, or -1 */

/* The dtype in which two tensors meet; a Lua number does not take part. */
tl_dtype tl_dtype_promote(tl_dtype a, tl_dtype b);

/* One element as a C double, at and from an address in host memory. */
double tl_dtype_load(tl_dtype dtype, const void *address);
void tl_dtype_store(tl_dtype dtype, void *address, double value);

#endif
