// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/warp_talk.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/memory/memory_places.h"
#include "translator/analysis/memory/shared_accesses.h"

#include <algorithm>
#include <cstdint>
#include <map>
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
        std::vector<BlockId> work;
        for (BlockId block = static_cast<BlockId>(graph_.blocks.size()); block-- > 0;) work.push_back(block);
        while (!work.empty()) {
            const BlockId block = work.back();
            work.pop_back();
            State open = at_entry_[block];
            if (walk(block, open)) return true;
            for (BlockId successor : graph_.blocks[block].successors)
                if (!open.empty() && enter(successor, open)) work.push_back(successor);
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
                    if (accesses_.encounter(accesses_.all()[store], here, as_flags(passed)) != Encounter::never)
                        return true;
            if (here.writes) open[number] = no_blocks();
        }
        return false;
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

    const FunctionGraph& graph_;
    SharedAccesses accesses_;
    const MemoryPlaces places_;
    std::vector<State> at_entry_;
    std::vector<std::size_t> first_access_; ///< by block
};

} // namespace

bool talks_without_meeting(const FunctionGraph& graph, const BlockShape& block) {
    return OpenStores(graph, block).reach_others_loads();
}

} // namespace ptarmigan::translator
