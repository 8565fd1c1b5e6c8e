// SPDX-License-Identifier: Apache-2.0
// Operands: registers, immediates, addresses of variables, memory operands.
#include "translator/analysis/build/call_frames.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/MDBuilder.h>

#include <fmt/format.h>

namespace ptarmigan::translator {

using ptx::Operand;
using ptx::ScalarType;
using ptx::StateSpace;

llvm::Value* GraphEmitter::first_thread() {
    return ir_.CreateMul(step_, ir_.getInt32(width_), "first.thread", true, true);
}

llvm::Value* GraphEmitter::context_field(llvm::Type* type, unsigned byte_offset, std::string_view name) {
    // Nothing finds what is loaded twice in quick code, so it is loaded once, where the function begins.
    const bool is_quick = unit_.options.optimization == Optimization::least;
    llvm::Value** kept = is_quick ? &kept_fields_[{byte_offset, type}] : nullptr;
    if (kept && *kept) return *kept;
    llvm::BasicBlock& entry = function_->getEntryBlock();
    Ir first(&entry, entry.begin());
    Ir& ir = is_quick ? first : ir_;
    llvm::Value* place = ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), cta_context_, byte_offset);
    llvm::LoadInst* load = ir.CreateLoad(type, place, llvm::StringRef(name.data(), name.size()));
    // The context is constant while a step runs (but for `step`, which generated code never reads).
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context(), {}));
    // Its product with a lane's number is one multiplication then.
    if (byte_offset == offsetof(abi::CtaContext, local_stride)) {
        llvm::MDBuilder builder(context());
        load->setMetadata(
            llvm::LLVMContext::MD_range,
            builder.createRange(ir.getInt64(0)->getValue(), ir.getInt64(abi::local_stride_limit)->getValue()));
    }
    if (kept) *kept = load;
    return load;
}

llvm::Value* GraphEmitter::lane_numbers(llvm::Type* scalar) {
    std::vector<llvm::Constant*> lanes;
    for (unsigned lane = 0; lane < width_; ++lane) lanes.push_back(llvm::ConstantInt::get(scalar, lane));
    return llvm::ConstantVector::get(lanes);
}

const Operand& GraphEmitter::element(const Operand& operand, unsigned index) {
    if (operand.has_elements()) return graph_.pool.at(operand.first + index);
    return operand;
}

LaneValue GraphEmitter::read(const Operand& operand) {
    switch (operand.kind) {
    case Operand::Kind::reg: {
        LaneValue value = value_at(current_block_, operand.index);
        if (lane_zero_) value = LaneValue::uniform(value.base);
        if (operand.type != ScalarType::none) value = convert(value, operand.type, ptx::is_signed(operand.type));
        if (operand.negated) {
            if (value.is_affine()) value = LaneValue::varying(broadcast(value));
            value.base = ir_.CreateNot(value.base);
        }
        return value;
    }
    case Operand::Kind::imm: {
        llvm::Type* scalar = type(operand.type);
        LaneValue value =
            LaneValue::uniform(scalar->isIntegerTy(1) ? ir_.getInt1((operand.value != 0) != operand.negated)
                                                      : constant_like(scalar, operand.value, ir_.getInt32(0)));
        value.shape.level = Shape::Level::cta_uniform;
        return value;
    }
    case Operand::Kind::special: {
        LaneValue value = special_register(operand, nullptr);
        return operand.type == ScalarType::none ? value : convert(value, operand.type, false);
    }
    case Operand::Kind::variable: {
        LaneValue value = variable_address(operand);
        return operand.type == ScalarType::none ? value : convert(value, operand.type, false);
    }
    case Operand::Kind::function:
        // Handle of a function: what initialisers of function pointers hold, too.
        return LaneValue::uniform(ir_.getInt64((std::uint64_t(operand.index) + 1) * 16));
    default: unsupported("internal: operand of this kind can't be read as a value");
    }
}

LaneValue GraphEmitter::offset_by(LaneValue value, llvm::Value* uniform) {
    if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(uniform); constant && constant->isZero()) return value;
    if (value.shape.is_varying())
        value.base = ir_.CreateAdd(value.base, splat(uniform));
    else
        value.base = ir_.CreateAdd(value.base, uniform);
    return value;
}

