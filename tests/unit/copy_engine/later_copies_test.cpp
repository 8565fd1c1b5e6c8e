// SPDX-License-Identifier: Apache-2.0
// What only GPUs from compute capability 10.0 on copy, against results worked out by hand from the manual: im2col::w and w::128 (5.5.5, its
// examples), packed types (5.5.1.1), the 96-byte swizzle (5.5.7).
#include "runtime/copy_engine/copy_engine.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

using namespace ptarmigan::runtime;

namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::uint8_t untouched = 0xcc;

/// Pixels of 64 bytes (32 channels of halves) that hold (n, h, w), 1 added to each; W x H x N = 67 x 9 x 20 at most.
struct Images {
    unsigned width, height = 9, count = 20;
    std::vector<std::uint32_t> words;
    TensorMap map;

    Images(unsigned image_width, int lower, int upper, unsigned step) : width(image_width) {
        words.assign(std::size_t{16} * width * height * count, 0);
        for (unsigned n = 0; n < count; ++n)
            for (unsigned h = 0; h < height; ++h)
                for (unsigned w = 0; w < width; ++w)
                    std::fill_n(words.begin() + 16 * ((std::size_t{n} * height + h) * width + w), 16,
                                (n + 1) << 16 | (h + 1) << 8 | (w + 1));
        const std::uint64_t dim[] = {32, width, height, count}, stride[] = {64, 64 * width, 64 * width * height};
        const std::uint32_t steps[] = {1, step, 1, 1};
        TensorMapRequest request;
        request.kind = TensorMapRequest::Kind::im2col_wide;
        request.type = 6;
        request.rank = 4;
        request.address = reinterpret_cast<std::uint64_t>(words.data());
        request.dim = dim;
        request.stride = stride;
        request.step = steps;
        request.lower = &lower;
        request.upper = &upper;
        request.channels = 32;
        request.pixels = 128;
        request.swizzle = 2;
        REQUIRE(make_tensor_map(request, 10, map) == Status::success);
    }

    /// "n:w" of the rows in shared memory, "-" for a filled one.
    std::vector<std::string> load(TensorMode mode, unsigned halo, unsigned offset, std::array<std::int32_t, 5> at) const {
        const TensorPosition position{at, {halo, offset, 0}};
        TensorTile tile;
        const BrokenRule rule = tile_of_map(map, mode, 4, position, tile);
        INFO((rule ? rule : "right"));
        REQUIRE(!rule);
        REQUIRE(!position_rule(tile, position, false));
        alignas(1024) static std::array<std::uint8_t, 32768> shared, portable;
        shared.fill(untouched);
        portable.fill(untouched);
        load_tile(tile, position, shared.data());
        load_tile_portably(tile, position, portable.data());
        CHECK(shared == portable);
        CHECK(tile_bytes(tile) == tile.rows * std::uint64_t{64});
        std::vector<std::string> rows;
        for (std::uint32_t row = 0; row < tile.rows; ++row) {
            std::uint32_t word;
            std::memcpy(&word, shared.data() + 64 * row, 4); // swizzled, but its pieces are all the same
            for (unsigned i = 4; i < 64; i += 4) CHECK(std::memcmp(shared.data() + 64 * row, shared.data() + 64 * row + i, 4) == 0);
            CHECK((word == 0 || (word >> 8 & 255) == 3)); // H is 2 throughout
            rows.push_back(word == 0 ? "-" : std::to_string((word >> 16) - 1) + ":" + std::to_string((word & 255) - 1));
        }
        CHECK(shared[64 * tile.rows] == untouched);
        return rows;
    }
};

/// Pixels `first` to `last` of an image, `step` apart.
void add(std::vector<std::string>& rows, unsigned n, int first, int last, int step = 1) {
    for (int w = first; w <= last; w += step) rows.push_back(w < 0 ? "-" : std::to_string(n) + ":" + std::to_string(w));
}

} // namespace

