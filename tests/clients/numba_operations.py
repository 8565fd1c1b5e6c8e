#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""numba-cuda beside NumPy: kernels of arrays, shared memory, atomics, warps, device functions, ufuncs, reductions, random numbers."""

import math

import numpy as np
from numba import cuda, float32, int32, vectorize
from operations import main, operation

A = np.random.default_rng(0).standard_normal(4096).astype(np.float32)
I = np.random.default_rng(1).integers(0, 100, 4096).astype(np.int32)


@operation
def saxpy():
    @cuda.jit
    def f(a, x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = a * x[i] + y[i]

    y = A.copy()
    f[16, 256](np.float32(2.5), A, y)
    return [(y, A * np.float32(2.5) + A)]


@operation
def doubles():
    @cuda.jit
    def f(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = math.sin(x[i]) + math.exp(-x[i] * x[i]) / (1 + math.sqrt(abs(x[i]))) + x[i] ** 3

    x, y = A.astype(np.float64), np.zeros(A.size)
    f[16, 256](x, y)
    return [(y, np.sin(x) + np.exp(-x * x) / (1 + np.sqrt(np.abs(x))) + x**3)]


@operation
def matmul_in_shared():
    @cuda.jit
    def f(a, b, c):
        sa, sb = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        t = float32(0)
        for k in range(a.shape[1] // 16):
            sa[tx, ty] = a[x, ty + k * 16]
            sb[tx, ty] = b[tx + k * 16, y]
            cuda.syncthreads()
            for j in range(16):
                t += sa[tx, j] * sb[j, ty]
            cuda.syncthreads()
        c[x, y] = t

    a, b = A.reshape(64, 64), A[::-1].reshape(64, 64).copy()
    c = np.zeros((64, 64), np.float32)
    f[(4, 4), (16, 16)](a, b, c)
    return [(c, (a.astype(np.float64) @ b).astype(np.float32))]


@operation
def atomics():
    @cuda.jit
    def f(i, counts, sums, most):
        k = cuda.grid(1)
        cuda.atomic.add(counts, i[k] % 10, 1)
        cuda.atomic.add(sums, i[k] % 10, float(i[k]))
        cuda.atomic.max(most, 0, i[k])

    counts, sums, most = np.zeros(10, np.int32), np.zeros(10), np.zeros(1, np.int32)
    f[16, 256](I, counts, sums, most)
    return [(counts, np.bincount(I % 10, minlength=10)), (sums, np.bincount(I % 10, I, 10)), (most, [I.max()])]


@operation
def warps():
    @cuda.jit
    def f(x, y, z):
        i = cuda.grid(1)
        v = x[i]
        for d in (16, 8, 4, 2, 1):
            v += cuda.shfl_xor_sync(0xFFFFFFFF, v, d)
        y[i] = v
        z[i] = cuda.popc(cuda.ballot_sync(0xFFFFFFFF, x[i] > 50))

    y, z = np.zeros_like(I), np.zeros_like(I)
    f[16, 256](I, y, z)
    w = I.reshape(-1, 32)
    return [(y, np.repeat(w.sum(1), 32)), (z, np.repeat((w > 50).sum(1), 32))]


@operation
def device_functions():
    @cuda.jit(device=True)
    def clamp(v, low, high):
        return min(max(v, low), high)

    @cuda.jit
    def f(x, y):
        i = cuda.grid(1)
        local = cuda.local.array(8, int32)
        for k in range(8):
            local[k] = x[i] * k
        y[i] = clamp(local[x[i] % 8], 10, 200)

    y = np.zeros_like(I)
    f[16, 256](I, y)
    return [(y, np.clip(I * (I % 8), 10, 200))]


@operation
def divisions():
    @cuda.jit
    def f(x, y, z):
        i = cuda.grid(1)
        y[i] = (int(x[i]) - 50) * 1000003 // 7 + (int(x[i]) - 50) % 13
        z[i] = x[i] / 7.0

    y, z = np.zeros(I.size, np.int64), np.zeros(I.size)
    f[16, 256](I, y, z)
    v = I.astype(np.int64) - 50
    return [(y, v * 1000003 // 7 + v % 13), (z, I / 7.0)]


@operation
def ufunc():
    @vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
    def f(a, b):
        return a * b + 1

    return [(f(A, A), A * A + 1), (f(A.astype(np.float64), 2.0), A.astype(np.float64) * 2 + 1)]


@operation
def reduction():
    total = cuda.reduce(lambda a, b: a + b)
    return [(total(A.astype(np.float64)), A.astype(np.float64).sum()), (total(I.astype(np.int64)), I.sum())]


@operation
def random_numbers():
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

    @cuda.jit
    def f(states, y):
        i = cuda.grid(1)
        for _ in range(16):
            y[i] += xoroshiro128p_uniform_float32(states, i) / 16

    y = np.zeros(4096, np.float32)
    f[16, 256](create_xoroshiro128p_states(4096, 1), y)
    return [(bool(abs(y.mean() - 0.5) < 0.01), True), (bool(0 < y.min() < y.max() < 1), True)]


@operation
def streams():
    @cuda.jit
    def f(x):
        i = cuda.grid(1)
        x[i] += 1

    stream = cuda.stream()
    d = cuda.to_device(I, stream=stream)
    for _ in range(5):
        f[16, 256, stream](d)
    got = d.copy_to_host(stream=stream)
    stream.synchronize()
    return [(got, I + 5)]


@operation
def views_and_records():
    kind = np.dtype([("a", np.float32), ("b", np.int32)])

    @cuda.jit
    def f(r, m):
        i = cuda.grid(1)
        if i < r.size:
            r[i].a = r[i].b * 2
            m[i % 8, i // 8] = r[i].b

    r = np.zeros(64, kind)
    r["b"] = I[:64]
    m = np.zeros((8, 8), np.int32)
    f[1, 64](r, m)
    return [(r["a"], I[:64].astype(np.float32) * 2), (m, I[:64].reshape(8, 8).T)]


@operation
def printing():
    @cuda.jit
    def f():
        if cuda.grid(1) == 0:
            print("thread", 0)

    f[1, 32]()
    cuda.synchronize()
    return []


if __name__ == "__main__":
    main()
