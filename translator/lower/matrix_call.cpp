// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/matrix_call.h"

#include "translator/analysis/build/product_groups.h"
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

/// Stores the registers of a braced operand (a single register too) behind each other.
void store_registers(WarpEmitter& e, const MatrixFragment& fragment, const Operand& registers,
                     llvm::function_ref<llvm::Value*(unsigned)> place) {
    Ir& ir = e.ir();
    llvm::Type* type = e.lanes_type(ir.getIntNTy(fragment.register_bits()));
    // The text may have more registers than hold anything.
    for (unsigned i = 0; i < fragment.distinct_registers(); ++i) {
        const Operand& element = e.element(registers, i);
        llvm::Value* lanes = element.kind == Operand::Kind::sink
                                 ? llvm::Constant::getNullValue(type)
                                 : ir.CreateZExtOrTrunc(to_bits(ir, e.lanes(element)), type);
        ir.CreateAlignedStore(lanes, place(i), llvm::Align(64));
    }
}

void load_registers(WarpEmitter& e, const MatrixFragment& fragment, const Operand& registers,
                    llvm::function_ref<llvm::Value*(unsigned)> place) {
    Ir& ir = e.ir();
    llvm::Type* bits = ir.getIntNTy(fragment.register_bits());
    for (unsigned i = 0; i < fragment.registers(); ++i) {
        const Operand& element = e.element(registers, i);
        if (element.kind != Operand::Kind::reg) continue;
        llvm::Value* lanes = ir.CreateFreeze(ir.CreateAlignedLoad(e.lanes_type(bits), place(i), llvm::Align(64)));
        llvm::Type* type = e.type(element.type);
        if (type->isFloatingPointTy()) lanes = ir.CreateBitCast(lanes, e.lanes_type(type));
        e.write(element, LaneValue::varying(lanes));
    }
}

/// A constant array in the module.
template <class Element> llvm::Value* constant_array(WarpEmitter& e, const std::vector<Element>& elements) {
    const llvm::StringRef bytes(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(Element));
    llvm::Constant* text = llvm::ConstantDataArray::getString(e.context(), bytes, false);
    llvm::Module* module = e.ir().GetInsertBlock()->getModule();
    auto* variable = new llvm::GlobalVariable(*module, text->getType(), true, llvm::GlobalValue::PrivateLinkage, text);
    variable->setAlignment(llvm::Align(alignof(Element)));
    variable->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    return variable;
}

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
    store_registers(e_, MatrixFragment(form_, operand), registers,
                    [&](unsigned i) { return register_place(operand, i); });
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
    load_registers(e_, MatrixFragment(form_, MatrixOperand::d), registers,
                   [&](unsigned i) { return register_place(MatrixOperand::d, i); });
}

void call_matrix_group(WarpEmitter& e, const ptx::Instruction& inst, const ProductGroup& group) {
    using Group = abi::MatrixGroup;
    Ir& ir = e.ir();
    ptx::MatrixForm form = ptx::matrix_form(inst);
    const MatrixFragment a(form, MatrixOperand::a), b(form, MatrixOperand::b), d(form, MatrixOperand::d);
    const auto bytes_of = [](const MatrixFragment& fragment) {
        return std::size_t{fragment.distinct_registers()} * fragment.register_bits() / 32 * array_bytes;
    };
    constexpr std::size_t head = (sizeof(Group) + 63) / 64 * 64, granule = 2048;
    const std::size_t begin_b = head + group.a.size() * bytes_of(a), begin_d = begin_b + group.b.size() * bytes_of(b),
                      size = begin_d + group.accumulators * bytes_of(d);
    llvm::AllocaInst* buffer =
        e.take_lane_slot(llvm::ArrayType::get(ir.getInt64Ty(), (size + granule - 1) / granule * granule / 8));
    buffer->setAlignment(llvm::Align(64));
    const auto place = [&](std::size_t offset) {
        return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), buffer, offset);
    };
    const auto registers_at = [&](std::size_t begin, const MatrixFragment& fragment) {
        return [&place, begin, bits = fragment.register_bits()](unsigned i) {
            return place(begin + std::size_t{i} * bits / 32 * array_bytes);
        };
    };

    if (group.pairs) form.n *= 2;
    std::uint64_t words[2];
    static_assert(sizeof words == sizeof form);
    std::memcpy(words, &form, sizeof words);
    for (unsigned i = 0; i < 2; ++i) ir.CreateStore(ir.getInt64(words[i]), place(offsetof(Group, form) + 8 * i));
    ir.CreateStore(e.active_bits(), place(offsetof(Group, active)));
    ir.CreateStore(constant_array(e, group.steps), place(offsetof(Group, steps)));
    ir.CreateStore(constant_array(e, group.chains), place(offsetof(Group, chains)));
    ir.CreateStore(place(head), place(offsetof(Group, a)));
    ir.CreateStore(place(begin_b), place(offsetof(Group, b)));
    ir.CreateStore(place(begin_d), place(offsetof(Group, accumulators)));
    const auto store_count = [&](std::size_t offset, std::size_t count) {
        ir.CreateStore(ir.getInt16(std::uint16_t(count)), place(offset));
    };
    store_count(offsetof(Group, a_count), group.a.size());
    store_count(offsetof(Group, b_count), group.b.size() / (group.pairs ? 2 : 1));
    store_count(offsetof(Group, accumulator_count), group.accumulators / (group.pairs ? 2 : 1));
    store_count(offsetof(Group, chain_count), group.chains.size());

    for (std::size_t i = 0; i < group.a.size(); ++i)
        store_registers(e, a, *group.a[i], registers_at(head + i * bytes_of(a), a));
    for (std::size_t i = 0; i < group.b.size(); ++i)
        store_registers(e, b, *group.b[i], registers_at(begin_b + i * bytes_of(b), b));
    for (const ProductGroup::Accumulator& given : group.given)
        store_registers(e, d, *given.registers, registers_at(begin_d + given.number * bytes_of(d), d));
    const auto call = [&] {
        e.call_service(offsetof(abi::Services, matrix_group), ir.getVoidTy(),
                       {e.cta_context(), e.step_index(), buffer});
    };
    if (e.all_active())
        call();
    else
        e.if_then(e.any(e.active()), call);
    for (const ProductGroup::Accumulator& result : group.results)
        load_registers(e, d, *result.registers, registers_at(begin_d + result.number * bytes_of(d), d));
    e.return_lane_slot(buffer);
}

} // namespace ptarmigan::translator::lower
