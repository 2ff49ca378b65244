"""Element-wise functions: a row for each, with the oracle over arrays of a wider type."""

import math

import numpy as np

from suite import DTYPES, FLOATS, HALVES, INTEGERS, Expected, rounded, specials, wide

each = lambda f: np.vectorize(f, otypes=[np.float64])


def lgamma(x):
    if math.isnan(x) or math.isinf(x):
        return abs(x)
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError): # too large, or a pole
        return math.inf


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


# Units in the last place that a float32 may be off, and a float64 (of the scalar C functions those
# without long double ones are taken).
CLOSE, SPECIAL = (2, 4), (4, 5)
EXACT = (0, 0)

# name, kind (see ops.def), low, high, oracle, units
UNARY = [
    ("neg", "NUMERIC", -100, 100, lambda x: -x, EXACT),
    ("abs", "NUMERIC", -100, 100, np.abs, EXACT),
    ("sign", "NUMERIC", -3, 3, lambda x: np.where(x != x, x, (x > 0) * 1 - (x < 0) * 1), EXACT),
    ("square", "NUMERIC", -100, 100, lambda x: x * x, EXACT),
    ("relu", "NUMERIC", -100, 100, lambda x: np.where(x < 0, 0, x), EXACT),
    ("sqrt", "REAL", 0, 100, np.sqrt, EXACT),
    ("rsqrt", "REAL", 0.01, 100, lambda x: 1 / np.sqrt(x), CLOSE),
    ("reciprocal", "REAL", -100, 100, lambda x: 1 / x, EXACT),
    ("exp", "REAL", -20, 20, np.exp, CLOSE),
    ("exp2", "REAL", -20, 20, np.exp2, CLOSE),
    ("expm1", "REAL", -20, 20, np.expm1, CLOSE),
    ("log", "REAL", 0, 100, np.log, CLOSE),
    ("log1p", "REAL", -1, 100, np.log1p, CLOSE),
    ("log2", "REAL", 0, 100, np.log2, CLOSE),
    ("log10", "REAL", 0, 100, np.log10, CLOSE),
    ("sin", "REAL", -10, 10, np.sin, CLOSE),
    ("cos", "REAL", -10, 10, np.cos, CLOSE),
    ("tan", "REAL", -10, 10, np.tan, CLOSE),
    ("asin", "REAL", -1, 1, np.arcsin, CLOSE),
    ("acos", "REAL", -1, 1, np.arccos, CLOSE),
    ("atan", "REAL", -10, 10, np.arctan, CLOSE),
    ("sinh", "REAL", -10, 10, np.sinh, CLOSE),
    ("cosh", "REAL", -10, 10, np.cosh, CLOSE),
    ("tanh", "REAL", -10, 10, np.tanh, CLOSE),
    ("asinh", "REAL", -10, 10, np.arcsinh, CLOSE),
    ("acosh", "REAL", 1, 10, np.arccosh, CLOSE),
    ("atanh", "REAL", -1, 1, np.arctanh, CLOSE),
    ("erf", "REAL", -4, 4, each(math.erf), SPECIAL),
    ("erfc", "REAL", -4, 4, each(math.erfc), SPECIAL),
    ("lgamma", "REAL", -10, 20, each(lgamma), SPECIAL),
    ("sigmoid", "REAL", -20, 20, sigmoid, CLOSE),
    ("silu", "REAL", -20, 20, lambda x: x * sigmoid(x), CLOSE),
    ("floor", "ROUND", -10, 10, np.floor, EXACT),
    ("ceil", "ROUND", -10, 10, np.ceil, EXACT),
    ("round", "ROUND", -10, 10, np.rint, EXACT),
    ("trunc", "ROUND", -10, 10, np.trunc, EXACT),
    ("frac", "REAL", -10, 10, lambda x: x - np.trunc(x), EXACT),
    ("isnan", "TEST", -10, 10, np.isnan, EXACT),
    ("isinf", "TEST", -10, 10, np.isinf, EXACT),
    ("isfinite", "TEST", -10, 10, np.isfinite, EXACT),
    ("logical_not", "TEST", -1, 1, lambda x: x == 0, EXACT),
    ("bitwise_not", "BITS", -100, 100, lambda x: ~x, EXACT),
]


def fmod(x, y):
    """The least integer over -1 does not trap."""
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    return np.fmod(x, np.where(y == -1, 1, y))


