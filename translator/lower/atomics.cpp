// SPDX-License-Identifier: Apache-2.0
// atom and red (manual 9.7.13.5, 9.7.13.6). Active lanes go one after the other, in order. Some cases are better:
//   one address, integer operation   the warp's values are combined first: one access
//   one address, float addition      the lanes' additions in order, in registers: one access
//   shared memory                    a cluster runs on one thread at a time, so plain accesses are atomic
//   ... at distinct affine addresses  likewise, as one vector load and store
//   neighbours in global memory       16 bytes at once: atomic_runs.h
#include "translator/kernel_abi.h"
#include "translator/lower/access_mark.h"
#include "translator/lower/atomic_runs.h"
#include "translator/lower/lane_array.h"
#include "translator/lower/memory_access.h"

#include <algorithm>

namespace ptarmigan::translator::lower {

using ptx::StateSpace;
using Kind = AtomicOperation::Kind;

namespace {

llvm::AtomicOrdering ordering_of(const Instruction& inst) {
    switch (inst.one_of({Word::acquire, Word::release, Word::acq_rel})) {
    case Word::acquire: return llvm::AtomicOrdering::Acquire;
    case Word::release: return llvm::AtomicOrdering::Release;
    case Word::acq_rel: return llvm::AtomicOrdering::AcquireRelease;
    default: return llvm::AtomicOrdering::Monotonic;
    }
}

/// i1: the address lies in the CTA's shared window.
Value* is_shared(WarpEmitter& e, Value* address) {
    Ir& ir = e.ir();
    Value* base = e.context_field(ir.getInt64Ty(), offsetof(abi::CtaContext, shared), "shared");
    Value* size = e.context_field(ir.getInt64Ty(), offsetof(abi::CtaContext, shared_window_size), "shared.size");
    return ir.CreateICmpULT(ir.CreateSub(address, base), size);
}

/// Compare-and-swap of `next(old)` until it holds, for operations that the CPU lacks. Returns the value before.
Value* swap_loop(WarpEmitter& e, const AtomicAccess& access, Value* at, llvm::function_ref<Value*(Value*)> next_of) {
    Ir& ir = e.ir();
    llvm::Type* type = ir.getIntNTy(access.operation.bits());
    llvm::Align alignment(access.operation.bits() / 8);
    llvm::LoadInst* first = ir.CreateAlignedLoad(type, at, alignment);
    first->setAtomic(llvm::AtomicOrdering::Monotonic);
    llvm::BasicBlock* before = ir.GetInsertBlock();
    llvm::BasicBlock* loop = e.new_block("swap.loop");
    llvm::BasicBlock* done = e.new_block("swap.done");
    ir.CreateBr(loop);
    ir.SetInsertPoint(loop);
    llvm::PHINode* old = ir.CreatePHI(type, 2);
    old->addIncoming(first, before);
    Value* next = next_of(old);
    Value* pair = ir.CreateAtomicCmpXchg(at, old, next, alignment, access.ordering, llvm::AtomicOrdering::Monotonic);
    old->addIncoming(ir.CreateExtractValue(pair, 0), ir.GetInsertBlock());
    ir.CreateCondBr(ir.CreateExtractValue(pair, 1), done, loop);
    ir.SetInsertPoint(done);
    return old;
}

Value* native_atomic(WarpEmitter& e, const AtomicAccess& access, Value* at, Value* b) {
    using Op = llvm::AtomicRMWInst::BinOp;
    bool is_signed = ptx::is_signed(access.operation.type);
    Op op = Op::Add;
    switch (access.operation.kind) {
    case Kind::min: op = is_signed ? Op::Min : Op::UMin; break;
    case Kind::max: op = is_signed ? Op::Max : Op::UMax; break;
    case Kind::bit_and: op = Op::And; break;
    case Kind::bit_or: op = Op::Or; break;
    case Kind::bit_xor: op = Op::Xor; break;
    case Kind::exch: op = Op::Xchg; break;
    default: break;
    }
    return e.ir().CreateAtomicRMW(op, at, b, llvm::Align(access.operation.bits() / 8), access.ordering);
}

/// One lane's operation; returns the value before.
Value* perform(WarpEmitter& e, const AtomicAccess& access, Value* address, Value* b, Value* c) {
    Ir& ir = e.ir();
    Value* at = pointer(e, address);
    llvm::Align alignment(access.operation.bits() / 8);
    if (access.private_memory) {
        llvm::LoadInst* old = ir.CreateAlignedLoad(b->getType(), at, alignment);
        tag_space(e, old, access.address.space);
        llvm::StoreInst* store =
            ir.CreateAlignedStore(combine(e, access.operation, old, b, c, ir.getTrue()), at, alignment);
        tag_space(e, store, access.address.space);
        return old;
    }
    if (access.operation.kind == Kind::cas) {
        Value* pair = ir.CreateAtomicCmpXchg(at, b, c, alignment, access.ordering,
                                             llvm::AtomicCmpXchgInst::getStrongestFailureOrdering(access.ordering));
        return ir.CreateExtractValue(pair, 0);
    }
    // No CPU increments with a bound (and LLVM's AArch64 back end does not expand it).
    bool bounded = access.operation.kind == Kind::inc || access.operation.kind == Kind::dec;
    bool bits_only = access.operation.kind == Kind::exch;
    if (bits_only || (!access.operation.is_float() && !bounded)) return native_atomic(e, access, at, b);
    Value* shared = shared_condition(e, access, address);
    return swap_loop(e, access, at, [&](Value* old) { return combine(e, access.operation, old, b, nullptr, shared); });
}

/// One address, integers: one access with the combined value; each lane's result follows from those before it.
Value* at_one_address(WarpEmitter& e, const AtomicAccess& access) {
    Ir& ir = e.ir();
    Value* values = e.broadcast(access.b);
    if (!e.all_active()) values = ir.CreateSelect(e.active(), values, integer(values, access.operation.identity()));
    std::optional<AccessMark> mark;
    if (e.all_active()) mark.emplace(e, of_all_lanes(e));
    auto access_memory = [&] {
        return perform(e, access, access.address.address.base, reduce_lanes(e, access.operation, values), nullptr);
    };
    Value* old = e.all_active() ? access_memory() : e.if_else(e.any(e.active()), access_memory, [&]() -> Value* {
        return ir.getIntN(access.operation.bits(), 0);
    });
    // Dropped by LLVM when nobody reads it.
    return combine(e, access.operation, e.splat(old), exclusive_prefixes(e, access.operation, values), nullptr,
                   nullptr);
}

/// One address, floats: the additions of the active lanes in order, but one access to memory. Null without results.
Value* chain_at_one_address(WarpEmitter& e, const AtomicAccess& access, bool wants_result) {
    Ir& ir = e.ir();
    llvm::Type* type = ir.getIntNTy(access.operation.bits());
    Value* address = access.address.address.base;
    Value* at = pointer(e, address);
    std::optional<LaneArray> values, results;
    if (!access.b.is_uniform()) values.emplace(e, e.broadcast(access.b));
    if (wants_result) results.emplace(e, llvm::Constant::getNullValue(e.lanes_type(type)));
    Value* shared = access.private_memory ? ir.getTrue() : shared_condition(e, access, address);
    Value* lanes = e.active_bits();
    llvm::AllocaInst* sum = e.entry_alloca(type, "sum"); // becomes a register
    auto chain = [&](Value* old) -> Value* {
        ir.CreateStore(old, sum);
        e.for_each_lane(lanes, [&](Value* lane) {
            Value* before = ir.CreateLoad(type, sum);
            if (results) results->set(lane, before);
            Value* b = values ? values->get(lane) : access.b.base;
            ir.CreateStore(combine(e, access.operation, before, b, nullptr, shared), sum);
        });
        return ir.CreateLoad(type, sum);
    };
    e.if_then(ir.CreateICmpNE(lanes, ir.getInt64(0)), [&] {
        if (!access.private_memory) {
            swap_loop(e, access, at, chain);
            return;
        }
        llvm::Align alignment(access.operation.bits() / 8);
        llvm::LoadInst* old = ir.CreateAlignedLoad(type, at, alignment);
        tag_space(e, old, access.address.space);
        tag_space(e, ir.CreateAlignedStore(chain(old), at, alignment), access.address.space);
    });
    return results ? results->vector() : nullptr;
}

/// Lanes at addresses known to be distinct, not guarded.
bool distinct_lanes(const LaneAddress& address, unsigned bytes) {
    if (!address.address.is_affine() || address.guard || address.address.stride) return false;
    LaneOffsets offsets = *address.address.shape.offsets;
    std::sort(offsets.begin(), offsets.end());
    for (std::size_t i = 1; i < offsets.size(); ++i)
        if (offsets[i] - offsets[i - 1] < std::int64_t(bytes)) return false;
    return true;
}

/// All lanes at once in private memory.
Value* as_vector(WarpEmitter& e, const AtomicAccess& access) {
    Ir& ir = e.ir();
    MemoryAccess memory;
    memory.address = access.address;
    memory.element = ir.getIntNTy(access.operation.bits());
    memory.bytes = access.operation.bits() / 8;
    LaneValue old = load_lanes(e, memory).front();
    Value* c = access.operation.kind == Kind::cas ? e.broadcast(access.c) : nullptr;
    Value* next = combine(e, access.operation, e.broadcast(old), e.broadcast(access.b), c, ir.getTrue());
    store_lanes(e, memory, LaneValue::varying(next));
    return e.broadcast(old);
}

/// Calls `body` with the numbers of all lanes, one after the other. Without looking for set bits a lane takes a cycle
/// less, and of eight rounds the CPU foresees the end, of 32 it does not.
void for_all_lanes(WarpEmitter& e, llvm::function_ref<void(Value*)> body) {
    Ir& ir = e.ir();
    llvm::BasicBlock* before = ir.GetInsertBlock();
    llvm::BasicBlock* loop = e.new_block("all.lanes.loop");
    llvm::BasicBlock* done = e.new_block("all.lanes.done");
    ir.CreateBr(loop);
    ir.SetInsertPoint(loop);
    llvm::PHINode* lane = ir.CreatePHI(ir.getInt32Ty(), 2, "lane");
    lane->addIncoming(ir.getInt32(0), before);
    const unsigned at_a_time = std::min(e.width(), 4u);
    for (unsigned i = 0; i < at_a_time; ++i) body(i == 0 ? lane : ir.CreateAdd(lane, ir.getInt32(i)));
    Value* next = ir.CreateAdd(lane, ir.getInt32(at_a_time));
    lane->addIncoming(next, ir.GetInsertBlock());
    ir.CreateCondBr(ir.CreateICmpULT(next, ir.getInt32(e.width())), loop, done);
    ir.SetInsertPoint(done);
}

/// All lanes, one after the other, at `places` (<W x i32>) in the CTA's shared memory, where none faults: nobody needs
/// to know whose turn it is.
Value* all_in_own_memory(WarpEmitter& e, const AtomicAccess& access, Value* window, Value* places, bool wants_result) {
    Ir& ir = e.ir();
    const LaneArray place_array(e, places);
    std::optional<LaneArray> values, replacements, results;
    if (!access.b.is_uniform()) values.emplace(e, e.broadcast(access.b));
    const bool is_cas = access.operation.kind == Kind::cas;
    if (is_cas && !access.c.is_uniform()) replacements.emplace(e, e.broadcast(access.c));
    llvm::Type* type = ir.getIntNTy(access.operation.bits());
    if (wants_result) results.emplace(e, llvm::Constant::getNullValue(e.lanes_type(type)));
    for_all_lanes(e, [&](Value* lane) {
        Value* b = values ? values->get(lane) : access.b.base;
        Value* c = !is_cas ? nullptr : replacements ? replacements->get(lane) : access.c.base;
        Value* address = ir.CreateAdd(window, ir.CreateZExt(place_array.get(lane), ir.getInt64Ty()));
        Value* old = perform(e, access, address, b, c);
        if (results) results->set(lane, old);
    });
    return results ? results->vector() : nullptr;
}

/// i1: lanes at these distances from shared address 0 access nothing but the CTA's own memory. (Not so in clusters, but
/// for the first CTA of each.)
Value* are_own_memory(WarpEmitter& e, Value* distances, unsigned bytes) {
    Ir& ir = e.ir();
    Value* size = e.context_field(ir.getInt32Ty(), offsetof(abi::CtaContext, shared_size), "shared.size");
    Value* low = ir.CreateTrunc(distances, e.lanes_type(ir.getInt32Ty()));
    Value* farthest = ir.CreateZExt(ir.CreateIntMaxReduce(low), ir.getInt64Ty());
    // Mostly known to be zero.
    Value* high = ir.CreateOrReduce(ir.CreateLShr(distances, e.splat(ir.getInt64(32))));
    return ir.CreateAnd(
        ir.CreateICmpEQ(high, ir.getInt64(0)),
        ir.CreateICmpULE(ir.CreateAdd(farthest, ir.getInt64(bytes)), ir.CreateZExt(size, ir.getInt64Ty())));
}

/// Lane after lane.
Value* lane_by_lane(WarpEmitter& e, const AtomicAccess& access, bool wants_result);

/// Likewise, with a faster way for whole steps in shared memory.
Value* lane_by_lane_in_private(WarpEmitter& e, const AtomicAccess& access, bool wants_result) {
    Ir& ir = e.ir();
    Value* window = e.context_field(ir.getInt64Ty(), offsetof(abi::CtaContext, shared), "shared");
    Value* distances = ir.CreateSub(e.broadcast(access.address.address), e.splat(window));
    Value* places = ir.CreateTrunc(distances, e.lanes_type(ir.getInt32Ty()));
    Value* fits = are_own_memory(e, distances, access.operation.bits() / 8);
    if (!e.all_active()) { // lanes that are not have any address, poison too
        Value* all = ir.getInt64(e.width() == 64 ? ~0ull : (1ull << e.width()) - 1);
        fits = ir.CreateLogicalAnd(ir.CreateICmpEQ(e.active_bits(), all), fits);
    }
    return e.if_else(
        fits, [&] { return all_in_own_memory(e, access, window, places, wants_result); },
        [&] { return lane_by_lane(e, access, wants_result); });
}

Value* lane_by_lane(WarpEmitter& e, const AtomicAccess& access, bool wants_result) {
    Ir& ir = e.ir();
    llvm::Type* type = ir.getIntNTy(access.operation.bits());
    LaneArray addresses(e, e.broadcast(access.address.address));
    std::optional<LaneArray> values, replacements, results;
    if (!access.b.is_uniform()) values.emplace(e, e.broadcast(access.b));
    bool is_cas = access.operation.kind == Kind::cas;
    if (is_cas && !access.c.is_uniform()) replacements.emplace(e, e.broadcast(access.c));
    if (wants_result) results.emplace(e, llvm::Constant::getNullValue(e.lanes_type(type)));
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        const AccessMark mark(e, note_lane(e, lane));
        Value* b = values ? values->get(lane) : access.b.base;
        Value* c = !is_cas ? nullptr : replacements ? replacements->get(lane) : access.c.base;
        Value* old = perform(e, access, addresses.get(lane), b, c);
        if (results) results->set(lane, old);
    });
    return results ? results->vector() : nullptr;
}

