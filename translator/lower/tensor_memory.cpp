// SPDX-License-Identifier: Apache-2.0
// tcgen05 (manual 9.7.16): a call of the runtime's tensor memory for all lanes. Loads and stores move each lane's own
// words, so narrow steps need nothing of each other but to be in step with the rest of the warp; what a warp does as a
// whole, the step with its first lane does.
#include "translator/lower/async_call.h"
#include "translator/lower/call_buffer.h"
#include "translator/lower/collective_call.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/mbarrier_call.h"

namespace ptarmigan::translator::lower {

using abi::TensorMemoryCall;
using abi::TensorMemoryCopy;
using abi::TensorMemoryKind;
using abi::TensorMemoryOperation;
using abi::TensorMemoryReduction;
using abi::TensorMemoryShape;
using ptx::Operand;

namespace {

constexpr std::size_t array_bytes = abi::warp_size * sizeof(std::uint32_t);

/// An abi::TensorMemoryCall on the stack.
class TensorMemoryBuffer : private PassingCallBuffer {
public:
    TensorMemoryBuffer(WarpEmitter& e, const Instruction& inst, TensorMemoryOperation operation)
        : PassingCallBuffer(e, sizeof(TensorMemoryCall), 64) {
        static_assert(sizeof(TensorMemoryCall) % 8 == 0);
        for (const std::size_t offset : {offsetof(TensorMemoryCall, detail), offsetof(TensorMemoryCall, registers),
                                         offsetof(TensorMemoryCall, split), offsetof(TensorMemoryCall, reduction),
                                         offsetof(TensorMemoryCall, unpacks), offsetof(TensorMemoryCall, scales),
                                         offsetof(TensorMemoryCall, halvings)})
            set_number(offset, 0);
        set_number(offsetof(TensorMemoryCall, operation), std::uint32_t(operation));
        set_number(offsetof(TensorMemoryCall, line), inst.location.line);
        if (inst.has(Word::cta_group_2)) add_flags(TensorMemoryCall::pair);
    }

    void add_flags(std::uint32_t flags) { flags_ |= flags; }
    void set_number(std::size_t offset, std::uint64_t number) { store_number(offset, number); }
    /// 32 bits of an address in tensor memory or of a value; an operand that is not written leaves zeros.
    void set_words(std::size_t offset, const Operand& operand) { set(offset, operand, 32); }
    void set_wide(std::size_t offset, const Operand& operand) { set(offset, operand, 64); }
    void set_place(const Operand& operand, ptx::StateSpace space) {
        store_lanes(offsetof(TensorMemoryCall, place), e_.broadcast(e_.address(operand, space).address));
    }
    void set_data(llvm::Value* data) { store(offsetof(TensorMemoryCall, data), data); }

    /// For the active lanes. `first_only`: by the step that has the warp's first lane.
    void run(bool first_only = false) {
        Ir& ir = e_.ir();
        set_number(offsetof(TensorMemoryCall, flags), flags_);
        store(offsetof(TensorMemoryCall, active), e_.active_bits());
        const auto call = [&] { call_always(offsetof(abi::Services, tensor_memory)); };
        Value* condition = e_.all_active() ? nullptr : e_.any(e_.active());
        if (first_only && !whole_warp(e_)) {
            Value* lane = ir.CreateAnd(e_.first_thread(), ir.getInt32(abi::warp_size - 1));
            Value* is_first = ir.CreateICmpEQ(lane, ir.getInt32(0));
            condition = condition ? ir.CreateAnd(condition, is_first) : is_first;
        }
        if (condition)
            e_.if_then(condition, call);
        else
            call();
    }

private:
    void set(std::size_t offset, const Operand& operand, unsigned bits) {
        Ir& ir = e_.ir();
        llvm::Type* type = e_.lanes_type(ir.getIntNTy(bits));
        if (operand.kind == Operand::Kind::none)
            store_lanes(offset, llvm::Constant::getNullValue(type));
        else if (operand.kind == Operand::Kind::address) // in tensor memory: a number
            store_lanes(offset,
                        ir.CreateZExtOrTrunc(e_.broadcast(e_.address(operand, ptx::StateSpace::global).address), type));
        else
            store_lanes(offset, bits_of(operand, bits));
    }

