// SPDX-License-Identifier: Apache-2.0
// Region functions have the signature
//     i32 region(CtaContext*, i32 step, ptr step_frame, ptr cta_in, ptr cta_out [, i32 ctaid.x])
// and return the number of the region that follows the barrier they reached, or 0 when the step has exited. Barriers
// are CTA-uniform, so all live steps return the same number. Or they return `stopped`: the step has had its turn in a
// long loop (analysis/plan_turns.h) and is called again when the others have had theirs. Values that are the same in
// the whole CTA travel in cta_in / cta_out (double-buffered: a step must not see what an earlier step of the same
// interval wrote); after inlining these are scalars in registers. Where CTAs run in rows (analysis/memory/cta_order.h)
// the step of each of them is run before the next step of the first; they have one region and keep nothing.
#include "translator/emit/region_driver.h"

#include "translator/analysis/arithmetic/canonical_nans.h"
#include "translator/analysis/graph/branch_levels.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/loops/plan_turns.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/plans/region_graph.h"
#include "translator/analysis/shapes/shapes.h"
#include "translator/emit/frame_words.h"
#include "translator/emit/graph_emitter.h"
#include "translator/emit/lane_regions.h"
#include "translator/emit/region_frames.h"
#include "translator/emit/step_numbers.h"
#include "translator/jit/image.h"
#include "translator/kernel_abi.h"
#include "translator/llvm/drop_unchanged_saves.h"
#include "translator/llvm/hoist_from_steps.h"
#include "translator/llvm/sink_nan_canonicalization.h"
#include "translator/lower/lane_math.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/MDBuilder.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <optional>

namespace ptarmigan::translator {

namespace {
/// A single step keeps its frame on the stack up to this size, where it becomes registers.
constexpr std::uint32_t stack_frame_limit = 16384;
/// What a region function returns when its step has stopped in a loop.
constexpr std::uint32_t stopped = 0xffffffffu;
/// Likewise in one that waits for memory.
constexpr std::uint32_t stopped_to_wait = 0xfffffffeu;
/// Of a loop that waits: what it waits for is mostly done by somebody else's turn, not while it looks.
constexpr std::uint32_t looks_per_turn = 2;
/// Barriers that a CTA passes from one turn of other CTAs to the next, in loops that wait and elsewhere: a loop may
/// wait by looking once between two barriers, and not be known to. Powers of two.
constexpr std::uint32_t barriers_per_look = 8, barriers_per_turn = 64;

bool is_mask_vector(const LaneValue& value) {
    return value.base->getType()->isVectorTy() && value.base->getType()->getScalarType()->isIntegerTy(1);
}
} // namespace

LinearPlan plan_region(const KernelUnit& unit, const FunctionGraph& graph, const RegionView& view) {
    if (unit.width > 1) return plan_linearization(graph, view);
    LinearPlan plan;
    plan.region = view;
    if (unit.gives_turns) plan.loops = region_graph(graph, view).forest.loops;
    plan.waiting_at_latch.resize(plan.loops.size());
    plan.order = view.blocks;
    plan.blocks.resize(graph.blocks.size());
    for (BlockId id : view.blocks) {
        plan.blocks[id].jump_to = graph.blocks[id].successors;
        plan.blocks[id].blend.assign(graph.blocks[id].phis.size(), false);
    }
    return plan;
}

LoopAccumulators loop_accumulators(const KernelUnit& unit, const FunctionGraph& graph, const ProductGroups& groups,
                                   llvm::ArrayRef<LinearPlan> plans) {
    if (unit.width != abi::warp_size || unit.divergence == DivergenceForm::program_counters) return {};
    return LoopAccumulators(graph, groups, [&](BlockId header) {
        return std::any_of(plans.begin(), plans.end(), [&](const LinearPlan& plan) {
            if (!plan.reducible) return true;
            const std::vector<bool>& blends = plan.blocks[header].blend;
            return std::find(blends.begin(), blends.end(), true) != blends.end();
        });
    });
}

namespace {

class RegionForm {
public:
    RegionForm(KernelUnit& unit, const FunctionGraph& graph, const BarrierPlan& barriers)
        : unit_(unit), graph_(graph), barriers_(barriers), canonical_nans_(canonical_nans(graph)), products_(graph),
          numbers_(graph, unit.shape, unit.width) {}

    std::uint32_t emit() {
        counters_ = unit_.width > 1 && unit_.divergence == DivergenceForm::program_counters;
        if (!counters_)
            for (const RegionView& view : barriers_.regions) plans_.push_back(plan_region(unit_, graph_, view));
        turns_.resize(barriers_.regions.size());
        for (std::size_t region = 0; region < plans_.size(); ++region)
            if (unit_.step_count() > 1) turns_[region] = plan_turns(graph_, plans_[region]);
        keep_accumulators();
        choose_lanes();
        std::vector<TurnPoint> all_turns;
        for (const auto& turns : turns_) all_turns.insert(all_turns.end(), turns.begin(), turns.end());
        frames_ = layout_frames(graph_, barriers_, all_turns, unit_.width, steps_may_exit_early(),
                                [&](ValueId value) { return known_number(value) || known_masks(value); });
        if (barriers_.regions.size() > 1 || !all_turns.empty()) {
            accumulators_offset_ = frames_.step_size;
            step_size_ = frames_.step_size + accumulators_.bytes();
        } else {
            step_size_ = frames_.step_size;
        }
        for (std::size_t region = 0; region < barriers_.regions.size(); ++region) declare_region(region);
        for (std::size_t region = 0; region < barriers_.regions.size(); ++region)
            lane_regions_[region] ? emit_lane_region(region) : emit_region(region);
        emit_driver();
        return step_size_;
    }

private:
    const RegionView& view(std::size_t region) const { return barriers_.regions[region]; }
    bool is_cut(const RegionView& v, BlockId block) const { return block < v.cut_after.size() && v.cut_after[block]; }