std::uint64_t GraphEmitter::frame_bytes() const {
    return translator::frame_bytes(graph_);
}

void GraphEmitter::check_stack() {
    llvm::Value* stride = context_field(ir_.getInt64Ty(), offsetof(abi::CtaContext, local_stride), "local.stride");
    llvm::Value* end = ir_.CreateAdd(interface_->frame_offset, ir_.getInt64(frame_bytes()));
    if_then(
        ir_.CreateICmpUGT(end, stride), [&] { trap(to_bits(entry_mask_), std::uint32_t(abi::Fault::stack_overflow)); },
        false);
}

/// Address of byte `offset` of the thread's frame in local memory: lanes are local_stride apart.
LaneValue GraphEmitter::local_address(std::uint64_t offset) {
    llvm::Value* local = context_field(ir_.getInt64Ty(), offsetof(abi::CtaContext, local), "local");
    llvm::Value* stride = context_field(ir_.getInt64Ty(), offsetof(abi::CtaContext, local_stride), "local.stride");
    llvm::Value* thread = ir_.CreateZExt(first_thread(), ir_.getInt64Ty());
    llvm::Value* base = ir_.CreateAdd(local, ir_.CreateMul(thread, stride));
    if (interface_->frame_offset) base = ir_.CreateAdd(base, interface_->frame_offset);
    LaneValue value;
    value.base = ir_.CreateAdd(base, ir_.getInt64(offset));
    if (width_ == 1) {
        value.shape.level = Shape::Level::step_uniform;
        return value;
    }
    value.shape.level = Shape::Level::affine;
    value.shape.offsets = &lane_zeros_;
    value.shape.steps = &lane_iota_;
    value.stride = stride;
    return value;
}

llvm::Value* GraphEmitter::local_begin() {
    llvm::Value* frame = frame_begin();
    return interface_->frame_offset ? ir_.CreateSub(frame, splat(interface_->frame_offset)) : frame;
}

/// Where the CTA's own memory begins in the shared window of its cluster.
LaneValue GraphEmitter::shared_of_cta() {
    if (unit_.cluster_size() == 1) return LaneValue::uniform(ir_.getInt64(0));
    llvm::Value* rank = context_field(ir_.getInt32Ty(), offsetof(abi::CtaContext, cluster_ctarank), "ctarank");
    return LaneValue::uniform(ir_.CreateShl(ir_.CreateZExt(rank, ir_.getInt64Ty()), abi::cluster_rank_bit));
}

/// The address of a variable as a value: generic for .global, .const and .local, an offset in the window for .shared,
/// an offset in the parameter block for kernel parameters.
LaneValue GraphEmitter::variable_address(const Operand& operand) {
    LaneValue value;
    switch (operand.scope) {
    case ptx::VariableScope::module: {
        llvm::Value* table = context_field(ir_.getPtrTy(), offsetof(abi::CtaContext, variables), "variables");
        llvm::Value* place = ir_.CreateConstInBoundsGEP1_64(ir_.getInt64Ty(), table, operand.index);
        llvm::LoadInst* address =
            ir_.CreateLoad(ir_.getInt64Ty(), place, graph_.module->variables.at(operand.index).name);
        address->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context(), {}));
        value = LaneValue::uniform(address);
        break;
    }
    case ptx::VariableScope::shared:
        value = offset_by(shared_of_cta(), ir_.getInt64(graph_.shared.at(operand.index).offset));
        break;
    case ptx::VariableScope::parameter:
        if (graph_.is_entry) {
            const ptx::Function& entry = graph_.module->functions[graph_.function];
            value = LaneValue::uniform(ir_.getInt64(ptx::parameter_layout(entry).offsets.at(operand.index)));
        } else {
            std::size_t returns = graph_.return_offsets.size();
            value = local_address(operand.index < returns ? graph_.return_offsets[operand.index]
                                                          : graph_.parameter_offsets.at(operand.index - returns));
        }
        break;
    case ptx::VariableScope::frame:
        value = local_address(argument_block_bytes(graph_) + graph_.locals.at(operand.index).local_offset);
        break;
    case ptx::VariableScope::body: unsupported("internal: a body-scope variable in a graph");
    }
    return offset_by(value, ir_.getInt64(operand.value));
}

