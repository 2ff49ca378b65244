#include "tensor/program.h"

/* Whether dimensions a and b (next to each other) are one run of elements in every view. */
static bool mergeable(const tl_loop *loop, int nviews, int a, int b) {
  for (int v = 0; v < nviews; v++) {
    if (loop->stride[v][a] != loop->shape[b] * loop->stride[v][b]) return false;
  }
  return true;
}

static void move_dim(tl_loop *loop, int nviews, int to, int from) {
  loop->shape[to] = loop->shape[from];
  for (int v = 0; v < nviews; v++) loop->stride[v][to] = loop->stride[v][from];
}

void tl_loop_make(tl_loop *loop, int nviews, const tl_view *const *views) {
  /* Sort the dimensions by the first view's strides (a fresh result is sorted already). */
  int order[TL_MAX_DIMS], count = 0;
  for (int d = 0; d < views[0]->ndim; d++) {
    if (views[0]->shape[d] == 1) continue;
    int at = count++;
    while (at > 0 && views[0]->stride[order[at - 1]] < views[0]->stride[d]) {
      order[at] = order[at - 1];
      at--;
    }
    order[at] = d;
  }
  loop->ndim = count;
  for (int d = 0; d < count; d++) {
    loop->shape[d] = views[0]->shape[order[d]];
    for (int v = 0; v < nviews; v++) loop->stride[v][d] = views[v]->stride[order[d]];
  }
  int last = 0;
  for (int d = 1; d < count; d++) {
    if (mergeable(loop, nviews, last, d)) {
      int64_t merged = loop->shape[last];
      move_dim(loop, nviews, last, d);
      loop->shape[last] *= merged;
    } else {
      move_dim(loop, nviews, ++last, d);
    }
  }
  loop->ndim = last + 1;
  if (count == 0) {
    loop->shape[0] = 1;
    for (int v = 0; v < nviews; v++) loop->stride[v][0] = 1;
  }
}
