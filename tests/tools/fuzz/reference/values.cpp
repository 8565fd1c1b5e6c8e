// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/reference/values.h"

#include "tests/tools/fuzz/reference/numbers.h"

#include <algorithm>
#include <bit>
#include <set>

namespace fuzz::reference {

using namespace ptarmigan::ptx;
using Signed = __int128;
using F = FormId;
using M = Modifier;

namespace {

Bits ones(unsigned bits) { return bits >= 128 ? ~Bits(0) : (Bits(1) << bits) - 1; }
Bits cut(Bits value, unsigned bits) { return value & ones(bits); }
Signed number_of(Bits value, ScalarType type) { return Signed(extended(value, type)); }

Signed clamped(Signed value, unsigned bits, bool is_signed) {
    const Signed low = is_signed ? -(Signed(1) << (bits - 1)) : 0, high = (Signed(1) << (is_signed ? bits - 1 : bits)) - 1;
    return std::clamp(value, low, high);
}

unsigned leading_zeros(Bits value, unsigned bits) {
    unsigned count = 0;
    while (count < bits && !(value >> (bits - 1 - count) & 1)) ++count;
    return count;
}

/// One statement.
class Statement {
public:
    Statement(const Instruction& inst, const Read& read, bool& carry) : inst_(inst), read_(read), carry_(carry), type_(inst.types[0]), bits_(bit_size(type_)) {}

    Results run() {
        const std::string_view name = form_info(inst_.form).opcode;
        if (name == "setp" || name == "set") return comparison(name == "setp");
        if (name == "cvt") return {converted(inst_, read_(Role::a)), false, false};
        if (inst_.form == F::lop3 || inst_.form == F::lop3_pred) return logic_of_three();
        if (inst_.form == F::testp) return {0, tested(type_, read_(Role::a), inst_), false};
        if (is_float(type_) && name != "mov" && name != "selp" && name != "slct") return {arithmetic(name), false, false};
        return {cut(integer(name), width_of_result()), false, false};
    }

private:
    Bits a() const { return read_(Role::a); }
    Bits b() const { return read_(Role::b); }
    Bits c() const { return read_(Role::c); }
    Signed number(Role role) const { return number_of(read_(role), type_); }
    bool is(M modifier) const { return inst_.has(modifier); }

    unsigned width_of_result() const {
        switch (inst_.form) {
        case F::mul_wide:
        case F::mad_wide: return 2 * bits_;
        case F::popc:
        case F::clz:
        case F::bfind: return 32;
        default: return bits_;
        }
    }

    // --- floating point -----------------------------------------------------------------------------
    Bits arithmetic(std::string_view name) const {
        const Arithmetic how{type_, rounding_of(inst_), is(M::ftz), is(M::sat)};
        if (name == "add") return how.add(a(), b());
        if (name == "sub") return how.sub(a(), b());
        if (name == "mul") return how.mul(a(), b());
        if (name == "fma" || name == "mad") return how.fma(a(), b(), c());
        if (name == "div") return how.div(a(), b());
        if (name == "rcp") return how.div(type_ == ScalarType::f64 ? Bits(0x3ff0000000000000) : Bits(0x3f800000), a());
        if (name == "sqrt") return how.sqrt(a());
        if (name == "neg" || name == "abs") return how.with_sign(a(), name == "neg");
        if (name == "copysign") { // the sign of a
            const Bits sign = Bits(1) << (bits_ - 1);
            return (b() & ~sign) | (a() & sign);
        }
        return how.least(a(), b(), name == "max", is(M::NaN), is(M::xorsign));
    }

    // --- comparisons --------------------------------------------------------------------------------
    bool compared(ScalarType type) const {
        if (is_float(type)) return compare_floats(inst_, type, a(), b(), is(M::ftz));
        const Signed x = number_of(a(), type), y = number_of(b(), type);
        if (is(M::eq)) return x == y;
        if (is(M::ne)) return x != y;
        if (is(M::lt) || is(M::lo)) return x < y;
        if (is(M::le) || is(M::ls)) return x <= y;
        if (is(M::gt) || is(M::hi)) return x > y;
        return x >= y;
    }
    bool combined(bool result) const {
        const bool third = inst_[Role::c].kind != Operand::Kind::none && c();
        if (is(M::and_)) return result && third;
        if (is(M::or_)) return result || third;
        if (is(M::xor_)) return result != third;
        return result;
    }
    Results comparison(bool makes_predicate) const {
        const bool result = compared(makes_predicate ? type_ : inst_.types[1]);
        if (makes_predicate) return {0, combined(result), combined(!result)};
        const Bits yes = type_ == ScalarType::f32 ? 0x3f800000 : 0xffffffff;
        return {combined(result) ? yes : 0, false, false};
    }
    Results logic_of_three() const {
        const unsigned table = unsigned(read_(Role::lut));
        Bits d = 0;
        for (unsigned i = 0; i < 32; ++i)
            d |= Bits(table >> ((a() >> i & 1) * 4 + (b() >> i & 1) * 2 + (c() >> i & 1)) & 1) << i;
        if (inst_.form == F::lop3) return {d, false, false};
        const bool e = bool(read_(Role::e));
        return {d, is(M::and_) ? d != 0 && e : d != 0 || e, false};
    }

