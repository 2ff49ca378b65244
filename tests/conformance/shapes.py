"""Shapes, views, joining and creation: values are moved, never changed."""

import numpy as np

from suite import DTYPES, FLOATS, Expected, array_type

lua = lambda values: ", ".join(str(int(v)) for v in values)


class Moves:
    """What can be done to any array, as (name, Lua call, array) for one that is at hand."""

    def __init__(self, suite):
        self.suite = suite

    def dim(self, ndim, count=None):
        """A dimension as NumPy's axis and as Lua counts it."""
        axis = self.suite.integer(0, ndim - 1)
        return axis, self.suite.choose([axis + 1, axis - ndim])

    def of_any(self, a):
        s, shape = self.suite, a.shape
        for name in "clone", "contiguous":
            yield name, "x:%s()" % name, a
        yield "flatten", "x:flatten()", a.reshape(-1)
        for name in "reshape", "reshape_as":
            size = self.resized(a.size)
            if name == "reshape_as":
                yield name, "x:reshape_as(tensor.zeros{%s})" % lua(size), a.reshape(size)
            else:
                yield name, "x:reshape{%s}" % lua(size), a.reshape(size)
        size = self.resized(a.size)
        yield "view", "x:clone():view{%s}" % lua(size), a.reshape(size)
        yield "view_as", "x:clone():view_as(tensor.zeros{%s})" % lua(size), a.reshape(size)
        at = s.integer(0, a.ndim)
        dim = s.choose([at + 1, at - a.ndim - 1])
        yield "unsqueeze", "x:unsqueeze(%d)" % dim, np.expand_dims(a, at)
        yield "squeeze", "x:squeeze()", np.squeeze(a)
        order = s.random.permutation(a.ndim)
        if a.ndim:
            yield "permute", "x:permute(%s)" % lua(order + 1), np.transpose(a, order)
        more = (3,) * s.integer(0, 2)
        wider = more + tuple(4 if size == 1 else size for size in shape)
        for name in "expand", "broadcast_to":
            yield name, "x:%s{%s}" % (name, lua(wider)), np.broadcast_to(a, wider)
        yield ("expand_as", "x:expand_as(tensor.zeros{%s})" % lua(wider),
               np.broadcast_to(a, wider))
        yield "atleast_1d", "x:atleast_1d()", np.atleast_1d(a)
        yield "atleast_2d", "x:atleast_2d()", np.atleast_2d(a)
        yield "atleast_3d", "x:atleast_3d()", np.atleast_3d(a)
        yield "flip", "x:flip()", np.flip(a)
        shift = s.integer(-7, 7)
        yield "roll", "x:roll(%d)" % shift, np.roll(a, shift)
        times = tuple(s.integer(0, 3) for _ in range(s.integer(1, max(a.ndim, 1) + 1)))
        yield "tile", "x:tile(%s)" % lua(times), np.tile(a, times)
        n = s.integer(0, 3)
        yield "repeat_interleave", "x:repeat_interleave(%d)" % n, np.repeat(a, n)

    def resized(self, count):
        """A random size of so many elements, of at most 5 dimensions."""
        size, rest = [], count
        while rest > 1 and len(size) < 4 and self.suite.integer(0, 3):
            divisor = self.suite.choose([d for d in range(1, rest + 1) if rest % d == 0])
            size.append(divisor)
            rest //= divisor
        return tuple(size) + ((rest,) if rest != 1 or not size else ())

    def of_dims(self, a):
        s, n = self.suite, a.ndim
        for name in "transpose", "swapaxes":
            (i, d), (j, e) = self.dim(n), self.dim(n)
            yield name, "x:%s(%d, %d)" % (name, d, e), np.swapaxes(a, i, j)
        (i, d), (j, e) = self.dim(n), self.dim(n)
        yield "movedim", "x:movedim(%d, %d)" % (d, e), np.moveaxis(a, i, j)
        i, d = self.dim(n)
        yield "flip", "x:flip(%d)" % d, np.flip(a, i)
        shift = s.integer(-7, 7)
        yield "roll", "x:roll(%d, %d)" % (shift, d), np.roll(a, shift, i)
        times = s.integer(0, 3)
        yield ("repeat_interleave", "x:repeat_interleave(%d, %d)" % (times, d),
               np.repeat(a, times, i))
        size = a.shape[i]
        first = s.integer(0, size)
        length = s.integer(0, size - first)
        if first < size:
            part = np.take(a, range(first, first + length), i)
            yield "narrow", "x:narrow(%d, %d, %d)" % (d, first + 1, length), part
            at = s.choose([first + 1, first - size])
            yield "select", "x:select(%d, %d)" % (d, at), np.take(a, first, i)
        if size == 1:
            yield "squeeze", "x:squeeze(%d)" % d, np.squeeze(a, i)
        last = s.integer(i, n - 1)
        merged = a.shape[:i] + (int(np.prod(a.shape[i:last + 1])),) + a.shape[last + 1:]
        yield "flatten", "x:flatten(%d, %d)" % (d, last + 1), a.reshape(merged)
        if size > 0 and n < 4: # 8 dimensions are the most
            split = self.resized(size)
            yield ("unflatten", "x:unflatten(%d, %s)" % (d, lua(split)),
                   a.reshape(a.shape[:i] + split + a.shape[i + 1:]))
        if size > 0:
            window, step = s.integer(1, size), s.integer(1, 3)
            windows = np.lib.stride_tricks.sliding_window_view(a, window, i)
            yield ("unfold", "x:unfold(%d, %d, %d)" % (d, window, step),
                   windows[(slice(None),) * i + (slice(None, None, step),)])

    def of_matrices(self, a):
        s, n = self.suite, a.ndim
        k = s.integer(-3, 3)
        yield "tril", "x:tril(%d)" % k, np.tril(a, k)
        yield "triu", "x:triu(%d)" % k, np.triu(a, k)
        yield "tril_", "x:clone():tril_(%d)" % k, np.tril(a, k)
        yield "triu_", "x:clone():triu_(%d)" % k, np.triu(a, k)
        yield "fliplr", "x:fliplr()", np.fliplr(a)
        yield "flipud", "x:flipud()", np.flipud(a)
        times = s.integer(-2, 5)
        yield "rot90", "x:rot90(%d)" % times, np.rot90(a, times)
        i, j = (int(v) for v in s.random.permutation(n)[:2])
        within = -a.shape[i] < k < a.shape[j] # beyond, PyTorch has a size of 0 as NumPy has
        if within:
            yield ("diagonal", "x:diagonal(%d, %d, %d)" % (k, i + 1, j + 1),
                   np.diagonal(a, k, i, j))
        if n == 2:
            yield "t", "x:t()", a.T
            if within:
                yield "diag", "x:diag(%d)" % k, np.diag(a, k)


