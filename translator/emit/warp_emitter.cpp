// SPDX-License-Identifier: Apache-2.0
// The parts of the emit context that don't depend on the graph: types, broadcasting, lane loops, services.
#include "translator/emit/warp_emitter.h"

#include "frontend/isa/instruction_form.h"
#include "translator/kernel_abi.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <fmt/format.h>

#include <algorithm>

namespace ptarmigan::translator {

using ptx::ScalarType;

llvm::Type* WarpEmitter::type(ScalarType scalar) {
    switch (scalar) {
    case ScalarType::none: return ir_.getInt32Ty();
    case ScalarType::pred: return ir_.getInt1Ty();
    case ScalarType::f16: return ir_.getHalfTy();
    case ScalarType::bf16: return ir_.getBFloatTy();
    case ScalarType::f32:
    case ScalarType::tf32: return ir_.getFloatTy();
    case ScalarType::f64: return ir_.getDoubleTy();
    default: return ir_.getIntNTy(ptx::bit_size(scalar));
    }
}

llvm::Type* WarpEmitter::lanes_type(llvm::Type* scalar) {
    return llvm::FixedVectorType::get(scalar, width_);
}

llvm::Type* WarpEmitter::like(llvm::Type* scalar, llvm::Value* like_value) {
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like_value->getType()))
        return llvm::FixedVectorType::get(scalar, vector->getNumElements());
    return scalar;
}

llvm::Value* WarpEmitter::constant_like(llvm::Type* scalar, std::uint64_t bits, llvm::Value* like_value) {
    llvm::Constant* constant;
    if (scalar->isIntegerTy()) {
        unsigned width = scalar->getIntegerBitWidth();
        constant = llvm::ConstantInt::get(scalar, llvm::APInt(std::max(width, 64u), bits).zextOrTrunc(width));
    } else {
        unsigned width = scalar->getPrimitiveSizeInBits();
        constant = llvm::ConstantFP::get(
            context(), llvm::APFloat(scalar->getFltSemantics(), llvm::APInt(64, bits).zextOrTrunc(width)));
    }
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like_value->getType()))
        return llvm::ConstantVector::getSplat(vector->getElementCount(), constant);
    return constant;
}

llvm::Value* WarpEmitter::scalar(const ptx::Operand& operand) {
    LaneValue value = read(operand);
    if (value.is_uniform()) return value.base;
    unsupported("internal: a uniform operand was expected");
}

bool WarpEmitter::is_uniform(const ptx::Operand& operand) {
    return read(operand).is_uniform();
}

llvm::Value* WarpEmitter::splat(llvm::Value* scalar) {
    if (width_ == 1)
        return ir_.CreateInsertElement(llvm::PoisonValue::get(lanes_type(scalar->getType())), scalar, std::uint64_t(0));
    return ir_.CreateVectorSplat(width_, scalar);
}

/// FastISel knows no vectors of one element, and makes none of the code in front of one in its block: so the operations
/// that gave the vector are made again on scalars, and the vector's own, which nobody uses then, are dropped.
llvm::Value* WarpEmitter::only_lane(llvm::Value* lanes, unsigned depth) {
    constexpr unsigned deepest = 6;
    if (!lanes->getType()->isVectorTy()) return lanes;
    if (auto* constant = llvm::dyn_cast<llvm::Constant>(lanes))
        if (llvm::Constant* element = constant->getAggregateElement(0u)) return element;
    const auto is_lane = [](llvm::Value* value) {
        auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
        return !vector || vector->getNumElements() == 1;
    };
    const auto operand = [&](llvm::Value* value) { return only_lane(value, depth + 1); };
    if (auto* insertion = llvm::dyn_cast<llvm::InsertElementInst>(lanes)) return insertion->getOperand(1);
    if (depth < deepest) {
        llvm::Type* scalar = lanes->getType()->getScalarType();
        if (auto* cast = llvm::dyn_cast<llvm::CastInst>(lanes); cast && is_lane(cast->getOperand(0)))
            return ir_.CreateCast(cast->getOpcode(), operand(cast->getOperand(0)), scalar);
        if (auto* compare = llvm::dyn_cast<llvm::CmpInst>(lanes))
            return ir_.CreateCmp(compare->getPredicate(), operand(compare->getOperand(0)),
                                 operand(compare->getOperand(1)));
        if (auto* choice = llvm::dyn_cast<llvm::SelectInst>(lanes))
            return ir_.CreateSelect(operand(choice->getCondition()), operand(choice->getTrueValue()),
                                    operand(choice->getFalseValue()));
        if (auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(lanes)) {
            llvm::Value* result = ir_.CreateBinOp(operation->getOpcode(), operand(operation->getOperand(0)),
                                                  operand(operation->getOperand(1)));
            if (auto* made = llvm::dyn_cast<llvm::BinaryOperator>(result)) made->copyIRFlags(operation);
            return result;
        }
    }
    return ir_.CreateExtractElement(lanes, std::uint64_t(0));
}

