// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/probes.h"

#include <cmath>

namespace ptarmigan::runtime {
namespace {

/// 128 times 2^(x / 256), for x from 0 to 256.
int table_exp2(int x) {
    return static_cast<int>(std::floor(std::exp2(7 + x / 256.0) + 0.5));
}

/// a * b / 2^bits, rounded down.
int scaled(int a, int b, int bits) {
    return (a * b) >> bits;
}

} // namespace

Probes::Probes(const LevelChoice& choice, bool second) {
    const int fraction = static_cast<int>(choice.fraction);
    const int ratio = ratio_in(choice, second);
    // The reciprocal of the ratio is `reciprocal` 256ths, shifted by `exponent`.
    int exponent = ratio >> 8, reciprocal = table_exp2(256 - (ratio & 255));
    if (reciprocal == 128) {
        reciprocal = 256;
        ++exponent;
    }
    whole_ = exponent <= 1 ? 256 : 512;
    inner_ = static_cast<unsigned>((exponent <= 1 ? 2 : 4) * reciprocal >> exponent);
    pairs_ = (whole_ + inner_ - 1) / inner_;
    const int stretch = second ? 64 : table_exp2(fraction) / 2; // 64ths
    for (unsigned i = 0; i < 2; ++i) {
        const int direction = choice.direction[i];
        // Steps are 64ths of a texel, and so are their halves.
        shift_[i] = pairs_ == 1
                        ? 2 * scaled(scaled(2 * direction * (256 - (reciprocal >> exponent)) + 128, 1, 8), stretch, 6)
                        : 2 * scaled(direction, stretch, 6);
    }
}

} // namespace ptarmigan::runtime
