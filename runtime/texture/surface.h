// SPDX-License-Identifier: Apache-2.0
// The surface unit: suld, sust and sured for one lane (PTX manual 9.7.11).
#pragma once

#include "runtime/texture/texture.h"
#include "translator/kernel_abi.h"

namespace ptarmigan::runtime {

/// An access of one lane: x in bytes, or in texels where the operation says so.
struct SurfaceAccess {
    abi::TextureGeometry geometry = abi::TextureGeometry::d1;
    abi::SurfaceBounds bounds = abi::SurfaceBounds::trap;
    std::uint32_t layer = 0;
    std::int32_t coordinate[3] = {};
    unsigned bytes = 4; ///< of the whole access
};

enum class SurfaceFault : std::uint8_t { none, outside, misaligned };

/// The place of an access in memory; null if it is outside and reads zero or is dropped.
std::uint8_t* surface_place(const TextureObject& surface, const SurfaceAccess& access, bool by_texel,
                            SurfaceFault& fault);

/// One atomic reduction of 4 or 8 bytes.
void surface_reduce(std::uint8_t* place, abi::SurfaceReduction operation, bool wide, std::uint64_t value);

} // namespace ptarmigan::runtime
