// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/arithmetic/unknown_operands.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/low_mask.h"

#include <algorithm>
#include <string_view>

namespace ptarmigan::translator {
namespace {

/// How much of a value a pass may find out.
enum class Secret : std::uint8_t {
    none,  ///< it may be a constant
    some,  ///< bits may be known, not all
    whole, ///< no bit is known
};

class Secrets {
public:
    explicit Secrets(const FunctionGraph& graph) : graph_(graph), of_(graph.values.size(), Secret::whole) {
        for (ValueId value = 0; value < graph.values.size(); ++value)
            if (graph.values[value].is_constant) of_[value] = Secret::none;
        for (changed_ = true; changed_;) {
            changed_ = false;
            for (const Block& block : graph.blocks) visit(block);
        }
    }

    Secret of(const ptx::Operand& operand) const {
        switch (operand.kind) {
        case ptx::Operand::Kind::reg: return of_[operand.index];
        case ptx::Operand::Kind::vector: {
            const auto first = graph_.pool.begin() + operand.first;
            Secret best = Secret::none;
            for (auto element = first; element != first + operand.count; ++element) best = std::max(best, of(*element));
            return std::min(best, Secret::some);
        }
        default: return Secret::none;
        }
    }

private:
    void visit(const Block& block) {
        for (const Phi& phi : block.phis)
            for (ValueId incoming : phi.incoming)
                if (!graph_.values[incoming].is_undefined) lower(phi.result, of_[incoming]);
        for (const GraphInstruction& instruction : block.instructions) {
            const Secret result = made_by(instruction.inst);
            for (ValueId value : definitions(graph_, instruction)) lower(value, result);
            for (ValueId value : instruction.previous) // lanes whose guard is false keep those
                for (ValueId defined : definitions(graph_, instruction)) lower(defined, of_[value]);
        }
    }

    void lower(ValueId value, Secret secret) {
        if (of_[value] <= secret) return;
        of_[value] = secret;
        changed_ = true;
    }

    Secret made_by(const ptx::Instruction& inst) const {
        const std::string_view name = opcode(inst);
        if (has_effect(inst, ptx::Effects::load) && inst.space != ptx::StateSpace::local && !is_call(inst))
            return graph_.is_entry || inst.space != ptx::StateSpace::param ? Secret::whole : Secret::none;
        // The source operands, as far as they are single ones.
        Secret best = Secret::none, worst = Secret::whole;
        unsigned unknown = 0, known = 0;
        const ptx::FormInfo& info = ptx::form_info(inst.form);
        for (unsigned i = 0; i < inst.operand_count; ++i) {
            const ptx::Operand& operand = inst.operands[i];
            if (operand.kind == ptx::Operand::Kind::none || operand.kind == ptx::Operand::Kind::sink) continue;
            if (info.operands[i].role == ptx::Role::d) continue;
            const Secret secret = of(operand);
            best = std::max(best, secret), worst = std::min(worst, secret);
            ++(secret == Secret::none ? known : unknown);
        }
        // Of packed ones a half may be known.
        if (info.rounds && ptx::is_float(inst.types[0])) return best == Secret::none ? Secret::none : Secret::whole;
        if (name == "mov") { // halves of a value of which bits are known may be
            const bool parts = inst[ptx::Role::d].kind == ptx::Operand::Kind::vector;
            return parts && best == Secret::some ? Secret::none : best;
        }
        if (name == "cvt") return best == Secret::whole ? Secret::some : Secret::none; // it may leave known bits only
        if (name == "neg" || name == "abs") return std::min(best, Secret::some);
        const bool with_constant = unknown == 1 && known == 1;
        const bool sums = name == "add" || name == "sub" || name == "xor";
        if (with_constant && sums) return std::min(best, Secret::some);
        const bool masks = name == "and" || name == "or" || name == "shl";
        if (with_constant && masks && best == Secret::whole)
            return keeps_bits(inst, name) ? Secret::some : Secret::none;
        if (name == "selp" || name == "min" || name == "max" || name == "copysign")
            return std::min(worst, Secret::some);
        return Secret::none;
    }

