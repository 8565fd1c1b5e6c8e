// SPDX-License-Identifier: Apache-2.0
// What warp collectives share: the call to the runtime's collective service that steps narrower than a warp make.
#pragma once

#include "translator/emit/warp_emitter.h"
#include "translator/kernel_abi.h"

namespace ptarmigan::translator::lower {

/// True when one step holds all 32 lanes, so that collectives need no other step.
inline bool whole_warp(WarpEmitter& e) {
    return e.width() == abi::warp_size;
}

/// <W x i32> 0, 1, 2, ...
llvm::Value* lane_numbers(WarpEmitter& e);

/// All lanes of the warp come before any goes on, for .aligned instructions: those that wait elsewhere are not meant.
void meet_in_warp(WarpEmitter& e);

/// Steps of one lane: `count` votes of the whole warp, of which none needs another's result, as one meeting.
/// `begin(number)` makes one of them the current instruction.
void join_votes(WarpEmitter& e, unsigned count, llvm::function_ref<const ptx::Instruction&(unsigned)> begin);

/// The warps of a warpgroup wait for each other. Fiber form.
void warpgroup_barrier(WarpEmitter& e, const ptx::Instruction& inst);

/// Steps of a whole warp: the lanes that take part in a collective, as a mask word; without a member mask the active
/// ones. Lanes whose mask does not name them are a fault, but where the whole warp has come with one mask: there a GPU
/// does not look at it.
LaneValue participants(WarpEmitter& e, const ptx::Instruction& inst);

/// The call of a collective service by a step narrower than a warp: an abi::CollectiveCall on the stack, into which
/// setters store one value per lane, or, of steps of one lane, the arguments of Services::lane_collective.
class CollectiveCallBuffer {
public:
    CollectiveCallBuffer(WarpEmitter& e, abi::Collective kind, std::uint32_t operation);
    CollectiveCallBuffer(const CollectiveCallBuffer&) = delete;
    ~CollectiveCallBuffer();

    /// The membermask operand; -1, all lanes, for forms without one and where the whole warp meets.
    void set_members(const ptx::Instruction& inst);
    /// Integers of up to 64 bits.
    void set_source(llvm::Value* lanes);
    void set_b(llvm::Value* lanes);
    void set_c(llvm::Value* lanes);
    /// Calls the service if any lane is active.
    void run();
    /// Result truncated to `scalar`, of steps of one lane at most 32 bits, and the predicate words (<W x i32>).
    llvm::Value* result(llvm::Type* scalar);
    llvm::Value* predicate();

private:
    void store(unsigned offset, llvm::Value* vector);
    llvm::Value* load(unsigned offset, llvm::Type* scalar);

    WarpEmitter& e_;
    llvm::AllocaInst* buffer_ = nullptr; ///< null: a step of one lane
    std::uint32_t what_;                 ///< kind and operation as in Services::lane_collective
    llvm::Value *members_, *source_, *b_, *c_, *answer_ = nullptr;
};

} // namespace ptarmigan::translator::lower
