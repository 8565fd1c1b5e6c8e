// SPDX-License-Identifier: Apache-2.0
// The order in which CTAs that wait for nobody are run.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ptarmigan::runtime {

/// The `number`th CTA (linear, %ctaid.x fastest) in an order that takes two rows of each plane side by side:
/// (0,0) (0,1) (1,0) (1,1) ...; the last row alone where there is an odd number. A permutation of the grid. For kernels
/// of which KernelProperties::continues_in_y says so, and never for those that wait: a CTA may come before a lower one.
inline std::uint64_t cta_in_pairs(std::uint64_t number, const std::uint32_t (&nctaid)[3]) {
    constexpr std::uint64_t rows = 2;
    const std::uint64_t width = nctaid[0], height = nctaid[1];
    const std::uint64_t plane = number / (width * height), in_plane = number % (width * height);
    const std::uint64_t band = in_plane / (width * rows), in_band = in_plane % (width * rows);
    const std::uint64_t height_of_band = std::min(rows, height - band * rows);
    const std::uint64_t x = in_band / height_of_band, y = band * rows + in_band % height_of_band;
    return (plane * height + y) * width + x;
}

} // namespace ptarmigan::runtime
