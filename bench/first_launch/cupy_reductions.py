# SPDX-License-Identifier: Apache-2.0
# 27 reductions of CuPy: nine over everything, over rows and over columns, each kernel compiled by NVRTC to PTX.
import sys

import cupy
import numpy

numbers = numpy.random.default_rng(1).random((300, 200)).astype(numpy.float32) + 0.5
device = cupy.asarray(numbers)
wrong = 0
for name in ("sum", "prod", "min", "max", "mean", "var", "argmin", "argmax", "all"):
    for axis in (None, 0, 1):
        actual = cupy.asnumpy(getattr(device, name)(axis=axis))
        expected = getattr(numbers.astype(numpy.float64), name)(axis=axis)
        with numpy.errstate(over="ignore"):
            expected = numpy.asarray(expected).astype(actual.dtype)
        if not numpy.allclose(actual, expected, rtol=1e-3, atol=1e-30):
            print("wrong:", name, axis)
            wrong += 1
print("FAIL" if wrong else "PASS")
sys.exit(wrong != 0)
