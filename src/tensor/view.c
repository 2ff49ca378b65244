#include "tensor/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void set_contiguous(tl_view *view) {
  int64_t step = 1;
  for (int d = view->ndim - 1; d >= 0; d--) {
    view->stride[d] = step;
    step *= view->shape[d] > 0 ? view->shape[d] : 1;
  }
}

tl_status tl_view_make(tl_view *view, tl_dtype dtype, int ndim, const int64_t *shape,
                       tl_error *error) {
  char text[TL_SHAPE_TEXT];
  view->offset = 0;
  view->dtype = (uint8_t)dtype;
  view->ndim = (uint8_t)ndim;
  /* The product of the non-zero sizes must fit too: strides are made of it. */
  int64_t limit = INT64_MAX / (int64_t)tl_dtype_size(dtype);
  for (int d = 0; d < ndim; d++) {
    if (shape[d] < 0) {
      return tl_error_set(error, TL_INVALID, "size %" PRId64 " is negative", shape[d]);
    }
    if (shape[d] > 0) {
      if (shape[d] > limit) {
        return tl_error_set(error, TL_INVALID, "a tensor of %s elements is too large",
                            tl_shape_text(ndim, shape, text));
      }
      limit /= shape[d];
    }
    view->shape[d] = shape[d];
  }
  set_contiguous(view);
  return TL_OK;
}

void tl_view_make_like(tl_view *view, tl_dtype dtype, const tl_view *like) {
  view->offset = 0;
  view->dtype = (uint8_t)dtype;
  view->ndim = like->ndim;
  for (int d = 0; d < like->ndim; d++) view->shape[d] = like->shape[d];
  set_contiguous(view);
}

bool tl_view_is_same(const tl_view *a, const tl_view *b) {
  if (a->offset != b->offset || a->dtype != b->dtype || !tl_view_same_shape(a, b)) return false;
  for (int d = 0; d < a->ndim; d++) {
    if (a->shape[d] != 1 && a->stride[d] != b->stride[d]) return false;
  }
  return true;
}

/* Lines of `length` elements next to each other, `count` of them. */
static bool is_lines(int64_t count, int64_t line_stride, int64_t length, int64_t stride) {
  return (length <= 1 || stride == 1) && (count <= 1 || line_stride >= (length > 1 ? length : 1));
}

bool tl_view_is_matrix(const tl_view *view) {
  const int64_t *shape = view->shape, *stride = view->stride;
  return is_lines(shape[0], stride[0], shape[1], stride[1]) ||
         is_lines(shape[1], stride[1], shape[0], stride[0]);
}

static void extent(const tl_view *view, int64_t *first, int64_t *last) {
  *first = *last = view->offset;
  for (int d = 0; d < view->ndim; d++) {
    int64_t reach = (view->shape[d] - 1) * view->stride[d];
    *(reach < 0 ? first : last) += reach;
  }
}

bool tl_view_may_overlap(const tl_view *a, const tl_view *b) {
  if (tl_view_numel(a) == 0 || tl_view_numel(b) == 0) return false;
  int64_t a_first, a_last, b_first, b_last;
  extent(a, &a_first, &a_last);
  extent(b, &b_first, &b_last);
  return a_first <= b_last && b_first <= a_last;
}

/* Taken from the smallest stride up, each dimension must step over all that those before reach. */
bool tl_view_may_fold(const tl_view *view) {
  int64_t strides[TL_MAX_DIMS], reaches[TL_MAX_DIMS], reach = 0;
  int count = 0;
  for (int d = 0; d < view->ndim; d++) {
    if (view->shape[d] == 0) return false;
    if (view->shape[d] == 1) continue;
    int64_t stride = view->stride[d] < 0 ? -view->stride[d] : view->stride[d];
    int at = count++;
    for (; at > 0 && strides[at - 1] > stride; at--) {
      strides[at] = strides[at - 1];
      reaches[at] = reaches[at - 1];
    }
    strides[at] = stride;
    reaches[at] = (view->shape[d] - 1) * stride;
  }
  for (int i = 0; i < count; i++) {
    if (strides[i] <= reach) return true;
    reach += reaches[i];
  }
  return false;
}

