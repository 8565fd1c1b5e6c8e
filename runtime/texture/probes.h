// SPDX-License-Identifier: Apache-2.0
// Anisotropic filtering: where a fetch looks along the longer axis of its footprint, and with which weights.
#pragma once

#include "runtime/texture/level_of_detail.h"

#include <algorithm>

namespace ptarmigan::runtime {

/// How much longer than wide the footprint is in the first or second level; 0: there is only the middle.
inline int ratio_in(const LevelChoice& choice, bool second) {
    return second ? std::max(choice.ratio - 256 + static_cast<int>(choice.fraction), 0) : choice.ratio;
}

/// Pairs of places on both sides of the middle, a texel from one to the next. All pairs but the outermost have the
/// same weight. One pair alone stands closer.
class Probes {
public:
    /// In the first of the levels, where steps are `fraction` of the way to the next level longer, or in the second.
    Probes(const LevelChoice& choice, bool second);
    unsigned pairs() const { return pairs_; }
    unsigned whole() const { return whole_; }
    /// Weight of all pairs before one, in parts of the whole.
    unsigned weight_before(unsigned pair) const { return pair == pairs_ ? whole_ : pair * inner_; }
    /// How far from the middle a pair is, in 256ths of a texel.
    int shift(unsigned pair, unsigned dimension) const { return static_cast<int>(2 * pair + 1) * shift_[dimension]; }

private:
    unsigned pairs_, whole_, inner_;
    int shift_[2]; ///< of the first pair
};

} // namespace ptarmigan::runtime
