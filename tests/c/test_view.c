/* Views against a plain model: an array that lists, in logical order, the element of storage behind
 * each place.  TENSORLUA_TEST_SEED=n changes the random ones; a failure tells the seed. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/program.h"
#include "tensor/view.h"

enum { MAX_ELEMENTS = 600, ROUNDS = 20000 };

typedef struct model {
  int ndim;
  int64_t shape[TL_MAX_DIMS];
  int64_t elements[MAX_ELEMENTS];
} model;

/* ---- random numbers ---- */

static uint64_t seed, state_of_random;

static int start_random(void **state) {
  (void)state;
  const char *text = getenv("TENSORLUA_TEST_SEED");
  seed = state_of_random = text ? strtoull(text, NULL, 10) : 1;
  return 0;
}

static int below(int limit) { /* xorshift64* */
  state_of_random += state_of_random == 0;
  state_of_random ^= state_of_random >> 12;
  state_of_random ^= state_of_random << 25;
  state_of_random ^= state_of_random >> 27;
  return (int)((state_of_random * UINT64_C(2685821657736338717) >> 33) % (uint64_t)limit);
}

#define check(condition)                                                    \
  do {                                                                      \
    if (!(condition)) fail_msg("seed %" PRIu64 ": not " #condition, seed);  \
  } while (0)

/* ---- the model ---- */

static int64_t numel_of(int ndim, const int64_t *shape) {
  int64_t count = 1;
  for (int d = 0; d < ndim; d++) count *= shape[d];
  return count;
}

static void position_of(int ndim, const int64_t *shape, int64_t index, int64_t *position) {
  for (int d = ndim; d-- > 0;) {
    position[d] = index % shape[d];
    index /= shape[d];
  }
}

static int64_t index_of(int ndim, const int64_t *shape, const int64_t *position) {
  int64_t index = 0;
  for (int d = 0; d < ndim; d++) index = index * shape[d] + position[d];
  return index;
}

/* `from` seen through another shape: at() turns a position there into one in `from`. */
typedef struct change {
  int a, b;
  int64_t first, step;
} change;

static void remap(model *to, const model *from, void (*at)(int64_t *, const change *),
                  const change *by) {
  int64_t count = numel_of(to->ndim, to->shape), position[TL_MAX_DIMS + 1];
  for (int64_t i = 0; i < count; i++) {
    position_of(to->ndim, to->shape, i, position);
    at(position, by);
    to->elements[i] = from->elements[index_of(from->ndim, from->shape, position)];
  }
}

static void at_transposed(int64_t *position, const change *by) {
  int64_t swapped = position[by->a];
  position[by->a] = position[by->b];
  position[by->b] = swapped;
}

static void at_selected(int64_t *position, const change *by) {
  memmove(&position[by->a + 1], &position[by->a],
          (size_t)(TL_MAX_DIMS - by->a) * sizeof *position);
  position[by->a] = by->first;
}

static void at_range(int64_t *position, const change *by) {
  position[by->a] = by->first + position[by->a] * by->step;
}

static void at_reversed(int64_t *position, const change *by) {
  position[by->a] = by->first - position[by->a];
}

static void at_inserted(int64_t *position, const change *by) {
  memmove(&position[by->a], &position[by->a + 1],
          (size_t)(TL_MAX_DIMS - by->a) * sizeof *position);
}

/* The last dimension of the view is dropped, and moves dimension a by that many. */
static void at_windows(int64_t *position, const change *by) {
  position[by->a] = position[by->a] * by->step + position[by->first];
}

/* From 1, 2, ... , 0 back to 0, 1, ... */
static void at_rotated(int64_t *position, const change *by) {
  int64_t first = position[by->first];
  memmove(&position[1], &position[0], (size_t)by->first * sizeof *position);
  position[0] = first;
}

/* The last dimension runs along a and b, which is behind a; `step` is the offset. */
static void at_diagonal(int64_t *position, const change *by) {
  int64_t i = position[by->first];
  for (int d = (int)by->first + 1; d > by->b; d--) position[d] = position[d - 2];
  for (int d = by->b - 1; d > by->a; d--) position[d] = position[d - 1];
  position[by->a] = i + (by->step < 0 ? -by->step : 0);
  position[by->b] = i + (by->step > 0 ? by->step : 0);
}

/* Repeats dimension a, which has size 1. */
static void at_expanded(int64_t *position, const change *by) { position[by->a] = 0; }

static bool agrees(const tl_view *view, const model *m) {
  if (view->ndim != m->ndim) return false;
  for (int d = 0; d < m->ndim; d++) {
    if (view->shape[d] != m->shape[d]) return false;
  }
  int64_t count = numel_of(m->ndim, m->shape);
  if (tl_view_numel(view) != count) return false;
  for (int64_t i = 0; i < count; i++) {
    if (tl_view_element(view, i) != m->elements[i]) return false;
  }
  return true;
}

static void random_base(tl_view *view, model *m) {
  tl_error error;
  do {
    m->ndim = below(5);
    for (int d = 0; d < m->ndim; d++) m->shape[d] = below(20) ? 1 + below(6) : below(2);
  } while (numel_of(m->ndim, m->shape) > MAX_ELEMENTS);
  check(tl_view_make(view, TL_float32, m->ndim, m->shape, &error) == TL_OK);
  for (int64_t i = 0; i < numel_of(m->ndim, m->shape); i++) m->elements[i] = i;
}

static void random_step(tl_view *view, model *m) {
  model from = *m;
  if (m->ndim == 0) return;
  change c = {.a = below(m->ndim), .b = below(m->ndim)};
  int64_t size = m->shape[c.a];
  switch (below(4)) {
    case 0:
      m->shape[c.a] = from.shape[c.b];
      m->shape[c.b] = from.shape[c.a];
      tl_view_transpose(view, c.a, c.b);
      remap(m, &from, at_transposed, &c);
      return;
    case 1:
      if (size == 0) return;
      c.first = below((int)size);
      m->ndim--;
      for (int d = c.a; d < m->ndim; d++) m->shape[d] = from.shape[d + 1];
      tl_view_select(view, c.a, c.first);
      remap(m, &from, at_selected, &c);
      return;
    case 2: {
      if (size == 0) return;
      c.first = below((int)size);
      c.step = below(4) ? 1 + below(3) : -1 - below(2);
      int64_t most = (c.step > 0 ? size - 1 - c.first : c.first) / llabs(c.step) + 1;
      int64_t count = below(10) ? 1 + below((int)most) : 0;
      m->shape[c.a] = count;
      tl_view_range(view, c.a, c.first, count, c.step);
      remap(m, &from, at_range, &c);
      return;
    }
    default:
      if (size != 1 || numel_of(m->ndim, m->shape) > MAX_ELEMENTS / 4) return;
      m->shape[c.a] = 1 + below(4);
      check(tl_view_broadcasts_to(view, m->ndim, m->shape));
      tl_view_expand(view, view, m->ndim, m->shape);
      remap(m, &from, at_expanded, &c);
  }
}

/* One of the steps that add, reorder or join dimensions. */
static void random_turn(tl_view *view, model *m) {
  model from = *m;
  if (m->ndim == 0 || m->ndim > 5 || numel_of(m->ndim, m->shape) > MAX_ELEMENTS / 6) return;
  change c = {.a = below(m->ndim), .first = m->ndim};
  int64_t size = m->shape[c.a];
  switch (below(5)) {
    case 0:
      c.first = size - 1;
      tl_view_reverse(view, c.a);
      remap(m, &from, at_reversed, &c);
      return;
    case 1:
      m->ndim++;
      for (int d = m->ndim - 1; d > c.a; d--) m->shape[d] = from.shape[d - 1];
      m->shape[c.a] = 1;
      tl_view_insert(view, c.a);
      remap(m, &from, at_inserted, &c);
      return;
    case 2: {
      if (size == 0) return;
      int64_t window = 1 + below((int)size);
      c.step = 1 + below(3);
      m->shape[c.a] = (size - window) / c.step + 1;
      m->shape[m->ndim++] = window;
      tl_view_windows(view, c.a, window, c.step);
      remap(m, &from, at_windows, &c);
      return;
    }
    case 3: {
      int dims[TL_MAX_DIMS];
      c.first = m->ndim - 1;
      for (int d = 0; d < m->ndim; d++) {
        dims[d] = (d + 1) % m->ndim;
        m->shape[d] = from.shape[dims[d]];
      }
      tl_view_permute(view, dims);
      remap(m, &from, at_rotated, &c);
      return;
    }
    default: {
      if (c.a == m->ndim - 1) return;
      c.b = c.a + 1 + below(m->ndim - 1 - c.a);
      c.step = below(9) - 4;
      c.first = m->ndim - 2;
      int64_t rows = from.shape[c.a] + (c.step < 0 ? c.step : 0);
      int64_t columns = from.shape[c.b] - (c.step > 0 ? c.step : 0);
      int64_t count = rows < columns ? rows : columns;
      m->ndim--;
      for (int d = c.a; d < c.b - 1; d++) m->shape[d] = from.shape[d + 1];
      for (int d = c.b - 1; d < m->ndim - 1; d++) m->shape[d] = from.shape[d + 2];
      m->shape[m->ndim - 1] = count > 0 ? count : 0;
      tl_view_diagonal(view, c.step, c.a, c.b);
      remap(m, &from, at_diagonal, &c);
    }
  }
}

static void random_view(tl_view *view, model *m) {
  random_base(view, m);
  for (int steps = below(5); steps > 0; steps--) random_step(view, m);
}

/* ---- tests ---- */

static void test_steps(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    tl_view view;
    model m;
    random_base(&view, &m);
    check(agrees(&view, &m));
    for (int steps = 0; steps < 5; steps++) {
      random_step(&view, &m);
      check(agrees(&view, &m));
    }
    bool in_a_row = true;
    for (int64_t i = 0; i < tl_view_numel(&view); i++) {
      in_a_row &= m.elements[i] == m.elements[0] + i;
    }
    check(tl_view_is_contiguous(&view) == in_a_row);
  }
}