const char *tl_shape_text(int ndim, const int64_t *shape, char *text) {
  if (ndim == 0) return strcpy(text, "()");
  size_t length = 0;
  for (int d = 0; d < ndim; d++) {
    length += (size_t)snprintf(text + length, TL_SHAPE_TEXT - length, d ? "x%" PRId64 : "%" PRId64,
                               shape[d]);
  }
  return text;
}

const char *tl_view_shape_text(const tl_view *view, char *text) {
  return tl_shape_text(view->ndim, view->shape, text);
}

tl_status tl_view_broadcast(tl_view *out, tl_dtype dtype, const tl_view *a, const tl_view *b,
                            const char *name, tl_error *error) {
  if (tl_view_same_shape(a, b)) {
    tl_view_make_like(out, dtype, a);
    return TL_OK;
  }
  int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
  int64_t shape[TL_MAX_DIMS];
  for (int d = 0; d < ndim; d++) {
    int from_a = d - (ndim - a->ndim), from_b = d - (ndim - b->ndim);
    int64_t size_a = from_a < 0 ? 1 : a->shape[from_a];
    int64_t size_b = from_b < 0 ? 1 : b->shape[from_b];
    if (size_a != size_b && size_a != 1 && size_b != 1) {
      char text_a[TL_SHAPE_TEXT], text_b[TL_SHAPE_TEXT];
      return tl_error_set(error, TL_INVALID,
                          "%s: cannot broadcast %s with %s: sizes %" PRId64 " and %" PRId64
                          " differ in dimension %d",
                          name, tl_view_shape_text(a, text_a), tl_view_shape_text(b, text_b),
                          size_a, size_b, d + 1);
    }
    shape[d] = size_a == 1 ? size_b : size_a;
  }
  if (tl_view_make(out, dtype, ndim, shape, error) == TL_OK) return TL_OK;
  tl_error reason = *error;
  return tl_error_set(error, reason.status, "%s: %.400s", name, reason.text);
}

bool tl_view_broadcasts_to(const tl_view *view, int ndim, const int64_t *shape) {
  if (view->ndim > ndim) return false;
  for (int d = 0; d < view->ndim; d++) {
    if (view->shape[d] != 1 && view->shape[d] != shape[ndim - view->ndim + d]) return false;
  }
  return true;
}

void tl_view_expand(tl_view *out, const tl_view *view, int ndim, const int64_t *shape) {
  tl_view source = *view; /* out may be view */
  out->offset = source.offset;
  out->dtype = source.dtype;
  out->ndim = (uint8_t)ndim;
  for (int d = 0; d < ndim; d++) {
    int from = d - (ndim - source.ndim);
    out->shape[d] = shape[d];
    out->stride[d] = from < 0 || source.shape[from] != shape[d] ? 0 : source.stride[from];
  }
}

void tl_view_transpose(tl_view *view, int a, int b) {
  int64_t size = view->shape[a], stride = view->stride[a];
  view->shape[a] = view->shape[b];
  view->stride[a] = view->stride[b];
  view->shape[b] = size;
  view->stride[b] = stride;
}

void tl_view_select(tl_view *view, int dim, int64_t index) {
  view->offset += index * view->stride[dim];
  view->ndim--;
  for (int d = dim; d < view->ndim; d++) {
    view->shape[d] = view->shape[d + 1];
    view->stride[d] = view->stride[d + 1];
  }
}

void tl_view_range(tl_view *view, int dim, int64_t first, int64_t count, int64_t step) {
  if (count > 0) view->offset += first * view->stride[dim];
  view->shape[dim] = count;
  if (count > 1) view->stride[dim] *= step; /* else nothing is reached by it, and it may be huge */
}

