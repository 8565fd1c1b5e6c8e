// SPDX-License-Identifier: Apache-2.0
// Arrays, textures and surfaces for test programs, through the CUDA runtime where nvcc builds them and the driver API
// elsewhere. All live as long as their objects here.
#pragma once

#include <vector>

namespace test {

/// 0 for dimensions that there are not; depth counts layers or faces. Texels are floats.
struct ArrayShape {
    unsigned width, height, depth, channels, flags;
};
// The flags have the same numbers in both interfaces.
constexpr unsigned array_layered = 1, array_surface = 2, array_cube = 4, array_gather = 8;
constexpr unsigned filter_point = 0, filter_linear = 1;
constexpr unsigned normalized = 1; ///< coordinates

} // namespace test

#ifdef __CUDACC__
#include "runtime_textures.h"
#else
#include "driver_textures.h"
#endif
