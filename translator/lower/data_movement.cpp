// SPDX-License-Identifier: Apache-2.0
// mov, address conversions and hints: manual 9.7.9.3 to 9.7.9.4 and 9.7.9.15 to 9.7.9.24. ld and st are in
// memory.cpp, shfl in collectives.cpp, prmt in logic_shift.cpp, cvt in conversion.cpp.
#include "translator/kernel_abi.h"
#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

using ptx::StateSpace;

namespace {

/// Host address of offset 0 of the window of `space`.
LaneValue window_base(WarpEmitter& e, StateSpace space) {
    ptx::Operand zero;
    zero.kind = ptx::Operand::Kind::address;
    zero.base = ptx::Operand::Base::none;
    zero.type = ScalarType::u64;
    return e.address(zero, space).address;
}

LaneValue as_u64(WarpEmitter& e, const LaneValue& value, bool sign_extend) {
    if (value.base->getType()->getScalarSizeInBits() == 64) return value;
    return e.apply({value}, [&](Ir& ir, Values v) { return resize(ir, v[0], 64, sign_extend); });
}

/// a + b or a - b; adding a uniform value keeps the shape.
LaneValue shift_by(WarpEmitter& e, const LaneValue& a, const LaneValue& b, bool subtract) {
    Ir& ir = e.ir();
    auto combine = [&](Value* x, Value* y) { return subtract ? ir.CreateSub(x, y) : ir.CreateAdd(x, y); };
    if (b.is_uniform()) {
        LaneValue result = a;
        result.base = combine(a.base, a.shape.is_varying() ? e.splat(b.base) : b.base);
        return result;
    }
    if (a.is_uniform() && !subtract) return shift_by(e, b, a, false);
    return LaneValue::varying(combine(e.broadcast(a), e.broadcast(b)));
}

/// Spaces whose addresses are offsets in a window.
bool has_window(StateSpace space) {
    return space == StateSpace::shared || space == StateSpace::param;
}

/// address - base < size, unsigned: true inside.
LaneValue inside(WarpEmitter& e, const LaneValue& address, const LaneValue& base, Value* size) {
    return e.apply({address, base, LaneValue::uniform(size)},
                   [](Ir& b, Values v) { return b.CreateICmpULT(b.CreateSub(v[0], v[1]), v[2]); });
}

LaneValue pointer_field(WarpEmitter& e, unsigned offset) {
    Ir& ir = e.ir();
    return LaneValue::uniform(ir.CreatePtrToInt(e.context_field(ir.getPtrTy(), offset, "window"), ir.getInt64Ty()));
}

/// In the window of the whole cluster.
LaneValue inside_shared(WarpEmitter& e, const LaneValue& address) {
    Value* size = e.context_field(e.ir().getInt64Ty(), offsetof(abi::CtaContext, shared_window_size), "window.size");
    return inside(e, address, pointer_field(e, offsetof(abi::CtaContext, shared)), size);
}

LaneValue own_rank(WarpEmitter& e) {
    return LaneValue::uniform(
        e.context_field(e.ir().getInt32Ty(), offsetof(abi::CtaContext, cluster_ctarank), "cluster_ctarank"));
}

/// In the CTA's own part of it.
LaneValue inside_own_shared(WarpEmitter& e, const LaneValue& address) {
    if (e.cluster_size() == 1) return inside_shared(e, address);
    LaneValue offset = shift_by(e, address, window_base(e, StateSpace::shared), true);
    return e.apply({offset, own_rank(e)}, [](Ir& ir, Values v) {
        Value* rank = ir.CreateLShr(v[0], integer(v[0], abi::cluster_rank_bit));
        return ir.CreateICmpEQ(rank, resize(ir, v[1], 64, false));
    });
}

LaneValue inside_local(WarpEmitter& e, const LaneValue& address) {
    Value* size = e.context_field(e.ir().getInt64Ty(), offsetof(abi::CtaContext, local_window_size), "window.size");
    return inside(e, address, pointer_field(e, offsetof(abi::CtaContext, local)), size);
}

/// Kernel parameters.
LaneValue inside_params(WarpEmitter& e, const LaneValue& address) {
    Value* size = e.context_field(e.ir().getInt32Ty(), offsetof(abi::CtaContext, params_size), "params.size");
    return inside(e, address, pointer_field(e, offsetof(abi::CtaContext, params)),
                  e.ir().CreateZExt(size, e.ir().getInt64Ty()));
}

/// One of the module's .const variables; they don't lie side by side.
LaneValue inside_constants(WarpEmitter& e, const LaneValue& address) {
    LaneValue result = LaneValue::uniform(e.ir().getFalse());
    const std::vector<ptx::Variable>& variables = e.source().variables;
    for (std::uint32_t id = 0; id < variables.size(); ++id) {
        if (variables[id].space != StateSpace::constant) continue;
        ptx::Operand variable;
        variable.kind = ptx::Operand::Kind::variable;
        variable.scope = ptx::VariableScope::module;
        variable.index = id;
        variable.type = ScalarType::u64;
        const LaneValue hit = inside(e, address, e.read(variable), e.ir().getInt64(variables[id].size));
        result = e.apply({result, hit}, [](Ir& ir, Values v) { return ir.CreateOr(v[0], v[1]); });
    }
    return result;
}

} // namespace

void mov(WarpEmitter& e, const Instruction& inst) {
    e.write(inst[Role::d], e.read(inst[Role::a]));
}

