// SPDX-License-Identifier: Apache-2.0
// Accesses are collected per register until something comes between that they must not pass, then cut into runs of
// adjacent ones. Loads first, because stores are kept behind the loads before them where those are made.
#include "translator/analysis/memory/access_groups.h"

#include "translator/analysis/graph/form_queries.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;
using ptx::StateSpace;

/// Of elements whose lanes' distances are not known: more would be one access per lane and 16 bytes again.
constexpr unsigned row_bytes = 16;
/// What a lane's values are kept in registers for, at most.
constexpr std::size_t most_elements = 8;
/// Accesses that are looked at before a collection is closed all the same: blocks may have thousands.
constexpr std::size_t most_collected = 64;

using Accesses = std::vector<const ptx::Instruction*>; ///< in program order

bool is_load(const ptx::Instruction& inst) {
    return inst.form == FormId::ld || inst.form == FormId::ld_global_nc;
}

std::int64_t offset_of(const ptx::Instruction& inst) {
    return std::int64_t(inst[ptx::Role::a].value);
}

bool is_at_register(const ptx::Instruction& inst) {
    const Operand& address = inst[ptx::Role::a];
    return address.kind == Operand::Kind::address && address.base == Operand::Base::reg;
}

/// One scalar per lane at [register + offset].
bool is_movable(const ptx::Instruction& inst) {
    const bool store = inst.form == FormId::st;
    if (!(store || is_load(inst)) || inst.guard != ptx::no_id || is_strong(inst) || !is_at_register(inst)) return false;
    if (inst.space == StateSpace::param) return false;
    const Operand& value = store ? inst[ptx::Role::b] : inst.operands[0];
    const unsigned bytes = ptx::byte_size(inst.type());
    return value.kind != Operand::Kind::vector && (store || value.kind == Operand::Kind::reg) &&
           (bytes == 4 || bytes == 8);
}

/// A weak load or store whose bytes are known, but for its address.
bool is_plain(const ptx::Instruction& inst) {
    return (inst.form == FormId::st || is_load(inst)) && !is_strong(inst);
}

unsigned bytes_of(const ptx::Instruction& inst) {
    const Operand& value = inst.form == FormId::st ? inst[ptx::Role::b] : inst.operands[0];
    return ptx::byte_size(inst.type()) * (value.kind == Operand::Kind::vector ? value.count : 1);
}

/// Nothing else of memory may be moved across it.
bool is_barrier(const ptx::Instruction& inst) {
    using enum ptx::Effects;
    if (is_plain(inst)) return false;
    return has_effect(inst, store | atomic | barrier | fence | async | call | waits | volatile_read | convergent |
                                may_trap) ||
           (has_effect(inst, load) && is_strong(inst));
}

/// Which accesses may touch one byte, of whatever lanes of a step.
class Meetings {
public:
    explicit Meetings(const FunctionGraph& graph) : graph_(graph) {}

    /// Accesses of `bytes` bytes, `distance` bytes apart at a register of this shape, meet in two lanes, or in one
    /// where the distance is not zero. Lanes that wrap are 2^32 bytes farther away.
    bool meet(const Shape& shape, std::int64_t distance, std::int64_t bytes, std::int64_t other_bytes) {
        if (!shape.is_affine() || shape.steps) return true;
        const std::vector<std::int64_t>& gaps = gaps_of(*shape.offsets);
        // [0, bytes) of one lane and [distance, distance + other_bytes) of another, `gap` behind it or in front.
        const auto overlap = [&](std::int64_t gap) {
            return gap + distance < bytes && gap + distance + other_bytes > 0;
        };
        if (gaps.empty() || gaps.back() >= std::int64_t(1) << 31) return true;
        return (distance != 0 && overlap(0)) ||
               std::any_of(gaps.begin(), gaps.end(), [&](std::int64_t gap) { return overlap(gap) || overlap(-gap); });
    }

    bool may_meet(const ptx::Instruction& a, const ptx::Instruction& b) {
        if (is_unwritten(a) || is_unwritten(b)) return false;
        if (is_own(a.space) && is_own(b.space) && a.space != b.space) return false;
        // Parameters are nobody's or the thread's own.
        if ((a.space == StateSpace::param && is_shared_or_global(b.space)) ||
            (b.space == StateSpace::param && is_shared_or_global(a.space)))
            return false;
        if (!is_at_register(a) || !is_at_register(b) || a.space != b.space) return true;
        const ValueId base = a[ptx::Role::a].index;
        if (base != b[ptx::Role::a].index) return true;
        const std::int64_t distance = offset_of(b) - offset_of(a);
        return distance == 0 || meet(graph_.values[base].shape, distance, bytes_of(a), bytes_of(b));
    }

