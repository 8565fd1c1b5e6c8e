// SPDX-License-Identifier: Apache-2.0
// Which bytes of a block of 64 are a given character: what the lexer skips bodies with.
#pragma once

#include <cstddef>
#include <cstdint>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace ptarmigan::ptx {

inline constexpr std::size_t block_size = 64;

/// Bit i is set if byte i of the 64 at `block` is `c`.
inline std::uint64_t bytes_equal(const char* block, char c) {
    std::uint64_t bits = 0;
#ifdef __SSE2__
    const __m128i wanted = _mm_set1_epi8(c);
    for (unsigned i = 0; i < block_size; i += 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
        bits |= std::uint64_t(unsigned(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted)))) << i;
    }
#else
    for (unsigned i = 0; i < block_size; ++i) bits |= std::uint64_t(block[i] == c) << i;
#endif
    return bits;
}

} // namespace ptarmigan::ptx
