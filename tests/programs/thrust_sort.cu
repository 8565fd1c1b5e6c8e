// SPDX-License-Identifier: Apache-2.0
// thrust: sort, sort by key, unique, lower_bound. Needs the toolkit's headers.
#include "common/program.h"

#include <thrust/binary_search.h>
#include <thrust/device_vector.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

int main(int argc, char** argv) {
    const test::Program program("thrust_sort", argc, argv);
    const int n = program.argument(0, 50000);
    test::Random random(19);
    std::vector<unsigned> keys(n);
    for (unsigned& key : keys) key = random.below(100000);
    std::vector<double> reals(n);
    for (double& real : reals) real = random.uniform(-5, 5);

    thrust::device_vector<unsigned> device_keys(keys.begin(), keys.end());
    thrust::device_vector<int> values(n);
    thrust::sequence(values.begin(), values.end());
    thrust::stable_sort_by_key(device_keys.begin(), device_keys.end(), values.begin());
    thrust::device_vector<double> device_reals(reals.begin(), reals.end());
    thrust::sort(device_reals.begin(), device_reals.end(), thrust::greater<double>());

    std::vector<int> order(n), actual_order(n);
    for (int i = 0; i < n; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    thrust::copy(values.begin(), values.end(), actual_order.begin());
    std::sort(reals.begin(), reals.end(), std::greater<double>());
    std::vector<double> actual_reals(n);
    thrust::copy(device_reals.begin(), device_reals.end(), actual_reals.begin());
    const auto position = thrust::lower_bound(device_keys.begin(), device_keys.end(), 50000u) - device_keys.begin();
    const auto distinct = thrust::unique(device_keys.begin(), device_keys.end()) - device_keys.begin();
    std::sort(keys.begin(), keys.end());
    const auto expected_position = std::lower_bound(keys.begin(), keys.end(), 50000u) - keys.begin();
    const auto expected_distinct = std::unique(keys.begin(), keys.end()) - keys.begin();
    const bool ok = order == actual_order && reals == actual_reals && position == expected_position &&
                    distinct == expected_distinct;
    return program.finish(ok, "n=%d distinct=%ld", n, static_cast<long>(distinct));
}
