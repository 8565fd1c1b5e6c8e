// SPDX-License-Identifier: Apache-2.0
// Texels of block-compressed images: BC1 to BC7, in blocks of four by four.
#pragma once

#include "runtime/texture/texel.h"

namespace ptarmigan::runtime {

/// The texel in column `x` and row `y` (0 to 3) of a block. BC1 to BC3 and BC7 give four channels of 8 bits, BC4 and
/// BC5 one and two of 16 bits, signed ones extended, BC6H three halves: what the H200 makes of every texel of 4,096
/// random blocks of each format.
StoredTexel load_block_texel(const std::uint8_t* block, const TexelFormat& format, unsigned x, unsigned y);

} // namespace ptarmigan::runtime
