/* Views: other dimensions and strides over the same elements.  None of these moves or waits for a
 * value, flip's copy apart. */
#include "frontend/arguments.h"
#include "frontend/enqueue.h"
#include "frontend/functions.h"

static int push_view(lua_State *L, const tl_tensor *x, const tl_view *view) {
  tl_tensor_alias(L, x, view);
  return 1;
}

/* A view can have more elements than its storage; their number must fit for copies of it too. */
static void check_numel(lua_State *L, const char *name, int ndim, const int64_t *shape) {
  tl_view widest;
  tl_error error;
  if (tl_view_make(&widest, TL_float64, ndim, shape, &error) != TL_OK) {
    tl_fail(L, "%s: %s", name, error.text);
  }
}

static void check_room(lua_State *L, const char *name, int ndim) {
  if (ndim <= TL_MAX_DIMS) return;
  tl_fail(L, "%s: %d dimensions are too many: at most %d", name, ndim, TL_MAX_DIMS);
}

/* A dimension of a list, the value on top of the stack. */
static int check_listed(lua_State *L, const char *name, const tl_view *view) {
  int is_integer = 0;
  char text[TL_SHAPE_TEXT];
  lua_Integer given = 0;
  if (lua_type(L, -1) == LUA_TNUMBER) given = lua_tointegerx(L, -1, &is_integer);
  if (!is_integer) {
    tl_fail(L, "%s: dimension %s is not an integer", name,
            tl_describe_value(L, lua_gettop(L)));
  }
  int64_t dim = given < 0 ? view->ndim + given : given - 1;
  if (given == 0 || dim < 0 || dim >= view->ndim) {
    tl_fail(L, "%s: dimension %I is out of range for a tensor of size %s", name,
            (LUAI_UACINT)given, tl_view_shape_text(view, text));
  }
  return (int)dim;
}

/* Dimensions, all different, in arguments first .. last: numbers or one table.  Returns how many,
 * and puts them as ones from 0. */
static int check_dims(lua_State *L, int first, int last, const char *name, const tl_view *view,
                      int *dims) {
  bool seen[TL_MAX_DIMS] = {false};
  bool table = lua_type(L, first) == LUA_TTABLE;
  if (table && last > first) tl_fail(L, "%s: too many arguments after the dimensions", name);
  int64_t count = table ? (int64_t)lua_rawlen(L, first) : last - first + 1;
  for (int64_t i = 0; i < count; i++) {
    if (table) {
      lua_rawgeti(L, first, i + 1);
    } else {
      lua_pushvalue(L, first + (int)i);
    }
    int dim = check_listed(L, name, view);
    if (seen[dim]) tl_fail(L, "%s: dimension %d is given twice", name, dim + 1);
    seen[dim] = true;
    dims[i] = dim; /* as they differ there is room */
    lua_pop(L, 1);
  }
  return (int)count;
}

/* The dimensions from argument 2 on, or all when there are none. */
static int check_dims_or_all(lua_State *L, const char *name, const tl_view *view, int *dims) {
  int last = lua_gettop(L);
  while (last > 1 && lua_isnil(L, last)) last--;
  if (last > 1) return check_dims(L, 2, last, name, view, dims);
  for (int d = 0; d < view->ndim; d++) dims[d] = d;
  return view->ndim;
}

/* ---- dimensions added, removed and moved ---- */

static int unsqueeze(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "unsqueeze");
  tl_check_count(L, 2, "unsqueeze");
  tl_view view = x->view;
  char text[TL_SHAPE_TEXT];
  int64_t given = tl_check_integer(L, 2, "unsqueeze");
  int64_t at = given < 0 ? view.ndim + 1 + given : given - 1;
  if (given == 0 || at < 0 || at > view.ndim) {
    tl_fail(L, "unsqueeze: a tensor of size %s gets no dimension %I: 1 to %d, or -%d to -1",
            tl_view_shape_text(&view, text), (LUAI_UACINT)given, view.ndim + 1, view.ndim + 1);
  }
  check_room(L, "unsqueeze", view.ndim + 1);
  tl_view_insert(&view, (int)at);
  return push_view(L, x, &view);
}

