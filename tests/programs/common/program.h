// SPDX-License-Identifier: Apache-2.0
// What the test programs share: kernels, buffers, launches, arguments, the verdict. One source serves two builds:
// nvcc makes a CUDA program of it, and the host compiler makes a program that uses the driver API and loads the kernels
// from ptx/<name>.ptx, for machines without nvcc.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace test {

/// A checksum of everything the program has read back from the device, to compare runs bit by bit (FNV-1a).
inline std::uint64_t digest = 14695981039346656037ull;
inline void add_to_digest(const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
        digest = (digest ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211ull;
}

} // namespace test

#ifdef __CUDACC__
#include "runtime_device.h"
#else
#include "driver_device.h"
#endif

namespace test {

/// Name, arguments and verdict of a program.
class Program {
public:
    Program(const char* name, int argc, char** argv) : name_(name), arguments_(argv + 1, argv + argc) {}

    /// The numeric argument at `index`, or `fallback`.
    int argument(std::size_t index, int fallback) const {
        return index < arguments_.size() ? std::atoi(arguments_[index].c_str()) : fallback;
    }
    std::string text(std::size_t index) const {
        return index < arguments_.size() ? arguments_[index] : std::string();
    }

    /// Prints the one line that says how it went; the result is for main() to return.
    int finish(bool ok, const char* format, ...) const {
        std::printf("%s %s ", ok ? "PASS" : "FAIL", name_);
        va_list arguments;
        va_start(arguments, format);
        std::vprintf(format, arguments);
        va_end(arguments);
        std::printf(" digest=%016llx\n", static_cast<unsigned long long>(digest));
        return ok ? 0 : 1;
    }

private:
    const char* name_;
    std::vector<std::string> arguments_;
};

/// The same numbers on every machine.
class Random {
public:
    explicit Random(std::uint32_t seed) : state_(seed * 2654435761u + 1u) {}
    std::uint32_t bits() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 17;
        state_ ^= state_ << 5;
        return state_;
    }
    std::uint32_t below(std::uint32_t bound) { return bits() % bound; }
    float uniform(float low, float high) {
        return low + (high - low) * (static_cast<float>(bits() >> 8) * (1.0f / 16777216.0f));
    }
    std::vector<float> floats(std::size_t count, float low, float high) {
        std::vector<float> values(count);
        for (float& value : values) value = uniform(low, high);
        return values;
    }

private:
    std::uint32_t state_;
};

/// Largest |actual - expected| / max(1, |expected|); infinite if a value is not a number.
template <class T, class U>
double worst_error(const std::vector<T>& actual, const std::vector<U>& expected) {
    double worst = actual.size() == expected.size() ? 0.0 : INFINITY;
    for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
        const double wanted = static_cast<double>(expected[i]);
        const double error = std::fabs(static_cast<double>(actual[i]) - wanted) /
                             std::max(1.0, std::fabs(wanted));
        worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
    return worst;
}

inline unsigned blocks_for(int count, int block) {
    return static_cast<unsigned>((count + block - 1) / block);
}

} // namespace test