static llvm::Constant* lane_constants(llvm::Type* scalar, const LaneOffsets& offsets) {
    std::vector<llvm::Constant*> elements;
    elements.reserve(offsets.size());
    for (std::int64_t offset : offsets) elements.push_back(llvm::ConstantInt::getSigned(scalar, offset));
    return llvm::ConstantVector::get(elements);
}

static bool all_zero(const LaneOffsets& offsets) {
    return std::all_of(offsets.begin(), offsets.end(), [](std::int64_t o) { return o == 0; });
}

llvm::Value* WarpEmitter::broadcast(const LaneValue& value) {
    if (value.shape.is_varying()) return value.base;
    llvm::Value* vector = splat(value.base);
    if (value.is_uniform()) return vector;
    llvm::Type* scalar = value.base->getType();
    if (!all_zero(*value.shape.offsets)) vector = ir_.CreateAdd(vector, lane_constants(scalar, *value.shape.offsets));
    if (value.shape.steps && value.stride)
        vector = ir_.CreateAdd(vector, ir_.CreateMul(splat(value.stride), lane_constants(scalar, *value.shape.steps)));
    if (value.shape.guard != no_value) {
        llvm::Value* correction = guard_correction(value.shape.guard);
        if (value.shape.guard_scale != 1)
            correction =
                ir_.CreateMul(correction, constant_like(scalar, std::uint64_t(value.shape.guard_scale), correction));
        vector = ir_.CreateAdd(vector, correction);
    }
    return vector;
}

LaneValue WarpEmitter::apply(std::initializer_list<LaneValue> sources,
                             const std::function<llvm::Value*(Ir&, Values)>& op) {
    bool uniform =
        std::all_of(sources.begin(), sources.end(), [](const LaneValue& source) { return source.is_uniform(); });
    llvm::SmallVector<llvm::Value*, 6> values;
    for (const LaneValue& source : sources) values.push_back(uniform ? source.base : broadcast(source));
    llvm::Value* result = op(ir_, values);
    return uniform ? LaneValue::uniform(result) : LaneValue::varying(result);
}

void WarpEmitter::map(const ptx::Instruction& inst, std::initializer_list<ptx::Role> sources,
                      const std::function<llvm::Value*(Ir&, Values)>& op) {
    bool uniform = true;
    llvm::SmallVector<LaneValue, 6> read_values;
    for (ptx::Role role : sources) {
        read_values.push_back(read(inst[role]));
        uniform &= read_values.back().is_uniform();
    }
    llvm::SmallVector<llvm::Value*, 6> values;
    for (const LaneValue& value : read_values) values.push_back(uniform ? value.base : broadcast(value));
    llvm::Value* result = op(ir_, values);
    write(inst[ptx::Role::d], uniform ? LaneValue::uniform(result) : LaneValue::varying(result));
}

// --- active lanes --------------------------------------------------------------------------------

llvm::Value* WarpEmitter::active_bits() {
    if (all_active()) return ir_.getInt64(width_ == 64 ? ~0ull : (1ull << width_) - 1);
    return to_bits(active());
}

llvm::Value* WarpEmitter::to_bits(llvm::Value* mask) {
    llvm::Value* bits = width_ == 1 ? only_lane(mask) : ir_.CreateBitCast(mask, ir_.getIntNTy(width_));
    return ir_.CreateZExtOrTrunc(bits, ir_.getInt64Ty());
}

llvm::Value* WarpEmitter::from_bits(llvm::Value* bits) {
    llvm::Value* narrow = ir_.CreateZExtOrTrunc(bits, ir_.getIntNTy(width_));
    if (width_ == 1) return splat(narrow);
    return ir_.CreateBitCast(narrow, lanes_type(ir_.getInt1Ty()));
}

