// SPDX-License-Identifier: Apache-2.0
// ld, ldu, st: manual 9.7.9.8 to 9.7.9.11. How lanes reach memory is decided in memory_access.cpp.
#include "translator/analysis/memory/access_groups.h"
#include "translator/lower/access_mark.h"
#include "translator/lower/lane_array.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/memory_access.h"

namespace ptarmigan::translator::lower {

using ptx::StateSpace;

namespace {

Strength strength_of(const Instruction& inst) {
    switch (inst.one_of({Word::acquire, Word::release, Word::relaxed, Word::volatile_})) {
    case Word::acquire: return Strength::acquire;
    case Word::release: return Strength::release;
    case Word::relaxed:
    case Word::volatile_: return Strength::relaxed;
    default: return Strength::weak;
    }
}

StateSpace space_of(const Instruction& inst) {
    return inst.space == StateSpace::none ? StateSpace::generic : inst.space;
}

/// Kernel parameters and constants don't change while a kernel runs; .nc promises the same.
bool is_invariant(WarpEmitter& e, const Instruction& inst, const LaneAddress& address) {
    if (inst.has(Word::nc) || address.space == StateSpace::constant) return true;
    // Parameters of calls live in local memory, lane by lane, and do change; with one lane they look uniform too.
    return address.space == StateSpace::param && address.address.is_uniform() && e.width() > 1;
}

MemoryAccess access_of(WarpEmitter& e, const Instruction& inst, unsigned count) {
    MemoryAccess access;
    access.address = e.address(inst[Role::a], space_of(inst));
    access.address.space = space_of(inst);
    access.element = e.type(inst.type());
    access.bytes = ptx::byte_size(inst.type());
    access.count = count;
    access.strength = strength_of(inst);
    return access;
}

bool is_vector(const ptx::Operand& operand) {
    return operand.kind == ptx::Operand::Kind::vector;
}

/// 128-bit elements are moved as pairs of 64-bit ones: low half first in memory.
void split_halves(WarpEmitter& e, MemoryAccess& access) {
    access.element = e.ir().getInt64Ty();
    access.bytes = 8;
    access.count *= 2;
}

LaneValue join_halves(WarpEmitter& e, const LaneValue& low, const LaneValue& high) {
    return e.apply({low, high}, [&](Ir& ir, Values v) {
        llvm::Type* wide = typed(ir.getInt128Ty(), v[0]);
        Value* upper = ir.CreateShl(ir.CreateZExt(v[1], wide), e.constant_like(ir.getInt128Ty(), 64, v[1]));
        return ir.CreateOr(ir.CreateZExt(v[0], wide), upper);
    });
}

LaneValue half_of(WarpEmitter& e, const LaneValue& value, unsigned index) {
    return e.apply({value}, [&](Ir& ir, Values v) {
        Value* bits = index ? ir.CreateLShr(v[0], e.constant_like(ir.getInt128Ty(), 64, v[0])) : v[0];
        return ir.CreateTrunc(bits, typed(ir.getInt64Ty(), v[0]));
    });
}

llvm::AtomicOrdering ordering_of(Strength strength) {
    return strength == Strength::acquire   ? llvm::AtomicOrdering::Acquire
           : strength == Strength::release ? llvm::AtomicOrdering::Release
                                           : llvm::AtomicOrdering::Monotonic;
}

/// A strong access of more than one element is one atomic access per lane, as on the hardware: programs keep a status
/// word and its data in one vector (the tile states of CUB's look-back) and would see one without the other. `bits` in
/// all.
LaneValue load_wide_atomic(WarpEmitter& e, const MemoryAccess& access, unsigned bits) {
    Ir& ir = e.ir();
    llvm::Type* whole = ir.getIntNTy(bits);
    LaneArray addresses(e, e.broadcast(access.address.address));
    LaneArray results(e, llvm::Constant::getNullValue(e.lanes_type(whole)));
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        const AccessMark mark(e, note_lane(e, lane));
        llvm::LoadInst* load =
            ir.CreateAlignedLoad(whole, pointer(e, addresses.get(lane)), llvm::Align(bits / 8), /*isVolatile=*/true);
        load->setAtomic(ordering_of(access.strength));
        results.set(lane, load);
    });
    return LaneValue::varying(results.vector());
}

