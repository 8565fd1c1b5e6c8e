// SPDX-License-Identifier: Apache-2.0
// Collectives of cooperative_groups' tiles of several warps: any, all, shfl, reduce, scan and invoke_one in a row, each tile on a way of
// its own. The library counts on more than the manual promises: what one lane does for its warp behind a collective is done before
// the other lanes go on. nvcc: -arch=sm_90
#include "common/program.h"

KERNEL void votes_64(int* out, int rounds);
KERNEL void sums_128(int* out, int rounds);

#ifdef __CUDACC__
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

__global__ void votes_64(int* out, int rounds) {
    constexpr int size = 64;
    __shared__ cg::block_tile_memory<512> memory;
    const cg::thread_block block = cg::this_thread_block(memory);
    const auto tile = cg::tiled_partition<size>(block);
    const int rank = int(tile.thread_rank()), number = int(tile.meta_group_rank());
    int value = int(threadIdx.x) * 3 + int(blockIdx.x), result = 0;
    for (int round = 0; round < rounds; ++round) {
        const bool odd = (round + number) & 1;
        for (int i = 0; i < (value & 7); ++i) result += i & 1; // lanes part
        result += tile.any(odd && rank == round * 37 % size);
        result = result * 3 + tile.all(!odd || rank != size - 1);
        result += tile.shfl(value + round, (round * 31 + number) % size);
        if (odd) {
            result += tile.shfl(result, round * 7 % size);
            result += tile.any(result & 1);
        } else {
            result ^= tile.shfl(value, size - 1 - round % size);
        }
        result &= 0xffffff;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = result;
}
__global__ void sums_128(int* out, int rounds) {
    __shared__ cg::block_tile_memory<512> memory;
    const cg::thread_block block = cg::this_thread_block(memory);
    const auto tile = cg::tiled_partition<128>(block);
    const int number = int(tile.meta_group_rank()), value = int(threadIdx.x * 37 + blockIdx.x * 11) % 101;
    int result = 0;
    for (int round = 0; round < rounds; ++round) {
        if (number & 1)
            result += cg::reduce(tile, value + round, cg::plus<int>());
        else
            result += cg::inclusive_scan(tile, value + round, cg::plus<int>());
        result += cg::invoke_one_broadcast(tile, [&] { return number * 100 + round; });
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = result;
}
#endif

namespace {

constexpr int blocks = 2, threads = 512;

std::vector<int> expected_votes(int rounds) {
    constexpr int size = 64;
    std::vector<int> all(blocks * threads);
    for (int first = 0; first < blocks * threads; first += size) {
        const int number = first % threads / size;
        std::vector<int> value(size), result(size, 0);
        for (int rank = 0; rank < size; ++rank) value[rank] = (first % threads + rank) * 3 + first / threads;
        for (int round = 0; round < rounds; ++round) {
            const int odd = (round + number) & 1;
            for (int rank = 0; rank < size; ++rank) {
                result[rank] += (value[rank] & 7) / 2; // the odd ones below it
                result[rank] = (result[rank] + odd) * 3 + !odd;
                result[rank] += value[(round * 31 + number) % size] + round;
            }
            const int sent = odd ? result[round * 7 % size] : value[size - 1 - round % size];
            int any = 0;
            for (int& r : result) any |= (r = odd ? r + sent : r ^ sent) & odd;
            for (int& r : result) r = (r + any) & 0xffffff;
        }
        std::copy(result.begin(), result.end(), all.begin() + first);
    }
    return all;
}

std::vector<int> expected_sums(int rounds) {
    std::vector<int> all(blocks * threads);
    for (int first = 0; first < blocks * threads; first += 128) {
        const int number = first % threads / 128;
        const auto value = [&](int rank) { return ((first % threads + rank) * 37 + first / threads * 11) % 101; };
        for (int round = 0; round < rounds; ++round) {
            int total = 0, sum = 0;
            for (int rank = 0; rank < 128; ++rank) total += value(rank) + round;
            for (int rank = 0; rank < 128; ++rank) {
                sum += value(rank) + round;
                all[first + rank] += (number & 1 ? total : sum) + number * 100 + round;
            }
        }
    }
    return all;
}

} // namespace

int main(int argc, char** argv) {
    const test::Program program("tile_groups", argc, argv);
    const int rounds = program.argument(0, 20);
    const test::Buffer<int> votes(blocks * threads), sums(blocks * threads);
    LAUNCH(votes_64, blocks, threads, 0, votes, rounds);
    LAUNCH(sums_128, blocks, threads, 0, sums, rounds);
    test::synchronize();
    const bool votes_ok = votes.download() == expected_votes(rounds);
    const bool sums_ok = sums.download() == expected_sums(rounds);
    return program.finish(votes_ok && sums_ok, "rounds=%d votes_64=%d sums_128=%d", rounds, votes_ok, sums_ok);
}
