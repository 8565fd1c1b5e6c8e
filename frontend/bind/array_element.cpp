// SPDX-License-Identifier: Apache-2.0
#include "frontend/bind/array_element.h"

#include "frontend/parse/cursor.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

/// ptxas takes elements of arrays as the address of plain loads and stores, not of atomics,
/// prefetches or copies.
bool loads_or_stores(const HeadMatch& head) {
    const FormPattern& pattern = FormTable::get().pattern(head.form);
    const bool has_address = std::any_of(
        pattern.operands.begin(), pattern.operands.end(), [](const OperandPattern& operand) {
            return operand.form == OperandPattern::Form::bracket_first;
        });
    const Effects effects = pattern.info->effects;
    return has_address && any(effects, Effects::load | Effects::store) &&
           !any(effects, Effects::atomic | Effects::async);
}

} // namespace

void resolve_array_elements(InstructionSyntax& instruction, const std::vector<HeadMatch>& heads,
                            Diagnostics& diagnostics,
                            const std::function<const Variable*(std::string_view)>& find_variable) {
    const bool is_memory_operand = std::any_of(heads.begin(), heads.end(), loads_or_stores);
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
        OperandSyntax& node = instruction.operands[i];
        if (!node.has_index) continue;
        const Variable* variable = find_variable(node.name);
        if (variable == nullptr || variable->dimensions.empty()) {
            diagnostics.error(node.location,
                              "'" + std::string(node.name.substr(0, 80)) + "' is not an array");
            throw Recover{};
        }
        node.constant.bits *= byte_size(variable->type);
        node.has_index = false;
        node.has_offset = true;
        if (!is_memory_operand) continue;
        OperandSyntax bracket;
        bracket.kind = OperandSyntax::Kind::bracket;
        bracket.location = node.location;
        bracket.extent = 2;
        bracket.children = 1;
        instruction.operands.insert(instruction.operands.begin() + static_cast<std::ptrdiff_t>(i++),
                                    bracket);
    }
}

} // namespace ptarmigan::ptx
