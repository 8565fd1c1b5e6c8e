// SPDX-License-Identifier: Apache-2.0
// shfl and shfl.sync (manual 9.7.9.5, 9.7.9.6): constant patterns become shufflevector, others a permute by a
// vector of lane numbers.
#include "translator/lower/collective_call.h"
#include "translator/lower/lane_array.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/lane_pointers.h"

#include <llvm/IR/IntrinsicsX86.h>

namespace ptarmigan::translator::lower {

namespace {

/// CollectiveCall::operation of the modes.
std::uint32_t mode_number(Word mode) {
    switch (mode) {
    case Word::up: return 0;
    case Word::down: return 1;
    case Word::bfly: return 2;
    default: return 3;
    }
}

struct Source {
    Value* lane;     ///< <W x i32>: lane to read
    Value* in_range; ///< <W x i1>
};

/// The manual's rule, lane by lane: the source lane, or the own one when it is out of the segment.
Source source_lanes(WarpEmitter& e, Word mode, Value* b, Value* c) {
    Ir& ir = e.ir();
    auto low5 = [&](Value* v) { return ir.CreateAnd(v, integer(v, 31)); };
    Value* lane = lane_numbers(e);
    Value* offset = low5(b);
    Value* segment = low5(ir.CreateLShr(c, integer(c, 8)));
    Value* rest = ir.CreateXor(segment, integer(segment, 31));
    Value* first = ir.CreateAnd(lane, segment);
    Value* last = ir.CreateOr(first, ir.CreateAnd(low5(c), rest));
    Value* from;
    switch (mode) {
    case Word::up: from = ir.CreateSub(lane, offset); break;
    case Word::down: from = ir.CreateAdd(lane, offset); break;
    case Word::bfly: from = ir.CreateXor(lane, offset); break;
    default: from = ir.CreateOr(first, ir.CreateAnd(offset, rest)); break;
    }
    Value* in_range = mode == Word::up ? ir.CreateICmpSGE(from, last) : ir.CreateICmpSLE(from, last);
    return {ir.CreateSelect(in_range, from, lane), in_range};
}

/// permute_lanes() by permutations of registers of 8 lanes: each part of the result picks from all four, by bits 3 and
/// 4 of the lanes' numbers.
Value* permute_registers(WarpEmitter& e, Value* value, Value* lanes) {
    constexpr unsigned count = 8;
    Ir& ir = e.ir();
    llvm::SmallVector<Value*, 8> sources, results;
    for (unsigned first = 0; first < e.width(); first += count) sources.push_back(cut_lanes(ir, value, first, count));
    for (unsigned first = 0; first < e.width(); first += count) {
        Value* index = cut_lanes(ir, lanes, first, count);
        llvm::SmallVector<Value*, 4> picked;
        for (Value* source : sources)
            picked.push_back(ir.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permd, {}, {source, index}));
        for (unsigned bit = 3; picked.size() > 1; ++bit) {
            // The bit as a sign, which is what a blend looks at.
            Value* sign = ir.CreateShl(index, integer(index, 31 - bit));
            Value* upper = ir.CreateICmpSLT(sign, llvm::Constant::getNullValue(sign->getType()));
            llvm::SmallVector<Value*, 4> merged;
            for (unsigned i = 0; i + 1 < picked.size(); i += 2)
                merged.push_back(ir.CreateSelect(upper, picked[i + 1], picked[i]));
            picked = merged;
        }
        results.push_back(picked[0]);
    }
    return join_lanes(ir, results);
}

/// value[lanes[l]] for each lane l of a whole warp.
Value* permute_lanes(WarpEmitter& e, Value* value, Value* lanes) {
    Ir& ir = e.ir();
    if (auto* constant = llvm::dyn_cast<llvm::Constant>(lanes)) {
        llvm::SmallVector<int, 32> mask;
        for (unsigned lane = 0; lane < e.width(); ++lane) {
            auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getAggregateElement(lane));
            if (!number) break;
            mask.push_back(int(number->getZExtValue()));
        }
        if (mask.size() == e.width()) return ir.CreateShuffleVector(value, mask);
    }
    const TargetCpu& target = e.options().target;
    if (!target.avx512 && has_avx2(target)) return permute_registers(e, value, lanes);
    if (!target.avx512) {
        LaneArray array(e, value);
        Value* result = llvm::Constant::getNullValue(value->getType());
        for (std::uint64_t lane = 0; lane < e.width(); ++lane)
            result = ir.CreateInsertElement(result, array.get(ir.CreateExtractElement(lanes, lane)), lane);
        return result;
    }
    // Two registers of 16 lanes; each result half picks from both.
    llvm::SmallVector<int, 16> low, high, both;
    for (int i = 0; i < 16; ++i) {
        low.push_back(i);
        high.push_back(16 + i);
    }
    for (int i = 0; i < 32; ++i) both.push_back(i);
    Value* first = ir.CreateShuffleVector(value, low);
    Value* second = ir.CreateShuffleVector(value, high);
    auto half = [&](llvm::ArrayRef<int> which) {
        Value* index = ir.CreateShuffleVector(lanes, which);
        return ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_d_512, {}, {first, index, second});
    };
    return ir.CreateShuffleVector(half(low), half(high), both);
}

