// SPDX-License-Identifier: Apache-2.0
// thrust as programs use it: some 45 different kernels, each launched a few times, on 100,000 elements. Results are
// compared with the host's.
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <vector>

namespace {

constexpr int count = 100000;
int wrong = 0;

template <class T> std::vector<T> download(const thrust::device_vector<T>& vector, std::size_t size) {
    std::vector<T> host(size);
    thrust::copy_n(vector.begin(), size, host.begin());
    return host;
}

template <class T> void expect(const char* what, const thrust::device_vector<T>& actual, const std::vector<T>& expected) {
    if (download(actual, expected.size()) == expected) return;
    std::printf("wrong: %s\n", what);
    ++wrong;
}

std::vector<int> random_numbers(unsigned seed, int bound) {
    std::vector<int> numbers(count);
    for (int& number : numbers) {
        seed = seed * 1664525u + 1013904223u;
        number = static_cast<int>((seed >> 8) % static_cast<unsigned>(bound));
    }
    return numbers;
}

/// An order that is no radix sort's.
struct LastDigitFirst {
    __host__ __device__ bool operator()(int a, int b) const { return a % 10 != b % 10 ? a % 10 < b % 10 : a < b; }
};

struct IsEven {
    __host__ __device__ bool operator()(int x) const { return x % 2 == 0; }
};

void sorts() {
    const std::vector<int> numbers = random_numbers(1, 1 << 30);
    std::vector<int> expected = numbers;
    thrust::device_vector<int> keys(numbers.begin(), numbers.end()), values(count);
    thrust::sort(keys.begin(), keys.end());
    std::sort(expected.begin(), expected.end());
    expect("sort", keys, expected);

    keys = numbers;
    thrust::sort(keys.begin(), keys.end(), LastDigitFirst());
    std::sort(expected.begin(), expected.end(), LastDigitFirst());
    expect("sort with an order", keys, expected);

    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    keys = numbers;
    thrust::sequence(values.begin(), values.end());
    thrust::stable_sort_by_key(keys.begin(), keys.end(), values.begin());
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return numbers[a] < numbers[b]; });
    expect("sort_by_key", values, order);

    std::vector<double> reals(numbers.begin(), numbers.end());
    thrust::device_vector<double> device_reals(reals.begin(), reals.end());
    thrust::sequence(values.begin(), values.end());
    thrust::stable_sort_by_key(device_reals.begin(), device_reals.end(), values.begin(), thrust::greater<double>());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return reals[a] > reals[b]; });
    expect("sort_by_key, falling", values, order);
}

void scans() {
    const std::vector<int> numbers = random_numbers(2, 1000);
    const thrust::device_vector<int> input(numbers.begin(), numbers.end());
    thrust::device_vector<int> output(count), keys(count);
    std::vector<int> expected(count), host_keys(count);
    thrust::inclusive_scan(input.begin(), input.end(), output.begin());
    std::partial_sum(numbers.begin(), numbers.end(), expected.begin());
    expect("inclusive_scan", output, expected);

    thrust::exclusive_scan(input.begin(), input.end(), output.begin(), 5);
    std::exclusive_scan(numbers.begin(), numbers.end(), expected.begin(), 5);
    expect("exclusive_scan", output, expected);

    thrust::inclusive_scan(input.begin(), input.end(), output.begin(), thrust::maximum<int>());
    std::inclusive_scan(numbers.begin(), numbers.end(), expected.begin(), [](int a, int b) { return std::max(a, b); });
    expect("inclusive_scan, maximum", output, expected);

    for (int i = 0; i < count; ++i) host_keys[i] = i / 37;
    keys = host_keys;
    thrust::inclusive_scan_by_key(keys.begin(), keys.end(), input.begin(), output.begin());
    for (int i = 0; i < count; ++i) expected[i] = i % 37 == 0 ? numbers[i] : expected[i - 1] + numbers[i];
    expect("inclusive_scan_by_key", output, expected);

    thrust::exclusive_scan_by_key(keys.begin(), keys.end(), input.begin(), output.begin());
    for (int i = 0; i < count; ++i) expected[i] = i % 37 == 0 ? 0 : expected[i - 1] + numbers[i - 1];
    expect("exclusive_scan_by_key", output, expected);
}

