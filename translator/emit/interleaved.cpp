// SPDX-License-Identifier: Apache-2.0
// Addresses in local memory that is interleaved by lane; analysis/build/interleave_locals.h says where a place lies.
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"

#include <bit>

namespace ptarmigan::translator {

using ptx::Operand;

/// The number that an address operand holds: which place of the thread's interleaved memory.
LaneValue GraphEmitter::local_place(const Operand& operand) {
    if (operand.base != Operand::Base::reg) return LaneValue::uniform(ir_.getInt64(operand.value));
    return offset_by(value_at(current_block_, operand.index), ir_.getInt64(operand.value));
}

/// Lanes at one place lie side by side. 32 bits of a place count, as with the GPU's local loads and stores.
LaneAddress GraphEmitter::interleaved_address(const Operand& operand) {
    const unsigned granule = current_instruction_->lane_granule, granule_bits = unsigned(std::countr_zero(granule));
    const bool is_whole = ptx::byte_size(current_instruction_->inst.type()) >= granule;
    llvm::Value* memory = context_field(ir_.getInt64Ty(), offsetof(abi::CtaContext, interleaved), "interleaved");
    llvm::Value* step = ir_.CreateZExt(step_, ir_.getInt64Ty());
    llvm::Value* base =
        ir_.CreateAdd(memory, ir_.CreateMul(step, ir_.getInt64(std::uint64_t(width_) * graph_.interleaved_bytes)));
    const LaneValue place = local_place(operand);
    LaneAddress result;
    result.space = ptx::StateSpace::local;
    result.interleaved = true;
    if (place.is_uniform()) {
        // place / granule * granule * W + place % granule
        llvm::Value* number = ir_.CreateSExt(ir_.CreateTrunc(place.base, ir_.getInt32Ty()), ir_.getInt64Ty());
        llvm::Value* low = ir_.CreateAnd(number, ir_.getInt64(granule - 1));
        llvm::Value* high = ir_.CreateMul(ir_.CreateSub(number, low), ir_.getInt64(width_));
        result.address.base = ir_.CreateAdd(base, ir_.CreateAdd(high, low));
        result.address.shape.level = width_ == 1 ? Shape::Level::step_uniform : Shape::Level::affine;
        if (width_ > 1) result.address.shape.offsets = granule_offsets(granule);
        return result;
    }
    // As base + index * size with 32-bit indices, which gathers take (lower/lane_pointers.cpp).
    llvm::Value* number = ir_.CreateTrunc(broadcast(place), lanes_type(ir_.getInt32Ty()));
    llvm::Value* lanes = lane_numbers(ir_.getInt32Ty());
    llvm::Value* row =
        ir_.CreateMul(ir_.CreateLShr(number, splat(ir_.getInt32(granule_bits))), splat(ir_.getInt32(width_)));
    llvm::Value* index = ir_.CreateAdd(row, lanes);
    unsigned size = granule;
    if (!is_whole) {
        index = ir_.CreateAdd(ir_.CreateShl(index, splat(ir_.getInt32(granule_bits))),
                              ir_.CreateAnd(number, splat(ir_.getInt32(granule - 1))));
        size = 1;
    }
    llvm::Value* wide = ir_.CreateSExt(index, lanes_type(ir_.getInt64Ty()));
    result.address = LaneValue::varying(ir_.CreateAdd(splat(base), ir_.CreateMul(wide, splat(ir_.getInt64(size)))));
    return result;
}

const LaneOffsets* GraphEmitter::granule_offsets(unsigned granule) {
    LaneOffsets& offsets = granule_offsets_[granule];
    if (offsets.empty())
        for (unsigned lane = 0; lane < width_; ++lane) offsets.push_back(std::int64_t(lane) * granule);
    return &offsets;
}

} // namespace ptarmigan::translator
