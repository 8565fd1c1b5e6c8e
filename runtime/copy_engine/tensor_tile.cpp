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

void visit_box(const TensorTile& tile, const TensorPosition& position, VisitRows visit,
               void* data) {
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
    const auto part = [&](std::uint32_t row, std::int64_t from, std::int64_t to,
                          std::int64_t offset, bool is_inside) {
        if (to > from)
            visit(data,
                  {row + static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to - from),
                   offset + from * stride, stride, is_inside});
    };
    std::array<std::uint32_t, 7> index{};
    for (std::uint32_t row = 0; row < tile.rows; row += count) {
        Point at = first;
        for (unsigned i = 2; i <= tile.dimensions; ++i)
            at[i] += std::int64_t{index[i]} * tile.step[i];
        const std::int64_t offset = offset_of(tile, at);
        if (inside(tile, at, 2)) {
            part(row, 0, low, offset, false);
            part(row, low, high, offset, true);
            part(row, high, count, offset, false);
        } else {
            part(row, 0, count, offset, false);
        }
        for (unsigned i = 2; i <= tile.dimensions && ++index[i] == tile.extent[i]; ++i)
            index[i] = 0;
    }
}

void visit_four_rows(const TensorTile& tile, const TensorPosition& position, VisitRows visit,
                     void* data) {
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
        for (unsigned i = 0; i < tile.spatial; ++i) shift_[1 + i] = position.offset[i];
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

void visit_columns(const TensorTile& tile, const TensorPosition& position, VisitRows visit,
                   void* data) {
    PixelWalk walk(tile, position);
    const std::int64_t stride = tile.stride[1] * tile.step[1];
    RowRun run;
    const auto take = [&](std::uint32_t row, const Point& at) {
        const bool is_inside = inside(tile, at, 1);
        const std::int64_t offset = offset_of(tile, at);
        if (run.count && run.inside == is_inside &&
            (!is_inside || offset == run.offset + run.count * stride)) {
            ++run.count;
            return;
        }
        if (run.count) visit(data, run);
        run = {row, 1, offset, stride, is_inside};
    };
    for (std::uint32_t pixel = 0; pixel < tile.rows; ++pixel, walk.next())
        take(pixel, walk.place());
    if (run.count) visit(data, run);
}

} // namespace

bool describe_tile(const TensorMapFields& map, TensorMode mode, unsigned rank, TensorTile& tile) {
    const bool columns = mode >= TensorMode::im2col;
    if (map.im2col != columns || map.rank != rank || (mode == TensorMode::four_rows && rank != 2))
        return false;
    if (is_packed(map.type) || map.swizzle == Swizzle::span_96) return false;
    tile.map = map;
    tile.mode = mode;
    tile.element_bytes = tensor_element_bytes(map.type);
    const bool interleaved = tile.interleaved();
    const unsigned slice_bytes = map.interleave == Interleave::bytes_32 ? 32 : 16,
                   shift = interleaved ? 1 : 0;
    tile.dimensions = rank - 1 + shift;
    tile.spatial = columns ? rank - 2 : 0;
    tile.size[0] =
        interleaved ? slice_bytes / tile.element_bytes : static_cast<std::int64_t>(map.dim[0]);
    tile.stride[1] = slice_bytes;
    tile.extent.fill(1);
    tile.step.fill(1);
    for (unsigned i = 1; i <= tile.dimensions; ++i) {
        tile.size[i] = static_cast<std::int64_t>(map.dim[i - shift]);
        tile.step[i] = map.step[i - shift];
        if (i > shift) tile.stride[i] = static_cast<std::int64_t>(map.stride[i - 1 - shift]);
        tile.extent[i] = (map.box[i - shift] + tile.step[i] - 1) / tile.step[i];
    }
    if (interleaved)
        tile.extent[tile.dimensions - 1] = 1; // one slice of channels, whatever the box says
    tile.rows = 1;
    if (mode == TensorMode::tile)
        for (unsigned i = 1; i <= tile.dimensions; ++i) tile.rows *= tile.extent[i];
    else if (columns)
        tile.rows = map.pixels;
    else
        tile.rows = 4;
    tile.row_elements = interleaved ? static_cast<std::uint32_t>(tile.size[0])
                        : columns   ? map.channels
                                    : map.box[0];
    tile.row_bytes = tile.row_elements * tile.element_bytes;
    tile.row_pitch =
        map.swizzle == Swizzle::none || interleaved ? tile.row_bytes : span_bytes(map.swizzle);
    return true;
}

RowClip clip_row(const TensorTile& tile, const TensorPosition& position) {
    if (tile.interleaved()) return {0, tile.row_elements};
    const std::int64_t first = position.at[0], count = tile.row_elements;
    const std::int64_t low = std::clamp<std::int64_t>(-first, 0, count);
    const std::int64_t high = std::clamp<std::int64_t>(tile.size[0] - first, low, count);
    return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high)};
}

void visit_rows(const TensorTile& tile, const TensorPosition& position, VisitRows visit,
                void* data) {
    switch (tile.mode) {
    case TensorMode::tile: return visit_box(tile, position, visit, data);
    case TensorMode::four_rows: return visit_four_rows(tile, position, visit, data);
    default: return visit_columns(tile, position, visit, data);
    }
}

} // namespace ptarmigan::runtime
