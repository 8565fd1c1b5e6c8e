// SPDX-License-Identifier: Apache-2.0
// c = a + b.
#include "common/program.h"

KERNEL void vector_add(const float* a, const float* b, float* c, int n);

#ifdef __CUDACC__
__global__ void vector_add(const float* a, const float* b, float* c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
#endif

int main(int argc, char** argv) {
    const test::Program program("vector_add", argc, argv);
    const int n = program.argument(0, 1000003);
    test::Random random(1);
    const std::vector<float> a = random.floats(n, -10, 10), b = random.floats(n, -10, 10);
    const test::Buffer<float> da(a), db(b), dc(n);
    LAUNCH(vector_add, test::blocks_for(n, 256), 256, 0, da, db, dc, n);
    const std::vector<float> c = dc.download();
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += c[i] != a[i] + b[i];
    return program.finish(wrong == 0, "n=%d wrong=%d", n, wrong);
}
