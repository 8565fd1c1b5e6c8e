// SPDX-License-Identifier: Apache-2.0
// Values: stack slots for those that cross blocks, reads and writes with type conversion, blending under guards.
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/emit/graph_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/InlineAsm.h>

#include <fmt/format.h>

namespace ptarmigan::translator {

using ptx::ScalarType;

/// Marks the values that need a slot: used in another block than the defining one, or by a phi, or phis themselves.
/// Uses in other regions count: what is live out of this one is read back at the cut.
void GraphEmitter::find_crossing_values(const RegionView& view) {
    crosses_.assign(graph_.values.size(), false);
    auto use = [&](BlockId block, ValueId value) {
        if (value != no_value && graph_.values[value].block != block) crosses_[value] = true;
    };
    for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
        const Block& block = graph_.blocks[id];
        for (const Phi& phi : block.phis) {
            crosses_[phi.result] = true;
            for (ValueId incoming : phi.incoming)
                if (incoming != no_value) crosses_[incoming] = true;
        }
        for (const GraphInstruction& instruction : block.instructions)
            for (ValueId value : uses(graph_, instruction)) use(id, value);
        use(id, block.terminator.condition);
        // Of the two versions of a block only what has a slot reaches its end.
        if (block.terminator.condition != no_value && plan_ && view.contains[id] && wants_full_version(id))
            crosses_[block.terminator.condition] = true;
    }
}

/// Predicate vectors are kept as integer lanes where the target has no mask registers.
llvm::Value* GraphEmitter::to_storage(llvm::Value* value) {
    if (!unit_.options.target.avx512 && value->getType()->isVectorTy() &&
        value->getType()->getScalarType()->isIntegerTy(1))
        return ir_.CreateSExt(value, lanes_type(ir_.getInt32Ty()));
    return value;
}

llvm::Value* GraphEmitter::from_storage(llvm::Value* value, llvm::Type* type) {
    if (value->getType() == type) return value;
    return ir_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

static llvm::Type* storage_type(llvm::Type* type, bool avx512) {
    if (avx512 || !type->isVectorTy() || !type->getScalarType()->isIntegerTy(1)) return type;
    auto* vector = llvm::cast<llvm::FixedVectorType>(type);
    return llvm::FixedVectorType::get(llvm::Type::getInt32Ty(type->getContext()), vector->getNumElements());
}

GraphEmitter::Slot GraphEmitter::make_slot(const SsaValue& value, const Shape& shape) {
    Slot slot;
    llvm::Type* scalar = type(value.type);
    bool vector = !shape.is_uniform() && !shape.is_affine();
    llvm::Type* base = vector ? storage_type(lanes_type(scalar), unit_.options.target.avx512) : scalar;
    slot.base = make_place(base, value.name.empty() ? "v" : value.name.c_str());
    if (shape.is_affine() && shape.steps) slot.stride = make_place(scalar, "stride");
    return slot;
}

GraphEmitter::Place GraphEmitter::make_place(llvm::Type* type, const char* name) {
    if (!memory_slots_) return {entry_alloca(type, name), type};
    const llvm::DataLayout& layout = unit_.module->getDataLayout();
    std::uint64_t bytes = layout.getTypeAllocSize(type), alignment = layout.getABITypeAlign(type).value();
    memory_used_ = (memory_used_ + alignment - 1) / alignment * alignment;
    std::uint64_t offset = memory_used_;
    memory_used_ += bytes;
    llvm::IRBuilderBase::InsertPointGuard keep(ir_);
    ir_.SetInsertPoint(llvm::cast<llvm::Instruction>(memory_base_)->getNextNode());
    return {ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), memory_base_, offset, name), type};
}

/// Keeps all slots in one block of memory that SROA can't see through. In the program-counter form every block follows
/// every other in LLVM's eyes, so that each value in SSA form would be a phi in the dispatch block: with hundreds of
/// values and blocks code generation takes minutes instead of milliseconds (cub's scan, 2026-11-21), and all of it
/// would be spilled anyway.
void GraphEmitter::use_memory_slots() {
    memory_slots_ = entry_alloca(llvm::ArrayType::get(ir_.getInt8Ty(), 64), "slots");
    memory_slots_->setAlignment(llvm::Align(256));
    auto* type = llvm::FunctionType::get(ir_.getPtrTy(), {ir_.getPtrTy()}, false);
    memory_base_ = ir_.CreateCall(type, llvm::InlineAsm::get(type, "", "=r,0", false), {memory_slots_}, "slots.base");
}

