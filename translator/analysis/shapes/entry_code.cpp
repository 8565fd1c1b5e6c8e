// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/shapes/entry_code.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/graph/make_operands.h"
#include "translator/analysis/shapes/lane_tests.h"

#include <algorithm>

namespace ptarmigan::translator {

using ptx::Operand;

namespace {

/// Instructions that a test at the entry may need.
constexpr std::size_t most_operands = 48;

bool is_special(const Operand& operand, ptx::SpecialRegister which) {
    return operand.kind == Operand::Kind::special && ptx::SpecialRegister(operand.index) == which;
}

} // namespace

bool EntryCode::need(std::initializer_list<const Operand*> operands) {
    const std::size_t before = needed_.size();
    const bool known = std::all_of(operands.begin(), operands.end(), [&](const Operand* each) { return need(*each); });
    if (known && needed_.size() <= most_operands) return true;
    for (std::size_t i = before; i < needed_.size(); ++i) is_needed_.erase(needed_[i]);
    needed_.resize(before);
    return false;
}

bool EntryCode::need(const Operand& operand) {
    if (operand.kind == Operand::Kind::imm || operand.kind == Operand::Kind::special ||
        operand.kind == Operand::Kind::none || operand.kind == Operand::Kind::sink)
        return true;
    return operand.kind == Operand::Kind::reg && need(operand.index);
}

bool EntryCode::need(ValueId value) {
    if (graph_.values[value].is_constant || (known_ != no_block && graph_.values[value].block == known_)) return true;
    if (const auto first = firsts_.find(value); first != firsts_.end()) return need(first->second);
    if (graph_.values[value].is_phi) return need_choice(value);
    const GraphInstruction* made = definitions_[value];
    if (!made || made->inst.guard != ptx::no_id) return false;
    if (is_needed_.contains(made)) return true;
    if (needed_.size() > most_operands) return false;
    const ptx::Instruction& inst = made->inst;
    if (!loads_kernel_parameter(graph_, inst)) {
        if (!is_pure(inst)) return false;
        const auto infos = ptx::form_info(inst.form).operands;
        for (unsigned i = 0; i < inst.operand_count; ++i)
            if (!infos[i].is_destination && !need(inst.operands[i])) return false;
    }
    for (ValueId result : definitions(graph_, *made))
        if (graph_.values[result].shape.is_varying()) return false;
    is_needed_.insert(made);
    needed_.push_back(made);
    return true;
}

bool EntryCode::need_choice(ValueId phi) {
    const SsaValue& value = graph_.values[phi];
    if (const auto known = choice_of_.find(phi); known != choice_of_.end() && is_needed_.contains(known->second))
        return true;
    const Block& join = graph_.blocks[value.block];
    const unsigned bits = ptx::bit_size(value.type);
    if (join.predecessors.size() != 2 || value.shape.is_varying() || (bits != 32 && bits != 64)) return false;
    std::vector<BlockId> above;
    for (const BlockId side : join.predecessors) {
        if (graph_.blocks[side].predecessors.size() != 1) return false;
        above.push_back(graph_.blocks[side].predecessors[0]);
    }
    const Block& parting = graph_.blocks[above[0]];
    if (above[0] != above[1] || parting.terminator.kind != Terminator::Kind::branch) return false;
    const GraphInstruction* asked = definitions_[parting.terminator.condition];
    const Phi* found = nullptr;
    for (const Phi& each : join.phis)
        if (each.result == phi) found = &each;
    if (!asked || !found || !need(parting.terminator.condition) || !need(found->incoming[0]) ||
        !need(found->incoming[1]))
        return false;
    const bool first_is_taken = join.predecessors[0] == parting.successors[0];
    const unsigned if_true = first_is_taken != parting.terminator.negated ? 0 : 1;
    const ptx::ScalarType type = bits == 64 ? ptx::ScalarType::b64 : ptx::ScalarType::b32;
    GraphInstruction choice;
    choice.body = asked->body;
    choice.function = asked->function;
    choice.inst.form = ptx::FormId::selp;
    choice.inst.types[0] = type;
    choice.inst.location = asked->inst.location;
    choice.inst.operand_count = 4;
    choice.inst.operands = {register_operand(phi, type), register_operand(found->incoming[if_true], type),
                            register_operand(found->incoming[1 - if_true], type),
                            register_operand(parting.terminator.condition, ptx::ScalarType::pred)};
    choices_.push_back(std::move(choice));
    choice_of_[phi] = &choices_.back();
    is_needed_.insert(&choices_.back());
    needed_.push_back(&choices_.back());
    return true;
}

bool EntryCode::is_of_cta() const {
    using enum ptx::SpecialRegister;
    const auto may_differ = [](const Operand& operand) {
        return operand.kind == Operand::Kind::special && !is_special(operand, tid) && !is_special(operand, ctaid) &&
               !is_special(operand, nctaid) && !is_special(operand, ntid);
    };
    for (const GraphInstruction* needed : needed_)
        for (const Operand& operand : needed->inst.operands) {
            if (may_differ(operand)) return false;
            if (!operand.has_elements()) continue;
            for (std::uint32_t e = 0; e < operand.count; ++e)
                if (graph_.pool[operand.first + e].kind == Operand::Kind::special) return false;
        }
    return true;
}

void EntryCode::copy(std::vector<GraphInstruction>& code, Copies& names, BlockId block, bool for_cta) const {
    for (const GraphInstruction* instruction : needed_) {
        for (const ValueId read : uses(graph_, *instruction))
            if (firsts_.contains(read)) names.rename(read, name(names, read));
        for (const ValueId value : definitions(graph_, *instruction)) names.add(value, block);
        GraphInstruction copy = names.copy(*instruction);
        for (Operand& operand : copy.inst.operands)
            if (for_cta && is_special(operand, ptx::SpecialRegister::tid))
                operand = constant_operand(0, copy.inst.type());
        code.push_back(std::move(copy));
    }
}

ValueId EntryCode::name(const Copies& names, ValueId value) const {
    for (auto first = firsts_.find(value); first != firsts_.end(); first = firsts_.find(value)) value = first->second;
    return names.name(value);
}

} // namespace ptarmigan::translator
