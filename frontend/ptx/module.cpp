// SPDX-License-Identifier: Apache-2.0
#include "frontend/ptx/module.h"

#include "frontend/ptx/queries.h"

#include <algorithm>

namespace ptarmigan::ptx {

int operand_index(FormId form, Role role) {
    const std::span<const OperandInfo> operands = form_info(form).operands;
    for (std::size_t i = 0; i < operands.size(); ++i)
        if (operands[i].role == role) return static_cast<int>(i);
    return -1;
}

const Operand& Instruction::operator[](Role role) const {
    static const Operand absent;
    const int index = operand_index(form, role);
    return index < 0 || index >= operand_count ? absent : operands[static_cast<std::size_t>(index)];
}

ParameterLayout parameter_layout(const Function& entry) {
    ParameterLayout layout;
    layout.offsets.reserve(entry.parameters.size());
    for (const Variable& parameter : entry.parameters) {
        const std::uint32_t alignment = std::max(parameter.alignment, 1u);
        layout.alignment = std::max(layout.alignment, alignment);
        layout.size = (layout.size + alignment - 1) / alignment * alignment;
        layout.offsets.push_back(layout.size);
        layout.size += static_cast<std::uint32_t>(parameter.size);
    }
    return layout;
}

std::optional<FunctionId> Module::find_function(std::string_view name) const {
    for (std::size_t i = 0; i < functions.size(); ++i)
        if (functions[i].name == name) return static_cast<FunctionId>(i);
    return std::nullopt;
}

std::optional<VariableId> Module::find_variable(std::string_view name) const {
    for (std::size_t i = 0; i < variables.size(); ++i)
        if (variables[i].name == name) return static_cast<VariableId>(i);
    return std::nullopt;
}

} // namespace ptarmigan::ptx
