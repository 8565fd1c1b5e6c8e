// SPDX-License-Identifier: Apache-2.0
// The footprint of a fetch with gradients, as the texture unit measures it.
#pragma once

#include "runtime/texture/sampler.h"

namespace ptarmigan::runtime {

/// An ellipse of texels of the first level. Lengths are logarithms in 256ths.
struct Ellipse {
    static constexpr int far_away = 1000 * 256; ///< behind all levels
    int length = -far_away;                     ///< of its longest diameter
    int ratio = 0;                              ///< of that to its shortest
    int direction[2] = {};                      ///< of the longest one; 64 long
};

/// Without axes it is a circle. So it is in three dimensions and over several faces of a cube.
Ellipse ellipse_of(const TextureObject& texture, const Fetch& fetch, bool with_axes);

/// log2 in 256ths, of eight bits of the fraction.
int table_log2(double length);

} // namespace ptarmigan::runtime
