#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cuda.core beside NumPy: programs that NVRTC and nvJitLink make machine code of, launched on buffers and streams."""

import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Linker, LinkerOptions, Program, ProgramOptions, launch
from operations import main, operation

device = Device()
device.set_current()
stream = device.create_stream()
A = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")


def array(values):
    """Pinned memory with these values, and it as an array."""
    buffer = LegacyPinnedMemoryResource().allocate(values.nbytes)
    view = np.from_dlpack(buffer).view(values.dtype)
    view[:] = values
    return buffer, view


def run(kernel, *arguments, blocks=4, threads=256):
    launch(stream, LaunchConfig(grid=blocks, block=threads), kernel, *arguments)
    stream.sync()


@operation
def saxpy():
    code = "template <typename T> __global__ void f(T a, const T* x, T* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }"
    module = Program(code, "c++", options).compile("cubin", name_expressions=("f<float>", "f<double>"))
    pairs = []
    for kind in (np.float32, np.float64):
        (x, _), (y, got) = array(A.astype(kind)), array(np.ones(1000, kind))
        run(module.get_kernel("f<float>" if kind is np.float32 else "f<double>"), kind(3), x, y, np.int32(1000))
        pairs.append((got.copy(), A.astype(kind) * kind(3) + 1))
    return pairs


@operation
def linked():
    code = 'extern "C" __global__ void k(float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = y[i] * 2 + 1; }'
    objects = [Program(code, "c++", ProgramOptions(relocatable_device_code=True, arch=f"sm_{device.arch}")).compile("ptx")]
    kernel = Linker(*objects, options=LinkerOptions(arch=f"sm_{device.arch}")).link("cubin").get_kernel("k")
    y, got = array(A)
    run(kernel, y, np.int32(1000))
    return [(got.copy(), A * 2 + 1)]


@operation
def dynamic_shared():
    code = 'extern "C" __global__ void r(float* y) { extern __shared__ float s[]; s[threadIdx.x] = y[threadIdx.x]; __syncthreads(); y[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x]; }'
    kernel = Program(code, "c++", options).compile("cubin").get_kernel("r")
    y, got = array(A[:256])
    launch(stream, LaunchConfig(grid=1, block=256, shmem_size=1024), kernel, y)
    stream.sync()
    return [(got.copy(), A[255::-1])]


@operation
def attributes():
    kernel = Program('extern "C" __global__ void __launch_bounds__(128) k(int* p) { __shared__ int s[64]; s[threadIdx.x & 63] = *p; __syncthreads(); *p = s[1]; }', "c++", options).compile("cubin").get_kernel("k")
    return [(kernel.attributes.max_threads_per_block, 128), (kernel.attributes.shared_size_bytes, 256)]


if __name__ == "__main__":
    main()
