/* Views: how a run of elements in a storage is seen as a tensor.  Pure data; no memory is owned.
 *
 * Sizes, strides and offsets count elements.  Dimensions count from 0 here; the frontend turns
 * Lua's 1-based ones into these.  A 0-dimensional view has one element. */
#ifndef TL_TENSOR_VIEW_H
#define TL_TENSOR_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensor/dtype.h"
#include "tensor/status.h"

enum { TL_MAX_DIMS = 8, TL_SHAPE_TEXT = TL_MAX_DIMS * 21 };

typedef struct tl_view {
  int64_t offset;
  uint8_t dtype; /* tl_dtype */
  uint8_t ndim;
  int64_t shape[TL_MAX_DIMS];
  int64_t stride[TL_MAX_DIMS];
} tl_view;

/* A contiguous (row-major) view from offset 0.  TL_INVALID when a size is negative, or when the
 * number of bytes does not fit in an int64_t. */
tl_status tl_view_make(tl_view *view, tl_dtype dtype, int ndim, const int64_t *shape,
                       tl_error *error);

/* The contiguous view of the shape of another, whose number of elements is known to be fine. */
void tl_view_make_like(tl_view *view, tl_dtype dtype, const tl_view *like);

static inline int64_t tl_view_numel(const tl_view *view) {
  int64_t count = 1;
  for (int d = 0; d < view->ndim; d++) count *= view->shape[d];
  return count;
}

static inline bool tl_view_is_contiguous(const tl_view *view) {
  if (tl_view_numel(view) == 0) return true;
  int64_t step = 1;
  for (int d = view->ndim - 1; d >= 0; d--) {
    if (view->shape[d] != 1 && view->stride[d] != step) return false;
    step *= view->shape[d];
  }
  return true;
}

static inline bool tl_view_same_shape(const tl_view *a, const tl_view *b) {
  if (a->ndim != b->ndim) return false;
  for (int d = 0; d < a->ndim; d++) {
    if (a->shape[d] != b->shape[d]) return false;
  }
  return true;
}

/* Whether two views of one storage name the same elements in the same order, and whether they can
 * name a common element at all (by their extents: never a false "no"). */
bool tl_view_is_same(const tl_view *a, const tl_view *b);
bool tl_view_may_overlap(const tl_view *a, const tl_view *b);

/* Whether two places of a view can be one element of storage, as in an expanded view: then writing
 * through it has no defined result.  Never a false "no". */
bool tl_view_may_fold(const tl_view *view);

/* Whether a 2-dimensional view lies in memory by rows or by columns, as BLAS takes it: one stride
 * is 1 and the other reaches over what it separates. */
bool tl_view_is_matrix(const tl_view *view);

/* "2x3", or "()" for a 0-dimensional view; `text` holds TL_SHAPE_TEXT bytes and is returned. */
const char *tl_shape_text(int ndim, const int64_t *shape, char *text);
const char *tl_view_shape_text(const tl_view *view, char *text);

/* The shape that `a` and `b` broadcast to, right-aligned as in NumPy, as a contiguous view of
 * `dtype`.  `name` is the operation, for the error. */
tl_status tl_view_broadcast(tl_view *out, tl_dtype dtype, const tl_view *a, const tl_view *b,
                            const char *name, tl_error *error);

/* `view` repeated along its missing and size-1 dimensions (stride 0) to the given shape, to which
 * it must broadcast; tl_view_broadcasts_to asks that. */
bool tl_view_broadcasts_to(const tl_view *view, int ndim, const int64_t *shape);
void tl_view_expand(tl_view *out, const tl_view *view, int ndim, const int64_t *shape);

void tl_view_transpose(tl_view *view, int a, int b);
void tl_view_select(tl_view *view, int dim, int64_t index);
/* Elements first, first + step, ... of one dimension, `count` of them. */
void tl_view_range(tl_view *view, int dim, int64_t first, int64_t count, int64_t step);

/* The dimensions in another order: dims[0] becomes the first. */
void tl_view_permute(tl_view *view, const int *dims);
/* One more dimension, of size 1, before `dim`. */
void tl_view_insert(tl_view *view, int dim);
/* The diagonal of dimensions a and b, as a last dimension in their place: elements (i, i + offset).
 * It is empty when the offset leads out of them. */
void tl_view_diagonal(tl_view *view, int64_t offset, int a, int b);
/* Windows of `size` elements, `step` apart: dimension `dim` counts them, a last one is in them. */
void tl_view_windows(tl_view *view, int dim, int64_t size, int64_t step);
/* One dimension from its end to its beginning. */
void tl_view_reverse(tl_view *view, int dim);

/* Another shape over the same elements without moving them; false when the strides do not allow
 * it.  The number of elements must agree. */
bool tl_view_reshape(tl_view *out, const tl_view *view, int ndim, const int64_t *shape);

/* The element of storage at logical (row-major) position `index`. */
int64_t tl_view_element(const tl_view *view, int64_t index);

#endif
