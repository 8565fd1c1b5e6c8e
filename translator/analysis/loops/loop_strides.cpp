// SPDX-License-Identifier: Apache-2.0
// Values as sums over a loop's header phis: what the phi gains by a round, times its factor, is what the value gains.
#include "translator/analysis/loops/loop_strides.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>

namespace ptarmigan::translator {

std::optional<std::int64_t> LoopStrides::of(ValueId value, std::uint32_t loop) const {
    const std::optional<LinearSum> gain = gain_of(value, loop);
    if (!gain || !gain->terms.empty()) return std::nullopt;
    return gain->constant;
}

std::optional<LinearSum> LoopStrides::gain_of(ValueId value, std::uint32_t loop) const {
    const std::optional<LinearSum> sum = sums_.of(value, loop);
    return sum ? gain_of(*sum, loop) : std::nullopt;
}

std::optional<LinearSum> LoopStrides::gain_of(const LinearSum& sum, std::uint32_t loop) const {
    LinearSum gain;
    const LoopInfo& info = graph_.forest.loops[loop];
    for (auto [term, scale] : sum.terms) {
        if (term.kind != LinearSum::Term::Kind::value || !sums_.is_inside(term.id, loop)) continue;
        const Phi& phi = *sums_.definition(term.id).phi;
        const auto& predecessors = graph_.blocks[info.header].predecessors;
        for (std::size_t i = 0; i < predecessors.size(); ++i) {
            if (predecessors[i] != info.latch) continue;
            const std::optional<LinearSum> next = sums_.of(phi.incoming[i], loop);
            if (!next) return std::nullopt;
            gain = gain.plus(next->plus({0, {{term, 1}}}, -1), scale);
        }
    }
    // What a phi gains may be another phi, as in a sum of sums.
    const bool moves = std::any_of(gain.terms.begin(), gain.terms.end(), [&](const auto& term) {
        return term.first.kind == LinearSum::Term::Kind::value && sums_.is_inside(term.first.id, loop);
    });
    if (moves) return std::nullopt;
    return gain;
}

bool LoopStrides::depends_on_load(ValueId value, std::uint32_t loop) const {
    std::vector<ValueId> work{value};
    std::vector<bool> seen(graph_.values.size(), false);
    while (!work.empty()) {
        ValueId next = work.back();
        work.pop_back();
        if (seen[next] || !sums_.is_inside(next, loop)) continue;
        seen[next] = true;
        const GraphInstruction* definition = sums_.definition(next).instruction;
        if (!definition) continue; // carried from the round before, or chosen: not an index just read
        if (has_effect(definition->inst, ptx::Effects::load)) return true;
        for (ValueId source : uses(graph_, *definition)) work.push_back(source);
    }
    return false;
}

} // namespace ptarmigan::translator