    // --- integers and bits ---------------------------------------------------------------------------
    Bits carried(Bits x, Bits y, bool in) {
        const Bits sum = cut(x, bits_) + cut(y, bits_) + in;
        if (is(M::cc)) carry_ = (sum >> bits_) & 1;
        return sum;
    }

    Bits product_part() const {
        const Signed x = number(Role::a), y = number(Role::b);
        if (bits_ < 64 || is(M::lo)) return is(M::hi) ? Bits(x * y) >> bits_ : Bits(x * y);
        if (is_signed(type_)) return Bits((x * y) >> 64);
        return Bits(x) * Bits(y) >> 64;
    }

    Bits halves(const std::function<Signed(Signed, Signed)>& operation) const {
        const ScalarType half = type_ == ScalarType::s16x2 ? ScalarType::s16 : ScalarType::u16;
        Bits result = 0;
        for (unsigned at = 0; at < 32; at += 16) result |= cut(Bits(operation(number_of(a() >> at, half), number_of(b() >> at, half))), 16) << at;
        return result;
    }

    Bits integer(std::string_view name) {
        const bool is_pair = type_class(type_) == TypeClass::packed;
        if (name == "add" || name == "sub") {
            const bool adds = name == "add";
            if (is_pair) return halves([&](Signed x, Signed y) { return adds ? x + y : x - y; });
            if (is(M::cc)) return adds ? carried(a(), b(), false) : carried(a(), ~b(), true);
            const Signed sum = adds ? number(Role::a) + number(Role::b) : number(Role::a) - number(Role::b);
            return is(M::sat) ? Bits(clamped(sum, bits_, true)) : Bits(sum);
        }
        if (name == "addc") return carried(a(), b(), carry_);
        if (name == "subc") return carried(a(), ~b(), carry_);
        if (name == "mul" || name == "mad" || name == "madc") {
            if (inst_.form == F::mul_wide) return Bits(number(Role::a) * number(Role::b));
            if (inst_.form == F::mad_wide) return Bits(number(Role::a) * number(Role::b)) + c();
            const Bits product = product_part();
            if (name == "mul") return product;
            if (inst_.form == F::mad_hi_sat) return Bits(clamped(number_of(product, type_) + number(Role::c), bits_, true));
            return name == "madc" || is(M::cc) ? carried(product, c(), name == "madc" && carry_) : product + c();
        }
        if (name == "mul24" || name == "mad24") {
            const auto of_24 = [&](Bits value) { return is_signed(type_) ? Signed(extended(value << 8, ScalarType::s32)) >> 8 : Signed(value & 0xffffff); };
            const Signed product = of_24(a()) * of_24(b());
            const Signed part = is(M::hi) ? product >> 16 : product;
            if (name == "mul24") return Bits(part);
            if (!is(M::sat)) return Bits(part) + c();
            return Bits(clamped(number_of(Bits(part), ScalarType::s32) + number(Role::c), 32, true));
        }
        if (name == "sad") return c() + Bits(number(Role::a) < number(Role::b) ? number(Role::b) - number(Role::a) : number(Role::a) - number(Role::b));
        if (name == "div" || name == "rem") {
            const Signed x = number(Role::a), y = number(Role::b);
            if (y == 0) return ~Bits(0); // what the hardware's programs leave
            return Bits(name == "div" ? x / y : x % y);
        }
        if (name == "abs") return Bits(number(Role::a) < 0 ? -number(Role::a) : number(Role::a));
        if (name == "neg") return Bits(-number(Role::a));
        if (name == "min" || name == "max") {
            const auto choose = [&](Signed x, Signed y) {
                const Signed chosen = name == "min" ? std::min(x, y) : std::max(x, y);
                return is(M::relu) ? std::max<Signed>(chosen, 0) : chosen;
            };
            return is_pair ? halves(choose) : Bits(choose(number(Role::a), number(Role::b)));
        }
        if (name == "popc") {
            unsigned count = 0;
            for (Bits left = a(); left != 0; left &= left - 1) ++count;
            return count;
        }
        if (name == "clz") return leading_zeros(a(), bits_);
        if (name == "bfind") {
            const bool flips = is_signed(type_) && number(Role::a) < 0;
            const unsigned zeros = leading_zeros(flips ? cut(~a(), bits_) : a(), bits_);
            if (zeros == bits_) return ~Bits(0);
            return is(M::shiftamt) ? zeros : bits_ - 1 - zeros;
        }
        if (name == "brev") {
            Bits result = 0;
            for (unsigned i = 0; i < bits_; ++i) result |= (a() >> i & 1) << (bits_ - 1 - i);
            return result;
        }
        if (name == "bfe") return field();
        if (name == "bfi") return with_field();
        if (name == "szext" || name == "bmsk") return bits_of_length(name == "bmsk");
        if (name == "dp4a" || name == "dp2a") return dot_product(name == "dp2a");
        if (name == "and") return a() & b();
        if (name == "or") return a() | b();
        if (name == "xor") return a() ^ b();
        if (name == "not") return ~a();
        if (name == "cnot") return a() == 0;
        if (name == "shl") return b() >= bits_ ? 0 : a() << unsigned(b());
        if (name == "shr") {
            if (b() < bits_) return Bits(number(Role::a) >> unsigned(b()));
            return is_signed(type_) && number(Role::a) < 0 ? ~Bits(0) : 0;
        }
        if (name == "shf") {
            const unsigned amount = is(M::clamp) ? unsigned(std::min<Bits>(c(), 32)) : unsigned(c() & 31);
            const Bits both = b() << 32 | a();
            return is(M::l) ? both << amount >> 32 : both >> amount;
        }
        if (name == "prmt") return permuted();
        if (name == "selp") return c() ? a() : b();
        if (name == "slct") return slct();
        return a(); // mov
    }

