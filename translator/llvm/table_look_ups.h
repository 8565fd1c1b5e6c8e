// SPDX-License-Identifier: Apache-2.0
// Tables of 256 words in shared memory that lanes look into, again and again: AES, checksums, curves of colours. A
// gather takes a cycle a lane or more, while AMD's cores look up 64 bytes among 128 in half of one (vpermi2b).
#pragma once

#include <llvm/IR/Constants.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Target/TargetMachine.h>

#include <cstdint>

namespace ptarmigan::translator {

/// Notes that a CTA of this module's kernel has so many bytes of shared memory at least.
inline void note_shared_bytes(llvm::Module& module, std::uint32_t bytes) {
    auto* number = llvm::ConstantInt::get(llvm::Type::getInt32Ty(module.getContext()), bytes);
    module.getOrInsertNamedMetadata("ptarmigan.shared")
        ->addOperand(llvm::MDNode::get(module.getContext(), {llvm::ConstantAsMetadata::get(number)}));
}
/// 0 if nothing is noted.
inline std::uint32_t noted_shared_bytes(const llvm::Module& module) {
    const llvm::NamedMDNode* note = module.getNamedMetadata("ptarmigan.shared");
    if (!note) return 0;
    return std::uint32_t(llvm::mdconst::extract<llvm::ConstantInt>(note->getOperand(0)->getOperand(0))->getZExtValue());
}

/// Makes of four gathers from one table, by indices that are known to be below 256, one look-up of 64 bytes in each of
/// the four tables of its words' bytes. These are made in front of the outermost loop in which nothing may write the
/// table. Lanes that are not active look up, too, so a table must lie in the kernel's own shared memory. Behind
/// InstCombine.
struct TableLookUps : llvm::PassInfoMixin<TableLookUps> {
    explicit TableLookUps(const llvm::TargetMachine& machine) : machine_(&machine) {}
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

private:
    const llvm::TargetMachine* machine_;
};

} // namespace ptarmigan::translator
