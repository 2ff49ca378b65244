"""Reductions, normalisations and scans, along one dimension, several, or all.

A float32 sum may be off by 4 units of 2^-23 of the sum of the absolute values, what is made of sums
by a few times that; halves are computed in float32 and may be off by one unit more."""

import numpy as np

from suite import DTYPES, FLOATS, HALVES, Expected, epsilon, rounded, specials, wide

NUMBERS = [dtype for dtype in DTYPES if dtype != "bool"]


def computed_in(dtype):
    return "float32" if dtype not in FLOATS or dtype in HALVES else dtype


def result_of(dtype):
    return dtype if dtype in FLOATS else "float32"


def close(value, dtype, scale, times=4):
    """Within so many roundings of what is at most `scale`."""
    scale = np.max(scale, initial=0, where=np.isfinite(scale))
    return Expected(value, dtype, 1 if dtype in HALVES else 0,
                    float(times * epsilon(computed_in(dtype)) * scale), zeros=True)


class Along:
    """Random dimensions of an array: as NumPy's axis and keepdims, and as Lua's arguments."""

    def __init__(self, suite, ndim, several=True, all=True):
        kinds = ["one"] * 2 * (ndim > 0) + ["several"] * (several and ndim > 1)
        kinds += ["all"] * (all or not kinds)
        kind = suite.choose(kinds)
        self.keep = kind != "all" and suite.integer(0, 1) == 1
        self.axis = None
        if kind == "one":
            self.axis = suite.integer(0, ndim - 1)
            dims = self.lua(suite, self.axis, ndim)
        elif kind == "several":
            count = suite.integer(2, ndim)
            self.axis = tuple(int(d) for d in suite.random.permutation(ndim)[:count])
            dims = "{%s}" % ", ".join(self.lua(suite, d, ndim) for d in self.axis)
        else:
            dims = "nil"
        self.dims = dims
        self.text = dims + (", true" if self.keep else "") if kind != "all" else ""

    @staticmethod
    def lua(suite, axis, ndim):
        return str(suite.choose([axis + 1, axis - ndim]))

    def options(self):
        return {"axis": self.axis, "keepdims": self.keep}

    def reduce(self, f, x):
        return f(x, **self.options())


def operands(suite, dtype, low, high, count=6, least=0, empty=True, special=True):
    """Random ones, among them a long one, and now and then special values."""
    for at in range(count):
        shape = suite.choose([(3, 700), (1500,), (60, 5, 7)]) if at == 0 else suite.shape(
            least, 4, empty)
        x = suite.operand(shape, dtype, low, high)
        if special and at > 2 and dtype in FLOATS and x.layout != "expanded":
            x.a = x.stored = np.where(suite.random.random(x.shape) < 0.1,
                                      suite.random.choice(specials(dtype), x.shape), x.a)
        yield x


# ---- reductions ----


def sums(suite, dtype):
    for x in operands(suite, dtype, -10, 10):
        along = Along(suite, x.a.ndim)
        v = wide(x.a, dtype) if dtype in FLOATS else x.a.astype(np.int64)
        total, scale = along.reduce(np.sum, v), along.reduce(np.sum, np.abs(v).astype(float))
        if dtype in FLOATS:
            suite.add("sum", "x:sum(%s)" % along.text, [x], close(total, dtype, scale))
        else:
            suite.add("sum", "x:sum(%s)" % along.text, [x], Expected(total, "int64"))
        count = x.a.size // max(np.size(total), 1)
        if x.a.size and dtype != "bool":
            suite.add("mean", "x:mean(%s)" % along.text, [x],
                      close(total / count, result_of(dtype), scale / count))


def products(suite, dtype):
    low, high = (0.5, 1.5) if dtype in FLOATS else (-9, 9)
    for x in operands(suite, dtype, low, high, special=False):
        along = Along(suite, x.a.ndim)
        v = wide(x.a, dtype) if dtype in FLOATS else x.a.astype(np.int64)
        value = along.reduce(np.prod, v)
        each = np.abs(value).astype(float) * (1 + x.a.size / 8)
        expected = close(value, dtype, each) if dtype in FLOATS else Expected(value, "int64")
        suite.add("prod", "x:prod(%s)" % along.text, [x], expected)


def extremes(suite, dtype):
    for x in operands(suite, dtype, -9, 9, empty=False):
        values = x.a.astype(np.float64) if dtype in HALVES else x.a
        along = Along(suite, x.a.ndim)
        for name, f in ("amax", np.max), ("amin", np.min):
            suite.add(name, "x:%s(%s)" % (name, along.text), [x],
                      Expected(along.reduce(f, values), dtype, zeros=True))
        one = Along(suite, x.a.ndim, several=False)
        for name, f, g in ("max", np.max, np.argmax), ("min", np.min, np.argmin):
            at = np.asarray(g(values, axis=one.axis)) + 1
            if one.axis is None:
                suite.add(name, "x:%s()" % name, [x], Expected(f(values), dtype, zeros=True))
                suite.add("arg" + name, "x:arg%s()" % name, [x], Expected(at, "int64"))
                continue
            at = np.expand_dims(at, one.axis) if one.keep else at
            suite.add(name, "x:%s(%s)" % (name, one.text), [x],
                      Expected(one.reduce(f, values), dtype, zeros=True), Expected(at, "int64"))
            suite.add("arg" + name, "x:arg%s(%s)" % (name, one.text), [x], Expected(at, "int64"))


