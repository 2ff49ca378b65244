"""Indexing by tensors: gather, scatter and the like; loops over the definitions are the oracle."""

import numpy as np

from reductions import Along
from suite import DTYPES, FLOATS, INTEGERS, Expected


def adding(target, at, value):
    """Sums in the dtype, in order: small whole numbers, so that none rounds."""
    target[at] = (target[at] + value) if target.dtype != bool else (target[at] | value)


def whole(suite, shape, dtype, fresh=False):
    values = suite.values(shape, dtype, -4, 4)
    return suite.lay(np.asarray(np.rint(values)) if dtype in FLOATS else values, dtype, fresh)


def both(suite, name, text, x, others, value, dtype):
    """The function that copies, and the one in place."""
    suite.add(name, "x:%s(%s)" % (name, text), [x] + others, Expected(value, dtype))
    fresh = suite.lay(x.a, dtype, fresh=True)
    suite.add(name + "_", "x:%s_(%s)" % (name, text), [fresh] + others, Expected(value, dtype))


def reached(index, axis):
    """Where each element of an index for gather or scatter points."""
    for at in np.ndindex(index.shape):
        yield at, at[:axis] + (index[at],) + at[axis + 1:]


def along_dimension(suite, dtype):
    for _ in range(4):
        x = whole(suite, suite.shape(1, 3, empty=False), dtype)
        one = Along(suite, x.a.ndim, several=False, all=False)
        axis, size = one.axis, x.a.shape[one.axis]
        shape = tuple(suite.integer(0, s) if d != axis else suite.integer(0, 6)
                      for d, s in enumerate(x.a.shape))
        index, i = suite.indices(shape, size)
        value = np.zeros(shape, x.a.dtype)
        for at, source in reached(index, axis):
            value[at] = x.a[source]
        suite.add("gather", "x:gather(%s, y)" % one.dims, [x, i], Expected(value, dtype))
        source = whole(suite, shape, dtype)
        put, added = x.a.copy(), x.a.copy()
        for at, target in reached(index, axis):
            put[target] = source.a[at]
            adding(added, target, source.a[at])
        both(suite, "scatter", one.dims + ", y, z", x, [i, source], put, dtype)
        both(suite, "scatter_add", one.dims + ", y, z", x, [i, source], added, dtype)
        slices(suite, dtype, x, one)

        order, i = suite.indices(tuple(1 if d != axis and suite.integer(0, 1) else s
                                       for d, s in enumerate(x.a.shape)), size)
        spread = np.broadcast_to(order, x.a.shape)
        suite.add("take_along_dim", "x:take_along_dim(y, %s)" % one.dims, [x, i],
                  Expected(np.take_along_axis(x.a, spread, axis), dtype))
        flat, i = suite.indices(suite.shape(1, 2), x.a.size)
        suite.add("take_along_dim", "x:take_along_dim(y)", [x, i],
                  Expected(x.a.ravel()[flat.ravel()], dtype))


def slices(suite, dtype, x, one):
    axis = one.axis
    index, i = suite.indices((suite.integer(0, 6),), x.a.shape[axis])
    suite.add("index_select", "x:index_select(%s, y)" % one.dims, [x, i],
              Expected(np.take(x.a, index, axis), dtype))
    shape = x.a.shape[:axis] + index.shape + x.a.shape[axis + 1:]
    source = whole(suite, shape, dtype)
    copied, added, filled = x.a.copy(), x.a.copy(), x.a.copy()
    for n, at in enumerate(index):
        place = (slice(None),) * axis + (at,)
        copied[place] = np.take(source.a, n, axis)
        adding(added, place, np.take(source.a, n, axis))
        filled[place] = 1
    both(suite, "index_copy", one.dims + ", y, z", x, [i, source], copied, dtype)
    both(suite, "index_add", one.dims + ", y, z", x, [i, source], added, dtype)
    text = one.dims + ", y, " + ("true" if dtype == "bool" else "1")
    both(suite, "index_fill", text, x, [i], filled, dtype)


