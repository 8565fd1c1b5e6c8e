// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_memory/shared_matrix.h"

namespace ptarmigan::runtime {
namespace {

/// Offsets and addresses are given in units of 16 bytes.
std::uint32_t decoded(std::uint64_t descriptor, unsigned bit) {
    return static_cast<std::uint32_t>(descriptor >> bit & 0x3fff) << 4;
}

} // namespace

SharedMatrix::SharedMatrix(std::uint64_t descriptor)
    : start_(decoded(descriptor, 0)), leading_(decoded(descriptor, 16)), stride_(decoded(descriptor, 32)),
      base_offset_(static_cast<std::uint32_t>(descriptor >> 49 & 7)),
      swizzle_(static_cast<Swizzle>(descriptor >> 61 & 7)), is_absolute_((descriptor >> 52 & 1) != 0),
      is_constant_right_((descriptor >> 46 & 7) == 1) {}

const char* SharedMatrix::fault(unsigned transposed_element_bytes) const {
    switch (swizzle_) {
    case Swizzle::none:
    case Swizzle::bytes_128:
    case Swizzle::bytes_64:
    case Swizzle::bytes_32:
        if (transposed_element_bytes == 4)
            return "a transposed matrix of 32-bit elements needs swizzles of 128 bytes by 32";
        break;
    case Swizzle::bytes_128_by_32:
        if (transposed_element_bytes != 0 && transposed_element_bytes != 4)
            return "swizzles of 128 bytes by 32 hold no transposed matrix of smaller elements";
        break;
    default: return "a matrix descriptor has a swizzling mode that there is not";
    }
    if (is_absolute_) return "leading dimensions by absolute address (sm_103a) are not supported";
    if (!is_constant_right_) return "bits 46 to 48 of a matrix descriptor are not 0b001";
    return nullptr;
}

unsigned SharedMatrix::row_bytes() const {
    switch (swizzle_) {
    case Swizzle::none: return 16;
    case Swizzle::bytes_32: return 32;
    case Swizzle::bytes_64: return 64;
    default: return 128;
    }
}

/// Patterns lie at the addresses, moved by the base offset.
std::uint32_t SharedMatrix::swizzled(std::uint32_t offset) const {
    const std::uint32_t address = start_ + offset, pattern = address - (base_offset_ << 7);
    switch (swizzle_) {
    case Swizzle::none: return address;
    case Swizzle::bytes_32: return address ^ (pattern >> 3 & 0x10);
    case Swizzle::bytes_64: return address ^ (pattern >> 3 & 0x30);
    case Swizzle::bytes_128: return address ^ (pattern >> 3 & 0x70);
    case Swizzle::bytes_128_by_32: return address ^ (pattern >> 2 & 0x60);
    }
    return address;
}

std::uint32_t SharedMatrix::place(unsigned line, unsigned byte) const {
    const std::uint32_t rows = line / 8 * stride_ + line % 8 * row_bytes();
    return swizzled(swizzle_ == Swizzle::none ? rows + byte / 16 * leading_ + byte % 16 : rows + byte);
}

std::uint32_t SharedMatrix::transposed_place(unsigned line, unsigned k, unsigned element_bytes) const {
    const unsigned byte = line * element_bytes, row = row_bytes();
    if (swizzle_ == Swizzle::none) return start_ + byte / 16 * stride_ + byte % 16 + k / 8 * leading_ + k % 8 * 16;
    const unsigned rows = swizzle_ == Swizzle::bytes_128_by_32 ? 4 : 8; // of a pattern
    return swizzled(byte / row * leading_ + byte % row + k / rows * stride_ + k % rows * row);
}

} // namespace ptarmigan::runtime
