// SPDX-License-Identifier: Apache-2.0
// Collectives of a warp that return a value to each lane: votes, match, redux, elect, activemask (manual 9.7.13.8 to
// 9.7.13.14). shfl is in shuffles.cpp. With 32 lanes per step they are inline code on lane masks; narrower steps ask
// the runtime, which suspends the fiber until all members have arrived.
#include "translator/lower/collective_call.h"
#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

namespace {

/// Active lanes as an i32 mask over the warp; only for steps of a whole warp.
Value* active_word(WarpEmitter& e) {
    return e.ir().CreateTrunc(e.active_bits(), e.ir().getInt32Ty());
}

Value* mask_word(WarpEmitter& e, Value* mask) {
    return e.ir().CreateTrunc(e.to_bits(mask), e.ir().getInt32Ty());
}

/// Ballot over all steps of the warp, for steps narrower than it.
Value* ballot(WarpEmitter& e, const Instruction& inst, Value* predicate) {
    CollectiveCallBuffer call(e, abi::Collective::vote_ballot, 0);
    call.set_members(inst);
    call.set_source(predicate);
    call.run();
    return call.result(e.ir().getInt32Ty());
}

LaneValue is_zero(WarpEmitter& e, Value* lanes, bool wanted) {
    Value* zero = llvm::Constant::getNullValue(lanes->getType());
    return LaneValue::varying(wanted ? e.ir().CreateICmpEQ(lanes, zero) : e.ir().CreateICmpNE(lanes, zero));
}

void lower_vote(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    Word mode = inst.one_of({Word::all, Word::any, Word::uni, Word::ballot});
    Value* holds = ir.CreateAnd(e.lanes(inst[Role::a]), e.active());
    LaneValue result;
    if (!whole_warp(e)) {
        // Every mode follows from ballots; `all` is "nobody says no".
        Value* refuses = ir.CreateAnd(ir.CreateNot(holds), e.active());
        if (mode == Word::ballot) {
            result = LaneValue::varying(ballot(e, inst, holds));
        } else {
            LaneValue some, every;
            if (mode != Word::all) some = is_zero(e, ballot(e, inst, holds), false);
            if (mode != Word::any) every = is_zero(e, ballot(e, inst, refuses), true);
            if (mode == Word::uni)
                result = e.apply({some, every}, [](Ir& b, Values v) { return b.CreateOr(b.CreateNot(v[0]), v[1]); });
            else
                result = mode == Word::any ? some : every;
        }
    } else {
        LaneValue yes = LaneValue::uniform(mask_word(e, holds));
        result = e.apply({yes, participants(e, inst)}, [&](Ir& b, Values v) -> Value* {
            Value *votes = b.CreateAnd(v[0], v[1]), *voters = v[1];
            Value* none = b.CreateICmpEQ(votes, integer(votes, 0));
            Value* all = b.CreateICmpEQ(votes, voters);
            switch (mode) {
            case Word::ballot: return votes;
            case Word::any: return b.CreateNot(none);
            case Word::all: return all;
            default: return b.CreateOr(all, none);
            }
        });
    }
    e.write(inst[mode == Word::ballot ? Role::d : Role::p], result);
}

/// Handles one distinct value of `key` among the lanes at a time: `body` gets the i32 mask of active lanes that hold
/// the same key as the first lane left, and returns the scalar result for all of them.
Value* for_each_group(WarpEmitter& e, Value* key, llvm::Type* result_type,
                      llvm::function_ref<Value*(Value* group, Value* key)> body) {
    Ir& ir = e.ir();
    llvm::Type* vector = e.lanes_type(result_type);
    Value* active = active_word(e);
    llvm::BasicBlock* before = ir.GetInsertBlock();
    llvm::BasicBlock* loop = e.new_block("group.loop");
    llvm::BasicBlock* done = e.new_block("group.done");
    ir.CreateCondBr(ir.CreateICmpNE(active, ir.getInt32(0)), loop, done);
    ir.SetInsertPoint(loop);
    llvm::PHINode* left = ir.CreatePHI(ir.getInt32Ty(), 2, "lanes.left");
    llvm::PHINode* results = ir.CreatePHI(vector, 2, "group.results");
    left->addIncoming(active, before);
    results->addIncoming(llvm::Constant::getNullValue(vector), before);
    Value* leader = e.first_lane(ir.CreateZExt(left, ir.getInt64Ty()));
    Value* own = ir.CreateExtractElement(key, leader);
    Value* same = ir.CreateICmpEQ(key, e.splat(own));
    Value* group = ir.CreateAnd(mask_word(e, same), left);
    Value* value = body(group, own);
    Value* merged = ir.CreateSelect(same, e.splat(value), results);
    Value* rest = ir.CreateAnd(left, ir.CreateNot(group));
    llvm::BasicBlock* end = ir.GetInsertBlock();
    left->addIncoming(rest, end);
    results->addIncoming(merged, end);
    ir.CreateCondBr(ir.CreateICmpNE(rest, ir.getInt32(0)), loop, done);
    ir.SetInsertPoint(done);
    llvm::PHINode* all = ir.CreatePHI(vector, 2);
    all->addIncoming(llvm::Constant::getNullValue(vector), before);
    all->addIncoming(merged, end);
    return all;
}

void match_any(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    Value* key = to_bits(ir, e.lanes(inst[Role::a]));
    if (!whole_warp(e)) {
        CollectiveCallBuffer call(e, abi::Collective::match_any, 0);
        call.set_members(inst);
        call.set_source(key);
        call.run();
        e.write(inst[Role::d], LaneValue::varying(call.result(ir.getInt32Ty())));
        return;
    }
    const LaneValue members = participants(e, inst);
    Value* groups = for_each_group(e, key, ir.getInt32Ty(), [](Value* group, Value*) { return group; });
    e.write(inst[Role::d],
            e.apply({LaneValue::varying(groups), members}, [](Ir& b, Values v) { return b.CreateAnd(v[0], v[1]); }));
}

void match_all(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    Value* key = to_bits(ir, e.lanes(inst[Role::a]));
    LaneValue mask, agree;
    if (!whole_warp(e)) {
        CollectiveCallBuffer call(e, abi::Collective::match_all, 0);
        call.set_members(inst);
        call.set_source(key);
        call.run();
        mask = LaneValue::varying(call.result(ir.getInt32Ty()));
        agree = LaneValue::varying(ir.CreateICmpNE(call.predicate(), e.splat(ir.getInt32(0))));
    } else {
        LaneValue members = participants(e, inst);
        if (members.is_uniform()) {
            // One group: compare everybody with its first lane.
            Value* group = members.base;
            Value* leader = e.first_lane(ir.CreateZExt(group, ir.getInt64Ty()));
            Value* same = mask_word(e, ir.CreateICmpEQ(key, e.splat(ir.CreateExtractElement(key, leader))));
            agree = LaneValue::uniform(ir.CreateICmpEQ(ir.CreateAnd(same, group), group));
        } else {
            Value* groups = for_each_group(e, key, ir.getInt32Ty(), [](Value* group, Value*) { return group; });
            agree = e.apply({LaneValue::varying(groups), members},
                            [](Ir& b, Values v) { return b.CreateICmpEQ(b.CreateAnd(v[0], v[1]), v[1]); });
        }
        mask = e.apply({agree, members}, [](Ir& b, Values v) { return b.CreateSelect(v[0], v[1], integer(v[1], 0)); });
    }
    e.write(inst[Role::d], mask);
    e.write(inst[Role::p], agree);
}

/// Kind of a reduction: CollectiveCall::operation for the integer ones.
enum class Reduction : std::uint32_t { add, min_s, max_s, min_u, max_u, and_, or_, xor_ };

Reduction reduction_of(const Instruction& inst) {
    bool is_signed = ptx::is_signed(inst.type());
    switch (inst.one_of({Word::add, Word::min, Word::max, Word::and_, Word::or_, Word::xor_})) {
    case Word::min: return is_signed ? Reduction::min_s : Reduction::min_u;
    case Word::max: return is_signed ? Reduction::max_s : Reduction::max_u;
    case Word::and_: return Reduction::and_;
    case Word::or_: return Reduction::or_;
    case Word::xor_: return Reduction::xor_;
    default: return Reduction::add;
    }
}

/// Reduces the lanes of `group` (i32 mask).
Value* reduce(WarpEmitter& e, Reduction kind, Value* value, Value* group) {
    Ir& ir = e.ir();
    std::uint32_t identity = 0;
    if (kind == Reduction::min_s) identity = 0x7fffffff;
    if (kind == Reduction::max_s) identity = 0x80000000;
    if (kind == Reduction::min_u || kind == Reduction::and_) identity = 0xffffffff;
    Value* lanes = e.from_bits(ir.CreateZExt(group, ir.getInt64Ty()));
    Value* input = ir.CreateSelect(lanes, value, integer(value, identity));
    switch (kind) {
    case Reduction::add: return ir.CreateAddReduce(input);
    case Reduction::min_s: return ir.CreateIntMinReduce(input, true);
    case Reduction::max_s: return ir.CreateIntMaxReduce(input, true);
    case Reduction::min_u: return ir.CreateIntMinReduce(input, false);
    case Reduction::max_u: return ir.CreateIntMaxReduce(input, false);
    case Reduction::and_: return ir.CreateAndReduce(input);
    case Reduction::or_: return ir.CreateOrReduce(input);
    default: return ir.CreateXorReduce(input);
    }
}

/// Runs `body` once when all lanes have the same members, else once per distinct mask.
LaneValue per_members(WarpEmitter& e, const Instruction& inst, llvm::Type* type,
                      llvm::function_ref<Value*(Value* group)> body) {
    LaneValue members = participants(e, inst);
    if (members.is_uniform()) return LaneValue::uniform(body(members.base));
    return LaneValue::varying(
        for_each_group(e, e.broadcast(members), type, [&](Value* group, Value*) { return body(group); }));
}

/// Ordered as integers: -0 below +0, as the manual asks.
Value* order_key(Ir& ir, Value* bits) {
    Value* negative = ir.CreateAShr(bits, integer(bits, 31));
    return ir.CreateXor(bits, ir.CreateLShr(negative, integer(bits, 1)));
}

/// redux.sync.{min,max}{.abs}{.NaN}.f32 on a whole warp: an integer reduction over ordered bits; NaNs left out or
/// winning.
LaneValue redux_float(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    bool is_min = inst.has(Word::min);
    Value* input = e.lanes(inst[Role::a]);
    if (inst.has(Word::abs)) input = absolute(ir, input);
    Value* nan = is_nan(ir, input);
    Value* key = order_key(ir, to_bits(ir, input));
    return per_members(e, inst, ir.getFloatTy(), [&](Value* group) -> Value* {
        Value* numbers = ir.CreateAnd(group, mask_word(e, ir.CreateNot(nan)));
        Value* best = reduce(e, is_min ? Reduction::min_s : Reduction::max_s, key, numbers);
        Value* result = ir.CreateBitCast(order_key(ir, best), ir.getFloatTy());
        Value* is_bad =
            inst.has(Word::NaN) ? ir.CreateICmpNE(numbers, group) : ir.CreateICmpEQ(numbers, ir.getInt32(0));
        return ir.CreateSelect(is_bad, canonical_nan(result), result);
    });
}

} // namespace

