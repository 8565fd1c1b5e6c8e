// SPDX-License-Identifier: Apache-2.0
// A lane of a TextureCall as the sampler wants it.
#pragma once

#include "runtime/texture/sampler.h"

#include <bit>

namespace ptarmigan::runtime {

/// Coordinates behind the layer that the operand has; the others of a texture with more dimensions are 0.
inline unsigned coordinates_of(abi::TextureGeometry geometry) {
    using Geometry = abi::TextureGeometry;
    if (geometry == Geometry::d1 || geometry == Geometry::a1d) return 1;
    return geometry == Geometry::d2 || geometry == Geometry::a2d ? 2 : 3;
}

inline bool has_layer(abi::TextureGeometry geometry) {
    using Geometry = abi::TextureGeometry;
    return geometry == Geometry::a1d || geometry == Geometry::a2d || geometry == Geometry::acube;
}

inline Fetch fetch_of(const abi::TextureCall& call, unsigned lane) {
    using Call = abi::TextureCall;
    const auto has = [&](std::uint32_t flag) { return (call.flags & flag) != 0; };
    Fetch fetch;
    fetch.geometry = static_cast<abi::TextureGeometry>(call.geometry);
    fetch.integer_coordinates = has(Call::integer_coordinates);
    const unsigned first = has_layer(fetch.geometry) ? 1 : 0;
    if (first) fetch.layer = call.coordinates[0][lane];
    for (unsigned i = 0; i < coordinates_of(fetch.geometry); ++i) {
        fetch.coordinate[i] = call.coordinates[first + i][lane];
        if (has(Call::with_offset)) fetch.offset[i] = static_cast<std::int32_t>(call.offset[i][lane]);
        if (has(Call::with_gradients)) {
            fetch.dpdx[i] = std::bit_cast<float>(call.gradients[i][lane]);
            fetch.dpdy[i] = std::bit_cast<float>(call.gradients[3 + i][lane]);
        }
    }
    using Detail = Fetch::Detail;
    fetch.detail = has(Call::with_level) ? Detail::level : has(Call::with_gradients) ? Detail::gradients : Detail::base;
    fetch.level = call.level[lane];
    fetch.compare = has(Call::with_comparison);
    fetch.reference = std::bit_cast<float>(call.comparison[lane]);
    return fetch;
}

} // namespace ptarmigan::runtime
