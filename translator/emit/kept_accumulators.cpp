// SPDX-License-Identifier: Apache-2.0
// Accumulators of products that stay in the tensor core's layout over the rounds of a loop. They have no slots: on the
// edge into the loop what comes in is packed into their places, and phis at exits get it from there.
#include "translator/emit/graph_emitter.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/matrix_call.h"

#include <llvm/IR/Constants.h>

namespace ptarmigan::translator {

void GraphEmitter::place_accumulators() {
    const LoopAccumulators* kept = interface_->accumulators;
    if (!kept || kept->banks().empty()) return;
    for (ValueId value = 0; value < crosses_.size(); ++value)
        if (kept->place(value)) crosses_[value] = false;
    if (interface_->accumulator_memory) {
        accumulator_memory_ = interface_->accumulator_memory();
        return;
    }
    llvm::AllocaInst* memory = entry_alloca(llvm::ArrayType::get(ir_.getInt8Ty(), kept->bytes()), "accumulators");
    memory->setAlignment(llvm::Align(64));
    accumulator_memory_ = memory;
}

llvm::Value* GraphEmitter::memory_of(const LoopAccumulators::Bank& bank) {
    return ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), accumulator_memory_, bank.offset);
}

const ProductGroup* GraphEmitter::product_group(const ptx::Instruction& inst) {
    if (!interface_->product_groups && !product_groups_) product_groups_.emplace(graph_);
    const ProductGroup* group =
        (interface_->product_groups ? interface_->product_groups : &*product_groups_)->with(inst);
    // A product by itself is quicker as a group only where its accumulator is kept.
    const bool is_single = group && group->products.size() == 1;
    return is_single && !(interface_->accumulators && interface_->accumulators->use(*group)) ? nullptr : group;
}

WarpEmitter::KeptAccumulators GraphEmitter::kept_accumulators(const ProductGroup& group) {
    const LoopAccumulators::Use* use = interface_->accumulators ? interface_->accumulators->use(group) : nullptr;
    if (!use) return {};
    return {memory_of(interface_->accumulators->banks()[use->bank]), use->accumulators};
}

/// The edge `from` -> `to`, which is the `index`th into `to`: packs what it brings into a loop that has banks. Another
/// round's accumulators are in their places.
void GraphEmitter::keep_accumulators(BlockId from, BlockId to, unsigned index) {
    if (!interface_->accumulators) return;
    const std::uint32_t loop = graph_.forest.loop_of[to];
    for (const LoopAccumulators::Bank& bank : interface_->accumulators->banks()) {
        if (bank.loop != loop || graph_.forest.loops[loop].header != to || graph_.forest.loops[loop].latch == from)
            continue;
        std::vector<llvm::Value*> registers;
        for (const std::vector<ValueId>& phis : bank.phis)
            for (ValueId result : phis)
                for (const Phi& phi : graph_.blocks[to].phis)
                    if (phi.result == result) {
                        const ptx::ScalarType type = graph_.values[result].type;
                        registers.push_back(
                            lower::to_bits(ir_, broadcast(convert(value_at(from, phi.incoming[index]), type, false))));
                    }
        lower::pack_accumulators(*this, bank, registers, memory_of(bank));
    }
}

/// A register of an accumulator that a loop has kept. `unpacked`: those of banks on the edge at hand.
LaneValue GraphEmitter::leaving_accumulator(const LoopAccumulators::Place& place,
                                            std::map<std::uint32_t, std::vector<llvm::Value*>>& unpacked) {
    const LoopAccumulators::Bank& bank = interface_->accumulators->banks()[place.bank];
    auto& registers = unpacked[place.bank];
    if (registers.empty()) registers = lower::unpack_accumulators(*this, bank, memory_of(bank));
    return LaneValue::varying(registers[place.accumulator * bank.phis[0].size() + place.index]);
}

} // namespace ptarmigan::translator
