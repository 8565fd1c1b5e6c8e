// SPDX-License-Identifier: Apache-2.0
// The bound PTX module: what the parser and binder produce and every later stage reads.
// Names are resolved to indices, types and modifiers to enumerators, immediates to bits.
#pragma once

#include "frontend/isa/instruction_form.h"
#include "frontend/ptx/types.h"
#include "frontend/source/location.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptarmigan::ptx {

using RegisterId = std::uint32_t;
using VariableId = std::uint32_t; ///< index into Module::variables or Body::variables, see VariableScope
using FunctionId = std::uint32_t; ///< index into Module::functions
using LabelId = std::uint32_t;    ///< index into Body::labels
inline constexpr std::uint32_t no_id = 0xffffffffu;

enum class Linkage : std::uint8_t { internal, visible, external, weak, common };

/// A scalar register. `.reg .v4 .f32 v` becomes four of these, named v.x to v.w, with adjacent ids.
struct Register {
    std::string name;
    ScalarType type;
};

/// A place inside an initialiser that holds the address of a symbol.
struct Relocation {
    std::uint64_t offset = 0; ///< byte offset inside the variable
    std::uint8_t size = 8;    ///< bytes patched: 8, 4 or (mask() operator) 1
    std::uint8_t byte = 0;    ///< for size 1: which byte of the address
    bool generic = false;     ///< generic(symbol): convert to a generic address
    bool is_function = false;
    std::uint32_t symbol = no_id; ///< FunctionId, or VariableId at module scope
    std::int64_t addend = 0;
};

/// A variable of any space. Parameters of functions and `.param` variables of call sequences too.
struct Variable {
    std::string name;
    StateSpace space = StateSpace::none;
    ScalarType type = ScalarType::none; ///< element type
    std::uint8_t vector_size = 1;       ///< 2, 4 for .v2 .v4
    std::uint32_t alignment = 1;        ///< bytes
    std::uint64_t size = 0;             ///< bytes; 0 for an unsized extern array
    bool unsized = false;               ///< `name[]` without initialiser
    bool is_pointer = false;            ///< kernel parameter with .ptr
    StateSpace pointee_space = StateSpace::none;
    std::uint32_t pointee_alignment = 0;
    std::vector<std::uint32_t> dimensions; ///< array dimensions as written, outermost first; empty for a scalar
    std::vector<std::uint8_t> init;        ///< initial bytes; empty means zero
    std::vector<Relocation> relocations;
    Linkage linkage = Linkage::internal;
    bool managed = false; ///< .attribute(.managed)
    SourceLocation location;
};

/// `module` and `body` in bound modules. In the translator's graphs `body` gives way to the other three:
/// `frame` indexes FunctionGraph::locals, `shared` FunctionGraph::shared, `parameter` the entry's parameters.
enum class VariableScope : std::uint8_t { module, body, frame, shared, parameter };

/// One operand of an instruction, bound.
struct Operand {
    enum class Kind : std::uint8_t {
        none,         ///< an optional operand that was not written
        reg,          ///< index = RegisterId (after SSA construction: ValueId)
        imm,          ///< value = bits, converted to the operand's type
        special,      ///< index = SpecialRegister, component 0..3
        variable,     ///< address of a variable as a value: scope/index, plus value (byte offset)
        function,     ///< index = FunctionId: callee, or address of a function as a value
        label,        ///< index = LabelId
        address,      ///< [base + value], see base
        vector,       ///< elements first..first+count of Body::operand_pool (each reg, imm or sink)
        list,         ///< likewise: the parenthesised lists of `call`
        sink,         ///< `_`
        target_list,  ///< index into Body::branch_targets (brx.idx)
        call_targets, ///< index into Body::call_targets
        prototype,    ///< index into Body::prototypes
    };
    enum class Base : std::uint8_t { none, reg, variable };

    Kind kind = Kind::none;
    Base base = Base::none; ///< for address: none (absolute), reg (index = RegisterId), variable (scope/index)
    VariableScope scope = VariableScope::module;
    bool negated = false; ///< `!p` on predicates, `-a` on video operands
    ScalarType type =
        ScalarType::none;       ///< type at which the operand is read or written (from the row and the type modifiers)
    std::uint8_t component = 0; ///< special register component: x 0, y 1, z 2, w 3; of a register, its video selector:
                                ///< see isa/video_selectors.h
    std::uint32_t index = no_id;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint64_t value = 0; ///< immediate bits, or signed byte offset of an address

    bool has_elements() const { return kind == Kind::vector || kind == Kind::list; }
    std::uint32_t element_count() const { return has_elements() ? count : 1; }
};

/// One instruction of a body. operands[i] plays the role form_info(form).operands[i].role; an optional operand that was
/// not written is there with Kind::none, so operand_count is the row's. `d|p` and `[a, c]` are two operands with a role
/// each.
struct Instruction {
    static constexpr unsigned max_operands = 11;
    static constexpr unsigned max_modifiers = 12;