void store_wide_atomic(WarpEmitter& e, const MemoryAccess& access, const LaneValue& value) {
    Ir& ir = e.ir();
    unsigned bytes = value.base->getType()->getScalarSizeInBits() / 8;
    LaneArray addresses(e, e.broadcast(access.address.address));
    LaneArray values(e, e.broadcast(value));
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        const AccessMark mark(e, note_lane(e, lane));
        llvm::StoreInst* store = ir.CreateAlignedStore(values.get(lane), pointer(e, addresses.get(lane)),
                                                       llvm::Align(bytes), /*isVolatile=*/true);
        store->setAtomic(ordering_of(access.strength));
    });
}

/// Strong vectors of up to 128 bits are single accesses.
bool is_single_access(const MemoryAccess& access, unsigned count) {
    return !access.address.interleaved && access.strength != Strength::weak && (count > 1 || access.bytes == 16) &&
           access.bytes * count <= 16;
}

/// Element `index` of `bits` bits of a wide integer, and the wide integer of several elements.
LaneValue element_of(WarpEmitter& e, const LaneValue& whole, unsigned index, unsigned bits) {
    return e.apply({whole}, [&](Ir& ir, Values v) {
        Value* shifted = index ? ir.CreateLShr(v[0], integer(v[0], std::uint64_t(index) * bits)) : v[0];
        return resize(ir, shifted, bits, false);
    });
}

LaneValue join_elements(WarpEmitter& e, const LaneValue& whole, const LaneValue& element, unsigned index, unsigned bits,
                        unsigned total_bits) {
    return e.apply({whole, element}, [&](Ir& ir, Values v) {
        Value* wide = resize(ir, resize(ir, to_bits(ir, v[1]), bits, false), total_bits, false);
        return ir.CreateOr(v[0], ir.CreateShl(wide, integer(wide, std::uint64_t(index) * bits)));
    });
}

/// Makes all loads of a group at its first one. False if they are better made one by one.
bool load_group(WarpEmitter& e, const Instruction& inst) {
    llvm::ArrayRef<const Instruction*> group = e.loads_with(inst);
    if (group.empty() || !loads_lane_by_lane(e, access_of(e, inst, 1))) return false;
    MemoryAccess access = access_of(e, *group.front(), unsigned(group.size()));
    access.element = e.ir().getIntNTy(access.bytes * 8);
    access.element_aligned = true;
    llvm::SmallVector<LaneValue, 8> values = load_lanes(e, access);
    for (unsigned k = 0; k < group.size(); ++k) {
        llvm::Type* element = e.type(group[k]->type());
        e.set_early_load(*group[k], e.apply({values[k]}, [&](Ir& ir, Values v) {
            return ir.CreateBitCast(v[0], e.like(element, v[0]));
        }));
    }
    return true;
}

/// A value that is stored, out of sight of passes that see a load of it: LLVM's sums of constants have other NaNs. No
/// instruction. As floats, whose fences stay whatever is behind them (llvm/drop_idle_fences).
LaneValue stored_value(WarpEmitter& e, const ptx::Operand& operand) {
    const LaneValue value = e.read(operand);
    if (!e.hides_stored_value() || e.options().optimization == Optimization::least) return value;
    return e.apply({value}, [&](Ir& ir, Values v) -> Value* {
        llvm::Type* const type = v[0]->getType();
        const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
        const unsigned bits = type->getScalarSizeInBits() * (vector ? vector->getNumElements() : 1);
        const unsigned floats = (bits + 31) / 32;
        llvm::Type* const real = floats == 1 ? ir.getFloatTy() : llvm::FixedVectorType::get(ir.getFloatTy(), floats);
        llvm::Type* const whole = ir.getIntNTy(floats * 32);
        Value* given = v[0];
        if (bits != floats * 32) given = ir.CreateZExt(ir.CreateBitCast(given, ir.getIntNTy(bits)), whole);
        Value* hidden = ir.CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {real}, {ir.CreateBitCast(given, real)});
        if (bits != floats * 32) hidden = ir.CreateTrunc(ir.CreateBitCast(hidden, whole), ir.getIntNTy(bits));
        return ir.CreateBitCast(hidden, type);
    });
}

