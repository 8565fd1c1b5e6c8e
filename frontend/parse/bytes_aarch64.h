// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arm_neon.h>

namespace ptarmigan::ptx {

/// Bit i: byte i is not zero (all its bits are set).
inline unsigned bits_of(uint8x16_t bytes) {
    constexpr uint8x16_t weights = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t weighted = vandq_u8(bytes, weights);
    return vaddv_u8(vget_low_u8(weighted)) | unsigned{vaddv_u8(vget_high_u8(weighted))} << 8;
}

inline unsigned equal_bytes(const char* at, char c) {
    const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const unsigned char*>(at));
    return bits_of(vceqq_u8(bytes, vdupq_n_u8(static_cast<unsigned char>(c))));
}

inline unsigned name_bytes(const char* at) {
    const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const unsigned char*>(at));
    const auto in_range = [](uint8x16_t value, unsigned char first, unsigned char count) {
        return vcltq_u8(vsubq_u8(value, vdupq_n_u8(first)), vdupq_n_u8(count));
    };
    const uint8x16_t letters = in_range(vorrq_u8(bytes, vdupq_n_u8(0x20)), 'a', 26), digits = in_range(bytes, '0', 10);
    const uint8x16_t others = vorrq_u8(vceqq_u8(bytes, vdupq_n_u8('_')), vceqq_u8(bytes, vdupq_n_u8('$')));
    return bits_of(vorrq_u8(vorrq_u8(letters, digits), others));
}

} // namespace ptarmigan::ptx
