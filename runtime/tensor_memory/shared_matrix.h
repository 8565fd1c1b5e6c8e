// SPDX-License-Identifier: Apache-2.0
// Matrices in shared memory as descriptors of tcgen05 say (manual 9.7.16.3, 9.7.16.4.1, 9.7.16.10.6).
#pragma once

#include <cstdint>

namespace ptarmigan::runtime {

/// What a descriptor says.
class SharedMatrix {
public:
    explicit SharedMatrix(std::uint64_t descriptor);

    /// A rule that the descriptor breaks; null if it can be used. `element_bytes`: of a matrix that is transposed
    /// (elements of a column follow each other); 0 for others.
    const char* fault(unsigned transposed_element_bytes) const;

    /// Where the byte is: of row `line` (of A, or column of B) of a matrix whose lines lie in memory, as an offset from
    /// shared address 0. Bytes of one group of 16 follow each other.
    std::uint32_t place(unsigned line, unsigned byte) const;
    /// Likewise of element (`line`, `k`) of a transposed matrix.
    std::uint32_t transposed_place(unsigned line, unsigned k, unsigned element_bytes) const;

private:
    enum class Swizzle : std::uint8_t { none = 0, bytes_128_by_32 = 1, bytes_128 = 2, bytes_64 = 4, bytes_32 = 6 };
    std::uint32_t swizzled(std::uint32_t offset) const;
    unsigned row_bytes() const;

    std::uint32_t start_, leading_, stride_, base_offset_;
    Swizzle swizzle_;
    bool is_absolute_, is_constant_right_;
};

} // namespace ptarmigan::runtime
