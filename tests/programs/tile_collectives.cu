// SPDX-License-Identifier: Apache-2.0
// Collectives of tiles within a warp and of the whole warp, close behind each other, and of lanes that a branch parts, whose masks are in
// registers: machine code names no masks, and ptxas moves a whole warp's shuffles between those of its tiles. nvcc: -arch=sm_80
#include "common/program.h"

struct Numbers {
    unsigned greatest, mixed, scanned, same, sum;
};

KERNEL void tiles(const unsigned* in, Numbers* out);
KERNEL void arms(const unsigned* in, unsigned* out);

#ifdef __CUDACC__
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

__global__ void tiles(const unsigned* in, Numbers* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = in[i];
    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    const auto eight = cg::tiled_partition<8>(block);
    const auto four = cg::tiled_partition<4>(warp);
    Numbers n;
    n.greatest = cg::reduce(eight, x, cg::greater<unsigned>());
    n.mixed = cg::reduce(four, x & 0xffff, cg::bit_xor<unsigned>());
    n.scanned = cg::inclusive_scan(warp, x & 0xfff);
    n.scanned += cg::exclusive_scan(eight, x & 0xff);
    const auto same = cg::labeled_partition(warp, int(x % 5));
    n.same = same.size() * 32 + same.thread_rank();
    n.sum = cg::reduce(same, x >> 4, cg::plus<unsigned>());
    out[i] = n;
}

__global__ void arms(const unsigned* in, unsigned* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = in[i];
    const unsigned odd = __ballot_sync(0xffffffffu, x & 1);
    unsigned sum;
    if (x & 1) {
        sum = __reduce_add_sync(odd, x & 0xff);
        const unsigned twos = __ballot_sync(odd, x & 2);
        if (x & 2)
            sum ^= __shfl_sync(twos, x, __ffs(twos) - 1);
        else
            sum ^= __reduce_max_sync(odd & ~twos, x);
        __syncwarp(odd);
        sum += __shfl_sync(odd, sum, __ffs(odd) - 1) & 0xf;
    } else {
        sum = __reduce_xor_sync(~odd, x) + __any_sync(~odd, x & 4) * 5 + __all_sync(~odd, x & 8) * 7;
    }
    out[i] = sum + __ballot_sync(0xffffffffu, sum & 1);
}
#endif

namespace {

constexpr int blocks = 4, threads = 96, count = blocks * threads;

unsigned number_of(int i) {
    unsigned x = unsigned(i) * 2654435761u;
    x ^= x >> 15;
    return x * 2246822519u ^ x >> 13;
}

Numbers expected_tiles(int i) {
    const unsigned x = number_of(i);
    Numbers n{};
    for (int k = i / 8 * 8; k < i / 8 * 8 + 8; ++k) {
        n.greatest = std::max(n.greatest, number_of(k));
        if (k < i) n.scanned += number_of(k) & 0xff;
    }
    for (int k = i / 4 * 4; k < i / 4 * 4 + 4; ++k) n.mixed ^= number_of(k) & 0xffff;
    for (int k = i / 32 * 32; k < i / 32 * 32 + 32; ++k) {
        if (k <= i) n.scanned += number_of(k) & 0xfff;
        if (number_of(k) % 5 != x % 5) continue;
        n.same += 32 + (k < i);
        n.sum += number_of(k) >> 4;
    }
    return n;
}

/// Of the warp whose first thread is `first`.
void expected_arms(int first, unsigned* result) {
    unsigned added = 0, mixed = 0, greatest = 0, with_four = 0, all_eight = 1, first_two = 0, votes = 0;
    int first_odd = 0;
    for (int k = 31; k >= 0; --k) {
        const unsigned x = number_of(first + k);
        if (x & 1) {
            first_odd = k;
            added += x & 0xff;
            if (x & 2) first_two = x;
            else greatest = std::max(greatest, x);
        } else {
            mixed ^= x;
            with_four |= x >> 2 & 1;
            all_eight &= x >> 3 & 1;
        }
    }
    const auto before = [&](int k) { return added ^ (number_of(first + k) & 2 ? first_two : greatest); };
    for (int k = 0; k < 32; ++k) {
        result[k] = number_of(first + k) & 1 ? before(k) + (before(first_odd) & 0xf) : mixed + with_four * 5 + all_eight * 7;
        votes |= (result[k] & 1) << k;
    }
    for (int k = 0; k < 32; ++k) result[k] += votes;
}

} // namespace

int main(int argc, char** argv) {
    const test::Program program("tile_collectives", argc, argv);
    std::vector<unsigned> numbers(count), arms_expected(count);
    std::vector<Numbers> tiles_expected(count);
    for (int i = 0; i < count; ++i) {
        numbers[i] = number_of(i);
        tiles_expected[i] = expected_tiles(i);
        if (i % 32 == 0) expected_arms(i, &arms_expected[i]);
    }
    const test::Buffer<unsigned> in(numbers), parted(count);
    const test::Buffer<Numbers> of_tiles(count);
    LAUNCH(tiles, blocks, threads, 0, in, of_tiles);
    LAUNCH(arms, blocks, threads, 0, in, parted);
    test::synchronize();
    const std::vector<Numbers> got = of_tiles.download();
    const bool tiles_ok = std::memcmp(got.data(), tiles_expected.data(), count * sizeof(Numbers)) == 0;
    const bool arms_ok = parted.download() == arms_expected;
    return program.finish(tiles_ok && arms_ok, "tiles=%d arms=%d", tiles_ok, arms_ok);
}
