// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/step_order.h"

#include "translator/analysis/arithmetic/thread_sums.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/memory/alignment.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::FormId;
using ptx::Operand;
using ptx::StateSpace;

/// Of a region between barriers that stay; and of the graph.
constexpr std::size_t most_blocks = 64, most_accesses = 96, most_barriers = 512;
/// Threads times instructions whose numbers are computed.
constexpr std::size_t evaluation_budget = 1 << 19;
/// Steps of arithmetic behind an address.
constexpr unsigned most_of_address = 64;

/// In which order of the steps two accesses would come to one place the wrong way round.
enum Conflict : unsigned { none = 0, if_rising = 1, if_falling = 2, both = 3 };

/// An address in shared memory, modulo 2^32.
struct Address {
    std::vector<std::uint32_t> numbers;         ///< by thread
    std::map<ValueId, std::uint32_t> in_common; ///< factors of what is the same in all threads of the CTA
};

struct Access {
    BlockId block = no_block;
    bool writes = false;
    StateSpace space = StateSpace::generic;
    std::uint32_t bytes = 0;
    std::optional<Address> address; ///< none: not known
    std::vector<bool> threads;
};

class Barriers {
public:
    Barriers(FunctionGraph& graph, const BlockShape& block, unsigned width, const BarrierPlan& plan)
        : graph_(graph), width_(width), plan_(plan), sums_(graph, block), bits_(graph, block, evaluation_budget),
          by_block_(graph.blocks.size()), is_opaque_(graph.blocks.size(), false), stays_(graph.blocks.size(), false),
          dropped_(graph.blocks.size(), false) {}

    StepOrder run() {
        if (plan_.regions.size() > most_barriers) return {};
        for (std::size_t r = 1; r < plan_.regions.size(); ++r) stays_[plan_.resume_of[r]] = true;
        for (BlockId id = 0; id < graph_.blocks.size(); ++id) list_accesses(id);
        StepOrder result;
        for (BlockId barrier : candidates())
            if (can_go(barrier)) result.changed = true;
        for (const auto& [behind, conflict] : conflicts_)
            if ((behind == no_block || stays_[behind]) && conflict == if_rising) result.falling.insert(behind);
        for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
            if (!dropped_[id]) continue;
            graph_.blocks[id].instructions.pop_back();
            graph_.blocks[id].ends_with_barrier = false;
        }
        return result;
    }

private:
    /// The blocks from one barrier that stays to the next ones, in an order in which each comes behind those before it.
    struct Region {
        std::vector<BlockId> blocks;
        std::vector<std::uint64_t> reached; ///< by position: the blocks that lie behind it
    };

    void list_accesses(BlockId id);
    std::optional<Address> address_of(const Operand& operand);
    bool add(Address& sum, ValueId value, std::uint32_t factor, unsigned& left);
    bool add(Address& sum, const Operand& operand, std::uint32_t factor, unsigned& left);
    std::vector<BlockId> candidates() const;
    std::set<BlockId> regions_with(BlockId block) const;
    bool can_go(BlockId barrier);
    std::optional<Region> region_behind(BlockId barrier) const;
    std::optional<Conflict> conflict_in(const Region& region);
    bool exits_meet(const Region& region, std::size_t barrier) const;
    Conflict conflict(std::size_t first, std::size_t second, const Region& region, std::size_t first_position);
    static bool may_meet(const Access& a, const Access& b);
    Conflict compare(const Access& first, const Access& second) const;

    FunctionGraph& graph_;
    const unsigned width_;
    const BarrierPlan& plan_;
    ThreadSums sums_;
    ThreadBitsTable bits_;
    std::vector<Access> all_;
    std::vector<std::vector<std::size_t>> by_block_; ///< into all_
    std::vector<bool> is_opaque_;                    ///< by block: it does more than plain accesses
    std::vector<bool> stays_, dropped_;              ///< by block: its barrier
    std::map<BlockId, Conflict> conflicts_;          ///< of the region behind a barrier that others were taken out of
    std::map<std::pair<std::size_t, std::size_t>, Conflict> known_;
};

void Barriers::list_accesses(BlockId id) {
    const Block& block = graph_.blocks[id];
    for (const GraphInstruction& instruction : block.instructions) {
        const ptx::Instruction& inst = instruction.inst;
        if (block.ends_with_barrier && &instruction == &block.instructions.back()) continue;
        const bool accesses = has_effect(inst, Effects::load | Effects::store);
        const bool plain = !has_effect(inst, Effects::atomic | Effects::convergent | Effects::barrier | Effects::fence |
                                                 Effects::async | Effects::may_trap | Effects::call |
                                                 Effects::volatile_read | Effects::waits);
        const Operand& place = accessed_memory(inst);
        if (!plain || is_strong(inst) || (accesses && place.kind != Operand::Kind::address)) {
            is_opaque_[id] = true;
            continue;
        }
        if (!accesses || inst.space == StateSpace::param || inst.space == StateSpace::local ||
            inst.space == StateSpace::constant)
            continue;
        Access access{.block = id, .writes = has_effect(inst, Effects::store), .space = inst.space};
        access.bytes = access_bytes(inst);
        if (inst.space == StateSpace::shared) {
            access.address = address_of(place);
            access.threads = sums_.executing(id, inst).threads;
        }
        by_block_[id].push_back(all_.size());
        all_.push_back(std::move(access));
    }
}