static int compare_elements(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

static bool has_twins(const model *m) {
  static int64_t sorted[MAX_ELEMENTS];
  int64_t count = numel_of(m->ndim, m->shape);
  memcpy(sorted, m->elements, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, compare_elements);
  for (int64_t i = 1; i < count; i++) {
    if (sorted[i] == sorted[i - 1]) return true;
  }
  return false;
}

/* A view that folds is found whatever made it; a sound one is taken for one only in odd cases. */
static void test_turns(void **state) {
  (void)state;
  int folded = 0, sound = 0, mistaken = 0;
  for (int round = 0; round < ROUNDS; round++) {
    tl_view view;
    model m;
    random_base(&view, &m);
    for (int steps = 0; steps < 4; steps++) {
      if (below(3) == 0) random_step(&view, &m);
      random_turn(&view, &m);
      check(agrees(&view, &m));
      bool twins = has_twins(&m), may = tl_view_may_fold(&view);
      check(may || !twins);
      *(twins ? &folded : may ? &mistaken : &sound) += 1;
    }
  }
  assert_true(folded > 500 && sound > 500);
  assert_true(mistaken * 50 < sound);
  tl_view base, view;
  tl_error error;
  assert_int_equal(tl_view_make(&base, TL_float32, 2, (int64_t[]){3, 4}, &error), TL_OK);
  const int64_t far[] = {INT64_MIN, INT64_MAX, 4, -3};
  for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
    view = base;
    tl_view_diagonal(&view, far[i], 0, 1);
    assert_int_equal(tl_view_numel(&view), 0);
  }
}

