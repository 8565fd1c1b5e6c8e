// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels: a quicksort whose halves are grids, a tree of grids, steps that launch the next one behind
// everything else (tail launch), copies and fills in between.
#include "../common/program.h"
#include "device_launch.h"

#include <numeric>

KERNEL void quicksort(int* values, int low, int high);
KERNEL void count_tree(int* nodes, int levels);
KERNEL void halve(int* values, int* trace, int n, int step);
KERNEL void fill_and_copy(int* from, int* to, int n);
KERNEL void sum_squares(int* sums, int blocks);

#ifdef __CUDACC__
KERNEL void count_tree(int* nodes, int levels) {
    if (threadIdx.x == 0) count_node<<<1, 32>>>(nodes, 0, levels);
}
#endif

int main(int argc, char** argv) {
    const test::Program program("device_launch", argc, argv);
    const int n = program.argument(0, 3000), levels = program.argument(1, 7), blocks = program.argument(2, 40);
    test::Random random(5);
    std::vector<int> values(n);
    for (int& value : values) value = static_cast<int>(random.below(100000)) - 50000;
    int wrong = 0;

    const test::Buffer<int> sorted(values);
    LAUNCH(quicksort, 1, 64, 0, sorted, 0, n - 1);
    std::sort(values.begin(), values.end());
    wrong += sorted.download() != values;

    const test::Buffer<int> nodes(std::vector<int>(levels + 1));
    LAUNCH(count_tree, 1, 32, 0, nodes, levels);
    const std::vector<int> counted = nodes.download();
    for (int level = 0; level <= levels; ++level) wrong += counted[level] != 1 << level;

    const int size = 1024;
    std::vector<int> ones(size, 1);
    const test::Buffer<int> halves(ones), trace(std::vector<int>(16));
    LAUNCH(halve, 4, 128, 0, halves, trace, size / 2, 0);
    wrong += halves.download()[0] != size;
    const std::vector<int> steps = trace.download();
    for (int step = 0; step < 10; ++step) wrong += steps[step] != step + 1;

    const test::Buffer<int> from(std::vector<int>(500, 7)), to(std::vector<int>(500, 7));
    LAUNCH(fill_and_copy, 1, 1, 0, from, to, 500);
    const std::vector<int> filled = from.download(), copied = to.download();
    for (int i = 0; i < 500; ++i) wrong += filled[i] != i || copied[i] != 2 * i;

    const test::Buffer<int> sums(std::vector<int>(blocks * 2));
    LAUNCH(sum_squares, blocks, 64, 0, sums, blocks);
    const std::vector<int> squares = sums.download();
    for (int i = 0; i < blocks; ++i) {
        wrong += squares[i] != i * i * 96;
        wrong += squares[blocks + i] != 9; // cudaErrorInvalidConfiguration
    }
    return program.finish(wrong == 0, "n=%d levels=%d wrong=%d", n, levels, wrong);
}
