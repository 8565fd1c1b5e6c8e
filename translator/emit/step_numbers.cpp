// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/step_numbers.h"

#include "translator/analysis/graph/graph_queries.h"

namespace ptarmigan::translator {

StepNumbers::StepNumbers(const FunctionGraph& graph, const BlockShape& block, unsigned width)
    : graph_(graph), width_(width), bits_(graph, block), definitions_(graph.values.size(), nullptr) {
    for (const Block& each : graph.blocks)
        for (const GraphInstruction& instruction : each.instructions)
            for (ValueId value : definitions(graph, instruction)) definitions_[value] = &instruction;
}

std::optional<StepNumber> StepNumbers::of(ValueId value) {
    const SsaValue& info = graph_.values[value];
    const unsigned size = ptx::bit_size(info.type);
    const Shape& shape = info.shape;
    const GraphInstruction* definition = definitions_[value];
    if (!definition || ptx::is_float(info.type) || size < 8 || size > 64) return std::nullopt;
    if (!shape.is_uniform() && (!shape.is_affine() || shape.steps || shape.guard != no_value)) return std::nullopt;
    const ThreadBits* known = bits_.of_result(definition->inst);
    if (!known || known->low != size || !known->assumed.empty()) return std::nullopt;
    const std::uint64_t mask = size == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << size) - 1;
    const std::size_t steps = (bits_.threads() + width_ - 1) / width_;
    StepNumber number{known->of(0) & mask, 0};
    if (steps > 1) number.per_step = (known->of(width_) - known->of(0)) & mask;
    for (std::size_t step = 0; step < steps; ++step)
        if (((known->of(step * width_) - number.first - step * number.per_step) & mask) != 0) return std::nullopt;
    return number;
}

std::optional<std::vector<std::uint64_t>> StepNumbers::masks_of(ValueId value) {
    const GraphInstruction* definition = definitions_[value];
    if (!definition || graph_.values[value].type != ptx::ScalarType::pred) return std::nullopt;
    const ptx::Instruction& inst = definition->inst;
    // Of p|q only one is known.
    if (inst.operands[0].kind != ptx::Operand::Kind::reg || inst.operands[0].index != value) return std::nullopt;
    const ThreadBits* known = bits_.of_result(inst);
    if (!known || known->low != 1 || !known->assumed.empty()) return std::nullopt;
    std::vector<std::uint64_t> masks((bits_.threads() + width_ - 1) / width_);
    for (std::size_t t = 0; t < bits_.threads(); ++t) masks[t / width_] |= (known->of(t) & 1) << t % width_;
    return masks;
}

} // namespace ptarmigan::translator
