// SPDX-License-Identifier: Apache-2.0
// Loads are collected per register until something orders memory or writes to it, then cut into runs of adjacent ones.
#include "translator/analysis/memory/load_groups.h"

#include "translator/analysis/graph/form_queries.h"

#include <algorithm>
#include <map>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;

constexpr unsigned group_bytes = 16;

/// One scalar per lane from [register + offset], which may be made at any time between two writes.
bool is_movable_load(const ptx::Instruction& inst) {
    bool form = inst.form == FormId::ld || inst.form == FormId::ld_global_nc;
    if (!form || inst.guard != ptx::no_id || inst.operands[0].kind != Operand::Kind::reg) return false;
    const Operand& address = inst[ptx::Role::a];
    unsigned bytes = ptx::byte_size(inst.type());
    return address.kind == Operand::Kind::address && address.base == Operand::Base::reg && (bytes == 4 || bytes == 8) &&
           inst.space != ptx::StateSpace::param;
}

bool is_barrier_to_loads(const ptx::Instruction& inst) {
    using enum ptx::Effects;
    return has_effect(inst, store | atomic | barrier | fence | async | call | waits | volatile_read | convergent);
}

struct Key {
    ValueId base;
    ptx::StateSpace space;
    unsigned bytes;
    FormId form;
    auto operator<=>(const Key&) const = default;
};

using Loads = std::vector<const ptx::Instruction*>; ///< in program order

std::int64_t offset_of(const ptx::Instruction& inst) {
    return std::int64_t(inst[ptx::Role::a].value);
}

/// Cuts the loads from one register into runs of adjacent elements.
void cut(const Loads& loads, unsigned bytes, std::vector<LoadGroup>& groups) {
    Loads sorted = loads;
    std::stable_sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return offset_of(*a) < offset_of(*b); });
    for (std::size_t begin = 0; begin < sorted.size();) {
        std::size_t end = begin + 1;
        while (end < sorted.size() && (end - begin + 1) * bytes <= group_bytes &&
               std::uint64_t(offset_of(*sorted[end])) - std::uint64_t(offset_of(*sorted[end - 1])) == bytes)
            ++end;
        // Powers of two only: three elements would read on into memory that nobody asked for.
        std::size_t count = end - begin >= 4 ? 4 : end - begin >= 2 ? 2 : 1;
        if (count * bytes >= group_bytes) {
            LoadGroup group;
            group.loads.assign(sorted.begin() + std::ptrdiff_t(begin), sorted.begin() + std::ptrdiff_t(begin + count));
            group.first = *std::find_if(loads.begin(), loads.end(), [&](auto* load) {
                return std::find(group.loads.begin(), group.loads.end(), load) != group.loads.end();
            });
            groups.push_back(std::move(group));
        }
        begin += count;
    }
}

} // namespace

std::vector<LoadGroup> find_load_groups(const FunctionGraph& graph, BlockId block) {
    std::vector<LoadGroup> groups;
    std::map<Key, Loads> open;
    auto close = [&] {
        for (const auto& [key, loads] : open) cut(loads, key.bytes, groups);
        open.clear();
    };
    for (const GraphInstruction& instruction : graph.blocks[block].instructions) {
        const ptx::Instruction& inst = instruction.inst;
        if (instruction.lane_granule != 0) continue; // other memory than anything else here
        if (is_movable_load(inst))
            open[{inst[ptx::Role::a].index, inst.space, ptx::byte_size(inst.type()), inst.form}].push_back(&inst);
        else if (is_barrier_to_loads(inst))
            close();
    }
    close();
    return groups;
}

} // namespace ptarmigan::translator