TEST_CASE("copy engine: im2col::w loads whole rows of images and a halo behind them") {
    // The manual's example: W = 9, corners 0, N, H, W at 3, 2, 3; 128 pixels and a halo of two.
    const Images images(9, 0, 0, 1);
    std::vector<std::string> expected;
    add(expected, 3, 3, 8);
    for (unsigned n = 4; n < 17; ++n) add(expected, n, 0, 8);
    add(expected, 17, 0, 6); // 5 pixels of the column, 2 of the halo
    CHECK(images.load(TensorMode::im2col_w, 2, 0, {0, 3, 2, 3}) == expected);
    expected.resize(128);
    CHECK(images.load(TensorMode::im2col_w, 0, 0, {0, 3, 2, 3}) == expected);
}

TEST_CASE("copy engine: im2col::w::128 loads a halo behind every 32 pixels") {
    const Images images(9, 0, 0, 1);
    std::vector<std::string> expected, column;
    add(column, 3, 3, 8);
    for (unsigned n = 4; n < 19; ++n) add(column, n, 0, 8);
    for (unsigned piece = 0; piece < 4; ++piece) expected.insert(expected.end(), column.begin() + 32 * piece, column.begin() + 32 * piece + 34);
    CHECK(images.load(TensorMode::im2col_w_128, 2, 0, {0, 3, 2, 3}) == expected);
    CHECK(expected[32] == "6:8");
    CHECK(expected[34] == "6:8"); // the second piece begins where the first one's halo did
}

TEST_CASE("copy engine: im2col::w loads one buffer for each offset") {
    // The manual's example: W = 67, corners -1 and 0, every second pixel; H is 2, N and W begin at 7 and -1.
    const Images images(67, -1, 0, 2);
    std::vector<std::string> first, second;
    for (unsigned n = 7; n < 10; ++n) add(first, n, -1, 65, 2), add(second, n, 0, 66, 2);
    add(first, 10, -1, 51, 2); // 26 pixels and a halo of one
    add(second, 10, 0, 50, 2);
    REQUIRE(first.size() == 129);
    CHECK(images.load(TensorMode::im2col_w, 1, 0, {0, -1, 2, 7}) == first);
    CHECK(images.load(TensorMode::im2col_w, 0, 1, {0, -1, 2, 7}) == second);
}

TEST_CASE("copy engine: im2col::w loads three buffers of every third pixel, past the end of rows") {
    // The manual's second example of offsets: W = 7, corners -1 and -1, every third pixel; N and W begin at 7 and -1.
    const Images images(7, -1, -1, 3);
    const std::array<std::array<int, 3>, 3> places = {{{-1, 2, 5}, {0, 3, 6}, {1, 4, 7}}}; // 7 is outside
    for (unsigned offset = 0; offset < 3; ++offset) {
        std::vector<std::string> expected;
        for (unsigned pixel = 0; pixel < 128; ++pixel) {
            const int w = places[offset][pixel % 3];
            const unsigned n = 7 + pixel / 3; // there are 20
            expected.push_back(w < 0 || w == 7 || n >= 20 ? "-" : std::to_string(n) + ":" + std::to_string(w));
        }
        INFO("offset " << offset);
        CHECK(images.load(TensorMode::im2col_w, 0, offset, {0, -1, 2, 7}) == expected);
    }
}

TEST_CASE("copy engine: im2col::w names the rules that a copy breaks") {
    const Images images(9, 0, 0, 1);
    const auto rule = [&](TensorMode mode, unsigned halo, unsigned offset, unsigned swizzle) {
        TensorMap map = images.map;
        replace_field(map, TensorMapField::swizzle_mode, 0, swizzle);
        TensorTile tile;
        const TensorPosition position{{}, {halo, offset, 0}};
        BrokenRule broken = tile_of_map(map, mode, 4, position, tile);
        if (!broken) broken = position_rule(tile, position, false);
        return std::string(broken ? broken : "");
    };
    CHECK(rule(TensorMode::im2col_w, 511, 31, 2) == "");
    CHECK(rule(TensorMode::im2col_w, 512, 0, 2) == "a halo of im2col::w is below 512");
    CHECK(rule(TensorMode::im2col_w_128, 32, 0, 3) == "a halo of im2col::w::128 is below 32");
    CHECK(rule(TensorMode::im2col_w, 0, 32, 3) == "an offset of im2col::w is below 32");
    CHECK(rule(TensorMode::im2col_w, 0, 0, 0) == "im2col::w wants a swizzle of 64 or 128 bytes, in atoms of 16 or 32");
    CHECK(rule(TensorMode::tile, 0, 0, 2) == "a copy of tiles through an im2col map");
}