def questions(suite, dtype):
    for x in operands(suite, dtype, -1, 1):
        x.a = x.stored = np.where(suite.random.random(x.shape) < 0.5, 0, x.a).astype(x.a.dtype)
        x.layout = suite.lay(x.a, dtype).layout
        along = Along(suite, x.a.ndim)
        true = x.a != 0
        for name, f, result in (("any", np.any, "bool"), ("all", np.all, "bool"),
                                ("count_nonzero", np.sum, "int64")):
            suite.add(name, "x:%s(%s)" % (name, along.text), [x],
                      Expected(along.reduce(f, true), result))


def spread(suite, dtype):
    """The variance of large numbers close to each other, too."""
    far = suite.choose([0, 0, 50])
    for x in operands(suite, dtype, far - 3, far + 3, empty=False, special=False):
        along = Along(suite, x.a.ndim)
        correction = suite.choose([0, 1])
        v = x.a.astype(np.longdouble)
        var = np.var(v, axis=along.axis, keepdims=along.keep, ddof=correction)
        text = along.dims + ", {keepdim = %s, correction = %d}" % (
            str(along.keep).lower(), correction)
        result, scale = result_of(dtype), np.max(var, initial=1, where=np.isfinite(var)) + far
        suite.add("var", "x:var(%s)" % text, [x], close(var, result, scale, 16))
        suite.add("std", "x:std(%s)" % text, [x], close(np.sqrt(var), result, scale, 16))


def norm(v, p, axis, keepdims):
    size = np.abs(v)
    if p in (np.inf, -np.inf):
        return (np.max if p > 0 else np.min)(size, axis=axis, keepdims=keepdims)
    if p == 0:
        return np.sum(v != 0, axis=axis, keepdims=keepdims)
    return np.sum(size ** p, axis=axis, keepdims=keepdims) ** (1 / np.longdouble(p))


def norms(suite, dtype):
    for x in operands(suite, dtype, -5, 5, empty=False, special=False):
        for text, p in ("2", 2), ("1", 1), ("0", 0), ("3", 3), ("1/0", np.inf), ("-1/0", -np.inf):
            along = Along(suite, x.a.ndim)
            value = norm(x.a.astype(np.longdouble), p, **along.options())
            call = "x:norm(%s, %s)" % (text, along.text) if along.text else "x:norm(%s)" % text
            suite.add("norm", call, [x], close(value, result_of(dtype), value, 16))


def exponentials(suite, dtype):
    for x in operands(suite, dtype, -20, 20, least=1, empty=False, special=False):
        v = x.a.astype(np.longdouble)
        along = Along(suite, x.a.ndim)
        power = np.exp(v)
        value = np.log(along.reduce(np.sum, power))
        result = result_of(dtype)
        suite.add("logsumexp", "x:logsumexp(%s)" % along.text, [x],
                  close(value, result, np.abs(value) + 20, 8))
        one = Along(suite, x.a.ndim, several=False, all=False)
        total = np.sum(power, axis=one.axis, keepdims=True)
        suite.add("softmax", "x:softmax(%s)" % one.dims, [x],
                  close(power / total, result, 1, 16))
        suite.add("log_softmax", "x:log_softmax(%s)" % one.dims, [x],
                  close(v - np.log(total), result, 40, 8))


def at_infinity(suite, dtype):
    """Lines of which none, some or all are infinite or nan."""
    values = np.array([-np.inf, -np.inf, 0, 1, np.inf, np.nan])
    for least in (6, 4, 3, 2):
        v = suite.random.choice(values[:least], (20, suite.integer(1, 3)))
        x = suite.lay(rounded(v, dtype), dtype)
        away = v - np.max(v, axis=1, keepdims=True)
        power = np.exp(away)
        total = np.sum(power, axis=1, keepdims=True)
        suite.add("softmax", "x:softmax(2)", [x], close(power / total, dtype, 1, 4))
        suite.add("log_softmax", "x:log_softmax(2)", [x], close(away - np.log(total), dtype, 2))
        suite.add("logsumexp", "x:logsumexp(2)", [x],
                  close(np.logaddexp.reduce(v, axis=1), dtype, 2))
        suite.add("logcumsumexp", "x:logcumsumexp(2)", [x],
                  close(np.logaddexp.accumulate(v, axis=1), dtype, 4))
        suite.add("cumsum", "x:cumsum(2)", [x], Expected(np.cumsum(v, axis=1), dtype))
        suite.add("cumprod", "x:cumprod(2)", [x], Expected(np.cumprod(v, axis=1), dtype,
                                                           zeros=True))
        suite.add("prod", "x:prod(2)", [x], Expected(np.prod(v, axis=1), dtype, zeros=True))
        for text, p in ("2", 2), ("1", 1), ("0", 0), ("3", 3), ("1/0", np.inf), ("-1/0", -np.inf):
            suite.add("norm", "x:norm(%s, 2)" % text, [x],
                      close(norm(v, p, 1, False), dtype, 2))
        suite.add("var", "x:var(2)", [x], close(np.var(v, axis=1, ddof=1), dtype, 2))
        suite.add("nansum", "x:nansum(2)", [x], Expected(np.nansum(v, axis=1), dtype))
        suite.add("nanmean", "x:nanmean(2)", [x], close(np.nanmean(v, axis=1), dtype, 2))


