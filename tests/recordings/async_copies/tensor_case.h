// SPDX-License-Identifier: Apache-2.0
// Pseudo-random tensor maps and copies through them, the same on every machine.
#pragma once

#include "tests/recordings/random.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace async_recording {

/// Arguments of cuTensorMapEncodeTiled and its relatives.
struct MapCase {
    enum class Kind { tiled, im2col, im2col_wide } kind = Kind::tiled;
    unsigned type = 0; ///< CUtensorMapDataType
    unsigned rank = 1;
    std::uint64_t address = 0;
    std::array<std::uint64_t, 5> dim{};
    std::array<std::uint64_t, 4> stride{};
    std::array<std::uint32_t, 5> box{}, element_stride{};
    unsigned interleave = 0, swizzle = 0, promotion = 0, fill = 0;
    std::array<int, 3> lower{}, upper{}; ///< im2col: W first, as the entries take them; wide: [0]
    std::uint32_t channels = 0, pixels = 0;
    unsigned mode = 0; ///< wide
};

/// Bytes of an element; 0 for packed types.
unsigned element_bytes(unsigned type);

/// Map number `index` of the sequence: most are valid for sm_90, the rest have one argument out of its range.
MapCase map_case(unsigned index);

/// A copy through a map into or from `box_bytes()` of shared memory.
struct CopyCase {
    MapCase map;
    std::array<std::int32_t, 5> coordinates{};
    std::array<std::uint32_t, 3> offsets{}; ///< im2col
    std::uint32_t shared_offset = 0;        ///< of the tile, multiple of 128
    std::string direction;                  ///< "load", "store" or a reduction's operation
    std::uint64_t data_seed = 0;
};

inline constexpr unsigned tensor_bytes = 1u << 18;  ///< memory that every tensor lies in, behind its address
inline constexpr unsigned shared_bytes = 20480;     ///< shared memory of a kernel

/// Bytes of shared memory that the copy writes or reads, and which its mbarrier counts.
std::uint32_t box_bytes(const CopyCase& c);

/// Copy number `index`; the sequence goes through the classes in `class_names`.
CopyCase copy_case(unsigned index);
/// What kind of case it is: "tile", "stride", "interleave", "im2col".
std::string class_of(unsigned index);

std::string describe(const CopyCase& c);

/// `count` bytes; for reductions elements of the case's type with many special values.
std::vector<std::uint8_t> data_of(const CopyCase& c, std::uint64_t salt, unsigned count);

} // namespace async_recording
