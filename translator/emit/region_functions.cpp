// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/region_functions.h"

#include "translator/analysis/shapes/shapes.h"
#include "translator/emit/frame_words.h"
#include "translator/emit/graph_emitter.h"
#include "translator/emit/lane_regions.h"
#include "translator/emit/region_form.h"
#include "translator/emit/region_values.h"
#include "translator/kernel_abi.h"
#include "translator/llvm/drop_unchanged_saves.h"
#include "translator/lower/lane_math.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace ptarmigan::translator {

namespace {

/// Of a loop that waits: what it waits for is mostly done by somebody else's turn, not while it looks.
constexpr std::uint32_t looks_per_turn = 2;

class RegionFunctions {
public:
    RegionFunctions(KernelUnit& unit, const FunctionGraph& graph, const RegionPlan& plan, KnownInSteps& known)
        : unit_(unit), graph_(graph), plan_(plan), known_(known), values_(graph, plan.frames, known) {}

    std::vector<llvm::Function*> emit() {
        for (std::size_t region = 0; region < plan_.count(); ++region) declare_region(region);
        for (std::size_t region = 0; region < plan_.count(); ++region)
            plan_.lane_by_lane[region] ? emit_lane_region(region) : emit_region(region);
        return std::move(functions_);
    }

private:
    void declare_region(std::size_t region) {
        auto* pointer = llvm::PointerType::get(unit_.context, 0);
        auto* i32 = llvm::Type::getInt32Ty(unit_.context);
        llvm::SmallVector<llvm::Type*, 6> parameters{pointer, i32, pointer, pointer, pointer};
        if (unit_.runs_in_rows) parameters.push_back(i32);
        auto* type = llvm::FunctionType::get(i32, parameters, false);
        llvm::Function* function =
            unit_.create_function(type, fmt::format("region{}", region), llvm::Function::InternalLinkage);
        // In code that is made quickly it stays a function: inlining it takes a tenth of the time.
        if (unit_.options.optimization == Optimization::full) function->addFnAttr(llvm::Attribute::AlwaysInline);
        for (unsigned argument : {2u, 3u, 4u}) function->addParamAttr(argument, llvm::Attribute::NoAlias);
        function->addParamAttr(2, llvm::Attribute::get(unit_.context, frame_attribute));
        functions_.push_back(function);
    }