/// To 64 bits; 32-bit addresses are sign-extended so that a lane below the window's start (not active, in a correct
/// program) does not spoil the affine form.
LaneValue GraphEmitter::widen_address(LaneValue value) {
    llvm::Type* i64 = ir_.getInt64Ty();
    if (value.base->getType()->getScalarType() == i64) return value;
    value.base = ir_.CreateSExt(value.base, like(i64, value.base));
    if (value.stride) value.stride = ir_.CreateSExt(value.stride, i64);
    return value;
}

/// Of the low halves of addresses in local memory, of which a thread has less than 4 GB: the place in the lane's own.
llvm::Value* GraphEmitter::complete_local_address(llvm::Value* low) {
    llvm::Value* begin = local_begin();
    if (!low->getType()->isVectorTy()) begin = ir_.CreateExtractElement(begin, std::uint64_t(0)); // of the only lane
    llvm::Value* way = ir_.CreateSub(low, ir_.CreateTrunc(begin, low->getType()));
    return ir_.CreateAdd(begin, ir_.CreateZExt(way, begin->getType()));
}

llvm::Value* GraphEmitter::whole_local_address(llvm::Value* address) {
    if (!graph_.narrow_stack_addresses) return address;
    llvm::Value* low = ir_.CreateTrunc(address, like(ir_.getInt32Ty(), address));
    llvm::Value* is_low = ir_.CreateICmpULT(address, constant_like(ir_.getInt64Ty(), std::uint64_t{1} << 32, address));
    return ir_.CreateSelect(is_low, complete_local_address(low), address);
}

LaneAddress GraphEmitter::address(const Operand& operand, StateSpace space) {
    if (current_instruction_ && current_instruction_->lane_granule != 0 && operand.kind == Operand::Kind::address)
        return interleaved_address(operand);
    LaneAddress result;
    result.space = space;
    // What the number is relative to: a variable's own space, else the written one.
    StateSpace relative = space;
    if (operand.kind == Operand::Kind::address && operand.base == Operand::Base::reg) {
        LaneValue base = value_at(current_block_, operand.index);
        if (!base.base->getType()->getScalarType()->isIntegerTy()) {
            bool wide = ptx::bit_size(graph_.values[operand.index].type) == 64;
            base = convert(base, wide ? ScalarType::b64 : ScalarType::b32, false);
        }
        if (space == StateSpace::local && base.base->getType()->getScalarSizeInBits() == 32)
            base = LaneValue::varying(complete_local_address(broadcast(base)));
        else if (space == StateSpace::local && (base.shape.is_varying() || width_ == 1))
            base.base = whole_local_address(base.base);
        result.address = offset_by(widen_address(base), ir_.getInt64(operand.value));
    } else if (operand.kind == Operand::Kind::variable ||
               (operand.kind == Operand::Kind::address && operand.base == Operand::Base::variable)) {
        result.address = variable_address(operand);
        relative = operand.scope == ptx::VariableScope::shared      ? StateSpace::shared
                   : operand.scope == ptx::VariableScope::parameter ? StateSpace::param
                                                                    : StateSpace::generic;
    } else {
        result.address = LaneValue::uniform(ir_.getInt64(operand.value));
    }
    if (relative == StateSpace::shared)
        result.address =
            offset_by(result.address, context_field(ir_.getInt64Ty(), offsetof(abi::CtaContext, shared), "shared"));
    else if (relative == StateSpace::param && graph_.is_entry)
        result.address =
            offset_by(result.address, context_field(ir_.getInt64Ty(), offsetof(abi::CtaContext, params), "params"));
    else if (relative == StateSpace::param && operand.scope != ptx::VariableScope::parameter)
        unsupported("a function parameter addressed through a register");
    if (result.address.is_affine() && result.address.shape.guard != no_value)
        result.guard = guard_holds(result.address.shape.guard);
    return result;
}

llvm::Value* GraphEmitter::call_builtin(std::string_view name, llvm::Type* result, Values arguments) {
    llvm::SmallVector<llvm::Type*, 6> types;
    for (llvm::Value* argument : arguments) types.push_back(argument->getType());
    std::string key(name);
    llvm::FunctionCallee callee = unit_.module->getOrInsertFunction(key, llvm::FunctionType::get(result, types, false));
    return ir_.CreateCall(callee, arguments);
}

} // namespace ptarmigan::translator
