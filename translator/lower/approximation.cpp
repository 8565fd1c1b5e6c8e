// SPDX-License-Identifier: Apache-2.0
// The .approx and .full forms of chapters 9.7.3 and 9.7.4. By default they give the bits of the hardware's special
// function unit (translator/builtins/sfu); PTARMIGAN_APPROX=fast asks for anything within the manual's bounds.
#include "translator/lower/floating_point.h"
#include "translator/lower/lane_calls.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

namespace ptarmigan::translator::lower {

namespace {

bool is_fast(WarpEmitter& e) {
    return e.options().approximation == Approximation::fast;
}

// The builtins come with and without flushing: "rcp_ftz" and "rcp".
std::string variant(const char* function, bool ftz) {
    return std::string(function) + (ftz ? "_ftz_f32" : "_f32");
}

Value* root(Ir& ir, Value* value) {
    return ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, value);
}

/// vrsqrt14ps: within 2^-14 of 1 / sqrt(a), exact for zeros and infinities, right for subnormals too.
Value* rsqrt_estimate(Ir& ir, Value* a) {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(a->getType());
    const unsigned lanes = std::clamp(vector ? vector->getNumElements() : 1u, 4u, 16u);
    const llvm::Intrinsic::ID id = lanes == 16  ? llvm::Intrinsic::x86_avx512_rsqrt14_ps_512
                                   : lanes == 8 ? llvm::Intrinsic::x86_avx512_rsqrt14_ps_256
                                                : llvm::Intrinsic::x86_avx512_rsqrt14_ps_128;
    return in_chunks(ir, {a}, lanes, [&](Ir& ir, Values chunk) -> Value* {
        Value* all = ir.getIntN(std::max(8u, lanes), (1u << lanes) - 1);
        return ir.CreateIntrinsic(id, {}, {chunk[0], llvm::Constant::getNullValue(chunk[0]->getType()), all});
    });
}

/// One Newton step, y + y (1/2 - a y y/2), leaves less than 1.6 * 2^-24: 1/2 ulp of rounding, 1/4 of a y/2's and 1.5 *
/// 2^-28.
Value* fast_rsqrt(Ir& ir, Value* a) {
    Value* y = rsqrt_estimate(ir, a);
    Value* half = ir.CreateFMul(y, real(y, 0.5));
    Value* correction = ir.CreateIntrinsic(llvm::Intrinsic::fma, {y->getType()},
                                           {ir.CreateFNeg(ir.CreateFMul(a, half)), y, real(y, 0.5)});
    // It is NaN for zeros and infinities, whose estimates stay as they are; else it is smaller than this.
    Value* bound = real(y, 0x1p-10);
    correction = ir.CreateSelect(ir.CreateFCmpOLT(correction, bound), correction, bound);
    return canonicalize(ir, ir.CreateIntrinsic(llvm::Intrinsic::fma, {y->getType()}, {y, correction, y}));
}

// Within the manual's bound and cheaper than the model: an instruction of the CPU, or a polynomial.
Value* fast_form(WarpEmitter& e, std::string_view function, Value* a, bool ftz) {
    Ir& ir = e.ir();
    if (ftz) a = flush_subnormal(ir, a);
    Value* result;
    if (function == "rcp")
        result = canonicalize(ir, ir.CreateFDiv(real(a, 1), a));
    else if (function == "sqrt")
        result = canonicalize(ir, root(ir, a));
    else if (function == "rsqrt" && e.options().target.avx512)
        result = fast_rsqrt(ir, a);
    else if (function == "rsqrt")
        result = canonicalize(ir, ir.CreateFDiv(real(a, 1), root(ir, a)));
    else
        result = call_lanes(e, std::string(function) + "_fast_f32", a, ir.getFloatTy());
    return ftz ? flush_subnormal(ir, result) : result;
}

/// Where the model takes no longer than the polynomial (ns for 16 lanes on a Zen 5): with AVX-512 sines (3.7, where the
/// double precision of the fast form's reduction takes 6.0) and logarithms that flush (2.5 and 3.6), with VBMI all
/// logarithms (2.8 and 2.7, but cbrtf 10.4 and 12.9) and powers that flush (2.4 and 2.5, expf 4.9 and 5.8).
bool is_model_fast(WarpEmitter& e, std::string_view function, bool ftz) {
    if (!e.options().target.avx512) return false;
    const bool short_model = has_feature(e, "avx512vbmi");
    if (function == "ex2") return ftz && short_model;
    if (function == "lg2") return ftz || short_model;
    return function == "sin" || function == "cos";
}

void unary(WarpEmitter& e, const Instruction& inst, const char* function) {
    bool ftz = inst.has(Word::ftz);
    e.map(inst, {Role::a}, [&](Ir& ir, Values v) {
        if (is_fast(e) && !is_model_fast(e, function, ftz)) return fast_form(e, function, v[0], ftz);
        return call_lanes(e, variant(function, ftz), v, ir.getFloatTy());
    });
}

void quotient(WarpEmitter& e, const Instruction& inst, const char* function) {
    bool ftz = inst.has(Word::ftz);
    e.map(inst, {Role::a, Role::b}, [&](Ir& ir, Values v) {
        // div.approx gives 0 for large divisors, which a real division does not.
        if (is_fast(e) && function == std::string_view("div_full"))
            return float_arithmetic(e, FloatOperation::div, v, FloatOptions{Rounding::nearest_even, ftz, false});
        return call_lanes(e, variant(function, ftz), v, ir.getFloatTy());
    });
}

// Half and bfloat forms: the f32 unit on the widened operand, truncated to 16 bits.
Value* on_bits(WarpEmitter& e, std::string_view builtin, Value* half) {
    Ir& ir = e.ir();
    Value* bits = resize(ir, to_bits(ir, half), 32, false);
    Value* result = resize(ir, call_lanes(e, builtin, bits, ir.getInt32Ty()), 16, false);
    return from_bits(ir, result, half);
}

void half_unary(WarpEmitter& e, const Instruction& inst, const char* function) {
    llvm::Type* type = half_type_of(e, inst.type());
    std::string builtin = std::string(function) + (type->isBFloatTy() ? "_bf16" : "_f16");
    bool packed = ptx::type_class(inst.type()) == ptx::TypeClass::packed;
    e.map(inst, {Role::a}, [&](Ir& ir, Values v) {
        if (!packed) return on_bits(e, builtin, v[0]);
        auto halves = unpack_halves(ir, v[0], type);
        Value* low = on_bits(e, builtin, halves.first);
        return pack_halves(ir, low, on_bits(e, builtin, halves.second));
    });
}

// A builtin that takes and gives the high words of doubles, whose low words become zero.
Value* on_high_words(WarpEmitter& e, std::string_view builtin, Value* real) {
    Ir& ir = e.ir();
    Value* bits = to_bits(ir, real);
    Value* high = resize(ir, ir.CreateLShr(bits, integer(bits, 32)), 32, false);
    Value* result = resize(ir, call_lanes(e, builtin, high, ir.getInt32Ty()), 64, false);
    return from_bits(ir, ir.CreateShl(result, integer(result, 32)), real);
}

} // namespace

