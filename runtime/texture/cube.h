// SPDX-License-Identifier: Apache-2.0
// Directions into cubes.
#pragma once

#include <cstdint>

namespace ptarmigan::runtime {

/// A place on a cube: face 0..5 is +x -x +y -y +z -z; coordinates in [0, 1] on it.
struct CubePlace {
    unsigned face;
    float s, t;
};

/// Where a direction meets the cube. Coordinates that are no numbers are 0.
CubePlace project(float x, float y, float z);

/// The way from one direction to another, in faces, on the plane of the first one's face, around which the faces beside
/// it are folded flat. Infinite to the opposite face.
struct CubeStep {
    double s = 0, t = 0;
    bool beside = false; ///< it ends on another face
};
CubeStep step_between(const float (&from)[3], const float (&to)[3]);

/// A texel of a face of `size` squared that lies outside by one in one dimension: the texel of the next face there.
struct CubeTexel {
    unsigned face;
    std::int64_t x, y;
};
CubeTexel across_edge(unsigned face, std::int64_t x, std::int64_t y, std::int64_t size);

} // namespace ptarmigan::runtime
