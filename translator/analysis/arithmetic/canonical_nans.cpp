// SPDX-License-Identifier: Apache-2.0
// Optimistic: all phis start as canonical and fall when something that comes in is not.
#include "translator/analysis/arithmetic/canonical_nans.h"

#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

constexpr std::uint32_t canonical_nan = 0x7fffffff;

bool is_canonical(const SsaValue& constant) {
    const std::uint32_t bits = std::uint32_t(constant.constant);
    return (bits & 0x7fffffff) <= 0x7f800000 || bits == canonical_nan;
}

/// Rounded arithmetic, what sums and products are made of. abs, neg, min, max and copysign hand on bits in some cases.
bool is_arithmetic(ptx::FormId form) {
    using enum ptx::FormId;
    return form == add_f32 || form == sub_f32 || form == mul_f32 || form == fma_f32 || form == mad_f32 ||
           form == mad_f32_legacy;
}

} // namespace

std::vector<bool> canonical_nans(const FunctionGraph& graph) {
    std::vector<bool> canonical(graph.values.size());
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        const SsaValue& info = graph.values[value];
        canonical[value] = info.is_constant ? is_canonical(info) : info.is_undefined || info.is_phi;
    }
    const auto all_canonical = [&](const std::vector<ValueId>& values) {
        return std::all_of(values.begin(), values.end(), [&](ValueId value) { return canonical[value]; });
    };
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions)
            if (is_arithmetic(instruction.inst.form))
                for (ValueId value : definitions(graph, instruction)) canonical[value] = true;
    for (bool changed = true; changed;) {
        changed = false;
        const auto refute = [&](ValueId value) {
            changed |= canonical[value];
            canonical[value] = false;
        };
        for (const Block& block : graph.blocks) {
            for (const Phi& phi : block.phis)
                if (!all_canonical(phi.incoming)) refute(phi.result);
            for (const GraphInstruction& instruction : block.instructions)
                if (!all_canonical(instruction.previous)) // lanes whose guard is false keep those
                    for (ValueId value : definitions(graph, instruction)) refute(value);
        }
    }
    return canonical;
}

} // namespace ptarmigan::translator