void vote(WarpEmitter& e, const Instruction& inst) {
    lower_vote(e, inst);
}

void vote_sync(WarpEmitter& e, const Instruction& inst) {
    lower_vote(e, inst);
}

void join_votes(WarpEmitter& e, unsigned count, llvm::function_ref<const Instruction&(unsigned)> begin) {
    Ir& ir = e.ir();
    Value* holds = ir.getInt64(0);
    for (unsigned i = count; i-- != 0;) { // the call has the first one's line
        const Instruction& inst = begin(i);
        Value* own = e.only_lane(e.lanes(inst[Role::a]));
        if (inst.has(Word::all)) own = ir.CreateNot(own); // "nobody says no"
        holds = ir.CreateOr(holds, ir.CreateShl(ir.CreateZExt(own, ir.getInt64Ty()), i));
    }
    CollectiveCallBuffer call(e, abi::Collective::vote_ballot, count);
    call.set_source(holds);
    call.run();
    Value* words = ir.CreateIntToPtr(e.only_lane(call.result(ir.getInt64Ty())), ir.getPtrTy());
    for (unsigned i = 0; i < count; ++i) {
        const Instruction& inst = begin(i);
        Value* place = ir.CreateConstInBoundsGEP1_64(ir.getInt32Ty(), words, i);
        Value* votes = e.splat(ir.CreateAlignedLoad(ir.getInt32Ty(), place, llvm::Align(4)));
        if (inst.form == ptx::FormId::vote_sync_ballot)
            e.write(inst[Role::d], LaneValue::varying(votes));
        else
            e.write(inst[Role::p], is_zero(e, votes, inst.has(Word::all)));
    }
}

