// SPDX-License-Identifier: Apache-2.0
// Maps with fields that no encode entry allows, which tensormap.replace makes: what an H100 did with loads through them
// (tests/recordings/async_copies/replaced_maps.py) against the rules of tiles.
#include "runtime/copy_engine/tensor_tile.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <fstream>
#include <string>

using namespace ptarmigan;
using namespace ptarmigan::runtime;

namespace {

/// CUtensorMapDataType as this project counts types.
constexpr abi::TensorType types[] = {abi::TensorType::u8,      abi::TensorType::u16,  abi::TensorType::u32,
                                     abi::TensorType::s32,     abi::TensorType::u64,  abi::TensorType::s64,
                                     abi::TensorType::f16,     abi::TensorType::f32,  abi::TensorType::f64,
                                     abi::TensorType::bf16,    abi::TensorType::f32_ftz, abi::TensorType::tf32,
                                     abi::TensorType::tf32_ftz};

/// The fields that a case names: tiles of 16 bytes a row in a tensor of two dimensions otherwise. False: of another kind.
bool fields_of(const std::string& name, TensorMapFields& map) {
    map.rank = 2;
    map.dim = {256, 16};
    map.stride = {256};
    map.step = {1, 1};
    map.box = {4, 4};
    map.type = abi::TensorType::u32;
    char side[8];
    unsigned first = 0, type = 0, swizzle = 0;
    if (std::sscanf(name.c_str(), "fill_nan_%5[a-z]_type%u", side, &type) == 2) {
        map.type = types[type];
        map.box[0] = 32 / tensor_element_bytes(map.type);
        map.fill_nan = true;
    } else if (std::sscanf(name.c_str(), "box_%u_type%u_swizzle%u", &first, &type, &swizzle) == 3) {
        map.type = types[type];
        map.box[0] = first;
    } else if (std::sscanf(name.c_str(), "wide_box_%u_swizzle%u", &first, &swizzle) == 2) {
        map.box[0] = first;
    } else if (std::sscanf(name.c_str(), "elemtype_%u_of_u32", &type) == 1) {
        map.type = static_cast<abi::TensorType>(type); // .elemtype counts as we do
        map.box[0] = 8;
    } else {
        return false;
    }
    map.swizzle = static_cast<Swizzle>(swizzle);
    return true;
}

} // namespace

TEST_CASE("tensor map: what tensormap.replace lets in and an H100 refuses is refused") {
    std::ifstream recording(PTARMIGAN_RECORDINGS "/async_copies/replaced_maps_h100.txt");
    REQUIRE(recording);
    unsigned compared = 0, refused = 0;
    for (std::string line; std::getline(recording, line);) {
        const std::string name = line.substr(0, line.find(' '));
        TensorMapFields map;
        if (!fields_of(name, map)) continue;
        const bool fails = line.find(" error 715 ") != std::string::npos;
        TensorTile tile;
        INFO(line.substr(0, 60));
        CHECK((describe_tile(map, abi::TensorMode::tile, 2, tile) != nullptr) == fails);
        ++compared;
        refused += fails;
    }
    CHECK(compared == 74);
    CHECK(refused == 48);
}
