// SPDX-License-Identifier: Apache-2.0
// Questions that analyses ask of instructions, answered from the row.
#pragma once

#include "frontend/ptx/module.h"

#include <span>
#include <utility>

namespace ptarmigan::ptx {

/// Calls fn(operand, is_definition) for every register that the instruction's operands name: plain
/// ones, elements of vectors and lists, bases of addresses. Sources come before definitions, so
/// that `add r, r, 1` reads first. `operand.index` is the register (or value) and may be changed if
/// `inst` and `pool` are not const. The guard is not an operand: see Instruction.
template <typename Inst, typename Pool, typename Fn> void for_each_register(Inst& inst, Pool& pool, Fn&& fn) {
    const std::span<const OperandInfo> infos = form_info(inst.form).operands;
    auto visit = [&](auto& operand, bool is_definition) {
        using Kind = Operand::Kind;
        if (operand.kind == Kind::reg) {
            fn(operand, is_definition);
        } else if (operand.kind == Kind::address) {
            if (operand.base == Operand::Base::reg) fn(operand, false);
        } else if (operand.has_elements()) {
            for (std::uint32_t i = 0; i < operand.count; ++i)
                if (pool[operand.first + i].kind == Kind::reg) fn(pool[operand.first + i], is_definition);
        }
    };
    for (const bool definitions : {false, true})
        for (unsigned i = 0; i < inst.operand_count; ++i)
            if (infos[i].is_destination == definitions) visit(inst.operands[i], definitions);
}

/// Index of the operand that plays `role` in the row, -1 if the row has none.
int operand_index(FormId form, Role role);

} // namespace ptarmigan::ptx
