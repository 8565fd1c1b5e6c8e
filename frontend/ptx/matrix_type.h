// SPDX-License-Identifier: Apache-2.0
// Types and roundings of matrices' elements, for those who need no more of a product.
#pragma once

#include <cstdint>

namespace ptarmigan::ptx {

/// Types of a matrix' elements. Those of 6 bits are in the low bits of a byte; e2m1 as well as half a byte, and, where
/// formats are mixed (e2m1_in_byte), in bits 2 to 5 of a byte.
enum class MatrixType : std::uint8_t {
    f16,
    bf16,
    tf32,
    e4m3,
    e5m2,
    f32,
    f64,
    s32,
    s8,
    u8,
    s4,
    u4,
    b1,
    e3m2,
    e2m3,
    e2m1_in_byte,
    e2m1,
};

/// Bits of an element. Inlined always: units that are compiled for some CPUs only must not give others their copy.
[[gnu::always_inline]] constexpr unsigned bit_size(MatrixType type) {
    switch (type) {
    case MatrixType::f16:
    case MatrixType::bf16: return 16;
    case MatrixType::f64: return 64;
    case MatrixType::e4m3:
    case MatrixType::e5m2:
    case MatrixType::e3m2:
    case MatrixType::e2m3:
    case MatrixType::e2m1_in_byte:
    case MatrixType::s8:
    case MatrixType::u8: return 8;
    case MatrixType::s4:
    case MatrixType::u4:
    case MatrixType::e2m1: return 4;
    case MatrixType::b1: return 1;
    default: return 32;
    }
}

enum class MatrixRounding : std::uint8_t { nearest_even, toward_zero, down, up };

} // namespace ptarmigan::ptx
