// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/loops/row_walks.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/loops/loop_strides.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;
using ptx::StateSpace;

constexpr std::int64_t line_bytes = 64, sets = 64;
/// Lanes that are nearer share what the CPU prefetches.
constexpr std::int64_t far = 256;
/// A longer way in a round (of a loop that may be unrolled) is no walk along a row.
constexpr std::int64_t longest_step = 128;

/// The register of an access to device memory, if lanes are far from each other there.
std::optional<ValueId> row_address(const FunctionGraph& graph, const ptx::Instruction& inst, unsigned lanes) {
    if (!has_effect(inst, ptx::Effects::load | ptx::Effects::store)) return std::nullopt;
    if (inst.space != StateSpace::global && inst.space != StateSpace::generic && inst.space != StateSpace::none)
        return std::nullopt;
    const Operand& address = inst[ptx::Role::a];
    if (address.kind != Operand::Kind::address || address.base != Operand::Base::reg) return std::nullopt;
    const Shape& shape = graph.values[address.index].shape;
    if (!shape.is_affine()) return std::nullopt;
    for (unsigned lane = 1; lane < std::min<std::size_t>(lanes, shape.offsets->size()); ++lane) {
        const bool unknown = shape.steps && (*shape.steps)[lane] != (*shape.steps)[lane - 1];
        const std::uint64_t distance =
            std::uint64_t((*shape.offsets)[lane]) - std::uint64_t((*shape.offsets)[lane - 1]);
        if (!unknown && distance + std::uint64_t(far) < std::uint64_t(2 * far)) return std::nullopt;
    }
    return address.index;
}

/// Most of the lanes' lines that are in one set.
unsigned lines_in_set(const Shape& shape, unsigned lanes) {
    if (shape.steps) return 1;
    std::array<unsigned, sets> lines{};
    const std::size_t known = shape.offsets->size();
    for (unsigned lane = 0; lane < std::min<std::size_t>(lanes, known); ++lane)
        ++lines[(std::uint64_t((*shape.offsets)[lane]) / std::uint64_t(line_bytes)) % std::uint64_t(sets)];
    const unsigned most = *std::max_element(lines.begin(), lines.end());
    return lanes > known ? most * unsigned(lanes / known) : most;
}

} // namespace

RowWalks find_row_walks(const FunctionGraph& graph, unsigned lanes) {
    RowWalks result;
    std::optional<LoopStrides> strides;
    for (std::uint32_t loop = 0; loop < graph.forest.loops.size(); ++loop) {
        std::set<ValueId> rows;
        for (BlockId block : graph.forest.loops[loop].blocks)
            if (graph.forest.loop_of[block] == loop)
                for (const GraphInstruction& instruction : graph.blocks[block].instructions)
                    if (std::optional<ValueId> row = row_address(graph, instruction.inst, lanes)) rows.insert(*row);
        unsigned lines = 0, count = 0;
        std::set<std::map<LinearSum::Term, std::int64_t>> seen; // unrolled loops come to a row by several registers
        for (ValueId row : rows) {
            if (!strides) strides.emplace(graph);
            const std::optional<std::int64_t> step = strides->of(row, loop);
            if (!step || *step == 0 || *step < -longest_step || *step > longest_step) continue;
            result.any = true;
            const std::optional<LinearSum> sum = strides->sums().of(row, loop);
            if (sum && !seen.insert(sum->terms).second) continue;
            lines += lines_in_set(graph.values[row].shape, lanes);
            ++count;
        }
        result.lines_in_set = std::max(result.lines_in_set, lines);
        result.rows = std::max(result.rows, count);
    }
    return result;
}

} // namespace ptarmigan::translator
