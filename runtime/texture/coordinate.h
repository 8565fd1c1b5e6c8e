// SPDX-License-Identifier: Apache-2.0
// From a coordinate to texels along one dimension.
#pragma once

#include "runtime/texture/texture.h"

namespace ptarmigan::runtime {

/// The texels that a coordinate falls on along one dimension. Outside of border addressing they exist.
struct Footprint {
    std::int64_t texel[2] = {}; ///< the first alone if not linear
    bool inside[2] = {true, true};
    unsigned fraction = 0;      ///< of the second, in 256ths
};

/// One dimension of a fetch.
struct Dimension {
    std::uint32_t size;
    Sampler::Address address;
    bool normalized, linear;
    bool open = false; ///< texels outside stay where they are, for edges of cubes
};

/// `offset` moves by whole texels.
Footprint locate(float coordinate, const Dimension &dimension, std::int32_t offset);

} // namespace ptarmigan::runtime
