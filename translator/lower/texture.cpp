// SPDX-License-Identifier: Apache-2.0
// tex, tld4, txq (manual 9.7.10): the runtime's sampler does the work, lane by lane. A sampler of its own ([a, b, c])
// changes nothing: the driver's code takes the one in the texture's handle, whatever the other says (recorded), and
// does not load modules with .samplerref variables. But whole coordinates beside a sampler are those of a sample: ptxas
// converts them to floats.
#include "translator/lower/lane_math.h"
#include "translator/lower/texture_call.h"

namespace ptarmigan::translator::lower {

using abi::TextureCall;
using abi::TextureOperation;
using abi::TextureQuery;
using ptx::Operand;

namespace {

bool written(const Operand& operand) {
    return operand.kind != Operand::Kind::none;
}

/// Writes words of 32 bits (or their low 16) to the elements of a destination, zeros in lanes that are not in `where`.
void write_elements(WarpEmitter& e, const Operand& destination, TextureCallBuffer& call, unsigned count,
                    Value* where = nullptr) {
    Ir& ir = e.ir();
    for (unsigned i = 0; i < count; ++i) {
        const Operand& element = e.element(destination, i);
        if (element.kind == Operand::Kind::sink) continue;
        llvm::Type* type = e.type(element.type);
        Value* word = where ? ir.CreateSelect(where, call.data(i), e.splat(ir.getInt32(0))) : call.data(i);
        Value* bits = ir.CreateTrunc(word, e.lanes_type(ir.getIntNTy(type->getPrimitiveSizeInBits())));
        e.write(element, LaneValue::varying(ir.CreateBitCast(bits, e.lanes_type(type))));
    }
}

bool multi_sample(const Instruction& inst) {
    return inst.has(Word::dim_2dms) || inst.has(Word::a2dms);
}

/// <W x i1>: lanes that ask for the first sample; the textures that CUDA can make have no others, which read as zeros.
Value* first_sample(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    Value* sample = e.lanes(e.element(inst[Role::c], 0));
    return ir.CreateICmpEQ(sample, e.splat(ir.getInt32(0)));
}

/// Whole coordinates as floats; the number of a layer stays as it is.
void convert_coordinates(WarpEmitter& e, TextureCallBuffer& call, const Instruction& inst) {
    const Operand& list = inst[Role::c];
    const unsigned first = inst.has(Word::a1d) || inst.has(Word::a2d) || inst.has(Word::acube) ? 1 : 0;
    const unsigned count = std::min(list.element_count(), 4u);
    for (unsigned i = first; i < count; ++i) {
        const Operand& element = e.element(list, i);
        if (element.kind != Operand::Kind::sink)
            call.store(offsetof(TextureCall, coordinates), i,
                       e.ir().CreateSIToFP(e.lanes(element), e.lanes_type(e.ir().getFloatTy())));
    }
}

/// Coordinates, offsets and the value to compare with, which all fetches take.
std::uint32_t set_coordinates(TextureCallBuffer& call, const Instruction& inst) {
    std::uint32_t flags = 0;
    call.store_list(offsetof(TextureCall, coordinates), inst[Role::c], 4, multi_sample(inst) ? 1 : 0);
    if (written(inst[Role::e])) {
        call.store_list(offsetof(TextureCall, offset), inst[Role::e], 3);
        flags |= TextureCall::with_offset;
    }
    if (written(inst[Role::f])) {
        call.store_list(offsetof(TextureCall, comparison), inst[Role::f], 1);
        flags |= TextureCall::with_comparison;
    }
    return flags;
}

void write_residency(WarpEmitter& e, const Instruction& inst) {
    if (written(inst[Role::p]))
        e.write(inst[Role::p], LaneValue::varying(llvm::ConstantVector::getSplat(
                                   llvm::ElementCount::getFixed(e.width()), e.ir().getTrue())));
}

TextureQuery query_of(WarpEmitter& e, const Instruction& inst) {
    if (inst.has(Word::width)) return TextureQuery::width;
    if (inst.has(Word::height)) return TextureQuery::height;
    if (inst.has(Word::depth)) return TextureQuery::depth;
    e.unsupported("queries of objects other than their size, which the NVIDIA driver refuses too");
}

void query(WarpEmitter& e, const Instruction& inst, TextureOperation operation) {
    TextureCallBuffer call(e, inst, operation);
    call.set_handle(inst[Role::a]);
    call.set(offsetof(TextureCall, detail), std::uint32_t(query_of(e, inst)));
    const bool leveled = written(inst[Role::lod]);
    if (leveled) call.store_list(offsetof(TextureCall, level), inst[Role::lod], 1);
    call.set(offsetof(TextureCall, flags), leveled ? TextureCall::with_level : 0u);
    call.run();
    e.write(inst[Role::d], LaneValue::varying(call.data(0)));
}

} // namespace

void tex(WarpEmitter& e, const Instruction& inst) {
    TextureCallBuffer call(e, inst, TextureOperation::fetch);
    call.set(offsetof(TextureCall, geometry), std::uint32_t(geometry_of(e, inst)));
    call.set_handle(inst[Role::a]);
    std::uint32_t flags = set_coordinates(call, inst);
    const bool whole = inst.types[1] == ScalarType::s32, beside_sampler = written(inst[Role::b]);
    if (whole && beside_sampler)
        convert_coordinates(e, call, inst);
    else if (whole)
        flags |= TextureCall::integer_coordinates;
    if (inst.types[0] == ScalarType::f16) flags |= TextureCall::half_results;
    if (whole && beside_sampler && (multi_sample(inst) || written(inst[Role::lod])))
        e.unsupported("whole coordinates beside a sampler with a level or of multi-sample textures");
    if (multi_sample(inst) &&
        (inst.types[1] != ScalarType::s32 || written(inst[Role::lod]) || written(inst[Role::dpdx])))
        e.unsupported("multi-sample textures by coordinates that are no integers, levels or gradients");
    const bool packed = inst.types[0] == ScalarType::f16x2;
    if (packed) flags |= TextureCall::packed_results;
    if (written(inst[Role::lod])) {
        call.store_list(offsetof(TextureCall, level), inst[Role::lod], 1);
        flags |= TextureCall::with_level;
    }
    if (written(inst[Role::dpdx])) {
        call.store_list(offsetof(TextureCall, gradients), inst[Role::dpdx], 3);
        call.store_list(offsetof(TextureCall, gradients) + 3 * sizeof(TextureCall::level), inst[Role::dpdy], 3);
        flags |= TextureCall::with_gradients;
    }
    call.set(offsetof(TextureCall, flags), flags);
    call.run();
    write_elements(e, inst[Role::d], call, packed ? 2 : 4, multi_sample(inst) ? first_sample(e, inst) : nullptr);
    write_residency(e, inst);
}

void tld4(WarpEmitter& e, const Instruction& inst) {
    TextureCallBuffer call(e, inst, TextureOperation::gather);
    call.set(offsetof(TextureCall, geometry), std::uint32_t(geometry_of(e, inst)));
    call.set_handle(inst[Role::a]);
    const Word component = inst.one_of({Word::r, Word::g, Word::b, Word::a});
    call.set(offsetof(TextureCall, detail), component == Word::r   ? 0
                                            : component == Word::g ? 1
                                            : component == Word::b ? 2
                                                                   : 3);
    call.set(offsetof(TextureCall, flags), set_coordinates(call, inst));
    call.run();
    write_elements(e, inst[Role::d], call, 4);
    write_residency(e, inst);
}

/// The address of a reference has a bit for what it is of; handles of objects have none (recorded, and so in ptxas'
/// code).
void istypep(WarpEmitter& e, const Instruction& inst) {
    const unsigned bit = inst.type() == ScalarType::texref ? 61 : inst.type() == ScalarType::samplerref ? 62 : 63;
    e.write(inst[Role::p], e.apply({e.read(inst[Role::a])}, [bit](Ir& ir, Values v) {
        return ir.CreateTrunc(ir.CreateLShr(v[0], bit), v[0]->getType()->getWithNewBitWidth(1));
    }));
}

void txq(WarpEmitter& e, const Instruction& inst) {
    query(e, inst, TextureOperation::query);
}

void suq(WarpEmitter& e, const Instruction& inst) {
    query(e, inst, TextureOperation::query_surface);
}

} // namespace ptarmigan::translator::lower
