// SPDX-License-Identifier: Apache-2.0
// multimem.ld_reduce, multimem.st, multimem.red (manual 9.7.9.14): one call of the runtime for all lanes.
#include "translator/lower/async_call.h"
#include "translator/lower/call_buffer.h"
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
class MultimemBuffer : private CallBuffer {
public:
    MultimemBuffer(WarpEmitter& e, const Instruction& inst, MultimemOperation operation)
        : CallBuffer(e, sizeof(MultimemCall), "multimem"), bits_(ptx::bit_size(inst.type())),
          elements_(inst.vector_size) {
        store_number(offsetof(MultimemCall, operation), std::uint32_t(operation));
        if (operation != MultimemOperation::store)
            store_number(offsetof(MultimemCall, reduction), std::uint32_t(bulk_reduction(e, inst)));
        store_number(offsetof(MultimemCall, type), std::uint32_t(element_type(e, inst)));
        store_number(offsetof(MultimemCall, wider), inst.has(Word::acc_f32) || inst.has(Word::acc_f16));
        store_number(offsetof(MultimemCall, bytes), bits_ / 8 * elements_);
        store_number(offsetof(MultimemCall, line), inst.location.line);
        store(offsetof(MultimemCall, active), e.active_bits());
        store_lanes(offsetof(MultimemCall, address),
                    e.broadcast(e.address(inst[Role::a], ptx::StateSpace::global).address));
    }

    /// The words of the elements: two of 16 bits make one, one of 64 bits makes two.
    void set_data(const Operand& operand) {
        Ir& ir = e_.ir();
        llvm::Type* words = e_.lanes_type(ir.getInt32Ty());
        for (unsigned i = 0, word = 0; i < elements_; ++word) {
            if (bits_ == 16) {
                Value* low = ir.CreateZExt(element_bits(operand, i), words);
                Value* high = ir.CreateZExt(element_bits(operand, i + 1), words);
                set_word(word, ir.CreateOr(low, ir.CreateShl(high, integer(high, 16))));
                i += 2;
                continue;
            }
            Value* bits = element_bits(operand, i++);
            set_word(word, ir.CreateTrunc(bits, words));
            if (bits_ == 64) set_word(++word, ir.CreateTrunc(ir.CreateLShr(bits, integer(bits, 32)), words));
        }
    }

    void run() { call(offsetof(abi::Services, multimem)); }

    void write_result(const Operand& operand) {
        for (unsigned i = 0; i < elements_; ++i) {
            const Operand& element = e_.element(operand, i);
            if (element.kind != Operand::Kind::sink) e_.write(element, LaneValue::varying(result(i)));
        }
    }

private:
    unsigned word_offset(unsigned word) const {
        return offsetof(MultimemCall, data) + word * sizeof(MultimemCall::data[0]);
    }
    void set_word(unsigned word, Value* lanes) { store_lanes(word_offset(word), lanes); }
    /// Lanes of integers of the element's size.
    Value* element_bits(const Operand& operand, unsigned index) { return bits_of(e_.element(operand, index), bits_); }
    Value* word(unsigned index) { return e_.ir().CreateFreeze(load_lanes(word_offset(index), e_.ir().getInt32Ty())); }
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

    const unsigned bits_, elements_;
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