llvm::Value* WarpEmitter::any(llvm::Value* mask) {
    if (width_ == 1) return only_lane(mask);
    llvm::Value* bits = ir_.CreateBitCast(mask, ir_.getIntNTy(width_));
    return ir_.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0));
}

llvm::Value* WarpEmitter::first_lane(llvm::Value* bits) {
    if (width_ == 1) return ir_.getInt32(0);
    llvm::Value* index = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, ir_.getFalse());
    return ir_.CreateAnd(ir_.CreateTrunc(index, ir_.getInt32Ty()), ir_.getInt32(31));
}

llvm::BasicBlock* WarpEmitter::new_block(const char* name) {
    return llvm::BasicBlock::Create(context(), name, ir_.GetInsertBlock()->getParent());
}

llvm::Value* WarpEmitter::for_each_lane(llvm::Value* bits, llvm::Value* initial,
                                        const std::function<llvm::Value*(llvm::Value*)>& body) {
    if (width_ == 1) {
        const auto only = [&] { return body(ir_.getInt32(0)); };
        const auto* known = llvm::dyn_cast<llvm::ConstantInt>(bits);
        llvm::Value* value = known && known->isOne() ? only()
                                                     : if_else(ir_.CreateICmpNE(bits, ir_.getInt64(0)), only,
                                                               [&] { return initial ? only_lane(initial) : nullptr; });
        return initial ? splat(value) : nullptr;
    }
    llvm::BasicBlock* before = ir_.GetInsertBlock();
    llvm::BasicBlock* loop = new_block("lane.loop");
    llvm::BasicBlock* done = new_block("lane.done");
    ir_.CreateCondBr(ir_.CreateICmpNE(bits, ir_.getInt64(0)), loop, done);
    ir_.SetInsertPoint(loop);
    llvm::PHINode* left = ir_.CreatePHI(ir_.getInt64Ty(), 2, "lanes.left");
    left->addIncoming(bits, before);
    llvm::PHINode* results = nullptr;
    if (initial) {
        results = ir_.CreatePHI(initial->getType(), 2, "lane.results");
        results->addIncoming(initial, before);
    }
    llvm::Value* lane = first_lane(left);
    llvm::Value* value = body(lane);
    llvm::Value* next_results = initial ? ir_.CreateInsertElement(results, value, lane) : nullptr;
    llvm::Value* rest = ir_.CreateAnd(left, ir_.CreateSub(left, ir_.getInt64(1)));
    llvm::BasicBlock* end = ir_.GetInsertBlock();
    left->addIncoming(rest, end);
    if (initial) results->addIncoming(next_results, end);
    ir_.CreateCondBr(ir_.CreateICmpNE(rest, ir_.getInt64(0)), loop, done);
    ir_.SetInsertPoint(done);
    if (!initial) return nullptr;
    llvm::PHINode* final_results = ir_.CreatePHI(initial->getType(), 2);
    final_results->addIncoming(initial, before);
    final_results->addIncoming(next_results, end);
    return final_results;
}

void WarpEmitter::for_each_lane(llvm::Value* bits, const std::function<void(llvm::Value*)>& body) {
    for_each_lane(bits, nullptr, [&](llvm::Value* lane) -> llvm::Value* {
        body(lane);
        return nullptr;
    });
}

void WarpEmitter::if_then(llvm::Value* condition, const std::function<void()>& then, bool likely) {
    llvm::BasicBlock* taken = new_block("then");
    llvm::BasicBlock* done = new_block("endif");
    llvm::MDNode* weights = likely ? nullptr : llvm::MDBuilder(context()).createBranchWeights(1, 2000);
    ir_.CreateCondBr(condition, taken, done, weights);
    ir_.SetInsertPoint(taken);
    then();
    ir_.CreateBr(done);
    ir_.SetInsertPoint(done);
}