    std::uint32_t flags_ = 0;
};

TensorMemoryShape shape_of(const Instruction& inst) {
    if (inst.has(Word::shape_16x64b)) return TensorMemoryShape::lanes_16x64b;
    if (inst.has(Word::shape_16x128b)) return TensorMemoryShape::lanes_16x128b;
    if (inst.has(Word::shape_16x256b)) return TensorMemoryShape::lanes_16x256b;
    if (inst.has(Word::shape_16x32bx2)) return TensorMemoryShape::lanes_16x32bx2;
    return TensorMemoryShape::lanes_32x32b;
}

TensorMemoryReduction reduction_of(const Instruction& inst) {
    if (!inst.has(Word::red)) return TensorMemoryReduction::none;
    const bool is_max = inst.has(Word::max);
    switch (inst.type()) {
    case ScalarType::f32: return is_max ? TensorMemoryReduction::max_f : TensorMemoryReduction::min_f;
    case ScalarType::s32: return is_max ? TensorMemoryReduction::max_s : TensorMemoryReduction::min_s;
    default: return is_max ? TensorMemoryReduction::max_u : TensorMemoryReduction::min_u;
    }
}

/// The registers of a load or store: [register][lane of 32].
class Registers : private PassingCallBuffer {
public:
    Registers(WarpEmitter& e, unsigned count) : PassingCallBuffer(e, std::size_t{count} * array_bytes, 64) {}

