// SPDX-License-Identifier: Apache-2.0
// What the machine can do at most, measured: ratios to peers say who is faster, these say how much is left.
#pragma once

namespace bench {

struct MachineLimits {
    double fma_gflops = 0;   ///< f32 fused multiply-adds on the widest vectors, all threads
    double triad_gbytes = 0; ///< a[i] = b[i] + s * c[i] over 3 x 64 MiB, 12 bytes counted per element, all threads
};

MachineLimits measure_limits();

} // namespace bench
