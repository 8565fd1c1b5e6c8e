// SPDX-License-Identifier: Apache-2.0
// Masked execution. Blocks are emitted in the plan's linear order. Every edge carries the mask of the lanes that take
// it: a block whose mask is `accumulated` ORs the masks of its incoming edges into a slot, reads it when control gets
// there, resets it, and is skipped when it is empty. Phis are moved on the edges, merged under the edge's mask where
// lanes come from several edges. Uniform branches stay branches. analysis/README.md explains the plan.
#include "frontend/isa/instruction_form.h"
#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/memory/alignment.h"
#include "translator/analysis/waits/joined_votes.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"
#include "translator/llvm/drop_unchanged_saves.h"
#include "translator/lower/alignment_check.h"
#include "translator/lower/collective_call.h"
#include "translator/lower/floating_point.h"
#include "translator/lower/matrix_rows.h"
#include "translator/lower/prefetch.h"

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

llvm::AllocaInst* GraphEmitter::mask_slot(const char* name) {
    llvm::Type* lane = unit_.options.target.avx512 || width_ == 1 ? ir_.getInt1Ty() : ir_.getInt32Ty();
    return entry_alloca(lanes_type(lane), name);
}

llvm::Value* GraphEmitter::load_mask(llvm::AllocaInst* slot) {
    llvm::Value* stored = ir_.CreateLoad(slot->getAllocatedType(), slot, "mask");
    return from_storage(stored, lanes_type(ir_.getInt1Ty()));
}

void GraphEmitter::store_mask(llvm::AllocaInst* slot, llvm::Value* mask) {
    if (mask->getType() != slot->getAllocatedType()) mask = ir_.CreateSExt(mask, slot->getAllocatedType());
    ir_.CreateStore(mask, slot);
}

/// The block whose mask `block` shares: itself if accumulated, no_block for the entry mask.
BlockId GraphEmitter::mask_block(BlockId block) const {
    while (plan_->blocks[block].mask.kind == MaskSource::Kind::same_as) block = plan_->blocks[block].mask.block;
    return plan_->blocks[block].mask.kind == MaskSource::Kind::entry ? no_block : block;
}

bool GraphEmitter::block_mask_is_entry(BlockId block) const {
    if (width_ == 1) return true; // a single lane runs exactly the blocks that it reaches
    return plan_ && mask_block(block) == no_block;
}

