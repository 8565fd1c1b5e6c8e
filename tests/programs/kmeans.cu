// SPDX-License-Identifier: Apache-2.0
// Lloyd's algorithm on integer points: sums by atomics on shared, then global memory, so results don't depend on order.
#include "common/program.h"

struct Sum {
    unsigned long long x, y, count;
};

KERNEL void assign_points(const int* xs, const int* ys, int n, const int* centres, int clusters, int* owner, Sum* sums);
KERNEL void move_centres(int* centres, Sum* sums, int clusters);

#ifdef __CUDACC__
__global__ void assign_points(const int* xs, const int* ys, int n, const int* centres, int clusters, int* owner,
                              Sum* sums) {
    extern __shared__ unsigned long long partial[];
    for (int i = threadIdx.x; i < 3 * clusters; i += blockDim.x) partial[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        long long best = 0x7fffffffffffffffLL;
        int nearest = 0;
        for (int c = 0; c < clusters; ++c) {
            const long long dx = xs[i] - centres[2 * c], dy = ys[i] - centres[2 * c + 1];
            const long long distance = dx * dx + dy * dy;
            if (distance < best) {
                best = distance;
                nearest = c;
            }
        }
        owner[i] = nearest;
        atomicAdd(&partial[3 * nearest], static_cast<unsigned long long>(xs[i]));
        atomicAdd(&partial[3 * nearest + 1], static_cast<unsigned long long>(ys[i]));
        atomicAdd(&partial[3 * nearest + 2], 1ull);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 3 * clusters; i += blockDim.x)
        atomicAdd(reinterpret_cast<unsigned long long*>(sums) + i, partial[i]);
}
__global__ void move_centres(int* centres, Sum* sums, int clusters) {
    const int c = threadIdx.x;
    if (c >= clusters) return;
    if (sums[c].count > 0) {
        centres[2 * c] = static_cast<int>(sums[c].x / sums[c].count);
        centres[2 * c + 1] = static_cast<int>(sums[c].y / sums[c].count);
    }
    sums[c] = Sum{0, 0, 0};
}
#endif

int main(int argc, char** argv) {
    const test::Program program("kmeans", argc, argv);
    const int n = program.argument(0, 40000), clusters = 8, rounds = program.argument(1, 6);
    test::Random random(13);
    std::vector<int> xs(n), ys(n), centres(2 * clusters), owner(n);
    for (int i = 0; i < n; ++i) {
        xs[i] = static_cast<int>(random.below(4) * 250000 + random.below(200000));
        ys[i] = static_cast<int>(random.below(2) * 500000 + random.below(300000));
    }
    for (int c = 0; c < clusters; ++c) {
        centres[2 * c] = xs[c * 17];
        centres[2 * c + 1] = ys[c * 17];
    }
    const test::Buffer<int> dx(xs), dy(ys), d_centres(centres), d_owner(n);
    const test::Buffer<Sum> sums(clusters);
    for (int r = 0; r < rounds; ++r) {
        LAUNCH(assign_points, 24, 128, clusters * sizeof(Sum), dx, dy, n, d_centres, clusters, d_owner, sums);
        LAUNCH(move_centres, 1, 32, 0, d_centres, sums, clusters);
    }
    for (int r = 0; r < rounds; ++r) {
        std::vector<Sum> total(clusters);
        for (int i = 0; i < n; ++i) {
            long long best = INT64_MAX;
            for (int c = 0; c < clusters; ++c) {
                const long long x = xs[i] - centres[2 * c], y = ys[i] - centres[2 * c + 1];
                if (x * x + y * y < best) {
                    best = x * x + y * y;
                    owner[i] = c;
                }
            }
            Sum& sum = total[owner[i]];
            sum.x += xs[i];
            sum.y += ys[i];
            ++sum.count;
        }
        for (int c = 0; c < clusters; ++c)
            if (total[c].count > 0) {
                centres[2 * c] = static_cast<int>(total[c].x / total[c].count);
                centres[2 * c + 1] = static_cast<int>(total[c].y / total[c].count);
            }
    }
    const bool ok = d_owner.download() == owner && d_centres.download() == centres;
    return program.finish(ok, "n=%d rounds=%d centre0=(%d, %d)", n, rounds, centres[0], centres[1]);
}
