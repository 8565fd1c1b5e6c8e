// SPDX-License-Identifier: Apache-2.0
// What mbarrier instructions share: the call to the runtime's mbarrier service, one for all lanes of a step.
#pragma once

#include "translator/emit/warp_emitter.h"
#include "translator/kernel_abi.h"

namespace ptarmigan::translator::lower {

/// An abi::MbarrierCall on the stack. Where the object's address and the count are uniform, only their first element is
/// written.
class MbarrierCallBuffer {
public:
    /// `counts`: the operand for abi::MbarrierCall::count; none: `fallback` for all lanes.
    MbarrierCallBuffer(WarpEmitter& e, const ptx::Instruction& inst, abi::MbarrierOperation operation, std::uint32_t flags,
                       const ptx::Operand& counts, std::uint32_t fallback = 1);

    void set_state(llvm::Value* lanes);
    void set_limit(llvm::Value* lanes);
    /// Calls the service if any lane is active.
    void run();
    /// <W x i64>, and <W x i32>: not 0 where the phase is complete. Unspecified for lanes that do not take part.
    llvm::Value* state();
    llvm::Value* complete();

private:
    llvm::Value* place(unsigned offset);
    void store(unsigned offset, llvm::Value* vector, unsigned alignment);
    llvm::Value* load(unsigned offset, llvm::Type* scalar);

    WarpEmitter& e_;
    llvm::AllocaInst* buffer_;
};

} // namespace ptarmigan::translator::lower