def anywhere(suite, dtype):
    for _ in range(4):
        x = whole(suite, suite.shape(1, 3, empty=False), dtype)
        index, i = suite.indices(suite.shape(0, 2), x.a.size)
        suite.add("take", "x:take(y)", [x, i], Expected(x.a.ravel()[index], dtype))
        source = whole(suite, index.shape, dtype)
        put, added = x.a.copy().ravel(), x.a.copy().ravel()
        for at in np.ndindex(index.shape):
            put[index[at]] = source.a[at]
            adding(added, index[at], source.a[at])
        both(suite, "put", "y, z", x, [i, source], put.reshape(x.a.shape), dtype)
        both(suite, "put", "y, z, true", x, [i, source], added.reshape(x.a.shape), dtype)

        rows, i = suite.indices(suite.shape(0, 2), x.a.shape[0])
        suite.add("index", suite.choose(["x:index(y)", "x[y]"]), [x, i],
                  Expected(x.a[rows], dtype))
        source = whole(suite, suite.narrowed(x.a[rows].shape), dtype)
        spread = np.broadcast_to(source.a, x.a[rows].shape)
        put, added = x.a.copy(), x.a.copy()
        for at in np.ndindex(rows.shape):
            put[rows[at]] = spread[at]
            adding(added, rows[at], spread[at])
        both(suite, "index_put", "y, z", x, [i, source], put, dtype)
        both(suite, "index_put", "y, z, true", x, [i, source], added, dtype)
        if x.a.ndim > 1:
            columns, j = suite.indices(suite.narrowed(rows.shape), x.a.shape[1])
            suite.add("index", "x[{y, z}]", [x, i, j], Expected(x.a[rows, columns], dtype))
            suite.add("index", "x:index{ {}, y}", [x, j], Expected(x.a[:, columns], dtype))
            suite.add("index", "x[{-1, y}]", [x, j], Expected(x.a[-1, columns], dtype))


def masks(suite, dtype):
    for _ in range(4):
        x = whole(suite, suite.shape(), dtype)
        mask = suite.operand(suite.narrowed(x.a.shape), "bool")
        spread = np.broadcast_to(mask.a, x.a.shape)
        number, text = (True, "true") if dtype == "bool" else (7, "7")
        both(suite, "masked_fill", "y, " + text, x, [mask], np.where(spread, number, x.a), dtype)
        suite.add("masked_select", "x:masked_select(y)", [x, mask], Expected(x.a[spread], dtype))
        source = whole(suite, (x.a.size + 1,), dtype)
        value = x.a.copy()
        value[spread] = source.a[:int(spread.sum())]
        both(suite, "masked_scatter", "y, z", x, [mask, source], value, dtype)
        full = suite.operand(x.a.shape, "bool")
        suite.add("index", "x:index(y)", [x, full], Expected(x.a[full.a], dtype))
        for name in "nonzero", "argwhere":
            suite.add(name, "x:%s()" % name, [x], Expected(np.argwhere(x.a) + 1, "int64"))
        y = whole(suite, suite.narrowed(x.a.shape), dtype)
        suite.add("where", "tensor.where(z, x, y)", [x, y, mask],
                  Expected(np.where(mask.a, x.a, y.a), dtype))


def out_of_range(suite):
    """An index that is not there is an error where the values are waited for."""
    for dtype in INTEGERS[:4]:
        x = suite.operand((4, 3), "float32")
        for wrong in (0, 5, -5):
            values = np.array([[1, wrong, 2]], dtype)
            i, line = suite.lay(values, dtype), suite.lay(values[0], dtype)
            suite.add_error("gather", "x:gather(1, y)", [x, i], "gather: index %d" % wrong)
            suite.add_error("index_select", "x:index_select(1, y)", [x, line],
                            "index_select: index %d" % wrong)
            suite.add_error("index", "x[y]", [x, i], "index: index %d" % wrong)


def cases(suite):
    for dtype in DTYPES:
        along_dimension(suite, dtype)
        anywhere(suite, dtype)
        masks(suite, dtype)
    out_of_range(suite)
