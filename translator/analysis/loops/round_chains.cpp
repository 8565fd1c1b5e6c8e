// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/loops/round_chains.h"

#include "frontend/isa/instruction_form.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <string_view>

namespace ptarmigan::translator {
namespace {

/// Of vectors: cycles until the result is there, and instructions.
struct Cost {
    unsigned latency, work;
};

Cost cost_of(const ptx::Instruction& inst) {
    const ptx::FormInfo& form = ptx::form_info(inst.form);
    const bool approximate =
        form.syntax.find(".approx") != std::string_view::npos || form.syntax.find(".full") != std::string_view::npos;
    if (approximate) return {60, 40}; // the model of the special function unit
    if (ptx::any(form.effects, ptx::Effects::load)) return {7, 1};
    return {ptx::is_float(inst.types[0]) ? 4u : 1u, 1};
}

/// A loop's rounds, without what one hands on to the next.
struct Round {
    unsigned chain = 0, work = 0;
};

Round round_of(const FunctionGraph& graph, const LoopInfo& loop, std::vector<unsigned>& ready) {
    Round round;
    for (unsigned pass = 0; pass < 2; ++pass) { // blocks may stand in any order
        round = {};
        for (BlockId id : loop.blocks) {
            const Block& block = graph.blocks[id];
            for (const Phi& phi : block.phis) {
                if (id == loop.header) continue;
                for (ValueId value : phi.incoming) ready[phi.result] = std::max(ready[phi.result], ready[value]);
            }
            for (const GraphInstruction& instruction : block.instructions) {
                unsigned begin = 0;
                bool varies = false;
                for (ValueId value : uses(graph, instruction)) begin = std::max(begin, ready[value]);
                for (ValueId value : definitions(graph, instruction))
                    varies = varies || graph.values[value].shape.is_varying();
                if (!varies) continue;
                const Cost cost = cost_of(instruction.inst);
                round.work += cost.work;
                for (ValueId value : definitions(graph, instruction)) ready[value] = begin + cost.latency;
                round.chain = std::max(round.chain, begin + cost.latency);
            }
        }
    }
    return round;
}

} // namespace

bool waits_for_chains(const FunctionGraph& graph, unsigned vectors) {
    std::vector<unsigned> ready(graph.values.size(), 0);
    Round longest;
    for (std::uint32_t i = 0; i < graph.forest.loops.size(); ++i) {
        const bool innermost = std::none_of(graph.forest.loops.begin(), graph.forest.loops.end(),
                                            [&](const LoopInfo& other) { return other.parent == i; });
        if (!innermost) continue;
        const Round round = round_of(graph, graph.forest.loops[i], ready);
        if (round.work > longest.work) longest = round;
    }
    return longest.chain > vectors * longest.work / 2;
}

} // namespace ptarmigan::translator
