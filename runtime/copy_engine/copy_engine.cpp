// SPDX-License-Identifier: Apache-2.0
// Which copies generated code does: all but long rows that the tensor's end cuts, which are no
// more than a memcpy, and those of other CPUs.
#include "runtime/copy_engine/copy_engine.h"

#include "runtime/base/per_thread.h"

#include <algorithm>
#include <bit>

namespace ptarmigan::runtime {

namespace {

RowChange change_of(TensorType type, bool store) {
    switch (type) {
    case TensorType::tf32:
    case TensorType::tf32_ftz: return store ? RowChange::none : RowChange::round_tf32;
    case TensorType::b4x16_p64: return RowChange::expand_8; // not stored
    case TensorType::b6x16_p32: return store ? RowChange::pack_12 : RowChange::expand_12;
    default: return RowChange::none;
    }
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

/// Rows of a tile that are all inside.
RowShape whole_rows(const TensorTile& tile, bool store) {
    return {store,
            false,
            tile.row_bytes,
            tile.row_pitch,
            0,
            tile.row_bytes,
            tile.map.swizzle,
            tile.map.atom,
            change_of(tile.map.type, store)};
}

/// `kept`: bytes of the partial piece that are the tensor's. Vectors, because the generated code
/// loads what is stored here a moment before.
void set_fill(RowFill& fill, std::uint64_t element, std::uint32_t kept) {
    using Vector [[gnu::vector_size(16)]] = std::uint8_t;
    constexpr Vector numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const std::uint64_t twice[] = {element, element};
    Vector outside;
    std::memcpy(&outside, twice, sizeof outside);
    const auto keep = reinterpret_cast<Vector>(numbers < static_cast<std::uint8_t>(kept));
    const Vector rest = outside & ~keep;
    std::memcpy(fill.outside.data(), &outside, sizeof outside);
    std::memcpy(fill.keep.data(), &keep, sizeof keep);
    std::memcpy(fill.rest.data(), &rest, sizeof rest);
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
        const std::uint32_t first = clip.first * tile.shared_bytes, last = clip.last * tile.shared_bytes;
        const RowShape whole = whole_rows(tile, store);
        const RowCode* known = store ? tile.store_rows : tile.load_rows;
        inside = outside = known ? known : row_code(whole, vectors);
        if (!store && whole.change != RowChange::none) { // what fills is not changed
            RowShape filled = whole;
            filled.change = RowChange::none;
            outside = row_code(filled, vectors);
        }
        if (first == 0 && last == tile.row_bytes) return;
        RowShape shape = whole;
        shape.first = first;
        shape.last = store ? store_end(tile, first, last) : (last + 15) / 16 * 16;
        shape.partial = !store && last % 16 != 0;
        // An empty part fills everything.
        if (first >= last) shape.first = shape.last = 0, shape.partial = false, shape.change = RowChange::none;
        inside = row_code(shape, vectors);
        if (!store) set_fill(fill, fill_element(tile.map), last % 16);
    }
};

/// Where row 0 of the swizzle's period lies that row `row` is in, and which one of it that is.
template <class Byte>
std::pair<std::uint8_t*, unsigned> period_of(const TensorTile& tile, Byte* shared, std::uint32_t row) {
    auto* place = const_cast<std::uint8_t*>(shared) + std::size_t{row} * tile.row_pitch;
    if (tile.map.swizzle == Swizzle::none) return {place, 0};
    const auto address = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(place));
    unsigned number;
    if (tile.map.swizzle == Swizzle::span_96) {
        number = (address >> 5) * 3 % 8; // rows begin at multiples of 96, of which 8 are 3 times 256
    } else {
        const unsigned period =
            tile.interleaved() ? row_period(tile.row_pitch, SwizzlePattern::of(tile.map.swizzle, tile.map.atom)) : 8;
        number = address >> std::countr_zero(tile.row_pitch) & (period - 1); // pitches are powers of two
    }
    return {place - std::size_t{number} * tile.row_pitch, number};
}

bool same(const TensorMap& one, const TensorMap& other) {
    return std::memcmp(one.bytes, other.bytes, sizeof one.bytes) == 0;
}

/// A thread's tiles. Loops copy through few maps, and making a tile of one takes longer than
/// copying 4 KiB.
struct RecentTiles {
    struct Entry {
        TensorMap map;
        TensorMode mode = TensorMode::tile;
        unsigned rank = 0; ///< 0: nothing here
        TensorTile tile;
    };
    std::array<Entry, 8> entries;
    TensorTile with_halo;

