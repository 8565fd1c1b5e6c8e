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

CubePlace project(float x, float y, float z);

} // namespace ptarmigan::runtime
