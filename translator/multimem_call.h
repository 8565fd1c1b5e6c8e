// SPDX-License-Identifier: Apache-2.0
// Part of kernel_abi.h: one multimem instruction of a step (PTX manual 9.7.9.14).
#pragma once

#include <cstdint>

namespace ptarmigan::abi {

enum class MultimemOperation : std::uint32_t {
    load_reduce, ///< multimem.ld_reduce: `data` is the result
    store,       ///< multimem.st of `data`
    reduce,      ///< multimem.red of `data`
};

enum class MultimemType : std::uint32_t { u32, s32, u64, s64, f16, bf16, f32, f64, e4m3, e5m2 };

/// Arrays are indexed by lane of the step; the service looks at the lanes in `active`.
struct MultimemCall {
    std::uint32_t operation, reduction; ///< reduction: a BulkReduction, not inc or dec
    std::uint32_t type;                 ///< of the elements: a MultimemType
    std::uint32_t wider;                ///< 1: sums are accumulated in more bits (.acc::f32, .acc::f16)
    std::uint32_t bytes;                ///< at each address: 4, 8 or 16
    std::uint32_t line;                 ///< of the PTX text
    std::uint64_t active;
    std::uint64_t address[32];
    std::uint32_t data[4][32]; ///< words as they lie in memory
};

} // namespace ptarmigan::abi
