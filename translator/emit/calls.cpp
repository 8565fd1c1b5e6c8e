// SPDX-License-Identifier: Apache-2.0
// Real calls: recursion and calls through pointers. Arguments and results pass through the thread's local memory: the
// callee's argument block starts where the caller's frame ends, at the same offset in all lanes. A call through a
// pointer whose lanes hold different targets is made once per target, for the lanes that want it.
#include "translator/lower/calls.h"
#include "translator/analysis/build/late_targets.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"
#include "translator/late_call.h"
#include "translator/lower/lane_array.h"

#include <fmt/format.h>

#include <optional>

namespace ptarmigan::translator {

using ptx::Operand;
using ptx::Role;

namespace {

/// Where a function's returns and parameters lie in its argument block: declaration order, natural alignment, as
/// build_graph lays them out for the callee's own graph.
struct ArgumentBlock {
    std::vector<std::uint32_t> return_offsets, parameter_offsets;
};

ArgumentBlock argument_block(const ptx::Function& function) {
    ArgumentBlock block;
    std::uint32_t end = 0;
    auto place = [&](const std::vector<ptx::Variable>& variables, std::vector<std::uint32_t>& offsets) {
        for (const ptx::Variable& variable : variables) {
            std::uint32_t alignment = std::max(1u, variable.alignment);
            end = (end + alignment - 1) / alignment * alignment;
            offsets.push_back(end);
            end += std::uint32_t(variable.size);
        }
    };
    place(function.returns, block.return_offsets);
    place(function.parameters, block.parameter_offsets);
    return block;
}

std::uint64_t argument_bytes(const ptx::Function& function) {
    ArgumentBlock block = argument_block(function);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < function.returns.size(); ++i)
        end = std::max(end, block.return_offsets[i] + function.returns[i].size);
    for (std::size_t i = 0; i < function.parameters.size(); ++i)
        end = std::max(end, block.parameter_offsets[i] + function.parameters[i].size);
    return end;
}

std::size_t list_size(const Operand& list) {
    if (list.kind == Operand::Kind::none) return 0;
    return list.kind == Operand::Kind::list ? list.count : 1;
}

/// A generic pointer to a function is a number that no memory has.
constexpr std::uint64_t pointer_unit = 16;
std::uint64_t pointer_to(ptx::FunctionId function) {
    return (std::uint64_t(function) + 1) * pointer_unit;
}

} // namespace

std::vector<ptx::FunctionId> indirect_targets(const FunctionGraph& graph, const GraphInstruction& instruction) {
    if (instruction.narrowed != ptx::no_id) return graph.narrowed_targets[instruction.narrowed];
    return call_candidates(*graph.module, *instruction.body, instruction.inst);
}

bool GraphEmitter::is_real_call(const GraphInstruction& instruction) const {
    return ptx::any(ptx::form_info(instruction.inst.form).effects, ptx::Effects::call);
}

/// Copies `bytes` between two addresses of one lane.
void GraphEmitter::copy_block(llvm::Value* destination, llvm::Value* source, std::uint64_t bytes) {
    for (std::uint64_t done = 0; done < bytes;) {
        unsigned piece = bytes - done >= 8 ? 8 : bytes - done >= 4 ? 4 : bytes - done >= 2 ? 2 : 1;
        auto pointer = [&](llvm::Value* base) {
            return ir_.CreateIntToPtr(ir_.CreateAdd(base, ir_.getInt64(done)), ir_.getPtrTy());
        };
        llvm::Value* loaded = ir_.CreateAlignedLoad(ir_.getIntNTy(piece * 8), pointer(source), llvm::Align(1));
        ir_.CreateAlignedStore(loaded, pointer(destination), llvm::Align(1));
        done += piece;
    }
}

/// The address that an affine or uniform `value` is for `lane` (an i32).
llvm::Value* GraphEmitter::address_of_lane(const LaneValue& value, llvm::Value* lane) {
    if (!value.stride) return value.base; // one lane
    return ir_.CreateAdd(value.base, ir_.CreateMul(value.stride, ir_.CreateZExt(lane, ir_.getInt64Ty())));
}

