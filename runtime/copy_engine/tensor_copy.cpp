// SPDX-License-Identifier: Apache-2.0
// Row by row, in pieces that stay together under the swizzle.
#include "runtime/copy_engine/tensor_copy.h"

#include "runtime/copy_engine/swizzle.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

/// Calls `visit(shared place, offset in the row, bytes)` for the pieces of bytes [first, last) of a
/// row that begins at `row`.
template <class Byte, class Visit>
void for_each_piece(const SwizzlePattern& swizzle, Byte* row, std::uint32_t first, std::uint32_t last, Visit visit) {
    const unsigned atom = swizzle.atom_bytes();
    if (swizzle.identity()) {
        if (first < last) visit(row + first, first, last - first);
        return;
    }
    while (first < last) {
        const auto plain = reinterpret_cast<std::uintptr_t>(row + first);
        const std::uint32_t bytes =
            std::min<std::uint32_t>(last - first, atom - static_cast<std::uint32_t>(plain % atom));
        visit(reinterpret_cast<Byte*>(swizzle.apply(plain)), first, bytes);
        first += bytes;
    }
}

/// `at`: where in its row the place is. The NaN is two bytes long whatever the type (H200), and so are bytes filled if
/// tensormap.replace says so.
void fill(std::uint8_t* place, std::uint32_t at, std::uint64_t element, std::uint32_t bytes) {
    if (element == 0) {
        std::memset(place, 0, bytes);
        return;
    }
    for (std::uint32_t i = 0; i < bytes; ++i) place[i] = static_cast<std::uint8_t>(element >> 8 * ((at + i) % 2));
}

/// tf32 is rounded on its way to shared memory, with or without .ftz; f32.ftz is not changed
/// (H200).
bool converts(TensorType type) {
    return type == TensorType::tf32 || type == TensorType::tf32_ftz;
}

/// To nearest, ties to even; NaNs become one.
std::uint32_t rounded_tf32(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return 0x7fffe000;
    return magnitude == 0x7f800000 ? bits : (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
}

void copy_converted(std::uint8_t* to, const std::uint8_t* from, std::uint32_t bytes) {
    for (std::uint32_t i = 0; i < bytes; i += 4) {
        std::uint32_t bits;
        std::memcpy(&bits, from + i, 4);
        bits = rounded_tf32(bits);
        std::memcpy(to + i, &bits, 4);
    }
}

/// Units of a padded type: sixteen elements without gaps in `bytes`, in 16 bytes of shared memory.
/// What pads them is left as it is (the manual leaves it open).
void expand(std::uint8_t* shared, const std::uint8_t* packed, std::uint32_t count, unsigned bytes) {
    for (std::uint32_t i = 0; i < count; ++i) std::memcpy(shared + 16 * i, packed + bytes * i, bytes);
}

/// .b6p2x16: the lower 6 bits of each byte.
void pack_sixes(std::uint8_t* packed, const std::uint8_t* shared, std::uint32_t count) {
    for (std::uint32_t i = 0; i < 4 * count; ++i, shared += 4, packed += 3) {
        std::uint32_t bits = 0;
        for (unsigned j = 0; j < 4; ++j) bits |= (shared[j] & 63u) << 6 * j;
        for (unsigned j = 0; j < 3; ++j) packed[j] = static_cast<std::uint8_t>(bits >> 8 * j);
    }
}

struct Walk {
    const TensorTile& tile;
    SwizzlePattern swizzle;
    std::uint32_t first, last; ///< bytes of a row that are inside
    std::int64_t start;        ///< bytes from element 0 of dimension 0 to the row's begin

    Walk(const TensorTile& of, const TensorPosition& position, bool whole_pieces)
        : tile(of), swizzle(SwizzlePattern::of(of.map.swizzle, of.map.atom)) {
        const RowClip clip = clip_row(tile, position);
        first = clip.first * tile.shared_bytes;
        last = clip.last * tile.shared_bytes;
        if (whole_pieces) last = store_end(tile, first, last);
        start = row_start(tile, position);
    }
    /// Byte `at` of a row in shared memory, counted in global memory.
    std::uint32_t in_global(std::uint32_t at) const {
        return tile.plain() ? at : at / tile.shared_bytes * tile.element_bytes;
    }
    /// Where byte 0 of the run's row `index` would be in global memory.
    std::uint8_t* global(const RowRun& run, std::uint32_t index) const {
        const std::int64_t offset = run.offset + run.stride * index + start;
        return reinterpret_cast<std::uint8_t*>(tile.map.address + static_cast<std::uint64_t>(offset));
    }
};

} // namespace

