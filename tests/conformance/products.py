"""Products of matrices and vectors, whole comparisons, and element-wise functions of several steps.

A product of k terms may be off by 2 + k / 8 units of 2^-23 (float32) of the sum of their absolute
values; integers are exact.  A function of several steps may be off by one unit for each step, of
the largest value on the way."""

import math

import numpy as np

from elementwise import each
from reductions import close
from suite import DTYPES, FLOATS, INTEGERS, Expected, epsilon, largest, specials, wide


# ---- products ----

REFUSED = ["bool"]

def multiplied(suite, name, call, f, operands, dtype):
    """f over the operands; the terms are of the last size of the first."""
    arrays = [x.a.astype(np.longdouble if dtype == "float64" else
                         np.float64 if dtype in FLOATS else np.int64) for x in operands]
    value = f(*arrays)
    if dtype not in FLOATS:
        suite.add(name, call, operands, Expected(value, dtype))
        return
    scale = f(*[np.abs(a) for a in arrays])
    terms = max(x.a.shape[-1] if x.a.ndim else 1 for x in operands)
    suite.add(name, call, operands, close(value, dtype, scale, 2 + terms / 8))


def products(suite, dtype):
    low, high = (-2, 2) if dtype in FLOATS else (-9, 9)
    operand = lambda *shape: suite.operand(shape, dtype, low, high)
    for at in range(5):
        n, k, m = (suite.integer(0, 7) for _ in range(3)) if at else (33, 65, 17)
        a, b = operand(n, k), operand(k, m)
        multiplied(suite, "outer", "x:outer(y)", np.outer, [operand(n), operand(m)], dtype)
        multiplied(suite, "einsum", "tensor.einsum('ij->j', x)", lambda v: v.sum(0), [a],
                   dtype if dtype in FLOATS else "int64")
        if dtype in REFUSED:
            continue
        multiplied(suite, "mm", "x:mm(y)", np.matmul, [a, b], dtype)
        multiplied(suite, "mv", "x:mv(y)", np.matmul, [a, operand(k)], dtype)
        multiplied(suite, "dot", "x:dot(y)", np.dot, [operand(k), operand(k)], dtype)
        batch = suite.integer(0, 3)
        multiplied(suite, "bmm", "x:bmm(y)", np.matmul,
                   [operand(batch, n, k), operand(batch, k, m)], dtype)
        outer = suite.shape(0, 2)
        left = suite.narrowed(outer) + suite.choose([(n, k), (k,)] if not outer else [(n, k)])
        right = suite.narrowed(outer) + (k, m)
        multiplied(suite, "matmul", "x:matmul(y)", np.matmul,
                   [operand(*left), operand(*right)], dtype)
        multiplied(suite, "einsum", "tensor.einsum('ik,kj->ij', x, y)", np.matmul, [a, b], dtype)
        multiplied(suite, "einsum", "tensor.einsum('bik,bkj->ij', x, y)",
                   lambda v, w: np.einsum("bik,bkj->ij", v, w),
                   [operand(2, n, k), operand(2, k, m)], dtype)
        added = suite.operand(suite.narrowed((n, m)), dtype, low, high)
        target = suite.operand((n, m), dtype, low, high, fresh=True)
        beta, alpha = suite.integer(0, 3), suite.integer(1, 3)
        f = lambda v, w, z: beta * v + alpha * (w @ z)
        options = "{beta = %d, alpha = %d}" % (beta, alpha)
        multiplied(suite, "addmm", "x:addmm(y, z, %s)" % options, f, [added, a, b], dtype)
        multiplied(suite, "addmm_", "x:addmm_(y, z, %s)" % options, f, [target, a, b], dtype)


# ---- comparisons of whole tensors ----


def comparisons(suite, dtype):
    for _ in range(4):
        x = suite.operand(suite.shape(), dtype, -2, 2)
        y = suite.lay(x.a.copy(), dtype)
        suite.add_value("equal", "x:equal(y)", [x, y], "true")
        suite.add_value("equal", "x == y", [x, y], "true")
        suite.add_value("allclose", "tensor.allclose(x, y)", [x, y], "true")
        if x.a.size:
            other = x.a.copy()
            at = tuple(suite.integer(0, size - 1) for size in other.shape)
            other[at] = ~other[at] if dtype == "bool" else other[at] + 1
            different = suite.lay(other, dtype)
            suite.add_value("equal", "tensor.equal(x, y)", [x, different], "false")
            suite.add_value("allclose", "tensor.allclose(x, y)", [x, different], "false")
            suite.add_value("allclose", "x:allclose(y, 0, 2)", [x, different], "true")
    if dtype in FLOATS:
        missing = suite.lay(np.array([1, np.nan], x.a.dtype), dtype)
        suite.add_value("equal", "x:equal(x:clone())", [missing], "false")
        suite.add_value("allclose", "x:allclose(x:clone())", [missing], "false")


