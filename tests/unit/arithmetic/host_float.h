// SPDX-License-Identifier: Apache-2.0
// Reference arithmetic on the host's floating-point unit.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace ptarmigan::test {

template <typename T> using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <typename T> T from_bits(std::uint64_t bits) { return std::bit_cast<T>(Bits<T>(bits)); }
template <typename T> Bits<T> to_bits(T value) { return std::bit_cast<Bits<T>>(value); }

/// NaN as the GPU writes it: all ones but the sign for float; the default quiet NaN for double.
template <typename T> Bits<T> canonical_bits(T value) {
    if (!std::isnan(value)) return to_bits(value);
    return sizeof(T) == 4 ? Bits<T>(0x7fffffff) : Bits<T>(0xfff8000000000000);
}

/// Bits of what `compute` gives in a rounding mode.
template <typename T, typename F> Bits<T> in_mode(int mode, F compute) {
    std::fesetround(mode);
    volatile T result = compute();
    std::fesetround(FE_TONEAREST);
    return canonical_bits<T>(result);
}

} // namespace ptarmigan::test
