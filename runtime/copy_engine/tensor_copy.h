// SPDX-License-Identifier: Apache-2.0
// Copies between global and shared memory through tensor maps: the portable form, which says what is right.
#pragma once

#include "runtime/copy_engine/reduction.h"
#include "runtime/copy_engine/tensor_tile.h"

namespace ptarmigan::runtime {

/// Bytes that a copy fills or reads in shared memory, and that its mbarrier counts.
std::uint64_t tile_bytes(const TensorTile &tile, const TensorPosition &position);

/// From the tensor to the tile at `shared`. What lies outside of the tensor is filled and not touched in memory. Accesses may fault.
void load_tile_portably(const TensorTile &tile, const TensorPosition &position, std::uint8_t *shared);
/// From the tile to the tensor, but for what lies outside.
void store_tile_portably(const TensorTile &tile, const TensorPosition &position, const std::uint8_t *shared);
/// Likewise, reducing each element; `reduce` is reduce_run() of the map's type.
void reduce_tile(const TensorTile &tile, const TensorPosition &position, const std::uint8_t *shared, ReduceRun reduce);

/// Element that fills what lies outside, in the low bytes.
std::uint64_t fill_element(const TensorMapFields &map);

} // namespace ptarmigan::runtime
