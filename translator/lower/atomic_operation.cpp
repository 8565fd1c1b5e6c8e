// SPDX-License-Identifier: Apache-2.0
// The arithmetic of atom and red, see atomic_operation.h.
#include "translator/lower/atomic_operation.h"

#include "translator/lower/floating_point.h"

namespace ptarmigan::translator::lower {

using Kind = AtomicOperation::Kind;

bool AtomicOperation::is_associative() const {
    if (is_float()) return false;
    return kind == Kind::add || kind == Kind::min || kind == Kind::max || kind == Kind::bit_and ||
           kind == Kind::bit_or || kind == Kind::bit_xor;
}

std::uint64_t AtomicOperation::identity() const {
    std::uint64_t all = bits() == 64 ? ~0ull : (1ull << bits()) - 1;
    switch (kind) {
    case Kind::bit_and: return all;
    case Kind::min: return ptx::is_signed(type) ? all >> 1 : all;
    case Kind::max: return ptx::is_signed(type) ? (all >> 1) + 1 : 0;
    default: return 0;
    }
}

AtomicOperation atomic_operation(const Instruction& inst, ptx::StateSpace space) {
    AtomicOperation operation;
    operation.type = inst.type();
    switch (inst.one_of({Word::add, Word::min, Word::max, Word::and_, Word::or_, Word::xor_, Word::inc, Word::dec,
                         Word::exch, Word::cas})) {
    case Word::min: operation.kind = Kind::min; break;
    case Word::max: operation.kind = Kind::max; break;
    case Word::and_: operation.kind = Kind::bit_and; break;
    case Word::or_: operation.kind = Kind::bit_or; break;
    case Word::xor_: operation.kind = Kind::bit_xor; break;
    case Word::inc: operation.kind = Kind::inc; break;
    case Word::dec: operation.kind = Kind::dec; break;
    case Word::exch: operation.kind = Kind::exch; break;
    case Word::cas: operation.kind = Kind::cas; break;
    default: operation.kind = Kind::add; break;
    }
    if ((operation.type == ScalarType::f32 || operation.type == ScalarType::f64) && operation.kind == Kind::add) {
        using Adder = AtomicOperation::Adder;
        operation.adder = space == ptx::StateSpace::shared   ? Adder::multiprocessor
                          : space == ptx::StateSpace::global ? Adder::cache
                                                             : Adder::by_address;
    }
    return operation;
}

namespace {

Value* add_float(Ir& ir, Value* a, Value* b, bool flush) {
    if (flush) {
        a = flush_subnormal(ir, a);
        b = flush_subnormal(ir, b);
    }
    Value* sum = canonicalize(ir, ir.CreateFAdd(a, b));
    return flush ? flush_subnormal(ir, sum) : sum;
}

/// In shared memory, where the multiprocessor adds the old value to the operand, the old value's NaN comes first.
Value* keep_old_nan(WarpEmitter& e, Value* sum, Value* old, Value* b) {
    Ir& ir = e.ir();
    if (e.options().approximation == Approximation::exact)
        for (Value* operand : {b, old})
            sum = ir.CreateSelect(ir.CreateFCmpUNO(operand, operand), quieted(ir, operand), sum);
    return to_bits(ir, sum);
}

/// half and bfloat: the sum in single precision has more than twice their bits, so that rounding it again is exact.
Value* combine_half(Ir& ir, Kind kind, Value* a, Value* b, llvm::Type* half_type) {
    if (kind != Kind::add) {
        MinMaxOptions options;
        options.is_max = kind == Kind::max;
        return float_min_max(ir, a, b, options);
    }
    Value* sum = ir.CreateFAdd(widen_to_float(ir, a), widen_to_float(ir, b));
    return canonicalize(ir, narrow_to_half(ir, sum, half_type, Rounding::nearest_even));
}

/// In global memory, where the L2 cache adds, a signalling NaN stays one; the one behind comes first.
Value* keep_signalling(Ir& ir, Value* sum, Value* a, Value* b) {
    const auto if_nan = [&](Value* operand, Value* otherwise) {
        return ir.CreateSelect(ir.CreateFCmpUNO(operand, operand), to_bits(ir, operand), otherwise);
    };
    return if_nan(b, if_nan(a, to_bits(ir, sum)));
}

Value* combine_float(WarpEmitter& e, const AtomicOperation& operation, Value* old, Value* b, Value* is_shared) {
    Ir& ir = e.ir();
    Kind kind = operation.kind;
    switch (operation.type) {
    case ScalarType::f16:
    case ScalarType::bf16: {
        llvm::Type* half = half_type_of(e, operation.type);
        llvm::Type* type = typed(half, old);
        return to_bits(ir, combine_half(ir, kind, ir.CreateBitCast(old, type), ir.CreateBitCast(b, type), half));
    }
    case ScalarType::f16x2:
    case ScalarType::bf16x2: {
        llvm::Type* half = half_type_of(e, operation.type);
        auto [old_low, old_high] = unpack_halves(ir, old, half);
        auto [low, high] = unpack_halves(ir, b, half);
        return pack_halves(ir, combine_half(ir, kind, old_low, low, half),
                           combine_half(ir, kind, old_high, high, half));
    }
    default: break;
    }
    llvm::Type* type = typed(e.type(operation.type), old);
    Value* x = ir.CreateBitCast(old, type);
    Value* y = ir.CreateBitCast(b, type);
    if (kind != Kind::add) {
        MinMaxOptions options;
        options.is_max = kind == Kind::max;
        return to_bits(ir, float_min_max(ir, x, y, options));
    }
    const auto add_by = [&](AtomicOperation::Adder adder) {
        const bool is_cache = adder == AtomicOperation::Adder::cache;
        if (operation.type == ScalarType::f32) return to_bits(ir, add_float(ir, x, y, is_cache));
        Value* sum = add_float(ir, x, y, false);
        // That of an invalid sum has its sign set, which x86 does, too.
        if (e.options().target.architecture == TargetCpu::Architecture::aarch64)
            sum = ir.CreateSelect(is_nan(ir, sum), canonical_nan(sum), sum);
        return is_cache ? keep_signalling(ir, sum, x, y) : keep_old_nan(e, sum, x, y);
    };
    if (operation.adder != AtomicOperation::Adder::by_address) return add_by(operation.adder);
    return ir.CreateSelect(is_shared, add_by(AtomicOperation::Adder::multiprocessor),
                           add_by(AtomicOperation::Adder::cache));
}

} // namespace

Value* combine(WarpEmitter& e, const AtomicOperation& operation, Value* old, Value* b, Value* c, Value* is_shared) {
    Ir& ir = e.ir();
    bool is_signed = ptx::is_signed(operation.type);
    switch (operation.kind) {
    case Kind::exch: return b;
    case Kind::cas: return ir.CreateSelect(ir.CreateICmpEQ(old, b), c, old);
    default: break;
    }
    if (operation.is_float()) return combine_float(e, operation, old, b, is_shared);
    Value* zero = integer(old, 0);
    Value* one = integer(old, 1);
    switch (operation.kind) {
    case Kind::min: return minimum(ir, old, b, is_signed);
    case Kind::max: return maximum(ir, old, b, is_signed);
    case Kind::bit_and: return ir.CreateAnd(old, b);
    case Kind::bit_or: return ir.CreateOr(old, b);
    case Kind::bit_xor: return ir.CreateXor(old, b);
    case Kind::inc: return ir.CreateSelect(ir.CreateICmpUGE(old, b), zero, ir.CreateAdd(old, one));
    case Kind::dec: {
        Value* wraps = ir.CreateOr(ir.CreateICmpEQ(old, zero), ir.CreateICmpUGT(old, b));
        return ir.CreateSelect(wraps, b, ir.CreateSub(old, one));
    }
    default: return ir.CreateAdd(old, b);
    }
}

Value* reduce_lanes(WarpEmitter& e, const AtomicOperation& operation, Value* vector) {
    Ir& ir = e.ir();
    bool is_signed = ptx::is_signed(operation.type);
    switch (operation.kind) {
    case Kind::min: return ir.CreateIntMinReduce(vector, is_signed);
    case Kind::max: return ir.CreateIntMaxReduce(vector, is_signed);
    case Kind::bit_and: return ir.CreateAndReduce(vector);
    case Kind::bit_or: return ir.CreateOrReduce(vector);
    case Kind::bit_xor: return ir.CreateXorReduce(vector);
    default: return ir.CreateAddReduce(vector);
    }
}

Value* exclusive_prefixes(WarpEmitter& e, const AtomicOperation& operation, Value* vector) {
    Ir& ir = e.ir();
    Value* identity = integer(vector, operation.identity());
    auto shifted = [&](Value* lanes, unsigned distance) {
        llvm::SmallVector<int, 32> mask;
        for (unsigned lane = 0; lane < e.width(); ++lane)
            mask.push_back(lane < distance ? int(e.width() + lane) : int(lane - distance));
        return ir.CreateShuffleVector(lanes, identity, mask);
    };
    Value* prefixes = shifted(vector, 1);
    for (unsigned distance = 1; distance < e.width(); distance *= 2)
        prefixes = combine(e, operation, shifted(prefixes, distance), prefixes, nullptr, nullptr);
    return prefixes;
}

} // namespace ptarmigan::translator::lower