    std::size_t region_behind(BlockId barrier) const {
        std::size_t next = 1;
        while (barriers_.resume_of.at(next) != barrier) ++next;
        return next;
    }

    /// Blocks of a region from which `goal` can be reached inside it.
    std::vector<bool> reaching(const RegionView& v, const std::function<bool(BlockId)>& goal) const {
        std::vector<bool> reaches(graph_.blocks.size(), false);
        for (bool changed = true; changed;) {
            changed = false;
            for (BlockId block : v.blocks) {
                if (reaches[block]) continue;
                bool now = goal(block);
                if (!is_cut(v, block))
                    for (BlockId successor : graph_.blocks[block].successors) now |= reaches[successor];
                if (now) reaches[block] = changed = true;
            }
        }
        return reaches;
    }

    /// True if at some barrier a step or a lane may have exited while others wait.
    bool steps_may_exit_early() const {
        if (barriers_.regions.size() < 2) return false;
        for (const RegionView& v : barriers_.regions) {
            std::vector<bool> to_exit = reaching(v, [&](BlockId b) { return b == graph_.exit_block; });
            std::vector<bool> to_cut = reaching(v, [&](BlockId b) { return is_cut(v, b); });
            for (BlockId block : v.blocks)
                if (to_exit[block] && to_cut[block] && is_cta_divergent_branch(graph_, block)) return true;
        }
        return false;
    }

    /// What is kept needs no places of its own at barriers and turns.
    void keep_accumulators() {
        accumulators_ = loop_accumulators(unit_, graph_, products_, plans_);
        const auto is_kept = [&](ValueId value) { return accumulators_.place(value) != nullptr; };
        for (auto& live : barriers_.live_in) std::erase_if(live, is_kept);
        for (auto& turns : turns_)
            for (TurnPoint& point : turns) std::erase_if(point.live, is_kept);
    }

    void choose_lanes() {
        lane_regions_.assign(barriers_.regions.size(), false);
        if (counters_ || unit_.width == 1 || unit_.options.optimization == Optimization::least ||
            unit_.options.random_schedule || unit_.options.checked_memory || unit_.partial_last_step() ||
            unit_.runs_in_rows || unit_.gives_turns || accumulators_.bytes() != 0 || steps_may_exit_early())
            return;
        lane_regions_ = choose_lane_regions(graph_, unit_.shape, barriers_);
        for (std::size_t region = 0; region < lane_regions_.size(); ++region)
            if (!turns_[region].empty()) lane_regions_[region] = false;
    }

