// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/cube.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ptarmigan::runtime {

CubePlace project(float x, float y, float z) {
    // Coordinates are divided by the largest one before anything else; what is no number then is 0.
    const bool infinite = std::isinf(x) || std::isinf(y) || std::isinf(z);
    const bool no_z = std::isinf(z) || std::isnan(z);
    for (float* value : {&x, &y, &z})
        if (infinite || std::isnan(*value)) *value = 0;
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

namespace {

/// A direction's face, and where it meets the cube whose faces are 1 from its middle.
struct Meeting {
    unsigned face;
    float at[3];
};

Meeting meet(const float (&direction)[3]) {
    Meeting result{project(direction[0], direction[1], direction[2]).face, {}};
    const unsigned axis = result.face / 2;
    const float far = std::fabs(direction[axis]);
    const bool infinite = std::isinf(direction[0]) || std::isinf(direction[1]) || std::isinf(direction[2]);
    if (infinite || !(far > 0)) { // the middle of the face that project() takes then
        result.at[axis] = result.face % 2 == 0 ? 1.0f : -1.0f;
        return result;
    }
    for (unsigned i = 0; i < 3; ++i) result.at[i] = std::isnan(direction[i]) ? 0 : direction[i] / far;
    return result;
}

} // namespace

CubeStep step_between(const float (&from)[3], const float (&to)[3]) {
    const Meeting near = meet(from);
    Meeting far = meet(to);
    const unsigned axis = near.face / 2, far_axis = far.face / 2;
    if (axis == far_axis && near.face != far.face) return {std::numeric_limits<float>::infinity(), 0, true};
    if (axis != far_axis) far.at[far_axis] = std::copysign(2 - far.at[axis] * near.at[axis], far.at[far_axis]);
    const auto step = [&](unsigned along) { return (far.at[along] - near.at[along]) * 0.5f; };
    return {step(axis == 0 ? 2 : 0), step(axis == 1 ? 2 : 1), near.face != far.face};
}

CubeTexel across_edge(unsigned face, std::int64_t x, std::int64_t y, std::int64_t size) {
    // The direction through the texel's middle, in units in which the face is `size` away from the cube's middle.
    const auto middle = [&](std::int64_t texel) { return static_cast<float>(2 * texel + 1 - size); };
    const float s = middle(x), t = middle(y), far = static_cast<float>(size);
    const float directions[6][3] = {{far, -t, -s}, {-far, -t, s}, {s, far, t},
                                    {s, -far, -t}, {s, -t, far},  {-s, -t, -far}};
    const float(&direction)[3] = directions[face];
    const CubePlace place = project(direction[0], direction[1], direction[2]);
    const auto texel = [&](float at) { return std::min(static_cast<std::int64_t>(at * far), size - 1); };
    return {place.face, texel(place.s), texel(place.t)};
}

} // namespace ptarmigan::runtime