def remainder(x, y):
    rest = fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def floor_divide(x, y):
    if x.dtype.kind == "f":
        return np.floor(x / y)
    return np.where(y == -1, -x, (x - remainder(x, y)) // np.where(y == 0, 1, y))


def power(x, y):
    if x.dtype.kind == "f":
        return np.power(x, y)
    result = np.ones(np.broadcast_shapes(x.shape, y.shape), np.int64)
    x, y = np.broadcast_arrays(x, y)
    for bit in range(8): # of exponents below 256
        result = np.where(y >> bit & 1, result * x, result)
        x = x * x
    return result


def shift_left(x, y):
    """By a negative number: to the right."""
    left = np.where(y > 63, 0, x << np.clip(y, 0, 63))
    return np.where(y < 0, x >> np.clip(-y, 0, 63), left)


BINARY = [
    ("add", "NUMERIC", -50, 50, lambda x, y: x + y, EXACT, "x + y"),
    ("sub", "NUMERIC", -50, 50, lambda x, y: x - y, EXACT, "x - y"),
    ("mul", "NUMERIC", -20, 20, lambda x, y: x * y, EXACT, "x * y"),
    ("div", "REAL", -20, 20, lambda x, y: x / y, EXACT, "x / y"),
    ("floor_divide", "DIVISION", -20, 20, floor_divide, EXACT, "x // y"),
    ("remainder", "DIVISION", -20, 20, remainder, EXACT, "x % y"),
    ("fmod", "DIVISION", -20, 20, fmod, EXACT, None),
    ("pow", "POWER", 0, 9, power, CLOSE, "x ^ y"),
    ("maximum", "ORDER", -9, 9, np.maximum, EXACT, None),
    ("minimum", "ORDER", -9, 9, np.minimum, EXACT, None),
    ("atan2", "REAL", -10, 10, np.arctan2, CLOSE, None),
    ("hypot", "REAL", -10, 10, np.hypot, CLOSE, None),
    ("copysign", "REAL", -10, 10, np.copysign, EXACT, None),
    ("eq", "TEST", -3, 3, np.equal, EXACT, None),
    ("ne", "TEST", -3, 3, np.not_equal, EXACT, None),
    ("lt", "TEST", -3, 3, np.less, EXACT, None),
    ("le", "TEST", -3, 3, np.less_equal, EXACT, None),
    ("gt", "TEST", -3, 3, np.greater, EXACT, None),
    ("ge", "TEST", -3, 3, np.greater_equal, EXACT, None),
    ("logical_and", "TEST", -1, 1, lambda x, y: (x != 0) & (y != 0), EXACT, None),
    ("logical_or", "TEST", -1, 1, lambda x, y: (x != 0) | (y != 0), EXACT, None),
    ("logical_xor", "TEST", -1, 1, lambda x, y: (x != 0) ^ (y != 0), EXACT, None),
    ("bitwise_and", "BITS", -100, 100, lambda x, y: x & y, EXACT, "x & y"),
    ("bitwise_or", "BITS", -100, 100, lambda x, y: x | y, EXACT, "x | y"),
    ("bitwise_xor", "BITS", -100, 100, lambda x, y: x ^ y, EXACT, None),
    ("bitwise_left_shift", "SHIFT", 0, 70, shift_left, EXACT, "x << y"),
    ("bitwise_right_shift", "SHIFT", 0, 70, lambda x, y: shift_left(x, -y), EXACT, "x >> y"),
]

# Where NumPy has only C's double function, which is off by as much near the zeros.
ABSOLUTE = {"lgamma": 4e-15}


def computed(row, dtype, result, *arrays):
    """The oracle over operands of the dtype computed in, as values of the result's.  Where nothing
    may be off it is asked in that type, otherwise in a wider one."""
    name, kind, low, high, f, ulps = row[:6]
    if dtype in FLOATS:
        narrow = np.float64 if dtype == "float64" else np.float32
        arrays = [a.astype(narrow) for a in arrays]
        if ulps != EXACT:
            arrays = [wide(a, dtype) for a in arrays]
    elif kind == "ROUND":
        return arrays[0]
    elif dtype == "bool" and name in ON_BOOLS:
        f = ON_BOOLS[name]
    else:
        arrays = [a.astype(np.int64) for a in arrays]
    value = f(*arrays)
    if dtype in HALVES and result == dtype: # rounded to float32 first
        value = value.astype(np.float32)
    if result == "bool":
        value = value != 0
    return rounded(value, result)


def units(dtype, ulps):
    exact = ulps == EXACT
    return {"float64": ulps[1], "float32": ulps[0]}.get(dtype, 0 if exact else 1)


# What bools do where it is not what 0 and 1 do.
ON_BOOLS = {"bitwise_not": np.logical_not, "add": np.logical_or, "mul": np.logical_and}


def dtypes_of(kind, name):
    if kind in ("BITS", "SHIFT"):
        return INTEGERS + ["bool"] * (kind == "BITS")
    # Arithmetic on bools that PyTorch refuses, or computes in integers.
    without = name in ("neg", "square", "relu", "sub") or kind in ("DIVISION", "POWER", "ROUND")
    return [d for d in DTYPES if not (without and d == "bool")]


def types(kind, dtype):
    """Computed in, and of the result."""
    if kind == "REAL" and dtype not in FLOATS:
        return "float32", "float32"
    return dtype, "bool" if kind == "TEST" else dtype


def unary(suite, row):
    name, kind, low, high, f, ulps = row
    for dtype in dtypes_of(kind, name):
        compute, result = types(kind, dtype)
        arrays = [suite.lay(specials(dtype), dtype), suite.operand((3, 700), dtype, low, high)]
        arrays += [suite.operand(suite.shape(), dtype, low, high) for _ in range(4)]
        arrays += [suite.lay(suite.magnitudes((500,), dtype), dtype),
                   suite.operand((500,), dtype, -120, 120)]
        for x in arrays:
            value = computed(row, compute, result, x.a)
            call = suite.choose(["x:%s()", "tensor.%s(x)"]) % name
            if name == "neg" and suite.integer(0, 1):
                call = "-x"
            absolute = ABSOLUTE.get(name, 0) if result == "float64" else 0
            suite.add(name, call, [x], Expected(value, result, units(result, ulps), absolute))
        if kind == "REAL" and dtype not in FLOATS:
            continue
        for shape in [(), suite.shape(1), suite.shape(1)]:
            x = suite.operand(shape, dtype, low, high, fresh=True)
            value = computed(row, compute, result, x.a)
            absolute = ABSOLUTE.get(name, 0) if dtype == "float64" else 0
            suite.add(name + "_", "x:%s_()" % name, [x],
                      Expected(value, dtype, units(dtype, ulps), absolute))


def fit(kind, dtype, y):
    """Divisors of integers that are not 0, exponents that are not negative."""
    if dtype in FLOATS or dtype == "bool":
        return y
    if kind == "DIVISION":
        return np.where(y == 0, 3, y).astype(y.dtype)
    return np.abs(np.clip(y, -60, 60)).astype(y.dtype) if kind == "POWER" else y


def binary(suite, row):
    name, kind, low, high, f, ulps, sign = row
    for dtype in dtypes_of(kind, name):
        compute, result = types(kind, dtype)
        zeros = kind == "ORDER" # which of 0 and -0 is the larger is not said

        def expect(x, y, to=result):
            value = computed(row, compute, result, x, y)
            return Expected(value, to, units(to, ulps), zeros=zeros)

        special = specials(dtype)
        shifts = specials(dtype) if kind != "SHIFT" else np.arange(-70, 71, 7).clip(
            np.iinfo(dtype).min).astype(dtype)
        pairs = [(suite.lay(special[:, None], dtype),
                  suite.lay(fit(kind, dtype, shifts)[None, :], dtype))]
        pairs.append((suite.lay(suite.magnitudes((500,), dtype), dtype),
                      suite.lay(fit(kind, dtype, suite.magnitudes((500,), dtype)), dtype)))
        for at in range(5):
            shape = suite.shape() if at else (2, 300)
            x = suite.operand(shape, dtype, low, high)
            y = suite.operand(suite.narrowed(shape), dtype, low, high)
            if kind in ("DIVISION", "POWER") and dtype not in FLOATS:
                y = suite.lay(fit(kind, dtype, y.a), dtype)
            if suite.integer(0, 1) and kind not in ("DIVISION", "POWER", "SHIFT"):
                x, y = y, x
            pairs.append((x, y))
        for x, y in pairs:
            calls = ["x:%s(y)" % name, "tensor.%s(x, y)" % name] + [sign] * bool(sign)
            suite.add(name, suite.choose(calls), [x, y], expect(x.a, y.a))
        with_numbers(suite, row, dtype, expect)
        if kind == "REAL" and dtype not in FLOATS:
            continue
        for shape in [(), suite.shape(1), suite.shape(1)]:
            x = suite.operand(shape, dtype, low, high, fresh=True)
            y = suite.operand(suite.narrowed(shape), dtype, low, high)
            y = suite.lay(fit(kind, dtype, y.a), dtype)
            suite.add(name + "_", "x:%s_(y)" % name, [x, y], expect(x.a, y.a, dtype))


def with_numbers(suite, row, dtype, expect):
    """A number on either side is of the tensor's dtype."""
    name, kind, low, high, f, ulps, sign = row
    if dtype == "bool":
        return
    number = suite.integer(1, 9) if dtype in INTEGERS else suite.choose([0.1, 2.5, -3.0, 7.25])
    if kind in ("POWER", "SHIFT"):
        number = abs(number)
    narrow = dtype if dtype not in HALVES else "float32" # what halves are computed in
    value = rounded(np.array(number), narrow)
    x = suite.operand(suite.shape(1), dtype, low, high)
    form = lambda a, b: ("%s %s %s" % (a, sign.split()[1], b) if sign and suite.integer(0, 1)
                         else "tensor.%s(%s, %s)" % (name, a, b))
    suite.add(name, form("x", number), [x], expect(x.a, value))
    x = suite.operand(suite.shape(1), dtype, max(low, 1), high)
    suite.add(name, form(number, "x"), [x], expect(value, x.a))


def cases(suite):
    for row in UNARY:
        unary(suite, row)
    for row in BINARY:
        binary(suite, row)
