// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/surface.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

using Geometry = abi::TextureGeometry;
using Reduction = abi::SurfaceReduction;

template <class Unsigned, class Signed> Unsigned combine(Reduction operation, Unsigned old, Unsigned value) {
    const auto a = static_cast<Signed>(old), b = static_cast<Signed>(value);
    switch (operation) {
    case Reduction::add: return old + value;
    case Reduction::min_u: return std::min(old, value);
    case Reduction::max_u: return std::max(old, value);
    case Reduction::min_s: return static_cast<Unsigned>(std::min(a, b));
    case Reduction::max_s: return static_cast<Unsigned>(std::max(a, b));
    case Reduction::bit_and: return old & value;
    case Reduction::bit_or: return old | value;
    }
    return old;
}

template <class Unsigned, class Signed> void reduce(std::uint8_t* place, Reduction operation, Unsigned value) {
    auto* word = reinterpret_cast<Unsigned*>(place);
    Unsigned old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &old, combine<Unsigned, Signed>(operation, old, value), true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/// False if the coordinate is outside and stays there; clamped ones move to the nearest.
bool bound(std::int64_t& coordinate, std::int64_t last, abi::SurfaceBounds bounds) {
    if (coordinate >= 0 && coordinate <= last) return true;
    coordinate = std::clamp<std::int64_t>(coordinate, 0, last);
    return bounds == abi::SurfaceBounds::clamp;
}

} // namespace

std::uint8_t* surface_place(const TextureObject& surface, const SurfaceAccess& access, bool by_texel,
                            SurfaceFault& fault) {
    const Image& image = surface.image;
    const ImageLevel& level = image.level[0];
    const std::int64_t texel = image.format.bytes(), row_bytes = level.width * texel;
    std::int64_t x = access.coordinate[0], y = 0, slice = 0;
    if (by_texel) x *= texel;
    // The nearest place for an access of this size.
    const std::int64_t last = std::max<std::int64_t>(row_bytes - access.bytes, 0) / access.bytes * access.bytes;
    const bool fits = row_bytes >= access.bytes; // else nothing is nearest
    bool inside = bound(x, last, access.bounds) && fits;
    if (image.dimensions > 1) {
        y = access.coordinate[1];
        inside = bound(y, level.height - 1, access.bounds) && inside;
    }
    if (image.dimensions > 2) {
        slice = access.coordinate[2];
        inside = bound(slice, level.depth - 1, access.bounds) && inside;
    } else if (image.layered || image.cube) {
        slice = access.layer & 0xffff; // layers have 16 bits
        inside = bound(slice, image.layers - 1, access.bounds) && inside;
    }
    if (!by_texel && access.coordinate[0] % static_cast<std::int32_t>(access.bytes) != 0) {
        fault = SurfaceFault::misaligned;
        return nullptr;
    }
    if (!inside) {
        if (access.bounds == abi::SurfaceBounds::trap) fault = SurfaceFault::outside;
        return nullptr;
    }
    return level.data + static_cast<std::size_t>(slice) * level.slice + static_cast<std::size_t>(y) * level.row +
           static_cast<std::size_t>(x);
}

void surface_reduce(std::uint8_t* place, Reduction operation, bool wide, std::uint64_t value) {
    if (wide)
        reduce<std::uint64_t, std::int64_t>(place, operation, value);
    else
        reduce<std::uint32_t, std::int32_t>(place, operation, static_cast<std::uint32_t>(value));
}

} // namespace ptarmigan::runtime
