// SPDX-License-Identifier: Apache-2.0
// cub: device-wide scan (decoupled look-back), select, radix sort and run-length encoding. Needs the toolkit's headers.
#include "common/program.h"

#include <cub/cub.cuh>

struct IsEven {
    __host__ __device__ bool operator()(int x) const { return x % 2 == 0; }
};

/// Calls a cub algorithm twice: for the size of its temporary storage, then for its work.
template <class Algorithm>
static void run(const Algorithm& algorithm) {
    std::size_t bytes = 0;
    test::check(algorithm(nullptr, bytes), "size of temporary storage");
    const test::Buffer<char> storage(bytes + 1);
    test::check(algorithm(static_cast<char*>(storage), bytes), "cub algorithm");
}

int main(int argc, char** argv) {
    const test::Program program("cub_scan", argc, argv);
    const int n = program.argument(0, 100000);
    test::Random random(21);
    std::vector<int> values(n);
    for (int& value : values) value = static_cast<int>(random.below(9));
    const test::Buffer<int> input(values), sums(n), evens(n), sorted(n), lengths(n), count(1), runs(1);
    int* const in = input;
    run([&](void* storage, std::size_t& bytes) {
        return cub::DeviceScan::ExclusiveSum(storage, bytes, in, static_cast<int*>(sums), n);
    });
    run([&](void* storage, std::size_t& bytes) {
        return cub::DeviceSelect::If(storage, bytes, in, static_cast<int*>(evens), static_cast<int*>(count), n, IsEven());
    });
    run([&](void* storage, std::size_t& bytes) {
        return cub::DeviceRadixSort::SortKeys(storage, bytes, in, static_cast<int*>(sorted), n);
    });
    const test::Buffer<int> unique(n);
    run([&](void* storage, std::size_t& bytes) {
        return cub::DeviceRunLengthEncode::Encode(storage, bytes, static_cast<int*>(sorted), static_cast<int*>(unique),
                                                  static_cast<int*>(lengths), static_cast<int*>(runs), n);
    });
    std::vector<int> expected_sums(n), expected_evens;
    int running = 0;
    for (int i = 0; i < n; ++i) {
        expected_sums[i] = running;
        running += values[i];
        if (values[i] % 2 == 0) expected_evens.push_back(values[i]);
    }
    std::vector<int> actual_evens = evens.download(), actual_lengths = lengths.download();
    actual_evens.resize(std::min(n, std::max(0, count.download()[0])));
    bool ok = sums.download() == expected_sums && actual_evens == expected_evens;
    std::sort(values.begin(), values.end());
    ok = ok && sorted.download() == values && runs.download()[0] == 9;
    for (int v = 0; v < 9; ++v) ok = ok && actual_lengths[v] == std::count(values.begin(), values.end(), v);
    return program.finish(ok, "n=%d sum=%d", n, running);
}
