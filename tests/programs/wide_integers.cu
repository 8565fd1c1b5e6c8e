// SPDX-License-Identifier: Apache-2.0
// 128-bit integers: products, quotients, remainders and shifts. The compiler makes carry chains of them in which sums and
// differences share the carry.
#include "common/program.h"

struct Wide {
    unsigned long long low, high;
};

KERNEL void divide(const Wide* a, const Wide* b, Wide* quotients, Wide* remainders, int n);
KERNEL void divide_signed(const Wide* a, const Wide* b, Wide* quotients, Wide* remainders, int n);
KERNEL void multiply(const Wide* a, const Wide* b, Wide* products, Wide* mixed, int n);

__extension__ typedef unsigned __int128 Unsigned;
__extension__ typedef __int128 Signed;

#ifdef __CUDACC__
#define BOTH __host__ __device__
#else
#define BOTH
#endif
BOTH inline Unsigned value(Wide wide) { return static_cast<Unsigned>(wide.high) << 64 | wide.low; }
BOTH inline Wide wide(Unsigned value) {
    return {static_cast<unsigned long long>(value), static_cast<unsigned long long>(value >> 64)};
}
BOTH inline Unsigned mix(Unsigned a, Unsigned b) { return (a >> (b & 127)) - (b << (a & 127)) + ~(a + b) * 3; }

#ifdef __CUDACC__
__global__ void divide(const Wide* a, const Wide* b, Wide* quotients, Wide* remainders, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    quotients[i] = wide(value(a[i]) / value(b[i]));
    remainders[i] = wide(value(a[i]) % value(b[i]));
}

__global__ void divide_signed(const Wide* a, const Wide* b, Wide* quotients, Wide* remainders, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    quotients[i] = wide(static_cast<Signed>(value(a[i])) / static_cast<Signed>(value(b[i])));
    remainders[i] = wide(static_cast<Signed>(value(a[i])) % static_cast<Signed>(value(b[i])));
}

__global__ void multiply(const Wide* a, const Wide* b, Wide* products, Wide* mixed, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    products[i] = wide(value(a[i]) * value(b[i]));
    mixed[i] = wide(mix(value(a[i]), value(b[i])));
}
#endif

int main(int argc, char** argv) {
    const test::Program program("wide_integers", argc, argv);
    const int n = program.argument(0, 20000), threads = 128, blocks = (n + threads - 1) / threads;
    test::Random random(128);
    const auto word = [&] { return static_cast<unsigned long long>(random.below(0xffffffffu)) << 32 | random.below(0xffffffffu); };
    std::vector<Wide> a(n), b(n);
    for (int i = 0; i < n; ++i) {
        // Numbers of all lengths, and some that are close to powers of two.
        const unsigned long_a = random.below(128), long_b = random.below(128);
        Unsigned x = value({word(), word()}) >> long_a, y = value({word(), word()}) >> long_b;
        if (i % 7 == 0) x = (static_cast<Unsigned>(1) << long_a) - i % 3;
        if (i % 11 == 0) y = (static_cast<Unsigned>(1) << long_b) - 1;
        if (i % 5 == 0) y = ~y + 1;
        a[i] = wide(x);
        b[i] = wide(y == 0 ? 1 : y);
    }
    const test::Buffer<Wide> da(a), db(b), first(n), second(n);
    int wrong = 0;
    const auto compare = [&](auto&& expect_first, auto&& expect_second) {
        const std::vector<Wide> x = first.download(), y = second.download();
        for (int i = 0; i < n; ++i)
            wrong += value(x[i]) != expect_first(value(a[i]), value(b[i])) || value(y[i]) != expect_second(value(a[i]), value(b[i]));
    };
    LAUNCH(divide, blocks, threads, 0, da, db, first, second, n);
    compare([](Unsigned x, Unsigned y) { return x / y; }, [](Unsigned x, Unsigned y) { return x % y; });
    LAUNCH(divide_signed, blocks, threads, 0, da, db, first, second, n);
    compare([](Signed x, Signed y) { return static_cast<Unsigned>(y == -1 ? -static_cast<Unsigned>(x) : static_cast<Unsigned>(x / y)); },
            [](Signed x, Signed y) { return static_cast<Unsigned>(y == -1 ? 0 : x % y); });
    LAUNCH(multiply, blocks, threads, 0, da, db, first, second, n);
    compare([](Unsigned x, Unsigned y) { return x * y; }, [](Unsigned x, Unsigned y) { return mix(x, y); });
    return program.finish(wrong == 0, "n=%d wrong=%d", n, wrong);
}
