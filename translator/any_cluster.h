// SPDX-License-Identifier: Apache-2.0
// Code for clusters of several CTAs whose shape each launch says.
#pragma once

#include <array>
#include <cstdint>

namespace ptarmigan::translator {

/// BlockShape::cluster of such code, which reads the shape from the launch. The product of its extents is neither one
/// nor the size of a cluster.
inline constexpr std::array<std::uint32_t, 3> any_cluster{0, 0, 0};

} // namespace ptarmigan::translator