/// Makes the stores of a group where the last of them stands.
void store_group(WarpEmitter& e, const AccessGroup& group) {
    MemoryAccess access = access_of(e, *group.accesses.front(), unsigned(group.accesses.size()));
    access.element = e.ir().getIntNTy(access.bytes * 8);
    access.element_aligned = true;
    llvm::SmallVector<LaneValue, 8> values;
    for (const Instruction* store : group.accesses)
        values.push_back(
            e.apply({stored_value(e, (*store)[Role::b])}, [&](Ir& ir, Values v) { return to_bits(ir, v[0]); }));
    store_lanes(e, access, values);
}

/// The place of element `index` where the elements of a lane do not lie together.
LaneAddress element_address(WarpEmitter& e, const Instruction& inst, const MemoryAccess& access, unsigned index) {
    ptx::Operand place = inst[Role::a];
    place.value += std::uint64_t(index) * access.bytes;
    return e.address(place, access.address.space);
}

llvm::SmallVector<LaneValue, 8> load_elements(WarpEmitter& e, const Instruction& inst, const MemoryAccess& access) {
    if (!access.address.interleaved || access.count == 1) return load_lanes(e, access);
    llvm::SmallVector<LaneValue, 8> values;
    MemoryAccess element = access;
    element.count = 1;
    for (unsigned k = 0; k < access.count; ++k) {
        element.address = element_address(e, inst, access, k);
        values.push_back(load_lanes(e, element).front());
    }
    return values;
}

void store_elements(WarpEmitter& e, const Instruction& inst, const MemoryAccess& access,
                    llvm::ArrayRef<LaneValue> values) {
    if (!access.address.interleaved || access.count == 1) return store_lanes(e, access, values);
    MemoryAccess element = access;
    element.count = 1;
    for (unsigned k = 0; k < access.count; ++k) {
        element.address = element_address(e, inst, access, k);
        store_lanes(e, element, values[k]);
    }
}

} // namespace

void ld(WarpEmitter& e, const Instruction& inst) {
    const ptx::Operand& d = inst[Role::d];
    if (e.early_load(inst) || load_group(e, inst)) {
        e.write(d, *e.early_load(inst));
        return;
    }
    unsigned count = is_vector(d) ? d.count : 1;
    MemoryAccess access = access_of(e, inst, count);
    access.invariant = access.strength == Strength::weak && is_invariant(e, inst, access.address);
    bool wide = access.bytes == 16;
    if (is_single_access(access, count)) {
        LaneValue whole = load_wide_atomic(e, access, access.bytes * count * 8);
        for (unsigned k = 0; k < count; ++k)
            e.write(is_vector(d) ? e.element(d, k) : d, element_of(e, whole, k, access.bytes * 8));
        return;
    }
    if (wide) split_halves(e, access);
    llvm::SmallVector<LaneValue, 8> values = load_elements(e, inst, access);
    for (unsigned k = 0; k < count; ++k) {
        LaneValue value = wide ? join_halves(e, values[2 * k], values[2 * k + 1]) : values[k];
        e.write(is_vector(d) ? e.element(d, k) : d, value);
    }
}

void st(WarpEmitter& e, const Instruction& inst) {
    if (const AccessGroup* group = e.store_group(inst)) {
        if (group->place == &inst) store_group(e, *group);
        return;
    }
    const ptx::Operand& b = inst[Role::b];
    unsigned count = is_vector(b) ? b.count : 1;
    MemoryAccess access = access_of(e, inst, count);
    bool wide = access.bytes == 16;
    if (is_single_access(access, count)) {
        unsigned total_bits = access.bytes * count * 8;
        LaneValue whole = LaneValue::uniform(llvm::ConstantInt::get(e.ir().getIntNTy(total_bits), 0));
        for (unsigned k = 0; k < count; ++k)
            whole =
                join_elements(e, whole, e.read(is_vector(b) ? e.element(b, k) : b), k, access.bytes * 8, total_bits);
        store_wide_atomic(e, access, whole);
        return;
    }
    llvm::SmallVector<LaneValue, 8> values;
    for (unsigned k = 0; k < count; ++k) {
        LaneValue value = stored_value(e, is_vector(b) ? e.element(b, k) : b);
        if (wide) {
            values.push_back(half_of(e, value, 0));
            values.push_back(half_of(e, value, 1));
        } else {
            values.push_back(value);
        }
    }
    if (wide) split_halves(e, access);
    store_elements(e, inst, access, values);
}

} // namespace ptarmigan::translator::lower