    /// A mask by a constant that leaves bits of what it masks, or a sum that is not all ones.
    bool keeps_bits(const ptx::Instruction& inst, std::string_view name) const {
        const std::uint64_t ones = low_mask(ptx::bit_size(inst.types[0]));
        const auto constant = constant_of(graph_, inst[ptx::Role::b]);
        if (!constant) return false;
        if (name == "shl") return *constant < ptx::bit_size(inst.types[0]);
        return name == "and" ? (*constant & ones) != 0 : (*constant & ones) != ones;
    }

    const FunctionGraph& graph_;
    std::vector<Secret> of_;
    bool changed_ = false;
};

bool computes_doubles(const ptx::Instruction& inst) {
    return inst.operand_count > 1 && inst.types[0] == ptx::ScalarType::f64 &&
           ptx::form_info(inst.form).effects == ptx::Effects::pure;
}

/// The state spaces of loads from which doubles come that the graph computes with, whole or in pieces.
class DoublePlaces {
public:
    explicit DoublePlaces(const FunctionGraph& graph) : graph_(graph), wanted_(graph.values.size()) {
        for (changed_ = true; changed_;) {
            changed_ = false;
            for (const Block& block : graph.blocks) visit(block);
        }
    }

    /// May such a load find what a store to `space` left?
    bool meet(ptx::StateSpace space) const {
        const auto among = [&](ptx::StateSpace one) {
            return std::find(spaces_.begin(), spaces_.end(), one) != spaces_.end();
        };
        return space == ptx::StateSpace::generic ? !spaces_.empty() : among(space) || among(ptx::StateSpace::generic);
    }

private:
    void visit(const Block& block) {
        for (const Phi& phi : block.phis)
            if (wanted_[phi.result])
                for (ValueId incoming : phi.incoming) want(incoming);
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            const auto is_wanted = [&](ValueId value) { return wanted_[value]; };
            const FewValues made = definitions(graph_, instruction);
            if (!computes_doubles(inst) && std::none_of(made.begin(), made.end(), is_wanted)) continue;
            for (ValueId value : instruction.previous) want(value);
            if (has_effect(inst, ptx::Effects::load)) {
                if (!meet(inst.space) && inst.space != ptx::StateSpace::local) spaces_.push_back(inst.space);
            } else if (opcode(inst) != "cvt" || !ptx::is_float(inst.types[0]) ||
                       inst.types[1] == ptx::ScalarType::f64) {
                for (ValueId value : uses(graph_, instruction)) want(value);
            }
        }
    }

    void want(ValueId value) {
        if (wanted_[value]) return;
        wanted_[value] = true;
        changed_ = true;
    }

    const FunctionGraph& graph_;
    std::vector<bool> wanted_;
    std::vector<ptx::StateSpace> spaces_;
    bool changed_ = false;
};

/// Of a store: may what it leaves be a constant, of which a load is a double or becomes one?
bool stores_constant(const FunctionGraph& graph, const Secrets& secrets, const DoublePlaces& places,
                     const ptx::Instruction& inst) {
    if (opcode(inst) != "st" || inst.space == ptx::StateSpace::local || !places.meet(inst.space)) return false;
    const auto may_be = [&](const ptx::Operand& operand) { return secrets.of(operand) == Secret::none; };
    const ptx::Operand& value = inst[ptx::Role::b];
    if (value.kind != ptx::Operand::Kind::vector) return may_be(value);
    const auto first = graph.pool.begin() + value.first;
    return std::any_of(first, first + value.count, may_be);
}

} // namespace

void mark_unknown_operands(FunctionGraph& graph) {
    const auto computes = [](const GraphInstruction& instruction) { return computes_doubles(instruction.inst); };
    if (std::none_of(graph.blocks.begin(), graph.blocks.end(), [&](const Block& block) {
            return std::any_of(block.instructions.begin(), block.instructions.end(), computes);
        }))
        return;
    const Secrets secrets(graph);
    const DoublePlaces places(graph);
    for (Block& block : graph.blocks)
        for (GraphInstruction& instruction : block.instructions) {
            const auto& inst = instruction.inst;
            instruction.hides_value = stores_constant(graph, secrets, places, inst);
            if (!computes(instruction)) continue;
            instruction.has_unknown_operand =
                std::any_of(inst.operands.begin() + 1, inst.operands.begin() + inst.operand_count,
                            [&](const ptx::Operand& operand) { return secrets.of(operand) != Secret::none; });
        }
}

} // namespace ptarmigan::translator
