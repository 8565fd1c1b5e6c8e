// SPDX-License-Identifier: Apache-2.0
// Walks over boxes and columns.
#include "runtime/copy_engine/tensor_tile.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

/// Coordinates of dimensions 1 and up.
using Point = std::array<std::int64_t, 7>;

Point first_point(const TensorTile& tile, const TensorPosition& position) {
    Point at{};
    const unsigned shift = tile.interleaved() ? 1 : 0;
    for (unsigned i = 1; i <= tile.dimensions; ++i) at[i] = position.at[i - shift];
    return at;
}

bool inside(const TensorTile& tile, const Point& at, unsigned from) {
    for (unsigned i = from; i <= tile.dimensions; ++i)
        if (at[i] < 0 || at[i] >= tile.size[i]) return false;
    return true;
}

std::int64_t offset_of(const TensorTile& tile, const Point& at) {
    std::int64_t offset = 0;
    for (unsigned i = 1; i <= tile.dimensions; ++i) offset += at[i] * tile.stride[i];
    return offset;
}

void visit_box(const TensorTile& tile, const TensorPosition& position, VisitRows visit, void* data) {
    const std::uint32_t count = tile.extent[1];
    const Point first = first_point(tile, position);
    // Rows of dimension 1 that are inside: [low, high).
    std::int64_t low = 0, high = count;
    const std::int64_t step = tile.step[1];
    if (tile.dimensions > 0) {
        // Divisions take longer than a small tile's row.
        const auto steps = [step](std::int64_t distance) {
            return distance <= 0 ? 0 : step == 1 ? distance : (distance + step - 1) / step;
        };
        low = std::clamp<std::int64_t>(steps(-first[1]), 0, count);
        high = std::clamp<std::int64_t>(steps(tile.size[1] - first[1]), low, count);
    }
    const std::int64_t stride = tile.stride[1] * step;
    const auto part = [&](std::uint32_t row, std::int64_t from, std::int64_t to, std::int64_t offset, bool is_inside) {
        if (to > from)
            visit(data, {row + static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to - from),
                         offset + from * stride, stride, is_inside});
    };
    std::array<std::uint32_t, 7> index{};
    for (std::uint32_t row = 0; row < tile.rows; row += count) {
        Point at = first;
        for (unsigned i = 2; i <= tile.dimensions; ++i) at[i] += std::int64_t{index[i]} * tile.step[i];
        const std::int64_t offset = offset_of(tile, at);
        if (inside(tile, at, 2)) {
            part(row, 0, low, offset, false);
            part(row, low, high, offset, true);
            part(row, high, count, offset, false);
        } else {
            part(row, 0, count, offset, false);
        }
        for (unsigned i = 2; i <= tile.dimensions && ++index[i] == tile.extent[i]; ++i) index[i] = 0;
    }
}

void visit_four_rows(const TensorTile& tile, const TensorPosition& position, VisitRows visit, void* data) {
    for (unsigned row = 0; row < 4; ++row) {
        const Point at{0, position.at[1 + row]};
        visit(data, {row, 1, offset_of(tile, at), 0, inside(tile, at, 1)});
    }
}

/// Pixels in the order W, H, D, N inside the bounding box; each one is taken at its place plus the
/// offsets.
class PixelWalk {
public:
    PixelWalk(const TensorTile& tile, const TensorPosition& position)
        : tile_(tile), base_(first_point(tile, position)) {
        if (tile.mode == TensorMode::im2col)
            for (unsigned i = 0; i < tile.spatial; ++i) shift_[1 + i] = position.offset[i];
        else
            shift_[1] = position.offset[1];
    }
    Point place() const {
        Point at = base_;
        for (unsigned i = 1; i <= tile_.spatial; ++i) at[i] += shift_[i];
        return at;
    }
    void next() {
        for (unsigned i = 1; i <= tile_.spatial; ++i) {
            base_[i] += tile_.step[i];
            if (base_[i] < tile_.size[i] + tile_.map.upper[i - 1]) return;
            base_[i] = tile_.map.lower[i - 1];
        }
        ++base_[tile_.dimensions];
    }

private:
    const TensorTile& tile_;
    Point base_{}, shift_{};
};

