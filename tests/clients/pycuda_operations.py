#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyCUDA beside NumPy: kernels that nvcc makes machine code of, arrays on the device, generated kernels, copies and streams."""

import numpy as np
import pycuda.autoprimaryctx  # noqa: F401  (the context of all that follows)
import pycuda.curandom as curandom
import pycuda.driver as driver
import pycuda.gpuarray as gpuarray
from operations import main, operation
from pycuda import cumath
from pycuda.compiler import SourceModule
from pycuda.elementwise import ElementwiseKernel
from pycuda.reduction import ReductionKernel
from pycuda.scan import InclusiveScanKernel

GENERATOR = np.random.default_rng(0)
A = GENERATOR.standard_normal(10007).astype(np.float32)
B = GENERATOR.standard_normal(10007).astype(np.float32)
INTEGERS = GENERATOR.integers(-1000, 1000, 10007).astype(np.int32)


@operation
def kernel():
    code = """
    __constant__ float scale;
    __global__ void reversed(float *to, const float *from, int n) {
      extern __shared__ float part[];
      part[threadIdx.x] = from[blockIdx.x * blockDim.x + threadIdx.x];
      __syncthreads();
      to[n - 1 - (blockIdx.x * blockDim.x + blockDim.x - 1 - threadIdx.x)] = part[blockDim.x - 1 - threadIdx.x] * scale;
    }"""
    module = SourceModule(code)
    place, size = module.get_global("scale")
    driver.memcpy_htod(place, np.float32(3))
    function, got = module.get_function("reversed"), np.zeros(1024, np.float32)
    function(driver.Out(got), driver.In(A[:1024]), np.int32(1024), block=(256, 1, 1), grid=(4, 1), shared=1024)
    function.prepare("PPi")
    to, source = gpuarray.zeros(1024, np.float32), gpuarray.to_gpu(A[:1024])
    function.prepared_call((4, 1), (256, 1, 1), to.gpudata, source.gpudata, 1024, shared_size=1024)
    return [(size, 4), (got, A[1023::-1] * 3), (to.get(), A[1023::-1] * 3)]


@operation
def arrays():
    a, b = gpuarray.to_gpu(A), gpuarray.to_gpu(B)
    return [
        ((2 * a - b / 3).get(), 2 * A - B / 3),
        (abs(a).get(), abs(A)),
        ((a > b).get(), (A > B)),
        (a[5:9000].get(), A[5:9000]),
        (a.astype(np.float64).get(), A.astype(np.float64)),
        (gpuarray.if_positive(a, a, b).get(), np.where(A > 0, A, B)),
        (gpuarray.arange(0, 1000, 3, dtype=np.int32).get(), np.arange(0, 1000, 3, np.int32)),
    ]


@operation
def mathematics():
    a = gpuarray.to_gpu(np.abs(A) + 0.1)
    return [(getattr(cumath, name)(a).get(), getattr(np, name)(np.abs(A) + np.float32(0.1))) for name in "exp log sqrt sin cos tanh".split()]


@operation
def complexes():
    values = (A + 1j * B).astype(np.complex64)
    a = gpuarray.to_gpu(values)
    return [((a * a.conj()).get(), values * values.conj()), (a.imag.get(), B), ((a / (a + 1)).get(), values / (values + 1))]


@operation
def reductions():
    a, b, n = gpuarray.to_gpu(A), gpuarray.to_gpu(B), gpuarray.to_gpu(INTEGERS)
    squares = ReductionKernel(np.float64, neutral="0", reduce_expr="a+b", map_expr="(double)x[i]*x[i]", arguments="float *x")
    return [
        (gpuarray.sum(n).get(), INTEGERS.sum(dtype=np.int32)),
        (gpuarray.max(a).get(), A.max()),
        (gpuarray.min(n).get(), INTEGERS.min()),
        (np.float32(gpuarray.dot(a, b, dtype=np.float64).get()), np.float32(np.dot(A.astype(np.float64), B))),
        (squares(a).get(), np.square(A.astype(np.float64)).sum()),
    ]


@operation
def scans():
    n = gpuarray.to_gpu(INTEGERS)
    InclusiveScanKernel(np.int32, "a+b")(n)
    greatest = gpuarray.to_gpu(INTEGERS)
    InclusiveScanKernel(np.int32, "a > b ? a : b")(greatest)
    return [(n.get(), np.cumsum(INTEGERS, dtype=np.int32)), (greatest.get(), np.maximum.accumulate(INTEGERS))]


@operation
def elementwise():
    mix = ElementwiseKernel("float a, float *x, float b, float *y, float *z", "z[i] = fmaf(a, x[i], b * y[i])", "mix")
    a, b = gpuarray.to_gpu(A), gpuarray.to_gpu(B)
    z = gpuarray.empty_like(a)
    mix(5, a, 6, b, z)
    return [(z.get(), 5 * A + 6 * B)]


@operation
def random():
    uniform = curandom.XORWOWRandomNumberGenerator().gen_uniform(100000, np.float32).get()
    normal = curandom.XORWOWRandomNumberGenerator().gen_normal(100000, np.float32).get()
    return [(abs(uniform.mean() - 0.5) < 0.01, True), (abs(normal.std() - 1) < 0.02, True), (((uniform > 0) & (uniform <= 1)).all(), True)]


@operation
def copies():
    stream, event = driver.Stream(), driver.Event()
    host = driver.pagelocked_empty((100, 64), np.float32)
    host[:] = A[:6400].reshape(100, 64)
    pitched, pitch = driver.mem_alloc_pitch(64 * 4, 100, 4)
    copy = driver.Memcpy2D()
    copy.set_src_host(host)
    copy.set_dst_device(pitched)
    copy.src_pitch, copy.dst_pitch, copy.width_in_bytes, copy.height = 256, pitch, 256, 100
    copy(stream)
    event.record(stream)
    event.synchronize()
    back = np.zeros((100, 64), np.float32)
    copy = driver.Memcpy2D()
    copy.set_src_device(pitched)
    copy.set_dst_host(back)
    copy.src_pitch, copy.dst_pitch, copy.width_in_bytes, copy.height = pitch, 256, 256, 100
    copy(aligned=True)
    return [(back, A[:6400].reshape(100, 64))]


if __name__ == "__main__":
    main()
