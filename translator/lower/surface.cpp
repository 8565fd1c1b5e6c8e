// SPDX-License-Identifier: Apache-2.0
// suld, sust, sured (manual 9.7.11); suq is with txq in texture.cpp.
#include "translator/lower/lane_math.h"
#include "translator/lower/texture_call.h"

#include <algorithm>

namespace ptarmigan::translator::lower {

using abi::SurfaceBounds;
using abi::SurfaceReduction;
using abi::TextureCall;
using abi::TextureOperation;
using ptx::Operand;

namespace {

/// What all surface accesses say: surface, geometry, coordinates, what happens outside.
void set_place(WarpEmitter& e, TextureCallBuffer& call, const Instruction& inst) {
    call.set_handle(inst[Role::a]);
    call.set(offsetof(TextureCall, geometry), std::uint32_t(geometry_of(e, inst)));
    call.store_list(offsetof(TextureCall, coordinates), inst[Role::b], 4);
    const SurfaceBounds bounds = inst.has(Word::trap)    ? SurfaceBounds::trap
                                 : inst.has(Word::clamp) ? SurfaceBounds::clamp
                                                         : SurfaceBounds::zero;
    call.set(offsetof(TextureCall, bounds), std::uint32_t(bounds));
    call.set(offsetof(TextureCall, flags), ptx::bit_size(inst.type()) == 64 ? TextureCall::elements_64 : 0u);
    call.set(offsetof(TextureCall, count), inst.vector_size);
    call.set(offsetof(TextureCall, detail), ptx::byte_size(inst.type()));
}

/// Stores the elements of operand c, as many as the words say; 64-bit ones as two words. Where a vector is asked for
/// and one register is there, the other elements are undefined: ptxas packs zeros for .b8 and registers that nothing
/// wrote for the others; here they are zeros.
void set_data(WarpEmitter& e, TextureCallBuffer& call, const Instruction& inst) {
    Ir& ir = e.ir();
    const bool wide = ptx::bit_size(inst.type()) == 64;
    const Operand& c = inst[Role::c];
    for (unsigned i = 0; i < inst.vector_size; ++i) {
        Value* bits = to_bits(ir, e.lanes(e.element(c, i)));
        if (i > 0 && !c.has_elements()) bits = llvm::Constant::getNullValue(bits->getType());
        if (!wide) {
            call.store(offsetof(TextureCall, data), i, bits);
            continue;
        }
        call.store(offsetof(TextureCall, data), 2 * i, ir.CreateTrunc(bits, e.lanes_type(ir.getInt32Ty())));
        call.store(offsetof(TextureCall, data), 2 * i + 1, ir.CreateLShr(bits, std::uint64_t(32)));
    }
}

/// Element `index` of what was loaded, as an integer of the element's size.
Value* loaded(WarpEmitter& e, TextureCallBuffer& call, unsigned index, unsigned bits) {
    Ir& ir = e.ir();
    llvm::Type* type = e.lanes_type(ir.getIntNTy(bits));
    if (bits < 64) return ir.CreateTrunc(call.data(index), type);
    Value* low = ir.CreateZExt(call.data(2 * index), type);
    Value* high = ir.CreateZExt(call.data(2 * index + 1), type);
    return ir.CreateOr(low, ir.CreateShl(high, std::uint64_t(32)));
}

} // namespace

void suld(WarpEmitter& e, const Instruction& inst) {
    TextureCallBuffer call(e, inst, TextureOperation::load);
    set_place(e, call, inst);
    call.run();
    const Operand& d = inst[Role::d];
    const unsigned registers = d.element_count();
    for (unsigned i = 0; i < registers; ++i) {
        const Operand& element = e.element(d, i);
        if (element.kind == Operand::Kind::sink) continue;
        // More registers than elements all get the one element.
        const unsigned index = std::min<unsigned>(i, inst.vector_size - 1);
        e.write(element, LaneValue::varying(loaded(e, call, index, ptx::bit_size(inst.type()))));
    }
}

void sust_b(WarpEmitter& e, const Instruction& inst) {
    TextureCallBuffer call(e, inst, TextureOperation::store);
    set_place(e, call, inst);
    set_data(e, call, inst);
    call.run();
}

void sust_p(WarpEmitter& e, const Instruction& inst) {
    TextureCallBuffer call(e, inst, TextureOperation::store_texel);
    set_place(e, call, inst);
    set_data(e, call, inst);
    call.run();
}

void sured(WarpEmitter& e, const Instruction& inst) {
    TextureCallBuffer call(e, inst, inst.has(Word::p) ? TextureOperation::reduce_texel : TextureOperation::reduce);
    set_place(e, call, inst);
    const bool is_signed = ptx::is_signed(inst.type());
    SurfaceReduction operation = SurfaceReduction::add;
    if (inst.has(Word::min)) operation = is_signed ? SurfaceReduction::min_s : SurfaceReduction::min_u;
    if (inst.has(Word::max)) operation = is_signed ? SurfaceReduction::max_s : SurfaceReduction::max_u;
    if (inst.has(Word::and_)) operation = SurfaceReduction::bit_and;
    if (inst.has(Word::or_)) operation = SurfaceReduction::bit_or;
    call.set(offsetof(TextureCall, detail), std::uint32_t(operation));
    set_data(e, call, inst);
    call.run();
}

} // namespace ptarmigan::translator::lower
