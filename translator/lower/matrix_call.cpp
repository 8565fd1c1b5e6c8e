// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/matrix_call.h"

#include "translator/analysis/build/product_groups.h"
#include "translator/lower/collective_call.h"
#include "translator/lower/lane_math.h"

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
    : PassingCallBuffer(e, sizeof(abi::MatrixCall), alignof(abi::MatrixCall)), form_(ptx::matrix_form(inst)) {
    store_form(offsetof(abi::MatrixCall, form), form_);
    store_number(offsetof(abi::MatrixCall, line), inst.location.line);
    store(offsetof(abi::MatrixCall, active), e.active_bits());
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
    store_number(offsetof(abi::MatrixCall, selector), selector);
    store_lanes(offsetof(abi::MatrixCall, metadata), e_.lanes(words), 8);
}

void MatrixCallBuffer::set_scales(const Operand& a, const Operand& ids_a, const Operand& b, const Operand& ids_b) {
    Ir& ir = e_.ir();
    llvm::Type* words = e_.lanes_type(ir.getInt32Ty());
    store_lanes(offsetof(abi::MatrixCall, scale_a), e_.lanes(a), 8);
    store_lanes(offsetof(abi::MatrixCall, scale_b), e_.lanes(b), 8);
    llvm::Value* selectors = llvm::Constant::getNullValue(words);
    for (unsigned i = 0; i < 4; ++i) {
        llvm::Value* id = ir.CreateZExtOrTrunc(e_.lanes(e_.element(i < 2 ? ids_a : ids_b, i % 2)), words);
        id = ir.CreateShl(ir.CreateAnd(id, e_.splat(ir.getInt32(0xff))), e_.splat(ir.getInt32(8 * i)));
        selectors = ir.CreateOr(selectors, id);
    }
    store_lanes(offsetof(abi::MatrixCall, scale_selectors), selectors, 8);
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
        store(offsetof(abi::MatrixCall, first_lane), ir.CreateAnd(e_.first_thread(), ir.getInt32(abi::warp_size - 1)));
        CollectiveCallBuffer meeting(e_, abi::Collective::matrix, kind);
        meeting.set_source(e_.splat(ir.CreatePtrToInt(buffer_, ir.getInt64Ty())));
        meeting.run();
        return;
    }
    call(offsetof(abi::Services, matrix));
}

void MatrixCallBuffer::write(const Operand& registers) {
    load_registers(e_, MatrixFragment(form_, MatrixOperand::d), registers,
                   [&](unsigned i) { return register_place(MatrixOperand::d, i); });
}

namespace {

constexpr std::size_t group_head = (sizeof(abi::MatrixGroup) + 63) / 64 * 64;

/// An abi::MatrixGroup on the stack, registers behind it. Its place serves others afterwards.
class GroupCall : public PassingCallBuffer {
public:
    /// `form`: of one product, `pairs`: as ProductGroup has them.
    GroupCall(WarpEmitter& e, ptx::MatrixForm form, bool pairs, abi::MatrixGroupOperation operation,
              std::size_t register_bytes)
        : PassingCallBuffer(e, size_with(register_bytes), 64) {
        if (pairs) form.n *= 2;
        store_form(offsetof(abi::MatrixGroup, form), form);
        store_number(offsetof(abi::MatrixGroup, operation), std::uint32_t(operation));
    }

    void set_count(std::size_t offset, std::size_t count) { store(offset, e_.ir().getInt16(std::uint16_t(count))); }
    void run() { call_always(offsetof(abi::Services, matrix_group)); }

private:
    static std::size_t size_with(std::size_t register_bytes) {
        constexpr std::size_t granule = 2048;
        return (group_head + register_bytes + granule - 1) / granule * granule;
    }
};

std::size_t register_bytes(const MatrixFragment& fragment) {
    return std::size_t{fragment.distinct_registers()} * fragment.register_bits() / 32 * array_bytes;
}

} // namespace

