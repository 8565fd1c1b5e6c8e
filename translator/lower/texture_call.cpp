// SPDX-License-Identifier: Apache-2.0
// Calls to the runtime's texture service, see texture_call.h.
#include "translator/lower/texture_call.h"

#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

using ptx::Operand;

namespace {

constexpr unsigned lanes_bytes = sizeof(abi::TextureCall::level);

/// Any value of up to 32 bits as i32 lanes.
Value* as_words(WarpEmitter& e, Value* lanes) {
    Ir& ir = e.ir();
    Value* bits = to_bits(ir, lanes);
    return ir.CreateZExtOrTrunc(bits, e.lanes_type(ir.getInt32Ty()));
}

} // namespace

TextureCallBuffer::TextureCallBuffer(WarpEmitter& e, const ptx::Instruction& inst, abi::TextureOperation operation)
    : CallBuffer(e, sizeof(abi::TextureCall), "texture") {
    buffer_->setAlignment(llvm::Align(64));
    set(offsetof(abi::TextureCall, operation), std::uint32_t(operation));
    set(offsetof(abi::TextureCall, line), inst.location.line);
    CallBuffer::store(offsetof(abi::TextureCall, active), e.active_bits());
}

void TextureCallBuffer::store(unsigned offset, unsigned index, Value* lanes) {
    store_lanes(offset + index * lanes_bytes, as_words(e_, lanes));
}

void TextureCallBuffer::store_list(unsigned offset, const Operand& list, unsigned most, unsigned first) {
    const unsigned count = list.has_elements() ? std::min(list.count - first, most) : 1;
    for (unsigned i = 0; i < count; ++i) {
        const Operand& element = e_.element(list, first + i);
        if (element.kind != Operand::Kind::sink) store(offset, i, e_.lanes(element));
    }
}

void TextureCallBuffer::set_handle(const Operand& operand) {
    const bool variable = operand.kind == Operand::Kind::variable ||
                          (operand.kind == Operand::Kind::address && operand.base == Operand::Base::variable);
    if (variable && operand.scope != ptx::VariableScope::module)
        e_.unsupported("references to textures and surfaces as parameters");
    if (variable && (operand.value != 0 || !e_.source().variables.at(operand.index).dimensions.empty()))
        e_.unsupported("arrays of references to textures and surfaces");
    Value* handle = operand.kind == Operand::Kind::reg
                        ? e_.lanes(operand)
                        : e_.broadcast(e_.address(operand, ptx::StateSpace::generic).address);
    store_lanes(offsetof(abi::TextureCall, handle), handle);
}

void TextureCallBuffer::run() {
    call(offsetof(abi::Services, texture));
}

Value* TextureCallBuffer::data(unsigned index) {
    Ir& ir = e_.ir();
    return ir.CreateFreeze(load_lanes(offsetof(abi::TextureCall, data) + index * lanes_bytes, ir.getInt32Ty()));
}

abi::TextureGeometry geometry_of(WarpEmitter& e, const ptx::Instruction& inst) {
    using Geometry = abi::TextureGeometry;
    using Word = ptx::Modifier;
    switch (inst.one_of({Word::dim_1d, Word::dim_2d, Word::dim_3d, Word::a1d, Word::a2d, Word::cube, Word::acube,
                         Word::dim_2dms, Word::a2dms})) {
    case Word::dim_1d: return Geometry::d1;
    case Word::dim_2d: return Geometry::d2;
    case Word::dim_3d: return Geometry::d3;
    case Word::a1d: return Geometry::a1d;
    case Word::a2d: return Geometry::a2d;
    case Word::cube: return Geometry::cube;
    case Word::acube: return Geometry::acube;
    case Word::dim_2dms: return Geometry::d2;
    case Word::a2dms: return Geometry::a2d;
    default: e.unsupported("internal: no geometry");
    }
}

} // namespace ptarmigan::translator::lower
