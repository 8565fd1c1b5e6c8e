// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/warp_talk.h"

#include "translator/analysis/waits/clamped_words.h"

#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/memory/memory_places.h"
#include "translator/analysis/memory/shared_accesses.h"
#include "translator/kernel_abi.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace ptarmigan::translator {
namespace {

/// A bit for each member of something that is numbered.
class Bits {
public:
    Bits() = default;
    Bits(std::size_t count, bool value) : words_((count + 63) / 64, value ? ~std::uint64_t{0} : 0) {}

    bool has(std::size_t i) const { return words_[i / 64] >> i % 64 & 1; }
    void add(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << i % 64; }
    void clear() { std::fill(words_.begin(), words_.end(), 0); }
    /// True if there are more now.
    bool unite(const Bits& other) {
        bool changed = false;
        for (std::size_t i = 0; i < words_.size(); ++i) {
            changed = changed || (other.words_[i] & ~words_[i]) != 0;
            words_[i] |= other.words_[i];
        }
        return changed;
    }
    /// True if there are fewer now.
    bool intersect(const Bits& other) {
        bool changed = false;
        for (std::size_t i = 0; i < words_.size(); ++i) {
            changed = changed || (words_[i] & ~other.words_[i]) != 0;
            words_[i] &= other.words_[i];
        }
        return changed;
    }
    /// Calls `visit` with each member until that returns true; returns whether it did.
    template <class Visit> bool any(Visit visit) const {
        for (std::size_t i = 0; i < words_.size(); ++i)
            for (std::uint64_t left = words_[i]; left; left &= left - 1)
                if (visit(i * 64 + std::size_t(std::countr_zero(left)))) return true;
        return false;
    }

private:
    std::vector<std::uint64_t> words_;
};

/// Stores that nothing has followed at which lanes wait: on some way, and on all ways, that lead to a place. What is
/// found does not depend on the order in which the blocks are walked.
class OpenStores {
public:
    OpenStores(const FunctionGraph& graph, const BlockShape& block)
        : graph_(graph), is_one_warp_(block.ntid[0] * block.ntid[1] * block.ntid[2] <= abi::warp_size),
          accesses_(graph, block, 1, {}), places_(graph), successors_(successor_edges(graph)),
          order_(reverse_post_order(successors_, 0)), first_access_(graph.blocks.size() + 1),
          meets_(graph.blocks.size()) {
        std::size_t access = 0;
        for (BlockId id = 0; id < graph.blocks.size(); ++id) {
            first_access_[id] = access;
            while (access < all().size() && all()[access].block == id) ++access;
            for (const GraphInstruction& instruction : graph.blocks[id].instructions)
                meets_[id] = meets_[id] || is_meeting(instruction.inst);
        }
        first_access_[graph.blocks.size()] = access;
        std::map<Word, std::size_t> words;
        word_of_.resize(all().size());
        for (std::size_t number = 0; number < all().size(); ++number) {
            if (!all()[number].writes) continue;
            const ptx::Instruction& inst = instruction(all()[number]);
            const ptx::Operand& address = accesses_.operand(all()[number]);
            const auto [found, is_new] = words.try_emplace({address.base, address.index, address.scope, address.value,
                                                            all()[number].bytes, inst.guard, inst.guard_negated},
                                                           words.size());
            word_of_[number] = found->second;
            if (is_new) stores_to_.push_back(number);
        }
    }

    bool reach_others_loads() {
        const auto stores = [&](bool global) {
            return std::any_of(all().begin(), all().end(), [&](const SharedAccess& access) {
                return access.writes && access.is_global == global && !access.is_atomic;
            });
        };
        const bool is_large = all().size() > most_bits / graph_.blocks.size();
        if (stores(false)) {
            if (is_large) return true;
        } else if (is_large || !stores(true)) {
            return false;
        }
        return find_in_loads();
    }

    /// Of loads and stores of global memory only.
    bool reach_others_global_loads() {
        shared_counts_ = false;
        return all().size() <= most_bits / graph_.blocks.size() && find_in_loads();
    }

private:
    bool find_in_loads() {
        find_open();
        for (BlockId block : order_) {
            State open = at_entry_[block];
            if (walk(block, open, true)) return true;
        }
        return false;
    }

