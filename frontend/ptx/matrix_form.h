// SPDX-License-Identifier: Apache-2.0
// What a product of matrices says: mma.sync, mma.sp and wmma.mma (manual 9.7.14), wgmma.mma_async (9.7.15), as data
// that later stages share.
#pragma once

#include "frontend/ptx/matrix_type.h"
#include "frontend/ptx/module.h"

#include <cstdint>

namespace ptarmigan::ptx {

enum class MatrixOpcode : std::uint8_t { mma, mma_sp, wmma, wgmma, wgmma_sp };
constexpr bool is_sparse(MatrixOpcode opcode) {
    return opcode == MatrixOpcode::mma_sp || opcode == MatrixOpcode::wgmma_sp;
}
/// .kind: plain stands for none. The kinds after mixed are block-scaled.
enum class MatrixKind : std::uint8_t { plain, mixed, scaled_mixed, scaled_e2m1 };

/// D = A B + C. Kept small and without padding: generated code hands it to the runtime as it is. wgmma's is the share
/// of one warp, 16 of the 64 rows; its C is D.
struct MatrixForm {
    std::uint16_t m = 0, n = 0, k = 0; ///< sparse: K of the whole product, of which A holds half
    MatrixType a{}, b{}, c{}, d{};
    MatrixOpcode opcode{};
    MatrixRounding rounding{}; ///< of f64
    std::uint8_t satfinite : 1 = 0;
    std::uint8_t bits_and : 1 = 0; ///< b1: .and, else .xor
    /// Where the layout of the operand's elements depends on it (in registers: mma.m8n8k4 of halves; in memory: halves
    /// of wgmma): A by columns, B by rows.
    std::uint8_t a_by_columns : 1 = 0, b_by_rows : 1 = 0;
    std::uint8_t negate : 1 = 0;      ///< wgmma: of the products, by one of imm-scale-a and imm-scale-b
    std::uint8_t a_in_memory : 1 = 0; ///< wgmma: A has a descriptor
    std::uint8_t unused_bits : 2 = 0;
    MatrixKind kind{};
    std::uint8_t scales = 0;      ///< of a row of A and a column of B; 0 unless block-scaled
    std::uint8_t scale_ue4m3 = 0; ///< type of the scales; else ue8m0
};
static_assert(sizeof(MatrixForm) == 16);

/// Of an instruction with such a row.
MatrixForm matrix_form(const Instruction& inst);

/// Of wmma.load and wmma.store: the product whose operand it moves, as far as it says.
MatrixForm moved_form(const Instruction& inst);

} // namespace ptarmigan::ptx
