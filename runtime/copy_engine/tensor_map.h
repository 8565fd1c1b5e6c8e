// SPDX-License-Identifier: Apache-2.0
// The 128 bytes of a tensor map (CUtensorMap, PTX manual 5.5.8): made from what programs ask for,
// read by copies, changed by tensormap.replace.
#pragma once

#include "runtime/base/status.h"
#include "translator/async_call.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace ptarmigan::runtime {

inline constexpr unsigned max_tensor_rank = 5;

using abi::TensorMapField;
using abi::TensorType;
inline constexpr unsigned tensor_type_count = 16;

enum class Interleave : std::uint8_t { none, bytes_16, bytes_32 };
/// Numbered as `.swizzle_mode` and `.swizzle_atomicity` have them.
enum class Swizzle : std::uint8_t { none, span_32, span_64, span_128, span_96 };
enum class SwizzleAtom : std::uint8_t { bytes_16, bytes_32, bytes_32_flip_8, bytes_64 };

/// Bytes of an element; 0 for the packed types of less than a byte.
unsigned tensor_element_bytes(TensorType type);
unsigned tensor_element_bits(TensorType type);
bool is_floating(TensorType type);
/// Bytes within which a swizzle exchanges atoms; 0 for none.
unsigned span_bytes(Swizzle swizzle);
inline bool is_packed(TensorType type) {
    return type >= TensorType::b4x16;
}
/// Sixteen elements take 16 bytes of shared memory, although they are fewer.
inline bool is_padded(TensorType type) {
    return type > TensorType::b4x16;
}

/// The object itself, as programs hold it. Opaque to them; the layout is the NVIDIA driver's for
/// sm_90. What only later GPUs have (packed types, swizzle atoms, 96-byte swizzle) stands in bits
/// that are zero there. A map of im2col::w is one of im2col whose corners are in W only.
struct alignas(64) TensorMap {
    std::uint8_t bytes[128];
};

/// The map in memory at `address`. Faults as any access does if nothing is there.
inline TensorMap read_map(std::uint64_t address) {
    TensorMap map;
    std::memcpy(&map, reinterpret_cast<const void*>(address), sizeof map);
    return map;
}

/// What a map says, decoded. Arrays hold `rank` entries (strides rank - 1), the fastest dimension
/// first.
struct TensorMapFields {
    std::uint64_t address = 0;
    bool im2col = false;
    unsigned rank = 1;
    TensorType type = TensorType::u8;
    Interleave interleave = Interleave::none;
    Swizzle swizzle = Swizzle::none;
    SwizzleAtom atom = SwizzleAtom::bytes_16;
    bool fill_nan = false;
    unsigned promotion = 0;                       ///< L2 promotion: a hint
    std::array<std::uint64_t, 4> stride{};        ///< bytes, multiples of 16
    std::array<std::uint64_t, 5> dim{};           ///< elements, 1 to 2^32
    std::array<std::uint32_t, 5> step{};          ///< element strides, 1 to 8
    std::array<std::uint32_t, 5> box{};           ///< tiled: elements, 1 to 256
    std::array<std::int32_t, 3> lower{}, upper{}; ///< im2col: corners, rank - 2 of them, W first
    std::uint32_t channels = 0, pixels = 0;       ///< im2col
};

/// False if the bytes are no map: reserved formats, interleave or swizzle, or a rank above 5.
bool decode(const TensorMap& map, TensorMapFields& fields);
void encode(const TensorMapFields& fields, TensorMap& map);

/// Arguments of cuTensorMapEncodeTiled, ...Im2col and ...Im2colWide as a program gives them:
/// nothing is checked yet.
struct TensorMapRequest {
    enum class Kind { tiled, im2col, im2col_wide } kind = Kind::tiled;
    unsigned type = 0; ///< CUtensorMapDataType: another numbering than TensorType
    unsigned rank = 0;
    std::uint64_t address = 0;
    const std::uint64_t *dim = nullptr, *stride = nullptr;
    const std::uint32_t *box = nullptr, *step = nullptr;
    const int *lower = nullptr, *upper = nullptr; ///< wide: one each
    unsigned channels = 0, pixels = 0;
    unsigned interleave = 0, swizzle = 0, promotion = 0, fill = 0, mode = 0;
};

/// Checks a request and makes the map: success or invalid_value. `cc_major`: compute capability of
/// the device; what only GPUs from 10 on have is refused below.
Status make_tensor_map(const TensorMapRequest& request, unsigned cc_major, TensorMap& map);

/// Writes one field, unchecked like the instruction; `index` counts dimensions.
void replace_field(TensorMap& map, TensorMapField field, unsigned index, std::uint64_t value);

} // namespace ptarmigan::runtime