Value* carry_out(WarpEmitter& e, const AtomicAccess& access, bool wants_result) {
    if (access.address.address.is_uniform() && access.operation.is_associative()) return at_one_address(e, access);
    if (access.address.address.is_uniform() && access.operation.is_float() && access.operation.kind == Kind::add)
        return chain_at_one_address(e, access, wants_result);
    bool fits = access.operation.bits() <= 64;
    if (access.private_memory && fits && distinct_lanes(access.address, access.operation.bits() / 8))
        return as_vector(e, access);
    // Without mask registers blocks come in two versions, one of which has all lanes active.
    const bool may_be_whole = e.all_active() || e.options().target.avx512;
    if (access.private_memory && fits && e.width() > 1 && may_be_whole &&
        e.options().optimization != Optimization::least)
        return lane_by_lane_in_private(e, access, wants_result);
    if (!wants_result && do_in_runs(e, access, [&] { lane_by_lane(e, access, false); })) return nullptr;
    return lane_by_lane(e, access, wants_result);
}

LaneValue as_integer(WarpEmitter& e, const LaneValue& value) {
    return e.apply({value}, [](Ir& ir, Values v) { return to_bits(ir, v[0]); });
}

LaneAddress offset_by(WarpEmitter& e, LaneAddress address, unsigned bytes) {
    if (!bytes) return address;
    Ir& ir = e.ir();
    Value* offset = ir.getInt64(bytes);
    address.address.base =
        ir.CreateAdd(address.address.base, address.address.shape.is_varying() ? e.splat(offset) : offset);
    return address;
}

