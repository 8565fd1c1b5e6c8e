// SPDX-License-Identifier: Apache-2.0
// Half precision: conversions of all 65536 values and packed arithmetic, against exact arithmetic on the host.
#include "common/program.h"

KERNEL void half_arithmetic(const unsigned short* left, const unsigned short* right, float* widened,
                            unsigned short* rounded, unsigned* packed, int n);

#ifdef __CUDACC__
#include <cuda_fp16.h>

__global__ void half_arithmetic(const unsigned short* left, const unsigned short* right, float* widened,
                                unsigned short* rounded, unsigned* packed, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __half a = __ushort_as_half(left[i]), b = __ushort_as_half(right[i]);
    widened[i] = __half2float(a);
    rounded[i] = __half_as_ushort(__float2half_rn(__half2float(a) * 1.0009765625f));
    const __half2 sum = __hadd2(__halves2half2(a, b), __halves2half2(b, b));
    packed[i] = __half_as_ushort(__low2half(sum)) | __half_as_ushort(__high2half(__hmul2(sum, sum))) << 16;
}
#endif

static double value_of(unsigned short half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                             : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                            : std::ldexp(fraction, -24);
    return half & 0x8000 ? -magnitude : magnitude;
}
static unsigned short half_of(double value) { // to nearest even
    if (std::isnan(value)) return 0x7fff;
    const unsigned sign = std::signbit(value) ? 0x8000 : 0;
    value = std::fabs(value);
    if (value >= 65520) return static_cast<unsigned short>(sign | 0x7c00);
    const int exponent = value == 0 ? -14 : std::max(-14, std::ilogb(value));
    const long long fraction = std::llrint(std::ldexp(value, 10 - exponent));
    return static_cast<unsigned short>(sign | (fraction + ((exponent + 14) << 10)));
}

int main(int argc, char** argv) {
    const test::Program program("half_arithmetic", argc, argv);
    const int n = 65536;
    test::Random random(23);
    std::vector<unsigned short> left(n), right(n);
    for (int i = 0; i < n; ++i) {
        left[i] = static_cast<unsigned short>(i);
        right[i] = static_cast<unsigned short>(random.bits());
    }
    const test::Buffer<unsigned short> da(left), db(right), rounded(n);
    const test::Buffer<float> widened(n);
    const test::Buffer<unsigned> packed(n);
    LAUNCH(half_arithmetic, n / 128, 128, 0, da, db, widened, rounded, packed, n);
    const std::vector<float> w = widened.download();
    const std::vector<unsigned short> r = rounded.download();
    const std::vector<unsigned> p = packed.download();
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        const double a = value_of(left[i]), b = value_of(right[i]);
        const double twice = value_of(half_of(b + b));
        wrong += std::isnan(a) ? !std::isnan(w[i]) : w[i] != static_cast<float>(a);
        wrong += r[i] != half_of(static_cast<float>(a) * 1.0009765625f);
        wrong += p[i] != (half_of(a + b) | static_cast<unsigned>(half_of(twice * twice)) << 16);
    }
    return program.finish(wrong == 0, "n=%d wrong=%d", n, wrong);
}
