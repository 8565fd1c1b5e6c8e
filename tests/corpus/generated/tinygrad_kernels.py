# SPDX-License-Identifier: Apache-2.0
"""PTX that tinygrad's PTXRenderer writes, without a GPU: `python3 tinygrad_kernels.py FOLDER`.

Needs `pip install tinygrad` (0.14.0 made the texts here). The computations are ours.
"""
import pathlib
import sys

from tinygrad import Tensor, dtypes
from tinygrad.codegen import to_program
from tinygrad.helpers import Target
from tinygrad.renderer.ptx import PTXRenderer
from tinygrad.uop.ops import Ops


def cases():
    yield "add", lambda: Tensor.empty(1000) + Tensor.empty(1000)
    yield "sum", lambda: Tensor.empty(4096).sum()
    yield "softmax", lambda: Tensor.empty(64, 128).softmax()
    yield "matmul_f32", lambda: Tensor.empty(128, 128) @ Tensor.empty(128, 128)
    yield "matmul_f16", lambda: Tensor.empty(128, 128, dtype=dtypes.half).matmul(Tensor.empty(128, 128, dtype=dtypes.half), dtype=dtypes.float)
    yield "conv", lambda: Tensor.empty(2, 8, 16, 16).conv2d(Tensor.empty(8, 8, 3, 3))
    yield "gelu", lambda: Tensor.empty(1000).gelu()
    yield "integers", lambda: (Tensor.empty(100, dtype=dtypes.int) * 3 // 7) % 5
    yield "bytes", lambda: (Tensor.empty(100, dtype=dtypes.uint8) + 3).cast(dtypes.int64)
    yield "bools", lambda: (Tensor.empty(100) > 0.5).where(Tensor.empty(100), 2.0).isnan()
    yield "argmax", lambda: Tensor.empty(300).argmax()
    yield "cumsum", lambda: Tensor.empty(256).cumsum()
    yield "doubles", lambda: (Tensor.empty(100, dtype=dtypes.double) * 3 + 1).maximum(0.5)
    yield "gather", lambda: Tensor.empty(50, 8)[Tensor.empty(20, dtype=dtypes.int)]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for arch in ("sm_75", "sm_90"):
        renderer = PTXRenderer(Target("CUDA", "PTX", arch))
        version = {"sm_75": "7.0", "sm_90": "7.8"}[arch]
        for name, make in cases():
            linear = make().schedule_linear()
            for i, call in enumerate(c for c in linear.src if c.src[0].op is Ops.SINK):
                program = to_program(call.src[0], renderer)
                source = next(u for u in program.src if u.op is Ops.SOURCE).arg
                (folder / f"{name}{i}_{arch.replace('_', '')}.ptx").write_text(source.replace("TARGET", arch).replace("VERSION", version))


if __name__ == "__main__":
    main()
