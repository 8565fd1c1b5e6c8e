#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's kernel languages in Python, on CuPy's arrays beside NumPy: CuTe (nvidia-cutlass-dsl) and CUDA Tile (cuda-tile).

CuTe's tensor maps are written by the code that launches, CUDA Tile's by host code in the cubin.
"""

import cupy
import numpy as np
from operations import main, operation

G = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    return G.standard_normal(shape).astype(dtype)


# --- CUDA Tile ---


def tile_kernels():
    import cuda.tile as ct

    size = ct.Constant[int]

    @ct.kernel
    def add(a, b, c, n: size):
        i = ct.bid(0)
        ct.store(c, (i,), ct.load(a, (i,), (n,)) + ct.load(b, (i,), (n,)))

    @ct.kernel
    def transpose(a, c, n: size):
        i, j = ct.bid(0), ct.bid(1)
        ct.store(c, (j, i), ct.transpose(ct.load(a, (i, j), (n, n))))

    @ct.kernel
    def softmax(a, c, n: size):
        i = ct.bid(0)
        row = ct.load(a, (i, 0), (1, n))
        row = ct.exp(row - ct.max(row, 1, keepdims=True))
        ct.store(c, (i, 0), row / ct.sum(row, 1, keepdims=True))

    def product(a, b, c, m: size, n: size, k: size):
        i, j = ct.bid(0), ct.bid(1)
        total = ct.full((m, n), 0, ct.float32)
        for step in range(ct.cdiv(a.shape[1], k)):
            left = ct.load(a, (i, step), (m, k), padding_mode=ct.PaddingMode.ZERO)
            right = ct.load(b, (step, j), (k, n), padding_mode=ct.PaddingMode.ZERO)
            total = ct.mma(left, right, total)
        ct.store(c, (i, j), total)

    return ct, add, transpose, softmax, ct.kernel(product), ct.kernel(product, num_ctas=2)


def tile_launch(grid, kernel, *arguments):
    import cuda.tile as ct

    ct.launch(cupy.cuda.get_current_stream().ptr, grid, kernel, arguments)


@operation
def tile_add():
    a, b = normal(5000), normal(5000)
    c = cupy.zeros(5000, np.float32)
    tile_launch((5,), tile_kernels()[1], cupy.asarray(a), cupy.asarray(b), c, 1024)
    return [(c.get(), a + b)]


@operation
def tile_transpose():
    a = normal(200, 136)
    c = cupy.zeros((136, 200), np.float32)
    tile_launch((4, 3), tile_kernels()[2], cupy.asarray(a), c, 64)
    return [(c.get(), a.T)]


@operation
def tile_softmax():
    a = normal(64, 256)
    c = cupy.zeros((64, 256), np.float32)
    tile_launch((64,), tile_kernels()[3], cupy.asarray(a), c, 256)
    e = np.exp(a - a.max(1, keepdims=True))
    return [(c.get(), e / e.sum(1, keepdims=True))]


@operation
def tile_product():
    """By tensor maps, wgmma and warps with tasks of their own; then by clusters of two blocks."""
    a, b = normal(200, 104, dtype=np.float16), normal(104, 136, dtype=np.float16)
    results = []
    for kernel in tile_kernels()[4:]:
        c = cupy.zeros((200, 136), np.float32)
        tile_launch((4, 3), kernel, cupy.asarray(a), cupy.asarray(b), c, 64, 64, 64)
        results.append((c.get() / 8, a.astype(np.float32) @ b.astype(np.float32) / 8))
    return results


# --- CuTe ---


@operation
def cute_elementwise():
    import cutlass
    import cutlass.cute as cute
    from cutlass.cute.runtime import from_dlpack

    @cute.kernel
    def kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, n: cutlass.Int32):
        thread, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        i = block * 128 + thread
        if i < n:
            c[i] = a[i] * b[i] + cute.math.exp(a[i])

    @cute.jit
    def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        kernel(a, b, c, a.shape[0]).launch(grid=[cute.ceil_div(a.shape[0], 128), 1, 1], block=[128, 1, 1])

    a, b = normal(1000), normal(1000)
    arrays = [cupy.asarray(a), cupy.asarray(b), cupy.zeros(1000, np.float32)]
    launch(*(from_dlpack(array) for array in arrays))
    cupy.cuda.Device().synchronize()
    return [(arrays[2].get(), a * b + np.exp(a))]


@operation
def cute_copies():
    """Tiles as wide as each swizzle by tensor copies, of tensors of less than 128 KiB and of more."""
    import cutlass
    import cutlass.cute as cute
    from cutlass.cute.nvgpu import cpasync
    from cutlass.cute.runtime import from_dlpack

    @cute.kernel
    def kernel(
        load: cute.CopyAtom,
        source: cute.Tensor,
        store: cute.CopyAtom,
        target: cute.Tensor,
        layout: cute.ComposedLayout,
        side: cutlass.Constexpr,
        width: cutlass.Constexpr,
    ):
        size = side * width * 2
        memory = cutlass.utils.SmemAllocator()
        barrier = memory.allocate_array(cutlass.Int64, 1)
        tile = memory.allocate_tensor(cutlass.Float16, layout.outer, 1024, layout.inner)
        with cute.arch.elect_one():
            cute.arch.mbarrier_init(barrier, 1)
            cute.arch.mbarrier_expect_tx(barrier, size)
        cute.arch.mbarrier_init_fence()
        cute.arch.barrier()
        one = cute.make_layout(1)
        parts = cute.group_modes(tile, 0, 2)
        in_tile, from_source = cpasync.tma_partition(
            load, 0, one, parts, cute.group_modes(cute.local_tile(source, (side, width), (None, None)), 0, 2)
        )
        of_tile, to_target = cpasync.tma_partition(
            store, 0, one, parts, cute.group_modes(cute.local_tile(target, (side, width), (None, None)), 0, 2)
        )
        x, y, _ = cute.arch.block_idx()
        cute.copy(load, from_source[(None, x, y)], in_tile, tma_bar_ptr=barrier)
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive(barrier)
        cute.arch.mbarrier_wait(barrier, 0)
        cute.copy(store, of_tile, to_target[(None, x, y)])

    @cute.jit
    def launch(source: cute.Tensor, target: cute.Tensor, bits: cutlass.Constexpr):
        side, width = 64, 8 << bits
        plain = cute.make_layout((side, width), stride=(width, 1))
        layout = cute.make_composed_layout(cute.make_swizzle(bits, 4, 3), 0, plain)
        load, loaded = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), source, layout, (side, width))
        store, stored = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), target, layout, (side, width))
        kernel(load, loaded, store, stored, layout, side, width).launch(
            grid=[source.shape[0] // side, source.shape[1] // width, 1], block=[32, 1, 1]
        )

    results = []
    for rows, bits in ((128, 3), (1024, 3), (1024, 2), (1024, 1), (128, 0)):
        a = normal(rows, 128, dtype=np.float16)
        source, target = cupy.asarray(a), cupy.zeros((rows, 128), np.float16)
        launch(from_dlpack(source, assumed_align=16), from_dlpack(target, assumed_align=16), bits)
        cupy.cuda.Device().synchronize()
        results.append((target.get(), a))
    return results


if __name__ == "__main__":
    main()
