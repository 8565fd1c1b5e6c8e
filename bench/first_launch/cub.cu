// SPDX-License-Identifier: Apache-2.0
// cub's device-wide algorithms: radix sort, scan, select, histogram, reduce, of 100,000 elements.
#include <cub/cub.cuh>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

namespace {

constexpr int count = 100000, bins = 64;
int wrong = 0;

void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::printf("%s\n", cudaGetErrorString(error));
    std::exit(1);
}

template <class T> T* allocate(std::size_t size) {
    T* pointer = nullptr;
    check(cudaMalloc(&pointer, size * sizeof(T)));
    return pointer;
}

template <class T> void expect(const char* what, const T* device, const std::vector<T>& expected) {
    std::vector<T> actual(expected.size());
    check(cudaMemcpy(actual.data(), device, actual.size() * sizeof(T), cudaMemcpyDeviceToHost));
    if (actual == expected) return;
    std::printf("wrong: %s\n", what);
    ++wrong;
}

/// Calls an algorithm twice: for the size of its temporary storage, then for its work.
template <class Algorithm> void run(const Algorithm& algorithm) {
    std::size_t bytes = 0;
    check(algorithm(nullptr, bytes));
    char* storage = allocate<char>(bytes + 1);
    check(algorithm(storage, bytes));
    check(cudaFree(storage));
}

struct IsEven {
    __host__ __device__ bool operator()(int x) const { return x % 2 == 0; }
};

} // namespace

int main() {
    std::vector<int> numbers(count);
    unsigned seed = 7;
    for (int& number : numbers) {
        seed = seed * 1664525u + 1013904223u;
        number = static_cast<int>((seed >> 8) % bins);
    }
    int* const in = allocate<int>(count);
    int* const out = allocate<int>(count);
    int* const one = allocate<int>(bins);
    check(cudaMemcpy(in, numbers.data(), count * sizeof(int), cudaMemcpyHostToDevice));

    run([&](void* storage, std::size_t& bytes) { return cub::DeviceScan::InclusiveSum(storage, bytes, in, out, count); });
    std::vector<int> expected(count);
    std::partial_sum(numbers.begin(), numbers.end(), expected.begin());
    expect("scan", out, expected);

    run([&](void* storage, std::size_t& bytes) {
        return cub::DeviceSelect::If(storage, bytes, in, out, one, count, IsEven());
    });
    expected.clear();
    std::copy_if(numbers.begin(), numbers.end(), std::back_inserter(expected), IsEven());
    expect("select", out, expected);
    expect("select, count", one, {static_cast<int>(expected.size())});

    run([&](void* storage, std::size_t& bytes) {
        return cub::DeviceHistogram::HistogramEven(storage, bytes, in, one, bins + 1, 0, bins, count);
    });
    expected.assign(bins, 0);
    for (const int number : numbers) ++expected[number];
    expect("histogram", one, expected);

    run([&](void* storage, std::size_t& bytes) { return cub::DeviceReduce::Sum(storage, bytes, in, one, count); });
    expect("reduce", one, {std::accumulate(numbers.begin(), numbers.end(), 0)});

    run([&](void* storage, std::size_t& bytes) { return cub::DeviceRadixSort::SortKeys(storage, bytes, in, out, count); });
    std::sort(numbers.begin(), numbers.end());
    expect("radix sort", out, numbers);
    std::printf("%s\n", wrong ? "FAIL" : "PASS");
    return wrong != 0;
}