static void random_shape_of(int64_t count, int *ndim, int64_t *shape) {
  *ndim = 0;
  while (*ndim < TL_MAX_DIMS - 1 && (count > 1 || below(2))) {
    int64_t size = 1 + below((int)count);
    while (count % size != 0) size--;
    shape[(*ndim)++] = size;
    count /= size;
  }
  if (count > 1 || *ndim == 0) shape[(*ndim)++] = count;
}

/* The strides that the new shape would need, from the model's elements. */
static bool has_strides(const model *m, int ndim, const int64_t *shape) {
  int64_t stride[TL_MAX_DIMS], step = 1, position[TL_MAX_DIMS];
  for (int d = ndim; d-- > 0;) {
    stride[d] = shape[d] > 1 ? m->elements[step] - m->elements[0] : 0;
    step *= shape[d];
  }
  for (int64_t i = 0; i < step; i++) {
    position_of(ndim, shape, i, position);
    int64_t element = m->elements[0];
    for (int d = 0; d < ndim; d++) element += position[d] * stride[d];
    if (element != m->elements[i]) return false;
  }
  return true;
}

static void test_reshape(void **state) {
  (void)state;
  int possible = 0, impossible = 0;
  for (int round = 0; round < ROUNDS; round++) {
    tl_view view, reshaped;
    model m;
    random_view(&view, &m);
    int64_t count = tl_view_numel(&view);
    if (count == 0) continue;
    int ndim;
    int64_t shape[TL_MAX_DIMS];
    random_shape_of(count, &ndim, shape);
    bool is_view = tl_view_reshape(&reshaped, &view, ndim, shape);
    check(is_view == has_strides(&m, ndim, shape));
    *(is_view ? &possible : &impossible) += 1;
    if (!is_view) continue;
    m.ndim = ndim;
    memcpy(m.shape, shape, sizeof shape);
    check(agrees(&reshaped, &m));
    check(reshaped.dtype == view.dtype);
    check(tl_view_reshape(&view, &view, ndim, shape) && agrees(&view, &m));
  }
  assert_true(possible > 500 && impossible > 500);
  tl_view empty, other;
  tl_error error;
  assert_int_equal(tl_view_make(&empty, TL_float32, 2, (int64_t[]){0, 3}, &error), TL_OK);
  tl_view_transpose(&empty, 0, 1);
  assert_true(tl_view_reshape(&other, &empty, 3, (int64_t[]){5, 0, 2}));
  assert_int_equal(tl_view_numel(&other), 0);
}

