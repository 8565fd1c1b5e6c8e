// SPDX-License-Identifier: Apache-2.0
// What a kernel may ask the device runtime. nvcc 13.0 -arch=sm_90 -rdc=true -dc -cubin, then nvlink with device_questions_library.ptx
// (ptxas -c) in place of libcudadevrt, as with child_kernels.cu. device_questions.ptx: nvcc -ptx -rdc=true.
extern "C" __global__ void asked(int* numbers) { numbers[threadIdx.x] += 1; }
extern "C" __global__ void questions(const unsigned* in, unsigned* out) {
    if (blockIdx.x * blockDim.x + threadIdx.x != 0) return;
    size_t size = 0;
    int number = 0;
    unsigned n = 0;
    const auto say = [&](unsigned value) { out[n++] = value; };
    say(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize)), say(unsigned(size));
    say(cudaDeviceGetLimit(&size, cudaLimit(99)));
    say(cudaGetDeviceCount(&number)), say(number);
    say(cudaRuntimeGetVersion(&number)), say(number);
    cudaFuncAttributes attributes = {};
    say(cudaFuncGetAttributes(&attributes, asked)), say(attributes.maxThreadsPerBlock);
    say(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, asked, 128, 0)), say(number);
    say(cudaGetErrorName(cudaErrorInvalidValue)[4]), say(cudaGetErrorString(cudaErrorInvalidValue)[1]);
}
