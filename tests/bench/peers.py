"""Times the benchmarks' workloads in NumPy or PyTorch: peers.py numpy|torch THREADS.

The names are those of workloads.lua, the rule and the variables those of here.lua.  Prints lines
"workload seconds"."""
import os
import sys
import time

BUDGET, BUDGET_SIZES = 0.1, 0.05  # seconds
LARGE, WARM = 10000000, 1000000
ROWS, COLUMNS = 4096, 1024


class NumPy:
    def __init__(self, threads):
        os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(threads)
        import numpy as np
        generator = np.random.default_rng()
        self.exp, self.tanh, self.sum, self.max = np.exp, np.tanh, np.sum, np.amax
        self.ones = lambda *shape: np.ones(shape, np.float32)
        self.randn = lambda *shape: generator.standard_normal(shape, np.float32)
        self.relu = lambda x: np.maximum(x, 0)
        self.transposed = lambda x: x.T.copy()
        # The tutorial's baseline: NumPy's own default, in float64.
        self.warmup_randn = lambda *shape: np.random.normal(size=shape)


class PyTorch:
    def __init__(self, threads):
        import torch
        torch.set_num_threads(threads)
        self.exp, self.tanh, self.sum, self.max = torch.exp, torch.tanh, torch.sum, torch.amax
        self.ones, self.relu = torch.ones, torch.relu
        self.randn = self.warmup_randn = torch.randn
        self.transposed = lambda x: x.t().contiguous()


def repeat(count, work):
    def repeated():
        for _ in range(count):
            work()
    return repeated


def warmup(lib):
    def once():
        a = lib.warmup_randn(1000, 1000)
        return a @ a
    return repeat(10, once)


def product(lib, size, count):
    a, b = lib.randn(size, size), lib.randn(size, size)
    return repeat(count, lambda: a @ b)


def mlp(lib, batch, count):
    x = lib.randn(batch, 512)
    w1, b1 = lib.randn(512, 256), lib.ones(256)
    w2, b2 = lib.randn(256, 128), lib.ones(128)
    w3, b3 = lib.randn(128, 2), lib.ones(2)

    def forward():
        h = lib.relu(x @ w1 + b1)
        h = lib.relu(h @ w2 + b2)
        return h @ w3 + b3
    return repeat(count, forward)


def array(lib, shape, f):
    x, y = lib.randn(*shape), lib.randn(*shape)
    return lambda: f(lib, x, y)


def chain(lib, x, y):
    return (((x * y + 2) * x - 1) * y + x) * 0.5 - y


def gelu(lib, x, y):
    return 0.5 * x * (1 + lib.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def softmax(lib, x, y):
    e = lib.exp(x - lib.max(x, axis=1, keepdims=True))
    return e / lib.sum(e, axis=1, keepdims=True)


def small(lib, count):
    x = lib.ones(1, 2)

    def loop():
        for _ in range(count):
            y = x + 1
        return y
    return loop


def read(lib, count):
    x = lib.ones(1)
    return repeat(count, lambda: (x + 1).item())


def grow(lib, f, size, count):
    x, y = lib.ones(size), lib.ones(size)
    return repeat(count, lambda: f(lib, x, y))


# By name: how often the timed function does it, and a function of the library that prepares it.
WORKLOADS = {"warmup": (1, warmup)}
for size, count in (64, 1000), (128, 300), (256, 50), (512, 5), (1024, 1), (2048, 1):
    WORKLOADS[f"mm.{size}"] = count, lambda lib, s=size, n=count: product(lib, s, n)
WORKLOADS.update({
    "products64": (1, lambda lib: product(lib, 200, 64)),
    "mlp.1": (200, lambda lib: mlp(lib, 1, 200)),
    "mlp.256": (5, lambda lib: mlp(lib, 256, 5)),
    "xy2": (1, lambda lib: array(lib, (LARGE,), lambda lib, x, y: x * y + 2)),
    "chain": (1, lambda lib: array(lib, (LARGE,), chain)),
    "exp": (1, lambda lib: array(lib, (WARM,), lambda lib, x, y: lib.exp(x))),
    "tanh": (1, lambda lib: array(lib, (WARM,), lambda lib, x, y: lib.tanh(x))),
    "gelu": (1, lambda lib: array(lib, (WARM,), gelu)),
    "softmax": (1, lambda lib: array(lib, (ROWS, COLUMNS), softmax)),
    "sum.rows": (1, lambda lib: array(lib, (ROWS, COLUMNS), lambda lib, x, y: lib.sum(x, 1))),
    "sum.columns": (1, lambda lib: array(lib, (ROWS, COLUMNS), lambda lib, x, y: lib.sum(x, 0))),
    "transpose": (1, lambda lib: array(lib, (ROWS, COLUMNS), lambda lib, x, y: lib.transposed(x))),
    "layout.transposed": (1, lambda lib: array(
        lib, (ROWS, COLUMNS), lambda lib, x, y: x + y.reshape(COLUMNS, ROWS).T)),
    "layout.stepped": (1, lambda lib: array(
        lib, (ROWS, 2 * COLUMNS), lambda lib, x, y: x[:, ::2] + y[:, ::2])),
    "layout.row": (1, lambda lib: array(lib, (ROWS, COLUMNS), lambda lib, x, y: x + y[0])),
    "randn": (1, lambda lib: lambda: lib.randn(1000, 1000)),
    "small": (20000, lambda lib: small(lib, 20000)),
    "read": (2000, lambda lib: read(lib, 2000)),
    "loop.sync": (1, lambda lib: small(lib, 10000)),
    "loop.async": (1, lambda lib: small(lib, 10000)),
})

COSTS = {
    "add": lambda lib, x, y: x + 1,
    "xy2": lambda lib, x, y: x * y + 2,
    "exp": lambda lib, x, y: lib.exp(x),
    "sum": lambda lib, x, y: lib.sum(x),
    "randn": lambda lib, x, y: lib.randn(len(x)),
}
SIZES = {}
for size in (10 ** exponent for exponent in range(9)):
    for name, f in COSTS.items():
        count = max(1, 10000 // size)
        SIZES[f"grow.{name}.{size}"] = (
            count, lambda lib, f=f, s=size, n=count: grow(lib, f, s, n))


def best(work, budget):
    work()
    least, spent = float("inf"), 0
    while spent < budget:
        start = time.perf_counter()
        work()
        taken = time.perf_counter() - start
        least, spent = min(least, taken), spent + taken
    return least


def measure(lib, workloads, budget):
    for name, (count, make) in workloads.items():
        if os.environ.get("BENCH_ONLY", "") in name:
            print(name, best(make(lib), budget) / count, flush=True)


def main():
    lib = {"numpy": NumPy, "torch": PyTorch}[sys.argv[1]](int(sys.argv[2]))
    measure(lib, WORKLOADS, BUDGET)
    if os.environ.get("BENCH_SIZES") != "0":
        measure(lib, SIZES, BUDGET_SIZES)


main()
