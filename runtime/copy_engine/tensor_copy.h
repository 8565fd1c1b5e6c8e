// SPDX-License-Identifier: Apache-2.0
// Copies between global and shared memory through tensor maps: the portable form, which says what
// is right.
#pragma once

#include "runtime/copy_engine/reduction.h"
#include "runtime/copy_engine/tensor_tile.h"

namespace ptarmigan::runtime {

/// Bytes that a copy moves, without what pads elements in shared memory: what its mbarrier counts.
std::uint64_t tile_bytes(const TensorTile& tile);

/// Who says what loads find in global memory: the bytes at `place`, there or elsewhere, good until the next call.
struct GlobalReader {
    const std::uint8_t* (*read)(void* data, const std::uint8_t* place, std::size_t bytes);
    void* data;
};

/// From the tensor to the tile at `shared`. What lies outside of the tensor is filled and not
/// touched in memory. Accesses may fault. Without a reader memory is as it is.
void load_tile_portably(const TensorTile& tile, const TensorPosition& position, std::uint8_t* shared,
                        const GlobalReader* reader = nullptr);
/// From the tile to the tensor, but for what lies outside.
void store_tile_portably(const TensorTile& tile, const TensorPosition& position, const std::uint8_t* shared);
/// Likewise, reducing each element; `reduce` is reduce_run() of the map's type.
void reduce_tile(const TensorTile& tile, const TensorPosition& position, const std::uint8_t* shared, ReduceRun reduce);

/// Calls `visit(place, bytes)` for each row that is in the tensor, without what of it lies outside: for what a load
/// reads, or a store or reduction writes.
using VisitPlaces = void (*)(void* data, std::uint8_t* place, std::size_t bytes);
void visit_places(const TensorTile& tile, const TensorPosition& position, bool stores, VisitPlaces visit, void* data);

template <class Visit>
void for_each_place(const TensorTile& tile, const TensorPosition& position, bool stores, Visit visit) {
    visit_places(
        tile, position, stores,
        [](void* data, std::uint8_t* place, std::size_t bytes) { (*static_cast<Visit*>(data))(place, bytes); }, &visit);
}

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
