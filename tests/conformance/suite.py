"""Cases and the folder they are written to: operands and expected values lie one after the other in
one .npy file for each dtype, and manifest.lua says which call takes which of them.

A case is a call as Lua text, whose operands are x, y, z and w, and what it must give: tensors with
a tolerance, or a Lua value. NumPy has no bfloat16: such arrays are float32 here, and rounded."""

import os

import numpy as np

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8"]
DTYPES = FLOATS + INTEGERS + ["bool"]
HALVES = ["float16", "bfloat16"]

BITS = {"float32": 24, "float64": 53, "float16": 11, "bfloat16": 8}
LEAST = {"float32": -149, "float64": -1074, "float16": -24, "bfloat16": -133}
MOST = {"float32": 128, "float64": 1024, "float16": 16, "bfloat16": 128}


def array_type(dtype):
    return np.dtype("float32" if dtype == "bfloat16" else dtype)


def epsilon(dtype):
    return 2.0 ** (1 - BITS[dtype])


def largest(dtype):
    return (2 - epsilon(dtype)) * 2.0 ** (MOST[dtype] - 1)


def to_bfloat16(x):
    """Rounded once, ties to even, from float64 or wider by way of a float32 rounded to odd."""
    x = np.atleast_1d(x)
    near = x.astype(np.float32)
    if x.dtype.itemsize > 4:
        bits = near.view(np.uint32)
        inexact = (near.astype(x.dtype) != x) & np.isfinite(near) & (bits & 1 == 0)
        away = (np.abs(near).astype(x.dtype) > np.abs(x))
        near = np.where(inexact, np.where(away, bits - 1, bits + 1), bits).astype(np.uint32)
        near = near.view(np.float32)
    bits = near.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32)
    return np.where(np.isnan(near), near, rounded.view(np.float32)).astype(np.float32)


def rounded(x, dtype):
    """Values of any type as an array that holds those of the dtype; integers wrap around."""
    x = np.asarray(x)
    if dtype == "bfloat16":
        return to_bfloat16(x).reshape(x.shape)
    if dtype == "float16" and x.dtype == np.longdouble:
        x = x.astype(np.float64)
    return x.astype(array_type(dtype))


def wide(x, dtype):
    """The values in a type to compute the correctly rounded result in."""
    return x.astype(np.longdouble if dtype == "float64" else np.float64)


