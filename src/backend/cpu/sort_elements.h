/* For sort.c alone, which includes it once for each kind of element: T, its KEY and its PLACE, how
 * to MAKE one, and the NAME of a function of that kind.  A line's elements are in the order of the
 * line until they are sorted by their keys' lower `bits` bits. */

/* Keys are turned over by `flip`. */
static void NAME(read)(T *out, const void *line, tl_dtype dtype, size_t n, uint64_t flip) {
#define CASE(dtype, type)                                                                         \
  case TL_##dtype: {                                                                              \
    const type *x = line;                                                                         \
    for (size_t i = 0; i < n; i++) out[i] = MAKE((uint64_t)(type)(dtype##_key(x[i]) ^ flip), i);  \
    break;                                                                                        \
  }
  switch (dtype) {
    CASE(float32, uint32_t)
    CASE(float64, uint64_t)
    CASE(float16, uint16_t)
    CASE(bfloat16, uint16_t)
    CASE(int64, uint64_t)
    CASE(int32, uint32_t)
    CASE(int16, uint16_t)
    CASE(int8, uint8_t)
    CASE(uint8, uint8_t)
    CASE(bool, uint8_t)
    default: break;
  }
#undef CASE
}

static void NAME(insert)(T *elements, size_t n) {
  for (size_t i = 1; i < n; i++) {
    T moved = elements[i];
    size_t at = i;
    for (; at > 0 && KEY(elements[at - 1]) > KEY(moved); at--) elements[at] = elements[at - 1];
    elements[at] = moved;
  }
}

/* Sorts, with as much room in `spare`; returns which of the two holds the sorted elements. */
static const T *NAME(order)(T *from, T *spare, size_t n, unsigned bits) {
  if (n <= FEW) {
    NAME(insert)(from, n);
    return from;
  }
  size_t counts[MAX_DIGITS];
  unsigned digit_bits = n < MANY ? FEW_BITS : MANY_BITS;
  size_t digits = (size_t)1 << digit_bits, passes = (bits + digit_bits - 1) / digit_bits;
  uint64_t mask = digits - 1;
  memset(counts, 0, passes * digits * sizeof *counts);
  for (size_t i = 0; i < n; i++) {
    uint64_t key = KEY(from[i]);
    for (size_t *at = counts; at < counts + passes * digits; at += digits, key >>= digit_bits) {
      at[key & mask]++;
    }
  }
  for (unsigned shift = 0; shift < bits; shift += digit_bits) {
    size_t *at = counts + shift / digit_bits * digits, next = 0;
    if (at[(KEY(from[0]) >> shift) & mask] == n) continue; /* all have this digit */
    for (size_t d = 0; d < digits; d++) {
      size_t count = at[d];
      at[d] = next;
      next += count;
    }
    for (size_t i = 0; i < n; i++) spare[at[(KEY(from[i]) >> shift) & mask]++] = from[i];
    T *sorted = spare;
    spare = from;
    from = sorted;
  }
  return from;
}

/* Drops elements that do not have one of the `wanted` ranks from *rank on, as the keys' highest
 * digit tells; *rank becomes that of the first one among those that are left.  Returns how many
 * are. */
static size_t NAME(select)(T *elements, size_t n, unsigned bits, size_t *rank, size_t wanted) {
  size_t counts[SELECT_DIGITS] = {0}, below = 0, kept = 0;
  unsigned shift = bits > SELECT_BITS ? bits - SELECT_BITS : 0, low = 0;
  for (size_t i = 0; i < n; i++) counts[KEY(elements[i]) >> shift]++;
  while (below + counts[low] <= *rank) below += counts[low++];
  unsigned high = low;
  for (size_t end = below + counts[low]; end < *rank + wanted;) end += counts[++high];
  for (size_t i = 0; i < n; i++) {
    uint64_t digit = KEY(elements[i]) >> shift;
    elements[kept] = elements[i];
    kept += digit >= low && digit <= high;
  }
  *rank -= below;
  return kept;
}

/* Of the values that are there most often the least, and of these the last. */
static int64_t NAME(mode)(const T *sorted, size_t n) {
  size_t most = 0, last = 0, run = 0;
  for (size_t i = 0; i < n; i++) {
    run = i > 0 && KEY(sorted[i]) == KEY(sorted[i - 1]) ? run + 1 : 1;
    if (run <= most) continue;
    most = run;
    last = i;
  }
  return (int64_t)PLACE(sorted[last]);
}

/* The places, counted from 1, of what is wanted of a line. */
static void NAME(places)(const tl_sorting *s, const void *line, T *elements, T *spare,
                         int64_t *places) {
  size_t n = (size_t)s->size, rank = (size_t)s->first, wanted = (size_t)s->wanted;
  unsigned bits = 8 * (unsigned)tl_dtype_size(s->dtype);
  NAME(read)(elements, line, s->dtype, n, s->flip);
  if (s->op == TL_OP_mode) {
    places[0] = NAME(mode)(NAME(order)(elements, spare, n, bits), n) + 1;
    return;
  }
  if (s->op == TL_OP_median && tl_dtype_is_floating(s->dtype)) { /* nan when one is: the first */
    for (size_t i = 0; i < n; i++) {
      if (KEY(elements[i]) != UINT64_MAX >> (64 - bits)) continue;
      places[0] = (int64_t)i + 1;
      return;
    }
  }
  if (n > SELECT_LEAST && wanted < n / 4) n = NAME(select)(elements, n, bits, &rank, wanted);
  const T *sorted = NAME(order)(elements, spare, n, bits) + rank;
  for (size_t i = 0; i < wanted; i++) places[i] = (int64_t)PLACE(sorted[i]) + 1;
}

#undef T
#undef NAME
#undef KEY
#undef PLACE
#undef MAKE
