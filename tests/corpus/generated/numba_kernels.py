# SPDX-License-Identifier: Apache-2.0
"""PTX of Numba kernels at several targets, without a GPU: `CUDA_HOME=... python3 numba_kernels.py FOLDER`.

Needs `pip install numba-cuda` and a toolkit's libNVVM (numba-cuda 0.30.4 and CUDA 13.0 made the texts here). The kernels are ours.
"""
import math
import pathlib
import sys

import numpy as np
from numba import cuda, float32, float64, int32, int64, uint64, complex64
from numba.core.types import float16

TILE = 16


def axpy(r, a, x, y):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = a * x[i] + y[i]


def matmul(a, b, c):
    sa = cuda.shared.array((TILE, TILE), dtype=float32)
    sb = cuda.shared.array((TILE, TILE), dtype=float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    acc = float32(0.0)
    for i in range((a.shape[1] + TILE - 1) // TILE):
        sa[ty, tx] = a[y, tx + i * TILE] if y < a.shape[0] and tx + i * TILE < a.shape[1] else float32(0)
        sb[ty, tx] = b[ty + i * TILE, x] if x < b.shape[1] and ty + i * TILE < b.shape[0] else float32(0)
        cuda.syncthreads()
        for j in range(TILE):
            acc += sa[ty, j] * sb[j, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = acc


def histogram(x, bins, lo, hi):
    step = (hi - lo) / bins.size
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        b = int32((x[i] - lo) / step)
        if b >= 0 and b < bins.size:
            cuda.atomic.add(bins, b, 1)


def atomics(x, i32, u64, f32, f64):
    i = cuda.grid(1)
    v = x[i]
    cuda.atomic.max(i32, 0, v)
    cuda.atomic.min(i32, 1, v)
    cuda.atomic.and_(i32, 2, v)
    cuda.atomic.xor(i32, 3, v)
    cuda.atomic.inc(u64, 0, 17)
    cuda.atomic.exch(i32, 4, v)
    cuda.atomic.add(f32, 0, v)
    cuda.atomic.add(f64, 0, v)
    cuda.atomic.max(f64, 1, float64(v))
    cuda.atomic.nanmin(f32, 1, float32(v))
    cuda.atomic.cas(i32, 5, 0, v)


def special(r, x):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        r[i] = math.sin(v) + math.exp(v) * math.log(v + 2.0) + math.pow(v, 2.5) + math.tanh(v) - math.erf(v) + math.gamma(v) + math.atan2(v, 3.0)
        r[i] += cuda.fma(v, v, v) + cuda.cbrt(v) + math.sqrt(v) + math.fmod(v, 0.3) + math.floor(v) + math.copysign(v, -1.0)


def warps(r, x):
    i = cuda.grid(1)
    v = x[i]
    for d in (16, 8, 4, 2, 1):
        v += cuda.shfl_xor_sync(0xffffffff, v, d)
    p = cuda.ballot_sync(0xffffffff, x[i] > 3)
    q = cuda.any_sync(0xffffffff, x[i] > 9)
    m = cuda.match_any_sync(0xffffffff, x[i])
    r[i] = v + cuda.popc(p) + cuda.clz(m) + cuda.ffs(p) + q + cuda.brev(v) + cuda.laneid
    cuda.syncwarp()
    cuda.threadfence()
    cuda.threadfence_block()
    cuda.threadfence_system()


def local_sort(r, x):
    a = cuda.local.array(8, dtype=int32)
    base = cuda.grid(1) * 8
    for i in range(8):
        a[i] = x[base + i]
    for i in range(1, 8):
        v = a[i]
        j = i - 1
        while j >= 0 and a[j] > v:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = v
    for i in range(8):
        r[base + i] = a[i]


def checked(r, x):
    i = cuda.grid(1)
    if x[i] < 0:
        raise ValueError("negative")
    r[i] = x[i] // (x[i] + 1) + x[i] % 7
    assert r[i] < 1000
    if i == 0:
        print("first", r[i], x[i])


def strided(r, x):
    i, j, k = cuda.grid(3)
    if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
        r[i, j, k] = x[-1 - i, j, k] + x[i, j, k] ** 3


def halves(r, x):
    i = cuda.grid(1)
    r[i] = x[i] * x[i] + float16(1.5)


def constants(r):
    i = cuda.grid(1)
    t = cuda.const.array_like(TABLE)
    r[i] = t[i % 8]


def dynamic_shared(r, x):
    s = cuda.shared.array(0, dtype=float64)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    n = cuda.blockDim.x // 2
    while n > 0:
        cuda.syncthreads()
        if t < n:
            s[t] += s[t + n]
        n //= 2
    if t == 0:
        r[cuda.blockIdx.x] = s[0]


TABLE = np.arange(8, dtype=np.float32) * 1.25

F1, F2, F3 = float32[::1], float32[:, ::1], float32[:, :, :]
CASES = [
    ("axpy_f32", axpy, (F1, float32, F1, F1), {}),
    ("axpy_i64", axpy, (int64[::1], int64, int64[:], int64[:]), {}),
    ("axpy_c64", axpy, (complex64[::1], complex64, complex64[::1], complex64[::1]), {}),
    ("matmul", matmul, (F2, F2, F2), {}),
    ("matmul_fast", matmul, (F2, F2, F2), {"fastmath": True}),
    ("histogram", histogram, (F1, int32[::1], float32, float32), {}),
    ("atomics", atomics, (int32[::1], int32[::1], uint64[::1], F1, float64[::1]), {}),
    ("special_f32", special, (F1, F1), {}),
    ("special_f32_fast", special, (F1, F1), {"fastmath": True}),
    ("special_f64", special, (float64[::1], float64[::1]), {}),
    ("warps", warps, (int32[::1], int32[::1]), {}),
    ("local_sort", local_sort, (int32[::1], int32[::1]), {}),
    ("checked", checked, (int32[::1], int32[::1]), {}),
    ("checked_debug", checked, (int32[::1], int32[::1]), {"debug": True, "opt": False}),
    ("strided", strided, (F3, F3), {}),
    ("strided_lines", strided, (F3, F3), {"lineinfo": True}),
    ("halves", halves, (float16[::1], float16[::1]), {}),
    ("constants", constants, (F1,), {}),
    ("dynamic_shared", dynamic_shared, (float64[::1], float64[::1]), {}),
]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, f, signature, options in CASES:
        for cc in ((7, 5), (9, 0)) if name in ("axpy_f32", "matmul") else ((9, 0),):
            try:
                ptx, _ = cuda.compile_ptx(f, signature, cc=cc, **options)
            except Exception as error:
                print(f"{name} {cc}: {type(error).__name__} {str(error)[:300]}")
                continue
            (folder / f"{name}_sm{cc[0]}{cc[1]}.ptx").write_text(ptx)


if __name__ == "__main__":
    main()