void match_sync(WarpEmitter& e, const Instruction& inst) {
    if (inst.has(Word::all))
        match_all(e, inst);
    else
        match_any(e, inst);
}

void redux_sync(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    bool is_float = inst.type() == ScalarType::f32;
    if (!whole_warp(e)) {
        constexpr std::uint32_t min_f32 = 8, max_f32 = 9, abs = 2, nan = 4;
        const std::uint32_t operation = is_float ? (inst.has(Word::min) ? min_f32 : max_f32) +
                                                       (inst.has(Word::abs) ? abs : 0) + (inst.has(Word::NaN) ? nan : 0)
                                                 : std::uint32_t(reduction_of(inst));
        CollectiveCallBuffer call(e, abi::Collective::redux, operation);
        call.set_members(inst);
        call.set_source(to_bits(ir, e.lanes(inst[Role::a])));
        call.run();
        if (is_float) {
            Value* bits = call.result(ir.getInt32Ty());
            e.write(inst[Role::d], LaneValue::varying(ir.CreateBitCast(bits, e.lanes_type(ir.getFloatTy()))));
            return;
        }
        e.write(inst[Role::d], LaneValue::varying(call.result(ir.getInt32Ty())));
        return;
    }
    if (is_float) {
        e.write(inst[Role::d], redux_float(e, inst));
        return;
    }
    Value* input = e.lanes(inst[Role::a]);
    e.write(inst[Role::d], per_members(e, inst, ir.getInt32Ty(),
                                       [&](Value* group) { return reduce(e, reduction_of(inst), input, group); }));
}

