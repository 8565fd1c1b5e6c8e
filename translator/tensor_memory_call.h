// SPDX-License-Identifier: Apache-2.0
// Part of kernel_abi.h: one call of the service of tensor memory, tcgen05 (PTX manual 9.7.16).
#pragma once

#include <cstdint>

namespace ptarmigan::abi {

enum class TensorMemoryOperation : std::uint32_t {
    allocate,   ///< `count` columns; their address goes to `place`. One lane of the warp
    free,       ///< `count` columns at `d`. One lane of the warp
    relinquish, ///< the right to allocate. One lane of the warp
    load,       ///< registers from `d`
    store,      ///< registers to `d`
    copy,       ///< from shared memory (`b`) to `d`
    shift,      ///< rows at `d`
    multiply,
    commit, ///< an arrival at `place` when what the thread has started is done; with `multicast` in the CTAs of `count`
};

/// .kind of products: types of the elements of A and B.
enum class TensorMemoryKind : std::uint32_t { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };

/// .shape of loads and stores.
enum class TensorMemoryShape : std::uint32_t {
    lanes_32x32b,
    lanes_16x64b,
    lanes_16x128b,
    lanes_16x256b,
    lanes_16x32bx2
};

/// What tcgen05.ld.red makes of a lane's registers.
enum class TensorMemoryReduction : std::uint32_t { none, min_u, max_u, min_s, max_s, min_f, max_f };

/// .shape and .multicast of copies: rows of so many bits.
enum class TensorMemoryCopy : std::uint32_t {
    rows_128x256b,
    rows_128x128b,
    rows_4x256b,
    rows_64x128b_02_13,
    rows_64x128b_01_23,
    rows_32x128b,
};

/// One instruction of a step. Arrays are indexed by lane of the step; the service looks at the lanes in `active`, and
/// at those arrays that the operation has.
struct TensorMemoryCall {
    /// Bits of `flags`. pair: .cta_group::2; packed: .pack::16b, .unpack::16b; sparse, weight_stationary (.ws),
    /// shifted_a (.ashift), a_in_tensor_memory, has_lanes (`lanes` counts), has_zero_columns; absolute (.abs) and
    /// keeps_nan (.NaN) of reductions; multicast.
    static constexpr std::uint32_t pair = 1, packed = 2, sparse = 4, weight_stationary = 8, shifted_a = 16,
                                   a_in_tensor_memory = 32, has_lanes = 64, has_zero_columns = 128, absolute = 256,
                                   keeps_nan = 512, multicast = 1024;
    std::uint32_t operation, flags;
    std::uint32_t detail;    ///< TensorMemoryShape, TensorMemoryCopy or TensorMemoryKind
    std::uint32_t registers; ///< loads and stores: a lane's
    std::uint32_t split;     ///< lanes_16x32bx2: what the second address is more
    std::uint32_t reduction; ///< TensorMemoryReduction
    std::uint32_t unpacks;   ///< copies: bits of an element in shared memory (4 or 6) that become a byte; else 0
    std::uint32_t scales;    ///< products with block scales: the scales of a row, 0 for none
    std::uint32_t halvings;  ///< products: D counts times 2^-halvings
    std::uint32_t line;      ///< of the PTX text
    std::uint64_t active;
    std::uint32_t* data; ///< loads and stores: registers as [register][lane], 32 lanes each; one more for a reduction
    std::uint64_t b[32]; ///< descriptor of a matrix in shared memory
    std::uint64_t a[32]; ///< likewise, or an address in tensor memory
    std::uint64_t place[32]; ///< generic address
    std::uint64_t zero_columns[32];
    std::uint32_t d[32]; ///< address in tensor memory, as the following ones
    std::uint32_t scale_a[32], scale_b[32], metadata[32];
    std::uint32_t descriptor[32];  ///< of the instruction
    std::uint32_t accumulates[32]; ///< 0: D counts as zero
    std::uint32_t count[32];
    std::uint32_t lanes[8][32]; ///< bits of lanes of D that stay as they are
};

} // namespace ptarmigan::abi