def moving(suite):
    moves = Moves(suite)
    for dtype in DTYPES:
        for at in range(8):
            x = suite.operand(suite.shape(at // 2, 4), dtype)
            found = list(moves.of_any(x.a))
            if x.a.ndim > 0:
                found += moves.of_dims(x.a)
            if x.a.ndim > 1:
                found += moves.of_matrices(x.a)
            if x.a.ndim == 1:
                k = suite.integer(-2, 2)
                found.append(("diag", "x:diag(%d)" % k, np.diag(x.a, k)))
            for name, call, value in found:
                suite.add(name, call, [x], Expected(value, dtype))
        for _ in range(3):
            x = suite.operand((suite.integer(1, 6), suite.integer(1, 6)), dtype, -5, 5)
            wide = x.a.astype(np.float64 if dtype in FLOATS else np.int64)
            result = dtype if dtype in FLOATS else "int64"
            suite.add("trace", "x:trace()", [x],
                      Expected(np.trace(wide), result, 1, 1e-5 if dtype == "float32" else 1e-13))


def asking(suite):
    """Sizes and the like are no tensors."""
    for dtype in DTYPES:
        for _ in range(3):
            x = suite.operand(suite.shape(), dtype)
            size = array_type(dtype).itemsize if dtype != "bfloat16" else 2
            shape = x.a.shape
            suite.add_value("size", "x:size()", [x], "{%s}" % lua(shape))
            for d in range(len(shape)):
                suite.add_value("size", "x:size(%d)" % (d + 1), [x], str(shape[d]))
            suite.add_value("dim", "x:dim()", [x], str(len(shape)))
            suite.add_value("numel", "x:numel()", [x], str(x.a.size))
            suite.add_value("element_size", "x:element_size()", [x], str(size))
            suite.add_value("nbytes", "x:nbytes()", [x], str(size * x.a.size))
            suite.add_value("is_contiguous", "x:contiguous():is_contiguous()", [x], "true")
            strides = [int(np.prod(shape[d + 1:])) for d in range(len(shape))]
            if x.a.size:
                suite.add_value("stride", "x:clone():stride()", [x], "{%s}" % lua(strides))
            suite.add_value("wait", "x:wait() == x", [x], "true")
        one = suite.operand((1, 1), dtype)
        value = one.a.item()
        text = str(value).lower() if dtype == "bool" else (
            float(value).hex() if dtype in FLOATS else str(value))
        suite.add_value("item", "x:item()", [one], text)
        table = suite.operand((2, 2), "int64")
        suite.add_value("totable", "x:totable()", [table],
                        "{{%s}, {%s}}" % (lua(table.a[0]), lua(table.a[1])))


def joining(suite):
    for dtype in DTYPES:
        for _ in range(4):
            shape = list(suite.shape(1, 3))
            axis = suite.integer(0, len(shape) - 1)
            dim = suite.choose([axis + 1, axis - len(shape)])
            operands = []
            for _ in range(3):
                shape[axis] = suite.integer(0, 4)
                operands.append(suite.operand(tuple(shape), dtype))
            arrays = [x.a for x in operands]
            for name in "cat", "concat":
                suite.add(name, "tensor.%s({x, y, z}, %d)" % (name, dim), operands,
                          Expected(np.concatenate(arrays, axis), dtype))
            alike = [suite.operand(tuple(shape), dtype) for _ in range(3)]
            arrays = [x.a for x in alike]
            axis = suite.integer(0, len(shape))
            suite.add("stack", "tensor.stack({x, y, z}, %d)" % (axis + 1), alike,
                      Expected(np.stack(arrays, axis), dtype))
            suite.add("hstack", "tensor.hstack{x, y, z}", alike,
                      Expected(np.hstack(arrays), dtype))
            suite.add("vstack", "tensor.vstack{x, y, z}", alike,
                      Expected(np.vstack(arrays), dtype))
            vectors = [suite.operand((suite.integer(0, 4),), dtype) for _ in range(3)]
            for indexing in "ij", "xy":
                grids = np.meshgrid(*[v.a for v in vectors], indexing=indexing)
                suite.add("meshgrid", "tensor.meshgrid(x, y, z, {indexing = '%s'})" % indexing,
                          vectors, *[Expected(g, dtype) for g in grids])
            whole = suite.shape()
            several = [suite.operand(suite.narrowed(whole), dtype) for _ in range(2)]
            suite.add("broadcast_tensors", "tensor.broadcast_tensors(x, y)", several,
                      *[Expected(a, dtype) for a in np.broadcast_arrays(*[x.a for x in several])])
            parting(suite, dtype)


def parting(suite, dtype):
    x = suite.operand(suite.shape(1, 3, empty=False), dtype)
    axis = suite.integer(0, x.a.ndim - 1)
    size, dim = x.a.shape[axis], axis + 1
    expected = lambda parts: [Expected(p, dtype) for p in parts]
    step = suite.integer(1, size + 1)
    suite.add("split", "x:split(%d, %d)" % (step, dim), [x],
              *expected(np.split(x.a, range(step, size, step), axis)))
    first = suite.integer(0, size)
    suite.add("split", "x:split({%d, %d}, %d)" % (first, size - first, dim), [x],
              *expected(np.split(x.a, [first], axis)))
    n = suite.integer(1, size)
    each = -(-size // n)
    suite.add("chunk", "x:chunk(%d, %d)" % (n, dim), [x],
              *expected(np.split(x.a, range(each, size, each), axis)))
    suite.add("tensor_split", "x:tensor_split(%d, %d)" % (n, dim), [x],
              *expected(np.array_split(x.a, n, axis)))
    suite.add("unbind", "x:unbind(%d)" % dim, [x],
              *expected(np.take(x.a, i, axis) for i in range(size)))


def making(suite):
    for dtype in DTYPES:
        options = "{dtype = '%s'}" % dtype
        for _ in range(3):
            shape = suite.shape()
            value = suite.integer(0, 1) if dtype == "bool" else suite.integer(0, 99)
            text = str(bool(value)).lower() if dtype == "bool" else str(value)
            size = "{%s}" % lua(shape)
            x = suite.operand(shape, dtype)
            fresh = suite.operand(shape, dtype, fresh=True)
            for name, number in ("zeros", 0), ("ones", 1):
                filled = Expected(np.full(shape, number), dtype)
                suite.add(name, "tensor.%s(%s, %s)" % (name, size, options), [], filled)
                suite.add(name + "_like", "x:%s_like()" % name, [x], filled)
            suite.add("zero_", "x:zero_()", [fresh], Expected(np.zeros(shape), dtype))
            filled = Expected(np.full(shape, value), dtype)
            suite.add("full", "tensor.full(%s, %s, %s)" % (size, text, options), [], filled)
            suite.add("full_like", "x:full_like(%s)" % text, [x], filled)
            suite.add("fill_", "x:fill_(%s)" % text, [fresh], filled)
            suite.add_value("empty", "tensor.empty(%s, %s).shape" % (size, options), [], size)
            suite.add_value("empty_like", "x:empty_like().dtype", [x], "'%s'" % dtype)
            n, m = suite.integer(0, 5), suite.integer(0, 5)
            suite.add("eye", "tensor.eye(%d, %d, %s)" % (n, m, options), [],
                      Expected(np.eye(n, m), dtype))
        if dtype == "bool":
            continue
        for _ in range(4):
            first, step, n = suite.integer(0, 9), suite.integer(1, 3), suite.integer(1, 30)
            suite.add("arange", "tensor.arange(%d, %d, %d, %s)" % (
                first, first + step * (n - 1), step, options), [],
                Expected(first + step * np.arange(n), dtype))
        x = suite.operand((4,), dtype, 0, 3)
        increasing = suite.integer(0, 1) == 1
        powers = np.vander(x.a.astype(float), 4, increasing)
        suite.add("vander", "x:vander(4, %s)" % str(increasing).lower(), [x],
                  Expected(powers, dtype, 2))
    for dtype in FLOATS:
        options = "{dtype = '%s'}" % dtype
        for _ in range(6):
            first, last = suite.integer(-9, 9) / 2, suite.integer(-9, 9) / 2
            n = suite.integer(2, 40)
            step = 10.0 * 2.0 ** -(52 if dtype == "float64" else 23)
            suite.add("linspace", "tensor.linspace(%s, %s, %d, %s)" % (first, last, n, options),
                      [], Expected(np.linspace(first, last, n), dtype,
                                   1 if dtype in FLOATS[2:] else 0, step))
            if dtype in FLOATS[:2]:
                value = np.logspace(first / 4, last / 4, n)
                suite.add("logspace", "tensor.logspace(%s, %s, %d, %s)" % (
                    first / 4, last / 4, n, options), [], Expected(value, dtype, 12))
        count = 21
        suite.add("arange", "tensor.arange(-1, 1, 0.1, %s)" % options, [],
                  Expected(np.arange(count) * 0.1 - 1, dtype, 1 if dtype in FLOATS[2:] else 0,
                           3 * 2.0 ** -(52 if dtype == "float64" else 23), zeros=True))


def cases(suite):
    moving(suite)
    asking(suite)
    joining(suite)
    making(suite)
