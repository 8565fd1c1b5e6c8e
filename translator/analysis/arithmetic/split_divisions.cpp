// SPDX-License-Identifier: Apache-2.0
// div.approx and div.full whose quotient is added to something become what ptxas 13.0 makes of them for sm_90, because
// it fuses their last product with the addition: a reciprocal of the special function unit and a product, with both
// operands scaled before where the divisor would be out of its range (div.full: above 2^126; both without .ftz: below
// 2^-126). The bits of the quotient are the same either way.
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"

#include <bit>
#include <unordered_set>

namespace ptarmigan::translator {

namespace {

using ptx::FormId;
using ptx::Modifier;
using ptx::Operand;
using ptx::Role;
using ptx::ScalarType;

Operand number(float value) {
    return constant_operand(std::bit_cast<std::uint32_t>(value), ScalarType::f32);
}

/// The instructions of one division, in order.
class Split {
public:
    Split(FunctionGraph& graph, const GraphInstruction& division, BlockId block)
        : graph_(graph), division_(division), block_(block), ftz_(division.inst.has(Modifier::ftz)) {}

    std::vector<GraphInstruction> run() {
        Operand a = division_.inst[Role::a], b = division_.inst[Role::b];
        const Operand size = emit(FormId::abs_f32, ScalarType::f32, {}, {b});
        if (division_.inst.form == FormId::div_full) scale(size, Modifier::gt, 0x1p126f, 0.25f, a, b);
        if (!ftz_) scale(size, Modifier::lt, 0x1p-126f, 0x1p24f, a, b);
        const Operand reciprocal = emit(FormId::rcp_approx, ScalarType::f32, {Modifier::approx, Modifier::ftz}, {b});
        GraphInstruction product = division_;
        set(product.inst, FormId::mul_f32, {}, {product.inst.operands[0], a, reciprocal});
        code_.push_back(std::move(product));
        return std::move(code_);
    }

private:
    /// Both operands times `factor` where the divisor's size compares so with `limit`.
    void scale(const Operand& size, Modifier comparison, float limit, float factor, Operand& a, Operand& b) {
        const Operand beyond =
            emit(FormId::setp_float, ScalarType::pred, {comparison}, {Operand{}, size, number(limit)});
        for (Operand* operand : {&a, &b}) {
            const Operand scaled = emit(FormId::mul_f32, ScalarType::f32, {Modifier::rn}, {*operand, number(factor)});
            *operand = emit(FormId::selp, ScalarType::f32, {}, {scaled, *operand, beyond});
        }
    }

    /// A new value by `form` of f32 operands; .ftz where the division has it and the form can.
    Operand emit(FormId form, ScalarType type, std::vector<Modifier> modifiers, std::vector<Operand> sources) {
        GraphInstruction instruction = division_;
        instruction.previous.clear();
        const Operand result = register_operand(new_value(graph_, type, block_), type);
        sources.insert(sources.begin(), result);
        set(instruction.inst, form, modifiers, sources);
        code_.push_back(std::move(instruction));
        return result;
    }

    void set(ptx::Instruction& inst, FormId form, const std::vector<Modifier>& modifiers,
             const std::vector<Operand>& operands) const {
        ptx::Instruction made;
        made.form = form;
        made.types[0] = ScalarType::f32;
        made.location = inst.location;
        for (Modifier modifier : modifiers) made.modifiers[made.modifier_count++] = modifier;
        if (ftz_ && form != FormId::selp && !made.has(Modifier::ftz))
            made.modifiers[made.modifier_count++] = Modifier::ftz;
        for (const Operand& operand : operands) made.operands[made.operand_count++] = operand;
        inst = made;
    }

    FunctionGraph& graph_;
    const GraphInstruction division_;
    const BlockId block_;
    const bool ftz_;
    std::vector<GraphInstruction> code_;
};

/// Values that are added to or subtracted from something, or negated, which may stand between.
std::unordered_set<ValueId> summands(const FunctionGraph& graph) {
    std::unordered_set<ValueId> result;
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions)
            if (instruction.inst.form == FormId::add_f32 || instruction.inst.form == FormId::sub_f32 ||
                instruction.inst.form == FormId::neg_f32)
                for (ValueId value : uses(graph, instruction)) result.insert(value);
    return result;
}

} // namespace

void split_divisions(FunctionGraph& graph) {
    const auto is_division = [](const ptx::Instruction& inst) {
        return (inst.form == FormId::div_approx || inst.form == FormId::div_full) && inst.guard == ptx::no_id;
    };
    const std::unordered_set<ValueId> added = summands(graph);
    for (BlockId block = 0; block < graph.blocks.size(); ++block) {
        std::vector<GraphInstruction>& code = graph.blocks[block].instructions;
        for (std::size_t i = 0; i < code.size(); ++i) {
            const Operand& d = code[i].inst.operands[0];
            if (!is_division(code[i].inst) || d.kind != Operand::Kind::reg || !added.contains(d.index)) continue;
            std::vector<GraphInstruction> split = Split(graph, code[i], block).run();
            code[i] = std::move(split.back());
            split.pop_back();
            code.insert(code.begin() + std::ptrdiff_t(i), std::make_move_iterator(split.begin()),
                        std::make_move_iterator(split.end()));
            i += split.size();
        }
    }
}

} // namespace ptarmigan::translator
