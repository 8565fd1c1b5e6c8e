// SPDX-License-Identifier: Apache-2.0
// multimem.ld_reduce, multimem.st, multimem.red (manual 9.7.9.14): one call of the runtime for all lanes.
#include "translator/lower/async_call.h"
#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

using abi::MultimemCall;
using abi::MultimemOperation;
using abi::MultimemType;
using ptx::Operand;

namespace {

MultimemType element_type(WarpEmitter& e, const Instruction& inst) {
    switch (inst.type()) {
    case ScalarType::b32:
    case ScalarType::u32: return MultimemType::u32;
    case ScalarType::s32: return MultimemType::s32;
    case ScalarType::b64:
    case ScalarType::u64: return MultimemType::u64;
    case ScalarType::s64: return MultimemType::s64;
    case ScalarType::f16:
    case ScalarType::f16x2: return MultimemType::f16;
    case ScalarType::bf16:
    case ScalarType::bf16x2: return MultimemType::bf16;
    case ScalarType::f32: return MultimemType::f32;
    case ScalarType::f64: return MultimemType::f64;
    case ScalarType::e4m3x2:
    case ScalarType::e4m3x4: return MultimemType::e4m3;
    case ScalarType::e5m2x2:
    case ScalarType::e5m2x4: return MultimemType::e5m2;
    default: e.unsupported("internal: a type that multimem does not have");
    }
}

/// An abi::MultimemCall on the stack.
class MultimemBuffer {
public:
    MultimemBuffer(WarpEmitter& e, const Instruction& inst, MultimemOperation operation)
        : e_(e), bits_(ptx::bit_size(inst.type())), elements_(inst.vector_size) {
        Ir& ir = e.ir();
        buffer_ = e.entry_alloca(llvm::ArrayType::get(ir.getInt64Ty(), sizeof(MultimemCall) / 8), "multimem");
        set(offsetof(MultimemCall, operation), std::uint32_t(operation));
        if (operation != MultimemOperation::store)
            set(offsetof(MultimemCall, reduction), std::uint32_t(bulk_reduction(e, inst)));
        set(offsetof(MultimemCall, type), std::uint32_t(element_type(e, inst)));
        set(offsetof(MultimemCall, wider), inst.has(Word::acc_f32) || inst.has(Word::acc_f16));
        set(offsetof(MultimemCall, bytes), bits_ / 8 * elements_);
        set(offsetof(MultimemCall, line), inst.location.line);
        ir.CreateStore(e.active_bits(), place(offsetof(MultimemCall, active)));
        Value* addresses = e.broadcast(e.address(inst[Role::a], ptx::StateSpace::global).address);
        ir.CreateAlignedStore(addresses, place(offsetof(MultimemCall, address)), llvm::Align(8));
    }

    /// The words of the elements: two of 16 bits make one, one of 64 bits makes two.
    void set_data(const Operand& operand) {
        Ir& ir = e_.ir();
        llvm::Type* words = e_.lanes_type(ir.getInt32Ty());
        for (unsigned i = 0, word = 0; i < elements_; ++word) {
            if (bits_ == 16) {
                Value* low = ir.CreateZExt(element_bits(operand, i), words);
                Value* high = ir.CreateZExt(element_bits(operand, i + 1), words);
                store(word, ir.CreateOr(low, ir.CreateShl(high, integer(high, 16))));
                i += 2;
                continue;
            }
            Value* bits = element_bits(operand, i++);
            store(word, ir.CreateTrunc(bits, words));
            if (bits_ == 64) store(++word, ir.CreateTrunc(ir.CreateLShr(bits, integer(bits, 32)), words));
        }
    }

    void run() {
        auto call = [&] {
            e_.call_service(offsetof(abi::Services, multimem), e_.ir().getVoidTy(),
                            {e_.cta_context(), e_.step_index(), buffer_});
        };
        if (e_.all_active())
            call();
        else
            e_.if_then(e_.any(e_.active()), call);
    }

    void write_result(const Operand& operand) {
        for (unsigned i = 0; i < elements_; ++i) {
            const bool many = operand.kind == Operand::Kind::vector || operand.kind == Operand::Kind::list;
            const Operand& element = many ? e_.element(operand, i) : operand;
            if (element.kind != Operand::Kind::sink) e_.write(element, LaneValue::varying(result(i)));
        }
    }

private:
    Value* place(unsigned offset) { return e_.ir().CreateConstInBoundsGEP1_64(e_.ir().getInt8Ty(), buffer_, offset); }
    void set(unsigned offset, std::uint32_t value) { e_.ir().CreateStore(e_.ir().getInt32(value), place(offset)); }
    unsigned word_offset(unsigned word) const {
        return offsetof(MultimemCall, data) + word * sizeof(MultimemCall::data[0]);
    }
    void store(unsigned word, Value* lanes) {
        e_.ir().CreateAlignedStore(lanes, place(word_offset(word)), llvm::Align(4));
    }
    /// Lanes of integers of the element's size.
    Value* element_bits(const Operand& operand, unsigned index) {
        const bool many = operand.kind == Operand::Kind::vector || operand.kind == Operand::Kind::list;
        Value* bits = to_bits(e_.ir(), e_.lanes(many ? e_.element(operand, index) : operand));
        return e_.ir().CreateZExtOrTrunc(bits, e_.lanes_type(e_.ir().getIntNTy(bits_)));
    }
    Value* word(unsigned index) {
        Ir& ir = e_.ir();
        llvm::Type* type = e_.lanes_type(ir.getInt32Ty());
        return ir.CreateFreeze(ir.CreateAlignedLoad(type, place(word_offset(index)), llvm::Align(4)));
    }
    Value* result(unsigned index) {
        Ir& ir = e_.ir();
        llvm::Type* type = e_.lanes_type(ir.getIntNTy(bits_));
        if (bits_ == 16) {
            Value* both = word(index / 2);
            return ir.CreateTrunc(index % 2 ? ir.CreateLShr(both, integer(both, 16)) : both, type);
        }
        if (bits_ == 32) return word(index);
        Value* high = ir.CreateZExt(word(2 * index + 1), type);
        return ir.CreateOr(ir.CreateZExt(word(2 * index), type), ir.CreateShl(high, integer(high, 32)));
    }

    WarpEmitter& e_;
    const unsigned bits_, elements_;
    llvm::AllocaInst* buffer_;
};

} // namespace

void multimem_ld_reduce(WarpEmitter& e, const Instruction& inst) {
    MultimemBuffer call(e, inst, MultimemOperation::load_reduce);
    call.run();
    call.write_result(inst[Role::d]);
}

void multimem_st(WarpEmitter& e, const Instruction& inst) {
    MultimemBuffer call(e, inst, MultimemOperation::store);
    call.set_data(inst[Role::b]);
    call.run();
}

void multimem_red(WarpEmitter& e, const Instruction& inst) {
    MultimemBuffer call(e, inst, MultimemOperation::reduce);
    call.set_data(inst[Role::b]);
    call.run();
}

} // namespace ptarmigan::translator::lower
