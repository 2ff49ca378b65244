#include "tensor/dtype.h"

#include <string.h>

static const char *const names[TL_DTYPE_COUNT] = {
#define X(name, type) #name,
    TL_DTYPES(X)
#undef X
};

const char *tl_dtype_name(tl_dtype dtype) { return names[dtype]; }

int tl_dtype_find(const char *name) {
  for (int i = 0; i < TL_DTYPE_COUNT; i++) {
    if (strcmp(names[i], name) == 0) return i;
  }
  return -1;
}

tl_dtype tl_dtype_promote(tl_dtype a, tl_dtype b) {
  return a == TL_float64 || b == TL_float64 ? TL_float64 : TL_float32;
}

double tl_dtype_load(tl_dtype dtype, const void *address) {
  switch (dtype) {
#define X(name, type) \
  case TL_##name: return (double)*(const type *)address;
    TL_DTYPES(X)
#undef X
    default: return 0;
  }
}

void tl_dtype_store(tl_dtype dtype, void *address, double value) {
  switch (dtype) {
#define X(name, type) \
  case TL_##name: *(type *)address = (type)value; break;
    TL_DTYPES(X)
#undef X
    default: break;
  }
}