static int squeeze(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "squeeze");
  int dims[TL_MAX_DIMS];
  bool chosen[TL_MAX_DIMS] = {false};
  int count = check_dims_or_all(L, "squeeze", &x->view, dims);
  for (int i = 0; i < count; i++) chosen[dims[i]] = true;
  tl_view view = x->view;
  for (int d = view.ndim - 1; d >= 0; d--) {
    if (chosen[d] && view.shape[d] == 1) tl_view_select(&view, d, 0);
  }
  return push_view(L, x, &view);
}

static int permute(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "permute");
  int dims[TL_MAX_DIMS];
  int count = check_dims(L, 2, lua_gettop(L), "permute", &x->view, dims);
  if (count != x->view.ndim) {
    char text[TL_SHAPE_TEXT];
    tl_fail(L, "permute: %d dimensions do not order the %d of a tensor of size %s", count,
            x->view.ndim, tl_view_shape_text(&x->view, text));
  }
  tl_view view = x->view;
  tl_view_permute(&view, dims);
  return push_view(L, x, &view);
}

/* movedim(x, from, to): numbers, or tables of as many; the others keep their order. */
static int movedim(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "movedim");
  tl_check_count(L, 3, "movedim");
  lua_settop(L, 3);
  int from[TL_MAX_DIMS], to[TL_MAX_DIMS], order[TL_MAX_DIMS];
  bool moved[TL_MAX_DIMS] = {false}, taken[TL_MAX_DIMS] = {false};
  int count = check_dims(L, 2, 2, "movedim", &x->view, from);
  int places = check_dims(L, 3, 3, "movedim", &x->view, to);
  if (count != places) {
    tl_fail(L, "movedim: %d dimensions cannot move to %d places", count, places);
  }
  for (int i = 0; i < count; i++) {
    order[to[i]] = from[i];
    moved[from[i]] = taken[to[i]] = true;
  }
  for (int d = 0, next = 0; d < x->view.ndim; d++) {
    if (taken[d]) continue;
    while (moved[next]) next++;
    order[d] = next++;
  }
  tl_view view = x->view;
  tl_view_permute(&view, order);
  return push_view(L, x, &view);
}

/* ---- repeated ---- */

static int expand_to(lua_State *L, const char *name, const tl_tensor *x, int ndim,
                     const int64_t *given) {
  tl_view view;
  char text[TL_SHAPE_TEXT], text_given[TL_SHAPE_TEXT];
  int64_t shape[TL_MAX_DIMS];
  int more = ndim - x->view.ndim;
  tl_view_shape_text(&x->view, text);
  for (int d = 0; d < ndim; d++) {
    shape[d] = given[d];
    if (given[d] != -1) continue;
    if (d < more) {
      tl_fail(L, "%s: size -1 keeps one, and dimension %d of %s is new to %s", name, d + 1,
              tl_shape_text(ndim, given, text_given), text);
    }
    shape[d] = more >= 0 ? x->view.shape[d - more] : 1; /* fewer dimensions are refused below */
  }
  check_numel(L, name, ndim, shape);
  if (!tl_view_broadcasts_to(&x->view, ndim, shape)) {
    tl_fail(L, "%s: cannot expand %s to %s", name, text, tl_shape_text(ndim, given, text_given));
  }
  tl_view_expand(&view, &x->view, ndim, shape);
  return push_view(L, x, &view);
}

static int expand_named(lua_State *L, const char *name) {
  const tl_tensor *x = tl_tensor_check(L, 1, name);
  int64_t shape[TL_MAX_DIMS];
  int ndim = tl_check_size(L, 2, name, true, shape);
  return expand_to(L, name, x, ndim, shape);
}

static int expand(lua_State *L) { return expand_named(L, "expand"); }

static int broadcast_to(lua_State *L) { return expand_named(L, "broadcast_to"); }

static int expand_as(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "expand_as");
  const tl_view *other = &tl_tensor_check(L, 2, "expand_as")->view;
  tl_check_count(L, 2, "expand_as");
  return expand_to(L, "expand_as", x, other->ndim, other->shape);
}

/* ---- parts ---- */

