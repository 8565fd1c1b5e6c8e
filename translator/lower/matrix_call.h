// SPDX-License-Identifier: Apache-2.0
// The call to the tensor core that products of matrices are.
#pragma once

#include "frontend/ptx/matrix_fragments.h"
#include "translator/analysis/build/loop_accumulators.h"
#include "translator/lower/call_buffer.h"

namespace ptarmigan::translator::lower {

/// An abi::MatrixCall on the stack. Its place serves others afterwards.
class MatrixCallBuffer : private PassingCallBuffer {
public:
    MatrixCallBuffer(WarpEmitter& e, const ptx::Instruction& inst);

    /// The registers of a braced operand (a single register too).
    void set(ptx::MatrixOperand operand, const ptx::Operand& registers);
    void set_metadata(const ptx::Operand& words, std::uint32_t selector);
    /// Scales of A and B, and the two numbers that select among them.
    void set_scales(const ptx::Operand& a, const ptx::Operand& ids_a, const ptx::Operand& b, const ptx::Operand& ids_b);
    /// Calls the tensor core if any lane is active; narrow steps wait for the others of their warp.
    void run();
    /// Writes D.
    void write(const ptx::Operand& registers);

private:
    llvm::Value* register_place(ptx::MatrixOperand operand, unsigned index);

    ptx::MatrixForm form_;
};

/// Makes all products of a group whose first one is `inst`, and writes their results. For steps of a whole warp.
void call_matrix_group(WarpEmitter& e, const ptx::Instruction& inst, const ProductGroup& group);

/// Moves a bank's accumulators between registers of all lanes and their places in `memory`: <32 x iN> each, those of an
/// accumulator behind each other.
void pack_accumulators(WarpEmitter& e, const LoopAccumulators::Bank& bank, llvm::ArrayRef<llvm::Value*> registers,
                       llvm::Value* memory);
std::vector<llvm::Value*> unpack_accumulators(WarpEmitter& e, const LoopAccumulators::Bank& bank, llvm::Value* memory);

} // namespace ptarmigan::translator::lower
