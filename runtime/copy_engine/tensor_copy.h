// SPDX-License-Identifier: Apache-2.0
// Copies between global and shared memory through tensor maps: the portable form, which says what
// is right.
#pragma once

#include "runtime/copy_engine/reduction.h"
#include "runtime/copy_engine/tensor_tile.h"

namespace ptarmigan::runtime {

/// Bytes that a copy moves, without what pads elements in shared memory: what its mbarrier counts.
std::uint64_t tile_bytes(const TensorTile& tile);

/// From the tensor to the tile at `shared`. What lies outside of the tensor is filled and not
/// touched in memory. Accesses may fault.
void load_tile_portably(const TensorTile& tile, const TensorPosition& position, std::uint8_t* shared);
/// From the tile to the tensor, but for what lies outside.
void store_tile_portably(const TensorTile& tile, const TensorPosition& position, const std::uint8_t* shared);
/// Likewise, reducing each element; `reduce` is reduce_run() of the map's type.
void reduce_tile(const TensorTile& tile, const TensorPosition& position, const std::uint8_t* shared, ReduceRun reduce);

/// Bytes from element 0 of dimension 0 to where rows begin.
std::int64_t row_start(const TensorTile& tile, const TensorPosition& position);
/// Stores and reductions write whole pieces of 16 bytes, even where dimension 0 ends inside of one
/// (H200): where bytes [first, last) of a row then end.
std::uint32_t store_end(const TensorTile& tile, std::uint32_t first, std::uint32_t last);

/// What fills the outside of floating-point tensors, 16 bits of it at a time whatever the type
/// (H200).
inline constexpr std::uint64_t nan_fill = 0x7ff77ff77ff77ff7;
/// Element that fills what lies outside, in the low bytes.
std::uint64_t fill_element(const TensorMapFields& map);

} // namespace ptarmigan::runtime