void GraphEmitter::emit_call(const GraphInstruction& instruction) {
    const Operand& callee = instruction.inst[Role::f];
    if (callee.kind != Operand::Kind::function) {
        emit_indirect_call(instruction);
        return;
    }
    const ptx::Function& function = graph_.module->functions[callee.index];
    if (function.is_declaration) {
        lower::runtime_call(*this, instruction.inst, function);
    } else if (width_ == 1 && !all_active()) { // functions take it that their lane is there
        call_results_.clear();
        call_mask_ = active();
        if_then(ir_.CreateICmpNE(active_bits(), ir_.getInt64(0)),
                [&] { call_function(callee.index, instruction, active_bits()); });
        call_mask_ = nullptr;
        write_call_results(instruction.inst);
    } else {
        call_function(callee.index, instruction, active_bits());
    }
}

/// Takes the first lane's target, serves all lanes that share it, until none is left.
void GraphEmitter::emit_indirect_call(const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    llvm::Value* targets = lanes(inst[Role::f]);
    llvm::Value* active_lanes = active_bits();
    llvm::BasicBlock* before = ir_.GetInsertBlock();
    llvm::BasicBlock* loop = new_block("targets");
    llvm::BasicBlock* next = new_block("targets.next");
    llvm::BasicBlock* done = new_block("targets.done");
    llvm::BasicBlock* bad = new_block("bad.target");
    ir_.CreateCondBr(ir_.CreateICmpNE(active_lanes, ir_.getInt64(0)), loop, done);
    ir_.SetInsertPoint(loop);
    llvm::PHINode* left = ir_.CreatePHI(ir_.getInt64Ty(), 2, "lanes.left");
    left->addIncoming(active_lanes, before);
    llvm::Value* target = ir_.CreateExtractElement(targets, first_lane(left));
    llvm::Value* same = to_bits(ir_.CreateICmpEQ(targets, splat(target)));
    llvm::Value* lanes_here = ir_.CreateAnd(left, same);
    std::vector<ptx::FunctionId> candidates = indirect_targets(graph_, instruction);
    llvm::SwitchInst* choose = ir_.CreateSwitch(target, bad, unsigned(candidates.size()));
    call_results_.clear();
    const bool is_late = is_late_call(*graph_.module, candidates);
    if (is_late) {
        llvm::BasicBlock* arm = new_block("late.target");
        for (ptx::FunctionId candidate : candidates) choose->addCase(ir_.getInt64(pointer_to(candidate)), arm);
        ir_.SetInsertPoint(arm);
        call_late(target, instruction, lanes_here);
        ir_.CreateBr(next);
        candidates.clear();
    }
    for (ptx::FunctionId candidate : candidates) {
        llvm::BasicBlock* arm = new_block("target");
        choose->addCase(ir_.getInt64(pointer_to(candidate)), arm);
        ir_.SetInsertPoint(arm);
        call_mask_ = from_bits(lanes_here);
        call_function(candidate, instruction, lanes_here);
        call_mask_ = nullptr;
        ir_.CreateBr(next);
    }
    ir_.SetInsertPoint(bad);
    trap(lanes_here, std::uint32_t(abi::Fault::invalid_call_target));
    ir_.CreateBr(next);
    ir_.SetInsertPoint(next);
    llvm::Value* rest = ir_.CreateAnd(left, ir_.CreateNot(lanes_here));
    left->addIncoming(rest, next);
    ir_.CreateCondBr(ir_.CreateICmpNE(rest, ir_.getInt64(0)), loop, done);
    ir_.SetInsertPoint(done);
    write_call_results(inst);
}

/// What store_call_result() has gathered.
void GraphEmitter::write_call_results(const ptx::Instruction& call) {
    const Operand& results = call[Role::d];
    for (unsigned i = 0; i < list_size(results); ++i) {
        const Operand& result = element(results, i);
        if (result.kind != Operand::Kind::reg) continue;
        auto found = call_results_.find(result.index);
        if (found == call_results_.end()) continue;
        write(result, LaneValue::varying(ir_.CreateLoad(found->second->getAllocatedType(), found->second)));
    }
}

