// SPDX-License-Identifier: Apache-2.0
// Which copies generated code does: all but conversions, rows that are cut where the CPU has no masks, and other CPUs.
#include "runtime/copy_engine/copy_engine.h"

namespace ptarmigan::runtime {

namespace {

constexpr bool converts(TensorType type) { return type == TensorType::tf32 || type == TensorType::tf32_ftz; }

/// Rows of this source are filled.
struct FillRow {
    alignas(64) std::uint8_t bytes[most_row_bytes];
    explicit FillRow(std::uint64_t element) {
        for (std::size_t i = 0; i < sizeof bytes; i += 8)
            std::memcpy(bytes + i, &element, 8);
    }
};

std::uint8_t *fill_row(const TensorMapFields &map) {
    static FillRow zeros(0), nans(nan_fill);
    return map.fill_nan ? nans.bytes : zeros.bytes;
}

RowMask mask_of(const TensorTile &tile, std::uint32_t first, std::uint32_t last) {
    RowMask mask;
    for (std::uint32_t i = first; i < last; ++i)
        mask.inside[i / 64] |= std::uint64_t{1} << i % 64;
    const std::uint64_t element = fill_element(tile.map);
    for (unsigned i = 0; i < 64; i += 8)
        std::memcpy(mask.fill.data() + i, &element, 8);
    return mask;
}

/// What both directions share.
struct Codes {
    const RowCode *whole, *cut = nullptr;
    std::uint32_t first, last; ///< bytes of a row that are inside
    bool is_cut;
    std::int64_t start;

    Codes(const TensorTile &tile, const TensorPosition &position, bool store, RowVectors vectors) {
        const RowClip clip = clip_row(tile, position);
        first = clip.first * tile.element_bytes;
        last = clip.last * tile.element_bytes;
        if (store)
            last = store_end(tile, first, last);
        start = row_start(tile, position);
        is_cut = first != 0 || last != tile.row_bytes;
        RowShape shape{store, false, tile.row_bytes, tile.row_pitch, tile.map.swizzle, tile.map.atom};
        whole = row_code(shape, vectors);
        shape.masked = true;
        if (whole && is_cut)
            cut = row_code(shape, vectors);
    }
    bool usable() const { return whole && (!is_cut || cut); }
};

/// Where row 0 of the swizzle's period lies that row `row` is in, and which one of it that is.
template <class Byte> std::pair<std::uint8_t *, unsigned> period_of(const TensorTile &tile, Byte *shared, std::uint32_t row) {
    auto *place = const_cast<std::uint8_t *>(shared) + std::size_t{row} * tile.row_pitch;
    if (tile.map.swizzle == Swizzle::none)
        return {place, 0};
    const auto number = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(place) / tile.row_pitch % row_period);
    return {place - std::size_t{number} * tile.row_pitch, number};
}

std::uint8_t *tensor_row(const TensorTile &tile, const RowRun &run, std::int64_t start) {
    return reinterpret_cast<std::uint8_t *>(tile.map.address + static_cast<std::uint64_t>(run.offset + start));
}

} // namespace

bool tile_of_map(const TensorMap &map, TensorMode mode, unsigned rank, TensorTile &tile) {
    TensorMapFields fields;
    return decode(map, fields) && describe_tile(fields, mode, rank, tile);
}

bool legal_position(const TensorTile &tile, const TensorPosition &position, bool stores) {
    if (!tile.interleaved() && std::int64_t{position.at[0]} * tile.element_bytes % 16 != 0)
        return false;
    const unsigned count = tile.mode == TensorMode::four_rows ? 5 : tile.map.rank;
    for (unsigned i = 0; stores && i < count; ++i)
        if (position.at[i] < 0)
            return false;
    return true;
}

TensorType map_type(const TensorMap &map) {
    TensorMapFields fields;
    return decode(map, fields) ? fields.type : TensorType::u8;
}

void load_tile(const TensorTile &tile, const TensorPosition &position, std::uint8_t *shared, RowVectors vectors) {
    const Codes codes(tile, position, false, vectors);
    // Rows of swizzled interleaved tensors are smaller than the swizzle's span, so that eight of them are no period.
    if (!codes.usable() || converts(tile.map.type) || (tile.interleaved() && tile.map.swizzle != Swizzle::none))
        return load_tile_portably(tile, position, shared);
    const RowMask mask = codes.is_cut ? mask_of(tile, codes.first, codes.last) : RowMask{};
    for_each_run(tile, position, [&](const RowRun &run) {
        const auto [place, number] = period_of(tile, shared, run.first);
        if (!run.inside)
            (*codes.whole)(place, fill_row(tile.map), run.count, 0, number, nullptr);
        else
            (*(codes.is_cut ? codes.cut : codes.whole))(place, tensor_row(tile, run, codes.start), run.count, run.stride, number, &mask);
    });
}

void store_tile(const TensorTile &tile, const TensorPosition &position, const std::uint8_t *shared, RowVectors vectors) {
    const Codes codes(tile, position, true, vectors);
    if (!codes.usable() || (tile.interleaved() && tile.map.swizzle != Swizzle::none))
        return store_tile_portably(tile, position, shared);
    const RowMask mask = codes.is_cut ? mask_of(tile, codes.first, codes.last) : RowMask{};
    for_each_run(tile, position, [&](const RowRun &run) {
        if (!run.inside)
            return;
        const auto [place, number] = period_of(tile, shared, run.first);
        (*(codes.is_cut ? codes.cut : codes.whole))(place, tensor_row(tile, run, codes.start), run.count, run.stride, number, &mask);
    });
}

} // namespace ptarmigan::runtime
