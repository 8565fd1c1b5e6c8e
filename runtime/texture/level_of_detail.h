// SPDX-License-Identifier: Apache-2.0
// Which levels of a mipmap a fetch reads.
#pragma once

#include "runtime/texture/footprint.h"
#include "runtime/texture/sampler.h"

namespace ptarmigan::runtime {

/// One level, or two and how much of the second (in 256ths); for anisotropic samplers along which axis.
struct LevelChoice {
    std::uint32_t first = 0, second = 0;
    unsigned fraction = 0;
    int ratio = 0;         ///< how much longer than wide the footprint is, a logarithm in 256ths
    int direction[2] = {}; ///< of its longer axis; 64 long
};

/// In 256ths, cut toward zero; NaN counts as 0.
inline int level_in_256ths(float level) {
    constexpr auto far = static_cast<float>(Ellipse::far_away);
    const float scaled = level != level ? 0.0f : level * 256;
    const float below = scaled < far ? scaled : far;
    return static_cast<int>(below > -far ? below : -far);
}

/// What a sampler makes of a level of a mipmapped image. In 256ths.
struct LevelRange {
    int bias; ///< of levels that are given, and of those by gradients
    int lowest, highest, last;
    bool is_linear; ///< between levels
};
inline LevelRange level_range(const TextureObject& texture) {
    const Sampler& sampler = texture.sampler;
    const int lowest = level_in_256ths(sampler.lowest), highest = level_in_256ths(sampler.highest);
    return {level_in_256ths(sampler.bias), lowest, lowest > highest ? lowest : highest,
            static_cast<int>(texture.image.levels - 1) << 8, sampler.linear_levels};
}

/// `gradients` are those of the coordinates that are sampled (for cubes: on the face).
LevelChoice choose_levels(const TextureObject& texture, const Fetch& fetch);

} // namespace ptarmigan::runtime