void lower_shuffle(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    Word mode = inst.one_of({Word::up, Word::down, Word::bfly, Word::idx});
    LaneValue a = e.read(inst[Role::a]);
    const ptx::Operand& p = inst[Role::p];
    if (!whole_warp(e)) {
        CollectiveCallBuffer call(e, abi::Collective::shfl, mode_number(mode));
        call.set_members(inst);
        call.set_source(to_bits(ir, e.broadcast(a)));
        call.set_b(e.lanes(inst[Role::b]));
        call.set_c(e.lanes(inst[Role::c]));
        call.run();
        e.write(inst[Role::d], LaneValue::varying(call.result(ir.getInt32Ty())));
        e.write(p, LaneValue::varying(ir.CreateICmpNE(call.predicate(), e.splat(ir.getInt32(0)))));
        return;
    }
    const LaneValue from = e.read(inst[Role::b]);
    Source source = source_lanes(e, mode, e.broadcast(from), e.lanes(inst[Role::c]));
    participants(e, inst); // refuses lanes that the mask does not name
    Value* value = to_bits(ir, e.broadcast(a));
    const bool all_take_part = e.all_active();
    // A lane that takes no part gives 0, whatever it has in the register: undefined by the manual, constant on GPUs.
    if (!all_take_part) value = ir.CreateSelect(e.active(), value, llvm::Constant::getNullValue(value->getType()));
    const ptx::Operand& segment = inst[Role::c];
    constexpr std::uint64_t segment_bits = 0x1f1f, all_lanes = 0x1f;
    if (mode == Word::idx && from.is_uniform() && segment.kind == ptx::Operand::Kind::imm &&
        (segment.value & segment_bits) == all_lanes) {
        Value* lane = ir.CreateAnd(from.base, integer(from.base, 31));
        e.write(inst[Role::d], LaneValue::uniform(ir.CreateExtractElement(value, lane)));
        e.write(p, LaneValue::uniform(ir.getTrue()));
        return;
    }
    Value* result = a.is_uniform() && all_take_part ? value : permute_lanes(e, value, source.lane);
    e.write(inst[Role::d], LaneValue::varying(result));
    e.write(p, LaneValue::varying(source.in_range));
}

} // namespace

void shfl(WarpEmitter& e, const Instruction& inst) {
    lower_shuffle(e, inst);
}

void shfl_sync(WarpEmitter& e, const Instruction& inst) {
    lower_shuffle(e, inst);
}

} // namespace ptarmigan::translator::lower
