// SPDX-License-Identifier: Apache-2.0
// Texels of images compressed as BC6H and BC7, which the OpenGL and Vulkan specifications call BPTC (Khronos data
// format specification, "BPTC compressed texture image formats").
#pragma once

#include "runtime/texture/texel.h"

namespace ptarmigan::runtime {

/// Texel number `texel` (4 * row + column) of a block of 16 bytes: four channels of 8 bits. A block of no mode is zero.
StoredTexel load_bc7_texel(const std::uint8_t* block, unsigned texel);
/// Likewise, three halves. `is_signed`: of the format with negative numbers. A block of a reserved mode
/// is black.
StoredTexel load_bc6h_texel(const std::uint8_t* block, unsigned texel, bool is_signed);

} // namespace ptarmigan::runtime
