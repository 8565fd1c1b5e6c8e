// SPDX-License-Identifier: Apache-2.0
// Which copies generated code does: all but conversions, long rows that the tensor's end cuts,
// swizzled interleaved tensors, and other CPUs.
#include "runtime/copy_engine/copy_engine.h"

#include <bit>

namespace ptarmigan::runtime {

namespace {

constexpr bool converts(TensorType type) {
    return type == TensorType::tf32 || type == TensorType::tf32_ftz;
}

/// Rows of this source are filled.
struct FillRow {
    alignas(64) std::uint8_t bytes[most_row_bytes];
    explicit FillRow(std::uint64_t element) {
        for (std::size_t i = 0; i < sizeof bytes; i += 8) std::memcpy(bytes + i, &element, 8);
    }
};

std::uint8_t* fill_row(const TensorMapFields& map) {
    static FillRow zeros(0), nans(nan_fill);
    return map.fill_nan ? nans.bytes : zeros.bytes;
}

/// What both directions share.
struct Codes {
    const RowCode *outside,
        *inside; ///< for rows that are not in the tensor (loads), and for those that are
    RowFill fill;
    std::int64_t start;
    bool any = false; ///< a row that is in the tensor has bytes there

    Codes(const TensorTile& tile, const TensorPosition& position, bool store, RowVectors vectors)
        : start(row_start(tile, position)) {
        const RowClip clip = clip_row(tile, position);
        any = clip.first < clip.last;
        const std::uint32_t first = clip.first * tile.shared_bytes,
                            last = clip.last * tile.shared_bytes;
        const RowShape whole{store, false,          tile.row_bytes,   tile.row_pitch,
                             0,     tile.row_bytes, tile.map.swizzle, tile.map.atom};
        inside = outside = row_code(whole, vectors);
        if (first == 0 && last == tile.row_bytes) return;
        RowShape shape = whole;
        shape.first = first;
        shape.last = store ? store_end(tile, first, last) : (last + 15) / 16 * 16;
        shape.partial = !store && last % 16 != 0;
        // An empty part fills everything.
        if (first >= last) shape.first = shape.last = 0, shape.partial = false;
        inside = row_code(shape, vectors);
        const std::uint64_t element = fill_element(tile.map);
        for (unsigned i = 0; i < 16; ++i) {
            const auto byte = static_cast<std::uint8_t>(element >> i % 8 * 8);
            fill.outside[i] = byte;
            fill.keep[i] = i < last % 16 ? 0xff : 0;
            fill.rest[i] = i < last % 16 ? 0 : byte;
        }
    }
};

/// Where row 0 of the swizzle's period lies that row `row` is in, and which one of it that is.
template <class Byte>
std::pair<std::uint8_t*, unsigned> period_of(const TensorTile& tile, Byte* shared,
                                             std::uint32_t row) {
    auto* place = const_cast<std::uint8_t*>(shared) + std::size_t{row} * tile.row_pitch;
    if (tile.map.swizzle == Swizzle::none) return {place, 0};
    const int pitch_bits = std::countr_zero(tile.row_pitch); // spans are powers of two
    const auto number = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(place) >> pitch_bits) % row_period;
    return {place - std::size_t{number} * tile.row_pitch, number};
}

/// Elements change on their way, or eight rows are no period of the swizzle: those of interleaved tensors are smaller than its span, and a span of 96 bytes crosses
/// lines.
bool is_portable_only(const TensorTile& tile) {
    return !tile.plain() || tile.map.swizzle == Swizzle::span_96 ||
           (tile.interleaved() && tile.map.swizzle != Swizzle::none);
}

std::uint8_t* tensor_row(const TensorTile& tile, const RowRun& run, std::int64_t start) {
    return reinterpret_cast<std::uint8_t*>(tile.map.address +
                                           static_cast<std::uint64_t>(run.offset + start));
}

} // namespace

BrokenRule tile_of_map(const TensorMap& map, TensorMode mode, unsigned rank,
                       const TensorPosition& position, TensorTile& tile) {
    TensorMapFields fields;
    if (!decode(map, fields)) return "these 128 bytes are no tensor map";
    if (BrokenRule rule = describe_tile(fields, mode, rank, tile)) return rule;
    add_halo(tile, position);
    return nullptr;
}

BrokenRule position_rule(const TensorTile& tile, const TensorPosition& position, bool stores) {
    if (!tile.plain() && position.at[0] % 128 != 0)
        return "coordinate 0 of a padded type is a multiple of 128";
    const std::int64_t unit = tile.unit;
    if (!tile.interleaved() &&
        (position.at[0] % unit != 0 || position.at[0] / unit * tile.element_bytes % (tile.plain() ? 16 : 1) != 0))
        return "coordinate 0 is at no multiple of 16 bytes";
    if (tile.mode == TensorMode::im2col_w && position.offset[0] >= 512) return "a halo of im2col::w is below 512";
    if (tile.mode == TensorMode::im2col_w_128 && position.offset[0] >= 32)
        return "a halo of im2col::w::128 is below 32";
    if (tile.mode >= TensorMode::im2col_w && position.offset[1] >= 32) return "an offset of im2col::w is below 32";
    if (!stores) return nullptr;
    if (tile.map.type == TensorType::b4x16_p64) return ".b4x16_p64 is not stored";
    const unsigned count = tile.mode == TensorMode::four_rows ? 5 : tile.map.rank;
    for (unsigned i = 0; i < count; ++i)
        if (position.at[i] < 0) return "a store to a negative coordinate";
    return nullptr;
}

TensorType map_type(const TensorMap& map) {
    TensorMapFields fields;
    return decode(map, fields) ? fields.type : TensorType::u8;
}

bool load_tile(const TensorTile& tile, const TensorPosition& position, std::uint8_t* shared,
               RowVectors vectors) {
    const Codes codes(tile, position, false, vectors);
    bool any = false;
    if (!codes.inside || !codes.outside || converts(tile.map.type) || is_portable_only(tile)) {
        load_tile_portably(tile, position, shared);
        for_each_run(tile, position, [&](const RowRun& run) { any |= run.inside; });
        return any && codes.any;
    }
    for_each_run(tile, position, [&](const RowRun& run) {
        const auto [place, number] = period_of(tile, shared, run.first);
        any |= run.inside;
        if (run.inside)
            (*codes.inside)(place, tensor_row(tile, run, codes.start), run.count, run.stride,
                            number, &codes.fill);
        else
            (*codes.outside)(place, fill_row(tile.map), run.count, 0, number, &codes.fill);
    });
    return any && codes.any;
}

void store_tile(const TensorTile& tile, const TensorPosition& position, const std::uint8_t* shared,
                RowVectors vectors) {
    const Codes codes(tile, position, true, vectors);
    if (!codes.inside || is_portable_only(tile)) return store_tile_portably(tile, position, shared);
    for_each_run(tile, position, [&](const RowRun& run) {
        if (!run.inside) return;
        const auto [place, number] = period_of(tile, shared, run.first);
        (*codes.inside)(place, tensor_row(tile, run, codes.start), run.count, run.stride, number,
                        &codes.fill);
    });
}

} // namespace ptarmigan::runtime