static void test_overlap(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    tl_view a, b;
    model ma, mb;
    random_view(&a, &ma);
    random_view(&b, &mb);
    b.offset += below(40);
    if (below(4) == 0) b = a, mb = ma;
    int64_t na = tl_view_numel(&a), nb = tl_view_numel(&b);
    int64_t low_a = INT64_MAX, high_a = -1, low_b = INT64_MAX, high_b = -1;
    for (int64_t i = 0; i < na; i++) {
      int64_t element = tl_view_element(&a, i);
      if (element < low_a) low_a = element;
      if (element > high_a) high_a = element;
    }
    bool same = tl_view_same_shape(&a, &b);
    for (int64_t i = 0; i < nb; i++) {
      int64_t element = tl_view_element(&b, i);
      if (element < low_b) low_b = element;
      if (element > high_b) high_b = element;
      same = same && element == tl_view_element(&a, i);
    }
    check(tl_view_may_overlap(&a, &b) == (na && nb && low_a <= high_b && low_b <= high_a));
    if (na && nb) check(tl_view_is_same(&a, &b) == same);
  }
  tl_view a, b;
  tl_error error;
  assert_int_equal(tl_view_make(&a, TL_float32, 1, (int64_t[]){3}, &error), TL_OK);
  assert_int_equal(tl_view_make(&b, TL_float64, 1, (int64_t[]){3}, &error), TL_OK);
  assert_false(tl_view_is_same(&a, &b));
}

static void test_broadcast(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    tl_view a, b, out, expanded;
    model ma, mb;
    tl_error error;
    random_view(&a, &ma);
    random_view(&b, &mb);
    int ndim = a.ndim > b.ndim ? a.ndim : b.ndim;
    int64_t shape[TL_MAX_DIMS];
    bool fits = true, fits_a = true;
    for (int d = 0; d < ndim; d++) {
      int64_t size_a = d + a.ndim < ndim ? 1 : a.shape[d + a.ndim - ndim];
      int64_t size_b = d + b.ndim < ndim ? 1 : b.shape[d + b.ndim - ndim];
      fits &= size_a == size_b || size_a == 1 || size_b == 1;
      shape[d] = size_a == 1 ? size_b : size_a;
      fits_a &= shape[d] == size_a;
    }
    tl_status status = tl_view_broadcast(&out, TL_float64, &a, &b, "add", &error);
    check((status == TL_OK) == fits);
    if (!fits) continue;
    check(out.ndim == ndim && out.dtype == TL_float64 && tl_view_is_contiguous(&out));
    check(ndim == 0 || memcmp(out.shape, shape, (size_t)ndim * sizeof *shape) == 0);
    check(tl_view_broadcasts_to(&a, ndim, shape) && tl_view_broadcasts_to(&b, ndim, shape));
    check(tl_view_broadcasts_to(&out, a.ndim, a.shape) == (fits_a && a.ndim == ndim));
    tl_view_expand(&expanded, &a, ndim, shape);
    check(expanded.dtype == a.dtype && tl_view_same_shape(&expanded, &out));
    for (int64_t i = 0; i < tl_view_numel(&out); i++) {
      int64_t position[TL_MAX_DIMS];
      position_of(ndim, shape, i, position);
      int64_t *own = &position[ndim - a.ndim];
      for (int d = 0; d < a.ndim; d++) own[d] = a.shape[d] == 1 ? 0 : own[d];
      check(tl_view_element(&expanded, i) == ma.elements[index_of(a.ndim, a.shape, own)]);
    }
  }
}

