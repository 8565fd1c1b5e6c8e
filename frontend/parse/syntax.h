// SPDX-License-Identifier: Apache-2.0
// What the parser hands to the binder: one declaration or statement at a time, names as views into
// the text. The objects are reused from one statement to the next, so parsing allocates nothing in
// the steady state.
#pragma once

#include "frontend/parse/lexer.h"
#include "frontend/ptx/types.h"
#include "frontend/source/location.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace ptarmigan::ptx {

/// A constant as written or computed: integers are 64 bits (s64 or u64), reals are doubles.
struct Constant {
    enum class Kind : std::uint8_t { none, integer, real, bits32, bits64 };
    Kind kind = Kind::none;
    bool is_unsigned = false;
    std::uint64_t bits = 0; ///< integer, bit pattern of the double, or of the 0f/0d literal

    std::int64_t as_signed() const { return static_cast<std::int64_t>(bits); }
    bool is_integer() const { return kind == Kind::integer; }
};

/// A node of an operand list. Brackets, braces and parentheses are followed by their children
/// (preorder).
struct OperandSyntax {
    enum class Kind : std::uint8_t {
        name, ///< identifier, with optional component and offset
        constant,
        bracket, ///< [ ... ]
        braces,  ///< { ... }
        parens,  ///< ( ... )
    };
    Kind kind = Kind::name;
    bool inverted = false;      ///< `!x`
    bool minus = false;         ///< `-x` before a name
    bool pair_follows = false;  ///< `x|y`: the next sibling is y
    bool has_offset = false;    ///< name+constant
    bool has_index = false;     ///< name[constant], name[index] or name[index+constant]
    std::uint32_t extent = 1;   ///< nodes of this subtree, itself included
    std::uint32_t children = 0; ///< direct children
    std::string_view name;
    std::string_view component; ///< word behind a name or bracket: x, b0, unified
    std::string_view index;     ///< the register inside name[index+constant]
    Constant constant;          ///< the constant, the offset or the index
    SourceLocation location;
};

/// A node of an initialiser, in preorder like operands.
struct InitializerSyntax {
    enum class Kind : std::uint8_t { constant, symbol, braces, string } kind = Kind::constant;
    bool generic = false;       ///< generic(symbol)
    std::uint8_t mask_byte = 0; ///< mask(symbol): which byte; only if `masked`
    bool masked = false;
    std::uint32_t extent = 1;
    std::uint32_t children = 0;
    std::string_view name;
    Constant constant; ///< the value, or the addend of a symbol
    SourceLocation location;
};

/// One name of a declaration.
struct DeclaratorSyntax {
    std::string_view name;
    bool is_range = false; ///< name<count>
    std::uint64_t range = 0;
    std::uint32_t first_dimension = 0,
                  dimension_count = 0;   ///< in VariableSyntax::dimensions; 0 there means []
    std::uint32_t first_initializer = 0; ///< in VariableSyntax::initializers
    bool has_initializer = false;
    SourceLocation location;
};

/// `.global .align 4 .v2 .f32 a[4], b = {1, 2};`, a parameter, or registers.
struct VariableSyntax {
    StateSpace space = StateSpace::none;
    ScalarType type = ScalarType::none;
    std::uint8_t vector_size = 1;
    std::uint32_t bank = 0;                ///< .const[n]
    std::uint32_t alignment = 0;           ///< 0: not given
    bool managed = false, unified = false; ///< .attribute
    bool is_pointer = false;
    StateSpace pointee_space = StateSpace::none;
    std::uint32_t pointee_alignment = 0;
    std::vector<DeclaratorSyntax> declarators;
    std::vector<std::uint64_t> dimensions;
    std::vector<InitializerSyntax> initializers;
    SourceLocation location;

    void clear() {
        space = StateSpace::none;
        type = ScalarType::none;
        vector_size = 1;
        bank = alignment = 0;
        managed = unified = is_pointer = false;
        pointee_space = StateSpace::none;
        pointee_alignment = 0;
        declarators.clear();
        dimensions.clear();
        initializers.clear();
        location = {};
    }
};

/// `.maxntid 256, 1, 1` and the like.
struct LimitSyntax {
    std::string_view name;
    std::vector<std::uint64_t> values;
    SourceLocation location;
};

/// The head of a function or of a `.callprototype`.
struct FunctionSyntax {
    bool is_entry = false;
    bool has_body = false;
    bool noreturn = false;
    bool unified = false; ///< .attribute(.unified(...))
    std::string_view name;
    std::vector<VariableSyntax> returns, parameters;
    std::vector<LimitSyntax> limits;
    bool is_closed = true;    ///< else the text ends inside the body
    TextPosition body;        ///< behind the `{`
    std::size_t body_end = 0; ///< behind the `}`
    SourceLocation location;

    void clear() { *this = {}; }
};

/// `@!p mul.wide.s32 d, a, b;` before a row is chosen.
struct InstructionSyntax {
    std::string_view head; ///< opcode and words as written when they stand together, else empty
    std::string_view opcode;
    std::vector<std::string_view> words;
    std::vector<OperandSyntax> operands; ///< preorder
    std::uint32_t operand_count = 0;     ///< top-level ones
    bool has_indices = false;            ///< some operand has an index
    std::string_view guard;
    bool guard_negated = false;
    SourceLocation location, guard_location;
};

} // namespace ptarmigan::ptx