void GraphEmitter::finish_memory_slots() {
    if (memory_slots_)
        memory_slots_->setAllocatedType(
            llvm::ArrayType::get(ir_.getInt8Ty(), std::max<std::uint64_t>(64, memory_used_)));
}

GraphEmitter::Slot& GraphEmitter::slot_of(ValueId value) {
    auto found = slots_.find(value);
    if (found != slots_.end()) return found->second;
    const SsaValue& info = graph_.values[value];
    return slots_.emplace(value, make_slot(info, info.shape)).first->second;
}

void GraphEmitter::store_slot(const Slot& slot, const LaneValue& value) {
    ir_.CreateStore(to_storage(value.base), slot.base.address);
    if (slot.stride) ir_.CreateStore(value.stride, slot.stride.address);
}

LaneValue GraphEmitter::load_slot(const Slot& slot, const Shape& shape, ScalarType scalar) {
    LaneValue value;
    value.shape = shape;
    llvm::Type* wanted = shape.is_uniform() || shape.is_affine() ? type(scalar) : lanes_type(type(scalar));
    value.base = from_storage(ir_.CreateLoad(slot.base.type, slot.base.address), wanted);
    if (slot.stride) value.stride = ir_.CreateLoad(slot.stride.type, slot.stride.address);
    return value;
}

LaneValue GraphEmitter::constant_value(const SsaValue& value) {
    llvm::Type* scalar = type(value.type);
    LaneValue result =
        LaneValue::uniform(scalar->isIntegerTy(1) ? ir_.getInt1(value.constant != 0)
                                                  : constant_like(scalar, value.constant, ir_.getInt32(0)));
    result.shape.level = Shape::Level::cta_uniform;
    return result;
}

LaneValue GraphEmitter::value_at(BlockId block, ValueId value) {
    const SsaValue& info = graph_.values[value];
    if (info.is_constant) return constant_value(info);
    if (info.is_undefined) {
        LaneValue zero = LaneValue::uniform(llvm::Constant::getNullValue(type(info.type)));
        zero.shape.level = Shape::Level::cta_uniform;
        return zero;
    }
    if (const LaneValue* known = known_.find(value)) return *known;
    if (kept_place(value)) throw std::logic_error("an accumulator that has no registers is read: " + info.name);
    LaneValue result;
    llvm::IRBuilderBase::InsertPointGuard keep(ir_);
    if (loads_end_) ir_.SetInsertPoint(loads_end_);
    result = load_slot(slot_of(value), info.shape, info.type);
    known_.set(value, result);
    return result;
}

/// Splits off the place for slot loads: they must not end up inside an arm that some handler opens.
void GraphEmitter::begin_block_code() {
    early_loads_.clear();
    access_groups_ = find_access_groups(graph_, current_block_);
    const auto& instructions = graph_.blocks[current_block_].instructions;
    block_accesses_ = unsigned(std::count_if(instructions.begin(), instructions.end(), [](const auto& each) {
        return has_effect(each.inst, ptx::Effects::load | ptx::Effects::store);
    }));
    store_groups_.clear();
    for (const AccessGroup& group : access_groups_.stores)
        for (const ptx::Instruction* store : group.accesses) store_groups_[store] = &group;
    llvm::BasicBlock* code = new_block("code");
    loads_end_ = ir_.CreateBr(code);
    ir_.SetInsertPoint(code);
}

bool GraphEmitter::may_be_neighbours(const ptx::Operand& address) {
    if (address.kind != ptx::Operand::Kind::address || address.base != ptx::Operand::Base::reg) return false;
    if (!computed_) computed_ = computed_numbers(graph_);
    return (*computed_)[address.index];
}

llvm::ArrayRef<const ptx::Instruction*> GraphEmitter::loads_with(const ptx::Instruction& inst) {
    for (const AccessGroup& group : access_groups_.loads)
        if (group.place == &inst) return group.accesses;
    return {};
}

const AccessGroup* GraphEmitter::store_group(const ptx::Instruction& inst) {
    const auto found = store_groups_.find(&inst);
    return found == store_groups_.end() ? nullptr : found->second;
}

LaneValue GraphEmitter::value_in(BlockId block, ValueId value) {
    if (block != current_block_) known_.clear();
    return value_at(block, value);
}

