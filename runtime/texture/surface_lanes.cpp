// SPDX-License-Identifier: Apache-2.0
// Places are found in loops over all lanes that compilers make vectors of; elements are moved one by one, in the order
// of the lanes.
#include "runtime/texture/surface_lanes.h"

#include "runtime/texture/fetch_of.h"
#include "runtime/texture/plane_texels.h"

namespace ptarmigan::runtime {
namespace {

using namespace plane;
using Operation = abi::TextureOperation;
using Bounds = abi::SurfaceBounds;

struct Surface {
    const Image& image;
    Bounds bounds;
    bool is_store, has_layer;
    std::uint32_t bytes; ///< of an access
    std::int32_t last;   ///< beginning of the last access of a row
};

template <unsigned lanes> struct SurfacePlaces {
    std::uint32_t offset[lanes];
    std::int32_t inside[lanes]; ///< 0 or -1
};

/// False where a lane faults.
template <unsigned lanes>
PLANE_INLINE bool find_places(const Call& call, const Surface& surface, SurfacePlaces<lanes>& places) {
    const Image& image = surface.image;
    const ImageLevel& level = image.level[0];
    const unsigned first = surface.has_layer ? 1 : 0;
    const bool is_deep = image.dimensions > 2, has_slices = is_deep || image.layered || image.cube;
    const auto rows = static_cast<std::int32_t>(level.height);
    const auto slices = static_cast<std::int32_t>(is_deep ? level.depth : image.layers);
    const auto row_bytes = static_cast<std::uint32_t>(level.row), slice_bytes = static_cast<std::uint32_t>(level.slice);
    const auto mask = static_cast<std::int32_t>(surface.bytes - 1);
    const std::int32_t clamped = surface.bounds == Bounds::clamp ? -1 : 0;
    std::int32_t y[lanes], slice[lanes], wrong[lanes];
    for (unsigned lane = 0; lane < lanes; ++lane) {
        y[lane] = image.dimensions > 1 ? static_cast<std::int32_t>(call.coordinates[first + 1][lane]) : 0;
        slice[lane] = !has_slices         ? 0
                      : is_deep           ? static_cast<std::int32_t>(call.coordinates[2][lane])
                      : surface.has_layer ? static_cast<std::int32_t>(call.coordinates[0][lane] & 0xffff)
                                          : 0;
    }
    const std::int32_t last_row = image.dimensions > 1 ? rows - 1 : 0, last_slice = has_slices ? slices - 1 : 0;
    const auto active = static_cast<std::uint32_t>(call.active);
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const auto x = static_cast<std::int32_t>(call.coordinates[first][lane]);
        const std::int32_t at = smaller(larger(x, 0), surface.last), row = smaller(larger(y[lane], 0), last_row),
                           in = smaller(larger(slice[lane], 0), last_slice);
        const std::int32_t moved = (at ^ x) | (row ^ y[lane]) | (in ^ slice[lane]);
        places.inside[lane] = (moved == 0 ? -1 : 0) | clamped;
        places.offset[lane] = static_cast<std::uint32_t>(in) * slice_bytes +
                              static_cast<std::uint32_t>(row) * row_bytes + static_cast<std::uint32_t>(at);
        wrong[lane] = x & mask;
    }
    const std::int32_t traps = surface.bounds == Bounds::trap ? -1 : 0;
    std::int32_t any = 0;
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
        any |= (active >> lane & 1) != 0 ? wrong[lane] | (~places.inside[lane] & traps) : 0;
    return any == 0;
}

/// Words of the elements of `call`, from memory.
template <typename Word, unsigned lanes>
PLANE_INLINE void load_all(const std::uint8_t* data, const SurfacePlaces<lanes>& places, Word (&words)[lanes]) {
#pragma GCC unroll 8
    for (unsigned lane = 0; lane < lanes; ++lane) std::memcpy(&words[lane], data + places.offset[lane], sizeof(Word));
}

template <unsigned lanes>
PLANE_INLINE void give_inside(Call& call, unsigned number, const SurfacePlaces<lanes>& places,
                              std::uint32_t (&words)[lanes]) {
    for (unsigned lane = 0; lane < lanes; ++lane) words[lane] &= static_cast<std::uint32_t>(places.inside[lane]);
    give(call, number, words);
}

/// Elements of one to four bytes that lie in a word together.
template <typename Word, unsigned lanes>
PLANE_INLINE void load_narrow(Call& call, const std::uint8_t* data, const SurfacePlaces<lanes>& places) {
    Word loaded[lanes];
    load_all(data, places, loaded);
    const unsigned bits = 8 * call.detail;
    for (unsigned i = 0; i < call.count; ++i) {
        std::uint32_t words[lanes];
        const std::uint32_t kept = bits == 32 ? ~0u : (1u << bits) - 1;
        for (unsigned lane = 0; lane < lanes; ++lane)
            words[lane] = static_cast<std::uint32_t>(loaded[lane] >> (bits * i)) & kept;
        give_inside(call, i, places, words);
    }
}

template <unsigned lanes>
PLANE_INLINE void load_lanes(Call& call, const Surface& surface, const SurfacePlaces<lanes>& places) {
    const std::uint8_t* data = surface.image.level[0].data;
    switch (surface.bytes) {
    case 1: return load_narrow<std::uint8_t>(call, data, places);
    case 2: return load_narrow<std::uint16_t>(call, data, places);
    case 4: return load_narrow<std::uint32_t>(call, data, places);
    case 8:
        if (call.detail < 8) return load_narrow<std::uint64_t>(call, data, places);
        break;
    default: break;
    }
    // Words of 32 bits each.
    for (unsigned i = 0; i < surface.bytes / 4; ++i) {
        std::uint32_t words[lanes];
        load_all(data + 4 * i, places, words);
        give_inside(call, i, places, words);
    }
}

template <typename Word>
PLANE_INLINE void store_narrow(const Call& call, std::uint8_t* data, const std::uint32_t* offset, std::uint64_t left) {
    const unsigned bits = 8 * call.detail;
    const std::uint32_t kept = bits == 32 ? ~0u : (1u << bits) - 1;
    for (; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        Word word = 0;
        for (unsigned i = 0; i < call.count; ++i)
            word =
                static_cast<Word>(word | static_cast<Word>(static_cast<Word>(call.data[i][lane] & kept) << (bits * i)));
        std::memcpy(data + offset[lane], &word, sizeof word);
    }
}

template <unsigned lanes>
PLANE_INLINE void store_lanes(Call& call, const Surface& surface, const SurfacePlaces<lanes>& places) {
    std::uint8_t* data = surface.image.level[0].data;
    std::uint32_t inside = 0;
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
        inside |= static_cast<std::uint32_t>(places.inside[lane] & 1) << lane;
    std::uint64_t left = call.active & inside;
    switch (surface.bytes) {
    case 1: return store_narrow<std::uint8_t>(call, data, places.offset, left);
    case 2: return store_narrow<std::uint16_t>(call, data, places.offset, left);
    case 4: return store_narrow<std::uint32_t>(call, data, places.offset, left);
    case 8:
        if (call.detail < 8) return store_narrow<std::uint64_t>(call, data, places.offset, left);
        break;
    default: break;
    }
    for (; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        for (unsigned i = 0; i < surface.bytes / 4; ++i)
            std::memcpy(data + places.offset[lane] + std::size_t{i} * 4, &call.data[i][lane], 4);
    }
}

template <unsigned lanes> PLANE_INLINE bool access_lanes(Call& call, const Surface& surface) {
    SurfacePlaces<lanes> places;
    if (!find_places(call, surface, places)) return false;
    if (surface.is_store)
        store_lanes(call, surface, places);
    else
        load_lanes(call, surface, places);
    return true;
}

struct AccessLanes {
    template <unsigned lanes> PLANE_INLINE static bool run(Call& call, const Surface& surface) {
        return access_lanes<lanes>(call, surface);
    }
};

} // namespace