    /// Kernels with more blocks times accesses, or with more pairs of accesses to look at, are taken to talk, and ways
    /// that are not walked any more to pass everything: that costs speed only.
    static constexpr std::size_t most_bits = std::size_t{1} << 28, most_pairs = std::size_t{1} << 22,
                                 most_steps = std::size_t{1} << 24;

    struct State {
        Bits some; ///< open on some way, by number among the accesses
        Bits all;  ///< words stored to on all ways, by number of such words
    };
    /// As it is written: base register or variable, what is added, how many bytes; and the condition.
    using Word = std::tuple<ptx::Operand::Base, std::uint32_t, ptx::VariableScope, std::uint64_t, std::uint32_t,
                            ptx::RegisterId, bool>;

    const std::vector<SharedAccess>& all() const { return accesses_.all(); }

    static bool is_meeting(const ptx::Instruction& inst) {
        return has_effect(inst, ptx::Effects::barrier | ptx::Effects::convergent);
    }

    void find_open() {
        at_entry_.assign(graph_.blocks.size(), State{Bits(all().size(), false), Bits(stores_to_.size(), true)});
        at_entry_[0].all.clear();
        // In the order of control: going along one way after the other would walk a block once for each way that
        // leads there.
        std::vector<std::size_t> position(graph_.blocks.size());
        std::set<std::size_t> work;
        for (std::size_t i = 0; i < order_.size(); ++i) {
            position[order_[i]] = i;
            work.insert(work.end(), i);
        }
        while (!work.empty()) {
            const BlockId block = order_[*work.begin()];
            work.erase(work.begin());
            State open = at_entry_[block];
            walk(block, open, false);
            for (BlockId successor : successors_[block]) {
                const bool more = at_entry_[successor].some.unite(open.some);
                if (at_entry_[successor].all.intersect(open.all) || more) work.insert(position[successor]);
            }
        }
    }

    /// From the state at the block's entry to that at its end. With `ask`: true as soon as a load meets another's
    /// store.
    bool walk(BlockId block, State& open, bool ask) {
        const std::vector<GraphInstruction>& instructions = graph_.blocks[block].instructions;
        std::size_t access = first_access_[block];
        if (!meets_[block] && !ask) {
            for (; access < first_access_[block + 1]; ++access) pass(access, open);
            return false;
        }
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            if (is_meeting(instructions[i].inst)) {
                open.some.clear();
                open.all.clear();
            }
            if (access == first_access_[block + 1] || all()[access].index != i) continue;
            if (ask && all()[access].reads && meets_store(access, open)) return true;
            pass(access++, open);
        }
        return false;
    }

    void pass(std::size_t number, State& open) const {
        const SharedAccess& access = all()[number];
        if (!access.writes || access.is_atomic) return;
        open.some.add(number);
        if (!access.is_global) open.all.add(word_of_[number]);
    }

    bool meets_store(std::size_t load, const State& open) {
        const SharedAccess& here = all()[load];
        if (here.is_atomic) return false;
        if (here.is_global) return meets_global_store(load, open.some);
        if (!shared_counts_ || !meets_some(load, open.some)) return false;
        return pairs_left_ == 0 || !(is_own(here, open) || is_in_own_place(load, open) || is_counter(load));
    }

    /// Another thread has stored to the word, as far as the addresses are known: those of two pointers are taken to be
    /// apart. Kernels of one warp hand over through global memory, too (cuSOLVER's table of pairs for batched Jacobi);
    /// where the block is one, one array is enough (CuPy's max_len_seq): it costs little there.
    bool meets_global_store(std::size_t load, const Bits& open) {
        return open.any([&](std::size_t store) {
            if (!all()[store].is_global || pairs_left_ == 0) return false;
            --pairs_left_;
            if (is_one_warp_ && places_.overlap(places_.of(instruction(all()[store])),
                                                places_.of(instruction(all()[load]))) == Overlap::same_object)
                return true;
            const std::vector<bool> all_passed(graph_.blocks.size(), true), none_passed(graph_.blocks.size(), false);
            if (accesses_.encounter(all()[store], all()[load], none_passed) == Encounter::never) return false;
            if (accesses_.encounter(all()[store], all()[load], all_passed) != Encounter::never) return true;
            std::vector<bool> passed(graph_.blocks.size());
            for (BlockId block = 0; block < graph_.blocks.size(); ++block)
                passed[block] = is_between(store, load, block);
            return accesses_.encounter(all()[store], all()[load], passed) != Encounter::never;
        });
    }

