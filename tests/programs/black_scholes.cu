// SPDX-License-Identifier: Apache-2.0
// European option prices.
#include "common/program.h"

KERNEL void black_scholes(const float* price, const float* strike, const float* years, float* call, float* put, int n);

template <class Real>
#ifdef __CUDACC__
__host__ __device__
#endif
static void value_option(Real price, Real strike, Real years, Real& call, Real& put) {
    const Real rate = Real(0.02), volatility = Real(0.3);
    const Real root = std::sqrt(years);
    const Real d1 = (std::log(price / strike) + (rate + volatility * volatility / 2) * years) / (volatility * root);
    const Real d2 = d1 - volatility * root;
    const Real n1 = std::erfc(-d1 * Real(0.70710678118654752)) / 2, n2 = std::erfc(-d2 * Real(0.70710678118654752)) / 2;
    const Real discounted = strike * std::exp(-rate * years);
    call = price * n1 - discounted * n2;
    put = discounted * (1 - n2) - price * (1 - n1);
}

#ifdef __CUDACC__
__global__ void black_scholes(const float* price, const float* strike, const float* years, float* call, float* put,
                              int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        value_option(price[i], strike[i], years[i], call[i], put[i]);
}
#endif

int main(int argc, char** argv) {
    const test::Program program("black_scholes", argc, argv);
    const int n = program.argument(0, 100000);
    test::Random random(9);
    const std::vector<float> price = random.floats(n, 5, 30), strike = random.floats(n, 1, 100),
                             years = random.floats(n, 0.25f, 10);
    const test::Buffer<float> dp(price), ds(strike), dy(years), call(n), put(n);
    LAUNCH(black_scholes, 64, 128, 0, dp, ds, dy, call, put, n);
    std::vector<double> calls(n), puts(n);
    for (int i = 0; i < n; ++i) value_option<double>(price[i], strike[i], years[i], calls[i], puts[i]);
    // The digest depends on their order, which compilers choose for arguments.
    const double of_puts = test::worst_error(put.download(), puts), of_calls = test::worst_error(call.download(), calls);
    const double error = std::max(of_calls, of_puts);
    return program.finish(error < 1e-4, "n=%d error=%.2g", n, error);
}
