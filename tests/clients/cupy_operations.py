#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CuPy beside NumPy: elementwise kernels, reductions, scans, sorts, indexing, random numbers, kernels of one's own, graphs."""

import cupy as cp
import numpy as np
from operations import main, operation

R = np.random.default_rng(0)
A = R.standard_normal(10000).astype(np.float32)
D = A.astype(np.float64)
I = R.integers(-1000, 1000, 10000).astype(np.int32)
X, XD, XI = cp.asarray(A), cp.asarray(D), cp.asarray(I)


def both(function):
    """The operation that computes `function` of a module and its arrays with both modules."""

    def run():
        got, expected = function(cp, X, XD, XI), function(np, A, D, I)
        got, expected = (value if isinstance(value, tuple) else (value,) for value in (got, expected))
        return [(cp.asnumpy(g), e) for g, e in zip(got, expected)]

    run.__name__ = function.__name__
    return operation(run)


@both
def arithmetic(m, x, d, i):
    return x + x * 2, d / 3.1, i * 7 // 3 % 11, -i, abs(i) ** 2, x - d.astype(m.float32)


@both
def functions(m, x, d, i):
    return m.sin(x), m.exp(d), m.log1p(m.abs(x)), m.tanh(d), m.sqrt(m.abs(x)), m.arctan2(x, x + 1), m.power(m.abs(d), 0.3)


@both
def integers(m, x, d, i):
    return i & 255, i | 3, i ^ 77, i << 2, i >> 1, ~i, m.gcd(i, 12), m.minimum(i, 5), i.astype(m.int64) * 123456789


@both
def halves(m, x, d, i):
    h = x.astype(m.float16)
    return h * 2, h + h, (h * h).astype(m.float32), m.maximum(h, 0), i.astype(m.float16), (h * 10).astype(m.int32)


@both
def conversions(m, x, d, i):
    return x.astype(m.int8), (x * 50).astype(m.int16), m.abs(d * 1e5).astype(m.uint32), i.astype(m.uint8), i.astype(m.float64), (d * 1e9).astype(m.int64)


@both
def complexes(m, x, d, i):
    z = x[:100].astype(m.complex64)
    return z**2 + 1j, m.abs(z * (1 + 2j)), m.exp(1j * d[:100]), z.conj()


@both
def comparisons(m, x, d, i):
    return x > 0, m.where(x > 0, x, -x), m.isnan(x), i == 3, m.logical_and(x > 0, i > 0), m.clip(d, -1, 1)


@both
def sums(m, x, d, i):
    return x.reshape(100, 100).sum(axis=0), d.sum(), i.sum(), x.mean(), d.reshape(10, 1000).prod(axis=0), i.reshape(100, 100).sum(axis=1)


@both
def extremes(m, x, d, i):
    return x.max(), d.min(), i.argmax(), x.reshape(100, 100).argmin(axis=1), (x > 3).any(), (x > -9).all()


@both
def moments(m, x, d, i):
    return x.reshape(100, 100).std(axis=0), d.var(), m.median(d), m.linalg.norm(d), m.count_nonzero(i)


@both
def scans(m, x, d, i):
    return m.cumsum(d), m.cumsum(i), m.cumprod(1 + d[:50] / 100), m.diff(d)


@both
def sorts(m, x, d, i):
    return m.sort(x), m.sort(d)[::-1], m.sort(i), m.argsort(d, kind="stable"), m.unique(i), m.sort(x.reshape(100, 100), axis=1), m.searchsorted(m.sort(d), d[:50])


@both
def partitions(m, x, d, i):
    return m.sort(m.partition(d, 50)[:50]), m.bincount(m.abs(i)), m.histogram(d, 20)[0], m.percentile(d, [5, 50])


@both
def indexing(m, x, d, i):
    picked = x[m.asarray([5, 3, 1])]
    y = d.copy()
    y[::3] = 0
    y[m.asarray([1, 2])] += 5
    return picked, y, m.nonzero(x > 1)[0], x[x > 0.5], m.take(i, m.arange(0, 100, 7)), m.roll(d, 3), m.flip(i)


@both
def shapes(m, x, d, i):
    a = x.reshape(100, 100)
    return a.T.copy(), m.concatenate([a, a], axis=1), m.stack([i, i]), m.tile(d[:10], 3), m.repeat(i[:10], 4), m.pad(d[:10], 2), m.tril(a)


@both
def creation(m, x, d, i):
    return m.arange(1000) * 3, m.linspace(0, 1, 33), m.eye(7), m.full((3, 3), 2.5), m.meshgrid(m.arange(3), m.arange(4))[0]


@both
def products(m, x, d, i):
    return m.outer(d[:20], d[:30]), m.kron(d[:3], d[:4]), m.einsum("i,j->ij", i[:5], i[:6]), m.cross(d[:3], d[3:6])


@both
def polynomials(m, x, d, i):
    return m.polyval(m.asarray([1.0, 2.0, 3.0]), d[:100]), m.interp(d[:50], m.linspace(-3, 3, 9), m.arange(9.0))