    /// A step's frame for what others than its own code write to: never the stack's.
    llvm::Value* shared_frame(Ir& ir, llvm::Value* cta, llvm::Value* step) const {
        llvm::Value* frames = ir.CreateLoad(
            ir.getPtrTy(), ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), cta, offsetof(abi::CtaContext, frames)));
        llvm::Value* offset = ir.CreateMul(ir.CreateZExt(step, ir.getInt64Ty()), ir.getInt64(step_size_));
        return ir.CreateInBoundsGEP(ir.getInt8Ty(), frames, offset);
    }

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
            for (auto& [guard, place] : frames_.guards)
                emitter.set_guard_flag(
                    guard, ir.CreateTrunc(ir.CreateLoad(ir.getInt8Ty(), at(frame, place.holds)), ir.getInt1Ty()));
        };
        auto save_guard_flags = [&] {
            for (auto& [guard, place] : frames_.guards)
                ir.CreateStore(ir.CreateZExt(emitter.guard_holds(guard), ir.getInt8Ty()), at(frame, place.holds));
        };
        RegionInterface interface;
        if (unit_.runs_in_rows) interface.ctaid_x = function->getArg(5);
        interface.product_groups = &products_;
        interface.accumulators = &accumulators_;
        if (accumulators_offset_)
            interface.accumulator_memory = [&] {
                return at(shared_frame(ir, function->getArg(0), function->getArg(1)), *accumulators_offset_);
            };
        bool resumed = region > 0;
        interface.entry_mask_full = !unit_.partial_last_step() && !(resumed && frames_.saves_mask);
        if (resumed && frames_.saves_mask) interface.entry_mask_place = [&] { return at(frame, frames_.mask_offset); };
        interface.enter = [&] {
            for (auto& [guard, place] : frames_.guards) emitter.place_guard(guard, at(frame, place.correction));
            if (!resumed) return;
            for (ValueId value : barriers_.live_in[region]) load_live_in(emitter, value, frame, cta_in);
            load_guard_flags();
        };
        interface.cut = [&](BlockId barrier) {
            const std::size_t next = region_behind(barrier);
            for (ValueId value : barriers_.live_in[next]) save_live_out(emitter, value, barrier, frame, cta_out);
            save_guard_flags();
            if (frames_.saves_mask)
                ir.CreateStore(emitter.to_bits(emitter.block_mask(barrier)), at(frame, frames_.mask_offset))
                    ->setMetadata(mask_word_metadata, llvm::MDNode::get(unit_.context, {}));
            ir.CreateRet(ir.getInt32(std::uint32_t(next)));
        };
        interface.exit = [&] {
            if (frames_.saves_mask) ir.CreateStore(ir.getInt64(0), at(frame, frames_.mask_offset));
            ir.CreateRet(ir.getInt32(0));
        };
        interface.turn_to_resume = [&] { return ir.CreateLoad(ir.getInt32Ty(), at(frame, frames_.turn_offset)); };
        for (const TurnPoint& point : turns_[region]) {
            const std::uint32_t number = std::uint32_t(interface.turns.size()) + 1;
            auto mask_place = [this, at, frame](std::size_t i) {
                return at(frame, frames_.turn_masks_offset + std::uint32_t(i) * 8);
            };
            // What the region begins with is in the frame, and loaded whenever the step comes to the region, unless it
            // has been computed anew since (in another round of a loop around the region).
            const std::vector<ValueId>& first = barriers_.live_in[region];
            std::vector<ValueId> own;
            std::copy_if(point.live.begin(), point.live.end(), std::back_inserter(own), [&](ValueId value) {
                const BlockId block = graph_.values[value].block;
                return (block != no_block && view(region).contains[block]) ||
                       !std::binary_search(first.begin(), first.end(), value);
            });
            auto stop = [&, number, mask_place, own](const std::vector<llvm::Value*>& masks) {
                for (ValueId value : own) save_live_out(emitter, value, point.latch, frame, cta_out);
                save_guard_flags();
                for (std::size_t i = 0; i < masks.size(); ++i) ir.CreateStore(emitter.to_bits(masks[i]), mask_place(i));
                ir.CreateStore(ir.getInt32(number), at(frame, frames_.turn_offset));
                ir.CreateRet(ir.getInt32(point.waits ? stopped_to_wait : stopped));
            };
            auto resume = [&, mask_place, own] {
                for (ValueId value : own) load_live_in(emitter, value, frame, cta_in);
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
        if (counters_)
            emitter.emit_program_counters(view(region), interface);
        else
            emitter.emit_masks(plans_[region], interface);
    }

    /// The same for one lane, whose thread's number is in the step's place.
    void emit_lane_region(std::size_t region) {
        llvm::Function* function = functions_[region];
        const unsigned width = std::exchange(unit_.width, 1u);
        unit_.lane_by_lane = true;
        FunctionGraph graph = graph_;
        compute_shapes(graph, unit_.shape, 1, unit_.options);
        const LinearPlan plan = plan_region(unit_, graph, view(region));
        GraphEmitter emitter(unit_, graph, function, function->getArg(0), function->getArg(1));
        Ir& ir = emitter.ir();
        RegionInterface interface;
        interface.entry_mask_full = true;
        interface.enter = [&] {
            const StepLanes lanes(ir, width, function->getArg(1), function->getArg(2), function->getArg(3));
            for (ValueId id : barriers_.live_in[region]) {
                const auto found = frames_.values.find(id);
                const KeptValue kept{graph_.values[id].shape, emitter.type(graph_.values[id].type), known_number(id),
                                     known_masks(id), found == frames_.values.end() ? nullptr : &found->second};
                llvm::Value* own = lanes.own(kept);
                if (!own) continue; // constants and undefined values
                if (!kept.number && saved_with_any_nan(id)) own = lower::canonicalize(ir, own);
                emitter.set_live_in(id, LaneValue::uniform(own));
            }
        };
        interface.cut = [&](BlockId barrier) {
            const std::size_t next = region_behind(barrier);
            for (ValueId value : barriers_.live_in[next]) {
                const auto found = frames_.values.find(value);
                if (found == frames_.values.end() || !found->second.in_cta_frame) continue; // as it was
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

    /// The bits of NaNs are settled when the value is loaded again: sums that only grow are then never looked at.
    bool saved_with_any_nan(ValueId id) const {
        const SsaValue& info = graph_.values[id];
        return info.type == ptx::ScalarType::f32 && info.shape.is_varying() && canonical_nans_[id];
    }

    const std::optional<StepNumber>& known_number(ValueId id) {
        const auto [place, is_new] = known_numbers_.try_emplace(id);
        if (is_new && unit_.width > 1) place->second = numbers_.of(id);
        return place->second;
    }

    /// A constant with the masks of all steps, by step, of a predicate that is known; null if it is not.
    llvm::GlobalVariable* known_masks(ValueId id) {
        const auto [place, is_new] = known_masks_.try_emplace(id, nullptr);
        if (!is_new || unit_.width == 1) return place->second;
        const std::optional<std::vector<std::uint64_t>> masks = numbers_.masks_of(id);
        if (!masks) return nullptr;
        llvm::SmallVector<std::uint32_t, 32> words(masks->begin(), masks->end());
        llvm::Constant* table = llvm::ConstantDataArray::get(unit_.context, words);
        place->second = new llvm::GlobalVariable(*unit_.module, table->getType(), /*isConstant=*/true,
                                                 llvm::GlobalValue::PrivateLinkage, table, "masks");
        place->second->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
        return place->second;
    }

    LaneValue looked_up(GraphEmitter& emitter, ValueId id, llvm::GlobalVariable* masks) const {
        Ir& ir = emitter.ir();
        llvm::Value* at = ir.CreateInBoundsGEP(masks->getValueType(), masks, {ir.getInt32(0), emitter.step_index()});
        llvm::LoadInst* word = ir.CreateLoad(ir.getInt32Ty(), at);
        word->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(unit_.context, {}));
        LaneValue value;
        value.shape = graph_.values[id].shape;
        value.base = value.shape.is_varying() ? emitter.from_bits(ir.CreateZExt(word, ir.getInt64Ty()))
                                              : ir.CreateTrunc(word, ir.getInt1Ty());
        return value;
    }

    void load_live_in(GraphEmitter& emitter, ValueId id, llvm::Value* frame, llvm::Value* cta_in) {
        const SsaValue& info = graph_.values[id];
        if (const auto& number = known_number(id)) {
            LaneValue value;
            value.shape = info.shape;
            value.base = in_step(emitter.ir(), emitter.type(info.type), emitter.step_index(), *number);
            return emitter.set_live_in(id, value);
        }
        if (llvm::GlobalVariable* masks = known_masks(id))
            return emitter.set_live_in(id, looked_up(emitter, id, masks));
        auto found = frames_.values.find(id);
        if (found == frames_.values.end()) return; // constants and undefined values
        Ir& ir = emitter.ir();
        const RegionFrames::Place& place = found->second;
        llvm::Type* scalar = emitter.type(info.type);
        auto at = [&](llvm::Value* base, std::uint32_t offset) {
            return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), base, offset);
        };
        auto load = [&](llvm::Value* address) -> llvm::Value* {
            if (!scalar->isIntegerTy(1)) return ir.CreateLoad(scalar, address);
            return ir.CreateTrunc(ir.CreateLoad(ir.getInt8Ty(), address), ir.getInt1Ty());
        };
        LaneValue value;
        value.shape = info.shape;
        if (place.in_cta_frame)
            value.base = from_word(ir, ir.CreateLoad(ir.getInt64Ty(), at(cta_in, place.offset * 8)), scalar);
        else if (info.shape.is_uniform() || info.shape.is_affine()) {
            value.base = load(at(frame, place.offset));
            if (info.shape.is_affine() && info.shape.steps) value.stride = load(at(frame, place.stride_offset));
        } else if (scalar->isIntegerTy(1)) {
            llvm::LoadInst* word = ir.CreateLoad(ir.getInt64Ty(), at(frame, place.offset));
            word->setMetadata(mask_word_metadata, llvm::MDNode::get(unit_.context, {}));
            value.base = emitter.from_bits(word);
        } else {
            llvm::Type* lanes = emitter.lanes_type(scalar);
            value.base = ir.CreateAlignedLoad(lanes, at(frame, place.offset), lanes_alignment(lanes));
            if (saved_with_any_nan(id)) value.base = lower::canonicalize(ir, value.base);
        }
        emitter.set_live_in(id, value);
    }

    void save_live_out(GraphEmitter& emitter, ValueId id, BlockId barrier, llvm::Value* frame, llvm::Value* cta_out) {
        auto found = frames_.values.find(id);
        if (found == frames_.values.end()) return;
        Ir& ir = emitter.ir();
        const RegionFrames::Place& place = found->second;
        LaneValue value = emitter.value_in(barrier, id);
        const Shape& planned = graph_.values[id].shape;
        if (value.shape.is_varying() && !planned.is_varying())
            throw std::logic_error("a value became varying on its way to a barrier");
        auto at = [&](llvm::Value* base, std::uint32_t offset) {
            return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), base, offset);
        };
        auto store = [&](llvm::Value* scalar, llvm::Value* address) {
            if (scalar->getType()->isIntegerTy(1)) scalar = ir.CreateZExt(scalar, ir.getInt8Ty());
            ir.CreateStore(scalar, address);
        };
        if (place.in_cta_frame)
            ir.CreateStore(to_word(ir, value.base), at(cta_out, place.offset * 8));
        else if (planned.is_uniform() || planned.is_affine()) {
            store(value.base, at(frame, place.offset));
            if (planned.is_affine() && planned.steps) store(value.stride, at(frame, place.stride_offset));
        } else if (is_mask_vector(value)) {
            ir.CreateStore(emitter.to_bits(value.base), at(frame, place.offset))
                ->setMetadata(mask_word_metadata, llvm::MDNode::get(unit_.context, {}));
        } else {
            llvm::Instruction* save =
                ir.CreateAlignedStore(value.base, at(frame, place.offset), lanes_alignment(value.base->getType()));
            if (saved_with_any_nan(id)) save->setMetadata(any_nan_metadata, llvm::MDNode::get(unit_.context, {}));
        }
    }

    void emit_driver() {
        llvm::LLVMContext& context = unit_.context;
        auto* pointer = llvm::PointerType::get(context, 0);
        auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer}, false);
        llvm::Function* function = unit_.create_function(type, entry_symbol, llvm::Function::ExternalLinkage);
        llvm::Value* cta = function->getArg(0);
        Ir ir(llvm::BasicBlock::Create(context, "entry", function));
        ir.SetCurrentDebugLocation(unit_.location(function, graph_.module->functions[graph_.function].location));
        llvm::Type* slots = llvm::ArrayType::get(ir.getInt64Ty(), std::max(1u, frames_.cta_slots));
        llvm::AllocaInst* cta_in = ir.CreateAlloca(slots, nullptr, "cta.in");
        llvm::AllocaInst* cta_out = ir.CreateAlloca(slots, nullptr, "cta.out");
        std::uint32_t steps = unit_.step_count();
        llvm::Value* frames;
        if (steps == 1 && frames_.step_size <= stack_frame_limit) {
            auto* local = ir.CreateAlloca(llvm::ArrayType::get(ir.getInt8Ty(), std::max(64u, frames_.step_size)),
                                          nullptr, "frame");
            local->setAlignment(llvm::Align(64));
            frames = local;
        } else {
            frames = ir.CreateLoad(
                pointer, ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), cta, offsetof(abi::CtaContext, frames)),
                "frames");
        }
        llvm::AllocaInst* next_region = ir.CreateAlloca(ir.getInt32Ty(), nullptr, "next.region");
        llvm::AllocaInst* passed = ir.CreateAlloca(ir.getInt32Ty(), nullptr, "barriers.passed");
        ir.CreateStore(ir.getInt32(0), passed);
        llvm::BasicBlock* done = llvm::BasicBlock::Create(context, "done", function);
        llvm::BasicBlock* choose = llvm::BasicBlock::Create(context, "choose", function);
        std::vector<llvm::BasicBlock*> starts;
        for (std::size_t region = 0; region < functions_.size(); ++region)
            starts.push_back(llvm::BasicBlock::Create(context, fmt::format("interval{}", region), function));
        ir.CreateBr(starts[0]);
        for (std::size_t region = 0; region < functions_.size(); ++region) {
            ir.SetInsertPoint(starts[region]);
            if (region > 0 && unit_.gives_turns) emit_barrier_passed(ir, function, region, cta, passed);
            ir.CreateStore(ir.getInt32(0), next_region);
            emit_step_loop(ir, function, region, cta, frames, cta_in, cta_out, next_region);
            if (ends_the_kernel(region)) {
                ir.CreateBr(done);
                continue;
            }
            for (std::uint32_t slot = 0; slot < frames_.cta_slots; ++slot) {
                llvm::Value* from = ir.CreateConstInBoundsGEP1_64(ir.getInt64Ty(), cta_out, slot);
                ir.CreateStore(ir.CreateLoad(ir.getInt64Ty(), from),
                               ir.CreateConstInBoundsGEP1_64(ir.getInt64Ty(), cta_in, slot));
            }
            const std::optional<std::size_t> following = only_successor(region);
            ir.CreateBr(following ? starts[*following] : choose);
        }
        ir.SetInsertPoint(choose);
        llvm::SwitchInst* dispatch =
            ir.CreateSwitch(ir.CreateLoad(ir.getInt32Ty(), next_region), done, unsigned(starts.size()));
        for (std::size_t region = 1; region < starts.size(); ++region)
            dispatch->addCase(ir.getInt32(std::uint32_t(region)), starts[region]);
        ir.SetInsertPoint(done);
        ir.CreateRetVoid();
    }

    /// No barrier lies ahead.
    bool ends_the_kernel(std::size_t region) const {
        const RegionView& v = view(region);
        return std::none_of(v.blocks.begin(), v.blocks.end(), [&](BlockId block) { return is_cut(v, block); });
    }

    /// The region behind the only barrier that steps can come to from `region`, if they can't exit instead. Then nobody
    /// has to ask which one it was. Not where barriers lie in loops: what is the same in the CTA is then kept over all
    /// of them, and spilled (smith_waterman of bench/algorithms is 10 % slower).
    std::optional<std::size_t> only_successor(std::size_t region) const {
        if (view(region).contains[graph_.exit_block]) return std::nullopt;
        std::optional<std::size_t> result;
        for (std::size_t next = 1; next < functions_.size(); ++next) {
            if (graph_.forest.loop_of[barriers_.resume_of[next]] != no_loop) return std::nullopt;
            if (!is_cut(view(region), barriers_.resume_of[next])) continue;
            if (result) return std::nullopt;
            result = next;
        }
        return result;
    }

    /// Of the barrier in front of a region, in the PTX text.
    std::uint32_t barrier_line(std::size_t region) const {
        const auto& instructions = graph_.blocks[barriers_.resume_of[region]].instructions;
        const auto barrier = std::find_if(instructions.rbegin(), instructions.rend(),
                                          [](const GraphInstruction& each) { return is_cta_barrier(each.inst); });
        return barrier == instructions.rend() ? 0 : barrier->inst.location.line;
    }

    /// The line of the barrier at which steps of `region` have ended, as `next_region` says; 0 if none has.
    llvm::Value* barrier_line_behind(Ir& ir, std::size_t region, llvm::Value* next_region) const {
        llvm::Value* next = ir.CreateLoad(ir.getInt32Ty(), next_region);
        llvm::Value* line = ir.getInt64(0);
        for (std::size_t other = 1; other < functions_.size(); ++other)
            if (is_cut(view(region), barriers_.resume_of[other]))
                line = ir.CreateSelect(ir.CreateICmpEQ(next, ir.getInt32(std::uint32_t(other))),
                                       ir.getInt64(barrier_line(other)), line);
        return line;
    }

    /// Other CTAs have their turn. `line`: as yield() takes it.
    static void call_yield(Ir& ir, llvm::Value* cta, llvm::Value* line) {
        const auto at = [&](llvm::Value* base, std::uint64_t offset) {
            return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), base, offset);
        };
        llvm::Value* services = ir.CreateLoad(ir.getPtrTy(), at(cta, offsetof(abi::CtaContext, services)));
        llvm::Value* yield = ir.CreateLoad(ir.getPtrTy(), at(services, offsetof(abi::Services, yield)));
        auto* type = llvm::FunctionType::get(ir.getVoidTy(),
                                             {ir.getPtrTy(), ir.getInt32Ty(), ir.getInt64Ty(), ir.getInt64Ty()}, false);
        ir.CreateCall(type, yield, {cta, ir.getInt32(abi::whole_cta), line, ir.getInt64(0)});
    }

    /// In front of a region: what GraphEmitter::mark_work() does at barriers of the fiber form, and a turn for others
    /// behind every so many.
    void emit_barrier_passed(Ir& ir, llvm::Function* function, std::size_t region, llvm::Value* cta,
                             llvm::AllocaInst* passed) {
        const std::uint32_t loop = graph_.forest.loop_of[barriers_.resume_of[region]];
        const bool waits = loop != no_loop && graph_.forest.loops[loop].waits_in_turns;
        if (!waits)
            ir.CreateStore(ir.getInt32(~0u),
                           ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), cta, offsetof(abi::CtaContext, worked)));
        llvm::Value* count = ir.CreateLoad(ir.getInt32Ty(), passed);
        ir.CreateStore(ir.CreateAdd(count, ir.getInt32(1)), passed);
        const std::uint32_t period = waits ? barriers_per_look : barriers_per_turn;
        llvm::BasicBlock* turn = llvm::BasicBlock::Create(ir.getContext(), "turn", function);
        llvm::BasicBlock* on = llvm::BasicBlock::Create(ir.getContext(), "on", function);
        llvm::Value* due = ir.CreateICmpEQ(ir.CreateAnd(count, ir.getInt32(period - 1)), ir.getInt32(period - 1));
        ir.CreateCondBr(due, turn, on, llvm::MDBuilder(ir.getContext()).createUnlikelyBranchWeights());
        ir.SetInsertPoint(turn);
        call_yield(ir, cta, ir.getInt64(barrier_line(region)));
        ir.CreateBr(on);
        ir.SetInsertPoint(on);
    }

    /// Where all steps that have stopped wait. The block where it ends.
    llvm::BasicBlock* emit_turn_of_others(Ir& ir, llvm::Function* function, std::size_t region, llvm::Value* cta,
                                          llvm::AllocaInst* walkers, llvm::Value* next_region) const {
        llvm::BasicBlock* turn = llvm::BasicBlock::Create(ir.getContext(), "turn", function);
        llvm::BasicBlock* on = llvm::BasicBlock::Create(ir.getContext(), "on", function);
        llvm::Value* count = ir.CreateLoad(ir.getInt32Ty(), walkers);
        ir.CreateStore(ir.getInt32(0), walkers);
        ir.CreateCondBr(ir.CreateICmpEQ(count, ir.getInt32(0)), turn, on);
        ir.SetInsertPoint(turn);
        call_yield(ir, cta, barrier_line_behind(ir, region, next_region));
        ir.CreateBr(on);
        ir.SetInsertPoint(on);
        return on;
    }

    /// Not a word that a kernel names: accesses of its spaces (lower::tag_space) are elsewhere.
    static void mark_as_own(llvm::Instruction* access) {
        llvm::MDBuilder builder(access->getContext());
        llvm::MDNode* type = builder.createTBAAScalarTypeNode("context", builder.createTBAARoot("ptarmigan"));
        access->setMetadata(llvm::LLVMContext::MD_tbaa, builder.createTBAAStructTagNode(type, type, 0));
    }

    /// The step of all CTAs that run together. What a fault is reported with is in the context.
    llvm::Value* emit_row(Ir& ir, llvm::Function* function, llvm::ArrayRef<llvm::Value*> arguments) {
        llvm::LLVMContext& context = unit_.context;
        llvm::Value* cta = arguments[0];
        auto field = [&](std::uint64_t offset) { return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), cta, offset); };
        const auto ctaid = offsetof(abi::CtaContext, ctaid), linear = offsetof(abi::CtaContext, linear_ctaid);
        if (!row_.first) {
            const Ir::InsertPointGuard guard(ir);
            llvm::BasicBlock& entry = function->getEntryBlock();
            ir.SetInsertPoint(entry.getTerminator());
            auto load = [&](llvm::Type* type, std::uint64_t offset, const char* name) {
                llvm::LoadInst* value = ir.CreateLoad(type, field(offset), name);
                mark_as_own(value);
                return value;
            };
            row_.first = load(ir.getInt32Ty(), ctaid, "row.ctaid");
            row_.linear = load(ir.getInt64Ty(), linear, "row.linear");
            row_.count = load(ir.getInt32Ty(), offsetof(abi::CtaContext, ctas_in_row), "row.ctas");
        }
        llvm::BasicBlock* before = ir.GetInsertBlock();
        llvm::BasicBlock* loop = llvm::BasicBlock::Create(context, "row", function);
        llvm::BasicBlock* after = llvm::BasicBlock::Create(context, "row.done", function);
        ir.CreateBr(loop);
        ir.SetInsertPoint(loop);
        llvm::PHINode* number = ir.CreatePHI(ir.getInt32Ty(), 2, "row.cta");
        number->addIncoming(ir.getInt32(0), before);
        llvm::Value* x = ir.CreateAdd(row_.first, number);
        mark_as_own(ir.CreateStore(x, field(ctaid)));
        mark_as_own(ir.CreateStore(ir.CreateAdd(row_.linear, ir.CreateZExt(number, ir.getInt64Ty())), field(linear)));
        llvm::SmallVector<llvm::Value*, 6> all(arguments.begin(), arguments.end());
        all.push_back(x);
        llvm::Value* next = ir.CreateCall(functions_[0], all);
        llvm::Value* following = ir.CreateAdd(number, ir.getInt32(1), "", true, true);
        number->addIncoming(following, ir.GetInsertBlock());
        ir.CreateCondBr(ir.CreateICmpULT(following, row_.count), loop, after)
            ->setMetadata(steps_metadata, llvm::MDNode::get(context, {}));
        ir.SetInsertPoint(after);
        return next;
    }

    /// do for (step = 0; step < steps; ++step), or the other way round, next = max(next, region(step)), exited steps
    /// left out; while some have stopped in a loop, and then only those. Where all that have stopped wait, other CTAs
    /// have their turn in between.
    void emit_step_loop(Ir& ir, llvm::Function* function, std::size_t region, llvm::Value* cta, llvm::Value* frames,
                        llvm::Value* cta_in, llvm::Value* cta_out, llvm::Value* next_region) {
        llvm::LLVMContext& context = unit_.context;
        std::uint32_t steps = unit_.step_count();
        const bool takes_turns = !turns_[region].empty();
        const bool waits = std::any_of(turns_[region].begin(), turns_[region].end(), [](auto& t) { return t.waits; });
        auto at = [&](llvm::Value* base, std::uint64_t offset) {
            return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), base, offset);
        };
        llvm::BasicBlock* before = ir.GetInsertBlock();
        llvm::BasicBlock* loop = llvm::BasicBlock::Create(context, "steps", function);
        llvm::BasicBlock* run = llvm::BasicBlock::Create(context, "step", function);
        llvm::BasicBlock* latch = llvm::BasicBlock::Create(context, "step.next", function);
        llvm::BasicBlock* after = llvm::BasicBlock::Create(context, "steps.done", function);
        llvm::BasicBlock* again = takes_turns ? llvm::BasicBlock::Create(context, "steps.again", function) : nullptr;
        llvm::AllocaInst* walkers = nullptr; // steps that have stopped, but not to wait
        if (waits) {
            walkers = Ir(&function->getEntryBlock(), function->getEntryBlock().begin())
                          .CreateAlloca(ir.getInt32Ty(), nullptr, "walkers");
            ir.CreateStore(ir.getInt32(0), walkers);
        }
        ir.CreateBr(loop);
        ir.SetInsertPoint(loop);
        llvm::PHINode* round = ir.CreatePHI(ir.getInt32Ty(), 2, "round");
        round->addIncoming(ir.getInt32(0), before);
        llvm::Value* step = round;
        if (unit_.falling_steps.contains(barriers_.resume_of[region]))
            step = ir.CreateSub(ir.getInt32(steps - 1), round, "step", true, true);
        llvm::PHINode *is_first = nullptr, *stopped_before = nullptr;
        if (takes_turns) {
            is_first = ir.CreatePHI(ir.getInt1Ty(), 3, "first.turn");
            is_first->addIncoming(ir.getTrue(), before);
            stopped_before = ir.CreatePHI(ir.getInt1Ty(), 3, "some.stopped");
            stopped_before->addIncoming(ir.getFalse(), before);
        }
        llvm::Value* offset = ir.CreateMul(ir.CreateZExt(step, ir.getInt64Ty()), ir.getInt64(step_size_));
        llvm::Value* frame = ir.CreateInBoundsGEP(ir.getInt8Ty(), frames, offset, "frame");
        llvm::Value* runs = nullptr;
        if (region > 0 && frames_.saves_mask)
            runs = ir.CreateICmpNE(ir.CreateLoad(ir.getInt64Ty(), at(frame, frames_.mask_offset)), ir.getInt64(0));
        if (takes_turns) {
            llvm::Value* place = at(frame, frames_.turn_offset);
            llvm::Value* turn = ir.CreateSelect(is_first, ir.getInt32(0), ir.CreateLoad(ir.getInt32Ty(), place));
            ir.CreateStore(turn, place); // in memory that nobody has written to, at first
            llvm::Value* has_turn = ir.CreateOr(is_first, ir.CreateICmpNE(turn, ir.getInt32(0)));
            runs = runs ? ir.CreateAnd(runs, has_turn) : has_turn;
        }
        if (runs)
            ir.CreateCondBr(runs, run, latch);
        else
            ir.CreateBr(run);
        ir.SetInsertPoint(run);
        mark_as_own(ir.CreateStore(step, at(cta, offsetof(abi::CtaContext, step))));
        llvm::Value* next = unit_.runs_in_rows ? emit_row(ir, function, {cta, step, frame, cta_in, cta_out})
                            : lane_regions_[region]
                                ? run_lanes(ir, unit_.width, functions_[region], {cta, step, frame, cta_in, cta_out})
                                : ir.CreateCall(functions_[region], {cta, step, frame, cta_in, cta_out});
        llvm::Value* has_stopped = nullptr;
        if (takes_turns) {
            has_stopped = waits ? ir.CreateICmpUGE(next, ir.getInt32(stopped_to_wait))
                                : ir.CreateICmpEQ(next, ir.getInt32(stopped));
            if (waits)
                ir.CreateStore(
                    ir.CreateAdd(ir.CreateLoad(ir.getInt32Ty(), walkers),
                                 ir.CreateZExt(ir.CreateICmpEQ(next, ir.getInt32(stopped)), ir.getInt32Ty())),
                    walkers);
            llvm::Value* place = at(frame, frames_.turn_offset);
            ir.CreateStore(ir.CreateSelect(has_stopped, ir.CreateLoad(ir.getInt32Ty(), place), ir.getInt32(0)), place);
            next = ir.CreateSelect(has_stopped, ir.getInt32(0), next);
        }
        llvm::Value* highest =
            ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, next, ir.CreateLoad(ir.getInt32Ty(), next_region));
        ir.CreateStore(highest, next_region);
        llvm::Value* some_stopped = takes_turns ? ir.CreateOr(stopped_before, has_stopped) : nullptr;
        llvm::BasicBlock* ran = ir.GetInsertBlock();
        ir.CreateBr(latch);
        ir.SetInsertPoint(latch);
        llvm::PHINode* stopped_now = nullptr;
        if (takes_turns) {
            stopped_now = ir.CreatePHI(ir.getInt1Ty(), 2);
            stopped_now->addIncoming(some_stopped, ran);
            stopped_now->addIncoming(stopped_before, loop);
            is_first->addIncoming(is_first, latch);
            stopped_before->addIncoming(stopped_now, latch);
        }
        llvm::Value* following = ir.CreateAdd(round, ir.getInt32(1), "", true, true);
        round->addIncoming(following, latch);
        llvm::BranchInst* round_end =
            ir.CreateCondBr(ir.CreateICmpULT(following, ir.getInt32(steps)), loop, takes_turns ? again : after);
        if (!takes_turns) round_end->setMetadata(steps_metadata, llvm::MDNode::get(context, {}));
        if (takes_turns) {
            ir.SetInsertPoint(again);
            llvm::BasicBlock* back = again;
            if (waits) {
                back = llvm::BasicBlock::Create(context, "steps.back", function);
                ir.CreateCondBr(stopped_now, back, after);
                ir.SetInsertPoint(back);
                back = emit_turn_of_others(ir, function, region, cta, walkers, next_region);
                ir.CreateBr(loop);
            } else {
                ir.CreateCondBr(stopped_now, loop, after);
            }
            round->addIncoming(ir.getInt32(0), back);
            is_first->addIncoming(ir.getFalse(), back);
            stopped_before->addIncoming(ir.getFalse(), back);
        }
        ir.SetInsertPoint(after);
    }

    KernelUnit& unit_;
    const FunctionGraph& graph_;
    BarrierPlan barriers_;
    std::vector<bool> canonical_nans_; ///< by value
    ProductGroups products_;
    StepNumbers numbers_;
    std::map<ValueId, std::optional<StepNumber>> known_numbers_;
    std::map<ValueId, llvm::GlobalVariable*> known_masks_; ///< null: not known
    LoopAccumulators accumulators_;
    std::optional<std::uint32_t> accumulators_offset_; ///< behind the step's frame; none: on the stack
    std::uint32_t step_size_ = 0;                      ///< bytes: of the frame and what is kept
    bool counters_ = false;
    std::vector<LinearPlan> plans_;
    std::vector<std::vector<TurnPoint>> turns_; ///< by region
    std::vector<bool> lane_regions_;            ///< by region: runs lane by lane
    RegionFrames frames_;
    std::vector<llvm::Function*> functions_;
    struct Row {
        llvm::Value *first = nullptr, *linear = nullptr, *count = nullptr; ///< the first CTA's numbers, and how many
    } row_;
};

} // namespace

std::uint32_t emit_region_form(KernelUnit& unit, const FunctionGraph& graph, const BarrierPlan& barriers) {
    return RegionForm(unit, graph, barriers).emit();
}

} // namespace ptarmigan::translator