/// Any set of the lanes that are here together would do. Narrow steps ask the runtime which others are.
void activemask(WarpEmitter& e, const Instruction& inst) {
    if (!whole_warp(e)) {
        CollectiveCallBuffer call(e, abi::Collective::activemask, 0);
        Value* rounds = e.round_numbers();
        call.set_source(rounds ? rounds : e.splat(e.ir().getInt64(0)));
        call.run();
        e.write(inst[Role::d], LaneValue::varying(call.result(e.ir().getInt32Ty())));
        return;
    }
    e.write(inst[Role::d], LaneValue::uniform(active_word(e)));
}

/// The lowest member is elected.
void elect_sync(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    LaneValue leader;
    if (!whole_warp(e)) {
        CollectiveCallBuffer call(e, abi::Collective::elect, 0);
        call.set_members(inst);
        call.run();
        leader = LaneValue::varying(call.result(ir.getInt32Ty()));
    } else {
        leader = e.apply({participants(e, inst)}, [](Ir& b, Values v) {
            return b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, v[0], b.getFalse());
        });
    }
    e.write(inst[Role::d], leader);
    Value* own = ir.CreateAdd(e.splat(ir.CreateAnd(e.first_thread(), ir.getInt32(31))), lane_numbers(e));
    e.write(inst[Role::p], LaneValue::varying(ir.CreateICmpEQ(e.broadcast(leader), own)));
}

} // namespace ptarmigan::translator::lower
