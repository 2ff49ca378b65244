"""Times the benchmarks' workloads in NumPy or PyTorch: peers.py numpy|torch THREADS.

Prints lines "workload seconds", the best of a few rounds; exits with status 3 where the library is
not installed."""
import sys
import time


def best(work, rounds=3):
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def warmup_numpy(np):
    for _ in range(10):
        a = np.random.normal(size=(1000, 1000))
        np.dot(a, a)


def small_numpy(np):
    x = np.ones((1, 2), dtype=np.float32)
    for _ in range(100000):
        y = x + 1
    return y


def warmup_torch(torch):
    for _ in range(10):
        a = torch.randn(1000, 1000)
        torch.mm(a, a)


def small_torch(torch):
    x = torch.ones(1, 2)
    for _ in range(100000):
        y = x + 1
    return y


def main():
    library, threads = sys.argv[1], int(sys.argv[2])
    try:
        if library == "numpy":
            import numpy as np
            workloads = {
                "warmup": lambda: warmup_numpy(np),
                "small": lambda: small_numpy(np),
                "randn": lambda: np.random.normal(size=(1000, 1000)),
            }
        else:
            import torch
            torch.set_num_threads(threads)
            workloads = {
                "warmup": lambda: warmup_torch(torch),
                "small": lambda: small_torch(torch),
                "randn": lambda: torch.randn(1000, 1000),
            }
    except ImportError:
        sys.exit(3)
    for name, work in workloads.items():
        print(name, best(work))


main()
