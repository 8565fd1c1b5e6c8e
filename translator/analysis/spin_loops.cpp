// SPDX-License-Identifier: Apache-2.0
// Loops that wait. Such kernels need lanes and warps that can be suspended, which costs; so this looks closely.
#include "translator/analysis/barrier_regions.h"
#include "translator/analysis/converged_waits.h"
#include "translator/analysis/form_queries.h"
#include "translator/analysis/graph_queries.h"

#include <optional>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::Modifier;
using ptx::Role;

struct Definition {
    const GraphInstruction* instruction = nullptr;
    const Phi* phi = nullptr;
};

/// What a value inside a loop is computed from, within the loop.
struct Sources {
    bool header_phi = false; ///< something carried from the iteration before
    bool counter = false;    ///< a carried value that changes without reading memory
    bool memory = false;
    std::vector<const GraphInstruction*> reads;
};

class SpinSearch {
public:
    SpinSearch(const FunctionGraph& graph, bool mbarriers)
        : graph_(graph), mbarriers_(mbarriers), definition_(graph.values.size()), seen_(graph.values.size(), 0) {
        for (const Block& block : graph.blocks) {
            for (const Phi& phi : block.phis) definition_[phi.result].phi = &phi;
            for (const GraphInstruction& instruction : block.instructions)
                for (ValueId value : definitions(graph, instruction)) definition_[value].instruction = &instruction;
        }
    }

    bool run() {
        for (const LoopInfo& loop : graph_.forest.loops)
            if (waits(loop)) return true;
        return false;
    }
    std::vector<bool> each() {
        std::vector<bool> result;
        for (const LoopInfo& loop : graph_.forest.loops) result.push_back(waits(loop));
        return result;
    }

private:
    bool inside(BlockId block) const {
        return block != no_block && graph_.forest.inside(graph_.forest.loop_of[block], loop_);
    }
    Sources sources(std::vector<ValueId> work, bool look_at_counters);
    bool waits(const LoopInfo& loop);
    bool may_wait_on(const ptx::Instruction& inst);
    bool is_zero(const ptx::Operand& operand) const;

    const FunctionGraph& graph_;
    const bool mbarriers_; ///< waits for mbarrier objects count
    std::vector<Definition> definition_;
    std::vector<std::uint32_t> seen_;
    std::uint32_t round_ = 0;
    std::uint32_t loop_ = no_loop;
};

/// Backward from some values, not leaving the loop.
Sources SpinSearch::sources(std::vector<ValueId> work, bool look_at_counters) {
    Sources result;
    std::uint32_t round = ++round_;
    std::vector<const Phi*> carried;
    while (!work.empty()) {
        ValueId value = work.back();
        work.pop_back();
        if (seen_[value] == round || !inside(graph_.values[value].block)) continue;
        seen_[value] = round;
        if (const Phi* phi = definition_[value].phi) {
            if (graph_.values[value].block == graph_.forest.loops[loop_].header) {
                result.header_phi = true;
                carried.push_back(phi);
            }
            work.insert(work.end(), phi->incoming.begin(), phi->incoming.end());
        }
        const GraphInstruction* instruction = definition_[value].instruction;
        if (!instruction) continue;
        if (has_effect(instruction->inst,
                       Effects::load | Effects::atomic | Effects::waits | Effects::call | Effects::async)) {
            result.memory = true;
            result.reads.push_back(instruction);
            // What a read returns does not depend on how its address was made, but for walks: see may_wait_on().
            if (look_at_counters) continue;
        }
        for (ValueId used : uses(graph_, *instruction)) work.push_back(used);
    }
    if (look_at_counters)
        for (const Phi* phi : carried) {
            Sources own = sources({phi->result}, false);
            result.counter = result.counter || !own.memory;
        }
    return result;
}

bool SpinSearch::is_zero(const ptx::Operand& operand) const {
    if (operand.kind == ptx::Operand::Kind::imm) return operand.value == 0;
    return operand.kind == ptx::Operand::Kind::reg && graph_.values[operand.index].is_constant &&
           graph_.values[operand.index].constant == 0;
}

/// True if executing it again and again can mean waiting for someone else.
bool SpinSearch::may_wait_on(const ptx::Instruction& inst) {
    if (!mbarriers_ && is_mbarrier_wait(inst)) return false;
    if (has_effect(inst, Effects::waits | Effects::call | Effects::async)) return true;
    if (inst.space == ptx::StateSpace::local || inst.space == ptx::StateSpace::param ||
        inst.space == ptx::StateSpace::constant || inst.form == ptx::FormId::ld_global_nc)
        return false;
    const ptx::Operand& place = inst[Role::a];
    if (place.kind == ptx::Operand::Kind::address && place.base == ptx::Operand::Base::reg) {
        Sources address = sources({place.index}, false);
        if (address.header_phi || address.memory) return false; // another place each time
    }
    if (!has_effect(inst, Effects::atomic)) return true;
    if (inst.has(Modifier::cas)) {
        const ptx::Operand& expected = inst[Role::b];
        if (expected.kind != ptx::Operand::Kind::reg) return true;
        Sources from = sources({expected.index}, false);
        return !from.header_phi && !from.memory; // a lock; otherwise a retry with the value just seen
    }
    if (inst.has(Modifier::exch)) return true;
    return is_zero(inst[Role::b]); // an atomic that changes nothing is a read; others make progress themselves
}

bool SpinSearch::waits(const LoopInfo& loop) {
    loop_ = graph_.forest.loop_of[loop.header];
    bool has_barrier = false, has_exit = false;
    std::vector<ValueId> conditions;
    std::vector<const GraphInstruction*> strong;
    for (BlockId id : loop.blocks) {
        const Block& block = graph_.blocks[id];
        has_barrier = has_barrier || block.ends_with_barrier;
        for (const GraphInstruction& instruction : block.instructions)
            if (has_effect(instruction.inst, Effects::load | Effects::atomic) &&
                has_effect(instruction.inst, Effects::volatile_read | Effects::atomic))
                strong.push_back(&instruction);
        for (BlockId s : block.successors) {
            if (inside(s)) continue;
            has_exit = true;
            if (block.terminator.condition != no_value) conditions.push_back(block.terminator.condition);
        }
    }
    if (!has_exit) return false; // runs for ever whatever others do
    Sources from = sources(conditions, true);
    // A counted loop may wait too, and give up after so many rounds; but nobody does that with plain loads, which loops
    // over data are full of.
    const Effects waiting = Effects::volatile_read | Effects::atomic | Effects::waits;
    for (const GraphInstruction* read : from.reads) {
        // Between barriers a plain load can't wait: the writer is the CTA itself.
        const bool weak = !has_effect(read->inst, from.counter ? waiting : waiting | Effects::call | Effects::async);
        if ((!weak || !(has_barrier || from.counter)) && may_wait_on(read->inst)) return true;
    }
    if (from.counter) return false;
    // One thread polls, and tells the others through shared memory and a barrier.
    if (has_barrier)
        for (const GraphInstruction* read : strong)
            if (may_wait_on(read->inst)) return true;
    return false;
}

} // namespace

bool may_spin(const FunctionGraph& graph) {
    return SpinSearch(graph, true).run();
}

bool may_spin_on_memory(const FunctionGraph& graph) {
    return SpinSearch(graph, false).run();
}

std::vector<bool> loops_that_wait(const FunctionGraph& graph) {
    return SpinSearch(graph, true).each();
}

} // namespace ptarmigan::translator
