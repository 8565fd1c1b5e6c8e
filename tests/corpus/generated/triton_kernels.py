# SPDX-License-Identifier: Apache-2.0
"""PTX of Triton kernels at several targets, without a GPU: `python3 triton_kernels.py FOLDER`.

Needs `pip install triton` (3.9.0 made the texts here). The kernels are ours.
"""
import os
import pathlib
import sys

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # no paths of the machine in the texts
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def softmax(out, x, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, mask=i < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + i, e / tl.sum(e, axis=0), mask=i < cols)


@triton.jit
def layer_norm(out, x, w, b, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < cols
    v = tl.load(x + row * cols + i, mask=m, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / cols
    d = tl.where(m, v - mean, 0.0)
    r = tl.rsqrt(tl.sum(d * d, axis=0) / cols + eps)
    tl.store(out + row * cols + i, d * r * tl.load(w + i, mask=m) + tl.load(b + i, mask=m), mask=m)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(tl.load(pa, mask=rk[None, :] < K - k, other=0.0), tl.load(pb, mask=rk[:, None] < K - k, other=0.0), acc)
        pa += BK
        pb += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(c.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def matmul_tma(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    da = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    db = tl.make_tensor_descriptor(b, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    dc = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(da.load([m, k]), db.load([k, n]), acc)
    dc.store([m, n], acc.to(c.dtype.element_ty))


@triton.jit
def attention(q, k, v, out, scale, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    rn = tl.arange(0, BN)
    x = tl.load(q + rm[:, None] * D + rd[None, :])
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        y = tl.load(k + (start + rn)[None, :] * D + rd[:, None])
        s = tl.dot(x, y) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        alpha = tl.exp2(top - new)
        total = total * alpha + tl.sum(p, 1)
        z = tl.load(v + (start + rn)[:, None] * D + rd[None, :])
        acc = tl.dot(p.to(z.dtype), z, acc * alpha[:, None])
        top = new
    tl.store(out + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(out.dtype.element_ty))


@triton.jit
def atomics(x, hist, top, total, swap, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + i, mask=m, other=0)
    tl.atomic_add(hist + (v & 255), 1, mask=m)
    tl.atomic_max(top, tl.max(v, axis=0))
    tl.atomic_add(total, tl.sum(v.to(tl.float32), axis=0), sem="release", scope="gpu")
    tl.atomic_cas(swap, 0, tl.program_id(0))
    tl.atomic_xchg(swap + 1, n)


@triton.jit
def scan(out, x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, tl.cumsum(v, axis=0))
    tl.store(out + BLOCK + i, tl.sort(v))


@triton.jit
def argmax_rows(out, index, x, cols, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    v = tl.load(x + row * cols + i, mask=i < cols, other=-float("inf"))
    best, at = tl.max(v, axis=0, return_indices=True)
    tl.store(out + row, best)
    tl.store(index + row, at)


@triton.jit
def numbers(out, x, n, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + i, mask=m)
    r = tl.rand(seed, i)
    s = tl.sin(v) + tl.cos(v) * tl.log(tl.abs(v) + 1) - tl.sqrt(tl.abs(v)) + tl.erf(v) + tl.floor(v) + tl.exp(v * 0.01)
    tl.store(out + i, tl.where(r > 0.5, s, v / (1.0 + tl.abs(s))), mask=m)


@triton.jit
def convert(out8, out16, x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out8 + i, v.to(out8.dtype.element_ty))
    tl.store(out16 + i, v.to(out8.dtype.element_ty).to(out16.dtype.element_ty))


@triton.jit
def transpose(out, x, M, N, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    t = tl.load(x + r[:, None] * N + c[None, :])
    tl.store(out + c[:, None] * M + r[None, :], tl.trans(t))


@triton.jit
def persistent(x, out, n, BLOCK: tl.constexpr):
    for t in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        i = t * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n, eviction_policy="evict_first") * 2, mask=i < n, cache_modifier=".cs")
    tl.device_print("done", tl.program_id(0))


V, MM = {"BLOCK": 1024}, {"BM": 64, "BN": 64, "BK": 32}
ATT = {"D": 64, "BM": 64, "BN": 32}


def matmul_of(t, o="*fp32"):
    return {"a": t, "b": t, "c": o, "M": "i32", "N": "i32", "K": "i32"}


def attention_of(t):
    return {"q": t, "k": t, "v": t, "out": t, "scale": "fp32", "N": "i32"}


# name, kernel, signature, constants, targets, warps
CASES = [
    ("vector_add", vector_add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, V, (75, 90, 120), 4),
    ("vector_add_bf16", vector_add, {"x": "*bf16", "y": "*bf16", "out": "*bf16", "n": "i32"}, V, (80,), 4),
    ("vector_add_i8", vector_add, {"x": "*i8", "y": "*i8", "out": "*i8", "n": "i64"}, V, (80,), 4),
    ("softmax", softmax, {"out": "*fp32", "x": "*fp32", "stride": "i32", "cols": "i32"}, V, (75, 90, 100), 4),
    ("layer_norm", layer_norm, {"out": "*fp16", "x": "*fp16", "w": "*fp32", "b": "*fp32", "cols": "i32", "eps": "fp32"}, V, (80,), 8),
    ("matmul_f16", matmul, matmul_of("*fp16", "*fp16"), MM, (80, 90, 100, 120), 4),
    ("matmul_bf16", matmul, matmul_of("*bf16"), MM, (80, 90), 4),
    ("matmul_f32", matmul, matmul_of("*fp32"), {"BM": 32, "BN": 32, "BK": 16}, (75, 80), 4),
    ("matmul_fp8", matmul, matmul_of("*fp8e4nv"), {"BM": 64, "BN": 64, "BK": 64}, (89, 90, 100, 120), 4),
    ("matmul_tma", matmul_tma, matmul_of("*fp16", "*fp16"), MM, (90, 100, 120), 4),
    ("attention_f16", attention, attention_of("*fp16"), ATT, (80, 90, 100), 4),
    ("atomics", atomics, {"x": "*i32", "hist": "*i32", "top": "*i32", "total": "*fp32", "swap": "*i32", "n": "i32"}, {"BLOCK": 256}, (75, 90), 4),
    ("scan", scan, {"out": "*fp32", "x": "*fp32"}, {"BLOCK": 128}, (80,), 4),
    ("argmax", argmax_rows, {"out": "*fp32", "index": "*i32", "x": "*fp32", "cols": "i32"}, V, (90,), 4),
    ("numbers", numbers, {"out": "*fp32", "x": "*fp32", "n": "i32", "seed": "i32"}, {"BLOCK": 128}, (75, 90), 4),
    ("convert_e4m3", convert, {"out8": "*fp8e4nv", "out16": "*fp16", "x": "*fp32"}, V, (89, 100), 4),
    ("convert_e5m2", convert, {"out8": "*fp8e5", "out16": "*bf16", "x": "*fp32"}, V, (80, 90), 4),
    ("transpose", transpose, {"out": "*fp32", "x": "*fp32", "M": "i32", "N": "i32"}, {"B": 32}, (90,), 4),
    ("persistent", persistent, {"x": "*fp32", "out": "*fp32", "n": "i32"}, V, (80,), 4),
]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, kernel, signature, constants, targets, warps in CASES:
        for cc in targets:
            # What the H200 loads is .version 9.0 at most; the newer ones keep what Triton chose.
            version = {75: 70, 80: 78, 89: 84, 90: 86}.get(cc)
            aligned = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(signature.values())}
            full = dict(signature, **{c: "constexpr" for c in constants})
            try:
                source = ASTSource(fn=kernel, signature=full, constexprs=constants, attrs=aligned)
                made = triton.compile(source, target=GPUTarget("cuda", cc, 32), options={"num_warps": warps, "num_stages": 3, **({"ptx_version": version} if version else {})})
            except Exception as error:  # a target that this kernel has no form for
                print(f"{name} sm_{cc}: {type(error).__name__} {str(error)[:200]}")
                continue
            m = made.metadata
            (folder / f"{name}_sm{cc}.ptx").write_text(f"// shared {m.shared} bytes, {m.num_warps} warps\n" + made.asm["ptx"])


if __name__ == "__main__":
    main()
