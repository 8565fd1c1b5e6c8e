// SPDX-License-Identifier: Apache-2.0
// One benchmark problem, described once for all peers: buffers, arguments, launch shape, and how to check the result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace bench {

using Bytes = std::vector<std::byte>;

/// Kernel argument: a buffer by index, or a 32-bit scalar.
struct Argument {
    int buffer = -1;
    std::uint32_t bits = 0;
};
inline Argument buffer(int index) {
    return {index, 0};
}
inline Argument scalar(std::int32_t value) {
    return {-1, std::uint32_t(value)};
}
inline Argument scalar(float value) {
    Argument argument;
    std::memcpy(&argument.bits, &value, 4);
    return argument;
}

struct KernelCase {
    std::string name;   ///< as printed
    std::string kernel; ///< entry in kernels.ptx and kernels.cl
    std::vector<Bytes> buffers;
    std::vector<Argument> arguments;
    std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1};
    int repeats = 1; ///< launches per timed run, for very short kernels
    int output = 0;  ///< index of the buffer that is checked
    bool output_is_float = true;
    float tolerance = 0;           ///< relative to the largest magnitude of the output; 0 = bit-equal
    bool reduce_output = false;    ///< compare the sums: peers may leave different partial results
    double allowed_mismatches = 0; ///< share of elements that may differ (Mandelbrot's rounding at the border)
    std::string unit;              ///< "GB/s", "GFLOP/s", ...
    double work = 0;               ///< in 1e9 of the unit, per launch
    std::function<void(std::vector<Bytes>&)> openmp;
    std::function<void(std::vector<Bytes>&)> blas; ///< empty: no BLAS form
    std::function<void(std::vector<Bytes>&)>
        lanes; ///< gangs of lanes with masks, as ISPC makes them; empty: no such form
};

template <typename T> T* as(Bytes& bytes) {
    return reinterpret_cast<T*>(bytes.data());
}
template <typename T> const T* as(const Bytes& bytes) {
    return reinterpret_cast<const T*>(bytes.data());
}

/// The problems that the program is linked with: those of kernels/cases.cpp or those of divergence/; `scale`
/// divides the sizes (1 = full).
std::vector<KernelCase> all_cases(int scale);

/// Something that can run a case: prepares once, then runs repeatedly.
class Peer {
public:
    virtual ~Peer() = default;
    virtual const char* name() const = 0;
    /// False if this peer has no form of the case.
    virtual bool prepare(const KernelCase& problem) = 0;
    /// Runs `repeats` launches to completion.
    virtual void run() = 0;
    /// The checked buffer after the runs so far.
    virtual Bytes output() = 0;
};

} // namespace bench
