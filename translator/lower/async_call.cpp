// SPDX-License-Identifier: Apache-2.0
// Calls to the runtime's service of asynchronous copies, see async_call.h.
#include "translator/lower/async_call.h"

#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

using abi::AsyncCall;
using ptx::Operand;

AsyncCallBuffer::AsyncCallBuffer(WarpEmitter& e, const ptx::Instruction& inst, abi::AsyncOperation operation,
                                 std::uint32_t detail)
    : CallBuffer(e, sizeof(AsyncCall), "async") {
    store_number(offsetof(AsyncCall, operation), std::uint32_t(operation));
    store_number(offsetof(AsyncCall, detail), detail);
    store_number(offsetof(AsyncCall, line), inst.location.line);
    store(offsetof(AsyncCall, active), e.active_bits());
}

void AsyncCallBuffer::set_address(unsigned offset, const Operand& operand, ptx::StateSpace space) {
    set_lanes(offset, e_.broadcast(e_.address(operand, space).address));
}

void AsyncCallBuffer::set_words(unsigned offset, const Operand& operand) {
    if (operand.kind == Operand::Kind::none) return;
    set_lanes(offset, bits_of(operand, 32));
}

void AsyncCallBuffer::set_list(unsigned offset, const Operand& list, unsigned most) {
    constexpr unsigned lanes_bytes = sizeof(AsyncCall::size);
    for (unsigned i = 0; i < std::min(list.element_count(), most); ++i)
        set_words(offset + i * lanes_bytes, e_.element(list, i));
}

void AsyncCallBuffer::set_value(const Operand& operand, unsigned elements) {
    Ir& ir = e_.ir();
    const bool many = operand.kind == Operand::Kind::vector;
    constexpr unsigned lanes_bytes = sizeof(AsyncCall::coordinates[0]);
    unsigned offset = offsetof(AsyncCall, coordinates);
    for (unsigned i = 0; i < elements; ++i) {
        Value* bits = to_bits(ir, e_.lanes(many ? e_.element(operand, i) : operand));
        if (i > 0 && !many) bits = llvm::Constant::getNullValue(bits->getType()); // undefined
        const unsigned words = bits->getType()->getScalarSizeInBits() / 32;
        for (unsigned word = 0; word < words; ++word, offset += lanes_bytes)
            set_lanes(offset,
                      ir.CreateTrunc(ir.CreateLShr(bits, integer(bits, 32 * word)), e_.lanes_type(ir.getInt32Ty())));
    }
}

void AsyncCallBuffer::run() {
    store_number(offsetof(AsyncCall, flags), flags_);
    call(offsetof(abi::Services, async_copy));
}

abi::BulkReduction bulk_reduction(WarpEmitter& e, const ptx::Instruction& inst) {
    using Reduction = abi::BulkReduction;
    switch (inst.one_of({Word::add, Word::min, Word::max, Word::inc, Word::dec, Word::and_, Word::or_, Word::xor_})) {
    case Word::add: return Reduction::add;
    case Word::min: return Reduction::min;
    case Word::max: return Reduction::max;
    case Word::inc: return Reduction::inc;
    case Word::dec: return Reduction::dec;
    case Word::and_: return Reduction::bit_and;
    case Word::or_: return Reduction::bit_or;
    case Word::xor_: return Reduction::bit_xor;
    default: e.unsupported("internal: a reduction without operation");
    }
}

abi::TensorType reduction_type(WarpEmitter& e, const Instruction& inst) {
    using Type = abi::TensorType;
    switch (inst.type()) {
    case ScalarType::b32:
    case ScalarType::u32: return Type::u32;
    case ScalarType::s32: return Type::s32;
    case ScalarType::b64:
    case ScalarType::u64: return Type::u64;
    case ScalarType::s64: return Type::s64;
    case ScalarType::f16: return Type::f16;
    case ScalarType::bf16: return Type::bf16;
    case ScalarType::f32: return Type::f32;
    case ScalarType::f64: return Type::f64;
    default: e.unsupported("internal: a type that is not reduced");
    }
}

Value* copies_are_deferred(WarpEmitter& e) {
    Ir& ir = e.ir();
    Value* launch = e.context_field(ir.getInt64Ty(), offsetof(abi::CtaContext, launch), "launch");
    Value* place = ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), ir.CreateIntToPtr(launch, ir.getPtrTy()),
                                                 offsetof(abi::LaunchContext, async_mode));
    llvm::LoadInst* mode = ir.CreateLoad(ir.getInt32Ty(), place, "async_mode");
    mode->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(e.context(), {}));
    return ir.CreateICmpNE(mode, ir.getInt32(std::uint32_t(abi::AsyncMode::eager)));
}

} // namespace ptarmigan::translator::lower