void tl_view_permute(tl_view *view, const int *dims) {
  const tl_view source = *view;
  for (int d = 0; d < source.ndim; d++) {
    view->shape[d] = source.shape[dims[d]];
    view->stride[d] = source.stride[dims[d]];
  }
}

/* A dimension behind those there are. */
static void append_dim(tl_view *view, int64_t size, int64_t stride) {
  view->shape[view->ndim] = size;
  view->stride[view->ndim++] = stride;
}

void tl_view_insert(tl_view *view, int dim) {
  int64_t stride = dim < view->ndim ? view->shape[dim] * view->stride[dim] : 1;
  append_dim(view, 1, stride);
  for (int d = view->ndim - 1; d > dim; d--) tl_view_transpose(view, d - 1, d);
}

void tl_view_diagonal(tl_view *view, int64_t offset, int a, int b) {
  int64_t rows = view->shape[a], columns = view->shape[b];
  int64_t stride_a = view->stride[a], stride_b = view->stride[b];
  if (offset < 0) {
    rows = -rows < offset ? rows + offset : 0;
  } else {
    columns = offset < columns ? columns - offset : 0;
  }
  int64_t size = rows < columns ? rows : columns;
  tl_view_select(view, a > b ? a : b, 0);
  tl_view_select(view, a > b ? b : a, 0);
  if (size > 0) view->offset += offset < 0 ? -offset * stride_a : offset * stride_b;
  append_dim(view, size, stride_a + stride_b);
}

void tl_view_windows(tl_view *view, int dim, int64_t size, int64_t step) {
  int64_t stride = view->stride[dim];
  tl_view_range(view, dim, 0, (view->shape[dim] - size) / step + 1, step);
  append_dim(view, size, stride);
}

void tl_view_reverse(tl_view *view, int dim) {
  int64_t size = view->shape[dim];
  if (size > 1) tl_view_range(view, dim, size - 1, size, -1);
}

bool tl_view_reshape(tl_view *out, const tl_view *view, int ndim, const int64_t *shape) {
  tl_view source = *view; /* out may be view */
  out->offset = source.offset;
  out->dtype = source.dtype;
  out->ndim = (uint8_t)ndim;
  memcpy(out->shape, shape, (size_t)ndim * sizeof *shape);
  set_contiguous(out);
  if (tl_view_is_contiguous(&source)) return true;

  /* Match groups of old dimensions that are contiguous among themselves with groups of new ones
   * that have the same product. */
  int64_t old_shape[TL_MAX_DIMS], old_stride[TL_MAX_DIMS];
  int old_ndim = 0;
  for (int d = 0; d < source.ndim; d++) {
    if (source.shape[d] == 1) continue;
    old_shape[old_ndim] = source.shape[d];
    old_stride[old_ndim++] = source.stride[d];
  }
  int from = 0, to = 0;
  while (from < old_ndim) {
    int from_end = from + 1, to_end = to;
    int64_t old_count = old_shape[from], new_count = 1;
    while (to_end < ndim && new_count < old_count) new_count *= shape[to_end++];
    while (new_count != old_count) {
      if (new_count < old_count) {
        new_count *= shape[to_end++];
      } else {
        old_count *= old_shape[from_end++];
      }
    }
    for (int d = from; d + 1 < from_end; d++) {
      if (old_stride[d] != old_shape[d + 1] * old_stride[d + 1]) return false;
    }
    int64_t step = old_stride[from_end - 1];
    for (int d = to_end - 1; d >= to; d--) {
      out->stride[d] = step;
      step *= shape[d];
    }
    from = from_end;
    to = to_end;
  }
  return true;
}

int64_t tl_view_element(const tl_view *view, int64_t index) {
  int64_t element = view->offset;
  for (int d = view->ndim - 1; d >= 0; d--) {
    element += index % view->shape[d] * view->stride[d];
    index /= view->shape[d];
  }
  return element;
}