std::uint64_t fill_element(const TensorMapFields& map) {
    return map.fill_nan ? nan_fill : 0;
}

std::int64_t row_start(const TensorTile& tile, const TensorPosition& position) {
    return tile.interleaved() ? 0 : tile.column(position) * tile.element_bytes;
}

std::uint32_t store_end(const TensorTile& tile, std::uint32_t first, std::uint32_t last) {
    return last > first ? std::min((last + 15) / 16 * 16, tile.row_bytes) : last;
}

std::uint64_t tile_bytes(const TensorTile& tile) {
    return std::uint64_t{tile.rows} * tile.row_elements * tile.element_bytes;
}

void visit_places(const TensorTile& tile, const TensorPosition& position, bool stores, VisitPlaces visit, void* data) {
    const Walk walk(tile, position, stores);
    if (walk.first >= walk.last) return;
    const std::uint32_t first = walk.in_global(walk.first), last = walk.in_global(walk.last);
    for_each_run(tile, position, [&](const RowRun& run) {
        for (std::uint32_t i = 0; run.inside && i < run.count; ++i)
            visit(data, walk.global(run, i) + first, last - first);
    });
}

void load_tile_portably(const TensorTile& tile, const TensorPosition& position, std::uint8_t* shared,
                        const GlobalReader* reader) {
    const Walk walk(tile, position, false);
    const std::uint64_t element = fill_element(tile.map);
    const bool convert = converts(tile.map.type);
    const auto fill_row = [&](std::uint8_t* row, std::uint32_t first, std::uint32_t last) {
        for_each_piece(walk.swizzle, row, first, last, [&](std::uint8_t* place, std::uint32_t at, std::uint32_t bytes) {
            fill(place, at, element, bytes);
        });
    };
    for_each_run(tile, position, [&](const RowRun& run) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
            std::uint8_t* row = shared + std::size_t{run.first + i} * tile.row_pitch;
            if (!run.inside) {
                fill_row(row, 0, tile.row_bytes);
                continue;
            }
            const std::uint8_t* from = walk.global(run, i);
            if (reader && walk.first < walk.last) {
                const std::uint32_t first = walk.in_global(walk.first);
                from = reader->read(reader->data, from + first, walk.in_global(walk.last) - first) - first;
            }
            fill_row(row, 0, walk.first);
            for_each_piece(walk.swizzle, row, walk.first, walk.last,
                           [&](std::uint8_t* place, std::uint32_t at, std::uint32_t bytes) {
                               if (convert)
                                   copy_converted(place, from + at, bytes);
                               else if (!tile.plain())
                                   expand(place, from + walk.in_global(at), bytes / 16, tile.element_bytes);
                               else
                                   std::memcpy(place, from + at, bytes);
                           });
            fill_row(row, walk.last, tile.row_bytes);
        }
    });
}

namespace {

/// Calls `move` (place in global memory, place in shared memory, bytes) for each piece of a tile
/// that lies inside of the tensor.
template <typename Move>
void for_each_stored_piece(const TensorTile& tile, const TensorPosition& position, const std::uint8_t* shared,
                           Move&& move) {
    const Walk walk(tile, position, true);
    for_each_run(tile, position, [&](const RowRun& run) {
        if (!run.inside) return;
        for (std::uint32_t i = 0; i < run.count; ++i) {
            std::uint8_t* to = walk.global(run, i);
            for_each_piece(walk.swizzle, shared + std::size_t{run.first + i} * tile.row_pitch, walk.first, walk.last,
                           [&](const std::uint8_t* place, std::uint32_t at, std::uint32_t bytes) {
                               move(to + walk.in_global(at), place, bytes);
                           });
        }
    });
}

} // namespace

void store_tile_portably(const TensorTile& tile, const TensorPosition& position, const std::uint8_t* shared) {
    for_each_stored_piece(tile, position, shared, [&](std::uint8_t* to, const std::uint8_t* from, std::uint32_t bytes) {
        if (tile.plain())
            std::memcpy(to, from, bytes);
        else
            pack_sixes(to, from, bytes / 16);
    });
}

void reduce_tile(const TensorTile& tile, const TensorPosition& position, const std::uint8_t* shared, ReduceRun reduce) {
    for_each_stored_piece(tile, position, shared, [&](std::uint8_t* to, const std::uint8_t* from, std::uint32_t bytes) {
        reduce(to, from, bytes / tile.element_bytes);
    });
}

} // namespace ptarmigan::runtime