void visit_columns(const TensorTile& tile, const TensorPosition& position, VisitRows visit, void* data) {
    const PixelWalk begin(tile, position);
    const std::int64_t stride = tile.stride[1] * tile.step[1];
    RowRun run;
    const auto take = [&](std::uint32_t row, const Point& at) {
        const bool is_inside = inside(tile, at, 1);
        const std::int64_t offset = offset_of(tile, at);
        if (run.count && run.inside == is_inside && (!is_inside || offset == run.offset + run.count * stride)) {
            ++run.count;
            return;
        }
        if (run.count) visit(data, run);
        run = {row, 1, offset, stride, is_inside};
    };
    // Pixels of a halo are those that follow; the next piece begins where it did.
    std::uint32_t row = 0;
    for (PixelWalk walk = begin; row < tile.rows;) {
        for (std::uint32_t i = 0; i < tile.piece; ++i, walk.next()) take(row++, walk.place());
        PixelWalk ahead = walk;
        for (std::uint32_t i = 0; i < tile.halo; ++i, ahead.next()) take(row++, ahead.place());
    }
    if (run.count) visit(data, run);
}

} // namespace

namespace {

bool is_wide(TensorMode mode) {
    return mode == TensorMode::im2col_w || mode == TensorMode::im2col_w_128;
}

/// Sets the unit of the map's type: sixteen elements of a padded type are 16 bytes in shared
/// memory.
void set_unit(TensorTile& tile) {
    switch (tile.map.type) {
    case TensorType::b4x16: tile.unit = 2, tile.element_bytes = tile.shared_bytes = 1; return;
    case TensorType::b4x16_p64: tile.unit = 16, tile.element_bytes = 8, tile.shared_bytes = 16; return;
    case TensorType::b6x16_p32: tile.unit = 16, tile.element_bytes = 12, tile.shared_bytes = 16; return;
    default: tile.element_bytes = tile.shared_bytes = tensor_element_bytes(tile.map.type);
    }
}

/// Manual 9.7.9.25.5.1, for the types whose elements are padded in shared memory.
BrokenRule padded_rule(const TensorMapFields& map, std::uint32_t row) {
    if (row != 128) return "rows of .b4x16_p64 and .b6x16_p32 are 128 elements";
    if (map.dim[0] % 128 != 0) return "dimension 0 of .b4x16_p64 and .b6x16_p32 is a multiple of 128 elements";
    if (map.address % 32 != 0) return "tensors of .b4x16_p64 and .b6x16_p32 begin at multiples of 32 bytes";
    for (unsigned i = 0; i + 1 < map.rank; ++i)
        if (map.stride[i] % 32 != 0) return "strides of .b4x16_p64 and .b6x16_p32 are multiples of 32 bytes";
    if (map.swizzle != Swizzle::none && (map.swizzle != Swizzle::span_128 || map.atom == SwizzleAtom::bytes_32_flip_8))
        return ".b4x16_p64 and .b6x16_p32 are swizzled in 128 bytes without a flip, or not at all";
    return nullptr;
}

/// What no encode entry lets into a map of tiles, but tensormap.replace does: an H100 ends in 715
/// (recordings/async_copies).
BrokenRule replaced_rule(const TensorMapFields& map) {
    const std::uint64_t row_bytes = map.box[0] * std::uint64_t{tensor_element_bytes(map.type)};
    if (row_bytes % 16 != 0) return "rows of a tile are multiples of 16 bytes";
    if (map.swizzle != Swizzle::none && row_bytes > span_bytes(map.swizzle))
        return "rows are no longer than the swizzle's span";
    if (map.fill_nan && !is_floating(map.type)) return "tensors of integers are not filled with NaN";
    return nullptr;
}

BrokenRule tile_rule(const TensorMapFields& map, TensorMode mode, unsigned rank) {
    const bool columns = mode >= TensorMode::im2col, interleaved = map.interleave != Interleave::none;
    if (map.im2col != columns)
        return columns ? "an im2col copy through a map of tiles" : "a copy of tiles through an im2col map";
    if (map.rank != rank) return "the instruction's dimensions are not the map's";
    if (mode == TensorMode::four_rows && rank != 2) return "gather4 and scatter4 want two dimensions";
    const std::uint32_t row = columns ? map.channels : map.box[0];
    if (is_wide(mode)) {
        if (interleaved) return "im2col::w of an interleaved tensor";
        if (map.swizzle == Swizzle::none || map.swizzle == Swizzle::span_32 ||
            (map.swizzle == Swizzle::span_128 && map.atom > SwizzleAtom::bytes_32))
            return "im2col::w wants a swizzle of 64 or 128 bytes, in atoms of 16 or 32";
    }
    if (map.swizzle == Swizzle::span_96) {
        if (interleaved || map.atom != SwizzleAtom::bytes_16 || mode == TensorMode::im2col_w_128 ||
            map.type > TensorType::b4x16)
            return "the 96-byte swizzle has atoms of 16 bytes and neither interleaved tensors, "
                   "padded types nor im2col::w::128";
        if (row * std::uint64_t{tensor_element_bytes(map.type)} > 96)
            return "rows of the 96-byte swizzle are 96 bytes at most";
    }
    if (is_packed(map.type) && map.fill_nan) return "packed types are not filled with NaN";
    if (map.type == TensorType::b4x16 && row % 32 != 0) return "rows of .b4x16 are multiples of 32 elements";
    if (map.type > TensorType::b4x16)
        return interleaved ? "an interleaved tensor of a padded type" : padded_rule(map, row);
    if (mode == TensorMode::tile && !interleaved && !is_packed(map.type)) return replaced_rule(map);
    return nullptr;
}

} // namespace

