// SPDX-License-Identifier: Apache-2.0
// Breadth-first search by levels, with a frontier queue that threads fill through atomics.
#include "common/program.h"

KERNEL void expand_frontier(const int* starts, const int* neighbours, const int* frontier, int size, int level,
                            int* distances, int* next, int* next_size);

#ifdef __CUDACC__
__global__ void expand_frontier(const int* starts, const int* neighbours, const int* frontier, int size, int level,
                                int* distances, int* next, int* next_size) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const int node = frontier[i];
    for (int e = starts[node]; e < starts[node + 1]; ++e)
        if (atomicCAS(&distances[neighbours[e]], -1, level) == -1) next[atomicAdd(next_size, 1)] = neighbours[e];
}
#endif

int main(int argc, char** argv) {
    const test::Program program("bfs", argc, argv);
    const int n = program.argument(0, 20000);
    test::Random random(15);
    std::vector<int> starts = {0}, neighbours;
    for (int i = 0; i < n; ++i) {
        for (unsigned e = random.below(5); e > 0; --e) neighbours.push_back(random.below(n));
        neighbours.push_back((i + 1) % n);
        starts.push_back(static_cast<int>(neighbours.size()));
    }
    std::vector<int> distances(n, -1);
    distances[0] = 0;
    const test::Buffer<int> d_starts(starts), d_neighbours(neighbours), d_distances(distances);
    test::Buffer<int> first(std::vector<int>(n, 0)), second(n), size(1);
    int count = 1, level = 0;
    while (count > 0) {
        size.upload({0});
        LAUNCH(expand_frontier, test::blocks_for(count, 128), 128, 0, d_starts, d_neighbours,
               level % 2 ? second : first, count, level + 1, d_distances, level % 2 ? first : second, size);
        count = size.download()[0];
        ++level;
    }
    std::vector<int> queue = {0};
    for (std::size_t head = 0; head < queue.size(); ++head)
        for (int e = starts[queue[head]]; e < starts[queue[head] + 1]; ++e)
            if (distances[neighbours[e]] < 0) {
                distances[neighbours[e]] = distances[queue[head]] + 1;
                queue.push_back(neighbours[e]);
            }
    const bool ok = d_distances.download() == distances;
    return program.finish(ok, "nodes=%d edges=%zu levels=%d", n, neighbours.size(), level);
}