def without_nan(suite, dtype):
    for x in operands(suite, dtype, -5, 5, empty=False, special=False):
        x.a = x.stored = np.where(suite.random.random(x.shape) < 0.3, np.nan, x.a).astype(
            x.a.dtype)
        x.layout = suite.lay(x.a, dtype).layout
        along = Along(suite, x.a.ndim)
        v = wide(x.a, dtype)
        scale = along.reduce(np.nansum, np.abs(v))
        suite.add("nansum", "x:nansum(%s)" % along.text, [x],
                  close(along.reduce(np.nansum, v), dtype, scale))
        mean = along.reduce(np.nansum, v) / along.reduce(np.sum, ~np.isnan(v))
        suite.add("nanmean", "x:nanmean(%s)" % along.text, [x],
                  Expected(mean, dtype, 2, float(8 * epsilon(computed_in(dtype)) * 5)))


# ---- scans ----


def scans(suite, dtype):
    result = dtype if dtype in FLOATS else "int64"
    for x in operands(suite, dtype, -3, 3, least=1, special=False):
        one = Along(suite, x.a.ndim, several=False, all=False)
        v = wide(x.a, dtype) if dtype in FLOATS else x.a.astype(np.int64)
        scale = np.cumsum(np.abs(v), axis=one.axis).astype(float)
        value = np.cumsum(v, axis=one.axis)
        count = max(x.shape[one.axis], 1)
        expect = lambda to: (close(value, to, scale, count) if dtype in FLOATS
                             else Expected(value, to))
        suite.add("cumsum", "x:cumsum(%s)" % one.dims, [x], expect(result))
        fresh = suite.lay(x.a, dtype, fresh=True)
        if dtype != "bool":
            suite.add("cumsum_", "x:cumsum_(%s)" % one.dims, [fresh], expect(dtype))
    low, high = (0.5, 1.5) if dtype in FLOATS else (-3, 3)
    for x in operands(suite, dtype, low, high, least=1, special=False):
        one = Along(suite, x.a.ndim, several=False, all=False)
        v = wide(x.a, dtype) if dtype in FLOATS else x.a.astype(np.int64)
        value = np.cumprod(v, axis=one.axis)
        count = max(x.shape[one.axis], 1)
        expect = lambda to: (close(value, to, np.abs(value).astype(float), count)
                             if dtype in FLOATS else Expected(value, to))
        suite.add("cumprod", "x:cumprod(%s)" % one.dims, [x], expect(result))
        fresh = suite.lay(x.a, dtype, fresh=True)
        if dtype != "bool":
            suite.add("cumprod_", "x:cumprod_(%s)" % one.dims, [fresh], expect(dtype))
    for x in operands(suite, dtype, -9, 9, least=1):
        one = Along(suite, x.a.ndim, several=False, all=False)
        for name, f in ("cummax", np.maximum), ("cummin", np.minimum):
            value = Expected(f.accumulate(x.a, axis=one.axis), dtype, zeros=True)
            suite.add(name, "local v, i = x:%s(%s); return v, x:take_along_dim(i, %s)" % (
                name, one.dims, one.dims), [x], value, value)


def logcumsumexp(suite, dtype):
    for x in operands(suite, dtype, -20, 20, least=1, special=False):
        one = Along(suite, x.a.ndim, several=False, all=False)
        value = np.logaddexp.accumulate(x.a.astype(np.longdouble), axis=one.axis)
        suite.add("logcumsumexp", "x:logcumsumexp(%s)" % one.dims, [x],
                  close(value, result_of(dtype), np.abs(value).astype(float) + 20,
                        4 + max(x.shape[one.axis], 1)))


def cases(suite):
    for dtype in DTYPES:
        sums(suite, dtype)
        products(suite, dtype)
        questions(suite, dtype)
        scans(suite, dtype)
        extremes(suite, dtype)
    for dtype in NUMBERS:
        spread(suite, dtype)
        norms(suite, dtype)
        exponentials(suite, dtype)
    for dtype in FLOATS:
        without_nan(suite, dtype)
        at_infinity(suite, dtype)
        logcumsumexp(suite, dtype)