    /// Looks at the stores only whose addresses are near the load's.
    bool meets_some(std::size_t load, const Bits& open) {
        if (!open.any([](std::size_t) { return true; })) return false;
        const SharedAccesses::Kind to = kind(load);
        const auto meets = [&](const Stores& stores, Stores::const_iterator first, std::int64_t last) {
            for (; first != stores.end() && first->first <= last; ++first)
                if (open.has(first->second) && may_meet(first->second, load)) return true;
            return false;
        };
        for (const auto& [from, same] : store_kinds()) {
            if (pairs_left_ == 0) return true;
            --pairs_left_;
            const auto [period, reach] = accesses_.spacing(from, to.id);
            const Stores& stores = stores_of(from, period);
            if (reach == INT64_MAX || (period != 0 && reach >= period / 2)) {
                if (meets(stores, stores.begin(), INT64_MAX)) return true;
                continue;
            }
            const std::int64_t base = residue(to.base, period);
            for (const std::int64_t round : {std::int64_t(0), period, -period}) {
                std::int64_t first = 0, last = 0;
                if (__builtin_sub_overflow(base + round, reach, &first)) first = INT64_MIN;
                if (__builtin_add_overflow(base + round, reach, &last)) last = INT64_MAX;
                const auto begin = std::lower_bound(stores.begin(), stores.end(), std::pair(first, std::size_t(0)));
                if (meets(stores, begin, last)) return true;
                if (period == 0) break;
            }
        }
        return false;
    }

    static std::int64_t residue(std::int64_t base, std::int64_t period) {
        return period == 0 ? base : (base % period + period) % period;
    }

    /// The stores of each kind.
    const std::map<std::size_t, std::vector<std::size_t>>& store_kinds() {
        if (store_kinds_.empty())
            for (std::size_t i = 0; i < all().size(); ++i)
                if (all()[i].writes && !all()[i].is_global && !all()[i].is_atomic)
                    store_kinds_[kind(i).id].push_back(i);
        return store_kinds_;
    }

    /// Of one kind, by their base's residue.
    using Stores = std::vector<std::pair<std::int64_t, std::size_t>>;
    const Stores& stores_of(std::size_t of_kind, std::int64_t period) {
        const auto [found, is_new] = sorted_.try_emplace({of_kind, period});
        if (is_new) {
            for (const std::size_t store : store_kinds().at(of_kind))
                found->second.emplace_back(residue(kind(store).base, period), store);
            std::sort(found->second.begin(), found->second.end());
        }
        return found->second;
    }

    bool may_meet(std::size_t store, std::size_t load) {
        if (pairs_left_ == 0) return true;
        --pairs_left_;
        const SharedAccesses::Kind from = kind(store), to = kind(load);
        const auto distance = std::int64_t(std::uint64_t(to.base) - std::uint64_t(from.base));
        const auto ask = [&](const std::vector<bool>& passed) {
            return accesses_.encounter(all()[store], all()[load], passed) != Encounter::never;
        };
        // Most are apart whatever was passed.
        const auto [found, is_new] = apart_.try_emplace({from.id, to.id, distance});
        if (is_new) found->second = !ask(std::vector<bool>(graph_.blocks.size(), true));
        if (found->second) return false;
        std::vector<BlockId> passed;
        for (const auto* blocks : {&accesses_.asked_blocks(from), &accesses_.asked_blocks(to)})
            for (BlockId block : *blocks)
                if (is_between(store, load, block)) passed.push_back(block);
        const auto [answer, is_asked_first] = meet_.try_emplace({from.id, to.id, distance, passed});
        if (is_asked_first) {
            std::vector<bool> flags(graph_.blocks.size());
            for (BlockId block : passed) flags[block] = true;
            answer->second = ask(flags);
        }
        return answer->second;
    }