    /// Where a map's tile is, if anywhere: maps differ in address, sizes, boxes and flags.
    Entry& of(const TensorMap& map, TensorMode mode) {
        std::uint64_t words[8];
        std::memcpy(words, map.bytes, sizeof words);
        const std::uint64_t mixed =
            words[0] >> 4 ^ words[1] << 7 ^ words[4] << 3 ^ words[6] ^ static_cast<std::uint64_t>(mode);
        return entries[mixed * 0x9e3779b97f4a7c15 >> 61];
    }
};

/// A box whose rows all lie inside of their tensor, but for what `code` cuts from each, without a
/// walk. `offset`: of a row's begin in dimension 0. False if it is none.
template <class Byte>
bool copy_box(const TensorTile& tile, const TensorPosition& position, Byte* shared, const RowCode& code,
              std::int64_t offset, const RowFill* fill) {
    const unsigned shift = tile.interleaved() ? 1 : 0;
    for (unsigned i = 1; i <= tile.dimensions; ++i) {
        const std::int64_t at = position.at[i - shift];
        if (at < 0 || at + std::int64_t{tile.extent[i] - 1} * tile.step[i] >= tile.size[i]) return false;
        offset += at * tile.stride[i];
    }
    const std::uint32_t count = tile.extent[1];
    const std::int64_t stride = tile.stride[1] * tile.step[1];
    std::array<std::uint32_t, 7> index{};
    for (std::uint32_t row = 0;;) {
        const auto [place, number] = period_of(tile, shared, row);
        code(place, reinterpret_cast<std::uint8_t*>(tile.map.address + static_cast<std::uint64_t>(offset)), count,
             stride, number, fill);
        if ((row += count) >= tile.rows) return true;
        for (unsigned i = 2; i <= tile.dimensions; ++i) {
            offset += tile.stride[i] * tile.step[i];
            if (++index[i] != tile.extent[i]) break;
            offset -= tile.stride[i] * tile.step[i] * tile.extent[i];
            index[i] = 0;
        }
    }
}

/// A box that lies inside of its tensor altogether.
template <class Byte>
bool copy_inside(const TensorTile& tile, const TensorPosition& position, Byte* shared, const RowCode& code) {
    const std::int64_t column = tile.column(position);
    const bool interleaved = tile.interleaved();
    if (!interleaved && (column < 0 || column + tile.row_elements > tile.size[0])) return false;
    return copy_box(tile, position, shared, code, interleaved ? 0 : column * tile.element_bytes, nullptr);
}

std::uint8_t* tensor_row(const TensorTile& tile, const RowRun& run, std::int64_t start) {
    return reinterpret_cast<std::uint8_t*>(tile.map.address + static_cast<std::uint64_t>(run.offset + start));
}

} // namespace

void find_codes(TensorTile& tile, RowVectors vectors) {
    tile.load_rows = tile.store_rows = nullptr;
    if (tile.mode != TensorMode::tile) return;
    tile.load_rows = row_code(whole_rows(tile, false), vectors);
    tile.store_rows = row_code(whole_rows(tile, true), vectors);
}

BrokenRule tile_of_map(const TensorMap& map, TensorMode mode, unsigned rank, const TensorPosition& position,
                       const TensorTile*& tile) {
    // On the heap: too large for the static thread memory of a library.
    static thread_local RecentTiles* mine = nullptr;
    RecentTiles& tiles = per_thread(mine);
    RecentTiles::Entry& recent = tiles.of(map, mode);
    if (recent.rank != rank || recent.mode != mode || !same(recent.map, map)) {
        TensorMapFields fields;
        if (!decode(map, fields)) return "these 128 bytes are no tensor map";
        recent.rank = 0;
        recent.tile = {};
        if (BrokenRule rule = describe_tile(fields, mode, rank, recent.tile)) return rule;
        find_codes(recent.tile);
        recent.map = map;
        recent.mode = mode;
        recent.rank = rank;
    }
    tile = &recent.tile;
    if (mode < TensorMode::im2col_w) return nullptr;
    tiles.with_halo = recent.tile;
    add_halo(tiles.with_halo, position);
    tile = &tiles.with_halo;
    return nullptr;
}

BrokenRule tile_of_map(const TensorMap& map, TensorMode mode, unsigned rank, const TensorPosition& position,
                       TensorTile& tile) {
    const TensorTile* found = nullptr;
    const BrokenRule rule = tile_of_map(map, mode, rank, position, found);
    if (!rule) tile = *found;
    return rule;
}

