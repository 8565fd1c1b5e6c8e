// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/warp_talk.h"

#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/memory/memory_places.h"
#include "translator/analysis/memory/shared_accesses.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace ptarmigan::translator {
namespace {

/// Stores that nothing has followed at which lanes wait, forward over the blocks.
class OpenStores {
public:
    OpenStores(const FunctionGraph& graph, const BlockShape& block)
        : graph_(graph), accesses_(graph, block, 1, {}), places_(graph), at_entry_(graph.blocks.size()),
          first_access_(graph.blocks.size() + 1) {
        std::size_t access = 0;
        for (BlockId id = 0; id < graph.blocks.size(); ++id) {
            first_access_[id] = access;
            while (access < accesses_.all().size() && accesses_.all()[access].block == id) ++access;
        }
        first_access_[graph.blocks.size()] = access;
    }

    bool reach_others_loads() {
        // In the order of control: going along one way after the other would walk a block once for each way that
        // leads there.
        const std::vector<BlockId> order = reverse_post_order(successor_edges(graph_), 0);
        std::vector<std::size_t> position(graph_.blocks.size());
        std::set<std::size_t> work;
        for (std::size_t i = 0; i < order.size(); ++i) {
            position[order[i]] = i;
            work.insert(work.end(), i);
        }
        while (!work.empty()) {
            const BlockId block = order[*work.begin()];
            work.erase(work.begin());
            State open = at_entry_[block];
            if (walk(block, open)) return true;
            for (BlockId successor : graph_.blocks[block].successors)
                if (!open.empty() && enter(successor, open)) work.insert(position[successor]);
        }
        return false;
    }

private:
    /// A bit for each block: sets are merged for each store on each edge.
    using Blocks = std::vector<std::uint64_t>;
    /// Open stores by their number among the accesses, and the blocks entered since.
    using State = std::map<std::size_t, Blocks>;

    Blocks no_blocks() const { return Blocks(graph_.blocks.size() / 64 + 1); }

    std::vector<bool> as_flags(const Blocks& blocks) const {
        std::vector<bool> flags(graph_.blocks.size());
        for (BlockId id = 0; id < flags.size(); ++id) flags[id] = blocks[id / 64] >> id % 64 & 1;
        return flags;
    }

    bool enter(BlockId block, const State& open) {
        bool changed = false;
        for (const auto& [store, passed] : open) {
            Blocks& known = at_entry_[block][store];
            if (known.empty()) known = no_blocks();
            const auto add = [&](std::size_t word, std::uint64_t bits) {
                changed = changed || (bits & ~known[word]) != 0;
                known[word] |= bits;
            };
            for (std::size_t word = 0; word < passed.size(); ++word) add(word, passed[word]);
            add(block / 64, std::uint64_t{1} << block % 64);
        }
        return changed;
    }

    bool walk(BlockId block, State& open) {
        const std::vector<GraphInstruction>& instructions = graph_.blocks[block].instructions;
        std::size_t access = first_access_[block];
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            if (has_effect(instructions[i].inst, ptx::Effects::barrier | ptx::Effects::convergent)) open.clear();
            if (access == first_access_[block + 1] || accesses_.all()[access].index != i) continue;
            const std::size_t number = access++;
            const SharedAccess& here = accesses_.all()[number];
            if (here.is_global || here.is_atomic) continue;
            if (here.reads && !is_own(here, open))
                for (const auto& [store, passed] : open)
                    if (may_meet(store, number, passed)) return true;
            if (here.writes) open[number] = no_blocks();
        }
        return false;
    }

    /// Asked again each time that a block is walked: what nothing that was passed makes meet is asked once, the rest
    /// when more has been passed than at the last time.
    bool may_meet(std::size_t store, std::size_t load, const Blocks& passed) {
        const auto ask = [&](const std::vector<bool>& flags) {
            return accesses_.encounter(accesses_.all()[store], accesses_.all()[load], flags) != Encounter::never;
        };
        const auto [found, is_new] = asked_.try_emplace({store, load});
        Asked& asked = found->second;
        if (is_new) asked.are_apart = !ask(std::vector<bool>(graph_.blocks.size(), true));
        if (asked.are_apart || asked.passed == passed) return false;
        asked.passed = passed;
        return ask(as_flags(passed));
    }

    /// The thread itself has written the word since lanes last waited, and each has one of its own. What others write
    /// to a place that is not known is taken to be elsewhere: they would have to wait for the load on a GPU, too.
    bool is_own(const SharedAccess& load, const State& open) {
        const std::vector<bool> nowhere(graph_.blocks.size());
        return std::any_of(open.begin(), open.end(), [&](const auto& entry) {
            const SharedAccess& store = accesses_.all()[entry.first];
            if (accesses_.have_one_address(store, load)) return true;
            return places_.overlap(place(store), place(load)) == Overlap::same_place &&
                   accesses_.encounter(load, load, nowhere) == Encounter::never;
        });
    }

    const MemoryPlace& place(const SharedAccess& access) const {
        return places_.of(graph_.blocks[access.block].instructions[access.index].inst);
    }

    struct Asked {
        bool are_apart = false; ///< whatever was passed
        Blocks passed;          ///< with which they were found apart at last; empty: not yet
    };

    const FunctionGraph& graph_;
    SharedAccesses accesses_;
    const MemoryPlaces places_;
    std::map<std::pair<std::size_t, std::size_t>, Asked> asked_; ///< by the numbers of store and load
    std::vector<State> at_entry_;
    std::vector<std::size_t> first_access_; ///< by block
};

} // namespace

bool talks_without_meeting(const FunctionGraph& graph, const BlockShape& block) {
    return OpenStores(graph, block).reach_others_loads();
}

} // namespace ptarmigan::translator
