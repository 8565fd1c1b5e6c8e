// SPDX-License-Identifier: Apache-2.0
// Tensor maps against the bytes and codes of an H200's driver, and their decoding.
#include "runtime/copy_engine/tensor_map.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace ptarmigan::runtime;

namespace {

/// "3,4" as numbers; empty for "-".
template <class T> std::vector<T> list(const std::string& text) {
    std::vector<T> values;
    std::istringstream in(text == "-" ? "" : text);
    for (std::string item; std::getline(in, item, ',');)
        values.push_back(static_cast<T>(std::stoll(item, nullptr, 0)));
    values.resize(6); // the entries read as many as the rank says
    return values;
}

std::string hex(const TensorMap& map) {
    std::string text;
    for (std::uint8_t byte : map.bytes)
        text += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    return text.substr(0, text.find_last_not_of('0') + 1);
}

struct Row {
    std::string column[18];
    unsigned number(unsigned i) const {
        return column[i] == "-" ? 0 : static_cast<unsigned>(std::stoul(column[i]));
    }
};

Status make(const Row& row, TensorMap& map) {
    const auto dim = list<std::uint64_t>(row.column[4]),
               stride = list<std::uint64_t>(row.column[5]);
    const auto box = list<std::uint32_t>(row.column[6]), step = list<std::uint32_t>(row.column[7]);
    const auto lower = list<int>(row.column[12]), upper = list<int>(row.column[13]);
    TensorMapRequest request;
    request.kind =
        row.column[0] == "tiled" ? TensorMapRequest::Kind::tiled : TensorMapRequest::Kind::im2col;
    request.type = row.number(1);
    request.rank = row.number(2);
    request.address = std::stoull(row.column[3], nullptr, 0);
    request.dim = dim.data();
    request.stride = stride.data();
    request.box = box.data();
    request.step = step.data();
    request.lower = lower.data();
    request.upper = upper.data();
    request.interleave = row.number(8);
    request.swizzle = row.number(9);
    request.promotion = row.number(10);
    request.fill = row.number(11);
    request.channels = row.number(14);
    request.pixels = row.number(15);
    return make_tensor_map(request, 9, map);
}

} // namespace

TEST_CASE("copy engine: tensor maps have the bytes and codes of the H200's driver") {
    std::ifstream file(PTARMIGAN_TEST_DATA "/tensor_maps/encodings_h200.tsv");
    unsigned count = 0;
    for (std::string line; std::getline(file, line);) {
        if (line[0] == '#') continue;
        Row row;
        std::istringstream in(line);
        for (std::string& column : row.column) std::getline(in, column, '\t');
        INFO(line);
        TensorMap map{};
        const Status status = make(row, map);
        CHECK(static_cast<unsigned>(status) == row.number(16));
        if (status == Status::success) {
            CHECK(hex(map) == row.column[17]);
            TensorMapFields fields;
            TensorMap again;
            REQUIRE(decode(map, fields));
            encode(fields, again);
            CHECK(hex(again) == row.column[17]);
        }
        ++count;
    }
    CHECK(count == 168);
}

TEST_CASE("copy engine: flags that only say how large a tensor is change nothing") {
    // Maps as CUTLASS' Python writes them into parameters, for f16 with 128 bytes of swizzle: bit 1 always, bit 21 where
    // a tensor takes 128 KiB; nothing is set behind the first 64 bytes.
    const auto decoded = [](std::uint32_t flags) {
        TensorMap map{};
        const std::uint64_t words[] = {0x7f3396200000, std::uint64_t{0x20} << 32 | flags, 0, 0,
                                       0xff000000ff,   0,                             std::uint64_t{0x3f} << 56, 0x7f};
        std::memcpy(map.bytes, words, sizeof words);
        std::memset(map.bytes + 64, 0xa5, 64);
        TensorMapFields fields;
        REQUIRE(decode(map, fields));
        return fields;
    };
    for (const std::uint32_t flags : {0x46312u, 0x246312u}) {
        const TensorMapFields fields = decoded(flags);
        CHECK(fields.swizzle == Swizzle::span_128);
        CHECK(fields.atom == SwizzleAtom::bytes_16);
        CHECK(fields.type == TensorType::f16);
        CHECK(fields.rank == 2);
        CHECK(fields.dim[1] == 256);
        CHECK(fields.stride[0] == 512);
        CHECK(fields.box[0] == 64);
        CHECK(fields.box[1] == 128);
    }
    // What only later GPUs have does not lie there, and survives.
    TensorMap map;
    TensorMapFields fields = decoded(0x46312), again;
    fields.atom = SwizzleAtom::bytes_32;
    encode(fields, map);
    REQUIRE(decode(map, again));
    CHECK(again.atom == SwizzleAtom::bytes_32);
    replace_field(map, TensorMapField::swizzle_mode, 0, 4);
    REQUIRE(decode(map, again));
    CHECK(again.swizzle == Swizzle::span_96);
    CHECK((map.bytes[10] & 0x20) == 0);
}