void call_matrix_group(WarpEmitter& e, const ptx::Instruction& inst, const ProductGroup& group) {
    using Group = abi::MatrixGroup;
    using Operation = abi::MatrixGroupOperation;
    const ptx::MatrixForm form = ptx::matrix_form(inst);
    const MatrixFragment a(form, MatrixOperand::a), b(form, MatrixOperand::b), d(form, MatrixOperand::d);
    const WarpEmitter::KeptAccumulators kept = e.kept_accumulators(group);
    const std::size_t begin_b = group_head + group.a.size() * register_bytes(a),
                      begin_d = begin_b + group.b.size() * register_bytes(b),
                      end = begin_d + (kept.memory ? 0 : group.accumulators * register_bytes(d));
    GroupCall buffer(e, form, group.pairs, kept.memory ? Operation::multiply_packed : Operation::multiply,
                     end - group_head);
    const auto registers_at = [&](std::size_t begin, const MatrixFragment& fragment) {
        return [&buffer, begin, bits = fragment.register_bits()](unsigned i) {
            return buffer.place(begin + std::size_t{i} * bits / 32 * array_bytes);
        };
    };

    std::vector<abi::MatrixChain> chains = group.chains;
    for (std::size_t i = 0; i < chains.size() && kept.memory; ++i) chains[i].c = chains[i].d = kept.numbers[i];
    buffer.store(offsetof(Group, active), e.active_bits());
    buffer.store(offsetof(Group, steps), constant_array(e, group.steps));
    buffer.store(offsetof(Group, chains), constant_array(e, chains));
    buffer.store(offsetof(Group, a), buffer.place(group_head));
    buffer.store(offsetof(Group, b), buffer.place(begin_b));
    if (kept.memory)
        buffer.store(offsetof(Group, packed), kept.memory);
    else
        buffer.store(offsetof(Group, accumulators), buffer.place(begin_d));
    buffer.set_count(offsetof(Group, a_count), group.a.size());
    buffer.set_count(offsetof(Group, b_count), group.b.size() / (group.pairs ? 2 : 1));
    buffer.set_count(offsetof(Group, accumulator_count), group.accumulators / (group.pairs ? 2 : 1));
    buffer.set_count(offsetof(Group, chain_count), group.chains.size());

    for (std::size_t i = 0; i < group.a.size(); ++i)
        store_registers(e, a, *group.a[i], registers_at(group_head + i * register_bytes(a), a));
    for (std::size_t i = 0; i < group.b.size(); ++i)
        store_registers(e, b, *group.b[i], registers_at(begin_b + i * register_bytes(b), b));
    if (!kept.memory)
        for (const ProductGroup::Accumulator& given : group.given)
            store_registers(e, d, *given.registers, registers_at(begin_d + given.number * register_bytes(d), d));
    if (e.all_active())
        buffer.run();
    else
        e.if_then(e.any(e.active()), [&] { buffer.run(); });
    if (!kept.memory)
        for (const ProductGroup::Accumulator& result : group.results)
            load_registers(e, d, *result.registers, registers_at(begin_d + result.number * register_bytes(d), d));
}

void pack_accumulators(WarpEmitter& e, const LoopAccumulators::Bank& bank, llvm::ArrayRef<llvm::Value*> registers,
                       llvm::Value* memory) {
    Ir& ir = e.ir();
    const std::size_t count = bank.phis.size(), bytes = bank.accumulator_bytes / bank.phis[0].size();
    const auto at = [&](llvm::Value* begin, std::size_t i) {
        return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), begin, i * bytes);
    };
    const auto is_zero = [](llvm::Value* value) {
        const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
        return constant && constant->isNullValue();
    };
    // Zeros are zeros in any order.
    if (std::all_of(registers.begin(), registers.end(), is_zero)) {
        for (std::size_t i = 0; i < registers.size(); ++i)
            ir.CreateAlignedStore(registers[i], at(memory, i), llvm::Align(64));
        return;
    }
    GroupCall buffer(e, bank.form, bank.pairs, abi::MatrixGroupOperation::pack, count * bank.accumulator_bytes);
    buffer.store(offsetof(abi::MatrixGroup, accumulators), buffer.place(group_head));
    buffer.store(offsetof(abi::MatrixGroup, packed), memory);
    buffer.store(offsetof(abi::MatrixGroup, active), ir.getInt64(0));
    buffer.set_count(offsetof(abi::MatrixGroup, accumulator_count), count);
    for (std::size_t i = 0; i < registers.size(); ++i)
        ir.CreateAlignedStore(registers[i], at(buffer.place(group_head), i), llvm::Align(64));
    buffer.run();
}

std::vector<llvm::Value*> unpack_accumulators(WarpEmitter& e, const LoopAccumulators::Bank& bank, llvm::Value* memory) {
    Ir& ir = e.ir();
    const std::size_t count = bank.phis.size(), of_each = bank.phis[0].size(), bytes = bank.accumulator_bytes / of_each;
    GroupCall buffer(e, bank.form, bank.pairs, abi::MatrixGroupOperation::unpack, count * bank.accumulator_bytes);
    buffer.store(offsetof(abi::MatrixGroup, accumulators), buffer.place(group_head));
    buffer.store(offsetof(abi::MatrixGroup, packed), memory);
    buffer.store(offsetof(abi::MatrixGroup, active), ir.getInt64(0));
    buffer.set_count(offsetof(abi::MatrixGroup, accumulator_count), count);
    buffer.run();
    std::vector<llvm::Value*> registers;
    llvm::Type* lanes = e.lanes_type(ir.getIntNTy(unsigned(bytes * 8 / abi::warp_size)));
    for (std::size_t i = 0; i < count * of_each; ++i)
        registers.push_back(
            ir.CreateFreeze(ir.CreateAlignedLoad(lanes, buffer.place(group_head + i * bytes), llvm::Align(64))));
    return registers;
}

} // namespace ptarmigan::translator::lower
