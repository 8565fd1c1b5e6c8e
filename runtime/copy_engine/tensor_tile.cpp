// SPDX-License-Identifier: Apache-2.0
// Walks over boxes and columns.
#include "runtime/copy_engine/tensor_tile.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

/// Coordinates of dimensions 1 and up.
using Point = std::array<std::int64_t, 5>;

bool inside(const TensorTile &tile, const Point &at, unsigned from) {
    for (unsigned i = from; i < tile.map.rank; ++i)
        if (at[i] < 0 || at[i] >= static_cast<std::int64_t>(tile.map.dim[i]))
            return false;
    return true;
}

std::int64_t offset_of(const TensorTile &tile, const Point &at) {
    std::int64_t offset = 0;
    for (unsigned i = 1; i < tile.map.rank; ++i)
        offset += at[i] * static_cast<std::int64_t>(tile.map.stride[i - 1]);
    return offset;
}

void visit_box(const TensorTile &tile, const TensorPosition &position, VisitRows visit, void *data) {
    const TensorMapFields &map = tile.map;
    const std::uint32_t count = tile.extent[1];
    // Rows of dimension 1 that are inside: [low, high).
    std::int64_t low = 0, high = count;
    const std::int64_t first = position.at[1], step = map.step[1];
    if (map.rank > 1) {
        low = std::clamp<std::int64_t>(first < 0 ? (-first + step - 1) / step : 0, 0, count);
        const std::int64_t left = static_cast<std::int64_t>(map.dim[1]) - first;
        high = std::clamp<std::int64_t>(left <= 0 ? 0 : (left + step - 1) / step, low, count);
    }
    const std::int64_t stride = map.rank > 1 ? static_cast<std::int64_t>(map.stride[0]) * step : 0;
    std::array<std::uint32_t, 5> index{};
    for (std::uint32_t row = 0; row < tile.rows; row += count) {
        Point at{};
        for (unsigned i = 1; i < map.rank; ++i)
            at[i] = position.at[i] + std::int64_t{index[i]} * map.step[i];
        const std::int64_t offset = offset_of(tile, at);
        if (!inside(tile, at, 2)) {
            visit(data, {row, count, offset, stride, false});
        } else {
            if (low > 0)
                visit(data, {row, static_cast<std::uint32_t>(low), offset, stride, false});
            if (high > low)
                visit(data, {row + static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high - low), offset + low * stride, stride, true});
            if (count > high)
                visit(data, {row + static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(count - high), offset + high * stride, stride, false});
        }
        for (unsigned i = 2; i < map.rank && ++index[i] == tile.extent[i]; ++i)
            index[i] = 0;
    }
}

void visit_four_rows(const TensorTile &tile, const TensorPosition &position, VisitRows visit, void *data) {
    for (unsigned row = 0; row < 4; ++row) {
        const Point at{0, position.at[1 + row]};
        visit(data, {row, 1, offset_of(tile, at), 0, inside(tile, at, 1)});
    }
}

/// Pixels in the order W, H, D, N inside the bounding box; each one is taken at its place plus the offsets.
class PixelWalk {
public:
    PixelWalk(const TensorTile &tile, const TensorPosition &position) : tile_(tile), wide_(tile.mode != TensorMode::im2col) {
        for (unsigned i = 1; i < tile.map.rank; ++i)
            base_[i] = position.at[i];
        if (wide_) {
            shift_[1] = position.offset[1];
            return;
        }
        for (unsigned i = 0; i + 2 < tile.map.rank; ++i)
            shift_[1 + i] = position.offset[i];
    }
    Point place() const {
        Point at{};
        for (unsigned i = 1; i < tile_.map.rank; ++i)
            at[i] = base_[i] + shift_[i];
        return at;
    }
    void next() {
        const TensorMapFields &map = tile_.map;
        const unsigned images = map.rank - 1;
        for (unsigned i = 1; i < images; ++i) {
            if (wide_ && i > 1)
                continue; // the box is one pixel there
            base_[i] += map.step[i];
            if (base_[i] < static_cast<std::int64_t>(map.dim[i]) + map.upper[i - 1])
                return;
            base_[i] = map.lower[i - 1];
        }
        ++base_[images];
    }

private:
    const TensorTile &tile_;
    bool wide_;
    Point base_{}, shift_{};
};

