// SPDX-License-Identifier: Apache-2.0
// One large kernel of libcu++ atomics: every operation of cuda::atomic_ref, of which each size, scope and order (known at
// run time only) is code of its own.
#include <cuda/atomic>

#include <cstdio>

namespace {

template <class T, cuda::thread_scope Scope> __device__ T all_operations(T* words, T value, cuda::memory_order order) {
    cuda::atomic_ref<T, Scope> sum(words[0]), least(words[1]), greatest(words[2]), bits(words[3]), flag(words[4]);
    sum.fetch_add(value, order);
    sum.fetch_sub(value / 2, order);
    least.fetch_min(value, order);
    greatest.fetch_max(value, order);
    bits.fetch_or(T(1) << (value % 31), order);
    bits.fetch_and(~T(0), order);
    bits.fetch_xor(T(0), order);
    T seen = 0;
    flag.compare_exchange_strong(seen, T(1), order, cuda::memory_order_relaxed);
    seen |= sum.load(cuda::memory_order_acquire) + least.load(cuda::memory_order_seq_cst);
    flag.store(T(1), cuda::memory_order_release);
    return seen + flag.exchange(T(1), order);
}

__global__ void atomics(unsigned* words, unsigned long long* wide, unsigned short* half, unsigned* out,
                        cuda::memory_order order) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned seen = all_operations<unsigned, cuda::thread_scope_device>(words, thread, order);
    seen |= all_operations<unsigned, cuda::thread_scope_block>(words + 5, thread, order);
    seen |= all_operations<unsigned, cuda::thread_scope_system>(words + 10, thread, order);
    seen |= static_cast<unsigned>(all_operations<unsigned long long, cuda::thread_scope_device>(wide, thread, order));
    seen |= static_cast<unsigned>(all_operations<unsigned long long, cuda::thread_scope_system>(wide + 5, thread, order));
    const auto low = static_cast<unsigned short>(thread);
    seen |= all_operations<unsigned short, cuda::thread_scope_device>(half, low, order);
    seen |= all_operations<unsigned short, cuda::thread_scope_block>(half + 5, low, order);
    seen |= all_operations<unsigned short, cuda::thread_scope_system>(half + 10, low, order);
    out[thread] = seen;
}

} // namespace

int main() {
    constexpr unsigned blocks = 1, block_size = 128, threads = blocks * block_size;
    unsigned *words = nullptr, *out = nullptr;
    unsigned short* half = nullptr;
    unsigned long long* wide = nullptr;
    cudaMalloc(&words, 15 * sizeof *words);
    cudaMalloc(&wide, 10 * sizeof *wide);
    cudaMalloc(&half, 15 * sizeof *half);
    cudaMalloc(&out, threads * sizeof *out);
    cudaMemset(words, 0, 15 * sizeof *words);
    cudaMemset(wide, 0, 10 * sizeof *wide);
    cudaMemset(half, 0, 15 * sizeof *half);
    atomics<<<blocks, block_size>>>(words, wide, half, out, cuda::memory_order_acq_rel);
    unsigned narrow[15];
    unsigned long long broad[10];
    unsigned short small[15];
    cudaMemcpy(narrow, words, sizeof narrow, cudaMemcpyDeviceToHost);
    cudaMemcpy(small, half, sizeof small, cudaMemcpyDeviceToHost);
    const cudaError_t error = cudaMemcpy(broad, wide, sizeof broad, cudaMemcpyDeviceToHost);
    unsigned sum = 0;
    for (unsigned i = 0; i < threads; ++i) sum += i - i / 2;
    bool ok = error == cudaSuccess;
    for (int scope = 0; scope < 3; ++scope) ok = ok && narrow[5 * scope] == sum && narrow[5 * scope + 2] == threads - 1;
    for (int scope = 0; scope < 3; ++scope) ok = ok && small[5 * scope] == sum && small[5 * scope + 2] == threads - 1;
    for (int scope = 0; scope < 2; ++scope) ok = ok && broad[5 * scope] == sum && broad[5 * scope + 2] == threads - 1;
    std::printf("%s\n", ok ? "PASS" : "FAIL");
    return !ok;
}
