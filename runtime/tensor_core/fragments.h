// SPDX-License-Identifier: Apache-2.0
// Between the registers of a warp's lanes and dense matrices.
#pragma once

#include "frontend/ptx/matrix_fragments.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime::tensor_core {

/// Registers as [register][lane]; one of 64 bits takes two arrays.
using Registers = std::uint32_t (*)[32];
using ConstRegisters = const std::uint32_t (*)[32];

/// Moves one operand. In a matrix its lines lie behind each other, without gaps; elements of less than a byte lie in
/// one from its low end on.
class FragmentMover {
public:
    explicit FragmentMover(const ptx::MatrixFragment& fragment);

    const ptx::MatrixFragment& fragment() const { return fragment_; }
    std::size_t line_bytes() const { return line_bytes_; }
    void gather(ConstRegisters registers, void* matrix) const { gather(registers, matrix, line_bytes_); }
    void scatter(const void* matrix, Registers registers) const { scatter(matrix, registers, line_bytes_); }
    /// The same with lines `stride` bytes apart.
    void gather(ConstRegisters registers, void* matrix, std::size_t stride) const;
    void scatter(const void* matrix, Registers registers, std::size_t stride) const;

private:
    ptx::MatrixFragment fragment_;
    std::size_t line_bytes_;
    struct Block {
        std::uint32_t line, offset; ///< in bytes
    };
    std::array<Block, 128> blocks_{}; ///< where the block of a register begins, or of a pair
};

/// mma.sp, wgmma.sp: for each element that A stores, row by row, the k it is multiplied with; tf32: two entries, the
/// 16-bit halves of the column that its factor is made of. `metadata` are the lanes' words, of which `selector` says
/// whose count. Any bits select something.
void select_by_metadata(const ptx::MatrixForm& form, unsigned selector, const std::uint32_t (&metadata)[32],
                        std::uint8_t* selected);

} // namespace ptarmigan::runtime::tensor_core
