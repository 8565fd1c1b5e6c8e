// SPDX-License-Identifier: Apache-2.0
#include "frontend/sass/known_calls.h"

#include "frontend/sass/opcode_table.h"

#include <algorithm>
#include <bitset>
#include <optional>

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

constexpr std::uint32_t size = 16; ///< of an instruction

struct KnownFunction {
    std::string_view name, statement;
    bool is_division;
};
constexpr KnownFunction known_functions[] = {
    {"__cuda_sm3x_div_rn_noftz_f32_slowpath", "div.rn.f32 ", true},
    {"__cuda_sm3x_div_rn_ftz_f32_slowpath", "div.rn.ftz.f32 ", true},
    {"__cuda_sm20_rcp_rn_f32_slowpath", "rcp.rn.f32 ", false},
    {"__cuda_sm20_sqrt_rn_f32_slowpath", "sqrt.rn.f32 ", false},
};

/// The function's name behind `$__internal_3_$`.
std::string_view plain_name(std::string_view name) {
    return name.starts_with("$__internal_") ? name.substr(name.rfind('$') + 1) : std::string_view();
}

bool always_runs(const Instruction& inst) {
    return inst.guard == true_predicate && !inst.guard_negated;
}
bool names_register(const Operand& operand) {
    return operand.kind == Kind::reg && operand.index != zero_register;
}
/// The operand is the register, or a predicate, that the instruction writes.
bool writes(const Instruction& inst, unsigned place) {
    const OperandSpec& spec = inst.form->operands[place];
    if (spec.field.parts.empty()) return false;
    const unsigned first = spec.field.parts[0].first;
    if (spec.kind == 'd' || spec.kind == 'D') return first == 16;
    return inst.operands[place].kind == Kind::predicate && (first == 81 || first == 84);
}

/// What such functions are made of, each with a register of 32 bits as its result.
bool is_plain(std::string_view rule) {
    constexpr std::string_view rules[] = {"mov",  "imad", "iadd3", "viadd",  "lop3", "plop3",   "shf",
                                          "lea",  "sel",  "isetp", "fsetp",  "fsel", "ffma",    "fadd",
                                          "fmul", "mufu", "hfma2", "branch", "ret",  "nothing", "reconverge"};
    return std::find(std::begin(rules), std::end(rules), rule) != std::end(rules);
}

using Registers = std::bitset<256>;

class KnownCalls {
public:
    KnownCalls(std::span<const Instruction> code, const std::vector<std::uint32_t>& targets)
        : code_(code), targets_(targets) {}

    std::optional<KnownCall> find(const Instruction& call, const NamedFunction& function) const {
        const std::string_view name = plain_name(function.name);
        const auto known = std::find_if(std::begin(known_functions), std::end(known_functions),
                                        [&](const KnownFunction& one) { return one.name == name; });
        if (known == std::end(known_functions) || !always_runs(call) || call.operands[0].index != true_predicate ||
            call.operands[0].negated)
            return std::nullopt;
        KnownCall result;
        result.statement = known->statement;
        result.is_division = known->is_division;
        Registers read, written;
        if (!look_at(function, read, written)) return std::nullopt;
        for (unsigned i = 0; i < written.size(); ++i)
            if (written[i]) result.results.push_back(std::uint8_t(i));
        const std::optional<std::uint32_t> branch = pass_arguments(call, read);
        if (!branch || read.count() != (known->is_division ? 2u : 1u)) return std::nullopt;
        if (known->is_division) return find_check(*branch, result) ? std::optional(result) : std::nullopt;
        for (unsigned i = 0; i < read.size(); ++i)
            if (read[i]) result.argument = std::uint8_t(i);
        return result;
    }

private:
    /// Registers that the function reads before it writes them, in the order of the code, and those that it writes.
    bool look_at(const NamedFunction& function, Registers& read, Registers& written) const {
        bool returns = false;
        for (std::uint32_t at = function.begin; at < function.end && at / size < code_.size(); at += size) {
            const Instruction& inst = code_[at / size];
            if (inst.form == nullptr) return false;
            if (returns) continue; // padding
            returns = inst.form->rule == "ret" && always_runs(inst);
            if (!is_plain(inst.form->rule)) return false;
            for (unsigned i = 0; i < inst.operand_count; ++i) {
                const Operand& operand = inst.operands[i];
                const bool is_source = names_register(operand) ||
                                       (operand.kind == Kind::register_target && operand.index != zero_register);
                if (is_source && !writes(inst, i) && !written[operand.index]) read.set(operand.index);
                if (operand.kind == Kind::address || operand.kind == Kind::uniform) return false;
            }
            for (unsigned i = 0; i < inst.operand_count; ++i)
                if (names_register(inst.operands[i]) && writes(inst, i)) written.set(inst.operands[i].index);
        }
        return returns;
    }