    /// No two lanes share an element of the access.
    bool is_exclusive(const ptx::Instruction& inst) {
        const std::int64_t bytes = bytes_of(inst);
        return !meet(graph_.values[inst[ptx::Role::a].index].shape, 0, bytes, bytes);
    }

    /// Bytes between the lanes that are nearest to each other.
    std::int64_t nearest(const ptx::Instruction& inst) {
        return gaps_of(*graph_.values[inst[ptx::Role::a].index].shape.offsets).front();
    }

private:
    /// Nobody writes there while the kernel runs.
    static bool is_unwritten(const ptx::Instruction& inst) {
        return inst.form == FormId::ld_global_nc || inst.space == StateSpace::constant;
    }
    static bool is_shared_or_global(StateSpace space) {
        return space == StateSpace::global || space == StateSpace::shared;
    }
    static bool is_own(StateSpace space) { return is_shared_or_global(space) || space == StateSpace::local; }

    /// How far apart two lanes may be: sorted, each once; empty if there is one lane only.
    const std::vector<std::int64_t>& gaps_of(const LaneOffsets& offsets) {
        auto [found, fresh] = gaps_.try_emplace(&offsets);
        if (fresh) {
            std::vector<std::int64_t>& gaps = found->second;
            for (std::size_t a = 0; a < offsets.size(); ++a)
                for (std::size_t b = 0; b < a; ++b) gaps.push_back(std::abs(offsets[a] - offsets[b]));
            std::sort(gaps.begin(), gaps.end());
            gaps.erase(std::unique(gaps.begin(), gaps.end()), gaps.end());
        }
        return found->second;
    }

    const FunctionGraph& graph_;
    std::map<const LaneOffsets*, std::vector<std::int64_t>> gaps_;
};

struct Key {
    ValueId base;
    StateSpace space;
    unsigned bytes;
    FormId form;
    auto operator<=>(const Key&) const = default;
};

Key key_of(const ptx::Instruction& inst) {
    return {inst[ptx::Role::a].index, inst.space, ptx::byte_size(inst.type()), inst.form};
}

/// How many of `length` adjacent elements are made together next. `gap`: bytes between the lanes that are nearest to
/// each other; 0 where they may share elements.
using Taker = std::size_t(std::size_t length, unsigned bytes, std::int64_t gap);

/// Lanes lie so close that their elements together are runs of whole vectors, or such with small gaps.
bool is_dense(std::size_t count, unsigned bytes, std::int64_t gap) {
    constexpr std::int64_t most_between = 3; // elements, as in lower/access_plan
    return gap > 0 && gap <= std::int64_t(bytes) * (std::int64_t(count) + most_between);
}

/// Powers of two only where each lane has a run of its own: three elements would read on into memory that nobody asked
/// for.
std::size_t take_loads(std::size_t length, unsigned bytes, std::int64_t gap) {
    const std::size_t count = std::min(length, most_elements);
    if (is_dense(count, bytes, gap)) return count;
    return length >= 4 && bytes * 4 <= row_bytes ? 4 : length >= 2 && bytes * 2 <= row_bytes ? 2 : 1;
}

std::size_t take_stores(std::size_t length, unsigned bytes, std::int64_t gap) {
    const std::size_t count = std::min(length, most_elements);
    return is_dense(count, bytes, gap) ? count : gap > 0 ? std::bit_floor(count) : 1;
}

/// Cuts accesses at one register, each element once, into runs of adjacent ones.
void cut(const Accesses& accesses, Meetings& meetings, Taker* take, bool at_last, std::vector<AccessGroup>& groups) {
    if (accesses.size() < 2) return;
    const unsigned bytes = ptx::byte_size(accesses.front()->type());
    const std::int64_t gap = meetings.is_exclusive(*accesses.front()) ? meetings.nearest(*accesses.front()) : 0;
    Accesses sorted = accesses;
    std::stable_sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return offset_of(*a) < offset_of(*b); });
    for (std::size_t begin = 0; begin < sorted.size();) {
        std::size_t end = begin + 1;
        while (end < sorted.size() &&
               std::uint64_t(offset_of(*sorted[end])) - std::uint64_t(offset_of(*sorted[end - 1])) == bytes)
            ++end;
        const std::size_t count = take(end - begin, bytes, gap);
        if (count > 1) {
            AccessGroup group;
            group.accesses.assign(sorted.begin() + std::ptrdiff_t(begin),
                                  sorted.begin() + std::ptrdiff_t(begin + count));
            const auto is_member = [&](auto* access) {
                return std::find(group.accesses.begin(), group.accesses.end(), access) != group.accesses.end();
            };
            group.place = at_last ? *std::find_if(accesses.rbegin(), accesses.rend(), is_member)
                                  : *std::find_if(accesses.begin(), accesses.end(), is_member);
            groups.push_back(std::move(group));
        }
        begin += count;
    }
}