void visit_columns(const TensorTile &tile, const TensorPosition &position, VisitRows visit, void *data) {
    PixelWalk walk(tile, position);
    const std::int64_t stride = static_cast<std::int64_t>(tile.map.stride[0]) * tile.map.step[1];
    RowRun run;
    const auto take = [&](std::uint32_t row, const Point &at) {
        const bool is_inside = inside(tile, at, 1);
        const std::int64_t offset = offset_of(tile, at);
        if (run.count && run.inside == is_inside && (!is_inside || offset == run.offset + run.count * stride)) {
            ++run.count;
            return;
        }
        if (run.count)
            visit(data, run);
        run = {row, 1, offset, stride, is_inside};
    };
    const std::uint32_t halo = tile.mode == TensorMode::im2col ? 0 : position.offset[0];
    const std::uint32_t group = tile.mode == TensorMode::im2col_w_128 ? 32 : tile.rows;
    std::uint32_t row = 0;
    for (std::uint32_t pixel = 0; pixel < tile.rows; ++pixel) {
        take(row++, walk.place());
        walk.next();
        if ((pixel + 1) % group != 0)
            continue;
        PixelWalk beyond = walk; // halo pixels follow the group; the next group goes on where this one ended
        for (std::uint32_t i = 0; i < halo; ++i, beyond.next())
            take(row++, beyond.place());
    }
    if (run.count)
        visit(data, run);
}

} // namespace

bool describe_tile(const TensorMapFields &map, TensorMode mode, unsigned rank, TensorTile &tile) {
    const bool columns = mode >= TensorMode::im2col;
    if (map.im2col != columns || map.rank != rank || (mode == TensorMode::four_rows && rank != 2))
        return false;
    tile.map = map;
    tile.mode = mode;
    tile.element_bytes = tensor_element_bytes(map.type);
    tile.extent.fill(1);
    if (columns) {
        tile.row_elements = map.channels;
        tile.rows = mode == TensorMode::im2col_w_128 ? 128 : map.pixels;
    } else {
        const bool strided = map.interleave != Interleave::none;
        tile.row_elements = strided ? (map.box[0] + map.step[0] - 1) / map.step[0] : map.box[0];
        tile.rows = mode == TensorMode::four_rows ? 4 : 1;
        if (mode == TensorMode::tile)
            for (unsigned i = 1; i < map.rank; ++i)
                tile.rows *= tile.extent[i] = (map.box[i] + map.step[i] - 1) / map.step[i];
    }
    tile.row_bytes = tile.row_elements * tile.element_bytes;
    return true;
}

std::uint32_t row_count(const TensorTile &tile, const TensorPosition &position) {
    if (tile.mode == TensorMode::im2col_w)
        return tile.rows + position.offset[0];
    return tile.mode == TensorMode::im2col_w_128 ? tile.rows + 4 * position.offset[0] : tile.rows;
}

RowClip clip_row(const TensorTile &tile, const TensorPosition &position) {
    const std::int64_t first = position.at[0], count = tile.row_elements;
    const std::int64_t low = std::clamp<std::int64_t>(-first, 0, count);
    const std::int64_t high = std::clamp<std::int64_t>(static_cast<std::int64_t>(tile.map.dim[0]) - first, low, count);
    return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high)};
}

void visit_rows(const TensorTile &tile, const TensorPosition &position, VisitRows visit, void *data) {
    switch (tile.mode) {
    case TensorMode::tile: return visit_box(tile, position, visit, data);
    case TensorMode::four_rows: return visit_four_rows(tile, position, visit, data);
    default: return visit_columns(tile, position, visit, data);
    }
}

} // namespace ptarmigan::runtime
