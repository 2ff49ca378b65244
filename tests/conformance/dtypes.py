"""Dtypes: casts between all pairs, promotion of all pairs, and what integers refuse."""

import numpy as np

from suite import DTYPES, FLOATS, INTEGERS, Expected, array_type, rounded, specials

# ---- casts ----


def to_integer(x, bits):
    """As C where it is defined, else the least one, as x86 has it."""
    x = np.trunc(x.astype(np.longdouble))
    bound = np.longdouble(2) ** (bits - 1)
    inside = (x >= -bound) & (x < bound)
    least = -2 ** (bits - 1)
    return np.where(inside, np.where(inside, x, 0).astype(np.int64), least)


def cast(x, source, target):
    if target == "bool":
        return x != 0
    if target in FLOATS:
        return rounded(x.astype(np.longdouble) if source == "int64" else x, target)
    if source in FLOATS:
        x = to_integer(x, 64 if target == "int64" else 32)
    return x.astype(target)


def numbers(dtype):
    """Values near the limits of every dtype."""
    edges = [2.0 ** p for p in (7, 8, 11, 15, 16, 24, 31, 32, 53, 62, 63, 64)]
    values = [e + d for e in edges for d in (-1, -0.5, 0, 0.5, 1, 3)] + [65504, 65519, 65520]
    values = np.array(values + [-v for v in values] + [0.25, 0.5, 0.75, 1.5, 2.5, -0.5, 127.9])
    if dtype == "bool":
        return specials(dtype)
    if dtype in FLOATS:
        return np.concatenate([rounded(values, dtype), specials(dtype)])
    values = to_integer(values, 64)
    info = np.iinfo(dtype)
    inside = values[(values >= info.min) & (values <= info.max)].astype(dtype)
    return np.concatenate([inside, specials(dtype)])


def casts(suite):
    for source in DTYPES:
        for target in DTYPES:
            edges = numbers(source)
            scale = suite.choose([1, 100, 1e4, 1e10, 1e20])
            for values in (edges, suite.values(suite.shape(), source, -scale, scale)):
                x = suite.lay(values, source)
                want = Expected(cast(values, source, target), target)
                suite.add("to", "x:to('%s')" % target, [x], want)
                y = suite.lay(np.zeros(values.shape, array_type(target)), target, fresh=True)
                suite.add("copy_", "x:copy_(y)", [y, x], want)


# ---- promotion ----

CATEGORY = {dtype: 2 if dtype in FLOATS else 1 if dtype in INTEGERS else 0 for dtype in DTYPES}

# PyTorch's table; the dtypes in the order of its rows.
ROWS = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool",
        "bfloat16"]
NAMES = {"u1": "uint8", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
         "f2": "float16", "f4": "float32", "f8": "float64", "b1": "bool", "bf": "bfloat16"}
TABLE = """
u1 i2 i2 i4 i8 f2 f4 f8 u1 bf
i2 i1 i2 i4 i8 f2 f4 f8 i1 bf
i2 i2 i2 i4 i8 f2 f4 f8 i2 bf
i4 i4 i4 i4 i8 f2 f4 f8 i4 bf
i8 i8 i8 i8 i8 f2 f4 f8 i8 bf
f2 f2 f2 f2 f2 f2 f4 f8 f2 f4
f4 f4 f4 f4 f4 f4 f4 f8 f4 f4
f8 f8 f8 f8 f8 f8 f8 f8 f8 f8
u1 i1 i2 i4 i8 f2 f4 f8 b1 bf
bf bf bf bf bf f4 f4 f8 bf bf
"""
PROMOTED = {(a, b): NAMES[word] for a, line in zip(ROWS, TABLE.split("\n")[1:])
            for b, word in zip(ROWS, line.split())}


def meet(a, b, rank_a, rank_b):
    """Ranks: 0 for a tensor with dimensions, 1 for one without, 2 for a number."""
    if rank_a == rank_b:
        return PROMOTED[a, b]
    if rank_a > rank_b:
        a, b = b, a
    return PROMOTED[a, b] if CATEGORY[b] > CATEGORY[a] else a


def quarters(suite, shape, dtype):
    """Few enough bits that every floating-point dtype has them, and their sums and products."""
    if dtype in FLOATS:
        return (suite.random.integers(-12, 13, shape) / 4).astype(array_type(dtype))
    return suite.values(shape, dtype, 0, 7)


ARITHMETIC = {"add": (np.add, np.logical_or), "mul": (np.multiply, np.logical_and)}


def meeting(suite, name, a, b, x, y, met):
    operation = ARITHMETIC[name][met == "bool"]
    if met in FLOATS:
        value = operation(x.astype(np.float64), y.astype(np.float64))
    else:
        value = operation(x.astype(np.int64), y.astype(np.int64))
    return Expected(value, met)


def promotion(suite):
    for a in DTYPES:
        for b in DTYPES:
            for ranks in (0, 0), (0, 1), (1, 0), (1, 1):
                x = quarters(suite, () if ranks[0] else (3, 2), a)
                y = quarters(suite, () if ranks[1] else (3, 2), b)
                operands = [suite.lay(x, a), suite.lay(y, b)]
                met = meet(a, b, *ranks)
                name = suite.choose(["add", "mul"])
                suite.add(name, "x:%s(y)" % name, operands,
                          meeting(suite, name, a, b, x, y, met))
                suite.add("lt", "x:lt(y)", operands, Expected(x < y, "bool"))
                condition = suite.lay(suite.values((3, 1), "bool"), "bool")
                chosen = np.where(condition.a, x.astype(np.float64), y)
                suite.add("where", "tensor.where(z, x, y)", operands + [condition],
                          Expected(chosen, met))
        for text, number, kind in ("2", 2, "int64"), ("1.5", 1.5, "float32"):
            for rank in 0, 1:
                x = quarters(suite, () if rank else (2, 3), a)
                met = meet(a, kind, rank, 2)
                value = meeting(suite, "mul", a, kind, x, np.array(number), met)
                suite.add("mul", "x * " + text, [suite.lay(x, a)], value)
                suite.add("mul", text + " * x", [suite.lay(x, a)], value)


# ---- integers ----


def refused(suite):
    """What no integer is the result of is an error where the values are waited for."""
    for dtype in INTEGERS:
        x = suite.operand((2, 3), dtype, 1, 100)
        zero = suite.values((3,), dtype, 1, 5)
        zero[suite.integer(0, 2)] = 0
        for name in "floor_divide", "remainder", "fmod":
            message = name + ": integer division by zero"
            suite.add_error(name, "x:%s(y)" % name, [x, suite.lay(zero, dtype)], message)
            suite.add_error(name, "x:%s(0)" % name, [x], message)
            y = suite.operand((4,), dtype, 1, 9, fresh=True)
            suite.add_error(name + "_", "y:%s_(0)" % name, [x, y], message)
        if dtype != "uint8":
            negative = suite.values((3,), dtype, 0, 3)
            negative[suite.integer(0, 2)] = -1
            suite.add_error("pow", "x ^ y", [x, suite.lay(negative, dtype)],
                            "pow: an integer to the power -1: convert it to a float dtype")


def cases(suite):
    casts(suite)
    promotion(suite)
    refused(suite)