void reductions() {
    const std::vector<int> numbers = random_numbers(3, 1000);
    const thrust::device_vector<int> input(numbers.begin(), numbers.end());
    thrust::device_vector<int> keys(count), out_keys(count), out_sums(count);
    std::vector<int> host_keys(count), expected_keys, expected_sums;
    for (int i = 0; i < count; ++i) {
        host_keys[i] = i / 23;
        if (i % 23 == 0) {
            expected_keys.push_back(i / 23);
            expected_sums.push_back(0);
        }
        expected_sums.back() += numbers[i];
    }
    keys = host_keys;
    const auto ends =
        thrust::reduce_by_key(keys.begin(), keys.end(), input.begin(), out_keys.begin(), out_sums.begin());
    if (ends.first - out_keys.begin() != static_cast<long>(expected_keys.size())) ++wrong;
    expect("reduce_by_key, keys", out_keys, expected_keys);
    expect("reduce_by_key, sums", out_sums, expected_sums);

    if (thrust::reduce(input.begin(), input.end()) != std::accumulate(numbers.begin(), numbers.end(), 0)) ++wrong;
    const thrust::device_vector<double> reals(numbers.begin(), numbers.end());
    if (thrust::reduce(reals.begin(), reals.end(), -1.0, thrust::maximum<double>()) !=
        *std::max_element(numbers.begin(), numbers.end()))
        ++wrong;
    if (thrust::count_if(input.begin(), input.end(), IsEven()) !=
        std::count_if(numbers.begin(), numbers.end(), IsEven()))
        ++wrong;
}

void selections() {
    const std::vector<int> numbers = random_numbers(4, 7);
    thrust::device_vector<int> input(numbers.begin(), numbers.end()), output(count), rest(count);
    std::vector<int> expected;
    std::unique_copy(numbers.begin(), numbers.end(), std::back_inserter(expected));
    const auto end = thrust::unique_copy(input.begin(), input.end(), output.begin());
    if (end - output.begin() != static_cast<long>(expected.size())) ++wrong;
    expect("unique_copy", output, expected);

    std::vector<int> kept, left;
    std::partition_copy(numbers.begin(), numbers.end(), std::back_inserter(kept), std::back_inserter(left), IsEven());
    thrust::stable_partition_copy(input.begin(), input.end(), output.begin(), rest.begin(), IsEven());
    expect("partition, kept", output, kept);
    expect("partition, left", rest, left);

    thrust::copy_if(input.begin(), input.end(), output.begin(), IsEven());
    expect("copy_if", output, kept);
    thrust::remove_copy_if(input.begin(), input.end(), output.begin(), IsEven());
    expect("remove_copy_if", output, left);
}

template <class OnDevice, class OnHost>
void set_operation(const char* what, const std::vector<int>& a, const std::vector<int>& b, OnDevice on_device,
                   OnHost on_host) {
    const thrust::device_vector<int> device_a(a.begin(), a.end()), device_b(b.begin(), b.end());
    thrust::device_vector<int> output(2 * count);
    std::vector<int> expected;
    const auto end = on_device(device_a, device_b, output.begin());
    on_host(a, b, std::back_inserter(expected));
    if (end - output.begin() != static_cast<long>(expected.size())) ++wrong;
    expect(what, output, expected);
}

void sets() {
    std::vector<int> a = random_numbers(5, 200000), b = random_numbers(6, 200000);
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
#define SET_OPERATION(name)                                                                                            \
    set_operation(                                                                                                     \
        #name, a, b,                                                                                                   \
        [](const auto& x, const auto& y, auto out) {                                                                   \
            return thrust::name(x.begin(), x.end(), y.begin(), y.end(), out);                                          \
        },                                                                                                             \
        [](const auto& x, const auto& y, auto out) { std::name(x.begin(), x.end(), y.begin(), y.end(), out); })
    SET_OPERATION(merge);
    SET_OPERATION(set_union);
    SET_OPERATION(set_intersection);
    SET_OPERATION(set_difference);
    SET_OPERATION(set_symmetric_difference);
#undef SET_OPERATION
}

} // namespace

int main() {
    sorts();
    scans();
    reductions();
    selections();
    sets();
    std::printf("%s\n", wrong ? "FAIL" : "PASS");
    return wrong != 0;
}
