// SPDX-License-Identifier: Apache-2.0
// saxpy_streams.cu through the driver API: chunks on several streams, ordered by events.
#include "tests/programs/common/program.h"

KERNEL void saxpy(float a, const float* x, float* y, int n);

static constexpr unsigned non_blocking_stream = 1, event_without_timing = 2;

int main(int argc, char** argv) {
    const test::Program program("saxpy_streams", argc, argv);
    constexpr int streams = 4;
    const int n = program.argument(0, 400000) / streams * streams, chunk = n / streams;
    test::Random random(18);
    const std::vector<float> x = random.floats(n, -1, 1), y = random.floats(n, -1, 1);
    const test::Buffer<float> dx(n), dy(n);
    test::synchronize(); // the buffers' clearing is on the default stream, which the others don't wait for
    void *pinned_x = nullptr, *pinned_y = nullptr;
    test::check(cuMemAllocHost_v2(&pinned_x, n * sizeof(float)), "cuMemAllocHost");
    test::check(cuMemAllocHost_v2(&pinned_y, n * sizeof(float)), "cuMemAllocHost");
    float *host_x = static_cast<float*>(pinned_x), *host_y = static_cast<float*>(pinned_y);
    std::copy(x.begin(), x.end(), host_x);
    std::copy(y.begin(), y.end(), host_y);
    CUstream queue[streams], second;
    CUevent uploaded[streams], start, stop;
    test::check(cuStreamCreate(&second, 0), "cuStreamCreate");
    test::check(cuEventCreate(&start, 0), "cuEventCreate");
    test::check(cuEventCreate(&stop, 0), "cuEventCreate");
    test::check(cuEventRecord(start, second), "cuEventRecord");
    for (int s = 0; s < streams; ++s) {
        float *cx = dx + s * chunk, *cy = dy + s * chunk, *hx = host_x + s * chunk, *hy = host_y + s * chunk;
        const std::size_t bytes = chunk * sizeof(float);
        const auto address = [](float* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); };
        test::check(cuStreamCreate(&queue[s], non_blocking_stream), "cuStreamCreate");
        test::check(cuEventCreate(&uploaded[s], event_without_timing), "cuEventCreate");
        test::check(cuMemcpyHtoDAsync_v2(address(cx), hx, bytes, queue[s]), "copy to device");
        test::check(cuMemcpyHtoDAsync_v2(address(cy), hy, bytes, queue[s]), "copy to device");
        test::check(cuEventRecord(uploaded[s], queue[s]), "cuEventRecord");
        test::check(cuStreamWaitEvent(second, uploaded[s], 0), "cuStreamWaitEvent");
        test::Device::get().use_stream(second);
        LAUNCH(saxpy, test::blocks_for(chunk, 256), 256, 0, 2.5f, cx, cy, chunk);
        test::check(cuMemcpyDtoHAsync_v2(hy, address(cy), bytes, second), "copy to host");
    }
    float milliseconds = -1;
    test::check(cuEventRecord(stop, second), "cuEventRecord");
    test::check(cuEventSynchronize(stop), "cuEventSynchronize");
    test::check(cuEventElapsedTime(&milliseconds, start, stop), "cuEventElapsedTime");
    test::check(cuEventQuery(uploaded[0]), "cuEventQuery");
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        const volatile float product = 2.5f * x[i];
        wrong += host_y[i] != product + y[i];
    }
    test::add_to_digest(host_y, n * sizeof(float));
    for (int s = 0; s < streams; ++s) {
        test::check(cuStreamDestroy_v2(queue[s]), "cuStreamDestroy");
        test::check(cuEventDestroy_v2(uploaded[s]), "cuEventDestroy");
    }
    test::check(cuMemFreeHost(host_x), "cuMemFreeHost");
    test::check(cuMemFreeHost(host_y), "cuMemFreeHost");
    return program.finish(wrong == 0 && milliseconds >= 0, "n=%d wrong=%d", n, wrong);
}