std::optional<Address> Barriers::address_of(const Operand& operand) {
    Address result{std::vector<std::uint32_t>(sums_.threads(), std::uint32_t(operand.value)), {}};
    unsigned left = most_of_address;
    if (operand.base == Operand::Base::variable && operand.scope == ptx::VariableScope::shared) {
        for (std::uint32_t& number : result.numbers) number += std::uint32_t(graph_.shared[operand.index].offset);
        return result;
    }
    if (operand.base != Operand::Base::reg || !add(result, operand.index, 1, left)) return std::nullopt;
    return result;
}

bool Barriers::add(Address& sum, const Operand& operand, std::uint32_t factor, unsigned& left) {
    if (operand.kind == Operand::Kind::reg) return !operand.negated && add(sum, operand.index, factor, left);
    if (operand.kind == Operand::Kind::imm) {
        for (std::uint32_t& number : sum.numbers) number += factor * std::uint32_t(operand.value);
        return true;
    }
    if (operand.kind != Operand::Kind::special) return false;
    const std::optional<ThreadBits> known = bits_.of_special(operand);
    if (!known || known->low != 32 || !known->assumed.empty()) return false;
    for (std::size_t t = 0; t < sum.numbers.size(); ++t) sum.numbers[t] += factor * std::uint32_t(known->of(t));
    return true;
}

/// Only arithmetic that is exact modulo 2^32: wherever it wraps, the address is the same.
bool Barriers::add(Address& sum, ValueId value, std::uint32_t factor, unsigned& left) {
    const SsaValue& info = graph_.values[value];
    if (ptx::bit_size(info.type) != 32 || left == 0) return false;
    --left;
    const auto add_number = [&](std::uint64_t number) {
        for (std::uint32_t& each : sum.numbers) each += factor * std::uint32_t(number);
        return true;
    };
    if (info.is_constant) return add_number(info.constant);
    if (const auto variable = sums_.shared_variable(value)) {
        const Operand& source = sums_.sums().definition(value).instruction->inst.operands[1];
        return add_number(graph_.shared[*variable].offset + std::uint64_t(source.value));
    }
    const LinearSums::Definition& definition = sums_.sums().definition(value);
    if (definition.phi && definition.phi->incoming.size() == 1)
        return add(sum, definition.phi->incoming[0], factor, left);
    if (definition.instruction && definition.instruction->previous.empty()) {
        const ptx::Instruction& inst = definition.instruction->inst;
        const ThreadBits* known = bits_.of_result(inst);
        if (known && known->low == 32 && known->assumed.empty()) {
            for (std::size_t t = 0; t < sum.numbers.size(); ++t) sum.numbers[t] += factor * std::uint32_t(known->of(t));
            return true;
        }
        const auto constant = [&](unsigned index) -> std::optional<std::uint32_t> {
            const Operand& operand = inst.operands[index];
            if (operand.kind == Operand::Kind::imm) return std::uint32_t(operand.value);
            if (operand.kind == Operand::Kind::reg && !operand.negated && graph_.values[operand.index].is_constant)
                return std::uint32_t(graph_.values[operand.index].constant);
            return std::nullopt;
        };
        const auto product = [&](unsigned a, unsigned b) {
            if (const auto by = constant(b)) return add(sum, inst.operands[a], factor * *by, left);
            const auto by = constant(a);
            return by && add(sum, inst.operands[b], factor * *by, left);
        };
        const Address before = sum;
        bool is_sum = false;
        switch (inst.form) {
        case FormId::mov:
        case FormId::cvt_same_32: is_sum = add(sum, inst.operands[1], factor, left); break;
        case FormId::add_int:
            is_sum = add(sum, inst.operands[1], factor, left) && add(sum, inst.operands[2], factor, left);
            break;
        case FormId::sub_int:
            is_sum = add(sum, inst.operands[1], factor, left) && add(sum, inst.operands[2], 0 - factor, left);
            break;
        case FormId::mul_lo: is_sum = product(1, 2); break;
        case FormId::mad_lo: is_sum = product(1, 2) && add(sum, inst.operands[3], factor, left); break;
        case FormId::shl: {
            const auto by = constant(2);
            is_sum = by && *by < 32 && add(sum, inst.operands[1], factor << *by, left);
            break;
        }
        default: break;
        }
        if (is_sum) return true;
        sum = before;
    }
    if (info.shape.level != Shape::Level::cta_uniform) return false;
    if ((sum.in_common[value] += factor) == 0) sum.in_common.erase(value);
    return true;
}

