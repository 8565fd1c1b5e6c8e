// SPDX-License-Identifier: Apache-2.0
// Copies by generated code against the portable ones, on pseudo-random tensors: ranks, types,
// boxes, swizzles, atoms, strides, coordinates outside, gathered rows, columns; with AVX-512 and
// with AVX2.
#include "runtime/copy_engine/copy_engine.h"
#include "tests/recordings/random.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <memory>
#include <vector>

using namespace ptarmigan::runtime;
using recordings::Random;

namespace {

constexpr std::size_t tensor_room = 1 << 18, tile_room = 1 << 16;

struct Free {
    void operator()(std::uint8_t* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::uint8_t, Free>;

Memory allocate(std::size_t bytes) {
    return Memory(static_cast<std::uint8_t*>(std::aligned_alloc(4096, bytes)));
}

void randomize(std::uint8_t* memory, std::size_t bytes, std::uint64_t seed) {
    Random random(seed);
    for (std::size_t i = 0; i < bytes; i += 8) {
        const std::uint64_t bits = random.bits();
        std::memcpy(memory + i, &bits, 8);
    }
}

unsigned between(Random& random, unsigned low, unsigned high) {
    return low + random.below(high - low + 1);
}

struct Sample {
    TensorTile tile;
    TensorPosition position;
    std::uint32_t shared_offset = 0;
};

/// Tiles of the packed types, whose tensors, boxes and columns are multiples of 128 elements.
bool make_packed(Random& random, std::uint64_t address, bool store, Sample& sample) {
    TensorMapFields map;
    map.type = static_cast<TensorType>(between(random, unsigned(TensorType::b4x16),
                                               unsigned(TensorType::b6x16_p32)));
    if (store && map.type == TensorType::b4x16_p64) return false;
    map.address = address;
    map.rank = between(random, 1, 3);
    map.swizzle = random.below(2) ? Swizzle::span_128 : Swizzle::none;
    constexpr SwizzleAtom atoms[] = {SwizzleAtom::bytes_16, SwizzleAtom::bytes_32,
                                     SwizzleAtom::bytes_64};
    if (map.swizzle == Swizzle::span_128) map.atom = atoms[random.below(3)];
    map.dim = {128 * between(random, 1, 4), between(random, 1, 20), between(random, 1, 5)};
    map.stride = {512 + 32 * random.below(3), 20 * 600};
    map.stride[1] -= map.stride[1] % 32;
    map.box = {128, between(random, 1, 20), between(random, 1, 5)};
    map.step.fill(1);
    if (describe_tile(map, TensorMode::tile, map.rank, sample.tile)) return false;
    for (unsigned i = 0; i < map.rank; ++i) {
        const int least = store ? 0 : -3, at = least + static_cast<int>(random.below(unsigned(
                                                           map.dim[i] / (i ? 1 : 128) + 4)));
        sample.position.at[i] = i ? at : 128 * at;
    }
    sample.shared_offset = 1024 * random.below(2) + 128 * random.below(8);
    return std::size_t{sample.tile.rows} * sample.tile.row_pitch + 4096 < tile_room;
}

/// False if the sample does not fit into the test's memory.
bool make_sample(Random& random, std::uint64_t address, bool store, Sample& sample) {
    TensorMapFields map;
    const unsigned kind = random.below(8);
    TensorMode mode = kind == 0  ? TensorMode::four_rows
                      : kind < 3 ? TensorMode::im2col
                                 : TensorMode::tile;
    map.im2col = mode == TensorMode::im2col;
    map.rank = mode == TensorMode::four_rows ? 2
               : map.im2col                  ? between(random, 3, 5)
                                             : between(random, 1, 5);
    map.type = static_cast<TensorType>(random.below(tensor_type_count));
    if (is_packed(map.type)) return make_packed(random, address, store, sample);
    map.address = address;
    const unsigned size = tensor_element_bytes(map.type), unit = std::max(1u, 16 / size);
    if (map.rank >= 3 && random.below(6) == 0)
        map.interleave = static_cast<Interleave>(1 + random.below(2));
    map.swizzle = static_cast<Swizzle>(random.below(map.interleave == Interleave::none ? 5 : 4));
    if (map.swizzle == Swizzle::span_128) map.atom = static_cast<SwizzleAtom>(random.below(4));
    map.fill_nan = is_floating(map.type) && random.below(2);
    std::uint64_t bytes = 0;
    map.dim[0] = between(random, 1, 300 / size + 1);
    bytes = map.dim[0] * size;
    for (unsigned i = 1; i < map.rank; ++i) {
        map.dim[i] = between(random, 1, map.rank < 4 ? 20 : 5);
        bytes = (bytes + 15) / 16 * 16 + 16 * random.below(3);
        map.stride[i - 1] = bytes;
        bytes *= map.dim[i];
    }
    if (map.interleave != Interleave::none) bytes += map.dim[0] * 32;
    const unsigned limit = map.swizzle == Swizzle::none ? 512 : span_bytes(map.swizzle);
    map.box[0] = std::min(256u, unit * between(random, 1, std::max(1u, limit / size / unit)));
    for (unsigned i = 0; i < map.rank; ++i) {
        map.step[i] = random.below(4) ? 1 : between(random, 1, 8);
        if (i > 0) map.box[i] = between(random, 1, map.rank < 4 ? 20 : 4);
    }
    map.channels = map.box[0];
    map.pixels = between(random, 1, 60);
    for (unsigned i = 0; i + 2 < map.rank; ++i) {
        const unsigned dimension = map.interleave == Interleave::none ? 1 + i : i;
        map.lower[i] = static_cast<int>(random.below(4)) - 2;
        map.upper[i] = static_cast<int>(random.below(4)) - 2;
        if (static_cast<int>(map.dim[dimension]) + map.upper[i] - map.lower[i] <= 0)
            map.lower[i] = map.upper[i] = 0;
    }
    if (describe_tile(map, mode, map.rank, sample.tile)) return false;
    const bool inside = random.below(3) == 0; // as far as its box allows
    for (unsigned i = 0; i < 5; ++i) {
        const unsigned dimension =
            mode == TensorMode::four_rows ? std::min(i, 1u) : std::min(i, map.rank - 1);
        int at = static_cast<int>(random.below(static_cast<unsigned>(map.dim[dimension]) + 8)) - 6;
        if (store) at = std::max(at, 0);
        if (inside) {
            const std::uint64_t box = map.box[dimension];
            at = map.dim[dimension] > box
                     ? static_cast<int>(
                           random.below(static_cast<unsigned>(map.dim[dimension] - box) + 1))
                     : 0;
        }
        if (i == 0 && map.interleave == Interleave::none)
            at = at / static_cast<int>(unit) * static_cast<int>(unit);
        sample.position.at[i] = at;
    }
    for (std::uint32_t& offset : sample.position.offset) offset = store ? 0 : random.below(3);
    sample.shared_offset = 128 * random.below(16);
    return bytes + 65536 < tensor_room &&
           std::size_t{sample.tile.rows} * sample.tile.row_pitch + 4096 < tile_room;
}

} // namespace

TEST_CASE("copy engine: generated code copies what the portable code copies") {
    const Memory tensor = allocate(tensor_room), expected_tensor = allocate(tensor_room),
                 tile = allocate(tile_room), expected_tile = allocate(tile_room);
    Random random(20261122);
    unsigned samples = 0;
    for (unsigned i = 0; samples < 6000; ++i) {
        REQUIRE(i < 60000);
        const bool store = random.below(2);
        Sample sample;
        if (!make_sample(random, reinterpret_cast<std::uint64_t>(tensor.get()) + 32768, store,
                         sample))
            continue;
        ++samples;
        const RowVectors vectors = random.below(2) ? RowVectors::avx2 : RowVectors::avx512;
        if (vectors > row_vectors()) continue;
        if (random.below(4) != 0) find_codes(sample.tile, vectors);
        randomize(tile.get(), tile_room, i);
        std::memcpy(expected_tile.get(), tile.get(), tile_room);
        randomize(tensor.get(), tensor_room, ~i);
        INFO("sample " << i << " rank " << sample.tile.map.rank << " row " << sample.tile.row_bytes
                       << " of " << sample.tile.row_pitch);
        if (store) {
            store_tile_portably(sample.tile, sample.position, tile.get() + sample.shared_offset);
            std::memcpy(expected_tensor.get(), tensor.get(), tensor_room);
            randomize(tensor.get(), tensor_room, ~i);
            store_tile(sample.tile, sample.position, tile.get() + sample.shared_offset, vectors);
            REQUIRE(std::memcmp(expected_tensor.get(), tensor.get(), tensor_room) == 0);
        } else {
            load_tile(sample.tile, sample.position, tile.get() + sample.shared_offset, vectors);
            load_tile_portably(sample.tile, sample.position,
                               expected_tile.get() + sample.shared_offset);
            REQUIRE(std::memcmp(expected_tile.get(), tile.get(), tile_room) == 0);
        }
    }
}

// The instruction checks nothing, so that boxes may be wider than a swizzle's span, rows no multiples of 16 bytes, strides shorter than
// rows: whatever the portable code makes of such a map, generated code makes too, and neither crashes.
TEST_CASE("copy engine: maps of which tensormap.replace has replaced fields") {
    const Memory tensor = allocate(tensor_room), expected_tensor = allocate(tensor_room),
                 tile = allocate(2 * tile_room), expected_tile = allocate(2 * tile_room);
    Random random(20261124);
    unsigned samples = 0, odd = 0;
    for (unsigned i = 0; samples < 3000; ++i) {
        REQUIRE(i < 200000);
        const bool store = random.below(2);
        Sample sample;
        if (!make_sample(random, reinterpret_cast<std::uint64_t>(tensor.get()) + 32768, store, sample)) continue;
        TensorMap map{};
        encode(sample.tile.map, map);
        const TensorMode mode = sample.tile.mode;
        const unsigned rank = sample.tile.map.rank;
        for (unsigned fields = 1 + random.below(4); fields > 0; --fields) {
            const unsigned at = random.below(rank);
            switch (random.below(8)) {
            case 0: replace_field(map, TensorMapField::box_dim, at, 1 + random.below(at ? 8 : 256)); break;
            case 1: replace_field(map, TensorMapField::global_dim, at, 1 + random.below(at ? 8 : 300)); break;
            case 2: replace_field(map, TensorMapField::element_stride, at, 1 + random.below(8)); break;
            case 3: replace_field(map, TensorMapField::elemtype, 0, random.below(13)); break;
            case 4: replace_field(map, TensorMapField::interleave_layout, 0, random.below(3)); break;
            case 5: replace_field(map, TensorMapField::swizzle_mode, 0, random.below(4)); break;
            case 6: replace_field(map, TensorMapField::fill_mode, 0, random.below(2)); break;
            case 7:
                if (rank > 1) replace_field(map, TensorMapField::global_stride, random.below(rank - 1), 16 * random.below(64));
                break;
            }
        }
        TensorMapFields fields;
        sample.tile = {};
        if (!decode(map, fields) || describe_tile(fields, mode, rank, sample.tile)) continue;
        if (position_rule(sample.tile, sample.position, store)) continue;
        std::uint64_t span = 0;
        for (unsigned d = 0; d + 1 < rank; ++d) span += fields.stride[d] * fields.dim[d + 1];
        if (span + 32768 + 65536 > tensor_room || sample.tile.rows == 0) continue;
        if (std::size_t{sample.tile.rows} * sample.tile.row_pitch + sample.tile.row_bytes + 8192 > 2 * tile_room) continue;
        ++samples;
        odd += sample.tile.row_bytes % 16 != 0 || sample.tile.row_bytes > sample.tile.row_pitch;
        if (random.below(4) != 0) find_codes(sample.tile);
        randomize(tile.get(), 2 * tile_room, i);
        std::memcpy(expected_tile.get(), tile.get(), 2 * tile_room);
        randomize(tensor.get(), tensor_room, ~i);
        INFO("sample " << i << " store " << store << " mode " << int(mode) << " rank " << rank << " type " << int(fields.type) << " row "
                       << sample.tile.row_bytes << " of " << sample.tile.row_pitch << " swizzle " << int(fields.swizzle) << " interleave "
                       << int(fields.interleave) << " rows " << sample.tile.rows);
        if (store) {
            store_tile_portably(sample.tile, sample.position, tile.get() + sample.shared_offset);
            std::memcpy(expected_tensor.get(), tensor.get(), tensor_room);
            randomize(tensor.get(), tensor_room, ~i);
            store_tile(sample.tile, sample.position, tile.get() + sample.shared_offset);
            CHECK(std::memcmp(expected_tensor.get(), tensor.get(), tensor_room) == 0);
        } else {
            load_tile(sample.tile, sample.position, tile.get() + sample.shared_offset);
            load_tile_portably(sample.tile, sample.position, expected_tile.get() + sample.shared_offset);
            CHECK(std::memcmp(expected_tile.get(), tile.get(), 2 * tile_room) == 0);
        }
    }
    CHECK(odd > 100);
}

TEST_CASE("copy engine: bulk copies of all sizes and alignments, and no byte more") {
    constexpr std::size_t room = 1 << 15;
    const Memory source = allocate(room), target = allocate(room), expected = allocate(room);
    Random random(20261123);
    randomize(source.get(), room, 1);
    for (unsigned i = 0; i < 600; ++i) {
        const std::size_t bytes = i < 200 ? i * 16 : random.below(20000), from = random.below(4096),
                          to = random.below(4096);
        INFO(bytes << " bytes from " << from << " to " << to);
        randomize(target.get(), room, i);
        std::memcpy(expected.get(), target.get(), room);
        copy_bulk(target.get() + to, source.get() + from, bytes);
        std::memcpy(expected.get() + to, source.get() + from, bytes);
        REQUIRE(std::memcmp(target.get(), expected.get(), room) == 0);
    }
}