/// Calls what `target`, a pointer to a function without parameters and results, is to: its code is made now if it has
/// none yet.
void GraphEmitter::call_late(llvm::Value* target, const GraphInstruction& instruction, llvm::Value* mask_bits) {
    llvm::Value* id = ir_.CreateSub(ir_.CreateUDiv(target, ir_.getInt64(pointer_unit)), ir_.getInt64(1));
    llvm::AllocaInst* arguments = entry_alloca(llvm::ArrayType::get(ir_.getInt64Ty(), 2), "late.function");
    ir_.CreateStore(id, arguments);
    ir_.CreateStore(ir_.getInt64(instruction.inst.location.line),
                    ir_.CreateConstInBoundsGEP1_64(ir_.getInt64Ty(), arguments, 1));
    llvm::Value* lane = ir_.CreateTrunc(first_lane(mask_bits), ir_.getInt32Ty());
    llvm::Value* entry = call_service(offsetof(abi::Services, device_runtime), ir_.getInt64Ty(),
                                      {cta_context_, step_, lane, ir_.getInt32(abi::late_function_call), arguments});
    llvm::Value* offset = callee_frame(instruction.inst, mask_bits);
    if (interface_->frame_offset) offset = ir_.CreateAdd(interface_->frame_offset, offset);
    llvm::Value* bits = ir_.CreateTrunc(mask_bits, ir_.getIntNTy(width_));
    ir_.CreateCall(unit_.callee_type(), ir_.CreateIntToPtr(entry, ir_.getPtrTy()), {cta_context_, step_, bits, offset});
}

/// Results of an indirect call are gathered over its targets and written once at the end.
void GraphEmitter::store_call_result(const Operand& result, llvm::Value* loaded, llvm::Value* mask) {
    if (!call_mask_) {
        write(result, LaneValue::varying(loaded));
        return;
    }
    llvm::AllocaInst*& slot = call_results_[result.index];
    if (!slot) slot = entry_alloca(loaded->getType(), "call.result");
    ir_.CreateStore(ir_.CreateSelect(mask, loaded, ir_.CreateLoad(slot->getAllocatedType(), slot)), slot);
}

/// i64: bytes from this frame's begin to a callee's, the same for all lanes: behind the variables, or behind what the
/// lane of the call with the fullest stack has taken.
llvm::Value* GraphEmitter::callee_frame(const ptx::Instruction& call, llvm::Value* mask_bits) {
    if (!graph_.stack_goes_up) return ir_.getInt64(frame_bytes());
    const Operand& arguments = call[Role::a];
    llvm::Value* taken = ir_.CreateSub(lanes(element(arguments, arguments.count - 1)), frame_begin());
    llvm::Value* most =
        ir_.CreateIntMaxReduce(ir_.CreateSelect(from_bits(mask_bits), taken, splat(ir_.getInt64(0))), false);
    return ir_.CreateAnd(ir_.CreateAdd(most, ir_.getInt64(15)), ir_.getInt64(~std::uint64_t{15}));
}

