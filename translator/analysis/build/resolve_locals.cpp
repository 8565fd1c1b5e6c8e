// SPDX-License-Identifier: Apache-2.0
// nvcc reaches its .local arrays through registers: one holds the array's address, others constant distances from it.
// Where such a register is written once, every access through it names the variable instead, which lets
// promote_parameters() see what is accessed. What computed the addresses goes when nothing else reads it.
#include "translator/analysis/build/flatten.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;
using ptx::StateSpace;

/// A register that always holds `offset` bytes behind the beginning of a .local variable.
struct Place {
    bool known = false;
    std::uint32_t storage = 0;
    std::uint64_t offset = 0;
};

bool is_access(const ptx::Instruction& inst) {
    return (inst.form == FormId::ld || inst.form == FormId::st) &&
           (inst.space == StateSpace::local || inst.space == StateSpace::generic || inst.space == StateSpace::none);
}

bool is_address_copy(const ptx::Instruction& inst) {
    if (inst.form == FormId::mov) return true;
    return opcode(inst) == "cvta" && inst.space == StateSpace::local;
}

class LocalResolution {
public:
    explicit LocalResolution(FlatFunction& flat)
        : flat_(flat), graph_(flat.graph), places_(flat.registers.size()), writes_(flat.registers.size()),
          reads_(flat.registers.size()) {}

    void run() {
        if (std::none_of(flat_.storages.begin(), flat_.storages.end(),
                         [](const Storage& s) { return !s.is_parameter; }))
            return;
        count();
        // An address may be computed in a block that comes before the one that it starts from.
        while (find_places()) {
        }
        for (Block& block : graph_.blocks)
            for (GraphInstruction& instruction : block.instructions) rewrite(instruction.inst);
        while (drop_unread()) {
        }
    }

private:
    void count() {
        for (Block& block : graph_.blocks) {
            for (GraphInstruction& instruction : block.instructions) {
                if (instruction.inst.guard != ptx::no_id) ++reads_[instruction.inst.guard];
                for_each_register(graph_, instruction, [&](Operand& operand, bool definition) {
                    ++(definition ? writes_ : reads_)[operand.index];
                });
            }
            if (block.terminator.condition != no_value) ++reads_[block.terminator.condition];
        }
    }

    static bool is_whole(const Operand& operand) { return ptx::bit_size(operand.type) == 64 && !operand.negated; }

    /// Where the operand points to, if it is the address of a variable or a register that holds one.
    Place place_of(const Operand& operand) const {
        if (operand.kind == Operand::Kind::variable && operand.scope == ptx::VariableScope::frame &&
            !flat_.storages[operand.index].is_parameter)
            return {true, operand.index, operand.value};
        if (operand.kind == Operand::Kind::reg && is_whole(operand)) return places_[operand.index];
        return {};
    }

    Place result_of(const ptx::Instruction& inst) const {
        if (is_address_copy(inst)) return place_of(inst.operands[1]);
        if (inst.form != FormId::add_int || inst.operand_count < 3) return {};
        for (unsigned i = 1; i <= 2; ++i) {
            Place place = place_of(inst.operands[i]);
            const Operand& other = inst.operands[3 - i];
            if (!place.known || other.kind != Operand::Kind::imm) continue;
            place.offset += other.value;
            return place;
        }
        return {};
    }

    bool find_places() {
        bool changed = false;
        for (Block& block : graph_.blocks)
            for (GraphInstruction& instruction : block.instructions) {
                const ptx::Instruction& inst = instruction.inst;
                const Operand& d = inst.operands[0];
                if (inst.guard != ptx::no_id || inst.operand_count < 2 || d.kind != Operand::Kind::reg ||
                    !is_whole(d) || places_[d.index].known || writes_[d.index] != 1 ||
                    ptx::bit_size(flat_.registers[d.index].type) != 64)
                    continue;
                places_[d.index] = result_of(inst);
                changed |= places_[d.index].known;
            }
        return changed;
    }

    void rewrite(ptx::Instruction& inst) {
        if (!is_access(inst)) return;
        Operand& address = inst.operands[inst.form == FormId::ld ? 1 : 0];
        if (address.kind != Operand::Kind::address || address.base != Operand::Base::reg ||
            !places_[address.index].known)
            return;
        const Place& place = places_[address.index];
        --reads_[address.index];
        address.base = Operand::Base::variable;
        address.scope = ptx::VariableScope::frame;
        address.index = place.storage;
        address.value += place.offset;
        inst.space = StateSpace::local;
    }

    bool drop_unread() {
        bool changed = false;
        for (Block& block : graph_.blocks)
            std::erase_if(block.instructions, [&](GraphInstruction& instruction) {
                const Operand& d = instruction.inst.operands[0];
                if (d.kind != Operand::Kind::reg || instruction.inst.guard != ptx::no_id || !places_[d.index].known ||
                    writes_[d.index] != 1 || reads_[d.index] != 0 || !result_of(instruction.inst).known)
                    return false;
                for_each_register(graph_, instruction, [&](Operand& operand, bool definition) {
                    if (!definition) --reads_[operand.index];
                });
                return changed = true;
            });
        return changed;
    }

    FlatFunction& flat_;
    FunctionGraph& graph_;
    std::vector<Place> places_;                 ///< by register
    std::vector<std::uint32_t> writes_, reads_; ///< by register: how often it is named
};

} // namespace

void resolve_locals(FlatFunction& flat) {
    LocalResolution(flat).run();
}

} // namespace ptarmigan::translator