static void expect_make(tl_status status, int ndim, const int64_t *shape, const char *text) {
  tl_view view;
  tl_error error;
  assert_int_equal(tl_view_make(&view, TL_float64, ndim, shape, &error), status);
  if (text) assert_string_equal(error.text, text);
}

static void test_sizes(void **state) {
  (void)state;
  const int64_t most = INT64_MAX / 8, half = (int64_t)1 << 31;
  expect_make(TL_OK, 0, NULL, NULL);
  expect_make(TL_OK, 1, &most, NULL);
  expect_make(TL_OK, 3, (int64_t[]){0, most, 1}, NULL);
  expect_make(TL_INVALID, 2, (int64_t[]){3, -1}, "size -1 is negative");
  expect_make(TL_INVALID, 1, (int64_t[]){INT64_MIN}, "size -9223372036854775808 is negative");
  expect_make(TL_INVALID, 1, (int64_t[]){most + 1},
              "a tensor of 1152921504606846976 elements is too large");
  expect_make(TL_INVALID, 3, (int64_t[]){half, half, 4},
              "a tensor of 2147483648x2147483648x4 elements is too large");
  expect_make(TL_INVALID, 3, (int64_t[]){half, 0, half}, NULL); /* its strides would not fit */
  int64_t widest[TL_MAX_DIMS];
  for (int d = 0; d < TL_MAX_DIMS; d++) widest[d] = INT64_MAX;
  expect_make(TL_INVALID, TL_MAX_DIMS, widest, NULL);
  char text[TL_SHAPE_TEXT];
  for (int d = 0; d < TL_MAX_DIMS; d++) widest[d] = INT64_MIN;
  assert_int_equal(strlen(tl_shape_text(TL_MAX_DIMS, widest, text)), TL_MAX_DIMS * 21 - 1);
  assert_string_equal(tl_shape_text(0, NULL, text), "()");
  assert_string_equal(tl_shape_text(2, (int64_t[]){2, 3}, text), "2x3");

  tl_view a, b, out;
  tl_error error;
  assert_int_equal(tl_view_make(&a, TL_float32, 2, (int64_t[]){2, 3}, &error), TL_OK);
  assert_int_equal(tl_view_make(&b, TL_float32, 2, (int64_t[]){4, 3}, &error), TL_OK);
  assert_int_equal(tl_view_broadcast(&out, TL_float32, &a, &b, "add", &error), TL_INVALID);
  assert_string_equal(error.text, "add: cannot broadcast 2x3 with 4x3: sizes 2 and 4 differ in "
                                  "dimension 1");
  assert_int_equal(tl_view_make(&a, TL_float32, 2, (int64_t[]){1, half}, &error), TL_OK);
  assert_int_equal(tl_view_make(&b, TL_float32, 2, (int64_t[]){half, 1}, &error), TL_OK);
  assert_int_equal(tl_view_broadcast(&out, TL_float32, &a, &b, "add", &error), TL_INVALID);
  assert_string_equal(error.text,
                      "add: a tensor of 2147483648x2147483648 elements is too large");
}