void GraphEmitter::set_live_in(ValueId value, const LaneValue& contents) {
    crosses_[value] = true;
    store_slot(slot_of(value), conform(contents, graph_.values[value].shape));
}

/// Brings a value to the planned shape: more general is reached by broadcasting. A varying value where a uniform one
/// was planned means that all active lanes agree: take the first active lane's.
LaneValue GraphEmitter::conform(const LaneValue& value, const Shape& planned) {
    LaneValue result = value;
    if (planned.is_uniform()) {
        if (!value.is_uniform() && width_ == 1)
            result.base = only_lane(broadcast(value));
        else if (!value.is_uniform())
            result.base = ir_.CreateExtractElement(broadcast(value), first_lane(active_bits()));
        result.stride = nullptr;
    } else if (planned.is_affine()) {
        if (value.is_uniform()) {
            // A uniform value is affine with zero offsets; only legal if that is what was planned.
            bool zero = std::all_of(planned.offsets->begin(), planned.offsets->end(), [](auto o) { return o == 0; });
            if (!zero) throw std::logic_error("a uniform value where an affine one was planned");
            if (planned.steps) result.stride = llvm::Constant::getNullValue(value.base->getType());
        } else if (!value.is_affine()) {
            throw std::logic_error("a varying value where an affine one was planned");
        } else if (planned.steps && !result.stride) {
            result.stride = llvm::Constant::getNullValue(value.base->getType());
        }
    } else {
        result.base = broadcast(value);
        result.stride = nullptr;
    }
    result.shape = planned;
    return result;
}

void GraphEmitter::define(ValueId value, LaneValue contents) {
    const SsaValue& info = graph_.values[value];
    contents = conform(contents, info.shape);
    if (captured_) {
        captured_->emplace_back(value, contents);
        return;
    }
    known_.set(value, contents);
    if (!crosses_[value]) return;
    Slot& slot = slot_of(value);
    if (!plan_ && info.shape.is_varying() && width_ > 1) {
        // Program counters: other lanes may hold an older instance of this value that they still need.
        llvm::Value* old = load_slot(slot, info.shape, info.type).base;
        LaneValue merged = contents;
        merged.base = ir_.CreateSelect(counter_mask_, contents.base, old);
        store_slot(slot, merged);
        return;
    }
    store_slot(slot, contents);
}

/// Converts between register types: same size by bit-cast, narrower by truncation, wider by extension.
LaneValue GraphEmitter::convert(LaneValue value, ScalarType to, bool sign_extend) {
    llvm::Type* target = type(to);
    llvm::Type* source = value.base->getType()->getScalarType();
    if (source == target) return value;
    unsigned source_bits = source->getPrimitiveSizeInBits(), target_bits = target->getPrimitiveSizeInBits();
    if (value.is_affine() && source->isIntegerTy() && target->isIntegerTy() && target_bits < source_bits) {
        value.base = ir_.CreateTrunc(value.base, target);
        if (value.stride) value.stride = ir_.CreateTrunc(value.stride, target);
        value.shape.guard = no_value; // modulo 2^32 the affine form is exact again
        value.shape.guard_scale = 1;
        return value;
    }
    if (value.is_affine()) value = LaneValue::varying(broadcast(value));
    auto cast = [&](llvm::Value* v) -> llvm::Value* {
        if (!source->isIntegerTy()) v = ir_.CreateBitCast(v, like(ir_.getIntNTy(source_bits), v));
        if (target_bits < source_bits) v = ir_.CreateTrunc(v, like(ir_.getIntNTy(target_bits), v));
        if (target_bits > source_bits) {
            llvm::Type* wide = like(ir_.getIntNTy(target_bits), v);
            v = sign_extend ? ir_.CreateSExt(v, wide) : ir_.CreateZExt(v, wide);
        }
        if (!target->isIntegerTy()) v = ir_.CreateBitCast(v, like(target, v));
        return v;
    };
    value.base = cast(value.base);
    return value;
}

/// guard ? taken : previous, at the planned shape.
LaneValue GraphEmitter::blend(const LaneValue& guard, const LaneValue& taken, const LaneValue& previous,
                              const Shape& planned) {
    if (guard.is_uniform() && !planned.is_varying()) {
        LaneValue a = conform(taken, planned), b = conform(previous, planned);
        a.base = ir_.CreateSelect(guard.base, a.base, b.base);
        if (a.stride) a.stride = ir_.CreateSelect(guard.base, a.stride, b.stride);
        return a;
    }
    llvm::Value* condition = guard.is_uniform() ? guard.base : broadcast(guard);
    return LaneValue::varying(ir_.CreateSelect(condition, broadcast(taken), broadcast(previous)));
}

