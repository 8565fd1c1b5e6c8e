// SPDX-License-Identifier: Apache-2.0
// Follows the addresses of each variable through the graph, optimistically; whatever else is found to touch one keeps
// the variable where it is.
#include "translator/analysis/build/interleave_locals.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <numeric>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;
using ptx::Role;
using ptx::StateSpace;

/// Places are computed in 32 bits times 32 lanes.
constexpr std::uint64_t largest_variable = 1 << 20;
constexpr std::uint32_t no_local = 0xffffffffu;

bool names_local(const Operand& operand) {
    return (operand.kind == Operand::Kind::variable ||
            (operand.kind == Operand::Kind::address && operand.base == Operand::Base::variable)) &&
           operand.scope == ptx::VariableScope::frame;
}

bool is_access(const ptx::Instruction& inst) {
    return inst.form == FormId::ld || inst.form == FormId::st || inst.form == FormId::ld_volatile_local ||
           inst.form == FormId::st_volatile_local;
}

bool is_space(StateSpace space) {
    return space == StateSpace::local || space == StateSpace::generic || space == StateSpace::none;
}

class Interleaving {
public:
    explicit Interleaving(FunctionGraph& graph)
        : graph_(graph), local_of_(graph.values.size(), no_local), stays_(graph.locals.size(), false),
          granule_(graph.locals.size(), 1) {}

    void run() {
        for (std::uint32_t local = 0; local < graph_.locals.size(); ++local)
            if (graph_.locals[local].size > largest_variable) stays_[local] = true;
        while (spread()) {
        }
        // A variable that stays takes those with it whose addresses may be its own.
        do {
            changed_ = false;
            for (Block& block : graph_.blocks) {
                for (const Phi& phi : block.phis) check(phi);
                for (const GraphInstruction& instruction : block.instructions) check(instruction);
                if (block.terminator.condition != no_value) keep(local_of_[block.terminator.condition]);
            }
        } while (changed_);
        place();
        for (Block& block : graph_.blocks)
            for (GraphInstruction& instruction : block.instructions) rewrite(instruction);
    }

private:
    enum class Kind { other, copy, add, add_product, subtract, compare, choose, access };

    static Kind kind_of(const ptx::Instruction& inst) {
        const std::string_view name = opcode(inst);
        if (inst.form == FormId::mov) return Kind::copy;
        if ((name == "cvta" && inst.space == StateSpace::local)) return Kind::copy;
        if (inst.form == FormId::add_int) return Kind::add;
        if (inst.form == FormId::mad_lo || inst.form == FormId::mad_wide) return Kind::add_product;
        if (inst.form == FormId::sub_int) return Kind::subtract;
        if (inst.form == FormId::selp) return Kind::choose;
        if (name == "setp" && (inst.has(ptx::Modifier::eq) || inst.has(ptx::Modifier::ne))) return Kind::compare;
        if (is_access(inst) && is_space(inst.space)) return Kind::access;
        return Kind::other;
    }

    bool is_address_type(const Operand& operand) const {
        return ptx::bit_size(operand.type) == 64 && !operand.negated &&
               (operand.kind != Operand::Kind::reg || ptx::bit_size(graph_.values[operand.index].type) == 64);
    }

    /// The variable whose address the operand holds; no_local if it is none.
    std::uint32_t local_of(const Operand& operand) const {
        if (operand.kind == Operand::Kind::variable && names_local(operand)) return operand.index;
        return operand.kind == Operand::Kind::reg ? local_of_[operand.index] : no_local;
    }

    void mark(ValueId value, std::uint32_t local) {
        if (local == no_local || local_of_[value] != no_local) return;
        local_of_[value] = local;
        changed_ = true;
    }

    /// Marks every value that may hold an address of a variable.
    bool spread() {
        changed_ = false;
        for (Block& block : graph_.blocks) {
            for (const Phi& phi : block.phis)
                for (ValueId incoming : phi.incoming) mark(phi.result, local_of_[incoming]);
            for (const GraphInstruction& instruction : block.instructions) {
                for (ValueId previous : instruction.previous)
                    if (instruction.inst.operands[0].kind == Operand::Kind::reg)
                        mark(instruction.inst.operands[0].index, local_of_[previous]);
                const Kind kind = kind_of(instruction.inst);
                if (kind == Kind::other || kind == Kind::access || kind == Kind::compare ||
                    instruction.inst.operands[0].kind != Operand::Kind::reg)
                    continue;
                for (unsigned i = 1; i < instruction.inst.operand_count; ++i)
                    mark(instruction.inst.operands[0].index, local_of(instruction.inst.operands[i]));
            }
        }
        return changed_;
    }

    void keep(std::uint32_t local) {
        if (local == no_local || stays_[local]) return;
        stays_[local] = true;
        changed_ = true;
    }

    /// All of them hold addresses of one variable, or nothing that is defined.
    void check_same(std::uint32_t local, const std::vector<ValueId>& values) {
        if (local == no_local) return;
        for (ValueId value : values) {
            if (graph_.values[value].is_undefined || local_of_[value] == local) continue;
            keep(local);
            keep(local_of_[value]);
        }
        // One that stays makes values that are no places of this one.
        if (stays_[local])
            for (ValueId value : values) keep(local_of_[value]);
    }

    void check(const Phi& phi) { check_same(local_of_[phi.result], phi.incoming); }