    bool is_target(std::uint32_t address) const {
        return std::binary_search(targets_.begin(), targets_.end(), address);
    }
    /// Back to the branch over the call: what is left in `read` are the arguments. The registers that get the place
    /// behind the call are none.
    std::optional<std::uint32_t> pass_arguments(const Instruction& call, Registers& read) const {
        for (std::uint32_t at = call.address; at >= size; at -= size) {
            if (is_target(at)) return std::nullopt;
            const Instruction& inst = code_[at / size - 1];
            if (inst.form == nullptr) return std::nullopt;
            if (inst.form->rule == "branch") return inst.address;
            const bool is_move = inst.form->rule == "mov" || inst.form->rule == "imad";
            if (!is_move || !always_runs(inst)) continue;
            const Operand& source = inst.operands[inst.form->rule == "mov" ? 1 : 4];
            if (source.kind == Kind::immediate && source.value == std::int64_t(call.address) + size)
                read.reset(inst.operands[0].index);
        }
        return std::nullopt;
    }
    /// `FCHK P`, ..., `@!P BRA` over the call: nothing between leads here, or writes P.
    bool find_check(std::uint32_t branch, KnownCall& result) const {
        const Instruction& over = code_[branch / size];
        if (over.guard == true_predicate || over.guard_uniform || !over.guard_negated || over.form->id != FormId::bra ||
            over.operands[0].index != true_predicate || over.operands[0].negated)
            return false;
        result.predicate = over.guard;
        for (std::uint32_t at = branch; at >= size; at -= size) {
            if (is_target(at)) return false;
            const Instruction& inst = code_[at / size - 1];
            if (inst.form == nullptr || inst.form->rule == "branch" || inst.form->rule == "call" ||
                inst.form->rule == "r2p")
                return false;
            bool writes_it = false;
            for (unsigned i = 0; i < inst.operand_count; ++i)
                writes_it = writes_it || (inst.operands[i].kind == Kind::predicate && writes(inst, i) &&
                                          inst.operands[i].index == over.guard);
            if (!writes_it) continue;
            result.check = inst.address;
            return inst.form->rule == "fchk" && always_runs(inst);
        }
        return false;
    }

    std::span<const Instruction> code_;
    const std::vector<std::uint32_t>& targets_;
};

} // namespace

std::map<std::uint32_t, KnownCall> find_known_calls(std::span<const Instruction> code,
                                                    const std::vector<NamedFunction>& functions,
                                                    const std::vector<std::uint32_t>& targets) {
    std::map<std::uint32_t, KnownCall> found;
    if (functions.empty()) return found;
    const KnownCalls calls(code, targets);
    for (const Instruction& inst : code) {
        if (inst.form == nullptr || inst.form->rule != "call" || inst.operand_count < 2) continue;
        const auto function = std::find_if(functions.begin(), functions.end(), [&](const NamedFunction& one) {
            return std::int64_t(one.begin) == inst.operands[1].value;
        });
        if (function == functions.end()) continue;
        if (const auto known = calls.find(inst, *function)) found.emplace(inst.address, *known);
    }
    return found;
}

} // namespace ptarmigan::sass
