// SPDX-License-Identifier: Apache-2.0
// The texture unit: what tex, tld4 and txq give for one lane (PTX manual 9.7.10; the CUDA programming guide's appendix
// on texture fetching). Portable, without state, safe for any coordinates.
#pragma once

#include "runtime/texture/texel.h"
#include "runtime/texture/texture.h"
#include "translator/kernel_abi.h"

namespace ptarmigan::runtime {

/// One lane of a TextureCall, its coordinates sorted out.
struct Fetch {
    abi::TextureGeometry geometry = abi::TextureGeometry::d1;
    bool integer_coordinates = false;
    std::uint32_t layer = 0;
    std::uint32_t coordinate[3] = {}; ///< floats or integers
    std::int32_t offset[3] = {};
    enum class Detail : std::uint8_t { base, level, gradients } detail = Detail::base;
    std::uint32_t level = 0; ///< float or integer, as the coordinates
    float dpdx[3] = {}, dpdy[3] = {};
    bool compare = false;
    float reference = 0;
};

Texel fetch(const TextureObject& texture, const Fetch& fetch);
/// tld4: `component` of the four texels, counter-clockwise from the lower left.
Texel gather(const TextureObject& texture, const Fetch& fetch, unsigned component);
/// txq and suq; `level` of txq.level.
std::uint32_t query(const TextureObject& object, abi::TextureQuery what, std::uint32_t level);

} // namespace ptarmigan::runtime
