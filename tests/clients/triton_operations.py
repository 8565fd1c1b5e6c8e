#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Triton's tutorials' kernels (addition, softmax, matrix product, layer norm, dropout, attention's parts) beside PyTorch's CPU results."""

import torch
import triton
import triton.language as tl
from operations import main, operation

G = torch.Generator().manual_seed(0)


def normal(*shape):
    return torch.randn(*shape, generator=G)


def pair(got, expected):
    return got.cpu().float().numpy(), expected.float().numpy()


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@operation
def vector_add():
    x, y = normal(10001), normal(10001)
    out = torch.empty(10001, device="cuda")
    add_kernel[(triton.cdiv(10001, 1024),)](x.cuda(), y.cuda(), out, 10001, BLOCK=1024)
    return [pair(out, x + y)]


@triton.jit
def softmax_kernel(out, x, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + at, values / tl.sum(values, axis=0), mask=at < columns)


@operation
def softmax():
    x = normal(67, 781)
    out = torch.empty_like(x, device="cuda")
    softmax_kernel[(67,)](out, x.cuda(), 781, 781, BLOCK=1024)
    return [pair(out, torch.softmax(x, 1))]


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * N + n[None, :])
        total = tl.dot(x, y, total, input_precision="ieee")
    tl.store(c + m[:, None] * N + n[None, :], total)


def product(kind):
    a, b = (normal(128, 96) / 4).to(kind), (normal(96, 64) / 4).to(kind)
    c = torch.empty(128, 64, device="cuda")
    matmul_kernel[(4, 2)](a.cuda(), b.cuda(), c, 128, 64, 96, BM=32, BN=32, BK=32)
    return [pair(c, a.float() @ b.float())]


@operation
def matmul_f32():
    return product(torch.float32)


@operation
def matmul_f16():
    return product(torch.float16)


@operation
def matmul_bf16():
    return product(torch.bfloat16)


@triton.jit
def layer_norm_kernel(x, y, w, b, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < N
    v = tl.load(x + row * N + at, mask=mask, other=0.0)
    mean = tl.sum(v, axis=0) / N
    centred = tl.where(mask, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / N + eps)
    tl.store(y + row * N + at, centred * scale * tl.load(w + at, mask=mask) + tl.load(b + at, mask=mask), mask=mask)


@operation
def layer_norm():
    x, w, b = normal(33, 500), normal(500), normal(500)
    y = torch.empty_like(x, device="cuda")
    layer_norm_kernel[(33,)](x.cuda(), y, w.cuda(), b.cuda(), 500, 1e-5, BLOCK=512)
    return [pair(y, torch.nn.functional.layer_norm(x, (500,), w, b))]


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, tl.load(x + at, mask=at < n) / (1 - p), 0.0), mask=at < n)


@operation
def dropout():
    x = torch.ones(8192)
    out = torch.empty(8192, device="cuda")
    dropout_kernel[(8,)](x.cuda(), out, 8192, 0.25, 123, BLOCK=1024)
    share = float((out.cpu() == 0).float().mean())
    return [(bool(abs(share - 0.25) < 0.03), True)]


@triton.jit
def scan_kernel(x, out, most, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, tl.cumsum(v, axis=0))
    tl.atomic_max(most, tl.max(v, axis=0))


@operation
def scan_and_atomics():
    x = torch.randint(0, 1000, (4, 256), generator=G, dtype=torch.int32)
    out, most = torch.empty(4, 256, dtype=torch.int32, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
    scan_kernel[(4,)](x.cuda(), out, most, BLOCK=256)
    return [pair(out, torch.cumsum(x, 1)), pair(most, x.max().reshape(1))]


if __name__ == "__main__":
    main()
