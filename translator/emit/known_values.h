// SPDX-License-Identifier: Apache-2.0
// What the emitter knows of SSA values where it stands. Ways that code takes aside (an edge, an arm) begin with it and
// leave it as it was, some thousand times in a kernel, so nothing is copied for that.
#pragma once

#include "translator/emit/lane_value.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace ptarmigan::translator {

/// Of one function while it is emitted, by one thread. clear() forgets all in constant time.
class KnownValues {
public:
    /// What was known at one time; each is to be gone back to, the last one first.
    struct Mark {
        std::size_t changes;
        std::uint32_t stamp;
    };

    /// Null if nothing is known.
    const LaneValue* find(ValueId value) const {
        return value < entries_.size() && entries_[value].stamp == stamp_ ? &entries_[value].known : nullptr;
    }
    void set(ValueId value, const LaneValue& known) {
        if (value >= entries_.size()) entries_.resize(value + 1);
        if (marks_ != 0) changes_.emplace_back(value, entries_[value]);
        entries_[value] = {stamp_, known};
    }
    void clear() { stamp_ = ++last_stamp_; }

    /// From here on changes can be taken back, by go_back() of the mark.
    Mark mark() {
        ++marks_;
        return {changes_.size(), stamp_};
    }
    void go_back(const Mark& mark) {
        --marks_;
        for (; changes_.size() > mark.changes; changes_.pop_back())
            entries_[changes_.back().first] = changes_.back().second;
        stamp_ = mark.stamp;
    }

private:
    struct Entry {
        std::uint32_t stamp = 0; ///< known since the clear() of this number; 0: never
        LaneValue known;
    };
    std::vector<Entry> entries_;                     ///< by value
    std::vector<std::pair<ValueId, Entry>> changes_; ///< what was there before, since the first mark
    std::uint32_t stamp_ = 1, last_stamp_ = 1, marks_ = 0;
};

} // namespace ptarmigan::translator
