# SPDX-License-Identifier: Apache-2.0
"""What the *_operations.py of packages that compute with NumPy's arrays have in common.

Each operation is a function that returns pairs: what the package gives, as NumPy arrays or numbers, and what NumPy gives. main() runs
all operations or those named, in one process, and prints for each: ok, WRONG and by how much, or FAIL and the error.
"""

import sys
import time

import numpy as np

OPERATIONS = {}
START = time.time()


def operation(function):
    OPERATIONS[function.__name__] = function
    return function


def difference(got, expected):
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        return f"{got.shape} instead of {expected.shape}"
    if expected.dtype.kind not in "fc":
        return None if np.array_equal(got, expected) else f"{int((got != expected).sum())} values differ"
    relative = {2: 4e-3, 4: 2e-4, 8: 1e-9}.get(expected.real.itemsize, 1e-9)
    if np.allclose(got, expected, rtol=relative, atol=relative, equal_nan=True):
        return None
    return f"differs by {np.nanmax(np.abs(got.astype(np.complex128) - expected)):.3g}"


def main(names=None):
    names = names or sys.argv[1:] or list(OPERATIONS)
    failures = 0
    for name in names:
        begin = time.time()
        try:
            problems = [text for text in (difference(*pair) for pair in OPERATIONS[name]()) if text]
        except Exception as error:  # whatever stops it is the answer
            print(f"FAIL  {name}: {(str(error).splitlines() or [repr(error)])[0][:200]}", flush=True)
            failures += 1
            continue
        failures += bool(problems)
        print(f"{'WRONG' if problems else 'ok   '} {name} {time.time() - begin:.2f} s {'; '.join(problems)}".rstrip(), flush=True)
    print(f"{len(names) - failures} of {len(names)} operations hold, {time.time() - START:.0f} s")
    sys.exit(failures != 0)
