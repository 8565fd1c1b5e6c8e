// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/cube.h"

#include "runtime/texture/coordinate.h"
#include "runtime/texture/footprint_number.h"
#include "runtime/texture/reciprocal.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ptarmigan::runtime {

namespace {

/// A face's coordinates before they are scaled to it, and how far away its middle is.
struct Projection {
    unsigned face;
    float s, t, major;
};

/// The face that a direction goes through: z's before y's before x's where several are as large; NaNs are smaller than
/// all numbers.
Projection face_of(float x, float y, float z) {
    const auto size = [](float value) { return std::isnan(value) ? -1.0f : std::fabs(value); };
    const float ax = size(x), ay = size(y), az = size(z);
    if (ax > ay && ax > az) return x < 0 ? Projection{1, z, -y, ax} : Projection{0, -z, -y, ax};
    if (ay > az) return y < 0 ? Projection{3, x, -z, ay} : Projection{2, x, z, ay};
    return z < 0 ? Projection{5, -x, -y, az} : Projection{4, x, -y, az};
}

/// What fetches from: kernels scale directions before, by the special function unit's reciprocal of the largest
/// coordinate (so does the driver's compiler). The unit doesn't divide again.
struct Scaled {
    float at[3];
};

Scaled scaled(const float (&direction)[3]) {
    float largest = std::fabs(direction[0]); // NaN only if all are
    for (unsigned i = 1; i < 3; ++i) {
        const float size = std::fabs(direction[i]);
        if (!(size <= largest) && !std::isnan(size)) largest = size;
    }
    const float scale = unit_reciprocal(largest);
    return {{direction[0] * scale, direction[1] * scale, direction[2] * scale}};
}

float number(float value) {
    return std::isnan(value) ? 0.0f : value;
}

} // namespace

CubePlace project(float x, float y, float z) {
    const Scaled direction = scaled({x, y, z});
    const Projection at = face_of(direction.at[0], direction.at[1], direction.at[2]);
    // From -1..1 to 0..1 without rounding: all bits that the unit looks at are cut to.
    const auto on_face = [](float value) {
        constexpr float parts = 1 << coordinate::normalized_bits;
        if (std::isinf(value)) return value;
        return static_cast<float>(coordinate::cut((double{number(value)} + 1) / 2, coordinate::normalized_bits)) /
               parts;
    };
    return {at.face, on_face(at.s), on_face(at.t)};
}

CubeStep step_between(const float (&from)[3], const float (&to)[3]) {
    const Scaled near = scaled(from), far = scaled(to);
    const unsigned near_face = face_of(near.at[0], near.at[1], near.at[2]).face;
    const unsigned far_face = face_of(far.at[0], far.at[1], far.at[2]).face;
    const unsigned axis = near_face / 2, far_axis = far_face / 2;
    if (axis == far_axis && near_face != far_face) return {std::numeric_limits<double>::infinity(), 0, true};
    const auto step = [&](unsigned along) {
        const float to_here = number(near.at[along]), to_there = number(far.at[along]);
        if (axis == far_axis || along != far_axis) return unit_difference(to_there, to_here) / 2;
        // From here to the edge, and from the edge down the face beside. On the edge scaling may have gone beyond it.
        const float edge = far_face % 2 == 0 ? 1.0f : -1.0f, side = near_face % 2 == 0 ? 1.0f : -1.0f;
        const double before = cut_to_unit(std::max(unit_difference(1, to_here * edge), 0.0));
        const double behind = cut_to_unit(std::max(unit_difference(1, number(far.at[axis]) * side), 0.0));
        return edge * (before + behind) / 2;
    };
    const double s = step(axis == 0 ? 2 : 0), t = step(axis == 1 ? 2 : 1);
    return {near_face == 0 || near_face == 5 ? -s : s, near_face == 2 ? t : -t, near_face != far_face};
}

CubeTexel across_edge(unsigned face, std::int64_t x, std::int64_t y, std::int64_t size) {
    // The direction through the texel's middle, in units in which the face is `size` away from the cube's middle. What
    // is beyond an edge is folded down onto the face beside.
    float far = static_cast<float>(size);
    const auto middle = [&](std::int64_t texel) {
        const std::int64_t place = 2 * texel + 1 - size, over = std::abs(place) - size;
        if (over <= 0) return static_cast<float>(place);
        far = static_cast<float>(size - over);
        return static_cast<float>(place < 0 ? -size : size);
    };
    const float s = middle(x), t = middle(y);
    const float directions[6][3] = {{far, -t, -s}, {-far, -t, s}, {s, far, t},
                                    {s, -far, -t}, {s, -t, far},  {-s, -t, -far}};
    const float(&direction)[3] = directions[face];
    const Projection place = face_of(direction[0], direction[1], direction[2]);
    const auto texel = [&](float at) {
        return std::min(static_cast<std::int64_t>((at / place.major + 1) * 0.5f * static_cast<float>(size)), size - 1);
    };
    return {place.face, texel(place.s), texel(place.t)};
}

} // namespace ptarmigan::runtime
