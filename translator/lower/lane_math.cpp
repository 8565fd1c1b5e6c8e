// SPDX-License-Identifier: Apache-2.0
// Arithmetic building blocks, see lane_math.h.
#include "translator/lower/lane_math.h"

#include "translator/llvm/sink_nan_canonicalization.h"

#include <llvm/ADT/APFloat.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/PatternMatch.h>

#include <cmath>

namespace ptarmigan::translator::lower {

namespace {

unsigned bits_of(Value* value) {
    return value->getType()->getScalarSizeInBits();
}
bool is_double(Value* value) {
    return value->getType()->getScalarType()->isDoubleTy();
}

/// Bits of the mantissa field of the lanes' floating type.
unsigned mantissa_bits(Value* value) {
    return llvm::APFloat::semanticsPrecision(value->getType()->getScalarType()->getFltSemantics()) - 1;
}

std::uint64_t sign_mask(Value* value) {
    return 1ull << (bits_of(value) - 1);
}

/// The bits of plus infinity, which are also the mask of the exponent field.
std::uint64_t exponent_mask(Value* value) {
    return sign_mask(value) - (1ull << mantissa_bits(value));
}

} // namespace

Rounding rounding_of(const Instruction& inst) {
    switch (inst.one_of({Word::rz, Word::rm, Word::rp, Word::rn}, Word::rn)) {
    case Word::rz: return Rounding::toward_zero;
    case Word::rm: return Rounding::down;
    case Word::rp: return Rounding::up;
    default: return Rounding::nearest_even;
    }
}

llvm::Type* typed(llvm::Type* scalar, Value* like) {
    return like->getType()->getWithNewType(scalar->getScalarType());
}

llvm::Type* integer_type(Value* value) {
    return typed(llvm::IntegerType::get(value->getContext(), bits_of(value)), value);
}

Value* integer(Value* like, std::uint64_t bits) {
    unsigned width = bits_of(like);
    llvm::APInt number(std::max(width, 64u), bits, /*isSigned=*/true);
    return llvm::ConstantInt::get(like->getType(), number.trunc(width));
}

Value* real(Value* like, double value) {
    return llvm::ConstantFP::get(like->getType(), value);
}

Value* real_bits(Value* like, std::uint64_t bits) {
    llvm::Type* scalar = like->getType()->getScalarType();
    llvm::APInt number(64, bits);
    return llvm::ConstantFP::get(like->getType(),
                                 llvm::APFloat(scalar->getFltSemantics(), number.trunc(bits_of(like))));
}

Value* to_bits(Ir& ir, Value* value) {
    return ir.CreateBitCast(value, integer_type(value));
}

Value* from_bits(Ir& ir, Value* bits, Value* like) {
    return ir.CreateBitCast(bits, like->getType());
}

Value* resize(Ir& ir, Value* value, unsigned bits, bool is_signed) {
    llvm::Type* type = typed(ir.getIntNTy(bits), value);
    return is_signed ? ir.CreateSExtOrTrunc(value, type) : ir.CreateZExtOrTrunc(value, type);
}

/// Of constants a constant: LLVM's builder folds no intrinsics, and code that is not optimised would compute them.
static Value* binary_intrinsic(Ir& ir, llvm::Intrinsic::ID id, Value* a, Value* b) {
    if (auto* left = llvm::dyn_cast<llvm::Constant>(a), *right = llvm::dyn_cast<llvm::Constant>(b); left && right)
        if (Value* folded = llvm::ConstantFoldBinaryIntrinsic(id, left, right, a->getType(), nullptr)) return folded;
    return ir.CreateBinaryIntrinsic(id, a, b);
}

Value* minimum(Ir& ir, Value* a, Value* b, bool is_signed) {
    return binary_intrinsic(ir, is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
}

Value* maximum(Ir& ir, Value* a, Value* b, bool is_signed) {
    return binary_intrinsic(ir, is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
}

Value* multiply_high(Ir& ir, Value* a, Value* b, bool is_signed) {
    unsigned bits = bits_of(a);
    if (bits < 64 || !a->getType()->isVectorTy()) {
        Value* product = ir.CreateMul(resize(ir, a, 2 * bits, is_signed), resize(ir, b, 2 * bits, is_signed));
        return resize(ir, ir.CreateLShr(product, integer(product, bits)), bits, false);
    }
    // Vectors have no 64 x 64 -> 128 product: four 32-bit ones.
    auto low = [&](Value* v) { return ir.CreateAnd(v, integer(v, 0xffffffffu)); };
    auto high = [&](Value* v) { return ir.CreateLShr(v, integer(v, 32)); };
    Value* cross = ir.CreateAdd(ir.CreateMul(high(a), low(b)), high(ir.CreateMul(low(a), low(b))));
    Value* cross2 = ir.CreateAdd(ir.CreateMul(low(a), high(b)), low(cross));
    Value* result = ir.CreateAdd(ir.CreateAdd(ir.CreateMul(high(a), high(b)), high(cross)), high(cross2));
    if (!is_signed) return result;
    // A negative factor counts 2^64 too much: take the other factor off the high half.
    auto correction = [&](Value* sign_of, Value* other) {
        return ir.CreateAnd(ir.CreateAShr(sign_of, integer(sign_of, 63)), other);
    };
    return ir.CreateSub(ir.CreateSub(result, correction(a, b)), correction(b, a));
}

Value* shift_left(Ir& ir, Value* value, Value* amount) {
    unsigned bits = bits_of(value);
    Value* too_far = ir.CreateICmpUGE(amount, integer(amount, bits));
    // The shift itself is poison for such amounts; the select discards it.
    return choose(ir, too_far, integer(value, 0), ir.CreateShl(value, amount));
}

Value* shift_right(Ir& ir, Value* value, Value* amount, bool is_signed) {
    unsigned bits = bits_of(value);
    if (is_signed) return ir.CreateAShr(value, minimum(ir, amount, integer(amount, bits - 1), false));
    Value* too_far = ir.CreateICmpUGE(amount, integer(amount, bits));
    return choose(ir, too_far, integer(value, 0), ir.CreateLShr(value, amount));
}

Value* is_nan(Ir& ir, Value* value) {
    return ir.CreateFCmpUNO(value, value);
}

Value* canonical_nan(Value* like) {
    if (is_double(like)) return real_bits(like, 0xfff8000000000000ull);
    return real_bits(like, sign_mask(like) - 1);
}

Value* choose(Ir& ir, Value* condition, Value* a, Value* b) {
    if (const auto* constant = llvm::dyn_cast<llvm::Constant>(condition)) {
        if (constant->isNullValue()) return b;
        if (constant->isAllOnesValue()) return a;
    }
    if (bits_of(a) > 16 || !a->getType()->isFPOrFPVectorTy()) return ir.CreateSelect(condition, a, b);
    return from_bits(ir, ir.CreateSelect(condition, to_bits(ir, a), to_bits(ir, b)), a);
}

Value* canonicalize(Ir& ir, Value* value) {
    if (is_double(value)) return value;
    return choose(ir, is_nan(ir, value), canonical_nan(value), value);
}

// Of halves by their bits: what LLVM makes of bfloat abs, neg and select goes through float and loses subnormals. It
// also makes abs and neg of integer operations wherever it sees a bfloat, so none may be left where halves are made
// (choose()).
Value* absolute(Ir& ir, Value* value) {
    if (bits_of(value) > 16) return ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
    Value* bits = to_bits(ir, value);
    return from_bits(ir, ir.CreateAnd(bits, integer(bits, 0x7fff)), value);
}

Value* negate(Ir& ir, Value* value) {
    if (bits_of(value) > 16) return ir.CreateFNeg(value);
    Value* bits = to_bits(ir, value);
    return from_bits(ir, ir.CreateXor(bits, integer(bits, 0x8000)), value);
}

namespace {

constexpr llvm::StringLiteral flushed_kind = "ptm.flushed";

} // namespace

Value* mark_flushed(Value* value) {
    if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(value))
        instruction->setMetadata(flushed_kind, llvm::MDNode::get(value->getContext(), {}));
    return value;
}

Value* any_nan(Ir& ir, Value* value) {
    value = ir.CreateFreeze(value);
    if (auto* freeze = llvm::dyn_cast<llvm::FreezeInst>(value))
        freeze->setMetadata(any_nan_metadata, llvm::MDNode::get(freeze->getContext(), {}));
    return value;
}

Value* flush_subnormal(Ir& ir, Value* value) {
    if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(value))
        if (instruction->getMetadata(flushed_kind)) return value;
    Value* bits = to_bits(ir, value);
    Value* tiny = ir.CreateICmpEQ(ir.CreateAnd(bits, integer(bits, exponent_mask(value))), integer(bits, 0));
    Value* zero = ir.CreateAnd(bits, integer(bits, sign_mask(value)));
    return mark_flushed(from_bits(ir, ir.CreateSelect(tiny, zero, bits), value));
}

Value* saturate_unit(Ir& ir, Value* value) {
    // Halves as floats: LLVM makes library calls of comparisons and selects of them.
    llvm::Type* scalar = value->getType()->getScalarType();
    if (scalar->isHalfTy() || scalar->isBFloatTy())
        return narrow_to_half(ir, saturate_unit(ir, widen_to_float(ir, value)), scalar, Rounding::nearest_even);
    if (Value* number = canonicalized(value)) value = number; // any NaN becomes 0
    Value* positive = ir.CreateSelect(ir.CreateFCmpOGT(value, real(value, 0)), value, real(value, 0));
    // x86 has an instruction for each choice as it stands here. InstCombine would exchange them, and then has not.
    positive = any_nan(ir, positive);
    return ir.CreateSelect(ir.CreateFCmpOLT(positive, real(value, 1)), positive, real(value, 1));
}

namespace {

/// What saturate_unit() has made.
bool is_saturated(Value* value) {
    using namespace llvm::PatternMatch;
    Value *positive = nullptr, *number = nullptr;
    llvm::FCmpInst::Predicate below{}, above{};
    return match(value,
                 m_Select(m_FCmp(below, m_Value(positive), m_SpecificFP(1)), m_Deferred(positive), m_SpecificFP(1))) &&
           below == llvm::FCmpInst::FCMP_OLT &&
           match(positive, m_Freeze(m_Select(m_FCmp(above, m_Value(number), m_AnyZeroFP()), m_Deferred(number),
                                             m_AnyZeroFP()))) &&
           above == llvm::FCmpInst::FCMP_OGT;
}

} // namespace

std::optional<double> magnitude_bound(Value* value) {
    using namespace llvm::PatternMatch;
    const llvm::APFloat* number = nullptr;
    if (match(value, m_APFloat(number)))
        return number->isFinite() ? std::optional(std::abs(number->convertToDouble())) : std::nullopt;
    return is_saturated(value) ? std::optional(1.0) : std::nullopt;
}

Value* next_toward_zero(Ir& ir, Value* value) {
    Value* bits = to_bits(ir, value);
    return from_bits(ir, ir.CreateSub(bits, integer(bits, 1)), value);
}

Value* next_away_from_zero(Ir& ir, Value* value) {
    Value* bits = to_bits(ir, value);
    return from_bits(ir, ir.CreateAdd(bits, integer(bits, 1)), value);
}

namespace {

// `nearest` is a number rounded to nearest whose magnitude came out too high or too low where the masks say so;
// steps it by one unit where `mode` asks for the other neighbour.
Value* redirect(Ir& ir, Value* nearest, Value* too_high, Value* too_low, Rounding mode) {
    Value* bits = to_bits(ir, nearest);
    Value* negative = ir.CreateICmpSLT(bits, integer(bits, 0));
    Value* shrink = too_high;
    Value* grow = nullptr;
    if (mode == Rounding::down) {
        shrink = ir.CreateAnd(too_high, ir.CreateNot(negative));
        grow = ir.CreateAnd(too_low, negative);
    } else if (mode == Rounding::up) {
        shrink = ir.CreateAnd(too_high, negative);
        grow = ir.CreateAnd(too_low, ir.CreateNot(negative));
    }
    Value* result = choose(ir, shrink, next_toward_zero(ir, nearest), nearest);
    return grow ? choose(ir, grow, next_away_from_zero(ir, nearest), result) : result;
}

Value* redirect_to(Ir& ir, Value* nearest, Value* widened, Value* exact, Rounding mode) {
    Value* magnitude = absolute(ir, widened);
    Value* target = absolute(ir, exact);
    return redirect(ir, nearest, ir.CreateFCmpOGT(magnitude, target), ir.CreateFCmpOLT(magnitude, target), mode);
}

// double to float, inexact results with a sticky last bit.
Value* float_to_odd(Ir& ir, Value* exact) {
    Value* narrow = ir.CreateFPTrunc(exact, typed(ir.getFloatTy(), exact));
    Value* widened = ir.CreateFPExt(narrow, exact->getType());
    Value* truncated = redirect_to(ir, narrow, widened, exact, Rounding::toward_zero);
    Value* inexact = ir.CreateFCmpONE(widened, exact);
    Value* bits = to_bits(ir, truncated);
    return from_bits(ir, ir.CreateOr(bits, ir.CreateZExt(inexact, bits->getType())), truncated);
}

// Nearest-even bfloat of a float, by integer rounding; NaN becomes 0x7fff.
Value* nearest_bfloat(Ir& ir, Value* value, llvm::Type* type) {
    Value* bits = to_bits(ir, value);
    Value* last = ir.CreateAnd(ir.CreateLShr(bits, integer(bits, 16)), integer(bits, 1));
    Value* rounded = ir.CreateAdd(bits, ir.CreateAdd(last, integer(bits, 0x7fff)));
    rounded = ir.CreateSelect(is_nan(ir, value), integer(bits, 0x7fff0000u), rounded);
    Value* high = resize(ir, ir.CreateLShr(rounded, integer(bits, 16)), 16, false);
    return ir.CreateBitCast(high, typed(type, value));
}

} // namespace

Value* narrow_to_float(Ir& ir, Value* exact, Rounding mode) {
    Value* narrow = ir.CreateFPTrunc(exact, typed(ir.getFloatTy(), exact));
    if (mode == Rounding::nearest_even) return narrow;
    return redirect_to(ir, narrow, ir.CreateFPExt(narrow, exact->getType()), exact, mode);
}

Value* narrow_to_half(Ir& ir, Value* exact, llvm::Type* half_type, Rounding mode) {
    if (is_double(exact)) exact = float_to_odd(ir, exact);
    Value* narrow = half_type->isBFloatTy() ? nearest_bfloat(ir, exact, half_type)
                                            : ir.CreateFPTrunc(exact, typed(half_type, exact));
    if (mode == Rounding::nearest_even) return narrow;
    return redirect_to(ir, narrow, widen_to_float(ir, narrow), exact, mode);
}

Value* widen_to_float(Ir& ir, Value* value) {
    llvm::Type* scalar = value->getType()->getScalarType();
    if (scalar->isFloatTy()) return value;
    llvm::Type* real_type = typed(ir.getFloatTy(), value);
    if (!scalar->isBFloatTy()) return ir.CreateFPExt(value, real_type);
    Value* bits = resize(ir, to_bits(ir, value), 32, false);
    return ir.CreateBitCast(ir.CreateShl(bits, integer(bits, 16)), real_type);
}

Value* sticky(Ir& ir, Value* rounded, Value* error) {
    // Of a NaN all stays as it is.
    Value* bits = to_bits(ir, any_nan(ir, rounded));
    error = any_nan(ir, error);
    Value* inexact = ir.CreateFCmpONE(error, real(error, 0));
    // Different signs: the exact sum lies nearer to zero. Toward zero, then an odd last bit.
    const unsigned width = bits->getType()->getScalarSizeInBits();
    Value* signs = ir.CreateXor(bits, to_bits(ir, error));
    Value* inward = ir.CreateAShr(signs, integer(signs, width - 1));
    Value* truncated = ir.CreateAdd(bits, ir.CreateSelect(inexact, inward, integer(bits, 0)));
    Value* last = ir.CreateSelect(inexact, integer(bits, 1), integer(bits, 0));
    return from_bits(ir, ir.CreateOr(truncated, last), rounded);
}

Value* step_by_error(Ir& ir, Value* nearest, Value* error, Rounding mode) {
    Value* inexact = ir.CreateFCmpONE(error, real(error, 0));
    Value* signs = ir.CreateXor(to_bits(ir, nearest), to_bits(ir, error));
    Value* opposite = ir.CreateICmpSLT(signs, integer(signs, 0));
    return redirect(ir, nearest, ir.CreateAnd(inexact, opposite), ir.CreateAnd(inexact, ir.CreateNot(opposite)), mode);
}

Value* sum_error(Ir& ir, Value* a, Value* b, Value* sum) {
    Value* b_part = ir.CreateFSub(sum, a);
    Value* a_part = ir.CreateFSub(sum, b_part);
    return ir.CreateFAdd(ir.CreateFSub(a, a_part), ir.CreateFSub(b, b_part));
}

std::pair<Value*, Value*> unpack_halves(Ir& ir, Value* packed, llvm::Type* half_type) {
    auto half = [&](Value* word) { return ir.CreateBitCast(resize(ir, word, 16, false), typed(half_type, packed)); };
    return {half(packed), half(ir.CreateLShr(packed, integer(packed, 16)))};
}

Value* pack_halves(Ir& ir, Value* low, Value* high) {
    Value* low_bits = resize(ir, to_bits(ir, low), 32, false);
    Value* high_bits = resize(ir, to_bits(ir, high), 32, false);
    return ir.CreateOr(low_bits, ir.CreateShl(high_bits, integer(high_bits, 16)));
}

llvm::Type* half_type_of(WarpEmitter& e, ScalarType type) {
    bool bfloat = type == ScalarType::bf16 || type == ScalarType::bf16x2;
    return e.type(bfloat ? ScalarType::bf16 : ScalarType::f16);
}

bool has_avx2(const TargetCpu& target) {
    return target.architecture == TargetCpu::Architecture::x86_64 &&
           ("," + target.features + ",").find(",-avx2,") == std::string::npos;
}

bool has_feature(const WarpEmitter& e, std::string_view feature) {
    const std::string& features = e.options().target.features;
    for (std::size_t at = features.find(feature); at != std::string::npos; at = features.find(feature, at + 1)) {
        std::size_t end = at + feature.size();
        bool enabled = at > 0 && features[at - 1] == '+';
        if (enabled && (end == features.size() || features[end] == ',')) return true;
    }
    return false;
}

} // namespace ptarmigan::translator::lower