/// All elements are read before the first is written: {a, b} may become {b, a}.
void mov_vector(WarpEmitter& e, const Instruction& inst) {
    const ptx::Operand& targets = inst[Role::d];
    std::vector<LaneValue> values;
    for (unsigned i = 0; i < targets.count; ++i) values.push_back(e.read(e.element(inst[Role::a], i)));
    for (unsigned i = 0; i < targets.count; ++i) {
        const ptx::Operand& target = e.element(targets, i);
        if (target.kind != ptx::Operand::Kind::sink) e.write(target, values[i]);
    }
}

void mov_pack(WarpEmitter& e, const Instruction& inst) {
    const ptx::Operand& parts = inst[Role::a];
    unsigned bits = ptx::bit_size(inst.type()), part_bits = bits / parts.count;
    LaneValue whole;
    for (unsigned i = 0; i < parts.count; ++i) {
        LaneValue part = e.apply({e.read(e.element(parts, i))}, [&](Ir& ir, Values v) {
            Value* raw = resize(ir, to_bits(ir, v[0]), part_bits, false);
            Value* placed = resize(ir, raw, bits, false);
            return i ? ir.CreateShl(placed, integer(placed, i * part_bits)) : placed;
        });
        whole = i ? e.apply({whole, part}, [](Ir& ir, Values v) { return ir.CreateOr(v[0], v[1]); }) : part;
    }
    e.write(inst[Role::d], whole);
}

void mov_unpack(WarpEmitter& e, const Instruction& inst) {
    const ptx::Operand& parts = inst[Role::d];
    unsigned part_bits = ptx::bit_size(inst.type()) / parts.count;
    LaneValue whole = e.read(inst[Role::a]);
    for (unsigned i = 0; i < parts.count; ++i) {
        const ptx::Operand& target = e.element(parts, i);
        if (target.kind == ptx::Operand::Kind::sink) continue;
        e.write(target, e.apply({whole}, [&](Ir& ir, Values v) {
            Value* raw = to_bits(ir, v[0]);
            if (i) raw = ir.CreateLShr(raw, integer(raw, i * part_bits));
            return resize(ir, raw, part_bits, false);
        }));
    }
}

/// Generic addresses are host addresses, and so are global, const and local ones.
void cvta(WarpEmitter& e, const Instruction& inst) {
    LaneValue address = e.read(inst[Role::a]);
    if (inst.space == StateSpace::local && (address.shape.is_varying() || e.width() == 1))
        address.base = e.whole_local_address(address.base);
    if (has_window(inst.space)) address = shift_by(e, as_u64(e, address, true), window_base(e, inst.space), false);
    e.write(inst[Role::d], address);
}

void cvta_to(WarpEmitter& e, const Instruction& inst) {
    LaneValue address = e.read(inst[Role::a]);
    if (has_window(inst.space)) address = shift_by(e, as_u64(e, address, false), window_base(e, inst.space), true);
    e.write(inst[Role::d], address);
}

void isspacep(WarpEmitter& e, const Instruction& inst) {
    LaneValue address = e.read(inst[Role::a]);
    LaneValue result;
    switch (inst.space) {
    case StateSpace::shared:
        result = inst.has(Word::shared_cluster) ? inside_shared(e, address) : inside_own_shared(e, address);
        break;
    case StateSpace::local: result = inside_local(e, address); break;
    case StateSpace::param: result = inside_params(e, address); break;
    case StateSpace::constant: result = inside_constants(e, address); break;
    default: // global, and that is what parameters are in as well (recorded)
        result = e.apply({inside_shared(e, address), inside_local(e, address), inside_constants(e, address)},
                         [](Ir& ir, Values v) { return ir.CreateNot(ir.CreateOr(ir.CreateOr(v[0], v[1]), v[2])); });
    }
    e.write(inst[Role::p], result);
}

namespace {

/// An address of mapa or getctarank as one of the shared window: offset and rank.
LaneValue in_window(WarpEmitter& e, const Instruction& inst) {
    const LaneValue address = e.read(inst[Role::a]);
    if (inst.space == StateSpace::shared) return address;
    return shift_by(e, as_u64(e, address, false), window_base(e, StateSpace::shared), true);
}

} // namespace

/// Ranks are bits of an address: going to another CTA's memory replaces them.
void mapa(WarpEmitter& e, const Instruction& inst) {
    LaneValue mapped = e.apply({in_window(e, inst), e.read(inst[Role::b])}, [](Ir& ir, Values v) {
        Value* rank = resize(ir, v[1], v[0]->getType()->getScalarSizeInBits(), false);
        Value* offset = ir.CreateAnd(v[0], integer(v[0], (1u << abi::cluster_rank_bit) - 1));
        return ir.CreateOr(offset, ir.CreateShl(rank, integer(rank, abi::cluster_rank_bit)));
    });
    if (inst.space != StateSpace::shared) mapped = shift_by(e, mapped, window_base(e, StateSpace::shared), false);
    const unsigned bits = ptx::bit_size(inst.type());
    e.write(inst[Role::d], e.apply({mapped}, [&](Ir& ir, Values v) { return resize(ir, v[0], bits, false); }));
}

void getctarank(WarpEmitter& e, const Instruction& inst) {
    e.write(inst[Role::d], e.apply({in_window(e, inst)}, [](Ir& ir, Values v) {
        return resize(ir, ir.CreateLShr(v[0], integer(v[0], abi::cluster_rank_bit)), 32, false);
    }));
}

/// Hints and profiler events.
void nothing(WarpEmitter&, const Instruction&) {}

} // namespace ptarmigan::translator::lower
