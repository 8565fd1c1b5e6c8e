// SPDX-License-Identifier: Apache-2.0
// What the forms of the copy engine share: the call to the runtime's service of asynchronous
// copies, one for all lanes of a step.
#pragma once

#include "translator/lower/call_buffer.h"

namespace ptarmigan::translator::lower {

/// An abi::AsyncCall on the stack. Setters take what the operand has, if it is written.
class AsyncCallBuffer : private CallBuffer {
public:
    AsyncCallBuffer(WarpEmitter& e, const ptx::Instruction& inst, abi::AsyncOperation operation,
                    std::uint32_t detail = 0);

    void set_target(const ptx::Operand& operand, ptx::StateSpace space) {
        set_address(offsetof(abi::AsyncCall, target), operand, space);
    }
    void set_source(const ptx::Operand& operand, ptx::StateSpace space) {
        set_address(offsetof(abi::AsyncCall, source), operand, space);
    }
    void set_barrier(const ptx::Operand& operand, ptx::StateSpace space) {
        set_address(offsetof(abi::AsyncCall, barrier), operand, space);
    }
    void set_size(const ptx::Operand& operand) { set_words(offsetof(abi::AsyncCall, size), operand); }
    void set_mask(const ptx::Operand& operand) { set_words(offsetof(abi::AsyncCall, mask), operand); }
    /// The words of a value of 32 or 64 bits, or of a vector of them, at `coordinates`. Elements that the operand lacks
    /// are zeros.
    void set_value(const ptx::Operand& operand, unsigned elements);
    /// The elements of a list at consecutive arrays; at most `most`.
    void set_list(unsigned offset, const ptx::Operand& list, unsigned most);
    /// Lanes of 32 or 64 bits at an array.
    void set_lanes(unsigned offset, llvm::Value* lanes) { store_lanes(offset, lanes); }
    void add_flags(std::uint32_t flags) { flags_ |= flags; }
    /// Calls the service if any lane is active.
    void run();

private:
    void set_address(unsigned offset, const ptx::Operand& operand, ptx::StateSpace space);
    void set_words(unsigned offset, const ptx::Operand& operand);

    std::uint32_t flags_ = 0;
};

/// The operation of a cp.reduce or red.async form, and the type of its elements.
abi::BulkReduction bulk_reduction(WarpEmitter& e, const ptx::Instruction& inst);
abi::TensorType reduction_type(WarpEmitter& e, const ptx::Instruction& inst);

/// i1: this launch does asynchronous copies later than at once (LaunchContext::async_mode).
llvm::Value* copies_are_deferred(WarpEmitter& e);

} // namespace ptarmigan::translator::lower
