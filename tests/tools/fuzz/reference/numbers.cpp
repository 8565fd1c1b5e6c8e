// SPDX-License-Identifier: Apache-2.0
// Compiled with -frounding-math: operations stay where the rounding mode is set.
#include "tests/tools/fuzz/reference/numbers.h"

#include "tests/tools/fuzz/reference/values.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <initializer_list>

namespace fuzz::reference {

using namespace ptarmigan::ptx;
using M = Modifier;

namespace {

class RoundingMode {
public:
    explicit RoundingMode(Rounding rounding) {
        static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
        std::fesetround(modes[unsigned(rounding)]);
    }
    ~RoundingMode() { std::fesetround(FE_TONEAREST); }
    RoundingMode(const RoundingMode&) = delete;
    RoundingMode& operator=(const RoundingMode&) = delete;
};

template <typename T> T real(Bits bits) {
    if constexpr (sizeof(T) == 4) return std::bit_cast<float>(std::uint32_t(bits));
    else return std::bit_cast<double>(std::uint64_t(bits));
}
Bits bits_of(float number) { return std::bit_cast<std::uint32_t>(number); }
Bits bits_of(double number) { return std::bit_cast<std::uint64_t>(number); }

constexpr Bits float_nan = 0x7fffffff, made_double_nan = 0xfff8000000000000, quiet_bit = 0x8000000000000;

float flushed(float number) { return std::fpclassify(number) == FP_SUBNORMAL ? std::copysign(0.0f, number) : number; }

/// Of several NaNs the last one of the list that is one, quieted, else the one that is made.
Bits double_nan(std::initializer_list<double> by_importance) {
    for (double number : by_importance)
        if (std::isnan(number)) return bits_of(number) | quiet_bit;
    return made_double_nan;
}

/// `operation` of floats: flushed before and behind. The hardware rounds to 24 bits first, as if exponents had no end, so what
/// is tiny is seen by operands that are 2^24 times as large: the smaller factor, which stays finite where the result is near
/// the smallest normal number.
template <typename Operation> Bits of_floats(const Arithmetic& how, float a, float b, float c, bool scales, bool is_fused, Operation operation) {
    if (how.ftz) a = flushed(a), b = flushed(b), c = flushed(c);
    float result = 0, large = 0;
    {
        RoundingMode mode(how.rounding);
        volatile float x = a, y = b, z = c;
        volatile float in_this_mode = operation(x, y, z);
        result = in_this_mode;
        const bool first = !is_fused || std::fabs(a) <= std::fabs(b);
        volatile float larger = first ? a * 0x1p24f : a, other = first ? b : b * 0x1p24f, addend = is_fused ? c * 0x1p24f : c;
        volatile float large_in_this_mode = operation(larger, other, addend);
        large = large_in_this_mode;
    }
    if (std::isnan(result)) return how.sat ? Bits(0) : float_nan;
    if (how.ftz) {
        if (scales ? std::fabs(result) <= 0x1p-126f && std::fabs(large) < 0x1p-102f : std::fpclassify(result) == FP_SUBNORMAL) result = std::copysign(0.0f, result);
    }
    if (how.sat) result = result > 0 ? std::min(result, 1.0f) : 0.0f;
    return bits_of(result);
}

template <typename Operation> double of_doubles(const Arithmetic& how, double a, double b, double c, Operation operation) {
    RoundingMode mode(how.rounding);
    volatile double x = a, y = b, z = c;
    volatile double result = operation(x, y, z);
    return result;
}

} // namespace

Rounding rounding_of(const Instruction& inst) {
    if (inst.has(M::rz) || inst.has(M::rzi)) return Rounding::zero;
    if (inst.has(M::rm) || inst.has(M::rmi)) return Rounding::down;
    return inst.has(M::rp) || inst.has(M::rpi) ? Rounding::up : Rounding::nearest;
}

Bits Arithmetic::add(Bits a, Bits b) const {
    if (type == ScalarType::f32) return of_floats(*this, real<float>(a), real<float>(b), 0, false, false, [](float x, float y, float) { return x + y; });
    const double result = of_doubles(*this, real<double>(a), real<double>(b), 0, [](double x, double y, double) { return x + y; });
    return std::isnan(result) ? double_nan({real<double>(b), real<double>(a)}) : bits_of(result);
}

Bits Arithmetic::sub(Bits a, Bits b) const {
    if (type == ScalarType::f32) return of_floats(*this, real<float>(a), real<float>(b), 0, false, false, [](float x, float y, float) { return x - y; });
    const double result = of_doubles(*this, real<double>(a), real<double>(b), 0, [](double x, double y, double) { return x - y; });
    return std::isnan(result) ? double_nan({real<double>(b), real<double>(a)}) : bits_of(result);
}

Bits Arithmetic::mul(Bits a, Bits b) const {
    if (type == ScalarType::f32) return of_floats(*this, real<float>(a), real<float>(b), 0, true, false, [](float x, float y, float) { return x * y; });
    const double result = of_doubles(*this, real<double>(a), real<double>(b), 0, [](double x, double y, double) { return x * y; });
    return std::isnan(result) ? double_nan({real<double>(b), real<double>(a)}) : bits_of(result);
}

Bits Arithmetic::fma(Bits a, Bits b, Bits c) const {
    if (type == ScalarType::f32) return of_floats(*this, real<float>(a), real<float>(b), real<float>(c), true, true, [](float x, float y, float z) { return std::fma(x, y, z); });
    const double result = of_doubles(*this, real<double>(a), real<double>(b), real<double>(c), [](double x, double y, double z) { return std::fma(x, y, z); });
    return std::isnan(result) ? double_nan({real<double>(b), real<double>(c), real<double>(a)}) : bits_of(result);
}

Bits Arithmetic::div(Bits a, Bits b) const {
    if (type == ScalarType::f32) return of_floats(*this, real<float>(a), real<float>(b), 0, true, false, [](float x, float y, float) { return x / y; });
    const double result = of_doubles(*this, real<double>(a), real<double>(b), 0, [](double x, double y, double) { return x / y; });
    return std::isnan(result) ? double_nan({real<double>(a), real<double>(b)}) : bits_of(result);
}

Bits Arithmetic::sqrt(Bits a) const {
    if (type == ScalarType::f32) return of_floats(*this, real<float>(a), 0, 0, false, false, [](float x, float, float) { return std::sqrt(x); });
    const double result = of_doubles(*this, real<double>(a), 0, 0, [](double x, double, double) { return std::sqrt(x); });
    return std::isnan(result) ? double_nan({real<double>(a)}) : bits_of(result);
}

Bits Arithmetic::with_sign(Bits a, bool negates) const {
    if (type == ScalarType::f32) {
        const float number = ftz ? flushed(real<float>(a)) : real<float>(a);
        return std::isnan(number) ? float_nan : bits_of(negates ? -number : std::fabs(number));
    }
    const double number = real<double>(a);
    return std::isnan(number) ? a | quiet_bit : bits_of(negates ? -number : std::fabs(number));
}

Bits Arithmetic::least(Bits a, Bits b, bool is_max, bool keeps_nan, bool xors_signs) const {
    const Bits sign = Bits(1) << (bit_size(type) - 1), result_sign = (a ^ b) & sign;
    if (xors_signs) a &= ~sign, b &= ~sign;
    if (type == ScalarType::f32 && ftz) a = bits_of(flushed(real<float>(a))), b = bits_of(flushed(real<float>(b)));
    const auto is_nan = [&](Bits x) { return type == ScalarType::f32 ? std::isnan(real<float>(x)) : std::isnan(real<double>(x)); };
    const auto number = [&](Bits x) { return type == ScalarType::f32 ? double(real<float>(x)) : real<double>(x); };
    const bool nan_a = is_nan(a), nan_b = is_nan(b);
    if (nan_a && nan_b) return type == ScalarType::f32 ? float_nan : b | quiet_bit;
    if (nan_a || nan_b) {
        if (keeps_nan) return float_nan;
        return (nan_a ? b : a) | (xors_signs ? result_sign : 0);
    }
    const double x = number(a), y = number(b);
    const bool a_is_less = x < y || (x == y && (a & sign) != 0); // -0 is below +0
    return (a_is_less != is_max ? a : b) | (xors_signs ? result_sign : 0);
}

bool compare_floats(const Instruction& inst, ScalarType type, Bits a, Bits b, bool ftz) {
    double x = real<double>(a), y = real<double>(b);
    if (type == ScalarType::f32) {
        x = ftz ? flushed(real<float>(a)) : real<float>(a);
        y = ftz ? flushed(real<float>(b)) : real<float>(b);
    }
    const bool unordered = std::isnan(x) || std::isnan(y);
    if (inst.has(M::num)) return !unordered;
    if (inst.has(M::nan)) return unordered;
    if (inst.has(M::equ)) return unordered || x == y;
    if (inst.has(M::neu)) return unordered || x != y;
    if (inst.has(M::ltu)) return unordered || x < y;
    if (inst.has(M::leu)) return unordered || x <= y;
    if (inst.has(M::gtu)) return unordered || x > y;
    if (inst.has(M::geu)) return unordered || x >= y;
    if (unordered) return false;
    if (inst.has(M::eq)) return x == y;
    if (inst.has(M::ne)) return x != y;
    if (inst.has(M::lt)) return x < y;
    if (inst.has(M::le)) return x <= y;
    return inst.has(M::gt) ? x > y : x >= y;
}

bool compare_with_zero_is_less_or_nan(Bits value, bool ftz) {
    const float number = ftz ? flushed(real<float>(value)) : real<float>(value);
    return !(number >= 0);
}

bool tested(ScalarType type, Bits value, const Instruction& inst) {
    const int kind = type == ScalarType::f32 ? std::fpclassify(real<float>(value)) : std::fpclassify(real<double>(value));
    if (inst.has(M::finite)) return kind != FP_NAN && kind != FP_INFINITE;
    if (inst.has(M::infinite)) return kind == FP_INFINITE;
    if (inst.has(M::number)) return kind != FP_NAN;
    if (inst.has(M::notanumber)) return kind == FP_NAN;
    return inst.has(M::normal) ? kind == FP_NORMAL || kind == FP_ZERO : kind == FP_SUBNORMAL;
}

namespace {

Bits integer_of(const Instruction& inst, ScalarType to, ScalarType from, double number) {
    const unsigned bits = bit_size(to);
    if (std::isnan(number)) return bits == 64 || from == ScalarType::f64 ? Bits(1) << (bits - 1) : 0;
    double whole = 0;
    {
        RoundingMode mode(rounding_of(inst));
        volatile double x = number;
        whole = std::nearbyint(x);
    }
    const double low = is_signed(to) ? -std::ldexp(1.0, int(bits) - 1) : 0, end = std::ldexp(1.0, int(bits) - (is_signed(to) ? 1 : 0));
    const Bits mask = (Bits(1) << bits) - 1;
    if (whole <= low) return Bits(__int128(low)) & mask;
    if (whole >= end) return (is_signed(to) ? mask >> 1 : mask);
    return Bits(__int128(whole)) & mask;
}

} // namespace

Bits converted(const Instruction& inst, Bits value) {
    const ScalarType to = inst.types[0], from = inst.types[1];
    const Rounding rounding = rounding_of(inst);
    const bool ftz = inst.has(M::ftz), sat = inst.has(M::sat);
    if (is_integer(to) && is_integer(from)) {
        const Bits wide = extended(value, from);
        const unsigned bits = bit_size(to);
        if (!sat) return wide & ((Bits(1) << bits) - 1);
        const __int128 low = is_signed(to) ? -(__int128(1) << (bits - 1)) : 0, high = (__int128(1) << (is_signed(to) ? bits - 1 : bits)) - 1;
        return Bits(std::clamp(__int128(wide), low, high)) & ((Bits(1) << bits) - 1);
    }
    if (is_integer(to)) {
        const double number = from == ScalarType::f64 ? real<double>(value) : double(ftz ? flushed(real<float>(value)) : real<float>(value));
        return integer_of(inst, to, from, number);
    }
    if (is_integer(from)) {
        const __int128 number = __int128(extended(value, from));
        RoundingMode mode(rounding);
        const auto as = [&](auto zero) {
            using T = decltype(zero);
            // The host converts 64 bits of either kind with the mode that is set.
            volatile std::int64_t small = std::int64_t(number);
            volatile std::uint64_t large = std::uint64_t(number);
            volatile T result = number < 0 || number <= __int128(INT64_MAX) ? T(small) : T(large);
            T final_result = result;
            if (sat) final_result = final_result > 0 ? std::min(final_result, T(1)) : T(0);
            return bits_of(final_result);
        };
        return to == ScalarType::f32 ? as(0.0f) : as(0.0);
    }
    if (to == ScalarType::f64) { // of f32
        const float number = ftz ? flushed(real<float>(value)) : real<float>(value);
        if (sat) return bits_of(double(number > 0 ? std::min(number, 1.0f) : 0.0f));
        if (!std::isnan(number)) return bits_of(double(number));
        if (ftz) value = float_nan; // the flush is an operation of its own
        return Bits(value >> 31 & 1) << 63 | Bits(0x7ff8000000000000) | Bits(value & 0x7fffff) << 29;
    }
    const double number = real<double>(value);
    if (std::isnan(number)) return sat ? Bits(0) : (value >> 63 & 1) << 31 | 0x7fc00000 | (value >> 29 & 0x3fffff);
    float result = 0;
    bool is_tiny = false;
    {
        RoundingMode mode(rounding);
        volatile double x = number;
        result = float(x);
        volatile double large = number * 0x1p24;
        is_tiny = std::fabs(float(large)) < 0x1p-102f;
    }
    if (ftz && is_tiny) result = std::copysign(0.0f, result);
    if (sat) result = result > 0 ? std::min(result, 1.0f) : 0.0f;
    return bits_of(result);
}

} // namespace fuzz::reference
