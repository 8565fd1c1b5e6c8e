// SPDX-License-Identifier: Apache-2.0
// Sums of products of bytes (dp4a) on CPUs that multiply bytes without sign by bytes with sign: each product of two
// signed bytes is put right by what taking one of them 128 higher has added.
#pragma once

#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Of calls of VPDPBUSD that add to a sum of the kernel's.
inline constexpr const char* byte_products_metadata = "ptarmigan.byte_products";

inline void mark_byte_products(llvm::Instruction& call) {
    call.setMetadata(byte_products_metadata, llvm::MDNode::get(call.getContext(), {}));
}

/// The sum that marked products of bytes are added to, or null.
inline llvm::Value* sum_before_byte_products(const llvm::Instruction& instruction) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    return call && call->getMetadata(byte_products_metadata) ? call->getArgOperand(0) : nullptr;
}

/// Puts a chain of such sums right once, behind it, by the sum of what each link lacks: numbers of 32 bits wrap, so the
/// order does not count. Links are next to each other then. Where one factor is a word of memory for all lanes, the
/// other one is taken higher: instructions read the word as it is, and what they lack is summed up for whole vectors of
/// such words. Parts of wider vectors become what they are parts of. In front of JamSteps.
struct JoinByteProducts : llvm::PassInfoMixin<JoinByteProducts> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
