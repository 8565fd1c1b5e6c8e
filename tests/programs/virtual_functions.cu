// SPDX-License-Identifier: Apache-2.0
// Objects made on the device, called through virtual functions from diverging lanes.
#include "common/program.h"

KERNEL void make_shapes(void** shapes, char* storage, int n);
KERNEL void measure_shapes(void** shapes, int* areas, int n);

#ifdef __CUDACC__
#include <new>

struct Shape {
    __device__ virtual int area() const = 0;
    __device__ virtual int scaled(int factor) const { return factor * area(); }
};
struct Square : Shape {
    int side;
    __device__ explicit Square(int side) : side(side) {}
    __device__ int area() const override { return side * side; }
};
struct Box : Shape {
    int width, height;
    __device__ Box(int width, int height) : width(width), height(height) {}
    __device__ int area() const override { return width * height; }
    __device__ int scaled(int factor) const override { return area() - factor; }
};
struct Triangle : Shape {
    int base, height;
    __device__ Triangle(int base, int height) : base(base), height(height) {}
    __device__ int area() const override { return base * height / 2; }
};

__global__ void make_shapes(void** shapes, char* storage, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    void* place = storage + i * 32;
    Shape* shape;
    if (i % 3 == 0) shape = new (place) Square(i % 50);
    else if (i % 3 == 1) shape = new (place) Box(i % 40, i % 30);
    else shape = new (place) Triangle(i % 60, i % 20);
    shapes[i] = shape;
}
__global__ void measure_shapes(void** shapes, int* areas, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) areas[i] = static_cast<Shape*>(shapes[i])->scaled(i % 7);
}
#endif

int main(int argc, char** argv) {
    const test::Program program("virtual_functions", argc, argv);
    const int n = program.argument(0, 5000);
    const test::Buffer<void*> shapes(n);
    const test::Buffer<char> storage(n * 32);
    const test::Buffer<int> areas(n);
    LAUNCH(make_shapes, test::blocks_for(n, 128), 128, 0, shapes, storage, n);
    LAUNCH(measure_shapes, test::blocks_for(n, 128), 128, 0, shapes, areas, n);
    const std::vector<int> actual = areas.download();
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        const int side = i % 50;
        const int expected = i % 3 == 0   ? i % 7 * side * side
                             : i % 3 == 1 ? i % 40 * (i % 30) - i % 7
                                          : i % 7 * (i % 60 * (i % 20) / 2);
        wrong += actual[i] != expected;
    }
    return program.finish(wrong == 0, "n=%d wrong=%d", n, wrong);
}