    SharedAccesses::Kind kind(std::size_t access) {
        if (kinds_.empty()) {
            kinds_.reserve(all().size());
            for (const SharedAccess& each : all())
                kinds_.push_back(each.is_global || each.is_atomic ? SharedAccesses::Kind{} : accesses_.kind(each));
        }
        return kinds_[access];
    }

    /// Is `block` entered on some way from the store to the load, on which lanes don't wait and the store is not made
    /// again?
    bool is_between(std::size_t store, std::size_t load, BlockId block) {
        const BlockId from = all()[store].block, to = all()[load].block;
        if (from == to && store < load) return false; // the straight way
        if (block == from && from != to) return false;
        if (steps_left_ == 0) return true;
        return reached(from, from).has(block) && (block == to || reached(block, from).has(to));
    }

    /// Blocks that are entered behind the end of `first`, without a meeting and not through `but`.
    const Bits& reached(BlockId first, BlockId but) {
        const auto [found, is_new] = reached_.try_emplace({first, but}, graph_.blocks.size(), false);
        Bits& entered = found->second;
        if (!is_new) return entered;
        std::size_t steps = graph_.blocks.size() / 64 + 1;
        std::vector<BlockId> work;
        const auto leave = [&](BlockId block) {
            for (BlockId next : successors_[block]) {
                if (entered.has(next)) continue;
                entered.add(next);
                work.push_back(next);
            }
            ++steps;
        };
        // Of the store's block it is what stands behind the store.
        if (first == but || !meets_[first]) leave(first);
        while (!work.empty()) {
            const BlockId here = work.back();
            work.pop_back();
            if (here != but && !meets_[here]) leave(here);
        }
        steps_left_ -= std::min(steps_left_, steps);
        return entered;
    }

    /// The thread itself has written the word since lanes last waited, whichever way it came, and each has one of its
    /// own. What others write to a place that is not known is taken to be elsewhere: they would have to wait for the
    /// load on a GPU, too.
    bool is_own(const SharedAccess& load, const State& open) {
        return open.all.any([&](std::size_t word) {
            const SharedAccess& store = all()[stores_to_[word]];
            const ptx::Instruction &first = instruction(store), &second = instruction(load);
            if (first.guard != ptx::no_id &&
                (first.guard != second.guard || first.guard_negated != second.guard_negated))
                return false;
            return is_one_word_each(store, load);
        });
    }

    /// Do the two take the same word, another in each thread?
    bool is_one_word_each(const SharedAccess& store, const SharedAccess& load) {
        if (accesses_.have_one_address(store, load)) return true;
        return places_.overlap(places_.of(instruction(store)), places_.of(instruction(load))) == Overlap::same_place &&
               accesses_.encounter(load, load, std::vector<bool>(graph_.blocks.size())) == Encounter::never;
    }

    /// The thread has written the word on some way only, but it is the same word at the load: nothing that changes the
    /// address is passed between. So each thread keeps to a word of its own, as in a loop that may have no round.
    bool is_in_own_place(std::size_t load, const State& open) {
        return open.some.any([&](std::size_t store) {
            if (all()[store].is_global || !is_one_word_each(all()[store], all()[load])) return false;
            const SharedAccesses::Kind from = kind(store), to = kind(load);
            for (const auto* blocks : {&accesses_.asked_blocks(from), &accesses_.asked_blocks(to)})
                for (BlockId block : *blocks)
                    if (is_between(store, load, block)) return false;
            return true;
        });
    }

    static bool is_volatile(const ptx::Instruction& inst) { return inst.has(ptx::Modifier::volatile_); }

    /// Does the thread execute `inst` if it executes `other`?
    static bool executes_as(const ptx::Instruction& inst, const ptx::Instruction& other) {
        return inst.guard == ptx::no_id || (inst.guard == other.guard && inst.guard_negated == other.guard_negated);
    }

