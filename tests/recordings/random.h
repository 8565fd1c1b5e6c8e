// SPDX-License-Identifier: Apache-2.0
// Pseudo-random bits that are the same on every machine (splitmix64).
#pragma once

#include <cstdint>

namespace recordings {

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t bits() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    unsigned below(unsigned count) { return unsigned((bits() >> 32) % count); }

private:
    std::uint64_t state_;
};

} // namespace recordings