bool access_surface(abi::TextureCall& call, const TextureObject& object, VectorCode most) {
    const auto operation = static_cast<Operation>(call.operation);
    const auto geometry = static_cast<abi::TextureGeometry>(call.geometry);
    const Image& image = object.image;
    const ImageLevel& level = image.level[0];
    if ((operation != Operation::load && operation != Operation::store) ||
        coordinates_of(geometry) != image.dimensions || geometry == abi::TextureGeometry::cube ||
        geometry == abi::TextureGeometry::acube)
        return false;
    const std::size_t bytes = std::size_t{call.detail} * call.count,
                      row = std::size_t{level.width} * image.format.bytes();
    constexpr std::size_t most_bytes = std::size_t{1} << 31;
    if (bytes == 0 || (bytes & (bytes - 1)) != 0 || bytes > 16 || row < bytes || level.height == 0 ||
        level.depth == 0 || level.slice * std::max(level.depth, image.layers) >= most_bytes || level.row >= most_bytes)
        return false;
    const Surface surface{image,
                          static_cast<Bounds>(call.bounds),
                          operation == Operation::store,
                          has_layer(geometry),
                          static_cast<std::uint32_t>(bytes),
                          static_cast<std::int32_t>((row - bytes) / bytes * bytes)};
    return StepCode<AccessLanes, bool, Call&, const Surface&>::run(call.active, most, call, surface);
}

} // namespace ptarmigan::runtime