llvm::Value* GraphEmitter::block_mask(BlockId block) {
    if (!plan_) return width_ == 1 ? entry_mask_ : counter_mask_;
    if (width_ == 1) return entry_mask_;
    BlockId source = mask_block(block);
    return source == no_block ? entry_mask_ : load_mask(current_mask_[source]);
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

void GraphEmitter::emit_masks(const LinearPlan& plan, const RegionInterface& interface) {
    plan_ = &plan;
    prepare(plan.region, interface);
    accumulated_mask_.assign(graph_.blocks.size(), nullptr);
    current_mask_.assign(graph_.blocks.size(), nullptr);
    if (width_ > 1) {
        for (BlockId block : plan.order) {
            if (plan.blocks[block].mask.kind != MaskSource::Kind::accumulated) continue;
            accumulated_mask_[block] = mask_slot("edge.mask");
            current_mask_[block] = mask_slot("block.mask");
            ir_.CreateStore(llvm::Constant::getNullValue(accumulated_mask_[block]->getAllocatedType()),
                            accumulated_mask_[block]);
        }
    }
    place_accumulators();
    place_round_numbers();
    if (interface.enter) interface.enter();
    if (!interface.turns.empty()) emit_resumption();
    ir_.CreateBr(blocks_[plan.region.entry]);
    for (BlockId block : plan.order) emit_block(block);
}

/// Where a round of a loop begins: what the last one has computed, phis of the header aside, is not needed any more. A
/// skipped block leaves its values, and a merge under a mask the other lanes, as they were, so that LLVM would carry
/// all of them round the loop.
void GraphEmitter::forget_last_round(BlockId header) {
    const std::uint32_t loop = graph_.forest.loop_of[header];
    if (width_ == 1 || loop == no_loop || graph_.forest.loops[loop].header != header) return;
    const auto forget = [&](const Place& place) {
        if (place.address) ir_.CreateStore(llvm::UndefValue::get(place.type), place.address);
    };
    const auto forget_value = [&](ValueId value) {
        if (!crosses_[value]) return;
        const Slot& slot = slot_of(value);
        forget(slot.base);
        forget(slot.stride);
    };
    for (BlockId id : graph_.forest.loops[loop].blocks) {
        if (id == header || graph_.forest.loop_of[id] != loop || !plan_->region.contains[id]) continue;
        if (llvm::AllocaInst* mask = accumulated_mask_[id])
            ir_.CreateStore(llvm::Constant::getNullValue(mask->getAllocatedType()), mask); // as it is: has been used
        for (const Phi& phi : graph_.blocks[id].phis) forget_value(phi.result);
        for (const GraphInstruction& instruction : graph_.blocks[id].instructions)
            for (ValueId value : definitions(graph_, instruction)) forget_value(value);
    }
}

void GraphEmitter::emit_block(BlockId id) {
    const BlockPlan& plan = plan_->blocks[id];
    current_block_ = id;
    current_instruction_ = nullptr;
    known_.clear();
    ir_.SetInsertPoint(blocks_[id]);
    forget_last_round(id);
    if (accumulated_mask_[id]) {
        llvm::Value* mask = load_mask(accumulated_mask_[id]);
        ir_.CreateStore(llvm::Constant::getNullValue(accumulated_mask_[id]->getAllocatedType()), accumulated_mask_[id]);
        store_mask(current_mask_[id], mask);
        if (plan.needs_skip_check) {
            llvm::BasicBlock* body = new_block("body");
            llvm::BasicBlock* skip;
            if (plan.skip_to != no_block)
                skip = blocks_[plan.skip_to];
            else {
                skip = new_block("skip.end");
                llvm::IRBuilderBase::InsertPointGuard guard(ir_);
                ir_.SetInsertPoint(skip);
                interface_->exit();
            }
            ir_.CreateCondBr(any(mask), body, skip);
            ir_.SetInsertPoint(body);
        }
    }
    if (wants_full_version(id)) {
        emit_versions(id);
    } else {
        begin_block_code();
        emit_instructions(id);
    }
    if (is_cut(id))
        interface_->cut(id);
    else
        emit_terminator(id);
}

bool GraphEmitter::is_cut(BlockId id) const {
    return id < plan_->region.cut_after.size() && plan_->region.cut_after[id];
}

/// All of a block but its end; where that is a barrier at which the region ends, the barrier is part of it.
void GraphEmitter::emit_instructions(BlockId id) {
    const Block& block = graph_.blocks[id];
    const std::size_t count = block.instructions.size() - (is_cut(id) ? 1 : 0);
    if (block.hand_over != 0) emit_hand_over(block.hand_over);
    for (std::size_t i = 0; i < count; ++i) {
        const unsigned votes = width() == 1 && unit_.fiber_form ? joined_votes(graph_, block, i) : 0;
        if (votes > 1) begin_instruction(block.instructions[i]);
        if (votes < 2 || !all_active()) {
            emit_instruction(block.instructions[i]);
            continue;
        }
        emit_votes(&block.instructions[i], votes);
        i += votes - 1;
    }
    current_instruction_ = nullptr;
    current_ = nullptr;
}

void GraphEmitter::begin_instruction(const GraphInstruction& instruction) {
    current_ = &instruction.inst;
    current_instruction_ = &instruction;
    ir_.SetCurrentDebugLocation(unit_.location(function_, instruction.inst.location));
}

void GraphEmitter::emit_votes(const GraphInstruction* first, unsigned count) {
    lower::join_votes(*this, count, [&](unsigned number) -> const ptx::Instruction& {
        begin_instruction(first[number]);
        return first[number].inst;
    });
}

void GraphEmitter::emit_instruction(const GraphInstruction& instruction) {
    begin_instruction(instruction);
    const ptx::FormInfo& form = ptx::form_info(instruction.inst.form);
    if (instruction.hand_over != 0) emit_hand_over(instruction.hand_over);
    // Others may come between any two accesses that threads can see each other by.
    if (unit_.options.random_schedule && unit_.fiber_form &&
        ptx::any(form.effects, ptx::Effects::atomic | ptx::Effects::volatile_read | ptx::Effects::fence))
        emit_yield();
    else if (ptx::any(form.effects, ptx::Effects::atomic))
        emit_atomic_yield();
    if (is_real_call(instruction)) {
        emit_call(instruction);
        return;
    }
    if (instruction.is_wrong_target) {
        if_then(
            ir_.CreateICmpNE(active_bits(), ir_.getInt64(0)),
            [&] { trap(active_bits(), std::uint32_t(abi::Fault::invalid_call_target)); }, false);
        return;
    }
    if (emit_lane_zero(instruction)) return;
    ValueId result;
    if (wants_affine(instruction, result) && !ptx::any(form.effects, ptx::Effects::load)) {
        emit_affine(instruction, result);
        return;
    }
    if (!handler_of(instruction.inst.form)) {
        std::string_view reason = form.unsupported_reason;
        unsupported(reason.empty() ? "not supported yet" : reason);
    }
    if (instruction.inst.guard != ptx::no_id && form.effects != ptx::Effects::pure) {
        LaneValue guard = value_at(current_block_, instruction.inst.guard);
        if (guard.is_uniform()) {
            llvm::Value* condition = guard.base;
            if (instruction.inst.guard_negated) condition = ir_.CreateNot(condition);
            emit_under_uniform_guard(instruction, condition);
            return;
        }
    }
    run_handler(instruction);
}

/// Runs the handler, behind the checks of its addresses.
void GraphEmitter::run_handler(const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    const ptx::FormInfo& form = ptx::form_info(inst.form);
    for (unsigned i = 0; i < inst.operand_count; ++i) {
        if (!(instruction.check_alignment >> i & 1)) continue;
        ptx::StateSpace space = inst.space == ptx::StateSpace::none ? ptx::StateSpace::generic : inst.space;
        // A copy names two spaces: the shared one is its destination's.
        bool copies = ptx::any(form.effects, ptx::Effects::load) && ptx::any(form.effects, ptx::Effects::store);
        bool writes = copies ? form.operands[i].role == ptx::Role::d : !ptx::any(form.effects, ptx::Effects::load);
        if (copies) space = writes ? ptx::StateSpace::shared : ptx::StateSpace::global;
        const LaneAddress place = instruction.lane_granule != 0 ? LaneAddress{local_place(inst.operands[i]), space}
                                                                : address(inst.operands[i], space);
        lower::check_alignment(*this, place, access_bytes(inst), writes, lower::addressing_lanes(*this, inst));
    }
    check_accesses(instruction);
    mark_work(inst);
    tell_of_addition(inst);
    note_write(inst);
    handler_of(inst.form)(*this, inst);
    let_others_look(inst);
    for (const Prefetch& wanted : {instruction.prefetch, instruction.second_prefetch})
        if (wanted) emit_prefetch(inst, wanted);
}

/// `constant` + `factor` * the stride.
llvm::Value* GraphEmitter::distance_ahead(const Prefetch& wanted, std::int64_t constant, std::int64_t factor) {
    llvm::Value* distance = ir_.getInt64(std::uint64_t(constant));
    if (factor == 0) return distance;
    llvm::Value* stride = ir_.CreateSExt(value_at(current_block_, wanted.stride).base, ir_.getInt64Ty());
    return ir_.CreateAdd(distance, ir_.CreateMul(stride, ir_.getInt64(std::uint64_t(factor))));
}

/// What a step reads in a turn and in its next one may all lie in one set of the first cache. On a Zen 5 (12 ways),
/// into the first and the second cache, CPU ms: gemv_half, 16 rows a turn, 2.2 and 1.7; reduce, 8, with 128 CTAs 2.9
/// and 3.6, with 1,024 3.9 and 3.7.
bool GraphEmitter::turns_overfill_set(BlockId id) const {
    constexpr std::ptrdiff_t most_rows = 8;
    const std::uint32_t loop = graph_.forest.loop_of[id];
    if (loop == no_loop) return false;
    const auto& instructions = graph_.blocks[id].instructions;
    const auto rows = std::count_if(instructions.begin(), instructions.end(),
                                    [](const GraphInstruction& each) { return each.prefetch.counter != no_value; });
    return rows * std::ptrdiff_t(graph_.forest.loops[loop].turn_rounds) > most_rows;
}

void GraphEmitter::emit_prefetch(const ptx::Instruction& inst, const Prefetch& wanted) {
    const LaneAddress place = address(inst[ptx::Role::a], inst.space);
    llvm::Value* ahead = distance_ahead(wanted, wanted.ahead, wanted.factor);
    if (wanted.counter != no_value) {
        const auto wide = [&](ValueId value) {
            return ir_.CreateSExt(value_at(current_block_, value).base, ir_.getInt64Ty());
        };
        const bool down = wanted.counter_factor < 0 || (wanted.counter_factor == 0 && wanted.counter_ahead < 0);
        llvm::Value* later =
            ir_.CreateAdd(wide(wanted.counter), distance_ahead(wanted, wanted.counter_ahead, wanted.counter_factor));
        llvm::Value* bound =
            wanted.bound == no_value ? ir_.getInt64(std::uint64_t(wanted.bound_constant)) : wide(wanted.bound);
        llvm::Value* goes_on = down ? ir_.CreateICmpSGT(later, bound) : ir_.CreateICmpSLT(later, bound);
        ahead = ir_.CreateSelect(goes_on, ahead, ir_.getInt64(0)); // its own line, which it has
    }
    // A piece of a row that several lanes read is the next warp's; other places are this warp's own. Where CTAs run in
    // rows all are the next steps'.
    const bool is_own = (place.address.is_uniform() || wanted.factor != 0) &&
                        !(wanted.counter != no_value && turns_overfill_set(current_block_));
    auto level = is_own || unit_.runs_in_rows ? lower::CacheLevel::first : lower::CacheLevel::second;
    lower::prefetch_ahead(*this, place, access_bytes(inst), ahead, level,
                          /*for_write=*/!ptx::any(ptx::form_info(inst.form).effects, ptx::Effects::load));
}

/// A guard that is the same in all lanes, on an instruction with effects, becomes a branch around it.
void GraphEmitter::emit_under_uniform_guard(const GraphInstruction& instruction, llvm::Value* condition) {
    // Previous values are read before the branch so that both arms see them.
    std::unordered_map<ValueId, LaneValue> before;
    FewValues defined = definitions(graph_, instruction);
    for (std::size_t i = 0; i < defined.size(); ++i) {
        LaneValue old = value_at(current_block_, instruction.previous.at(i));
        const Shape& planned = graph_.values[defined[i]].shape;
        bool undefined = graph_.values[instruction.previous[i]].is_undefined;
        if (undefined && planned.is_affine()) {
            LaneValue zero = LaneValue::uniform(llvm::Constant::getNullValue(type(graph_.values[defined[i]].type)));
            zero.shape = planned;
            if (planned.steps) zero.stride = zero.base;
            before.emplace(defined[i], zero);
        } else {
            before.emplace(defined[i], conform(convert(old, graph_.values[defined[i]].type, false), planned));
        }
    }
    std::vector<std::pair<ValueId, LaneValue>> results;
    llvm::BasicBlock* taken = new_block("guarded");
    llvm::BasicBlock* done = new_block("unguarded");
    llvm::BasicBlock* from = ir_.GetInsertBlock();
    ir_.CreateCondBr(condition, taken, done);
    ir_.SetInsertPoint(taken);
    const KnownValues::Mark known = known_.mark();
    guard_handled_ = true;
    captured_ = &results;
    run_handler(instruction);
    captured_ = nullptr;
    llvm::BasicBlock* end = ir_.GetInsertBlock();
    ir_.CreateBr(done);
    ir_.SetInsertPoint(done);
    known_.go_back(known); // loads made inside the arm do not dominate what follows
    for (auto& [value, contents] : results) {
        const LaneValue& old = before.at(value);
        LaneValue merged = contents;
        auto join = [&](llvm::Value* a, llvm::Value* b) {
            llvm::PHINode* phi = ir_.CreatePHI(a->getType(), 2);
            phi->addIncoming(a, end);
            phi->addIncoming(b, from);
            return phi;
        };
        merged.base = join(contents.base, old.base);
        if (contents.stride)
            merged.stride = join(contents.stride,
                                 old.stride ? old.stride : llvm::Constant::getNullValue(contents.stride->getType()));
        contents = merged;
    }
    // Definitions may store to slots, and phis come first in a block.
    for (const auto& [value, contents] : results) define(value, contents);
    guard_handled_ = false;
}

// --- edges ---------------------------------------------------------------------------------------

static unsigned predecessor_index(const Block& block, const Block& from_block, BlockId from, unsigned successor) {
    // A block may be a successor more than once (indexed branches): the n-th edge is the n-th entry.
    unsigned occurrence = 0;
    for (unsigned k = 0; k < successor; ++k)
        if (from_block.successors[k] == from_block.successors[successor]) ++occurrence;
    for (unsigned i = 0; i < block.predecessors.size(); ++i)
        if (block.predecessors[i] == from && occurrence-- == 0) return i;
    throw std::logic_error("edge without a predecessor entry");
}

void GraphEmitter::move_phis(BlockId from, unsigned successor, llvm::Value* mask) {
    BlockId to = graph_.blocks[from].successors[successor];
    const Block& target = graph_.blocks[to];
    if (target.phis.empty()) return;
    unsigned index = predecessor_index(target, graph_.blocks[from], from, successor);
    keep_accumulators(from, to, index);
    std::map<std::uint32_t, std::vector<llvm::Value*>> unpacked;
    // All incoming values are read before any phi is written: phis of one block may feed each other.
    std::vector<LaneValue> incoming;
    for (const Phi& phi : target.phis) {
        const SsaValue& info = graph_.values[phi.result];
        ValueId source = phi.incoming[index];
        if (kept_place(phi.result)) {
            incoming.emplace_back();
            continue;
        }
        const LoopAccumulators::Place* kept = kept_place(source);
        LaneValue value = kept ? leaving_accumulator(*kept, unpacked) : value_at(from, source);
        if (kept) value = convert(value, graph_.values[source].type, false);
        if (graph_.values[source].is_undefined && info.shape.is_affine()) {
            value.shape = info.shape;
            if (info.shape.steps) value.stride = value.base;
        }
        incoming.push_back(conform(convert(value, info.type, false), info.shape));
    }
    for (std::size_t i = 0; i < target.phis.size(); ++i) {
        if (kept_place(target.phis[i].result)) continue;
        const SsaValue& info = graph_.values[target.phis[i].result];
        Slot& slot = slot_of(target.phis[i].result);
        bool merge = plan_ ? plan_->blocks[to].blend[i] : width_ > 1;
        if (merge && mask && info.shape.is_varying()) {
            llvm::Value* old = load_slot(slot, info.shape, info.type).base;
            incoming[i].base = ir_.CreateSelect(mask, incoming[i].base, old);
        }
        store_slot(slot, incoming[i]);
    }
}

void GraphEmitter::emit_edge(BlockId from, unsigned successor, llvm::Value* mask) {
    BlockId to = graph_.blocks[from].successors[successor];
    const KnownValues::Mark known = known_.mark();
    move_phis(from, successor, width_ > 1 ? mask : nullptr);
    if (accumulated_mask_[to]) {
        llvm::Value* merged = ir_.CreateOr(load_mask(accumulated_mask_[to]), mask);
        store_mask(accumulated_mask_[to], merged);
    }
    known_.go_back(known);
}

/// Lanes for which edge `successor` of an indexed or conditional branch is taken.
llvm::Value* GraphEmitter::edge_condition(BlockId id, unsigned successor, const LaneValue& condition) {
    const Block& block = graph_.blocks[id];
    if (block.terminator.kind == Terminator::Kind::branch) {
        bool taken_when_true = (successor == 0) != block.terminator.negated;
        return taken_when_true ? condition.base : ir_.CreateNot(condition.base);
    }
    // An index past the table is undefined by the manual: such lanes take the last target.
    llvm::Value* number = constant_like(condition.base->getType()->getScalarType(), successor, condition.base);
    return successor + 1 == block.successors.size() ? ir_.CreateICmpUGE(condition.base, number)
                                                    : ir_.CreateICmpEQ(condition.base, number);
}

/// Lanes that run one by one wait for those that a GPU has in step with them: analysis/hand_over_points.h.
void GraphEmitter::emit_hand_over(std::uint32_t point) {
    if (width_ != 1 || !unit_.fiber_form) return; // marked for a form that was not taken
    call_service(offsetof(abi::Services, reconverge), ir_.getVoidTy(),
                 {cta_context_, step_, ir_.getInt32(point), ir_.getInt32(inside_waiting_loop())});
}

void GraphEmitter::emit_yield() {
    llvm::Value* lanes = current_ ? ir_.getInt64(0) : lanes_here(); // before an instruction nobody waits
    const std::uint32_t loop = graph_.forest.loop_of[current_block_];
    if (loop != no_loop && counter_goals().loops[loop])
        call_await_goal(abi::GoalEvent::waits, lanes);
    else
        call_service(offsetof(abi::Services, yield), ir_.getVoidTy(), {cta_context_, step_, lanes, ir_.getInt64(0)});
}

/// Every cycle goes through one of these: latches, and in an irreducible graph the sources of retreating edges.
std::vector<bool> GraphEmitter::find_round_ends() const {
    std::vector<bool> ends(graph_.blocks.size(), false);
    for (const LoopInfo& loop : graph_.forest.loops)
        if (loop.latch != no_block) ends[loop.latch] = true;
    if (graph_.forest.reducible) return ends;
    std::vector<std::uint32_t> position(graph_.blocks.size(), 0);
    std::uint32_t count = 0;
    for (BlockId block : reverse_post_order(successor_edges(graph_), 0)) position[block] = count++;
    for (BlockId block = 0; block < graph_.blocks.size(); ++block)
        for (BlockId to : graph_.blocks[block].successors)
            if (position[to] <= position[block]) ends[block] = true;
    return ends;
}

/// On the back edges of kernels that wait for memory: every so many iterations other steps get their turn.
void GraphEmitter::emit_spin_yield(BlockId id) {
    constexpr std::uint32_t rounds_between_yields = 64;
    const bool is_whole_cta = unit_.gives_turns && unit_.step_count() == 1; // which has nobody else to stop for
    if (!(unit_.fiber_form || is_whole_cta) || !(unit_.spins || unit_.options.random_schedule)) return;
    if (!ends_round_[id]) return;
    if (unit_.options.random_schedule) return emit_yield();
    emit_yield_each(rounds_between_yields);
}

/// Where threads take back what they did, as in `while (atomicAdd(l, 1) != 0) atomicSub(l, 1)`, steps that only gave
/// way at the end of a round would see each other's additions for ever. So they also do before their atomics, but with
/// another period.
void GraphEmitter::emit_atomic_yield() {
    constexpr std::uint32_t atomics_between_yields = 61;
    if (!unit_.fiber_form || !unit_.spins) return;
    if (in_waiting_loop()) emit_yield_each(atomics_between_yields);
}

/// When this place has been passed `period` times.
void GraphEmitter::emit_yield_each(std::uint32_t period) {
    const Place counter = make_place(ir_.getInt32Ty(), "passes");
    {
        llvm::IRBuilderBase::InsertPointGuard keep(ir_);
        ir_.SetInsertPoint(llvm::cast<llvm::Instruction>(counter.address)->getNextNode());
        ir_.CreateStore(ir_.getInt32(0), counter.address);
    }
    llvm::Value* count = ir_.CreateAdd(ir_.CreateLoad(counter.type, counter.address), ir_.getInt32(1));
    ir_.CreateStore(count, counter.address);
    llvm::Value* due = ir_.CreateICmpEQ(ir_.CreateURem(count, ir_.getInt32(period)), ir_.getInt32(0));
    const auto give_turn = [&] {
        if (!in_waiting_loop()) set_work_mark(nullptr);
        emit_yield();
    };
    if_then(due, give_turn, false);
}

void GraphEmitter::emit_terminator(BlockId id) {
    const Block& block = graph_.blocks[id];
    const BlockPlan& plan = plan_->blocks[id];
    if (block.terminator.location.line)
        ir_.SetCurrentDebugLocation(unit_.location(function_, block.terminator.location));
    if (block.terminator.kind == Terminator::Kind::exit) {
        interface_->exit();
        return;
    }
    llvm::Value* mask = width_ > 1 ? block_mask(id) : nullptr;
    emit_spin_yield(id);
    count_loop_rounds(id);
    if (block.terminator.kind == Terminator::Kind::jump) {
        emit_edge(id, 0, mask);
        emit_turn(id);
        ir_.CreateBr(blocks_[plan.jump_to[0]]);
        return;
    }
    LaneValue condition = value_at(id, block.terminator.condition);
    if (!condition.is_uniform()) {
        condition = LaneValue::varying(broadcast(condition));
        for (unsigned k = 0; k < block.successors.size(); ++k)
            emit_edge(id, k, ir_.CreateAnd(mask, edge_condition(id, k, condition)));
        ir_.CreateBr(blocks_[plan.jump_to[0]]);
        return;
    }
    // Uniform: a real branch, each edge with its own landing code.
    std::vector<llvm::BasicBlock*> landings;
    llvm::BasicBlock* here = ir_.GetInsertBlock();
    for (unsigned k = 0; k < block.successors.size(); ++k) {
        landings.push_back(new_block("edge"));
        ir_.SetInsertPoint(landings.back());
        emit_edge(id, k, mask);
        ir_.CreateBr(blocks_[plan.jump_to[k]]);
    }
    ir_.SetInsertPoint(here);
    if (block.terminator.kind == Terminator::Kind::branch) {
        unsigned taken = block.terminator.negated ? 1 : 0;
        ir_.CreateCondBr(condition.base, landings[taken], landings[1 - taken]);
        return;
    }
    llvm::SwitchInst* branch = ir_.CreateSwitch(condition.base, landings.back(), unsigned(landings.size()));
    for (unsigned k = 0; k + 1 < landings.size(); ++k)
        branch->addCase(llvm::cast<llvm::ConstantInt>(llvm::ConstantInt::get(condition.base->getType(), k)),
                        landings[k]);
}

} // namespace ptarmigan::translator