void rcp_approx(WarpEmitter& e, const Instruction& inst) {
    unary(e, inst, "rcp");
}
void sqrt_approx(WarpEmitter& e, const Instruction& inst) {
    unary(e, inst, "sqrt");
}
void rsqrt_approx(WarpEmitter& e, const Instruction& inst) {
    unary(e, inst, "rsqrt");
}
void sin_approx(WarpEmitter& e, const Instruction& inst) {
    unary(e, inst, "sin");
}
void cos_approx(WarpEmitter& e, const Instruction& inst) {
    unary(e, inst, "cos");
}
void lg2_approx(WarpEmitter& e, const Instruction& inst) {
    unary(e, inst, "lg2");
}
void ex2_approx(WarpEmitter& e, const Instruction& inst) {
    unary(e, inst, "ex2");
}
void tanh_approx(WarpEmitter& e, const Instruction& inst) {
    unary(e, inst, "tanh");
}

void div_approx(WarpEmitter& e, const Instruction& inst) {
    quotient(e, inst, "div_approx");
}
void div_full(WarpEmitter& e, const Instruction& inst) {
    quotient(e, inst, "div_full");
}

void rcp_approx_f64(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a}, [&](Ir&, Values v) { return on_high_words(e, "rcp_high", v[0]); });
}

void rsqrt_approx_f64(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a}, [&](Ir& ir, Values v) {
        if (inst.has(Word::ftz)) return on_high_words(e, "rsqrt_high", v[0]);
        Value* estimate = on_high_words(e, "rsqrt_high", call_lanes(e, "rsqrt_operand_f64", v, ir.getDoubleTy()));
        return call_lanes(e, "rsqrt_refined_f64", {v[0], estimate}, ir.getDoubleTy());
    });
}

void tanh_f16(WarpEmitter& e, const Instruction& inst) {
    half_unary(e, inst, "tanh");
}
void ex2_f16(WarpEmitter& e, const Instruction& inst) {
    half_unary(e, inst, "ex2");
}

} // namespace ptarmigan::translator::lower