/// First those over which most is kept for each thread.
std::vector<BlockId> Barriers::candidates() const {
    std::vector<std::pair<std::size_t, BlockId>> counted;
    for (std::size_t r = 1; r < plan_.regions.size(); ++r) {
        const BlockId block = plan_.resume_of[r];
        const ptx::Instruction& inst = graph_.blocks[block].instructions.back().inst;
        if (has_effect(inst, Effects::async) || is_opaque_[block]) continue;
        const std::vector<ValueId>& live = plan_.live_in[r];
        const auto count = std::count_if(live.begin(), live.end(),
                                         [&](ValueId value) { return graph_.values[value].shape.is_varying(); });
        counted.emplace_back(std::size_t(count), block);
    }
    std::stable_sort(counted.begin(), counted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<BlockId> result;
    for (const auto& [count, block] : counted) result.push_back(block);
    return result;
}

/// None where there is a loop in it, or more than plain accesses.
std::optional<Barriers::Region> Barriers::region_behind(BlockId barrier) const {
    Region region;
    enum class State : std::uint8_t { unseen, open, done };
    std::map<BlockId, State> state;
    bool is_plain = true;
    const auto visit = [&](const auto& self, BlockId id) -> void {
        state[id] = State::open;
        is_plain = is_plain && !is_opaque_[id] && state.size() <= most_blocks;
        if (!is_plain) return;
        if (!stays_[id])
            for (BlockId next : graph_.blocks[id].successors) {
                const State seen = state[next];
                if (seen == State::open) is_plain = false;
                if (seen == State::unseen) self(self, next);
                if (!is_plain) return;
            }
        state[id] = State::done;
        region.blocks.push_back(id);
    };
    visit(visit, barrier == no_block ? 0 : graph_.blocks[barrier].successors[0]);
    if (!is_plain) return std::nullopt;
    std::reverse(region.blocks.begin(), region.blocks.end());
    const std::size_t count = region.blocks.size();
    region.reached.assign(count, 0);
    for (std::size_t i = count; i-- > 0;) {
        if (stays_[region.blocks[i]]) continue;
        for (BlockId next : graph_.blocks[region.blocks[i]].successors) {
            const auto place = std::find(region.blocks.begin(), region.blocks.end(), next) - region.blocks.begin();
            region.reached[i] |= std::uint64_t(1) << place | region.reached[std::size_t(place)];
        }
    }
    return region;
}

/// The barriers that stay (no_block: the kernel's beginning) behind which the block is come to before others.
std::set<BlockId> Barriers::regions_with(BlockId block) const {
    std::set<BlockId> result, seen{block};
    std::vector<BlockId> work{block};
    while (!work.empty()) {
        const BlockId id = work.back();
        work.pop_back();
        if (id == 0) result.insert(no_block);
        for (BlockId before : graph_.blocks[id].predecessors)
            if (stays_[before])
                result.insert(before);
            else if (seen.insert(before).second)
                work.push_back(before);
    }
    return result;
}

/// Tries it with the barrier taken out.
bool Barriers::can_go(BlockId barrier) {
    stays_[barrier] = false;
    dropped_[barrier] = true;
    std::map<BlockId, Conflict> found;
    for (BlockId before : regions_with(barrier)) {
        const std::optional<Region> region = region_behind(before);
        const std::optional<Conflict> conflict = region ? conflict_in(*region) : std::nullopt;
        if (!conflict || *conflict == both) {
            stays_[barrier] = true;
            dropped_[barrier] = false;
            return false;
        }
        found[before] = *conflict;
    }
    for (const auto& [before, conflict] : found) conflicts_[before] = conflict;
    return true;
}

/// In which order accesses meet that dropped barriers kept apart. If steps don't run in the usual order, nothing else
/// may depend on it either. None: there is too much to compare.
std::optional<Conflict> Barriers::conflict_in(const Region& region) {
    unsigned result = none;
    bool any_order = true; // streams of global memory are read forward, too
    std::size_t count = 0;
    for (BlockId id : region.blocks) {
        count += by_block_[id].size();
        for (std::size_t access : by_block_[id]) any_order = any_order && all_[access].space == StateSpace::shared;
    }
    if (count > most_accesses) return std::nullopt;
    std::uint64_t dropped = 0;
    for (std::size_t i = 0; i < region.blocks.size(); ++i) {
        if (!dropped_[region.blocks[i]]) continue;
        if (exits_meet(region, i)) return both;
        dropped |= std::uint64_t(1) << i;
    }
    for (std::size_t i = 0; i < region.blocks.size(); ++i) {
        const std::uint64_t from = region.reached[i] | std::uint64_t(1) << i;
        std::uint64_t behind_dropped = 0;
        for (std::size_t k = 0; k < region.blocks.size(); ++k)
            if ((dropped & from) >> k & 1) behind_dropped |= region.reached[k];
        for (std::size_t k = i; k < region.blocks.size(); ++k) {
            if (!(from >> k & 1)) continue;
            for (std::size_t first : by_block_[region.blocks[i]])
                for (std::size_t second : by_block_[region.blocks[k]]) {
                    if (i == k && second < first) continue;
                    const Conflict found = conflict(first, second, region, i);
                    if (behind_dropped >> k & 1)
                        result |= found;
                    else
                        any_order = any_order && found == none;
                }
        }
    }
    if (!any_order) result |= if_falling;
    return Conflict(result);
}

/// May threads that exit without coming to a barrier meet what lies behind it? It waits until they have exited; without
/// it they may exit later, in their own step, too.
bool Barriers::exits_meet(const Region& region, std::size_t barrier) const {
    const auto lies_behind = [&](std::size_t a, std::size_t b) { return (region.reached[b] >> a & 1) != 0; };
    for (std::size_t i = 0; i < region.blocks.size(); ++i) {
        if (i == barrier || lies_behind(barrier, i) || lies_behind(i, barrier)) continue;
        for (std::size_t k = 0; k < region.blocks.size(); ++k) {
            if (!lies_behind(k, barrier)) continue;
            for (std::size_t first : by_block_[region.blocks[i]])
                for (std::size_t second : by_block_[region.blocks[k]])
                    if (may_meet(all_[first], all_[second])) return true;
        }
    }
    return false;
}

/// Of what is in shared memory and what is in global memory, none.
bool Barriers::may_meet(const Access& a, const Access& b) {
    if (!a.writes && !b.writes) return false;
    return !(a.space == StateSpace::shared && b.space == StateSpace::global) &&
           !(a.space == StateSpace::global && b.space == StateSpace::shared);
}

Conflict Barriers::conflict(std::size_t first, std::size_t second, const Region& region, std::size_t first_position) {
    const Access &a = all_[first], &b = all_[second];
    if (!may_meet(a, b)) return none;
    if (!a.address || !b.address || a.address->in_common != b.address->in_common) return both;
    // What all threads have in common must be the same number at both.
    for (const auto& [value, factor] : a.address->in_common) {
        const auto place = std::find(region.blocks.begin(), region.blocks.end(), graph_.values[value].block);
        if (place != region.blocks.end() && region.reached[first_position] >> (place - region.blocks.begin()) & 1)
            return both;
    }
    const auto [entry, is_new] = known_.try_emplace({first, second});
    if (is_new) entry->second = compare(a, b);
    return entry->second;
}

/// Of each word that threads of `first` come to, the first and the last step that does; then those of `second`.
Conflict Barriers::compare(const Access& first, const Access& second) const {
    struct Piece {
        std::int64_t begin;
        std::size_t step;
    };
    constexpr std::int64_t far = std::int64_t(1) << 30;
    bool fits = true;
    const auto pieces_of = [&](const Access& access) {
        std::vector<Piece> pieces;
        for (std::size_t t = 0; t < access.threads.size(); ++t) {
            if (!access.threads[t]) continue;
            const std::int64_t begin = std::int32_t(access.address->numbers[t]);
            fits = fits && begin > -far && begin < far;
            if (pieces.empty() || pieces.back().begin != begin || pieces.back().step != t / width_)
                pieces.push_back({begin, t / width_});
        }
        std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
        return pieces;
    };
    const std::vector<Piece> firsts = pieces_of(first), seconds = pieces_of(second);
    if (!fits) return both;
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
    unsigned result = none;
    for (const Piece& piece : seconds) {
        auto place =
            std::lower_bound(places.begin(), places.end(), piece.begin, [&](const Steps& each, std::int64_t begin) {
                return each.begin + std::int64_t(first.bytes) <= begin;
            });
        for (; place != places.end() && place->begin < piece.begin + std::int64_t(second.bytes); ++place) {
            if (hands_on) return both;
            if (piece.step < place->high) result |= if_rising;
            if (piece.step > place->low) result |= if_falling;
        }
    }
    return Conflict(result);
}

} // namespace

StepOrder drop_ordered_barriers(FunctionGraph& graph, const BlockShape& block, unsigned width,
                                const BarrierPlan& plan) {
    return Barriers(graph, block, width, plan).run();
}

} // namespace ptarmigan::translator