namespace {

/// A tensor of a packed type: rows of 128 elements in `pitch` bytes, of which a tile takes two.
struct Packed {
    TensorMap map;
    TensorTile tile;
    TensorPosition position;

    Packed(unsigned type, Bytes& tensor, std::uint64_t pitch, unsigned swizzle, std::array<std::int32_t, 5> at) {
        const std::uint64_t dim[] = {256, 4}, stride[] = {pitch};
        const std::uint32_t box[] = {128, 2}, step[] = {1, 1};
        TensorMapRequest request;
        request.type = type;
        request.rank = 2;
        request.address = (reinterpret_cast<std::uint64_t>(tensor.data()) + 31) / 32 * 32;
        request.dim = dim;
        request.stride = stride;
        request.box = box;
        request.step = step;
        request.swizzle = swizzle;
        CHECK(make_tensor_map(request, 9, map) == Status::invalid_value); // not on an H200
        REQUIRE(make_tensor_map(request, 10, map) == Status::success);
        position.at = at;
        REQUIRE(!tile_of_map(map, TensorMode::tile, 2, position, tile));
        REQUIRE(!position_rule(tile, position, false));
    }
    const std::uint8_t* tensor() const { return reinterpret_cast<const std::uint8_t*>(tile.map.address); }
};

Bytes numbered(std::size_t count) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(i * 37 + (i >> 8));
    return bytes;
}

struct alignas(1024) Tile {
    std::array<std::uint8_t, 1024> bytes;
    Tile() { bytes.fill(untouched); }
};

} // namespace

TEST_CASE("copy engine: .b4x16 is copied as it is") {
    Bytes tensor = numbered(1024);
    const Packed packed(13, tensor, 128, 0, {32, 1});
    CHECK(tile_bytes(packed.tile) == 128);
    Tile tile;
    load_tile(packed.tile, packed.position, tile.bytes.data());
    for (unsigned row = 0; row < 2; ++row) CHECK(std::memcmp(tile.bytes.data() + 64 * row, packed.tensor() + 128 * (1 + row) + 16, 64) == 0);
    CHECK(tile.bytes[128] == untouched);
    Bytes expected(packed.tensor() + 128, packed.tensor() + 384);
    for (std::uint8_t& byte : tile.bytes) byte ^= 0xff;
    store_tile(packed.tile, packed.position, tile.bytes.data());
    for (unsigned row = 0; row < 2; ++row)
        for (unsigned i = 0; i < 64; ++i) expected[128 * row + 16 + i] ^= 0xff;
    CHECK(Bytes(packed.tensor() + 128, packed.tensor() + 384) == expected);
}

TEST_CASE("copy engine: padded types have gaps in shared memory") {
    for (const unsigned type : {14u, 15u})
        for (const unsigned swizzle : {0u, 3u}) {
            INFO("type " << type << " swizzle " << swizzle);
            Bytes tensor = numbered(1024);
            const unsigned bytes = type == 14 ? 8 : 12;
            const Packed packed(type, tensor, 224, swizzle, {128, 3}); // the second row is outside
            CHECK(tile_bytes(packed.tile) == 2 * 8 * bytes);
            Tile tile;
            load_tile(packed.tile, packed.position, tile.bytes.data());
            for (unsigned piece = 0; piece < 8; ++piece) {
                const std::uint8_t* place = tile.bytes.data() + 16 * piece; // line 0 is not exchanged
                CHECK(std::memcmp(place, packed.tensor() + 3 * 224 + 8 * bytes + piece * bytes, bytes) == 0);
                CHECK(place[bytes] == untouched);
                CHECK(std::all_of(place + 128, place + 128 + bytes, [](std::uint8_t byte) { return byte == 0; }));
            }
        }
}