ValueList WarpEmitter::if_else_list(llvm::Value* condition, llvm::function_ref<ValueList()> then,
                                    llvm::function_ref<ValueList()> otherwise, unsigned odds) {
    llvm::BasicBlock* taken = new_block("then");
    llvm::BasicBlock* other = new_block("else");
    llvm::BasicBlock* done = new_block("endif");
    llvm::MDNode* weights = odds ? llvm::MDBuilder(context()).createBranchWeights(odds, 1) : nullptr;
    ir_.CreateCondBr(condition, taken, other, weights);
    ir_.SetInsertPoint(taken);
    const ValueList then_values = then();
    llvm::BasicBlock* then_end = ir_.GetInsertBlock();
    ir_.CreateBr(done);
    ir_.SetInsertPoint(other);
    const ValueList else_values = otherwise();
    llvm::BasicBlock* else_end = ir_.GetInsertBlock();
    ir_.CreateBr(done);
    ir_.SetInsertPoint(done);
    ValueList results;
    for (std::size_t i = 0; i < then_values.size(); ++i) {
        llvm::PHINode* phi = ir_.CreatePHI(then_values[i]->getType(), 2);
        phi->addIncoming(then_values[i], then_end);
        phi->addIncoming(else_values[i], else_end);
        results.push_back(phi);
    }
    return results;
}

llvm::Value* WarpEmitter::if_else(llvm::Value* condition, const std::function<llvm::Value*()>& then,
                                  const std::function<llvm::Value*()>& otherwise, unsigned odds) {
    const auto list_of = [](llvm::Value* value) { return value ? ValueList{value} : ValueList(); };
    const ValueList results = if_else_list(
        condition, [&] { return list_of(then()); }, [&] { return list_of(otherwise()); }, odds);
    return results.empty() ? nullptr : results.front();
}

llvm::Value* WarpEmitter::lane_address(const LaneAddress& address, llvm::Value* lane) {
    if (address.address.is_uniform()) return address.address.base;
    return ir_.CreateExtractElement(broadcast(address.address), lane);
}

// --- calls out -----------------------------------------------------------------------------------

llvm::Value* WarpEmitter::call_service(unsigned byte_offset, llvm::Type* result, Values arguments) {
    llvm::SmallVector<llvm::Type*, 8> types;
    for (llvm::Value* argument : arguments) types.push_back(argument->getType());
    llvm::Value* services = context_field(ir_.getPtrTy(), offsetof(abi::CtaContext, services), "services");
    llvm::Value* slot = ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), services, byte_offset);
    llvm::Value* function = ir_.CreateLoad(ir_.getPtrTy(), slot, "service");
    llvm::CallInst* call = ir_.CreateCall(llvm::FunctionType::get(result, types, false), function, arguments);
    call->setTailCallKind(llvm::CallInst::TCK_NoTail); // services tell the place in the code by where they return to
    return call;
}

llvm::AllocaInst* WarpEmitter::entry_alloca(llvm::Type* type, const char* name, llvm::Value* count) {
    llvm::BasicBlock& entry = ir_.GetInsertBlock()->getParent()->getEntryBlock();
    Ir builder(&entry, entry.begin());
    return builder.CreateAlloca(type, count, name);
}

llvm::AllocaInst* WarpEmitter::take_lane_slot(llvm::Type* type) {
    const auto found = std::find_if(free_lane_slots_.begin(), free_lane_slots_.end(),
                                    [&](llvm::AllocaInst* slot) { return slot->getAllocatedType() == type; });
    if (found == free_lane_slots_.end()) return entry_alloca(type, "lanes");
    llvm::AllocaInst* slot = *found;
    free_lane_slots_.erase(found);
    return slot;
}

void WarpEmitter::trap(llvm::Value* lanes_bits, std::uint32_t fault) {
    call_service(offsetof(abi::Services, trap), ir_.getVoidTy(),
                 {cta_context(), step_index(), lanes_bits, ir_.getInt32(fault),
                  ir_.getInt32(current_ ? current_->location.line : 0)});
}

void WarpEmitter::unsupported(std::string_view text) {
    std::uint32_t line = current_ ? current_->location.line : 0;
    std::uint32_t column = current_ ? current_->location.column : 0;
    std::string form = "kernel";
    if (current_) {
        const ptx::FormInfo& info = ptx::form_info(current_->form);
        form = fmt::format("{} (manual section {})", info.syntax, info.section);
    }
    throw UnsupportedError(
        fmt::format("{}:{}:{}: error: {}: unsupported: {}", source().name, line, column, form, text));
}

} // namespace ptarmigan::translator
