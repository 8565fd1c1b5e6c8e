// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/loops/plan_turns.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/liveness.h"
#include "translator/analysis/loops/loop_strides.h"
#include "translator/analysis/waits/region_waits.h"

#include <algorithm>
#include <functional>

namespace ptarmigan::translator {
namespace {

/// A loop that moves by less than this per round stays in a page long enough for the CPU to see the stream.
constexpr std::int64_t far = 4096;

class FarWalks {
public:
    FarWalks(const FunctionGraph& graph, const BlockShape& shape) : graph_(graph), shape_(shape), strides_(graph) {}

    /// Loads and stores of a loop, in each round, that go far to the next round's.
    struct Accesses {
        std::uint32_t shared_rows = 0, pieces = 0; ///< rows that all warps read; others
    };

    Accesses far_accesses(std::uint32_t loop) const {
        Accesses result;
        for (BlockId block : graph_.forest.loops[loop].blocks)
            for (const GraphInstruction& instruction : graph_.blocks[block].instructions) {
                const bool is_shared = is_read_by_all_rows(instruction.inst);
                if (!is_shared && !is_piece_of_a_row(instruction.inst)) continue;
                const std::optional<std::int64_t> stride = strides_.of(instruction.inst[ptx::Role::a].index, loop);
                if (stride && std::abs(*stride) < far) continue;
                ++(is_shared ? result.shared_rows : result.pieces);
            }
        return result;
    }

private:
    /// The lanes' elements follow each other, and in a block of this shape so do the warps'.
    bool is_piece_of_a_row(const ptx::Instruction& inst) const {
        const ptx::Operand& address = inst[ptx::Role::a];
        const bool is_device_memory = inst.space == ptx::StateSpace::global || inst.space == ptx::StateSpace::generic;
        if (!is_device_memory || !has_effect(inst, ptx::Effects::load | ptx::Effects::store) ||
            has_effect(inst, ptx::Effects::atomic) || address.kind != ptx::Operand::Kind::address ||
            address.base != ptx::Operand::Base::reg)
            return false;
        const Shape& lanes = graph_.values[address.index].shape;
        const std::int64_t element = std::int64_t(ptx::byte_size(inst.type())) * inst.vector_size;
        return shape_.ntid[0] > 32 && lanes.is_affine() && !lanes.steps &&
               std::is_sorted(lanes.offsets->begin(), lanes.offsets->end()) &&
               std::int64_t(lanes.offsets->back()) <= std::int64_t(lanes.offsets->size() - 1) * element;
    }

    /// A row of memory that each row of threads reads: the right side of a product of matrices. What the first warp has
    /// read is gone from the caches before the second begins, if that walks to the end.
    bool is_read_by_all_rows(const ptx::Instruction& inst) const {
        if (shape_.ntid[1] * shape_.ntid[2] < 2 || !reads_device_memory(inst)) return false;
        const ptx::Operand& address = inst[ptx::Role::a];
        const Shape& lanes = graph_.values[address.index].shape;
        if (!lanes.is_affine() || lanes.steps) return false;
        const auto [low, high] = std::minmax_element(lanes.offsets->begin(), lanes.offsets->end());
        const std::int64_t row = std::int64_t(shape_.ntid[0]) * ptx::byte_size(inst.type()) * inst.vector_size;
        return *low != *high && std::int64_t(*high) - std::int64_t(*low) < row && !depends_on_row(address.index);
    }

    static bool reads_device_memory(const ptx::Instruction& inst) {
        const ptx::Operand& address = inst[ptx::Role::a];
        return (inst.space == ptx::StateSpace::global || inst.space == ptx::StateSpace::generic) &&
               has_effect(inst, ptx::Effects::load) && !has_effect(inst, ptx::Effects::atomic) &&
               address.kind == ptx::Operand::Kind::address && address.base == ptx::Operand::Base::reg;
    }

    /// On a thread's number in the block but its x.
    bool depends_on_row(ValueId value) const {
        std::vector<ValueId> work{value};
        std::vector<bool> seen(graph_.values.size(), false);
        while (!work.empty()) {
            const ValueId next = work.back();
            work.pop_back();
            if (seen[next]) continue;
            seen[next] = true;
            const LinearSums::Definition& definition = strides_.sums().definition(next);
            if (definition.phi)
                for (ValueId source : definition.phi->incoming) work.push_back(source);
            if (!definition.instruction) continue;
            const ptx::Instruction& inst = definition.instruction->inst;
            for (unsigned i = 0; i < inst.operand_count; ++i)
                if (names_row(inst.operands[i])) return true;
            for (ValueId source : uses(graph_, *definition.instruction)) work.push_back(source);
        }
        return false;
    }

    static bool names_row(const ptx::Operand& operand) {
        if (operand.kind != ptx::Operand::Kind::special) return false;
        switch (ptx::SpecialRegister(operand.index)) {
        case ptx::SpecialRegister::tid: return operand.component != 0;
        case ptx::SpecialRegister::ntid:
        case ptx::SpecialRegister::ctaid:
        case ptx::SpecialRegister::nctaid: return false;
        default: return true;
        }
    }