BrokenRule describe_tile(const TensorMapFields& map, TensorMode mode, unsigned rank, TensorTile& tile) {
    if (BrokenRule rule = tile_rule(map, mode, rank)) return rule;
    const bool columns = mode >= TensorMode::im2col;
    tile.map = map;
    tile.mode = mode;
    set_unit(tile);
    const bool interleaved = tile.interleaved();
    const unsigned slice_bytes = map.interleave == Interleave::bytes_32 ? 32 : 16, shift = interleaved ? 1 : 0;
    tile.dimensions = rank - 1 + shift;
    tile.spatial = !columns ? 0 : is_wide(mode) ? 1 : rank - 2;
    tile.size[0] = interleaved ? slice_bytes / tile.element_bytes : static_cast<std::int64_t>(map.dim[0] / tile.unit);
    tile.stride[1] = slice_bytes;
    tile.extent.fill(1);
    tile.step.fill(1);
    for (unsigned i = 1; i <= tile.dimensions; ++i) {
        tile.size[i] = static_cast<std::int64_t>(map.dim[i - shift]);
        tile.step[i] = map.step[i - shift];
        if (i > shift) tile.stride[i] = static_cast<std::int64_t>(map.stride[i - 1 - shift]);
        tile.extent[i] = (map.box[i - shift] + tile.step[i] - 1) / tile.step[i];
    }
    if (interleaved) tile.extent[tile.dimensions - 1] = 1; // one slice of channels, whatever the box says
    tile.rows = 1;
    if (mode == TensorMode::tile)
        for (unsigned i = 1; i <= tile.dimensions; ++i) tile.rows *= tile.extent[i];
    else if (columns)
        tile.rows = mode == TensorMode::im2col_w_128 ? 128 : map.pixels;
    else
        tile.rows = 4;
    tile.piece = mode == TensorMode::im2col_w_128 ? 32 : tile.rows;
    tile.row_elements =
        interleaved ? static_cast<std::uint32_t>(tile.size[0]) : (columns ? map.channels : map.box[0]) / tile.unit;
    tile.row_bytes = tile.row_elements * tile.shared_bytes;
    tile.row_pitch = map.swizzle == Swizzle::none || interleaved ? tile.row_bytes : span_bytes(map.swizzle);
    return nullptr;
}

void add_halo(TensorTile& tile, const TensorPosition& position) {
    if (!is_wide(tile.mode)) return;
    tile.halo = position.offset[0];
    tile.rows = tile.rows / tile.piece * (tile.piece + tile.halo);
}

RowClip clip_row(const TensorTile& tile, const TensorPosition& position) {
    if (tile.interleaved()) return {0, tile.row_elements};
    const std::int64_t first = tile.column(position), count = tile.row_elements;
    const std::int64_t low = std::clamp<std::int64_t>(-first, 0, count);
    const std::int64_t high = std::clamp<std::int64_t>(tile.size[0] - first, low, count);
    return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high)};
}

bool comes_below_zero(const TensorTile& tile, const TensorPosition& position) {
    PixelWalk walk(tile, position);
    for (std::uint32_t row = 0; row < tile.rows; ++row, walk.next()) {
        const Point at = walk.place();
        for (unsigned i = 1; i <= tile.spatial; ++i)
            if (at[i] < 0) return true;
    }
    return false;
}

void visit_rows(const TensorTile& tile, const TensorPosition& position, VisitRows visit, void* data) {
    switch (tile.mode) {
    case TensorMode::tile: return visit_box(tile, position, visit, data);
    case TensorMode::four_rows: return visit_four_rows(tile, position, visit, data);
    default: return visit_columns(tile, position, visit, data);
    }
}

} // namespace ptarmigan::runtime
