// SPDX-License-Identifier: Apache-2.0
// Two files linked: objects made in one, called through virtual functions in the other.
#include "../common/program.h"
#include "linked_shapes.h"

KERNEL void make_shapes(void** shapes, char* storage, int n);
KERNEL void measure_shapes(void** shapes, int* areas, int n);

#ifdef __CUDACC__
#include <new>

__device__ int Box::scaled(int factor) const {
    return area() - factor;
}

KERNEL void make_shapes(void** shapes, char* storage, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    void* place = storage + i * 32;
    Shape* shape;
    if (i % 2 == 0) shape = new (place) Square(i % 50);
    else shape = new (place) Box(i % 40, i % 30);
    shapes[i] = shape;
}
#endif

int main(int argc, char** argv) {
    const test::Program program("linked_shapes", argc, argv);
    const int n = program.argument(0, 5000);
    const test::Buffer<void*> shapes(n);
    const test::Buffer<char> storage(n * 32);
    const test::Buffer<int> areas(n);
    LAUNCH(make_shapes, test::blocks_for(n, 128), 128, 0, shapes, storage, n);
    LAUNCH(measure_shapes, test::blocks_for(n, 128), 128, 0, shapes, areas, n);
    const std::vector<int> actual = areas.download();
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        const int factor = i % 7, side = i % 50, size = i % 9 + 3;
        const int box = i % 5 == 4 ? size * (size + 1) - (size - 2) * (size - 1) : i % 40 * (i % 30);
        const bool is_box = i % 5 == 4 || i % 2 == 1;
        const int expected = is_box ? box - factor + box : (factor + 1) * side * side;
        wrong += actual[i] != expected;
    }
    return program.finish(wrong == 0, "n=%d wrong=%d", n, wrong);
}
