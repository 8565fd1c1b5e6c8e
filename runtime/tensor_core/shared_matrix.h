// SPDX-License-Identifier: Apache-2.0
// Matrices in shared memory that descriptors name (PTX manual 9.7.15.5.1.2).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime::tensor_core {

/// Shared memory of one CTA as an instruction reads it.
struct SharedMemory {
    const std::uint8_t* bytes;
    std::uint32_t size;
};

/// A matrix descriptor, as an H100 reads it (tests/recordings/tensor_core/descriptors_h100.tsv): bits without a meaning
/// are ignored, sums of offsets do not wrap. Lines are rows of A or columns of B. A matrix is made of pieces of eight
/// 16-byte chunks: of eight lines with one chunk of k each, or, by_k (transposed; 16-bit elements), of eight k with one
/// chunk of eight lines each.
class SharedMatrix {
public:
    explicit SharedMatrix(std::uint64_t descriptor);

    /// Copies lines first .. first + count - 1 (multiples of 8), each of `line_bytes` (a multiple of 16) along k,
    /// behind each other to `lines`. False if some of it lies outside of the memory.
    bool read_lines(const SharedMemory& memory, unsigned first, unsigned count, unsigned line_bytes,
                    std::uint8_t* lines) const;
    /// The same where elements that are neighbours in memory belong to neighbouring lines.
    bool read_across(const SharedMemory& memory, unsigned first, unsigned count, unsigned line_bytes,
                     std::uint8_t* lines) const;

private:
    static constexpr unsigned chunk = 16; ///< bytes that stay together

    const std::uint8_t* place(const SharedMemory& memory, std::uint32_t offset) const;

    std::uint32_t start_, leading_, stride_; ///< bytes
    std::uint32_t base_offset_;              ///< bytes by which swizzles begin later than at a multiple of their size
    std::uint32_t span_;                     ///< bytes of a swizzled line, 16: not swizzled
    std::uint32_t mask_;                     ///< chunks that change places
};

} // namespace ptarmigan::runtime::tensor_core
