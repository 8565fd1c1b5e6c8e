// SPDX-License-Identifier: Apache-2.0
// thrust: reduce, transform_reduce, inner_product, count_if, minmax_element, reduce_by_key. Needs the toolkit's headers.
#include "common/program.h"

#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/extrema.h>
#include <thrust/inner_product.h>
#include <thrust/reduce.h>
#include <thrust/transform_reduce.h>

struct Square {
    __host__ __device__ long long operator()(int x) const { return static_cast<long long>(x) * x; }
};
struct IsOdd {
    __host__ __device__ bool operator()(int x) const { return x & 1; }
};

int main(int argc, char** argv) {
    const test::Program program("thrust_reduce", argc, argv);
    const int n = program.argument(0, 200000);
    test::Random random(20);
    std::vector<int> values(n), groups(n);
    for (int i = 0; i < n; ++i) {
        values[i] = static_cast<int>(random.below(20001)) - 10000;
        groups[i] = i / 37;
    }
    long long sum = 0, squares = 0, odd = 0;
    for (int value : values) {
        sum += value;
        squares += Square()(value);
        odd += IsOdd()(value);
    }
    const thrust::device_vector<int> data(values.begin(), values.end()), keys(groups.begin(), groups.end());
    bool ok = thrust::reduce(data.begin(), data.end(), 0ll) == sum;
    ok = ok && thrust::transform_reduce(data.begin(), data.end(), Square(), 0ll, thrust::plus<long long>()) == squares;
    ok = ok && thrust::inner_product(data.begin(), data.end(), data.begin(), 0ll, thrust::plus<long long>(),
                                     thrust::multiplies<long long>()) == squares;
    ok = ok && thrust::count_if(data.begin(), data.end(), IsOdd()) == odd;
    const auto extremes = thrust::minmax_element(data.begin(), data.end());
    ok = ok && extremes.first - data.begin() == std::min_element(values.begin(), values.end()) - values.begin();
    ok = ok && *extremes.second == *std::max_element(values.begin(), values.end());
    thrust::device_vector<int> out_keys(n), out_sums(n);
    const auto ends = thrust::reduce_by_key(keys.begin(), keys.end(), data.begin(), out_keys.begin(), out_sums.begin());
    std::vector<int> expected(n / 37 + 1), actual(ends.second - out_sums.begin());
    for (int i = 0; i < n; ++i) expected[groups[i]] += values[i];
    if (n % 37 == 0) expected.pop_back();
    thrust::copy(out_sums.begin(), ends.second, actual.begin());
    ok = ok && actual == expected;
    return program.finish(ok, "n=%d sum=%lld", n, sum);
}
