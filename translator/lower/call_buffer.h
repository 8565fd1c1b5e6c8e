// SPDX-License-Identifier: Apache-2.0
// A record of kernel_abi.h on the stack that a service of the runtime is called with, once for all lanes of a step.
#pragma once

#include "frontend/ptx/matrix_form.h"
#include "translator/emit/warp_emitter.h"
#include "translator/kernel_abi.h"

#include <cstddef>
#include <cstdint>

namespace ptarmigan::translator::lower {

class CallBuffer {
public:
    /// Of the function's own.
    CallBuffer(WarpEmitter& e, std::size_t bytes, const char* name);
    CallBuffer(const CallBuffer&) = delete;
    CallBuffer& operator=(const CallBuffer&) = delete;

    llvm::Value* place(std::size_t offset);
    void store(std::size_t offset, llvm::Value* value);
    void store_number(std::size_t offset, std::uint64_t number); ///< i32
    void store_form(std::size_t offset, const ptx::MatrixForm& form);
    /// A value of each lane at an array, aligned as its elements are, or better.
    void store_lanes(std::size_t offset, llvm::Value* lanes, unsigned alignment = 0);
    llvm::Value* load_lanes(std::size_t offset, llvm::Type* scalar, unsigned alignment = 0);
    /// The operand's bits in each lane, as integers of that size.
    llvm::Value* bits_of(const ptx::Operand& operand, unsigned bits);
    /// Calls the service if any lane is active; or where it stands.
    void call(unsigned service);
    void call_always(unsigned service);

protected:
    CallBuffer(WarpEmitter& e, llvm::AllocaInst* buffer) : e_(e), buffer_(buffer) {}

    WarpEmitter& e_;
    llvm::AllocaInst* buffer_;
};

/// Its place serves others afterwards.
class PassingCallBuffer : public CallBuffer {
public:
    PassingCallBuffer(WarpEmitter& e, std::size_t bytes, unsigned alignment);
    ~PassingCallBuffer() { e_.return_lane_slot(buffer_); }
};

} // namespace ptarmigan::translator::lower