def specials(dtype):
    """Values with which things go wrong."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        values = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 7, 100]
        return np.array(values + [-1, -7] * (info.min < 0), dtype=dtype)
    least, tiny = 2.0 ** LEAST[dtype], 2.0 ** (LEAST[dtype] + BITS[dtype] - 1)
    values = [np.nan, np.inf, 0, least, tiny, largest(dtype), 0.5, 1, 1.5, 2, 2.5, 3, 1e-3, 1000]
    return rounded(np.array(values + [-v for v in values[1:]]), dtype)


class Operand:
    """An array and the layout in which Lua rebuilds it; of an expanded one, what is repeated."""

    def __init__(self, array, dtype, layout="contiguous", stored=None):
        self.a, self.dtype, self.layout = array, dtype, layout
        self.stored = array if stored is None else stored

    @property
    def shape(self):
        return self.a.shape


class Expected:
    """What a result must be: within so many units in the last place, or `absolute`; `zeros`: the
    sign of a zero is not looked at."""

    def __init__(self, array, dtype, ulps=0, absolute=0.0, zeros=False):
        self.a, self.dtype, self.ulps = rounded(array, dtype), dtype, ulps
        self.absolute, self.zeros = absolute, zeros


class Suite:
    """`step`: of the cases of each function, one in so many is written."""

    def __init__(self, seed, step):
        self.step, self.seen = step, {}
        self.random = np.random.default_rng(seed)
        self.inputs = {dtype: [] for dtype in DTYPES}
        self.outputs = {dtype: [] for dtype in DTYPES}
        self.lengths, self.lines = {}, []

    # ---- operands ----

    def integer(self, low, high):
        """From low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def choose(self, values):
        return values[self.integer(0, len(values) - 1)]

    def shape(self, least=0, most=4, empty=True):
        size = lambda: self.choose([0 if empty else 1, 1, 1] + [2, 3, 4, 5] * 3)
        return tuple(size() for _ in range(self.integer(least, most)))

    def values(self, shape, dtype, low=-10, high=10):
        """Random ones; integers from low to high, both included."""
        if dtype == "bool":
            return self.random.integers(0, 2, shape).astype(bool)
        if dtype in INTEGERS:
            info = np.iinfo(dtype)
            low, high = max(int(np.ceil(low)), info.min), min(int(high), info.max)
            return self.random.integers(low, high + 1, shape).astype(dtype)
        return rounded(self.random.uniform(low, high, shape), dtype)

    def magnitudes(self, shape, dtype):
        """Of either sign and any order of magnitude."""
        if dtype == "bool":
            return self.values(shape, dtype)
        sign = self.random.choice([-1, 1], shape)
        if dtype in INTEGERS:
            size = 2.0 ** self.random.uniform(0, np.iinfo(dtype).bits - 1.01, shape)
            return (sign * size).astype(np.int64).astype(dtype)
        exponent = self.random.uniform(LEAST[dtype], MOST[dtype] - 0.01, shape)
        return rounded(sign * np.longdouble(2) ** exponent, dtype)

    def lay(self, array, dtype, fresh=False):
        """In a random layout; `fresh`: one that can be written in place."""
        ndim = array.ndim
        layouts = ["fresh" if fresh else "contiguous", "selected"]
        layouts += ["ranged", "stepped", "permuted"] if ndim else []
        return Operand(array, dtype, self.choose(layouts))

    def operand(self, shape, dtype, low=-10, high=10, fresh=False):
        if shape and not fresh and self.integer(1, 6) == 1: # some dimensions repeat one value
            small = tuple(1 if size > 0 and self.integer(0, 1) else size for size in shape)
            values = self.values(small, dtype, low, high)
            return Operand(np.broadcast_to(values, shape), dtype, "expanded", values)
        return self.lay(self.values(shape, dtype, low, high), dtype, fresh)

    def narrowed(self, shape):
        """A shape that broadcasts to this one."""
        shape = tuple(1 if self.integer(1, 3) == 1 else size for size in shape)
        return shape[self.integer(0, len(shape)) if self.integer(1, 4) == 1 else 0:]

    def indices(self, shape, count, dtype="int64"):
        """Positions among so many, from 0, and the operand: from 1, or from the end."""
        at = self.random.integers(0, count, shape)
        from_end = self.random.integers(0, 4, shape) == 0
        return at, self.lay(np.where(from_end, at - count, at + 1).astype(dtype), dtype)

    # ---- cases ----

    def add(self, name, call, operands, *expected):
        """The call's results are tensors as expected: one, several, or a table of them."""
        self.line(name, call, operands,
                  lambda: "results = {%s}" % ", ".join(self.result(e) for e in expected))

    def add_value(self, name, call, operands, value):
        """The call gives the value of a Lua expression."""
        self.line(name, call, operands, lambda: "value = function() return %s end" % value)

    def add_error(self, name, call, operands, text):
        """The call returns; who waits for the result gets an error that begins so."""
        self.line(name, call, operands, lambda: "error = " + quoted(text))

    def line(self, name, call, operands, rest):
        number = self.seen.get(name, 0)
        self.seen[name] = number + 1
        if number % self.step:
            return
        listed = ", ".join(self.input(o) for o in operands)
        self.lines.append("{name = %s, call = %s, operands = {%s}, %s},"
                          % (quoted(name), quoted(call), listed, rest()))

    def place(self, pools, dtype, array):
        key = (id(pools), dtype)
        at = self.lengths.get(key, 0)
        pools[dtype].append(np.ascontiguousarray(array).ravel())
        self.lengths[key] = at + array.size
        return at

    def input(self, operand):
        at = self.place(self.inputs, operand.dtype, operand.stored)
        text = "{dtype = %s, at = %d, layout = %s, shape = %s" % (
            quoted(operand.dtype), at, quoted(operand.layout), sizes(operand.stored.shape))
        if operand.layout == "expanded":
            text += ", expanded = " + sizes(operand.a.shape)
        return text + "}"

    def result(self, expected):
        at = self.place(self.outputs, expected.dtype, expected.a)
        text = "{dtype = %s, at = %d, shape = %s" % (
            quoted(expected.dtype), at, sizes(expected.a.shape))
        if expected.ulps:
            text += ", ulps = %d" % expected.ulps
        if expected.absolute:
            text += ", absolute = %s" % float(expected.absolute).hex()
        return text + (", zeros = true}" if expected.zeros else "}")

    def write(self, folder):
        for kind, pools in ("operands", self.inputs), ("results", self.outputs):
            for dtype, arrays in pools.items():
                flat = np.concatenate(arrays or [np.zeros(0, array_type(dtype))])
                np.save(os.path.join(folder, "%s_%s.npy" % (kind, dtype)), flat)
        with open(os.path.join(folder, "manifest.lua"), "w") as file:
            file.write("return {\n%s\n}\n" % "\n".join(self.lines))


def sizes(shape):
    return "{%s}" % ", ".join(str(size) for size in shape)


def quoted(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')
