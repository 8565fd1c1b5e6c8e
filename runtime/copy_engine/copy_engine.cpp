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

    Codes(const TensorTile& tile, const TensorPosition& position, bool store, RowVectors vectors)
        : start(row_start(tile, position)) {
        const RowClip clip = clip_row(tile, position);
        const std::uint32_t first = clip.first * tile.element_bytes,
                            last = clip.last * tile.element_bytes;
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

/// Rows of swizzled interleaved tensors are smaller than the swizzle's span, so that eight of them
/// are no period.
bool has_other_period(const TensorTile& tile) {
    return tile.interleaved() && tile.map.swizzle != Swizzle::none;
}

std::uint8_t* tensor_row(const TensorTile& tile, const RowRun& run, std::int64_t start) {
    return reinterpret_cast<std::uint8_t*>(tile.map.address +
                                           static_cast<std::uint64_t>(run.offset + start));
}

} // namespace

bool tile_of_map(const TensorMap& map, TensorMode mode, unsigned rank, TensorTile& tile) {
    TensorMapFields fields;
    return decode(map, fields) && describe_tile(fields, mode, rank, tile);
}

bool legal_position(const TensorTile& tile, const TensorPosition& position, bool stores) {
    if (!tile.interleaved() && std::int64_t{position.at[0]} * tile.element_bytes % 16 != 0)
        return false;
    const unsigned count = tile.mode == TensorMode::four_rows ? 5 : tile.map.rank;
    for (unsigned i = 0; stores && i < count; ++i)
        if (position.at[i] < 0) return false;
    return true;
}

TensorType map_type(const TensorMap& map) {
    TensorMapFields fields;
    return decode(map, fields) ? fields.type : TensorType::u8;
}

void load_tile(const TensorTile& tile, const TensorPosition& position, std::uint8_t* shared,
               RowVectors vectors) {
    const Codes codes(tile, position, false, vectors);
    if (!codes.inside || !codes.outside || converts(tile.map.type) || has_other_period(tile))
        return load_tile_portably(tile, position, shared);
    for_each_run(tile, position, [&](const RowRun& run) {
        const auto [place, number] = period_of(tile, shared, run.first);
        if (run.inside)
            (*codes.inside)(place, tensor_row(tile, run, codes.start), run.count, run.stride,
                            number, &codes.fill);
        else
            (*codes.outside)(place, fill_row(tile.map), run.count, 0, number, &codes.fill);
    });
}

void store_tile(const TensorTile& tile, const TensorPosition& position, const std::uint8_t* shared,
                RowVectors vectors) {
    const Codes codes(tile, position, true, vectors);
    if (!codes.inside || has_other_period(tile)) return store_tile_portably(tile, position, shared);
    for_each_run(tile, position, [&](const RowRun& run) {
        if (!run.inside) return;
        const auto [place, number] = period_of(tile, shared, run.first);
        (*codes.inside)(place, tensor_row(tile, run, codes.start), run.count, run.stride, number,
                        &codes.fill);
    });
}

} // namespace ptarmigan::runtime