    Value* begin() { return buffer_; }
    void set(unsigned index, const Operand& operand) {
        store_lanes(index * array_bytes, operand.kind == Operand::Kind::sink
                                             ? llvm::Constant::getNullValue(e_.lanes_type(e_.ir().getInt32Ty()))
                                             : bits_of(operand, 32));
    }
    void write(unsigned index, const Operand& operand) {
        if (operand.kind != Operand::Kind::reg) return;
        Ir& ir = e_.ir();
        Value* lanes = ir.CreateFreeze(load_lanes(index * array_bytes, ir.getInt32Ty()));
        llvm::Type* type = e_.type(operand.type);
        if (type->isFloatingPointTy()) lanes = ir.CreateBitCast(lanes, e_.lanes_type(type));
        e_.write(operand, LaneValue::varying(lanes));
    }
};

TensorMemoryKind kind_of(const Instruction& inst) {
    switch (inst.one_of(
        {Word::kind_f16, Word::kind_tf32, Word::kind_f8f6f4, Word::kind_i8, Word::kind_mxf8f6f4, Word::kind_mxf4})) {
    case Word::kind_f16: return TensorMemoryKind::f16;
    case Word::kind_tf32: return TensorMemoryKind::tf32;
    case Word::kind_f8f6f4: return TensorMemoryKind::f8f6f4;
    case Word::kind_i8: return TensorMemoryKind::i8;
    case Word::kind_mxf8f6f4: return TensorMemoryKind::mxf8f6f4;
    case Word::kind_mxf4: return TensorMemoryKind::mxf4;
    default: return TensorMemoryKind::mxf4nvf4;
    }
}

/// Scales of a row of A (manual 9.7.16.10.7.1).
unsigned scales_of(const Instruction& inst) {
    if (!inst.has(Word::block_scale)) return 0;
    if (inst.has(Word::scale_vec_4X) || inst.has(Word::block16)) return 4;
    return kind_of(inst) == TensorMemoryKind::mxf8f6f4 ? 1 : 2;
}

TensorMemoryCopy copy_of(const Instruction& inst) {
    if (inst.has(Word::shape_128x256b)) return TensorMemoryCopy::rows_128x256b;
    if (inst.has(Word::shape_128x128b)) return TensorMemoryCopy::rows_128x128b;
    if (inst.has(Word::shape_4x256b)) return TensorMemoryCopy::rows_4x256b;
    if (inst.has(Word::shape_32x128b)) return TensorMemoryCopy::rows_32x128b;
    return inst.has(Word::warpx2_02_13) ? TensorMemoryCopy::rows_64x128b_02_13 : TensorMemoryCopy::rows_64x128b_01_23;
}

} // namespace

void tmem_allocate(WarpEmitter& e, const Instruction& inst) {
    meet_in_warp(e);
    TensorMemoryBuffer call(e, inst, TensorMemoryOperation::allocate);
    call.set_place(inst[Role::d], space_in_shared_memory(inst, inst[Role::d]));
    call.set_words(offsetof(TensorMemoryCall, count), inst[Role::count]);
    call.run(true);
    meet_in_warp(e);
}

void tmem_free(WarpEmitter& e, const Instruction& inst) {
    meet_in_warp(e);
    TensorMemoryBuffer call(e, inst, TensorMemoryOperation::free);
    call.set_words(offsetof(TensorMemoryCall, d), inst[Role::a]);
    call.set_words(offsetof(TensorMemoryCall, count), inst[Role::count]);
    call.run(true);
}

void tmem_relinquish(WarpEmitter& e, const Instruction& inst) {
    meet_in_warp(e);
    TensorMemoryBuffer(e, inst, TensorMemoryOperation::relinquish).run(true);
}

void tmem_load(WarpEmitter& e, const Instruction& inst) {
    meet_in_warp(e);
    const Operand& registers = inst[Role::d];
    const unsigned count = registers.element_count();
    const TensorMemoryReduction reduction = reduction_of(inst);
    Registers data(e, count + (reduction != TensorMemoryReduction::none));
    {
        TensorMemoryBuffer call(e, inst, TensorMemoryOperation::load);
        call.set_words(offsetof(TensorMemoryCall, d), inst[Role::a]);
        call.set_number(offsetof(TensorMemoryCall, detail), std::uint32_t(shape_of(inst)));
        call.set_number(offsetof(TensorMemoryCall, registers), count);
        call.set_number(offsetof(TensorMemoryCall, split), inst[Role::split].value);
        call.set_number(offsetof(TensorMemoryCall, reduction), std::uint32_t(reduction));
        if (inst.has(Word::pack_16b)) call.add_flags(TensorMemoryCall::packed);
        if (inst.has(Word::abs)) call.add_flags(TensorMemoryCall::absolute);
        if (inst.has(Word::NaN)) call.add_flags(TensorMemoryCall::keeps_nan);
        call.set_data(data.begin());
        call.run();
    }
    for (unsigned i = 0; i < count; ++i) data.write(i, e.element(registers, i));
    if (reduction != TensorMemoryReduction::none) data.write(count, inst[Role::redval]);
}

void tmem_store(WarpEmitter& e, const Instruction& inst) {
    meet_in_warp(e);
    const Operand& registers = inst[Role::b];
    const unsigned count = registers.element_count();
    Registers data(e, count);
    for (unsigned i = 0; i < count; ++i) data.set(i, e.element(registers, i));
    TensorMemoryBuffer call(e, inst, TensorMemoryOperation::store);
    call.set_words(offsetof(TensorMemoryCall, d), inst[Role::a]);
    call.set_number(offsetof(TensorMemoryCall, detail), std::uint32_t(shape_of(inst)));
    call.set_number(offsetof(TensorMemoryCall, registers), count);
    call.set_number(offsetof(TensorMemoryCall, split), inst[Role::split].value);
    if (inst.has(Word::unpack_16b)) call.add_flags(TensorMemoryCall::packed);
    call.set_data(data.begin());
    call.run();
}

/// Loads and stores are done when they are started; the lanes of the warp wait for each other's.
void tmem_wait(WarpEmitter& e, const Instruction&) {
    meet_in_warp(e);
}

/// What a thread has started is done in its order, and barriers order what others see of it.
void tmem_fence(WarpEmitter&, const Instruction&) {}

void tmem_copy(WarpEmitter& e, const Instruction& inst) {
    TensorMemoryBuffer call(e, inst, TensorMemoryOperation::copy);
    call.set_words(offsetof(TensorMemoryCall, d), inst[Role::a]);
    call.set_wide(offsetof(TensorMemoryCall, b), inst[Role::b]);
    call.set_number(offsetof(TensorMemoryCall, detail), std::uint32_t(copy_of(inst)));
    call.set_number(offsetof(TensorMemoryCall, unpacks), inst.has(Word::b6x16_p32)   ? 6
                                                         : inst.has(Word::b4x16_p64) ? 4
                                                                                     : 0);
    call.run();
}

void tmem_shift(WarpEmitter& e, const Instruction& inst) {
    TensorMemoryBuffer call(e, inst, TensorMemoryOperation::shift);
    call.set_words(offsetof(TensorMemoryCall, d), inst[Role::a]);
    call.run();
}

void tmem_multiply(WarpEmitter& e, const Instruction& inst) {
    TensorMemoryBuffer call(e, inst, TensorMemoryOperation::multiply);
    call.set_number(offsetof(TensorMemoryCall, detail), std::uint32_t(kind_of(inst)));
    call.set_number(offsetof(TensorMemoryCall, scales), scales_of(inst));
    call.set_number(offsetof(TensorMemoryCall, halvings), inst[Role::scale_d].value);
    if (inst.has(Word::sp)) call.add_flags(TensorMemoryCall::sparse);
    if (inst.has(Word::ws)) call.add_flags(TensorMemoryCall::weight_stationary);
    if (inst.has(Word::ashift)) call.add_flags(TensorMemoryCall::shifted_a);
    if (inst[Role::a].kind == Operand::Kind::address) call.add_flags(TensorMemoryCall::a_in_tensor_memory);
    call.set_words(offsetof(TensorMemoryCall, d), inst[Role::d]);
    call.set_wide(offsetof(TensorMemoryCall, a), inst[Role::a]);
    call.set_wide(offsetof(TensorMemoryCall, b), inst[Role::b]);
    call.set_words(offsetof(TensorMemoryCall, descriptor), inst[Role::idesc]);
    call.set_words(offsetof(TensorMemoryCall, metadata), inst[Role::meta]);
    call.set_words(offsetof(TensorMemoryCall, scale_a), inst[Role::scale_a]);
    call.set_words(offsetof(TensorMemoryCall, scale_b), inst[Role::scale_b]);
    call.set_words(offsetof(TensorMemoryCall, accumulates), inst[Role::p]);
    if (inst[Role::zero_mask].kind != Operand::Kind::none) call.add_flags(TensorMemoryCall::has_zero_columns);
    call.set_wide(offsetof(TensorMemoryCall, zero_columns), inst[Role::zero_mask]);
    const Operand& lanes = inst[Role::lanes];
    if (lanes.kind != Operand::Kind::none) {
        call.add_flags(TensorMemoryCall::has_lanes);
        for (unsigned i = 0; i < 8; ++i)
            call.set_words(offsetof(TensorMemoryCall, lanes) + i * array_bytes,
                           i < lanes.element_count() ? e.element(lanes, i) : Operand{});
    }
    call.run();
}

void tmem_commit(WarpEmitter& e, const Instruction& inst) {
    TensorMemoryBuffer call(e, inst, TensorMemoryOperation::commit);
    call.set_place(inst[Role::mbar], space_in_shared_memory(inst, inst[Role::mbar]));
    call.set_words(offsetof(TensorMemoryCall, count), inst[Role::cta_mask]);
    if (inst.has(Word::multicast_cluster)) call.add_flags(TensorMemoryCall::multicast);
    call.run();
}

} // namespace ptarmigan::translator::lower