# ---- functions of several steps ----

erf = each(math.erf)


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


# name, Lua's arguments, oracle, how many steps
STEPS = [
    ("leaky_relu", "", lambda x: np.where(x < 0, 0.01 * x, x), 1),
    ("leaky_relu", "0.25", lambda x: np.where(x < 0, 0.25 * x, x), 1),
    ("elu", "", lambda x: np.where(x < 0, np.expm1(x), x), 2),
    ("elu", "1.5", lambda x: np.where(x < 0, 1.5 * np.expm1(x), x), 3),
    ("gelu", "", lambda x: x / 2 * (1 + erf(x.astype(float) * math.sqrt(0.5))), 6),
    ("gelu", "'tanh'", gelu_tanh, 8),
    ("softplus", "", lambda x: np.where(x > 20, x, np.log1p(np.exp(x))), 3),
    ("softplus", "2, 8", lambda x: np.where(2 * x > 8, x, np.log1p(np.exp(2 * x)) / 2), 3),
    ("deg2rad", "", lambda x: x * (np.pi / 180), 2),
    ("rad2deg", "", lambda x: x * (180 / np.pi), 2),
    ("clamp", "-2, 3", lambda x: np.clip(x, -2, 3), 0),
    ("clamp", "nil, 1", lambda x: np.minimum(x, 1), 0),
    ("clamp", "2", lambda x: np.maximum(x, 2), 0),
]


def stepwise(value, dtype, steps, scale):
    """Halves are rounded after every step."""
    return Expected(value, dtype, 0, float(steps * epsilon(dtype) * scale), zeros=True)


def several_steps(suite, dtype):
    for name, text, f, steps in STEPS:
        for at in range(3):
            x = suite.operand(suite.shape(0 if at else 1), dtype, -9, 9, fresh=True)
            v = x.a.astype(np.longdouble if dtype == "float64" else np.float64)
            value = f(v)
            scale = np.max(np.abs(value), initial=10)
            suite.add(name, "x:%s(%s)" % (name, text), [x], stepwise(value, dtype, steps, scale))
            suite.add(name + "_", "x:%s_(%s)" % (name, text), [x],
                      stepwise(value, dtype, steps, scale))
    extremes = specials(dtype)
    x = suite.lay(extremes, dtype, fresh=True)
    v = extremes.astype(np.float64)
    replaced = np.nan_to_num(v, nan=0, posinf=largest(dtype), neginf=-largest(dtype))
    for name in "nan_to_num", "nan_to_num_":
        suite.add(name, "x:%s()" % name, [x], Expected(replaced, dtype))
        suite.add(name, "x:%s(1, 2, 3)" % name, [x],
                  Expected(np.nan_to_num(v, nan=1, posinf=2, neginf=3), dtype))
    suite.add("clamp", "x:clamp(-1, 1)", [x], Expected(np.clip(v, -1, 1), dtype)) # nan stays
    for name, f in (("lerp", lambda x, y, z: x + (y - x) * z),
                    ("addcmul", lambda x, y, z: x + y * z),
                    ("addcdiv", lambda x, y, z: x + y / z)):
        for _ in range(4):
            shape = suite.shape()
            x = suite.operand(shape, dtype, -4, 4, fresh=True)
            y = suite.operand(suite.narrowed(shape), dtype, -4, 4)
            z = suite.operand(suite.narrowed(shape), dtype, 0.5, 4)
            arrays = [wide(o.a, dtype) for o in (x, y, z)]
            want = stepwise(f(*arrays), dtype, 3, 32)
            suite.add(name, "x:%s(y, z)" % name, [x, y, z], want)
            suite.add(name + "_", "x:%s_(y, z)" % name, [x, y, z], want)
            if name != "lerp":
                scaled = arrays[0] + 3 * (f(*arrays) - arrays[0])
                suite.add(name, "x:%s(y, z, 3)" % name, [x, y, z],
                          stepwise(scaled, dtype, 4, 64))


def cases(suite):
    for dtype in DTYPES:
        comparisons(suite, dtype)
    for dtype in FLOATS + INTEGERS:
        products(suite, dtype)
    for dtype in FLOATS:
        several_steps(suite, dtype)
