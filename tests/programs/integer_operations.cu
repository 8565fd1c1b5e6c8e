// SPDX-License-Identifier: Apache-2.0
// Integer corners: 64-bit division, high products, bit counting, funnel shifts, byte permutation, saturation.
#include "common/program.h"

constexpr int operations = 20;

KERNEL void integer_operations(const unsigned long long* left, const unsigned long long* right,
                               unsigned long long* results, int n);

#ifdef __CUDACC__
__global__ void integer_operations(const unsigned long long* left, const unsigned long long* right,
                                   unsigned long long* results, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned long long a = left[i], b = right[i];
    const long long sa = a, sb = b;
    const unsigned x = a, y = b;
    const int sx = x, sy = y;
    unsigned long long* out = results + i * operations;
    out[0] = a / b;
    out[1] = a % b;
    out[2] = sb == -1 ? 0 : sa / sb;
    out[3] = sb == -1 ? 0 : sa % sb;
    out[4] = __umul64hi(a, b);
    out[5] = __mul64hi(sa, sb);
    out[6] = __umulhi(x, y);
    out[7] = static_cast<unsigned>(__mulhi(sx, sy));
    out[8] = __popcll(a) * 1000 + __clzll(a) * 10 + __ffsll(b) % 10;
    out[9] = __brevll(a) ^ __brev(y);
    out[10] = __funnelshift_l(x, y, y & 63);
    out[11] = __funnelshift_rc(x, y, y & 63);
    out[12] = __byte_perm(x, y, 0x7140 + (y & 7));
    out[13] = static_cast<unsigned>(__sad(sx, sy, 5u));
    out[14] = a << (y & 63) ^ a >> (x & 63);
    out[15] = sa >> (y & 63);
    out[16] = static_cast<unsigned long long>(static_cast<long long>(sx) * sy) + a;
    out[17] = static_cast<unsigned char>(x) * static_cast<signed char>(y) + static_cast<short>(x);
    out[18] = y == 0 ? 0 : x / y + x % y;
    out[19] = sy == 0 || sy == -1 ? 0 : static_cast<unsigned>(sx / sy ^ sx % sy);
}
#endif

static int leading_zeros(unsigned long long value) {
    int count = 0;
    while (count < 64 && !(value >> (63 - count) & 1)) ++count;
    return count;
}
static unsigned long long reversed(unsigned long long value, int bits) {
    unsigned long long out = 0;
    for (int i = 0; i < bits; ++i) out |= (value >> i & 1) << (bits - 1 - i);
    return out;
}

int main(int argc, char** argv) {
    const test::Program program("integer_operations", argc, argv);
    const int n = program.argument(0, 20000);
    typedef unsigned __int128 Wide;
    test::Random random(27);
    std::vector<unsigned long long> left(n), right(n);
    for (int i = 0; i < n; ++i) {
        const unsigned long long corners[] = {0, 1, ~0ull, 1ull << 63, 1ull << 31, 0xffffffffull, 1ull << 32};
        left[i] = i % 5 == 0 ? corners[i / 5 % 7] : static_cast<unsigned long long>(random.bits()) << 32 | random.bits();
        right[i] = i % 3 == 0 ? corners[i / 3 % 6 + 1] : (left[i] * 6364136223846793005ull ^ random.bits()) >> random.below(64);
        right[i] += right[i] == 0;
    }
    const test::Buffer<unsigned long long> da(left), db(right), results(n * operations);
    LAUNCH(integer_operations, test::blocks_for(n, 128), 128, 0, da, db, results, n);
    const std::vector<unsigned long long> actual = results.download();
    int wrong = 0, first_wrong = -1;
    for (int i = 0; i < n; ++i) {
        const unsigned long long a = left[i], b = right[i];
        const long long sa = static_cast<long long>(a), sb = static_cast<long long>(b);
        const unsigned x = static_cast<unsigned>(a), y = static_cast<unsigned>(b), shift = y & 63;
        const int sx = static_cast<int>(x), sy = static_cast<int>(y);
        const unsigned long long pair = static_cast<unsigned long long>(y) << 32 | x;
        unsigned permuted = 0;
        for (int byte = 0; byte < 4; ++byte) {
            const unsigned selector = (0x7140 + (y & 7)) >> 4 * byte & 7;
            permuted |= static_cast<unsigned>(pair >> 8 * selector & 255) << 8 * byte;
        }
        int low = 0;
        while (!(b >> low & 1)) ++low;
        int ones = 0;
        for (int bit = 0; bit < 64; ++bit) ones += a >> bit & 1;
        const unsigned long long expected[operations] = {
            a / b, a % b,
            static_cast<unsigned long long>(sb == -1 ? 0 : sa / sb), static_cast<unsigned long long>(sb == -1 ? 0 : sa % sb),
            static_cast<unsigned long long>(Wide(a) * b >> 64),
            static_cast<unsigned long long>(static_cast<Wide>(static_cast<__int128>(sa) * sb) >> 64),
            static_cast<unsigned long long>(x) * y >> 32,
            static_cast<unsigned>(static_cast<unsigned long long>(static_cast<long long>(sx) * sy) >> 32),
            static_cast<unsigned long long>(ones * 1000 + leading_zeros(a) * 10 + (low + 1) % 10),
            reversed(a, 64) ^ reversed(y, 32),
            static_cast<unsigned>((pair << (shift & 31)) >> 32),
            static_cast<unsigned>(pair >> std::min(shift, 32u)),
            permuted,
            static_cast<unsigned>(std::llabs(static_cast<long long>(sx) - sy) + 5),
            a << shift ^ a >> (x & 63), static_cast<unsigned long long>(sa >> shift),
            static_cast<unsigned long long>(static_cast<long long>(sx) * sy) + a,
            static_cast<unsigned long long>(static_cast<long long>(static_cast<unsigned char>(x) * static_cast<signed char>(y) +
                                                                   static_cast<short>(x))),
            y == 0 ? 0 : x / y + x % y,
            sy == 0 || sy == -1 ? 0 : static_cast<unsigned>(sx / sy ^ sx % sy)};
        for (int o = 0; o < operations; ++o)
            if (actual[i * operations + o] != expected[o]) {
                ++wrong;
                if (first_wrong < 0) first_wrong = o;
            }
    }
    return program.finish(wrong == 0, "n=%d wrong=%d first=%d", n, wrong, first_wrong);
}