    const FunctionGraph& graph_;
    const BlockShape& shape_;
    const LoopStrides strides_;
};

/// The block that `block` has its mask from, if that is counted on the way to it; no_block: from the region's entry.
BlockId counted_mask(const LinearPlan& plan, BlockId block) {
    while (plan.blocks[block].mask.kind == MaskSource::Kind::same_as) block = plan.blocks[block].mask.block;
    return plan.blocks[block].mask.kind == MaskSource::Kind::accumulated ? block : no_block;
}

/// A step that has walked far comes back in front of the loop, where LLVM had better not find the middle of another.
bool takes_turns(const FunctionGraph& graph, const LoopInfo& loop) {
    const std::uint32_t in_graph = graph.forest.loop_of[loop.header];
    return loop.parent == no_loop && in_graph != no_loop && graph.forest.loops[in_graph].header == loop.header &&
           graph.forest.loops[in_graph].takes_turns;
}

bool waits_in_turns(const FunctionGraph& graph, const LoopInfo& loop) {
    const std::uint32_t around = loop_around(graph, loop);
    return around != no_loop && graph.forest.loops[around].waits_in_turns;
}

template <typename T> void sort_and_unify(std::vector<T>& items) {
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
}

} // namespace

bool goes_lane_by_lane(const FunctionGraph& graph, const LoopInfo& loop) {
    return std::any_of(loop.blocks.begin(), loop.blocks.end(), [&](BlockId block) {
        const auto& instructions = graph.blocks[block].instructions;
        return std::any_of(instructions.begin(), instructions.end(), [&](const GraphInstruction& instruction) {
            const ptx::Operand& address = instruction.inst[ptx::Role::a];
            return has_effect(instruction.inst, ptx::Effects::atomic) && address.kind == ptx::Operand::Kind::address &&
                   address.base == ptx::Operand::Base::reg && graph.values[address.index].shape.is_varying();
        });
    });
}

void choose_turn_loops(FunctionGraph& graph, const BlockShape& shape, bool everywhere) {
    std::vector<LoopInfo>& loops = graph.forest.loops;
    if (loops.empty()) return;
    const FarWalks walks(graph, shape);
    std::vector<bool> has_inner(loops.size(), false);
    for (const LoopInfo& loop : loops)
        if (loop.parent != no_loop) has_inner[loop.parent] = true;
    for (std::uint32_t loop = 0; loop < loops.size(); ++loop) {
        const FarWalks::Accesses walk = has_inner[loop] ? FarWalks::Accesses() : walks.far_accesses(loop);
        LoopInfo& info = loops[loop];
        info.takes_turns = everywhere || (walk.shared_rows + walk.pieces > 0 && !goes_lane_by_lane(graph, loops[loop]));
        info.shares_rows = walk.shared_rows > 0 && walk.pieces == 0;
        const std::uint32_t rounds = std::max(rows_per_turn / std::max(walk.shared_rows + walk.pieces, 1u), 1u);
        info.turn_rounds = info.shares_rows ? rounds : std::min(rounds, rounds_per_turn);
    }
}

std::vector<TurnPoint> plan_turns(const FunctionGraph& graph, const LinearPlan& plan) {
    std::vector<TurnPoint> points;
    std::vector<std::uint32_t> position(graph.blocks.size(), 0);
    for (std::uint32_t i = 0; i < plan.order.size(); ++i) position[plan.order[i]] = i;
    for (std::uint32_t number = 0; number < plan.loops.size(); ++number) {
        const LoopInfo& loop = plan.loops[number];
        const bool waits = waits_in_turns(graph, loop);
        if (!waits && !takes_turns(graph, loop)) continue;
        TurnPoint point{.header = loop.header, .latch = loop.latch, .waits = waits};
        if (const std::uint32_t in_graph = graph.forest.loop_of[loop.header]; takes_turns(graph, loop))
            point.rounds = graph.forest.loops[in_graph].turn_rounds;
        std::vector<BlockId> starts = plan.waiting_at_latch[number];
        starts.push_back(loop.header);
        std::vector<bool> wanted(graph.blocks.size(), false);
        for (BlockId block : starts) wanted[block] = true;
        const auto live = live_at_entry(graph, wanted);
        for (BlockId block : starts) {
            point.live.insert(point.live.end(), live[block].begin(), live[block].end());
            for (const Phi& phi : graph.blocks[block].phis) point.live.push_back(phi.result);
            if (plan.blocks[block].mask.kind == MaskSource::Kind::accumulated) point.edge_masks.push_back(block);
        }
        // Loops around it go on with blocks in front of it, whose masks may come from further in front.
        std::uint32_t outermost = number;
        while (plan.loops[outermost].parent != no_loop) outermost = plan.loops[outermost].parent;
        for (std::uint32_t i = position[plan.loops[outermost].header]; i < plan.order.size(); ++i)
            if (BlockId source = counted_mask(plan, plan.order[i]);
                source != no_block && position[source] < position[loop.header])
                point.block_masks.push_back(source);
        sort_and_unify(point.live);
        sort_and_unify(point.block_masks);
        points.push_back(std::move(point));
    }
    return points;
}

} // namespace ptarmigan::translator
