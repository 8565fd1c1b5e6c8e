// SPDX-License-Identifier: Apache-2.0
#include "frontend/bind/register_types.h"

namespace ptarmigan::ptx {

ScalarType with_bits(ScalarType type, unsigned bits) {
    const TypeClass wanted = type_class(type);
    for (unsigned i = 0; i <= static_cast<unsigned>(ScalarType::f64); ++i) {
        const auto candidate = static_cast<ScalarType>(i);
        if (type_class(candidate) == wanted && bit_size(candidate) == bits && candidate != ScalarType::tf32 &&
            candidate != ScalarType::bf16)
            return candidate;
    }
    return ScalarType::none;
}

bool register_fits(ScalarType have, ScalarType want, bool wider) {
    if (have == want) return true;
    TypeClass h = type_class(have);
    const TypeClass w = type_class(want);
    if (h == TypeClass::pred || w == TypeClass::pred) return false;
    const unsigned have_bits = bit_size(have), want_bits = bit_size(want);
    // Formats without a register type of their own live in untyped registers of just their size.
    const bool untyped_only = w == TypeClass::packed || want == ScalarType::bf16 || want == ScalarType::tf32 ||
                              (is_float(want) && want_bits == 8);
    if (untyped_only)
        return h == TypeClass::bits &&
               (wider && w == TypeClass::packed ? have_bits >= want_bits : have_bits == want_bits);
    if (wider ? have_bits < want_bits : have_bits != want_bits) return false;
    if (h == TypeClass::packed) h = TypeClass::unsigned_int; // .reg .f16x2 goes where an integer goes
    if (h == TypeClass::bits || w == TypeClass::bits) return true;
    return h != TypeClass::floating && is_integer(want);
}

ScalarType packed_in_register(ScalarType type) {
    if (type == ScalarType::f16 || type == ScalarType::bf16) return ScalarType::f16x2;
    return bit_size(type) < 32 ? ScalarType::b32 : type;
}

int component_number(std::string_view text) {
    constexpr std::string_view first = "xyzw", second = "rgba";
    if (text.size() != 1) return -1;
    const std::size_t at = first.find(text[0]);
    if (at != std::string_view::npos) return static_cast<int>(at);
    const std::size_t other = second.find(text[0]);
    return other == std::string_view::npos ? -1 : static_cast<int>(other);
}

} // namespace ptarmigan::ptx
