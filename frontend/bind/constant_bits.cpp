// SPDX-License-Identifier: Apache-2.0
#include "frontend/bind/constant_bits.h"

#include <bit>

namespace ptarmigan::ptx {

namespace {

std::uint64_t low_bits(std::uint64_t value, unsigned bits) {
    return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

double real_value(const Constant& c) {
    if (c.kind == Constant::Kind::bits32) return std::bit_cast<float>(static_cast<std::uint32_t>(c.bits));
    return std::bit_cast<double>(c.bits);
}

std::optional<std::uint64_t> float_bits(const Constant& c, ScalarType type, std::string& why) {
    using Kind = Constant::Kind;
    if (c.is_integer()) {
        why = "an integer constant where a ." + std::string(spelling(type)) +
              " is needed: write it with a point, as in 1.0";
        return std::nullopt;
    }
    if (type == ScalarType::f32) {
        if (c.kind == Kind::bits32) return c.bits;
        return std::bit_cast<std::uint32_t>(static_cast<float>(real_value(c)));
    }
    return c.bits; // 0f among .f64: its 32 bits are the low ones, as on a GPU
}

} // namespace

std::optional<std::uint64_t> constant_bits(const Constant& c, ScalarType type, std::string& why) {
    using Kind = Constant::Kind;
    if (type == ScalarType::f32 || type == ScalarType::f64) return float_bits(c, type, why);
    if (type == ScalarType::pred) {
        if (c.is_integer()) return c.bits != 0;
        why = "a predicate constant must be an integer";
        return std::nullopt;
    }
    const unsigned bits = bit_size(type);
    if (is_float(type)) {
        why = "there are no constants of type ." + std::string(spelling(type));
        return std::nullopt;
    }
    if (c.is_integer()) return low_bits(c.bits, bits);
    // A real number is a double, so it fits .b64 but not .b32.
    const bool untyped = type_class(type) == TypeClass::bits;
    if (untyped && bits == 32 && c.kind == Kind::bits32) return c.bits;
    if (untyped && bits == 64 && c.kind != Kind::bits32) return c.bits;
    why = "a floating-point constant where a ." + std::string(spelling(type)) + " is needed";
    return std::nullopt;
}

std::optional<std::uint64_t> element_bits(const Constant& c, ScalarType type, ElementRule rule, std::string& why) {
    const unsigned bits = bit_size(type);
    const bool is_packed = type_class(type) == TypeClass::packed || type == ScalarType::tf32;
    if (c.is_integer()) {
        const bool takes_integers = type == ScalarType::f16 || type == ScalarType::bf16 ||
                                    (rule == ElementRule::fragment && (is_packed || type == ScalarType::f64));
        return takes_integers ? low_bits(c.bits, bits) : constant_bits(c, type, why);
    }
    if (type == ScalarType::f32 && rule != ElementRule::converted) return low_bits(c.bits, 32);
    if (is_packed && rule == ElementRule::fragment) return low_bits(c.bits, 32);
    if (type == ScalarType::pred || is_packed || (is_float(type) && type != ScalarType::bf16))
        return constant_bits(c, type, why);
    return is_signed(type) || bits < 32 ? 0 : low_bits(c.bits, bits);
}

bool loses_value(const Constant& c, ScalarType type, std::uint64_t bits) {
    if (c.is_integer() || type == ScalarType::pred) return false;
    const bool is_single = c.kind == Constant::Kind::bits32;
    if (type == ScalarType::f32)
        return bits != (is_single ? c.bits : std::bit_cast<std::uint32_t>(static_cast<float>(real_value(c))));
    if (is_single) return bit_size(type) == 32 ? bits != c.bits : c.bits != 0;
    return bits != c.bits;
}

} // namespace ptarmigan::ptx
