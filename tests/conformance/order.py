"""Sorting, searching, counting, and what is chosen along a dimension.  nan is the largest; equal
elements stay in order where a function promises that, else the indices are followed to values."""

import numpy as np

from reductions import Along, close
from suite import DTYPES, FLOATS, HALVES, INTEGERS, Expected, specials

FOLLOWED = "local v, i = x:%s(%s); return v, x:take_along_dim(i, %s)"


def sort_keys(x):
    return x.astype(np.float32) if x.dtype == np.float16 else x


def argsort(x, axis, descending):
    x = sort_keys(x)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(turned, axis)


def lines(suite, dtype, count=6, empty=True, special=True):
    """Operands with at least one dimension, many equal elements, and now and then special ones."""
    for at in range(count):
        shape = (suite.choose([(1500,), (4, 300), (300, 4)]) if at == 0
                 else suite.shape(1, 4, empty))
        x = suite.operand(shape, dtype, -9, 9)
        if dtype in FLOATS:
            x.a, x.stored = np.round(x.a), np.round(x.stored)
            if special and at > 2 and x.layout != "expanded":
                x.a = x.stored = np.where(suite.random.random(shape) < 0.2,
                                          suite.random.choice(specials(dtype), shape), x.a)
        yield x, Along(suite, len(shape), several=False, all=False)


def sorting(suite, dtype):
    for x, one in lines(suite, dtype):
        descending = suite.integer(0, 1) == 1
        at = argsort(x.a, one.axis, descending)
        value = Expected(np.take_along_axis(x.a, at, one.axis), dtype)
        text = "%s, %s" % (one.dims, str(descending).lower())
        suite.add("sort", "x:sort(%s)" % text, [x], value, Expected(at + 1, "int64"))
        suite.add("argsort", "x:argsort(%s)" % text, [x], Expected(at + 1, "int64"))
        first = argsort(x.a, 0, False)
        suite.add("msort", "x:msort()", [x], Expected(np.take_along_axis(x.a, first, 0), dtype))


