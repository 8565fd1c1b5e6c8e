// SPDX-License-Identifier: Apache-2.0
// Calls to the runtime's service of asynchronous copies, see async_call.h.
#include "translator/lower/async_call.h"

#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

using abi::AsyncCall;
using ptx::Operand;

AsyncCallBuffer::AsyncCallBuffer(WarpEmitter& e, const ptx::Instruction& inst, abi::AsyncOperation operation,
                                 std::uint32_t detail)
    : e_(e) {
    Ir& ir = e.ir();
    buffer_ = e.entry_alloca(llvm::ArrayType::get(ir.getInt64Ty(), sizeof(AsyncCall) / 8), "async");
    ir.CreateStore(ir.getInt32(std::uint32_t(operation)), place(offsetof(AsyncCall, operation)));
    ir.CreateStore(ir.getInt32(detail), place(offsetof(AsyncCall, detail)));
    ir.CreateStore(ir.getInt32(inst.location.line), place(offsetof(AsyncCall, line)));
    ir.CreateStore(e.active_bits(), place(offsetof(AsyncCall, active)));
}

Value* AsyncCallBuffer::place(unsigned offset) {
    return e_.ir().CreateConstInBoundsGEP1_64(e_.ir().getInt8Ty(), buffer_, offset);
}

void AsyncCallBuffer::set_lanes(unsigned offset, Value* lanes) {
    e_.ir().CreateAlignedStore(lanes, place(offset), llvm::Align(lanes->getType()->getScalarSizeInBits() / 8));
}

void AsyncCallBuffer::set_address(unsigned offset, const Operand& operand, ptx::StateSpace space) {
    set_lanes(offset, e_.broadcast(e_.address(operand, space).address));
}

void AsyncCallBuffer::set_words(unsigned offset, const Operand& operand) {
    if (operand.kind == Operand::Kind::none) return;
    Ir& ir = e_.ir();
    set_lanes(offset, ir.CreateZExtOrTrunc(to_bits(ir, e_.lanes(operand)), e_.lanes_type(ir.getInt32Ty())));
}

void AsyncCallBuffer::set_list(unsigned offset, const Operand& list, unsigned most) {
    const bool many = list.kind == Operand::Kind::vector || list.kind == Operand::Kind::list;
    const unsigned count = many ? std::min(list.count, most) : 1;
    constexpr unsigned lanes_bytes = sizeof(AsyncCall::size);
    for (unsigned i = 0; i < count; ++i) set_words(offset + i * lanes_bytes, many ? e_.element(list, i) : list);
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
    Ir& ir = e_.ir();
    ir.CreateStore(ir.getInt32(flags_), place(offsetof(AsyncCall, flags)));
    auto call = [&] {
        e_.call_service(offsetof(abi::Services, async_copy), ir.getVoidTy(),
                        {e_.cta_context(), e_.step_index(), buffer_});
    };
    if (e_.all_active())
        call();
    else
        e_.if_then(e_.any(e_.active()), call);
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
