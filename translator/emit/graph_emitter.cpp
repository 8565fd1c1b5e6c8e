// SPDX-License-Identifier: Apache-2.0
// Where the function of a region begins: its blocks, and the lanes that start it.
#include "translator/emit/graph_emitter.h"

#include "frontend/isa/instruction_form.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/llvm/drop_unchanged_saves.h"
#include "translator/lower/floating_point.h"

#include <llvm/IR/Constants.h>

#include <fmt/format.h>

#include <algorithm>

namespace ptarmigan::translator {

namespace {

bool touches_signs(const FunctionGraph& graph) {
    const auto has_sign = [&](ValueId value) { return ptx::bit_size(graph.values[value].type) == 64; };
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) switch (instruction.inst.form) {
            case ptx::FormId::copysign:
            case ptx::FormId::and_bits:
            case ptx::FormId::or_bits:
            case ptx::FormId::xor_bits: {
                const auto results = definitions(graph, instruction);
                if (std::any_of(results.begin(), results.end(), has_sign)) return true;
                break;
            }
            default: break;
            }
    return false;
}

} // namespace

GraphEmitter::GraphEmitter(KernelUnit& unit, const FunctionGraph& graph, llvm::Function* function,
                           llvm::Value* cta_context, llvm::Value* step)
    : WarpEmitter(unit.context, unit.width, unit.options), unit_(unit), graph_(graph), function_(function),
      cta_context_(cta_context), step_(step), ends_round_(find_round_ends()) {
    for (unsigned lane = 0; lane < width_; ++lane) {
        lane_iota_.push_back(lane);
        lane_zeros_.push_back(0);
    }
    if (touches_signs(graph)) function->addFnAttr(lower::touches_signs_attribute);
}

void GraphEmitter::prepare(const RegionView& view, const RegionInterface& interface) {
    interface_ = &interface;
    entry_block_ = llvm::BasicBlock::Create(context(), "entry", function_);
    ir_.SetInsertPoint(entry_block_);
    ir_.SetCurrentDebugLocation(unit_.location(function_, graph_.module->functions[graph_.function].location));
    find_crossing_values(view);
    blocks_.assign(graph_.blocks.size(), nullptr);
    for (BlockId block : view.blocks)
        blocks_[block] = llvm::BasicBlock::Create(context(), fmt::format("bb{}", block), function_);
    llvm::Type* mask_type = lanes_type(ir_.getInt1Ty());
    if (interface.entry_mask_bits)
        entry_mask_ = ir_.CreateBitCast(interface.entry_mask_bits, mask_type);
    else if (interface.entry_mask_place) {
        llvm::LoadInst* word = ir_.CreateLoad(ir_.getInt64Ty(), interface.entry_mask_place());
        word->setMetadata(mask_word_metadata, llvm::MDNode::get(context(), {}));
        entry_mask_ = from_bits(word);
    } else if (interface.entry_mask_full)
        entry_mask_ = llvm::Constant::getAllOnesValue(mask_type);
    else
        entry_mask_ = lanes_with_threads();
}

llvm::Value* GraphEmitter::lanes_with_threads() {
    llvm::Value* threads = ir_.CreateAdd(splat(first_thread()), lane_numbers(ir_.getInt32Ty()));
    return ir_.CreateICmpULT(threads, splat(ir_.getInt32(unit_.thread_count())), "entry.mask");
}

llvm::Value* GraphEmitter::existing_bits() {
    if (!unit_.partial_last_step()) return to_bits(llvm::Constant::getAllOnesValue(lanes_type(ir_.getInt1Ty())));
    return to_bits(lanes_with_threads());
}

} // namespace ptarmigan::translator
