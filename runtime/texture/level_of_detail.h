// SPDX-License-Identifier: Apache-2.0
// Which levels of a mipmap a fetch reads.
#pragma once

#include "runtime/texture/sampler.h"

namespace ptarmigan::runtime {

/// One level, or two and how much of the second (in 256ths).
struct LevelChoice {
    std::uint32_t first = 0, second = 0;
    unsigned fraction = 0;
};

/// `gradients` are those of the coordinates that are sampled (for cubes: on the face).
LevelChoice choose_levels(const TextureObject& texture, const Fetch& fetch);

} // namespace ptarmigan::runtime
