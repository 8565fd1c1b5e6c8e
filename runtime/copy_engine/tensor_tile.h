// SPDX-License-Identifier: Apache-2.0
// Which part of a tensor a copy moves: rows of elements along dimension 0, in the order in which
// they stand in shared memory.
#pragma once

#include "runtime/copy_engine/tensor_map.h"

namespace ptarmigan::runtime {

using abi::TensorMode;

class RowCode;

/// Which rule of the manual a copy breaks, in words for a report of static lifetime; null: none.
using BrokenRule = const char*;

/// Operands of one copy. four_rows: a column, then four rows.
struct TensorPosition {
    std::array<std::int32_t, 5> at{};
    std::array<std::uint32_t, 3> offset{}; ///< im2col: W first; im2col_w: the halo, then W
};

/// A map in a mode: the geometry that all its copies share. Interleaved tensors (NC/8HWC8) have a
/// dimension more here than in their map, whose dimensions are W, H, D, slices of channels, N:
/// dimension 0 is the channels of a slice. Of others it is the map's. Packed types are counted in
/// units, the fewest elements that are whole bytes on both sides.
struct TensorTile {
    TensorMapFields map;
    TensorMode mode = TensorMode::tile;
    unsigned unit = 1;          ///< elements of the map in an element here
    unsigned element_bytes = 0; ///< in global memory
    unsigned shared_bytes = 0;  ///< of an element in shared memory: more where the type is padded there
    std::uint32_t row_elements = 0, row_bytes = 0; ///< bytes in shared memory
    std::uint32_t row_pitch = 0; ///< bytes from row to row in shared memory: the swizzle's span, or row_bytes
    std::uint32_t rows = 0;
    unsigned dimensions = 0;                       ///< of the rows: 1 to `dimensions`
    unsigned spatial = 0;                          ///< columns walk along dimensions 1 to `spatial`, then the last one
    std::uint32_t piece = 0, halo = 0;             ///< columns: `halo` more pixels behind each `piece`
    std::array<std::int64_t, 7> size{}, stride{};  ///< by dimension; strides in bytes
    std::array<std::uint32_t, 7> step{}, extent{}; ///< extent: rows of a box along the dimension
    const RowCode *load_rows = nullptr, *store_rows = nullptr; ///< see find_codes()

    bool interleaved() const { return map.interleave != Interleave::none; }
    /// Elements have the same bytes in global and in shared memory.
    bool plain() const { return element_bytes == shared_bytes; }
    /// Coordinate 0 in elements here.
    std::int64_t column(const TensorPosition& position) const {
        return unit == 1 ? position.at[0] : position.at[0] / static_cast<std::int64_t>(unit);
    }
};

/// The rule that a map breaks in this mode or with this rank (of the instruction).
BrokenRule describe_tile(const TensorMapFields& map, TensorMode mode, unsigned rank, TensorTile& tile);
/// The halo that an im2col_w copy asks for becomes part of its tile.
void add_halo(TensorTile& tile, const TensorPosition& position);
/// Rows at equal distances in global memory.
struct RowRun {
    std::uint32_t first = 0, count = 0; ///< rows in shared memory
    std::int64_t offset = 0;            ///< bytes from the map's address to element 0 of dimension 0 of the first row
    std::int64_t stride = 0;            ///< bytes from row to row
    bool inside = false;                ///< the rows are in the tensor (as far as dimension 0 goes); otherwise
                                        ///< they are filled
};

/// Elements of every row that dimension 0 has: [first, last) of the row, empty if none.
struct RowClip {
    std::uint32_t first = 0, last = 0;
};
RowClip clip_row(const TensorTile& tile, const TensorPosition& position);

/// im2col: a pixel's coordinate, which corners may be, is negative. Stores don't go there.
bool comes_below_zero(const TensorTile& tile, const TensorPosition& position);

/// Calls `visit(const RowRun&)` for all rows in ascending order. Plain function pointers: nothing
/// here may need a destructor, because copies end in faults.
using VisitRows = void (*)(void* data, const RowRun& run);
void visit_rows(const TensorTile& tile, const TensorPosition& position, VisitRows visit, void* data);

template <class Visit> void for_each_run(const TensorTile& tile, const TensorPosition& position, Visit visit) {
    visit_rows(
        tile, position, [](void* data, const RowRun& run) { (*static_cast<Visit*>(data))(run); }, &visit);
}

} // namespace ptarmigan::runtime