    /// Is what `store` writes computed from what `load`, in front of it in the block, has read, and from nothing else?
    bool counts(const SharedAccess& load, const SharedAccess& store) const {
        const std::vector<GraphInstruction>& instructions = graph_.blocks[load.block].instructions;
        const FewValues read = definitions(graph_, instructions[load.index]);
        const ptx::Operand& written = instruction(store)[ptx::Role::b];
        if (read.size() != 1 || written.kind != ptx::Operand::Kind::reg) return false;
        for (std::size_t i = load.index + 1; i < store.index; ++i) {
            const FewValues results = definitions(graph_, instructions[i]);
            if (std::find(results.begin(), results.end(), written.index) == results.end()) continue;
            const FewValues sources = uses(graph_, instructions[i]);
            return is_removable(instructions[i].inst) && !has_effect(instructions[i].inst, ptx::Effects::load) &&
                   sources.size() == 1 && sources[0] == read[0];
        }
        return false;
    }

    /// The thread counts in the word, which is in a place that nobody knows: loads it, adds a constant, writes it back.
    /// A counter that lanes shared would lose what others count on a GPU, where they load it together: so each has its
    /// own, however far the place may be from the thread's.
    bool is_counter(std::size_t load) {
        const SharedAccess& here = all()[load];
        const std::vector<GraphInstruction>& instructions = graph_.blocks[here.block].instructions;
        std::size_t looked_at = here.index;
        for (std::size_t next = load + 1; next < first_access_[here.block + 1]; ++next) {
            const SharedAccess& store = all()[next];
            for (; looked_at < store.index; ++looked_at)
                if (is_meeting(instructions[looked_at].inst)) return false;
            if (store.writes && !store.is_global && !store.is_atomic && store.bytes == here.bytes &&
                executes_as(instruction(store), instruction(here)) && accesses_.have_one_address(here, store))
                return !is_volatile(instruction(here)) && !is_volatile(instruction(store)) && counts(here, store);
        }
        return false;
    }

    const ptx::Instruction& instruction(const SharedAccess& access) const {
        return graph_.blocks[access.block].instructions[access.index].inst;
    }

    const FunctionGraph& graph_;
    const bool is_one_warp_; ///< the block
    SharedAccesses accesses_;
    const MemoryPlaces places_;
    const Edges successors_;
    const std::vector<BlockId> order_;
    std::vector<std::size_t> first_access_; ///< by block
    std::vector<bool> meets_;               ///< by block: lanes wait in it
    std::vector<std::size_t> word_of_;      ///< by access that writes
    std::vector<std::size_t> stores_to_;    ///< by word: one of its stores
    std::vector<State> at_entry_;
    std::vector<SharedAccesses::Kind> kinds_; ///< by access, when first asked
    std::map<std::pair<BlockId, BlockId>, Bits> reached_;
    std::map<std::size_t, std::vector<std::size_t>> store_kinds_;
    std::map<std::pair<std::size_t, std::int64_t>, Stores> sorted_; ///< by kind and period
    /// Two kinds and the distance of their bases.
    struct Pair {
        std::size_t store = 0, load = 0;
        std::int64_t distance = 0;
        bool operator==(const Pair&) const = default;
    };
    struct PairHash {
        std::size_t operator()(const Pair& pair) const {
            const std::uint64_t mixed = (pair.store * 0x9e3779b97f4a7c15u + pair.load) * 0xff51afd7ed558ccdu;
            return (mixed + std::uint64_t(pair.distance)) * 0xc4ceb9fe1a85ec53u >> 8;
        }
    };
    std::unordered_map<Pair, bool, PairHash> apart_; ///< whatever was passed
    /// With the blocks that were passed, of those that matter.
    std::map<std::tuple<std::size_t, std::size_t, std::int64_t, std::vector<BlockId>>, bool> meet_;
    std::size_t pairs_left_ = most_pairs, steps_left_ = most_steps;
    bool shared_counts_ = true;
};

} // namespace

bool talks_without_meeting(const FunctionGraph& graph, const BlockShape& block) {
    return changes_clamped_words(graph) || OpenStores(graph, block).reach_others_loads();
}

bool talks_through_global(const FunctionGraph& graph, const BlockShape& block) {
    return changes_clamped_words(graph) || OpenStores(graph, block).reach_others_global_loads();
}

} // namespace ptarmigan::translator
