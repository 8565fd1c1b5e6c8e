// SPDX-License-Identifier: Apache-2.0
#include "frontend/bind/legacy_target.h"

#include "frontend/isa/form_pattern.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

constexpr Version first_flushing_conversions{1, 5};

bool takes(const WordSlot& slot, Modifier modifier) {
    const Word word{Word::Kind::modifier, static_cast<std::uint16_t>(modifier)};
    return std::find(slot.choices.begin(), slot.choices.end(), word) != slot.choices.end();
}

} // namespace

void imply_flush_to_zero(Instruction& instruction, Version version) {
    const auto has_type = [&](ScalarType type) {
        return std::find(instruction.types.begin(), instruction.types.end(), type) != instruction.types.end();
    };
    const std::string_view opcode = form_info(instruction.form).opcode;
    const bool only_compares_f32 = opcode == "slct"; // and passes the f64 on
    const bool is_conversion = opcode == "cvt" && version >= first_flushing_conversions;
    if (has_type(ScalarType::f64) && !only_compares_f32 && !is_conversion) return;
    if (!has_type(ScalarType::f32) || instruction.has(Modifier::ftz) ||
        instruction.modifier_count == Instruction::max_modifiers)
        return;
    // Modifiers stand in the order of the row's slots.
    unsigned place = 0;
    for (const WordSlot& slot : FormTable::get().pattern(instruction.form).slots) {
        if (takes(slot, Modifier::ftz)) {
            const auto at = instruction.modifiers.begin() + place;
            std::copy_backward(at, instruction.modifiers.begin() + instruction.modifier_count,
                               instruction.modifiers.begin() + instruction.modifier_count + 1);
            *at = Modifier::ftz;
            ++instruction.modifier_count;
            return;
        }
        if (place < instruction.modifier_count && takes(slot, instruction.modifiers[place])) ++place;
    }
}

} // namespace ptarmigan::ptx
