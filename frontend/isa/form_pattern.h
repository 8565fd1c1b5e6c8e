// SPDX-License-Identifier: Apache-2.0
// A row of the instruction table, decoded from the manual's notation: which words may follow the
// opcode and which operands it takes. Decoded once per process, at first use.
#pragma once

#include "frontend/isa/instruction_form.h"
#include "frontend/isa/words.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::ptx {

/// One place for a word behind the opcode: a literal word, or one of a class.
struct WordSlot {
    std::span<const Word> choices;
    bool optional = false;
    bool literal = false;
    bool is_space = false;       ///< the choices are state spaces
    std::int8_t type_index = -1; ///< place in Instruction::types, -1 if it is no type
};

/// Which parts of a register a video operand may name; see instruction_table.def.
enum class SelectorRule : std::uint8_t { none, part, halves, bytes, half_mask, byte_mask };

/// The part of `where` that speaks of one operand; see instruction_table.def for the words.
struct Constraint {
    enum class Kind : std::uint8_t {
        any,
        type,
        wide,
        half,
        wider,
        vec,
        pack,
        list,
        pred,
        imm,
        address,
        tensor_address, ///< in tensor memory: a 32-bit register
        label,
        function,
        targets,
        prototype,
        hidden,
    };
    Kind kind = Kind::any;
    ScalarType literal = ScalarType::none; ///< the type, unless `slot` says where to find it
    std::int8_t slot = -1;                 ///< type_index of the slot that decides
    bool untyped = false;                  ///< registers of .b types only, no constants
    bool or_predicate = false;             ///< a predicate will do as well
    bool tight = false;                    ///< vec: registers are no wider than the type
    bool any_class = false;                ///< vec: .bf16 and .bf16x2 are in any register of their size
    SelectorRule selector = SelectorRule::none;
    bool fragment = false;   ///< list: elements are registers that hold values of the type packed
    std::string_view values; ///< constants allowed, "0..15", "4|8|16", "*16", "none", "real"; empty: all
};

struct OperandPattern {
    /// Members of one bracket `[a, c]` are adjacent patterns.
    enum class Form : std::uint8_t { plain, bracket_first, bracket_next, parens, pair_second, hidden };
    Form form = Form::plain;
    Role role = Role::none;
    bool optional = false;
    bool may_invert = false; ///< {!}
    bool may_negate = false; ///< {-}
    bool is_destination = false;
    Constraint constraint;
};

struct FormPattern {
    const FormInfo* info = nullptr;
    std::span<const WordSlot> slots;
    std::span<const OperandPattern> operands;
    /// Only some targets with a suffix have it: info->targets says which.
    bool arch_specific = false;
};

/// The decoded table.
class FormTable {
public:
    /// Made at first use; thread-safe.
    static const FormTable& get();

    const FormPattern& pattern(FormId id) const { return patterns_[static_cast<std::size_t>(id)]; }
    std::span<const FormInfo> infos() const { return infos_; }
    /// The rows of an opcode in table order; empty if there is no such opcode.
    std::span<const FormId> rows_of(std::string_view opcode) const;
    /// The opcodes nearest to a misspelt one among those that take each of `words` that exists.
    NearestSpelling nearest_opcode(std::string_view spelling, std::span<const std::string_view> words = {}) const;
    /// What is wrong with rows (unknown words, roles, constraints); a test keeps it empty.
    const std::vector<std::string>& faults() const { return faults_; }

    FormTable(const FormTable&) = delete;
    FormTable& operator=(const FormTable&) = delete;

private:
    FormTable();
    void index_opcodes();

    std::vector<FormInfo> infos_;
    std::vector<FormPattern> patterns_;
    std::vector<Word> words_;
    std::vector<WordSlot> slots_;
    std::vector<OperandPattern> operand_patterns_;
    std::vector<OperandInfo> operand_infos_;
    std::vector<std::string> faults_;
    struct OpcodeEntry {
        std::string_view opcode;
        std::uint32_t first = 0, count = 0; ///< in by_opcode_
    };
    std::vector<OpcodeEntry> opcodes_; ///< open addressing, a power of two
    std::vector<FormId> by_opcode_;
};

} // namespace ptarmigan::ptx
