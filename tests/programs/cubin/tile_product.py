# SPDX-License-Identifier: Apache-2.0
"""tile_product.sm_90.cubin: a product in CUDA Tile, two blocks for each tile. Its tensor maps are hidden parameters.

Made by cuda-tile 1.7 with `output_format="tileir_bytecode"`, then `tileiras --gpu-name sm_90 -O3` (13.4.92, for a host with x86-64).
"""

import cuda.tile as ct
from cuda.tile._cext import CallingConvention
from cuda.tile.compilation import ArrayConstraint, KernelSignature, export_kernel


def array(dtype):
    return ArrayConstraint(
        dtype,
        2,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=(None, 1),
        stride_divisible_by=(8, 1),
        shape_divisible_by=(8, 8),
        base_addr_divisible_by=16,
    )


@ct.kernel(num_ctas=2)
def product(a, b, c):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.full((64, 64), 0, ct.float32)
    for k in range(ct.cdiv(a.shape[1], 64)):
        left = ct.load(a, (i, k), (64, 64), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(left, ct.load(b, (k, j), (64, 64), padding_mode=ct.PaddingMode.ZERO), total)
    ct.store(c, (i, j), total)


signature = KernelSignature(
    [array(ct.float16), array(ct.float16), array(ct.float32)], CallingConvention.cutile_python_v1(), symbol="pairs"
)
export_kernel(product, [signature], "tile_product.bytecode", gpu_code="sm_90", output_format="tileir_bytecode")