    Bits slct() const {
        if (inst_.form == F::slct_s32) return Signed(extended(c(), ScalarType::s32)) >= 0 ? a() : b();
        return !compare_with_zero_is_less_or_nan(c(), is(M::ftz)) ? a() : b();
    }

    Bits field() const {
        const unsigned position = unsigned(b() & (bits_ == 32 ? 255 : 0xffffffff)), length = unsigned(c() & (bits_ == 32 ? 255 : 0xffffffff));
        if (length == 0) return 0;
        const std::uint64_t last = std::min<std::uint64_t>(std::uint64_t(position) + length - 1, bits_ - 1);
        const bool sign = is_signed(type_) && (a() >> unsigned(last) & 1);
        Bits result = 0;
        for (unsigned i = 0; i < bits_; ++i) {
            const bool in_field = i < length && std::uint64_t(position) + i < bits_;
            result |= Bits(in_field ? bool(a() >> (position + i) & 1) : sign) << i;
        }
        return result;
    }

    Bits with_field() const {
        const unsigned position = unsigned(c() & (bits_ == 32 ? 255 : 0xffffffff)), length = unsigned(read_(Role::e) & (bits_ == 32 ? 255 : 0xffffffff));
        Bits result = b();
        for (std::uint64_t i = 0; i < length && position + i < bits_ && i < bits_; ++i) {
            const unsigned at = unsigned(position + i);
            result = (result & ~(Bits(1) << at)) | (a() >> unsigned(i) & 1) << at;
        }
        return result;
    }

    Bits bits_of_length(bool is_mask) const {
        if (is_mask) {
            const Bits position = is(M::clamp) ? a() : a() & 31, length = is(M::clamp) ? b() : b() & 31;
            Bits result = 0;
            for (unsigned i = 0; i < 32; ++i) result |= Bits(Bits(i) >= position && Bits(i) < position + length) << i;
            return result;
        }
        const Bits length = is(M::clamp) ? b() : b() & 31;
        if (length == 0) return 0;
        if (length >= 32) return a();
        const bool sign = is_signed(type_) && (a() >> unsigned(length - 1) & 1);
        return sign ? a() | ~ones(unsigned(length)) : a() & ones(unsigned(length));
    }

    Bits dot_product(bool of_two) const {
        const bool a_signed = is_signed(inst_.types[0]), b_signed = is_signed(inst_.types[1]);
        Signed sum = Signed(c());
        for (unsigned i = 0; i < (of_two ? 2u : 4u); ++i) {
            const Bits x = of_two ? a() >> 16 * i : a() >> 8 * i, y = of_two ? b() >> (8 * i + (is(M::hi) ? 16 : 0)) : b() >> 8 * i;
            const ScalarType wide = of_two ? (a_signed ? ScalarType::s16 : ScalarType::u16) : (a_signed ? ScalarType::s8 : ScalarType::u8);
            sum += number_of(x, wide) * number_of(y, b_signed ? ScalarType::s8 : ScalarType::u8);
        }
        return Bits(sum);
    }

