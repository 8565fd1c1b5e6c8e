// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/step_conflicts.h"

#include <algorithm>

namespace ptarmigan::translator {

using ptx::StateSpace;

bool may_meet(const StepAccess& a, const StepAccess& b) {
    if (!a.writes && !b.writes) return false;
    return !(a.space == StateSpace::shared && b.space == StateSpace::global) &&
           !(a.space == StateSpace::global && b.space == StateSpace::shared);
}

/// Of each word that threads of `first` come to, the first and the last step that does; then those of `second`.
StepConflict find_conflict(const StepAccess& first, const StepAccess& second, unsigned width) {
    struct Piece {
        std::int64_t begin;
        std::size_t step;
    };
    constexpr std::int64_t far = std::int64_t(1) << 30;
    bool fits = true;
    const auto pieces_of = [&](const StepAccess& access) {
        std::vector<Piece> pieces;
        for (std::size_t t = 0; t < access.threads.size(); ++t) {
            if (!access.threads[t]) continue;
            const std::int64_t begin = std::int32_t(access.address->numbers[t]);
            fits = fits && begin > -far && begin < far;
            if (pieces.empty() || pieces.back().begin != begin || pieces.back().step != t / width)
                pieces.push_back({begin, t / width});
        }
        std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
        return pieces;
    };
    const std::vector<Piece> firsts = pieces_of(first), seconds = pieces_of(second);
    if (!fits) return StepConflict::both;
    // By place of `firsts`: the range of steps there.
    struct Steps {
        std::int64_t begin;
        std::size_t low, high;
    };
    std::vector<Steps> places;
    for (const Piece& piece : firsts) {
        if (places.empty() || places.back().begin != piece.begin)
            places.push_back({piece.begin, piece.step, piece.step});
        places.back().low = std::min(places.back().low, piece.step);
        places.back().high = std::max(places.back().high, piece.step);
    }
    // What has just been written in pieces and is read across them waits until it has reached the cache: on a Zen 5
    // more than a barrier costs.
    const bool hands_on = first.writes && !second.writes;
    StepConflict result = StepConflict::none;
    for (const Piece& piece : seconds) {
        auto place =
            std::lower_bound(places.begin(), places.end(), piece.begin, [&](const Steps& each, std::int64_t begin) {
                return each.begin + std::int64_t(first.bytes) <= begin;
            });
        for (; place != places.end() && place->begin < piece.begin + std::int64_t(second.bytes); ++place) {
            if (hands_on) return StepConflict::both;
            if (piece.step < place->high) result = result | StepConflict::if_rising;
            if (piece.step > place->low) result = result | StepConflict::if_falling;
        }
    }
    return result;
}

} // namespace ptarmigan::translator