TEST_CASE("copy engine: swizzled lines of a padded type exchange its pieces of 16 bytes") {
    Bytes tensor = numbered(1024);
    const Packed packed(15, tensor, 224, 3, {0, 0});
    Tile tile;
    load_tile(packed.tile, packed.position, tile.bytes.data());
    for (unsigned piece = 0; piece < 8; ++piece)
        CHECK(std::memcmp(tile.bytes.data() + 128 + 16 * (piece ^ 1), packed.tensor() + 224 + piece * 12, 12) == 0);
}

TEST_CASE("copy engine: .b6p2x16 packs the lower six bits of bytes") {
    Bytes tensor(1024, untouched);
    const Packed packed(15, tensor, 224, 0, {128, 1});
    Tile tile;
    for (unsigned i = 0; i < 256; ++i) tile.bytes[i] = static_cast<std::uint8_t>(i * 7 + 0xc0);
    store_tile(packed.tile, packed.position, tile.bytes.data());
    for (unsigned row = 0; row < 2; ++row)
        for (unsigned i = 0; i < 128; ++i) { // bit 6 i of the row
            const std::uint8_t* place = packed.tensor() + 224 * (1 + row) + 96;
            unsigned element = 0;
            for (unsigned bit = 6 * i; bit < 6 * i + 6; ++bit) element |= (place[bit / 8] >> bit % 8 & 1u) << (bit - 6 * i);
            CHECK(element == (tile.bytes[128 * row + i] & 63u));
        }
    CHECK(packed.tensor()[224 + 95] == untouched);
    CHECK(packed.tensor()[224 + 192] == untouched);
    // .b4x16_p64 has no such counterpart.
    const Packed half(14, tensor, 224, 0, {0, 0});
    CHECK(std::string(position_rule(half.tile, half.position, true)) == ".b4x16_p64 is not stored");
}

TEST_CASE("copy engine: the 96-byte swizzle exchanges pieces of 16 bytes in every second line") {
    // tensormap.replace is its only way into a map. Four rows of 96 bytes take three lines of 128.
    Bytes tensor = numbered(1024);
    const std::uint64_t dim[] = {96, 4}, stride[] = {96};
    const std::uint32_t box[] = {96, 4}, step[] = {1, 1};
    TensorMapRequest request;
    request.rank = 2;
    request.address = (reinterpret_cast<std::uint64_t>(tensor.data()) + 15) / 16 * 16;
    request.dim = dim;
    request.stride = stride;
    request.box = box;
    request.step = step;
    TensorMap map;
    REQUIRE(make_tensor_map(request, 10, map) == Status::success);
    replace_field(map, TensorMapField::swizzle_mode, 0, 4);
    TensorTile shape;
    REQUIRE(!tile_of_map(map, TensorMode::tile, 2, {}, shape));
    Tile tile;
    load_tile(shape, {}, tile.bytes.data());
    const auto* from = reinterpret_cast<const std::uint8_t*>(request.address);
    for (unsigned piece = 0; piece < 24; ++piece)
        CHECK(std::memcmp(tile.bytes.data() + 16 * (piece ^ (piece >> 3 & 1)), from + 16 * piece, 16) == 0);
    Bytes other(1024);
    const std::uint64_t address = (reinterpret_cast<std::uint64_t>(other.data()) + 15) / 16 * 16;
    replace_field(map, TensorMapField::global_address, 0, address);
    REQUIRE(!tile_of_map(map, TensorMode::tile, 2, {}, shape));
    store_tile(shape, {}, tile.bytes.data());
    CHECK(std::memcmp(reinterpret_cast<const void*>(address), from, 384) == 0);
}