BrokenRule position_rule(const TensorTile& tile, const TensorPosition& position, bool stores) {
    if (!tile.plain() && position.at[0] % 128 != 0) return "coordinate 0 of a padded type is a multiple of 128";
    // Units are powers of two, and divisions take longer than the rest of this.
    if (!tile.interleaved() && ((position.at[0] & static_cast<std::int32_t>(tile.unit - 1)) != 0 ||
                                (tile.plain() && tile.column(position) * tile.element_bytes % 16 != 0)))
        return "coordinate 0 is at no multiple of 16 bytes";
    if (tile.mode < TensorMode::im2col && !stores) return nullptr;
    if (tile.mode == TensorMode::im2col_w && position.offset[0] >= 512) return "a halo of im2col::w is below 512";
    if (tile.mode == TensorMode::im2col_w_128 && position.offset[0] >= 32)
        return "a halo of im2col::w::128 is below 32";
    if (tile.mode >= TensorMode::im2col_w && position.offset[1] >= 32) return "an offset of im2col::w is below 32";
    if (tile.mode == TensorMode::im2col)
        for (unsigned i = 1; i <= tile.spatial; ++i) {
            const std::int64_t at = position.at[i - (tile.interleaved() ? 1 : 0)];
            if (at < tile.map.lower[i - 1] || at >= tile.size[i] + tile.map.upper[i - 1])
                return "im2col begins outside of the bounding box";
        }
    if (!stores) return nullptr;
    if (tile.map.type == TensorType::b4x16_p64) return ".b4x16_p64 is not stored";
    const unsigned count = tile.mode == TensorMode::four_rows ? 5 : tile.map.rank;
    for (unsigned i = 0; i < count; ++i)
        if (position.at[i] < 0) return "a store to a negative coordinate";
    const auto& lower = tile.map.lower;
    if (tile.mode == TensorMode::im2col && std::min({lower[0], lower[1], lower[2]}) < 0 &&
        comes_below_zero(tile, position))
        return "a store to a negative coordinate";
    return nullptr;
}

TensorType map_type(const TensorMap& map) {
    TensorMapFields fields;
    return decode(map, fields) ? fields.type : TensorType::u8;
}

bool load_tile(const TensorTile& tile, const TensorPosition& position, std::uint8_t* shared, RowVectors vectors) {
    if (tile.load_rows && copy_inside(tile, position, shared, *tile.load_rows)) return true;
    const Codes codes(tile, position, false, vectors);
    bool any = false;
    if (!codes.inside || !codes.outside) {
        load_tile_portably(tile, position, shared);
        for_each_run(tile, position, [&](const RowRun& run) { any |= run.inside; });
        return any && codes.any;
    }
    if (tile.mode == TensorMode::tile && copy_box(tile, position, shared, *codes.inside, codes.start, &codes.fill))
        return codes.any;
    for_each_run(tile, position, [&](const RowRun& run) {
        const auto [place, number] = period_of(tile, shared, run.first);
        any |= run.inside;
        if (run.inside)
            (*codes.inside)(place, tensor_row(tile, run, codes.start), run.count, run.stride, number, &codes.fill);
        else
            (*codes.outside)(place, fill_row(tile.map), run.count, 0, number, &codes.fill);
    });
    return any && codes.any;
}

void store_tile(const TensorTile& tile, const TensorPosition& position, const std::uint8_t* shared,
                RowVectors vectors) {
    if (tile.store_rows && copy_inside(tile, position, shared, *tile.store_rows)) return;
    const Codes codes(tile, position, true, vectors);
    if (!codes.inside) return store_tile_portably(tile, position, shared);
    if (tile.mode == TensorMode::tile && copy_box(tile, position, shared, *codes.inside, codes.start, &codes.fill))
        return;
    for_each_run(tile, position, [&](const RowRun& run) {
        if (!run.inside) return;
        const auto [place, number] = period_of(tile, shared, run.first);
        (*codes.inside)(place, tensor_row(tile, run, codes.start), run.count, run.stride, number, &codes.fill);
    });
}

void copy_bulk(void* target, const void* source, std::size_t bytes) {
    // Not memcpy where it is long: glibc's `rep movsb` takes Zen 3 5 us for 16 KiB at some
    // distances, vectors 0.3. Short ones it loads whole before it stores, which AVX-512 hosts want
    // where loads seem to hit what was just stored (places within a page agree: 1 KiB in 19 or 117
    // ns).
    constexpr std::uint32_t row = 256, least = 2048;
    auto* to = static_cast<std::uint8_t*>(target);
    auto* from = static_cast<std::uint8_t*>(const_cast<void*>(source)); // only read
    if (bytes >= least) {
        static const RowCode* code = row_code({false, false, row, row, 0, row}, row_vectors());
        const std::size_t rows = bytes / row;
        if (code) (*code)(to, from, rows, row, 0, nullptr);
        // Where there is no code, in pieces below the bounds of such special treatment.
        for (std::size_t i = 0; !code && i < rows; ++i) std::memcpy(to + i * row, from + i * row, row);
        to += rows * row, from += rows * row, bytes %= row;
    }
    std::memcpy(to, from, bytes);
}

} // namespace ptarmigan::runtime
