// SPDX-License-Identifier: Apache-2.0
// The copy engine's face to what schedules copies.
#pragma once

#include "runtime/copy_engine/row_code.h"
#include "runtime/copy_engine/tensor_copy.h"

namespace ptarmigan::runtime {

/// Parts of abi::tensor_detail().
constexpr TensorMode tensor_mode(std::uint32_t detail) {
    return static_cast<TensorMode>(detail & 0xff);
}
constexpr unsigned tensor_rank(std::uint32_t detail) {
    return detail >> 8 & 0xff;
}

/// A map in a mode, with the rank and the operands of an instruction: `tile` is good until this
/// thread's next call. A rule that is broken ends in CUDA_ERROR_ILLEGAL_INSTRUCTION.
BrokenRule tile_of_map(const TensorMap& map, TensorMode mode, unsigned rank, const TensorPosition& position,
                       const TensorTile*& tile);
/// Likewise, with a copy of the tile.
BrokenRule tile_of_map(const TensorMap& map, TensorMode mode, unsigned rank, const TensorPosition& position,
                       TensorTile& tile);
/// Finds the code that copies this tile where all of it lies inside, so that copies need not look
/// for it: done by tile_of_map(), which keeps the tiles of recent maps.
void find_codes(TensorTile& tile, RowVectors vectors = row_vectors());
/// What tensors are copied from and to, or prefetched from, at all: where rows begin, halos, bounding boxes,
/// what is stored.
BrokenRule position_rule(const TensorTile& tile, const TensorPosition& position, bool stores);
/// Type of the map's elements, or u8 if it has none.
TensorType map_type(const TensorMap& map);

/// load_tile_portably() and store_tile_portably(), by generated code where there is some. False if
/// a load has touched no byte of the tensor, because all of the tile lies outside.
bool load_tile(const TensorTile& tile, const TensorPosition& position, std::uint8_t* shared,
               RowVectors vectors = row_vectors());
void store_tile(const TensorTile& tile, const TensorPosition& position, const std::uint8_t* shared,
                RowVectors vectors = row_vectors());

/// Copies between places that don't overlap, of any alignment. May fault.
void copy_bulk(void* target, const void* source, std::size_t bytes);

} // namespace ptarmigan::runtime
