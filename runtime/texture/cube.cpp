// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/cube.h"

#include <cmath>

namespace ptarmigan::runtime {

CubePlace project(float x, float y, float z) {
    const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    CubePlace place{};
    float s = 0, t = 0, major = 0;
    if (ax >= ay && ax >= az) {
        place.face = std::signbit(x) ? 1 : 0;
        s = place.face ? z : -z;
        t = -y;
        major = ax;
    } else if (ay >= az) {
        place.face = std::signbit(y) ? 3 : 2;
        s = x;
        t = place.face == 3 ? -z : z;
        major = ay;
    } else {
        place.face = std::signbit(z) ? 5 : 4;
        s = place.face == 5 ? -x : x;
        t = -y;
        major = az;
    }
    place.s = (s / major + 1) * 0.5f;
    place.t = (t / major + 1) * 0.5f;
    return place;
}

} // namespace ptarmigan::runtime