@operation
def atomics():
    target = cp.zeros(10, cp.float32)
    cp.add.at(target, XI % 10, cp.float32(1))
    expected = np.zeros(10, np.float32)
    np.add.at(expected, I % 10, np.float32(1))
    return [(target.get(), expected)]


@operation
def random_numbers():
    g = cp.random.default_rng(1)
    u, n, k = g.random(100000), g.standard_normal(100000), g.integers(0, 10, 100000)
    return [(bool(0.49 < float(u.mean()) < 0.51), True), (bool(abs(float(n.std()) - 1) < 0.02), True), (bool(((k >= 0) & (k < 10)).all()), True)]


@operation
def permutations():
    return [(cp.sort(cp.random.permutation(1000)).get(), np.arange(1000))]


@operation
def raw_kernel():
    kernel = cp.RawKernel(
        r"""extern "C" __global__ void k(const float* a, float* b, int n) {
            __shared__ float s[256];
            int i = blockIdx.x * 256 + threadIdx.x;
            s[threadIdx.x] = i < n ? a[i] : 0;
            __syncthreads();
            if (i < n) b[i] = s[255 - threadIdx.x] * 2 + __shfl_xor_sync(~0u, s[threadIdx.x], 1);
        }""",
        "k",
    )
    y = cp.zeros(1024, cp.float32)
    kernel((4,), (256,), (X, y, 1024))
    b = A[:1024].reshape(4, 256)
    return [(y.get(), (b[:, ::-1] * 2 + b.reshape(4, 128, 2)[:, :, ::-1].reshape(4, 256)).ravel())]


@operation
def raw_module():
    module = cp.RawModule(
        code=r"""__device__ int counter; __constant__ float factor[2] = {3, 4};
            template <typename T> __global__ void scale(T* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] *= T(factor[i & 1]), atomicAdd(&counter, 1); }""",
        options=("-std=c++17",),
        name_expressions=("scale<float>", "scale<double>"),
    )
    pairs = []
    for name, source in (("scale<float>", A), ("scale<double>", D)):
        a = cp.asarray(source[:1000])
        module.get_function(name)((4,), (256,), (a, np.int32(1000)))
        pairs.append((a.get(), source[:1000] * np.where(np.arange(1000) & 1, 4, 3).astype(source.dtype)))
    count = cp.ndarray((1,), cp.int32, module.get_global("counter"))
    return pairs + [(count.get(), np.array([2000]))]


@operation
def elementwise_kernel():
    k = cp.ElementwiseKernel("float32 x, float64 y", "float64 z", "z = x > 0 ? x * y : y - (double)i", "k")
    return [(k(X, XD).get(), np.where(A > 0, A.astype(np.float64) * D, D - np.arange(10000)))]


@operation
def reduction_kernel():
    k = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "k")
    return [(k(XD).get(), np.sqrt((D * D).sum())), (k(XD.reshape(100, 100), axis=1).get(), np.sqrt((D * D).reshape(100, 100).sum(axis=1)))]


@operation
def fused():
    @cp.fuse()
    def f(x, y):
        return cp.sqrt(x * x + y * y) * 2

    return [(f(XD, XD + 1).get(), np.sqrt(D * D + (D + 1) ** 2) * 2)]


@operation
def streams_and_graphs():
    stream = cp.cuda.Stream(non_blocking=True)
    y = cp.zeros_like(XD)
    with stream:
        cp.multiply(XD, 2, out=y)
        stream.synchronize()
        stream.begin_capture()
        cp.add(y, 1, out=y)
        graph = stream.end_capture()
        graph.launch()
        graph.launch()
        stream.synchronize()
    return [(y.get(), D * 2 + 2)]


@operation
def jit_rawkernel():
    from cupyx import jit

    @jit.rawkernel()
    def f(x, y, n):
        i = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x
        if i < n:
            y[i] = x[i] * 3

    y = cp.zeros_like(X)
    f((40,), (256,), (X, y, cp.uint32(10000)))
    return [(y.get(), A * 3)]


@both
def transforms(m, x, d, i):
    z = d[:4096] + 1j * d[4096:8192]
    return m.fft.fft(z), m.fft.ifft(z[:1000]), m.fft.rfft(x[:3000]), m.fft.fft2(z.reshape(64, 64))


@both
def linear_algebra(m, x, d, i):
    a = d[:64].reshape(8, 8)
    s = a @ a.T + 8 * m.eye(8)
    batch = d[:60].reshape(3, 5, 4)
    return (
        m.linalg.solve(s, a),
        m.linalg.inv(s),
        m.linalg.cholesky(s),
        m.linalg.det(s),
        x[:800].reshape(40, 20) @ x[800:1600].reshape(20, 40),
        batch @ batch.transpose(0, 2, 1),
    )


@operation
def filters():
    from cupyx.scipy import ndimage, special

    a = XD.reshape(100, 100)
    k = cp.ones((3, 3))
    padded = np.pad(D.reshape(100, 100), 1)
    expected = sum(padded[r : r + 100, c : c + 100] for r in range(3) for c in range(3))
    return [(ndimage.convolve(a, k, mode="constant").get(), expected), (special.erf(cp.zeros(3)).get(), np.zeros(3))]


if __name__ == "__main__":
    main()
