// SPDX-License-Identifier: Apache-2.0
// Threads that wait at lower places than they write at afterwards, as in a look back over the CTAs before: whoever is
// waited for waits lower down, so nobody waits in a circle, though masks hold back writes of lanes beside those that
// wait.
#pragma once

#include "translator/analysis/graph/linear_plan.h"
#include "translator/analysis/memory/memory_places.h"

#include <optional>

namespace ptarmigan::translator {

class DescendingWaits {
public:
    /// `waits`: loops_that_wait(). Needs shapes for the width at hand.
    DescendingWaits(const FunctionGraph& graph, const BlockShape& block, const std::vector<bool>& waits);

    /// Lanes may stand still in front of `inst`, in `block`, while others of their step wait in `loop`: nobody waits
    /// for what it does, or only somebody who waits higher up than these.
    bool may_come_late(const ptx::Instruction& inst, BlockId block, std::uint32_t loop) const;

private:
    struct Wait {
        const GraphInstruction* read;
        BlockId block;
        std::uint32_t loop;
    };
    void find_waits(const std::vector<bool>& waits);
    bool all_descend() const;
    bool descends_from(const Wait& wait) const;
    bool writes_where_awaited(BlockId block) const;
    bool comes_back(BlockId block, std::uint32_t loop) const;
    bool is_awaited(const ptx::Instruction& write) const;
    bool is_above(const ptx::Instruction& write, const Wait& wait) const;
    bool is_above(const ptx::Instruction& write, BlockId block, std::uint32_t loop) const;
    std::optional<LinearSum> highest(const LinearSum& place, std::uint32_t loop) const;
    std::optional<LinearSum> first_of(ValueId value, std::uint32_t loop, std::int64_t factor) const;
    std::optional<std::int64_t> width_of(const LinearSum::Term& term) const;
    std::vector<bool> reachable(std::vector<BlockId> work, bool stop_at_barriers) const;

    const FunctionGraph& graph_;
    const BlockShape block_;
    const MemoryPlaces places_;
    std::vector<Wait> waits_;
    bool descend_ = false;
};

} // namespace ptarmigan::translator
