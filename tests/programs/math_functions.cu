// SPDX-License-Identifier: Apache-2.0
// The CUDA math library on the device against the host's in double precision, by relative error.
#include "common/program.h"

constexpr int functions = 14;

KERNEL void math_functions(const float* x, float* single, double* twice, int n);

/// The functions by number, for any real type; arguments are moved into each one's domain.
template <class Real>
#ifdef __CUDACC__
__host__ __device__
#endif
static Real apply(int function, Real x) {
    switch (function) {
    case 0: return std::sin(x);
    case 1: return std::cos(x);
    case 2: return std::tan(x / 8);
    case 3: return std::exp(x);
    case 4: return std::log(std::fabs(x) + Real(0.5));
    case 5: return std::pow(std::fabs(x), Real(1.75));
    case 6: return std::sqrt(std::fabs(x));
    case 7: return std::atan(x);
    case 8: return std::asin(x / 16);
    case 9: return std::tanh(x);
    case 10: return std::cbrt(x);
    case 11: return std::erf(x / 4);
    case 12: return std::log2(std::fabs(x) + 1);
    default: return std::fmod(x, Real(0.75));
    }
}

#ifdef __CUDACC__
__global__ void math_functions(const float* x, float* single, double* twice, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int f = 0; f < functions; ++f) {
        single[f * n + i] = apply<float>(f, x[i]);
        twice[f * n + i] = apply<double>(f, x[i]);
    }
}
#endif

int main(int argc, char** argv) {
    const test::Program program("math_functions", argc, argv);
    const int n = program.argument(0, 3000);
    test::Random random(26);
    const std::vector<float> x = random.floats(n, -15, 15);
    const test::Buffer<float> input(x), single(functions * n);
    const test::Buffer<double> twice(functions * n);
    LAUNCH(math_functions, test::blocks_for(n, 64), 64, 0, input, single, twice, n);
    const std::vector<float> s = single.download();
    const std::vector<double> d = twice.download();
    double worst_single = 0, worst_double = 0;
    for (int i = 0; i < functions * n; ++i) {
        // The single result is measured against the double one at the argument that single precision really saw.
        const double expected = apply<double>(i / n, x[i % n]);
        const double scale = std::max(std::fabs(expected), 1e-3);
        const double error = std::fabs(s[i] - expected) / scale, error_double = std::fabs(d[i] - expected) / scale;
        worst_single = std::isnan(error) ? INFINITY : std::max(worst_single, error);
        worst_double = std::isnan(error_double) ? INFINITY : std::max(worst_double, error_double);
    }
    return program.finish(worst_single < 2e-4 && worst_double < 1e-13, "n=%d single=%.2g double=%.2g", n, worst_single,
                          worst_double);
}