/// Loads at one register, and the stores since the first of them, which all of them have to be able to pass.
struct OpenLoads {
    Accesses loads, passed;
};

std::vector<AccessGroup> group_loads(const Block& block, Meetings& meetings) {
    std::vector<AccessGroup> groups;
    std::map<Key, OpenLoads> open;
    const auto close = [&](OpenLoads& loads) {
        cut(loads.loads, meetings, take_loads, false, groups);
        loads = {};
    };
    const auto close_all = [&] {
        for (auto& [key, loads] : open) close(loads);
        open.clear();
    };
    for (const GraphInstruction& instruction : block.instructions) {
        const ptx::Instruction& inst = instruction.inst;
        if (instruction.lane_granule != 0) continue; // other memory than anything else here
        if (instruction.hand_over != 0) close_all();
        if (is_movable(inst) && is_load(inst)) {
            OpenLoads& own = open[key_of(inst)];
            const auto stops = [&](auto* store) { return meetings.may_meet(*store, inst); };
            const auto repeats = [&](auto* load) { return offset_of(*load) == offset_of(inst); };
            if (std::any_of(own.passed.begin(), own.passed.end(), stops) ||
                std::any_of(own.loads.begin(), own.loads.end(), repeats) || own.loads.size() >= most_collected)
                close(own);
            own.loads.push_back(&inst);
        } else if (inst.form == FormId::st && is_plain(inst)) {
            for (auto& [key, loads] : open) {
                if (loads.loads.empty()) continue;
                if (loads.passed.size() >= most_collected)
                    close(loads);
                else
                    loads.passed.push_back(&inst);
            }
        } else if (is_barrier(inst)) {
            close_all();
        }
    }
    close_all();
    return groups;
}

std::vector<AccessGroup> group_stores(const Block& block, Meetings& meetings, const std::vector<AccessGroup>& loads) {
    // Where loads are made that stand elsewhere.
    std::map<const ptx::Instruction*, const AccessGroup*> group_of;
    for (const AccessGroup& group : loads)
        for (const ptx::Instruction* load : group.accesses) group_of[load] = &group;
    std::vector<AccessGroup> groups;
    std::map<Key, Accesses> open;
    const auto close = [&](Accesses& stores) {
        cut(stores, meetings, take_stores, true, groups);
        stores.clear();
    };
    const auto close_all = [&] {
        for (auto& [key, stores] : open) close(stores);
        open.clear();
    };
    const auto keep_behind = [&](const ptx::Instruction& inst, const Accesses* except) {
        for (auto& [key, stores] : open) {
            if (&stores == except) continue;
            if (std::any_of(stores.begin(), stores.end(), [&](auto* store) { return meetings.may_meet(*store, inst); }))
                close(stores);
        }
    };
    for (const GraphInstruction& instruction : block.instructions) {
        const ptx::Instruction& inst = instruction.inst;
        if (instruction.lane_granule != 0) continue;
        if (instruction.hand_over != 0) close_all();
        if (const auto found = group_of.find(&inst); found != group_of.end()) {
            if (found->second->place == &inst)
                for (const ptx::Instruction* load : found->second->accesses) keep_behind(*load, nullptr);
        } else if (is_movable(inst) && inst.form == FormId::st && meetings.is_exclusive(inst)) {
            Accesses& own = open[key_of(inst)];
            keep_behind(inst, &own);
            if (own.size() >= most_collected ||
                std::any_of(own.begin(), own.end(), [&](auto* store) { return meetings.may_meet(*store, inst); }))
                close(own);
            own.push_back(&inst);
        } else if (is_plain(inst)) {
            keep_behind(inst, nullptr);
        } else if (is_barrier(inst) || has_effect(inst, ptx::Effects::load)) {
            close_all();
        }
    }
    close_all();
    return groups;
}

} // namespace

AccessGroups find_access_groups(const FunctionGraph& graph, BlockId block) {
    Meetings meetings(graph);
    AccessGroups groups;
    groups.loads = group_loads(graph.blocks[block], meetings);
    groups.stores = group_stores(graph.blocks[block], meetings, groups.loads);
    return groups;
}

} // namespace ptarmigan::translator
