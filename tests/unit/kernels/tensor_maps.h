// SPDX-License-Identifier: Apache-2.0
// Tensor maps of words for kernels under test.
#pragma once

#include "runtime/copy_engine/tensor_map.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <vector>

namespace ptarmigan::test {

/// The 128 bytes of a tiled map of 32-bit words for compute capability 9.x. `dim` and `box` in words, the fastest dimension first;
/// `stride` in bytes, of all dimensions but the first; `swizzle` as CUtensorMapSwizzle has it.
inline std::vector<std::uint8_t> map_of_words(std::uint64_t address, const std::vector<std::uint64_t>& dim,
                                              const std::vector<std::uint64_t>& stride, const std::vector<std::uint32_t>& box,
                                              unsigned swizzle = 0) {
    const std::vector<std::uint32_t> step(dim.size(), 1);
    runtime::TensorMapRequest request;
    request.type = 2;
    request.rank = static_cast<unsigned>(dim.size());
    request.address = address;
    request.dim = dim.data();
    request.stride = stride.data();
    request.box = box.data();
    request.step = step.data();
    request.swizzle = swizzle;
    runtime::TensorMap map;
    REQUIRE(runtime::make_tensor_map(request, 9, map) == runtime::Status::success);
    return {map.bytes, map.bytes + sizeof map.bytes};
}

} // namespace ptarmigan::test
