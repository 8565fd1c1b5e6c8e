// SPDX-License-Identifier: Apache-2.0
// How a time grows with the size of its input, on a machine on which others run, too.
#pragma once

#include <algorithm>

namespace ptarmigan::test {

/// The shortest times seen for an input and for one four times as long, in any one unit.
struct Growth {
    double one = 1e300, four = 1e300;
    bool below(double bound) const { return four < bound * one; }
};

/// Measures both by turns until `four` is below `bound` times `one`, at most `rounds` times. Other processes that push
/// data out of the caches lengthen some rounds, the longer input's more; they don't lengthen the shortest of many. A
/// time that grows with the square stays at 16 times however often it is measured.
template <typename Measure>
Growth growth(double bound, const Measure& one, const Measure& four, unsigned rounds = 25) {
    Growth result;
    for (unsigned round = 0; round < rounds && !(round >= 2 && result.below(bound)); ++round) {
        result.one = std::min(result.one, one());
        result.four = std::min(result.four, four());
    }
    return result;
}

} // namespace ptarmigan::test