    void emit_region(std::size_t region) {
        llvm::Function* function = functions_[region];
        GraphEmitter emitter(unit_, graph_, function, function->getArg(0), function->getArg(1));
        Ir& ir = emitter.ir();
        llvm::Value* frame = function->getArg(2);
        llvm::Value* cta_in = function->getArg(3);
        llvm::Value* cta_out = function->getArg(4);
        auto at = [&](llvm::Value* base, std::uint32_t offset) {
            return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), base, offset);
        };
        auto load_guard_flags = [&] {
            for (auto& [guard, place] : plan_.frames.guards)
                emitter.set_guard_flag(
                    guard, ir.CreateTrunc(ir.CreateLoad(ir.getInt8Ty(), at(frame, place.holds)), ir.getInt1Ty()));
        };
        auto save_guard_flags = [&] {
            for (auto& [guard, place] : plan_.frames.guards)
                ir.CreateStore(ir.CreateZExt(emitter.guard_holds(guard), ir.getInt8Ty()), at(frame, place.holds));
        };
        RegionInterface interface;
        if (unit_.runs_in_rows) interface.ctaid_x = function->getArg(5);
        interface.product_groups = &plan_.products;
        interface.accumulators = &plan_.accumulators;
        if (plan_.accumulators_offset)
            interface.accumulator_memory = [&] {
                return at(shared_frame(ir, function->getArg(0), function->getArg(1)), *plan_.accumulators_offset);
            };
        bool resumed = region > 0;
        interface.entry_mask_full = !unit_.partial_last_step() && !(resumed && plan_.frames.saves_mask);
        if (resumed && plan_.frames.saves_mask)
            interface.entry_mask_place = [&] { return at(frame, plan_.frames.mask_offset); };
        interface.enter = [&] {
            for (auto& [guard, place] : plan_.frames.guards) emitter.place_guard(guard, at(frame, place.correction));
            if (!resumed) return;
            for (ValueId value : plan_.barriers.live_in[region]) values_.load(emitter, value, frame, cta_in);
            load_guard_flags();
        };
        interface.cut = [&](BlockId barrier) {
            const std::size_t next = plan_.region_behind(barrier);
            for (ValueId value : plan_.barriers.live_in[next]) values_.save(emitter, value, barrier, frame, cta_out);
            save_guard_flags();
            if (plan_.frames.saves_mask)
                ir.CreateStore(emitter.to_bits(emitter.block_mask(barrier)), at(frame, plan_.frames.mask_offset))
                    ->setMetadata(mask_word_metadata, llvm::MDNode::get(unit_.context, {}));
            ir.CreateRet(ir.getInt32(std::uint32_t(next)));
        };
        interface.exit = [&] {
            if (plan_.frames.saves_mask) ir.CreateStore(ir.getInt64(0), at(frame, plan_.frames.mask_offset));
            ir.CreateRet(ir.getInt32(0));
        };
        interface.turn_to_resume = [&] { return ir.CreateLoad(ir.getInt32Ty(), at(frame, plan_.frames.turn_offset)); };
        for (const TurnPoint& point : plan_.turns[region]) {
            const std::uint32_t number = std::uint32_t(interface.turns.size()) + 1;
            auto mask_place = [this, at, frame](std::size_t i) {
                return at(frame, plan_.frames.turn_masks_offset + std::uint32_t(i) * 8);
            };
            // What the region begins with is in the frame, and loaded whenever the step comes to the region, unless it
            // has been computed anew since (in another round of a loop around the region).
            const std::vector<ValueId>& first = plan_.barriers.live_in[region];
            std::vector<ValueId> own;
            std::copy_if(point.live.begin(), point.live.end(), std::back_inserter(own), [&](ValueId value) {
                const BlockId block = graph_.values[value].block;
                return (block != no_block && plan_.view(region).contains[block]) ||
                       !std::binary_search(first.begin(), first.end(), value);
            });
            auto stop = [&, number, mask_place, own](const std::vector<llvm::Value*>& masks) {
                for (ValueId value : own) values_.save(emitter, value, point.latch, frame, cta_out);
                save_guard_flags();
                for (std::size_t i = 0; i < masks.size(); ++i) ir.CreateStore(emitter.to_bits(masks[i]), mask_place(i));
                ir.CreateStore(ir.getInt32(number), at(frame, plan_.frames.turn_offset));
                ir.CreateRet(ir.getInt32(point.waits ? stopped_to_wait : stopped));
            };
            auto resume = [&, mask_place, own] {
                for (ValueId value : own) values_.load(emitter, value, frame, cta_in);
                load_guard_flags();
                std::vector<llvm::Value*> masks;
                for (std::size_t i = 0; i < point.edge_masks.size() + point.block_masks.size(); ++i)
                    masks.push_back(emitter.from_bits(ir.CreateLoad(ir.getInt64Ty(), mask_place(i))));
                return masks;
            };
            const std::uint32_t rounds = unit_.options.barriers == BarrierForm::turns ? 1
                                         : point.waits                                ? looks_per_turn
                                                                                      : point.rounds;
            interface.turns.push_back({point, rounds, stop, resume});
        }
        if (plan_.counters)
            emitter.emit_program_counters(plan_.view(region), interface);
        else
            emitter.emit_masks(plan_.linear[region], interface);
    }

    /// The same for one lane, whose thread's number is in the step's place.
    void emit_lane_region(std::size_t region) {
        llvm::Function* function = functions_[region];
        const unsigned width = std::exchange(unit_.width, 1u);
        unit_.lane_by_lane = true;
        FunctionGraph graph = graph_;
        compute_shapes(graph, unit_.shape, 1, unit_.options);
        const LinearPlan plan = plan_region(unit_, graph, plan_.view(region));
        GraphEmitter emitter(unit_, graph, function, function->getArg(0), function->getArg(1));
        Ir& ir = emitter.ir();
        RegionInterface interface;
        interface.entry_mask_full = true;
        interface.enter = [&] {
            const StepLanes lanes(ir, width, function->getArg(1), function->getArg(2), function->getArg(3));
            for (ValueId id : plan_.barriers.live_in[region]) {
                const auto found = plan_.frames.values.find(id);
                const KeptValue kept{graph_.values[id].shape, emitter.type(graph_.values[id].type), known_.number(id),
                                     known_.masks(id), found == plan_.frames.values.end() ? nullptr : &found->second};
                llvm::Value* own = lanes.own(kept);
                if (!own) continue; // constants and undefined values
                if (!kept.number && values_.saved_with_any_nan(id)) own = lower::canonicalize(ir, own);
                emitter.set_live_in(id, LaneValue::uniform(own));
            }
        };
        interface.cut = [&](BlockId barrier) {
            const std::size_t next = plan_.region_behind(barrier);
            for (ValueId value : plan_.barriers.live_in[next]) {
                const auto found = plan_.frames.values.find(value);
                if (found == plan_.frames.values.end() || !found->second.in_cta_frame) continue; // as it was
                const LaneValue known = emitter.value_in(barrier, value);
                llvm::Value* place =
                    ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), function->getArg(4), found->second.offset * 8);
                ir.CreateStore(to_word(ir, known.base), place);
            }
            ir.CreateRet(ir.getInt32(std::uint32_t(next)));
        };
        emitter.emit_masks(plan, interface);
        unit_.width = width;
        unit_.lane_by_lane = false;
    }

    /// A step's frame for what others than its own code write to: never the stack's.
    llvm::Value* shared_frame(Ir& ir, llvm::Value* cta, llvm::Value* step) const {
        llvm::Value* frames = ir.CreateLoad(
            ir.getPtrTy(), ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), cta, offsetof(abi::CtaContext, frames)));
        llvm::Value* offset = ir.CreateMul(ir.CreateZExt(step, ir.getInt64Ty()), ir.getInt64(plan_.step_size));
        return ir.CreateInBoundsGEP(ir.getInt8Ty(), frames, offset);
    }

    KernelUnit& unit_;
    const FunctionGraph& graph_;
    const RegionPlan& plan_;
    KnownInSteps& known_;
    RegionValues values_;
    std::vector<llvm::Function*> functions_;
};

} // namespace

std::vector<llvm::Function*> emit_region_functions(KernelUnit& unit, const FunctionGraph& graph, const RegionPlan& plan,
                                                   KnownInSteps& known) {
    return RegionFunctions(unit, graph, plan, known).emit();
}

} // namespace ptarmigan::translator
