#include "tensor/dtype.h"

#include <string.h>

#include "tensor/half.h"

static const char *const names[TL_DTYPE_COUNT] = {
#define X(name, type, compute) #name,
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
  if (a == b || b == TL_bool) return a;
  if (a == TL_bool) return b;
  if (tl_dtype_is_floating(a) != tl_dtype_is_floating(b)) return tl_dtype_is_floating(a) ? a : b;
  size_t size_a = tl_dtype_size(a), size_b = tl_dtype_size(b);
  if (size_a != size_b) return size_a > size_b ? a : b;
  return tl_dtype_is_floating(a) ? TL_float32 : TL_int16; /* two halves; int8 and uint8 */
}

tl_scalar tl_scalar_convert(tl_scalar value, tl_dtype from, tl_dtype to) {
  if ((from == TL_int64) == (to == TL_int64)) return value;
  return to == TL_int64 ? (tl_scalar){.integer = tl_to_int64(value.real)}
                        : (tl_scalar){.real = (double)value.integer};
}

static tl_scalar real(double value) { return (tl_scalar){.real = value}; }
static tl_scalar integer(int64_t value) { return (tl_scalar){.integer = value}; }

tl_scalar tl_dtype_load(tl_dtype dtype, const void *address) {
  switch (dtype) {
    case TL_float32: return real(*(const float *)address);
    case TL_float64: return real(*(const double *)address);
    case TL_float16: return real(tl_float16_to_float(*(const uint16_t *)address));
    case TL_bfloat16: return real(tl_bfloat16_to_float(*(const uint16_t *)address));
    case TL_int64: return integer(*(const int64_t *)address);
    case TL_int32: return integer(*(const int32_t *)address);
    case TL_int16: return integer(*(const int16_t *)address);
    case TL_int8: return integer(*(const int8_t *)address);
    case TL_uint8: return integer(*(const uint8_t *)address);
    case TL_bool: return integer(*(const uint8_t *)address != 0);
    default: return (tl_scalar){0};
  }
}

void tl_dtype_store(tl_dtype dtype, void *address, tl_scalar value) {
  switch (dtype) {
    case TL_float32: *(float *)address = (float)value.real; break;
    case TL_float64: *(double *)address = value.real; break;
    case TL_float16:
      *(uint16_t *)address = tl_float16_from_float(tl_float_to_odd(value.real));
      break;
    case TL_bfloat16:
      *(uint16_t *)address = tl_bfloat16_from_float(tl_float_to_odd(value.real));
      break;
    case TL_int64: *(int64_t *)address = value.integer; break;
    case TL_int32: *(int32_t *)address = (int32_t)value.integer; break;
    case TL_int16: *(int16_t *)address = (int16_t)value.integer; break;
    case TL_int8: *(int8_t *)address = (int8_t)value.integer; break;
    case TL_uint8: *(uint8_t *)address = (uint8_t)value.integer; break;
    case TL_bool: *(uint8_t *)address = value.integer != 0; break;
    default: break;
  }
}