void GraphEmitter::write(const ptx::Operand& destination, const LaneValue& raw) {
    if (destination.kind == ptx::Operand::Kind::sink || destination.kind == ptx::Operand::Kind::none) return;
    if (destination.kind != ptx::Operand::Kind::reg) unsupported("internal: result is not a register");
    ValueId value = destination.index;
    const SsaValue& info = graph_.values[value];
    LaneValue contents = convert(raw, info.type, ptx::is_signed(destination.type));
    if (lane_zero_) contents.shape = info.shape;
    const GraphInstruction* instruction = current_instruction_;
    if (instruction && instruction->inst.guard != ptx::no_id && !guard_handled_) {
        // Writes come in operand order for all but a few forms, so find the previous value by the definition's place.
        FewValues defined = definitions(graph_, *instruction);
        auto place = std::find(defined.begin(), defined.end(), value) - defined.begin();
        ValueId old = instruction->previous.at(place);
        if (!graph_.values[old].is_undefined) {
            LaneValue guard = value_at(current_block_, instruction->inst.guard);
            if (instruction->inst.guard_negated) guard.base = ir_.CreateNot(guard.base);
            // Copies of values are folded whatever the types of their registers, so the old bits may be of another
            // type.
            LaneValue before = convert(value_at(current_block_, old), info.type, false);
            contents = blend(guard, contents, before, info.shape);
        }
    }
    define(value, contents);
}

llvm::Value* GraphEmitter::active() {
    llvm::Value* mask =
        full_version_ ? llvm::Constant::getAllOnesValue(lanes_type(ir_.getInt1Ty())) : block_mask(current_block_);
    const GraphInstruction* instruction = current_instruction_;
    if (!instruction || instruction->inst.guard == ptx::no_id || guard_handled_) return mask;
    llvm::Value* guard = broadcast(value_at(current_block_, instruction->inst.guard));
    if (instruction->inst.guard_negated) guard = ir_.CreateNot(guard);
    return ir_.CreateAnd(mask, guard);
}

bool GraphEmitter::all_active() {
    const GraphInstruction* instruction = current_instruction_;
    bool guarded = instruction && instruction->inst.guard != ptx::no_id && !guard_handled_;
    return !guarded && (full_version_ || (interface_->entry_mask_full && block_mask_is_entry(current_block_)));
}

GraphEmitter::GuardSlot& GraphEmitter::guard_slot(ValueId guard) {
    GuardSlot& slot = guards_[guard];
    if (!slot.holds) {
        slot.holds = entry_alloca(ir_.getInt1Ty(), "guard");
        if (!slot.correction) slot.correction = entry_alloca(lanes_type(ir_.getInt64Ty()), "correction");
    }
    return slot;
}

void GraphEmitter::place_guard(ValueId guard, llvm::Value* correction_address) {
    guards_[guard].correction = correction_address;
    ir_.CreateStore(ir_.getTrue(), guard_slot(guard).holds);
}

void GraphEmitter::set_guard_flag(ValueId guard, llvm::Value* holds) {
    ir_.CreateStore(holds, guard_slot(guard).holds);
}

void GraphEmitter::set_guard(ValueId guard, llvm::Value* holds, const std::function<llvm::Value*()>& correction) {
    GuardSlot& slot = guard_slot(guard);
    ir_.CreateStore(holds, slot.holds);
    if_then(
        ir_.CreateNot(holds), [&] { ir_.CreateAlignedStore(correction(), slot.correction, llvm::Align(16)); }, false);
}

llvm::Value* GraphEmitter::guard_holds(ValueId guard) {
    return ir_.CreateLoad(ir_.getInt1Ty(), guard_slot(guard).holds);
}

llvm::Value* GraphEmitter::guard_correction(ValueId guard) {
    llvm::Value* written =
        ir_.CreateAlignedLoad(lanes_type(ir_.getInt64Ty()), guard_slot(guard).correction, llvm::Align(16));
    return ir_.CreateSelect(guard_holds(guard), llvm::Constant::getNullValue(written->getType()), written);
}

} // namespace ptarmigan::translator
