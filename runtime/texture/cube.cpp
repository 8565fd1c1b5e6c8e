// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/cube.h"

#include "runtime/texture/reciprocal.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ptarmigan::runtime {

namespace {

constexpr float smallest_normal = std::numeric_limits<float>::min();

/// A face's coordinates before they are scaled to it, and how far away its middle is; 0 where a direction is none.
struct Projection {
    unsigned face;
    float s, t, major;
};

Projection face_of(float x, float y, float z) {
    // What is no number is 0; next to infinities everything is.
    const bool infinite = std::isinf(x) || std::isinf(y) || std::isinf(z);
    const bool no_z = std::isinf(z) || std::isnan(z);
    for (float* value : {&x, &y, &z})
        if (infinite || std::isnan(*value)) *value = 0;
    const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    if (ax > ay && ax > az) return std::signbit(x) ? Projection{1, z, -y, ax} : Projection{0, -z, -y, ax};
    if (ay > az) return std::signbit(y) ? Projection{3, x, -z, ay} : Projection{2, x, z, ay};
    if (az > 0) return std::signbit(z) ? Projection{5, -x, -y, az} : Projection{4, x, -y, az};
    return {no_z ? 2u : 4u, 0, 0, 0};
}

} // namespace

CubePlace project(float x, float y, float z) {
    const Projection at = face_of(x, y, z);
    // Where the largest one or its reciprocal is subnormal the unit meets the middle of the face.
    if (at.major < smallest_normal || at.major > 1 / smallest_normal) return {at.face, 0.5f, 0.5f};
    const float scale = unit_reciprocal(at.major);
    const auto on_face = [&](float value) { return (value * scale + 1) * 0.5f; };
    return {at.face, on_face(at.s), on_face(at.t)};
}

namespace {

/// A direction's face, and where it meets the cube whose faces are 1 from its middle.
struct Meeting {
    unsigned face;
    float at[3];
};

Meeting meet(const float (&direction)[3]) {
    Meeting result{face_of(direction[0], direction[1], direction[2]).face, {}};
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
    const Projection place = face_of(direction[0], direction[1], direction[2]);
    const auto texel = [&](float at) {
        return std::min(static_cast<std::int64_t>((at / place.major + 1) * 0.5f * far), size - 1);
    };
    return {place.face, texel(place.s), texel(place.t)};
}

} // namespace ptarmigan::runtime