static void test_matrices(void **state) {
  (void)state;
  static const struct {
    int64_t shape[2], stride[2];
    bool is_matrix;
  } cases[] = {
      {{2, 3}, {3, 1}, true},  {{3, 2}, {1, 3}, true},  {{2, 3}, {7, 1}, true},
      {{3, 2}, {1, 7}, true},  {{2, 3}, {2, 1}, false}, {{2, 3}, {6, 2}, false},
      {{2, 3}, {0, 1}, false}, {{2, 3}, {0, 0}, false}, {{2, 3}, {-3, 1}, false},
      {{1, 3}, {0, 1}, true},  {{3, 1}, {1, 0}, true},  {{1, 1}, {0, 0}, true},
      {{1, 3}, {3, 2}, true}, /* a column, seen by columns */
      {{1, 3}, {3, 0}, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tl_view view = {.ndim = 2};
    memcpy(view.shape, cases[i].shape, sizeof cases[i].shape);
    memcpy(view.stride, cases[i].stride, sizeof cases[i].stride);
    if (tl_view_is_matrix(&view) != cases[i].is_matrix) fail_msg("case %d", (int)i);
  }
}

/* ---- loops ---- */

typedef struct tuple {
  int64_t elements[TL_MAX_LOOP_VIEWS];
} tuple;

static int compare_tuples(const void *a, const void *b) {
  const tuple *x = a, *y = b;
  for (int v = 0; v < TL_MAX_LOOP_VIEWS; v++) {
    if (x->elements[v] != y->elements[v]) return x->elements[v] < y->elements[v] ? -1 : 1;
  }
  return 0;
}

/* The loop visits the same elements together as the views do, in the order of the first one's
 * memory, and no two of its dimensions could be one. */
static void check_loop(int nviews, const tl_view *const *views) {
  static tuple wanted[MAX_ELEMENTS], visited[MAX_ELEMENTS];
  tl_loop loop;
  tl_loop_make(&loop, nviews, views);
  int64_t count = tl_view_numel(views[0]);
  check(loop.ndim >= 1 && numel_of(loop.ndim, loop.shape) == count);
  for (int64_t i = 0; i < count; i++) {
    int64_t position[TL_MAX_DIMS];
    position_of(loop.ndim, loop.shape, i, position);
    memset(&wanted[i], 0, sizeof wanted[i]);
    memset(&visited[i], 0, sizeof visited[i]);
    for (int v = 0; v < nviews; v++) {
      wanted[i].elements[v] = tl_view_element(views[v], i);
      visited[i].elements[v] = views[v]->offset;
      for (int d = 0; d < loop.ndim; d++) {
        visited[i].elements[v] += position[d] * loop.stride[v][d];
      }
    }
  }
  bool ascends = true, could_ascend = true;
  for (int64_t i = 1; i < count; i++) {
    ascends &= visited[i - 1].elements[0] <= visited[i].elements[0];
  }
  qsort(wanted, (size_t)count, sizeof *wanted, compare_tuples);
  qsort(visited, (size_t)count, sizeof *visited, compare_tuples);
  check(count == 0 || memcmp(wanted, visited, (size_t)count * sizeof *wanted) == 0);
  for (int d = 0; d < views[0]->ndim; d++) could_ascend &= views[0]->stride[d] >= 0;
  check(ascends || !could_ascend);
  for (int d = 1; d < loop.ndim && count > 0; d++) {
    bool are_one = true;
    for (int v = 0; v < nviews; v++) {
      are_one &= loop.stride[v][d - 1] == loop.shape[d] * loop.stride[v][d];
    }
    check(!are_one && loop.shape[d] > 1);
  }
}

static void test_loops(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    tl_view first, views[TL_MAX_LOOP_VIEWS];
    const tl_view *pointers[TL_MAX_LOOP_VIEWS] = {&views[0], &views[1], &views[2], &views[3]};
    model m;
    tl_error error;
    random_view(&first, &m);
    int nviews = 1 + below(TL_MAX_LOOP_VIEWS);
    for (int v = 0; v < nviews; v++) {
      views[v] = first;
      if (below(3) == 0) continue;
      /* contiguous, or so in another order of dimensions, or repeated along one */
      tl_view_make(&views[v], TL_float32, first.ndim, first.shape, &error);
      if (first.ndim == 0) continue;
      int a = below(first.ndim), b = below(first.ndim);
      int64_t shape[TL_MAX_DIMS];
      memcpy(shape, first.shape, sizeof shape);
      if (below(2)) {
        tl_view_transpose(&views[v], a, b);
        tl_view_make(&views[v], TL_float32, first.ndim, views[v].shape, &error);
        tl_view_transpose(&views[v], a, b);
      } else {
        shape[a] = 1;
        tl_view_make(&views[v], TL_float32, first.ndim, shape, &error);
        tl_view_expand(&views[v], &views[v], first.ndim, first.shape);
      }
    }
    check_loop(nviews, pointers);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_steps),    cmocka_unit_test(test_turns),
      cmocka_unit_test(test_reshape),  cmocka_unit_test(test_overlap),
      cmocka_unit_test(test_broadcast), cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_matrices), cmocka_unit_test(test_loops),
  };
  return cmocka_run_group_tests_name("view", tests, start_random, NULL);
}