    FormId form{};
    std::uint8_t operand_count = 0;
    std::uint8_t modifier_count = 0;
    std::uint8_t vector_size = 1;        ///< .v2 .v4 .v8, else 1
    StateSpace space = StateSpace::none; ///< .global, .shared, ... (for .shared::cta and the like the modifier is there
                                         ///< too); generic when the row allows a space and none is written
    std::array<ScalarType, 6> types{};   ///< type modifiers in the order of the row's syntax
    std::array<Modifier, max_modifiers> modifiers{};
    std::array<Operand, max_operands> operands{};
    RegisterId guard = no_id;   ///< @p: predicate register (after SSA construction: ValueId)
    bool guard_negated = false; ///< @!p
    SourceLocation location;

    bool has(Modifier modifier) const {
        for (unsigned i = 0; i < modifier_count; ++i)
            if (modifiers[i] == modifier) return true;
        return false;
    }
    /// The modifier of `choices` that is present, or `fallback`.
    Modifier one_of(std::initializer_list<Modifier> choices, Modifier fallback = Modifier::none) const {
        for (Modifier choice : choices)
            if (has(choice)) return choice;
        return fallback;
    }
    /// The operand that plays `role` in the row; an empty one (Kind::none) if the row or the text has none.
    const Operand& operator[](Role role) const;
    Operand& operator[](Role role) { return const_cast<Operand&>(std::as_const(*this)[role]); }
    ScalarType type() const { return types[0]; }
};

struct Label {
    std::string name;
    std::uint32_t instruction = 0; ///< index of the instruction that follows it
    SourceLocation location;
};

/// A .callprototype: shapes of the parameters of an indirect call.
struct Prototype {
    std::string name;
    std::vector<Variable> returns;
    std::vector<Variable> parameters;
    bool noreturn = false;
};

/// A `.loc` directive: the high-level source of the instructions that follow.
struct SourceLine {
    std::uint32_t instruction = 0;
    std::uint32_t file = 0, line = 0, column = 0;
};

/// A function body, made when first asked for.
struct Body {
    std::vector<Register> registers;
    std::vector<Variable> variables; ///< .local .shared .param ... of the body, after the parameters:
                                     ///< returns first, then parameters, then declarations in order
    std::vector<Instruction> instructions;
    std::vector<Operand> operand_pool;
    std::vector<Label> labels;
    std::vector<std::vector<LabelId>> branch_targets;
    std::vector<std::vector<FunctionId>> call_targets;
    std::vector<Prototype> prototypes;
    std::vector<SourceLine> source_lines;
    /// Those of the above that stand in Module::thread_variables: each entry has its own, a .func would share its
    /// callers'.
    std::vector<RegisterId> thread_registers;
    std::vector<VariableId> thread_locals;
};

/// Performance and launch directives of an entry (manual section 11.4); 0 means "not given".
struct EntryLimits {
    std::array<std::uint32_t, 3> max_ntid{};
    std::array<std::uint32_t, 3> required_ntid{};
    std::array<std::uint32_t, 3> required_cluster{};
    bool explicit_cluster = false;
    std::uint32_t max_cluster_rank = 0;
    std::uint32_t max_registers = 0;
    std::uint32_t min_ctas_per_sm = 0;
    bool blocks_are_clusters = false;
};

struct Function {
    std::string name;
    bool is_entry = false;
    bool is_declaration = false; ///< no body here
    bool noreturn = false;
    bool parameters_in_body = false; ///< an entry before PTX 1.4: no list, but .param variables of its body
    Linkage linkage = Linkage::internal;
    std::vector<Variable> returns;    ///< for bodies these are also Body::variables[0..)
    std::vector<Variable> parameters; ///< and these follow. For an entry: `offset` is computed by parameter_offsets()
    EntryLimits limits;
    std::string alias_of; ///< .alias
    SourceLocation location;
};

/// Byte offsets of the parameters of an entry, in order, and the total size: natural alignment, declaration order.
struct ParameterLayout {
    std::vector<std::uint32_t> offsets;
    std::uint32_t size = 0;
    std::uint32_t alignment = 1; ///< of the whole, bytes: the largest of a parameter
};
ParameterLayout parameter_layout(const Function& entry);

/// What `.target` says: "sm_90a" is number 90, suffix 'a'.
struct Target {
    std::uint32_t sm = 0;
    char suffix = 0; ///< 'a', 'f' or 0
    bool debug = false, texmode_independent = false;
};

/// A PTX version as written: 9.0 is {9, 0}.
struct Version {
    std::uint8_t major = 0, minor = 0;
    auto operator<=>(const Version&) const = default;
};

/// The whole module. Bodies are bound on demand (see frontend/module_loader.h) and then stay.
struct Module {
    std::string name; ///< for diagnostics
    Version version;
    SourceLocation version_location; ///< of the number behind .version
    Target target;
    unsigned address_size = 64;
    std::vector<Variable> variables; ///< module scope: .global .const .shared (extern too) .tex ...
    std::vector<Function> functions;
    std::vector<std::string> files; ///< .file table, index as written
    /// .reg and .local at module scope, before PTX 3.0; "name<count>" where a range is declared. For the printer:
    /// bodies have those that they use among their own.
    std::vector<Variable> thread_variables;

    std::optional<FunctionId> find_function(std::string_view name) const;
    std::optional<VariableId> find_variable(std::string_view name) const;
};

} // namespace ptarmigan::ptx
