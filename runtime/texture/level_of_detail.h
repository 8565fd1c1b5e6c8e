// SPDX-License-Identifier: Apache-2.0
// Which levels of a mipmap a fetch reads.
#pragma once

#include "runtime/texture/sampler.h"

namespace ptarmigan::runtime {

/// One level, or two and how much of the second (in 256ths); for anisotropic samplers along which axis.
struct LevelChoice {
    std::uint32_t first = 0, second = 0;
    unsigned fraction = 0;
    int ratio = 0;         ///< how much longer than wide the footprint is, a logarithm in 256ths
    int direction[2] = {}; ///< of its longer axis; 64 long
};

/// `gradients` are those of the coordinates that are sampled (for cubes: on the face).
LevelChoice choose_levels(const TextureObject& texture, const Fetch& fetch);

} // namespace ptarmigan::runtime