void GraphEmitter::call_function(ptx::FunctionId callee, const GraphInstruction& instruction, llvm::Value* mask_bits) {
    const ptx::Instruction& inst = instruction.inst;
    const ptx::Function& function = graph_.module->functions[callee];
    ArgumentBlock block = argument_block(function);
    llvm::Value* start = callee_frame(inst, mask_bits);
    llvm::Value* offset = start;
    if (interface_->frame_offset) offset = ir_.CreateAdd(interface_->frame_offset, offset);
    llvm::Value* mask = call_mask_ ? call_mask_ : active();
    // A loop over the lanes: single accesses at places that only the lane's number tells apart, and
    // a fraction of the code.
    auto for_lanes = [&](const std::function<void(llvm::Value*)>& body) {
        if (width_ == 1)
            body(ir_.getInt32(0));
        else
            for_each_lane(mask_bits, body);
    };
    auto place = [&](std::uint32_t position, llvm::Value* lane) {
        return ir_.CreateAdd(address_of_lane(local_address(position), lane), start);
    };
    auto pointer = [&](llvm::Value* address) { return ir_.CreateIntToPtr(address, ir_.getPtrTy()); };

    // The argument block must fit before anything is written to it; the callee checks for its own variables.
    llvm::Value* stride = context_field(ir_.getInt64Ty(), offsetof(abi::CtaContext, local_stride), "local.stride");
    llvm::Value* end = ir_.CreateAdd(offset, ir_.getInt64(argument_bytes(function)));
    if_then(
        ir_.CreateICmpUGT(end, stride), [&] { trap(mask_bits, std::uint32_t(abi::Fault::stack_overflow)); }, false);

    const Operand& arguments = inst[Role::a];
    std::vector<std::optional<lower::LaneArray>> values(list_size(arguments) - (graph_.stack_goes_up ? 1 : 0));
    for (unsigned i = 0; i < values.size(); ++i) {
        const Operand& argument = element(arguments, i);
        const bool is_block = argument.kind == Operand::Kind::variable && argument.scope == ptx::VariableScope::frame;
        if (is_block || argument.kind == Operand::Kind::none || argument.kind == Operand::Kind::sink) continue;
        llvm::Value* value = lanes(argument);
        if (value->getType()->getScalarSizeInBits() > function.parameters[i].size * 8)
            value = ir_.CreateTrunc(value, lanes_type(ir_.getIntNTy(unsigned(function.parameters[i].size * 8))));
        values[i].emplace(*this, value);
    }
    for_lanes([&](llvm::Value* lane) {
        for (unsigned i = 0; i < values.size(); ++i) {
            const Operand& argument = element(arguments, i);
            llvm::Value* destination = place(block.parameter_offsets.at(i), lane);
            if (values[i]) {
                ir_.CreateAlignedStore(values[i]->get(lane), pointer(destination), llvm::Align(1));
            } else if (argument.kind == Operand::Kind::variable) {
                std::uint64_t bytes = std::min(graph_.locals.at(argument.index).size, function.parameters[i].size);
                copy_block(destination, address_of_lane(variable_address(argument), lane), bytes);
            }
        }
    });
    llvm::Value* bits = ir_.CreateTrunc(mask_bits, ir_.getIntNTy(width_));
    ir_.CreateCall(unit_.callee(callee), {cta_context_, step_, bits, offset});
    const Operand& results = inst[Role::d];
    std::vector<std::optional<lower::LaneArray>> returned(list_size(results));
    for (unsigned i = 0; i < returned.size(); ++i) {
        const Operand& result = element(results, i);
        if (result.kind != Operand::Kind::reg) continue;
        llvm::Type* lanes = lanes_type(type(graph_.values[result.index].type));
        returned[i].emplace(*this, llvm::PoisonValue::get(lanes));
    }
    for_lanes([&](llvm::Value* lane) {
        for (unsigned i = 0; i < returned.size(); ++i) {
            const Operand& result = element(results, i);
            llvm::Value* source = place(block.return_offsets.at(i), lane);
            if (returned[i]) {
                llvm::Type* scalar = type(graph_.values[result.index].type);
                returned[i]->set(lane, ir_.CreateAlignedLoad(scalar, pointer(source), llvm::Align(1)));
            } else if (result.kind == Operand::Kind::variable && result.scope == ptx::VariableScope::frame) {
                std::uint64_t bytes = std::min(graph_.locals.at(result.index).size, function.returns[i].size);
                copy_block(address_of_lane(variable_address(result), lane), source, bytes);
            }
        }
    });
    for (unsigned i = 0; i < returned.size(); ++i)
        if (returned[i]) store_call_result(element(results, i), returned[i]->vector(), mask);
}

} // namespace ptarmigan::translator