void lower_atomic(WarpEmitter& e, const Instruction& inst) {
    StateSpace space = inst.space == StateSpace::none ? StateSpace::generic : inst.space;
    AtomicAccess access;
    access.operation = atomic_operation(inst, space);
    access.ordering = ordering_of(inst);
    access.private_memory = space == StateSpace::shared;
    LaneAddress address = e.address(inst[Role::a], space);
    const ptx::Operand& d = inst[Role::d];
    const ptx::Operand& b = inst[Role::b];
    bool is_vector = b.kind == ptx::Operand::Kind::vector;
    unsigned count = is_vector ? b.count : 1;
    for (unsigned k = 0; k < count; ++k) {
        access.address = offset_by(e, address, k * access.operation.bits() / 8);
        access.b = as_integer(e, e.read(is_vector ? e.element(b, k) : b));
        if (access.operation.kind == Kind::cas) access.c = as_integer(e, e.read(inst[Role::c]));
        const ptx::Operand& target = d.kind == ptx::Operand::Kind::vector ? e.element(d, k) : d;
        bool wants_result = target.kind == ptx::Operand::Kind::reg;
        Value* old = carry_out(e, access, wants_result);
        if (wants_result) e.write(target, LaneValue::varying(old));
    }
}

} // namespace

Value* shared_condition(WarpEmitter& e, const AtomicAccess& access, Value* address) {
    return access.operation.adder == AtomicOperation::Adder::by_address ? is_shared(e, address) : nullptr;
}

void atom(WarpEmitter& e, const Instruction& inst) {
    lower_atomic(e, inst);
}

void red(WarpEmitter& e, const Instruction& inst) {
    lower_atomic(e, inst);
}

} // namespace ptarmigan::translator::lower