    Bits permuted() const {
        const Bits both = b() << 32 | a();
        const unsigned selector = unsigned(c());
        Bits result = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned place = selector & 3;
            unsigned from = selector >> 4 * i & 7;
            bool spreads_sign = selector >> 4 * i & 8;
            if (inst_.form == F::prmt_mode) {
                spreads_sign = false;
                if (is(M::f4e)) from = place + i;
                if (is(M::b4e)) from = (place + 8 - i) & 7;
                if (is(M::rc8)) from = place;
                if (is(M::ecl)) from = std::max(place, i);
                if (is(M::ecr)) from = std::min(place, i);
                if (is(M::rc16)) from = (place & 1) * 2 + (i & 1);
            }
            Bits byte = both >> 8 * from & 255;
            if (spreads_sign) byte = byte & 128 ? 255 : 0;
            result |= byte << 8 * i;
        }
        return result;
    }

    const Instruction& inst_;
    const Read& read_;
    bool& carry_;
    ScalarType type_;
    unsigned bits_;
};

} // namespace

Bits extended(Bits value, ScalarType type) {
    const unsigned bits = bit_size(type);
    value = cut(value, bits);
    if (is_signed(type) && (value >> (bits - 1) & 1)) value |= ~ones(bits);
    return value;
}

Bits sum_of(ScalarType type, Bits a, Bits b) { return cut(a + b, bit_size(type)); }

bool computes(FormId form) {
    static const std::set<F> forms{
        F::add_int, F::add_sat_s32, F::add_x2, F::sub_int, F::sub_sat_s32, F::mul_lo, F::mul_hi, F::mul_wide, F::mad_lo, F::mad_hi, F::mad_hi_sat, F::mad_wide, F::mul24, F::mad24, F::mad24_sat,
        F::sad, F::div_int, F::rem_int, F::abs_int, F::neg_int, F::min_int, F::min_x2, F::min_relu, F::max_int, F::max_x2, F::max_relu, F::popc, F::clz, F::bfind, F::brev, F::bfe, F::bfi, F::szext,
        F::bmsk, F::dp4a, F::dp2a, F::add_cc, F::addc, F::addc_cc, F::sub_cc, F::subc, F::subc_cc, F::mad_cc, F::madc, F::madc_cc, F::testp, F::copysign, F::add_f32, F::add_f64, F::sub_f32, F::sub_f64,
        F::mul_f32, F::mul_f64, F::fma_f32, F::fma_f64, F::mad_f32, F::mad_f64, F::div_f32, F::div_f64, F::abs_f32, F::abs_f64, F::neg_f32, F::neg_f64, F::min_f32, F::min_f32_xorsign, F::min_f64,
        F::max_f32, F::max_f32_xorsign, F::max_f64, F::rcp_f32, F::rcp_f64, F::sqrt_f32, F::sqrt_f64, F::set_bits, F::set_signed, F::set_unsigned, F::set_bits_bool, F::set_signed_bool,
        F::set_unsigned_bool, F::set_float, F::set_float_bool, F::setp_bits, F::setp_bits_bool, F::setp_signed, F::setp_signed_bool, F::setp_unsigned, F::setp_unsigned_bool, F::setp_float,
        F::setp_float_bool, F::selp, F::slct_s32, F::slct_f32, F::and_bits, F::or_bits, F::xor_bits, F::not_bits, F::cnot, F::lop3, F::lop3_pred, F::shf, F::shl, F::shr, F::mov, F::mov_b128, F::prmt,
        F::prmt_mode, F::cvt_same_8, F::cvt_same_16, F::cvt_same_32, F::cvt_same_64, F::cvt_widen_16, F::cvt_widen_32, F::cvt_widen_64, F::cvt_narrow_8, F::cvt_narrow_16, F::cvt_narrow_32,
        F::cvt_sat_narrow_8, F::cvt_sat_narrow_16, F::cvt_sat_narrow_32, F::cvt_sat_u8_signed, F::cvt_sat_u16_signed, F::cvt_sat_u32_signed, F::cvt_sat_u64_signed, F::cvt_sat_s8_unsigned,
        F::cvt_sat_s16_unsigned, F::cvt_sat_s32_unsigned, F::cvt_sat_s64_unsigned, F::cvt_int_f32, F::cvt_int_f64, F::cvt_f32_int, F::cvt_f64_int, F::cvt_f64_f32, F::cvt_f32_f64};
    return forms.contains(form);
}

Results compute(const Instruction& inst, const Read& read, bool& carry) { return Statement(inst, read, carry).run(); }

} // namespace fuzz::reference
