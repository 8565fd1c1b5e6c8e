// SPDX-License-Identifier: Apache-2.0
#include "frontend/sass/slow_ways.h"
#include "frontend/sass/opcode_table.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::sass {
namespace {

/// Beyond it a way is not looked at: 32 collectives with what they need.
constexpr unsigned step_limit = 512;

/// What lanes do together on a way, and where it leads: a branch's target.
struct Way {
    std::vector<std::string> collectives;
    std::optional<std::uint32_t> end;
};

bool is_certain(const Instruction& inst) {
    return inst.guard == true_predicate && !inst.guard_negated;
}

std::string name_of(const Instruction& inst) {
    std::string name(inst.form->rule);
    for (const char* mode : {"IDX", "UP", "DOWN", "BFLY", "ALL", "ANY", "EQ", "OR", "XOR", "SUM", "MIN", "MAX"})
        if (inst.has(mode)) name += std::string(".") + mode;
    return name;
}

class Walk {
public:
    explicit Walk(std::span<const Instruction> code) : code_(code) {}

    /// From `at` to `stop`, or without one to the first branch. Nothing if it can't be followed.
    std::optional<Way> follow(std::uint32_t at, std::optional<std::uint32_t> stop) {
        Way way;
        if (!follow(at, stop, false, way)) return std::nullopt;
        return way;
    }

private:
    bool follow(std::uint32_t at, std::optional<std::uint32_t> stop, bool is_called, Way& way) {
        for (; steps_ < step_limit; ++steps_, at += instruction_size) {
            if (stop && at == *stop) {
                way.end = at;
                return true;
            }
            if (at / instruction_size >= code_.size()) return false;
            const Instruction& inst = code_[at / instruction_size];
            if (inst.form == nullptr) return false;
            const std::string_view rule = inst.form->rule;
            if (is_collective(inst)) way.collectives.push_back(name_of(inst));
            if (rule == "ret") return is_called && is_certain(inst);
            if (rule == "call") {
                if (is_called || !is_certain(inst)) return false;
                if (!follow(std::uint32_t(inst.operands[1].value), std::nullopt, true, way)) return false;
            } else if (rule == "branch") {
                if (inst.has("DIV") || inst.has("CONV")) continue; // to what follows, see Lifter::find_successors
                if (stop || is_called || !is_certain(inst)) return false;
                way.end = std::uint32_t(inst.operands[inst.operand_count - 1].value);
                return true;
            } else if (rule == "exit" || rule == "trap" || rule == "branch_indexed" || rule == "call_indexed" ||
                       rule == "call_absolute") {
                return false;
            }
        }
        return false;
    }

    std::span<const Instruction> code_;
    unsigned steps_ = 0;
};

} // namespace

bool is_collective(const Instruction& inst) {
    if (inst.form == nullptr) return false;
    const std::string_view rule = inst.form->rule;
    return rule == "shuffle" || rule == "vote" || rule == "match" || rule == "redux";
}

bool slow_way_differs(std::span<const Instruction> code, std::uint32_t division) {
    const Instruction& branch = code[division / instruction_size];
    const auto slow = Walk(code).follow(std::uint32_t(branch.operands[branch.operand_count - 1].value), std::nullopt);
    if (!slow || *slow->end <= division) return false;
    const auto fast = Walk(code).follow(division + instruction_size, slow->end);
    return fast && fast->collectives != slow->collectives;
}

} // namespace ptarmigan::sass