def choosing(suite, dtype):
    for x, one in lines(suite, dtype, empty=False):
        axis, size = one.axis, x.shape[one.axis]
        k, largest = suite.integer(0, size), suite.integer(0, 1) == 1
        ordered = np.take_along_axis(x.a, argsort(x.a, axis, largest), axis)
        value = Expected(np.take(ordered, range(k), axis), dtype, zeros=True)
        suite.add("topk", FOLLOWED % ("topk", "%d, %s, %s" % (k, one.dims, str(largest).lower()),
                                      one.dims), [x], value, value)
        ordered = np.take_along_axis(x.a, argsort(x.a, axis, False), axis)
        k = suite.integer(1, size)
        value = Expected(np.take(ordered, [k - 1], axis), dtype, zeros=True)
        suite.add("kthvalue", FOLLOWED % ("kthvalue", "%d, %s, true" % (k, one.dims), one.dims),
                  [x], value, value)
        middle = np.take(ordered, [(size - 1) // 2], axis)
        if dtype in FLOATS:
            missing = np.isnan(x.a).any(axis=axis, keepdims=True)
            middle = np.where(missing, np.nan, middle)
        value = Expected(middle, dtype, zeros=True)
        suite.add("median", FOLLOWED % ("median", one.dims + ", true", one.dims), [x], value,
                  value)
        flat = np.sort(sort_keys(x.a), axis=None)
        whole = np.nan if dtype in FLOATS and np.isnan(x.a).any() else flat[(x.a.size - 1) // 2]
        suite.add("median", "x:median()", [x], Expected(whole, dtype, zeros=True))
    for x, one in lines(suite, dtype, empty=False, special=False):
        value = Expected(modes(x.a, one.axis), dtype, zeros=True)
        suite.add("mode", FOLLOWED % ("mode", one.dims + ", true", one.dims), [x], value, value)


def modes(x, axis):
    """The least of the most frequent."""
    def of_line(line):
        values, counts = np.unique(line, return_counts=True)
        return values[np.argmax(counts)]
    return np.expand_dims(np.apply_along_axis(of_line, axis, x), axis)


def searching(suite, dtype):
    for at in range(4):
        boundaries = np.sort(suite.values((suite.integer(0, 9),), dtype, -9, 9))
        x = suite.operand(suite.shape(), dtype, -9, 9)
        right = suite.integer(0, 1) == 1
        index = np.searchsorted(boundaries, x.a, "right" if right else "left") + 1
        sorted_ = suite.lay(boundaries, dtype)
        options = ", {right = %s}" % str(right).lower()
        want = Expected(index, "int64")
        suite.add("searchsorted", "y:searchsorted(x%s)" % options, [x, sorted_], want)
        suite.add("bucketize", "x:bucketize(y%s)" % options, [x, sorted_], want)
        among = suite.operand(suite.shape(0, 2), dtype, -9, 9)
        suite.add("isin", "x:isin(y)", [x, among], Expected(np.isin(x.a, among.a), "bool"))
    for x, one in lines(suite, dtype):
        values, first, inverse, counts = np.unique(sort_keys(x.a), True, True, True,
                                                   equal_nan=False)
        has_nan = dtype in FLOATS and np.isnan(x.a).any()
        if not has_nan: # each nan is one of its own, in which order is not said
            suite.add("unique", "x:unique{return_inverse = true, return_counts = true}", [x],
                      Expected(values, dtype, zeros=True),
                      Expected(inverse.reshape(x.shape) + 1, "int64"), Expected(counts, "int64"))
        flat = x.a.ravel()
        begins = np.ones(flat.size, bool)
        begins[1:] = flat[1:] != flat[:-1]
        run = np.cumsum(begins)
        suite.add("unique_consecutive",
                  "x:unique_consecutive{return_inverse = true, return_counts = true}", [x],
                  Expected(flat[begins], dtype), Expected(run.reshape(x.shape), "int64"),
                  Expected(np.bincount(run)[1:] if flat.size else run, "int64"))


def counting(suite):
    for dtype in INTEGERS:
        for _ in range(4):
            at = suite.random.integers(0, 9, suite.integer(0, 50))
            x = suite.lay((at + 1).astype(dtype), dtype)
            least = suite.integer(0, 12)
            suite.add("bincount", "x:bincount{minlength = %d}" % least, [x],
                      Expected(np.bincount(at, minlength=least), "int64"))
            weights = suite.operand(at.shape, "float64")
            suite.add("bincount", "x:bincount{weights = y}", [x, weights],
                      Expected(np.bincount(at, weights.a), "float64", absolute=1e-12))
            at = suite.random.integers(0, 5, suite.shape())
            suite.add("one_hot", "x:one_hot(5)", [suite.lay((at + 1).astype(dtype), dtype)],
                      Expected(np.eye(5)[at], "int64"))
    for dtype in FLOATS[:2]:
        for _ in range(6):
            x = suite.operand(suite.shape(), dtype, -9, 9)
            bins = suite.integer(1, 12)
            low, high = suite.choose([(-9, 9), (-4, 4), (0, 5)])
            count = np.histogram(x.a, bins, (low, high))[0]
            suite.add("histc", "x:histc(%d, %d, %d)" % (bins, low, high), [x],
                      Expected(count, dtype))


def between(suite):
    for dtype in FLOATS[:2]:
        for x, one in lines(suite, dtype, empty=False, special=False):
            q = suite.choose([0, 0.25, 0.3, 0.5, 0.9, 1])
            value = np.quantile(x.a.astype(np.float64), q, axis=one.axis, keepdims=one.keep)
            suite.add("quantile", "x:quantile(%s, %s)" % (q, one.text), [x],
                      close(value, dtype, 9))
            several = np.quantile(x.a.astype(np.float64), [0.1, q, 0.75])
            suite.add("quantile", "x:quantile{0.1, %s, 0.75}" % q, [x], close(several, dtype, 9))
    for dtype in DTYPES:
        for x, one in lines(suite, dtype, special=False):
            n = suite.integer(0, 2)
            value = x.a.astype(float) if dtype in HALVES else x.a
            suite.add("diff", "x:diff(%d, %s)" % (n, one.dims), [x],
                      Expected(np.diff(value, n, one.axis), dtype))


def cases(suite):
    for dtype in DTYPES:
        sorting(suite, dtype)
        choosing(suite, dtype)
        searching(suite, dtype)
    counting(suite)
    between(suite)
