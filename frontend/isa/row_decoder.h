// SPDX-License-Identifier: Apache-2.0
// Reads the text of one row. Used by FormTable only.
#pragma once

#include "frontend/isa/form_pattern.h"

namespace ptarmigan::ptx {

/// A row as the table file writes it.
struct RawRow {
    FormId id;
    std::string_view name, syntax, where;
    std::uint8_t ptx_major, ptx_minor;
    std::string_view sm; ///< "90", "90a"
    Effects effects;
    ShapeRule shape;
    bool lowered;
    std::string_view lowering; ///< handler, or the reason why there is none
    std::string_view section, chapter;
};

/// Slots and operands of one row; words of the slots are ranges in `words`.
struct DecodedRow {
    struct Slot {
        std::uint32_t first_word = 0, word_count = 0;
        WordSlot slot;
        std::string_view name;
    };
    std::string_view opcode;
    std::vector<Word> words;
    std::vector<Slot> slots;
    std::vector<OperandPattern> operands;
    std::vector<std::string_view> constraint_texts; ///< parallel to operands
};

/// Decodes `row` into `out` (cleared first); faults are appended as text.
void decode_row(const RawRow& row, DecodedRow& out, std::vector<std::string>& faults);

} // namespace ptarmigan::ptx