static int narrow(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "narrow");
  tl_check_count(L, 4, "narrow");
  tl_view view = x->view;
  int dim = tl_check_dim(L, 2, "narrow", &view);
  int64_t given = tl_check_integer(L, 3, "narrow"), count = tl_check_integer(L, 4, "narrow");
  int64_t size = view.shape[dim], first = given < 0 ? size + given : given - 1;
  if (given == 0 || first < 0 || first > size || count < 0 || count > size - first) {
    char text[TL_SHAPE_TEXT];
    tl_fail(L, "narrow: %I elements from %I are out of range for dimension %d of a tensor of "
            "size %s", (LUAI_UACINT)count, (LUAI_UACINT)given, dim + 1,
            tl_view_shape_text(&view, text));
  }
  tl_view_range(&view, dim, first, count, 1);
  return push_view(L, x, &view);
}

static int select_one(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "select");
  tl_check_count(L, 3, "select");
  tl_view view = x->view;
  int dim = tl_check_dim(L, 2, "select", &view);
  tl_check_integer(L, 3, "select");
  tl_view_select(&view, dim, tl_check_index(L, 3, "select", &view, dim));
  return push_view(L, x, &view);
}

/* diagonal(x, offset = 0, a = 1, b = 2) */
static int diagonal(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "diagonal");
  tl_check_count(L, 4, "diagonal");
  tl_view view = x->view;
  if (view.ndim < 2) tl_fail(L, "diagonal: wants at least 2 dimensions, not %d", view.ndim);
  int64_t offset = lua_isnoneornil(L, 2) ? 0 : tl_check_integer(L, 2, "diagonal");
  int a = lua_isnoneornil(L, 3) ? 0 : tl_check_dim(L, 3, "diagonal", &view);
  int b = lua_isnoneornil(L, 4) ? 1 : tl_check_dim(L, 4, "diagonal", &view);
  if (a == b) tl_fail(L, "diagonal: dimension %d is given twice", a + 1);
  tl_view_diagonal(&view, offset, a, b);
  return push_view(L, x, &view);
}

/* unfold(x, dim, size, step): sliding windows */
static int unfold(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "unfold");
  tl_check_count(L, 4, "unfold");
  tl_view view = x->view;
  char text[TL_SHAPE_TEXT];
  int dim = tl_check_dim(L, 2, "unfold", &view);
  int64_t size = tl_check_integer(L, 3, "unfold"), step = tl_check_integer(L, 4, "unfold");
  if (size < 1 || step < 1) {
    tl_fail(L, "unfold: windows of %I elements, %I apart, are none: both must be at least 1",
            (LUAI_UACINT)size, (LUAI_UACINT)step);
  }
  if (size > view.shape[dim]) {
    tl_fail(L, "unfold: a window of %I elements does not fit into dimension %d of a tensor of "
            "size %s", (LUAI_UACINT)size, dim + 1, tl_view_shape_text(&view, text));
  }
  check_room(L, "unfold", view.ndim + 1);
  tl_view_windows(&view, dim, size, step);
  check_numel(L, "unfold", view.ndim, view.shape);
  return push_view(L, x, &view);
}

/* ---- copies ---- */

/* A view with negative strides is nothing for the user, so it is copied. */
static int flip(lua_State *L) {
  const tl_tensor *x = tl_tensor_check(L, 1, "flip");
  int dims[TL_MAX_DIMS];
  int count = check_dims_or_all(L, "flip", &x->view, dims);
  tl_view view = x->view;
  for (int i = 0; i < count; i++) tl_view_reverse(&view, dims[i]);
  tl_enqueue_copy(L, TL_OP_flip, tl_tensor_alias(L, x, &view), (tl_dtype)view.dtype);
  return 1;
}

const luaL_Reg tl_view_functions[] = {
    {"unsqueeze", unsqueeze}, {"squeeze", squeeze},           {"permute", permute},
    {"movedim", movedim},     {"expand", expand},             {"broadcast_to", broadcast_to},
    {"expand_as", expand_as}, {"narrow", narrow},             {"select", select_one},
    {"diagonal", diagonal},   {"unfold", unfold},             {"flip", flip},
    {NULL, NULL},
};
