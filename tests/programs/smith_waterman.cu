// SPDX-License-Identifier: Apache-2.0
// Best local alignment of many pairs of sequences: one block per pair, anti-diagonals with a barrier between them.
#include "common/program.h"

KERNEL void smith_waterman(const char* left, const char* right, int length, int* scores);

#ifdef __CUDACC__
__global__ void smith_waterman(const char* left, const char* right, int length, int* scores) {
    extern __shared__ int diagonals[]; // three of length + 1 cells
    __shared__ int best;
    const char* a = left + blockIdx.x * length;
    const char* b = right + blockIdx.x * length;
    for (int i = threadIdx.x; i < 3 * (length + 1); i += blockDim.x) diagonals[i] = 0;
    if (threadIdx.x == 0) best = 0;
    __syncthreads();
    int mine = 0;
    for (int d = 2; d <= 2 * length; ++d) {
        int* current = diagonals + d % 3 * (length + 1);
        const int* before = diagonals + (d + 2) % 3 * (length + 1);
        const int* two_before = diagonals + (d + 1) % 3 * (length + 1);
        for (int i = max(1, d - length) + threadIdx.x; i <= min(length, d - 1); i += blockDim.x) {
            const int j = d - i;
            const int gap = max(before[i - 1], before[i]) - 2;
            const int match = two_before[i - 1] + (a[i - 1] == b[j - 1] ? 3 : -2);
            const int score = max(max(0, match), gap);
            current[i] = score;
            mine = max(mine, score);
        }
        if (threadIdx.x == 0) {
            current[0] = 0;
            if (d <= length) current[d] = 0;
        }
        __syncthreads();
    }
    atomicMax(&best, mine);
    __syncthreads();
    if (threadIdx.x == 0) scores[blockIdx.x] = best;
}
#endif

static int host_score(const char* a, const char* b, int length) {
    std::vector<int> previous(length + 1), row(length + 1);
    int best = 0;
    for (int i = 1; i <= length; ++i) {
        for (int j = 1; j <= length; ++j) {
            const int match = previous[j - 1] + (a[i - 1] == b[j - 1] ? 3 : -2);
            row[j] = std::max(std::max(0, match), std::max(previous[j] - 2, row[j - 1] - 2));
            best = std::max(best, row[j]);
        }
        std::swap(previous, row);
    }
    return best;
}

int main(int argc, char** argv) {
    const test::Program program("smith_waterman", argc, argv);
    const int pairs = program.argument(0, 40), length = program.argument(1, 150);
    test::Random random(16);
    std::vector<char> left(pairs * length), right(pairs * length);
    for (int i = 0; i < pairs * length; ++i) {
        left[i] = "ACGT"[random.below(4)];
        right[i] = random.below(3) == 0 ? "ACGT"[random.below(4)] : left[i];
    }
    const test::Buffer<char> da(left), db(right);
    const test::Buffer<int> scores(pairs);
    LAUNCH(smith_waterman, pairs, 96, 3 * (length + 1) * sizeof(int), da, db, length, scores);
    const std::vector<int> actual = scores.download();
    int wrong = 0;
    for (int p = 0; p < pairs; ++p) wrong += actual[p] != host_score(&left[p * length], &right[p * length], length);
    return program.finish(wrong == 0, "pairs=%d length=%d score0=%d wrong=%d", pairs, length, actual[0], wrong);
}
