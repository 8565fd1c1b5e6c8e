// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/matrix_call.h"

#include "translator/lower/collective_call.h"
#include "translator/lower/lane_math.h"

#include <cstring>

namespace ptarmigan::translator::lower {

using ptx::MatrixFragment;
using ptx::MatrixOperand;
using ptx::Operand;

namespace {

std::size_t offset_of(MatrixOperand operand) {
    switch (operand) {
    case MatrixOperand::a: return offsetof(abi::MatrixCall, a);
    case MatrixOperand::b: return offsetof(abi::MatrixCall, b);
    case MatrixOperand::c: return offsetof(abi::MatrixCall, c);
    default: return offsetof(abi::MatrixCall, d);
    }
}

constexpr unsigned array_bytes = 32 * sizeof(std::uint32_t);

} // namespace

MatrixCallBuffer::MatrixCallBuffer(WarpEmitter& e, const ptx::Instruction& inst)
    : e_(e), form_(ptx::matrix_form(inst)) {
    Ir& ir = e.ir();
    buffer_ = e.take_lane_slot(llvm::ArrayType::get(ir.getInt64Ty(), sizeof(abi::MatrixCall) / 8));
    buffer_->setAlignment(llvm::Align(alignof(abi::MatrixCall)));
    std::uint64_t words[2];
    static_assert(sizeof words == sizeof form_);
    std::memcpy(words, &form_, sizeof words);
    for (unsigned i = 0; i < 2; ++i)
        ir.CreateStore(ir.getInt64(words[i]), place(offsetof(abi::MatrixCall, form) + 8 * i));
    ir.CreateStore(ir.getInt32(inst.location.line), place(offsetof(abi::MatrixCall, line)));
    ir.CreateStore(e.active_bits(), place(offsetof(abi::MatrixCall, active)));
}

MatrixCallBuffer::~MatrixCallBuffer() {
    e_.return_lane_slot(buffer_);
}

llvm::Value* MatrixCallBuffer::place(std::size_t offset) {
    return e_.ir().CreateConstInBoundsGEP1_64(e_.ir().getInt8Ty(), buffer_, offset);
}

llvm::Value* MatrixCallBuffer::register_place(MatrixOperand operand, unsigned index) {
    const unsigned arrays = MatrixFragment(form_, operand).register_bits() / 32;
    return place(offset_of(operand) + std::size_t{index} * arrays * array_bytes);
}

void MatrixCallBuffer::set(MatrixOperand operand, const Operand& registers) {
    Ir& ir = e_.ir();
    const MatrixFragment fragment(form_, operand);
    llvm::Type* type = e_.lanes_type(ir.getIntNTy(fragment.register_bits()));
    // The text may have more registers than hold anything.
    for (unsigned i = 0; i < fragment.distinct_registers(); ++i) {
        const Operand& element = e_.element(registers, i);
        llvm::Value* lanes = element.kind == Operand::Kind::sink
                                 ? llvm::Constant::getNullValue(type)
                                 : ir.CreateZExtOrTrunc(to_bits(ir, e_.lanes(element)), type);
        ir.CreateAlignedStore(lanes, register_place(operand, i), llvm::Align(64));
    }
}

void MatrixCallBuffer::set_metadata(const Operand& words, std::uint32_t selector) {
    e_.ir().CreateStore(e_.ir().getInt32(selector), place(offsetof(abi::MatrixCall, selector)));
    e_.ir().CreateAlignedStore(e_.lanes(words), place(offsetof(abi::MatrixCall, metadata)), llvm::Align(8));
}

void MatrixCallBuffer::set_scales(const Operand& a, const Operand& ids_a, const Operand& b, const Operand& ids_b) {
    Ir& ir = e_.ir();
    llvm::Type* words = e_.lanes_type(ir.getInt32Ty());
    e_.ir().CreateAlignedStore(e_.lanes(a), place(offsetof(abi::MatrixCall, scale_a)), llvm::Align(8));
    e_.ir().CreateAlignedStore(e_.lanes(b), place(offsetof(abi::MatrixCall, scale_b)), llvm::Align(8));
    llvm::Value* selectors = llvm::Constant::getNullValue(words);
    for (unsigned i = 0; i < 4; ++i) {
        llvm::Value* id = ir.CreateZExtOrTrunc(e_.lanes(e_.element(i < 2 ? ids_a : ids_b, i % 2)), words);
        id = ir.CreateShl(ir.CreateAnd(id, e_.splat(ir.getInt32(0xff))), e_.splat(ir.getInt32(8 * i)));
        selectors = ir.CreateOr(selectors, id);
    }
    ir.CreateAlignedStore(selectors, place(offsetof(abi::MatrixCall, scale_selectors)), llvm::Align(8));
}

void MatrixCallBuffer::run() {
    Ir& ir = e_.ir();
    if (!whole_warp(e_)) {
        // Only steps that are at products of one form meet.
        std::uint32_t kind = 0;
        for (const std::uint8_t byte :
             {std::uint8_t(form_.m), std::uint8_t(form_.n), std::uint8_t(form_.k), std::uint8_t(form_.opcode),
              std::uint8_t(form_.a), std::uint8_t(form_.b), std::uint8_t(form_.c), std::uint8_t(form_.d),
              std::uint8_t(form_.kind), form_.scales, form_.scale_ue4m3})
            kind = kind * 31 + byte;
        ir.CreateStore(ir.CreateAnd(e_.first_thread(), ir.getInt32(abi::warp_size - 1)),
                       place(offsetof(abi::MatrixCall, first_lane)));
        CollectiveCallBuffer call(e_, abi::Collective::matrix, kind);
        call.set_source(e_.splat(ir.CreatePtrToInt(buffer_, ir.getInt64Ty())));
        call.run();
        return;
    }
    const auto call = [&] {
        e_.call_service(offsetof(abi::Services, matrix), ir.getVoidTy(), {e_.cta_context(), e_.step_index(), buffer_});
    };
    if (e_.all_active())
        call();
    else
        e_.if_then(e_.any(e_.active()), call);
}

void MatrixCallBuffer::write(const Operand& registers) {
    Ir& ir = e_.ir();
    const MatrixFragment fragment(form_, MatrixOperand::d);
    llvm::Type* bits = ir.getIntNTy(fragment.register_bits());
    for (unsigned i = 0; i < fragment.registers(); ++i) {
        const Operand& element = e_.element(registers, i);
        if (element.kind != Operand::Kind::reg) continue;
        llvm::Value* lanes = ir.CreateFreeze(
            ir.CreateAlignedLoad(e_.lanes_type(bits), register_place(MatrixOperand::d, i), llvm::Align(64)));
        llvm::Type* type = e_.type(element.type);
        if (type->isFloatingPointTy()) lanes = ir.CreateBitCast(lanes, e_.lanes_type(type));
        e_.write(element, LaneValue::varying(lanes));
    }
}

} // namespace ptarmigan::translator::lower