    void check(const GraphInstruction& instruction) {
        const ptx::Instruction& inst = instruction.inst;
        if (inst.guard != ptx::no_id) keep(local_of_[inst.guard]);
        const Kind kind = kind_of(inst);
        if (kind == Kind::access) {
            check_access(inst);
            return;
        }
        const Operand& d = inst.operands[0];
        const bool has_result = inst.operand_count > 0 && d.kind == Operand::Kind::reg;
        if (has_result) check_same(local_of_[d.index], instruction.previous);
        unsigned addresses = 0;
        bool plain = true;
        for (unsigned i = 0; i < inst.operand_count; ++i) {
            const Operand& operand = inst.operands[i];
            if (operand.kind == Operand::Kind::address) keep(accessed(operand));
            const std::uint32_t local = local_of(operand);
            if (local == no_local) continue;
            plain = plain && is_address_type(operand);
            if (i > 0) ++addresses;
        }
        for_elements(inst, [&](const Operand& element) { keep(local_of(element)); });
        if (kind == Kind::compare && plain && addresses == 2 && compares_places(inst)) return;
        const std::uint32_t result = has_result ? local_of_[d.index] : no_local;
        if (addresses == 0 && result == no_local) return;
        if (plain && is_followed(inst, kind, result, addresses)) return;
        for (unsigned i = 0; i < inst.operand_count; ++i) keep(local_of(inst.operands[i]));
    }

    /// The result is an address of the variable that the one operand is an address of.
    bool is_followed(const ptx::Instruction& inst, Kind kind, std::uint32_t result, unsigned addresses) const {
        const auto all = [&](std::initializer_list<unsigned> operands) {
            return std::all_of(operands.begin(), operands.end(),
                               [&](unsigned i) { return local_of(inst.operands[i]) == result; });
        };
        if (result == no_local || stays_[result]) return false;
        switch (kind) {
        case Kind::copy: return all({1});
        case Kind::add: return addresses == 1 && (all({1}) || all({2}));
        case Kind::add_product: return addresses == 1 && all({3});
        case Kind::subtract: return addresses == 1 && all({1});
        case Kind::choose: return addresses == 2 && all({1, 2});
        default: return false;
        }
    }

    /// Two addresses of one variable are equal if their places are.
    bool compares_places(const ptx::Instruction& inst) const {
        const std::uint32_t a = local_of(inst[Role::a]);
        return a != no_local && !stays_[a] && a == local_of(inst[Role::b]);
    }

    void check_access(const ptx::Instruction& inst) {
        for (unsigned i = 0; i < inst.operand_count; ++i) {
            const Operand& operand = inst.operands[i];
            if (operand.kind != Operand::Kind::address) {
                keep(local_of(operand)); // its address is stored
                continue;
            }
            const std::uint32_t local = accessed(operand);
            if (local != no_local)
                granule_[local] =
                    std::max<std::uint8_t>(granule_[local], std::uint8_t(std::min(8u, ptx::byte_size(inst.type()))));
        }
        for_elements(inst, [&](const Operand& element) { keep(local_of(element)); });
    }

    std::uint32_t accessed(const Operand& operand) const {
        if (names_local(operand)) return operand.index;
        return operand.base == Operand::Base::reg ? local_of_[operand.index] : no_local;
    }

    void for_elements(const ptx::Instruction& inst, const std::function<void(const Operand&)>& see) const {
        for (unsigned i = 0; i < inst.operand_count; ++i) {
            const Operand& operand = inst.operands[i];
            if (operand.has_elements())
                for (std::uint32_t e = operand.first; e < operand.first + operand.count; ++e) see(graph_.pool[e]);
        }
    }

    /// Interleaved variables from 0 on, the others closed up.
    void place() {
        std::uint64_t interleaved = 0, own = 0;
        for (std::uint32_t local = 0; local < graph_.locals.size(); ++local) {
            FrameVariable& variable = graph_.locals[local];
            variable.is_interleaved = !stays_[local];
            std::uint64_t& next = variable.is_interleaved ? interleaved : own;
            const std::uint64_t alignment =
                std::max<std::uint64_t>(variable.alignment, variable.is_interleaved ? 16 : 1);
            next = (next + alignment - 1) / alignment * alignment;
            variable.local_offset = std::uint32_t(next);
            next += variable.size;
        }
        graph_.local_bytes = std::uint32_t((own + 15) / 16 * 16);
        graph_.interleaved_bytes = std::uint32_t((interleaved + 15) / 16 * 16);
    }

    void rewrite(GraphInstruction& instruction) {
        ptx::Instruction& inst = instruction.inst;
        const bool is_cvta = opcode(inst) == "cvta" && inst.operands[0].kind == Operand::Kind::reg &&
                             local_of_[inst.operands[0].index] != no_local &&
                             !stays_[local_of_[inst.operands[0].index]];
        for (unsigned i = 0; i < inst.operand_count; ++i) {
            Operand& operand = inst.operands[i];
            if (operand.kind == Operand::Kind::address && is_access(inst)) {
                const std::uint32_t local = accessed(operand);
                if (local != no_local && !stays_[local]) {
                    instruction.lane_granule = granule_[local];
                    inst.space = StateSpace::local;
                }
            }
            if (!names_local(operand) || stays_[operand.index]) continue;
            operand.value += graph_.locals[operand.index].local_offset;
            if (operand.kind == Operand::Kind::variable) operand.kind = Operand::Kind::imm;
            operand.base = Operand::Base::none;
            operand.scope = ptx::VariableScope::module;
            operand.index = ptx::no_id;
        }
        if (!is_cvta) return;
        inst.form = FormId::mov;
        inst.space = StateSpace::none;
        inst.modifier_count = 0;
    }

    FunctionGraph& graph_;
    std::vector<std::uint32_t> local_of_; ///< by value: the variable whose address it may hold
    std::vector<bool> stays_;             ///< by variable
    std::vector<std::uint8_t> granule_;   ///< by variable
    bool changed_ = false;
};

} // namespace

void interleave_locals(FunctionGraph& graph) {
    if (graph.is_entry && !graph.locals.empty()) Interleaving(graph).run();
}

} // namespace ptarmigan::translator
