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
    if (c.kind == Kind::bits64 || c.kind == Kind::real) return c.bits;
    return std::bit_cast<std::uint64_t>(real_value(c));
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

} // namespace ptarmigan::ptx
