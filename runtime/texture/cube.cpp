// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/cube.h"

#include <algorithm>
#include <cmath>

namespace ptarmigan::runtime {

CubePlace project(float x, float y, float z) {
    // Coordinates are divided by the largest one before anything else; what is no number then is 0.
    const bool infinite = std::isinf(x) || std::isinf(y) || std::isinf(z);
    const bool no_z = std::isinf(z) || std::isnan(z);
    for (float *value : {&x, &y, &z})
        if (infinite || std::isnan(*value))
            *value = 0;
    const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    CubePlace place{4, 0.5f, 0.5f};
    float s = 0, t = 0, major = 0;
    if (ax > ay && ax > az) {
        place.face = std::signbit(x) ? 1 : 0;
        s = place.face == 1 ? z : -z;
        t = -y;
        major = ax;
    } else if (ay > az) {
        place.face = std::signbit(y) ? 3 : 2;
        s = x;
        t = place.face == 3 ? -z : z;
        major = ay;
    } else if (az > 0) {
        place.face = std::signbit(z) ? 5 : 4;
        s = place.face == 5 ? -x : x;
        t = -y;
        major = az;
    }
    if (major == 0) {
        place.face = no_z ? 2 : 4;
        return place;
    }
    place.s = (s / major + 1) * 0.5f;
    place.t = (t / major + 1) * 0.5f;
    return place;
}

CubeTexel across_edge(unsigned face, std::int64_t x, std::int64_t y, std::int64_t size) {
    // The direction through the texel's middle, in units in which the face is `size` away from the cube's middle.
    const auto middle = [&](std::int64_t texel) { return static_cast<float>(2 * texel + 1 - size); };
    const float s = middle(x), t = middle(y), far = static_cast<float>(size);
    const float directions[6][3] = {{far, -t, -s}, {-far, -t, s}, {s, far, t}, {s, -far, -t}, {s, -t, far}, {-s, -t, -far}};
    const float(&direction)[3] = directions[face];
    const CubePlace place = project(direction[0], direction[1], direction[2]);
    const auto texel = [&](float at) { return std::min(static_cast<std::int64_t>(at * far), size - 1); };
    return {place.face, texel(place.s), texel(place.t)};
}

} // namespace ptarmigan::runtime
