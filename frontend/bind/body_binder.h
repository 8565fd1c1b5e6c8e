// SPDX-License-Identifier: Apache-2.0
// One function body: statements to Body, names to indices, instructions to rows with typed
// operands.
#pragma once

#include "frontend/bind/bound_shape.h"
#include "frontend/bind/constant_bits.h"
#include "frontend/bind/module_binder.h"
#include "frontend/isa/form_matcher.h"
#include "frontend/isa/special_registers.h"
#include "frontend/parse/statement_parser.h"

#include <initializer_list>
#include <memory>
#include <unordered_set>

namespace ptarmigan::ptx {

/// A name as messages show it: in quotes, cut where it grows too long.
inline std::string quoted(std::string_view name) {
    return "'" + std::string(name.substr(0, 80)) + "'";
}

/// What bodies of one module have in common and one thread at a time has learnt of them: heads and shapes of
/// instructions.
struct BindingMemory {
    FormMatcher matcher;
    ShapeMemory shapes;
    /// Where bodies grow: each is then copied to memory of its size, instead of moving while it grows.
    std::vector<Instruction> instructions;
    std::vector<Register> registers;
};

class BodyBinder {
public:
    BodyBinder(const ModuleContext& context, BindingMemory& memory, Diagnostics& diagnostics)
        : context_(context), memory_(memory), matcher_(memory.matcher), shapes_(memory.shapes),
          diagnostics_(diagnostics) {}

    /// Binds the body of a defined function. Errors are reported; the body is then incomplete.
    Body bind(FunctionId function);

private:
    [[noreturn]] void fail(SourceLocation at, std::string text);
    /// Likewise, of a name: ptxas reports what is wrong with names where they stand.
    [[noreturn]] void fail_there(SourceLocation at, std::string text);
    void warn(SourceLocation at, std::string text);
    SourceLocation place_of(SourceLocation at, std::string& text) const;
    /// For a name that nothing declares; reported once per body.
    [[noreturn]] void fail_unknown(SourceLocation at, std::string_view name);
    /// What may have been meant: " (did you mean '%r1'?)", or empty.
    std::string meant_by(std::string_view name) const;
    bool may_search() const;

    // --- scopes and declarations (body_binder.cpp)
    // ------------------------------------------------------------------
    void declare_parameters(const Function& function);
    void check_cta_groups();
    void statements();
    void statement(StatementParser::Kind kind);
    void open_scope() { scopes_.emplace_back(); }
    void close_scope();
    void declare(std::string_view name, const Symbol& symbol, SourceLocation at);
    void declare_variables();
    Symbol add_variables(const Variable& variable, std::uint64_t count, const DeclaratorSyntax& d);
    Symbol static_symbol(std::uint64_t count, const DeclaratorSyntax& d);
    void check_register_type(const VariableSyntax& syntax);
    void declare_registers();
    void declare_old_parameters();
    Symbol declare_per_thread(const PerThreadVariable& variable, std::string_view name);
    std::uint32_t add_registers(std::string_view name, ScalarType type, unsigned vector_size);
    void declare_label();
    void branch_targets();
    void call_targets();
    void prototype();
    void resolve_labels(Scope& scope, Scope* outer);
    Symbol find(std::string_view name);
    bool is_declared_above(std::string_view key) const;
    bool is_vector_register(std::string_view name);

    // --- instructions (instruction_binder.cpp)
    static constexpr Version first_without_implied_words{1, 4};
    void add_implied_word();
    // ----------------------------------------------------------------------
    void instruction();
    void instruction_with_preparations();
    void drop_half_bound(std::size_t pool);
    void bind_hidden(Role role, const Instruction& inst, Operand& out);
    void bind_in_full(const FormMatcher::Head& head, const Shape& shape);
    [[noreturn]] void fail_words(const InstructionSyntax& syntax);
    const HeadMatch& choose_form(const std::vector<HeadMatch>& heads, OperandNodes& nodes);
    bool available(FormId form) const;
    void require_available(FormId form);
    void check_words(const HeadMatch& head);
    void warn_of_overlooked_words(const HeadMatch& head);
    void check_vector_width(const HeadMatch& head);
    void check_address_size(const HeadMatch& head);
    void report_unknown_registers();
    void bind_guard(Instruction& out);
    RegisterId carry_flag();

    // --- instructions like others before (shape_binder.cpp)
    // ------------------------------------------------------------------------------------
    Shape shape_of_instruction();
    bool add_node(const OperandSyntax& node, bool in_bracket, Shape& shape);
    bool is_own_parameter(VariableId id) const;
    bool is_own_result(VariableId id) const;
    void bind_alike(const BoundShape& known, const Shape& shape);

    // --- parameters in registers (register_parameters.cpp)
    // ------------------------------------------------------------------------------------
    /// An instruction that the text leaves to the assembler, without operands.
    Instruction& append(std::string_view opcode, const std::vector<std::string_view>& words);
    /// Under a guard, if it is not no_id; so with move_value, which is for all types but predicates.
    void move_parameter(bool loads, std::uint32_t id, RegisterId first, RegisterId guard, bool negated);
    void move_value(bool loads, std::uint32_t id, RegisterId first, RegisterId guard, bool negated);
    void load_register_parameters();
    void store_register_results(RegisterId guard, bool guard_negated);
    void before_return();

    // --- elements of arrays (array_element.cpp)
    // ------------------------------------------------------------------------------------
    void resolve_array_elements();
    const Variable& array_of(const OperandSyntax& node);
    void index_by_register(OperandSyntax& node, const Variable& array, const std::vector<HeadMatch>& heads,
                           bool is_memory_operand);
    Operand index_value(const OperandSyntax& node);
    /// The name of a register with the address of an element; `bits` is the least that it has.
    std::string_view element_address(const OperandSyntax& node, const Variable& array, bool generic, unsigned bits);
    /// A name for a register that no text can spell.
    std::string_view hidden_name(RegisterId id);
    void resolve_special_guard();
    /// Appends `opcode.words d, sources` with a new register of `type` for d.
    RegisterId compute(std::string_view opcode, std::initializer_list<std::string_view> words, ScalarType type,
                       std::initializer_list<Operand> sources);

    // --- operands made by instructions of their own (prepared_operand.cpp)
    // ------------------------------------------------------------------------------------
    /// Thrown while an instruction is bound: what to append before it is bound again.
    struct Preparation {
        enum class Kind : std::uint8_t { sum, address, argument } kind;
        std::size_t node;                 ///< of the instruction's operands
        bool wide = false;                ///< address: 64 bits are needed
        const Variable* formal = nullptr; ///< argument: the parameter it is for
        bool is_result = false;
    };
    std::size_t node_of(const OperandSyntax& syntax) const;
    void prepare(const Preparation& what);
    void prepare_sum(std::size_t node);
    void prepare_address(std::size_t node, bool wide);
    void prepare_argument(std::size_t node, const Variable& formal, bool is_result);
    void load_results_of_call();

    // --- calls (call_binder.cpp)
    // ------------------------------------------------------------------------------------
    struct Signature {
        bool known = false;
        const std::vector<Variable>* returns = nullptr;
        const std::vector<Variable>* parameters = nullptr;
    };
    void bind_call(const OperandNodes& nodes, Instruction& out);
    void apply_callee(const Operand& callee, SourceLocation at, Signature& signature);
    void bind_call_list(std::size_t node, const std::vector<Variable>& formals, bool is_destination, Operand& out);
    void bind_argument(const OperandSyntax& node, const Variable& formal, bool is_destination, Operand& out);

    // --- operands (operand_binder.cpp, address_binder.cpp, list_binder.cpp, reference_binder.cpp)
    // ------------------------------------------------------------------------------
    /// What an operand is to be bound as.
    struct Want {
        ScalarType type = ScalarType::none;
        Constraint::Kind kind = Constraint::Kind::any;
        bool is_destination = false;
        bool wider = false; ///< registers may have more bits than the type
        SelectorRule selector = SelectorRule::none;
        bool untyped = false;      ///< registers of .b types only, no constants
        bool or_predicate = false; ///< a predicate will do as well
        bool any_class = false;    ///< .bf16 and .bf16x2 are in any register of their size
        bool in_vector = false;    ///< an element of a vector
        bool is_element = false;   ///< among registers in braces, or an argument: real constants go with integers
        ElementRule element_rule = ElementRule::converted;
        /// Type of a list's first element where it differs: the index into an array of textures.
        ScalarType first_element = ScalarType::none;
        bool may_sink = false;   ///< `_` may stand for a result that is not wanted
        bool must_sink = false;  ///< and must
        std::string_view values; ///< constants allowed; empty: all
    };
    static bool fits(ScalarType have, const Want& want);
    Want want_of(const OperandPattern& pattern, const HeadMatch& match) const;
    void bind_operand(const OperandPattern& pattern, const HeadMatch& match, std::size_t node, Operand& out);
    void bind_value(const OperandSyntax& node, const Want& want, Operand& out);
    void bind_comparison(const OperandSyntax& node, const Want& want, const HeadMatch& match, Operand& out);
    void bind_name(const OperandSyntax& node, const Want& want, Operand& out);
    void check_address(const OperandSyntax& node, const Symbol& symbol);
    bool is_parameter(const Symbol& symbol) const;
    void bind_register(const OperandSyntax& node, const Symbol& symbol, const Want& want, Operand& out);
    void check_special(const OperandSyntax& node, const SpecialRegisterInfo& info, const Want& want);
    bool bind_special(const OperandSyntax& node, const Want& want, Operand& out);
    void bind_constant(const OperandSyntax& node, const Want& want, Operand& out);
    void bind_address(const OperandSyntax& node, const OperandPattern& pattern, const HeadMatch& match, Operand& out);
    void check_space(const OperandSyntax& node, const Symbol& symbol, const HeadMatch& match, StateSpace space);
    ScalarType handle_type(const OperandPattern& pattern, const HeadMatch& match) const;
    void check_handle(const OperandSyntax& node, const Symbol& symbol, const OperandPattern& pattern,
                      const HeadMatch& match);
    void check_handle_register(const OperandSyntax& node, const Symbol& symbol);
    void gate_handle(const OperandSyntax& node, std::string_view what);
    /// `subject` begins the message: what it is that has 32 bits only.
    void require_wide_address(SourceLocation at, StateSpace space, const std::string& subject);
    struct ElementKinds {
        bool names = false, integers = false, singles = false, reals = false; ///< singles: 0f and its digits
    };
    ElementKinds element_kinds(std::size_t node) const;
    void bind_elements(std::size_t node, const Want& want, unsigned count, Operand& out);
    void require_alike(const std::vector<Operand>& elements, SourceLocation at);
    void bind_list(std::size_t node, const Want& want, unsigned size, Operand& out);
    bool bind_special_vector(const OperandSyntax& node, const Want& want, Operand& out);
    void bind_vector_register(const OperandSyntax& node, const Symbol& symbol, const Want& want, Operand& out);
    void bind_selector(const OperandSyntax& node, const Want& want, Operand& out);
    void check_copied_size(const Instruction& instruction);
    void check_fraction(const Instruction& instruction);
    void check_selected_destination(const Instruction& instruction);
    void check_unified(const OperandSyntax& bracket, const OperandSyntax& address, const HeadMatch& match);
    void bind_label(const OperandSyntax& node, Operand& out);
    void bind_function(const OperandSyntax& node, Operand& out);
    void bind_named_list(const OperandSyntax& node, Constraint::Kind kind, Operand& out);
    const OperandSyntax& node(std::size_t index) const { return parser_->instruction.operands[index]; }

    const ModuleContext& context_;
    BindingMemory& memory_;
    FormMatcher& matcher_;
    ShapeMemory& shapes_;
    Diagnostics& diagnostics_;
    const Function* function_ = nullptr;
    bool is_implied_ = false;          ///< a word of the instruction: rows of PTX 1.4 stand for older ones
    std::size_t body_start_ = 0;       ///< in the text
    std::uint32_t old_parameters_ = 0; ///< that were declared in the body so far
    VariableRange static_variables_;   ///< that were not
    Body body_;
    std::vector<Scope> scopes_;
    StatementParser* parser_ = nullptr;
    bool has_vector_registers_ = false;
    RegisterId carry_flag_ = no_id;
    std::vector<std::pair<std::uint32_t, RegisterId>> results_of_call_; ///< variables, and registers to load them to
    std::vector<std::unique_ptr<std::string>> hidden_names_;            ///< of computed registers, in scopes_
    std::unordered_set<std::string_view> unknown_names_;
    bool gave_up_on_name_ = false; ///< fail_unknown() ended the instruction at hand
    // Of the instruction at hand:
    SourceLocation statement_; ///< of the instruction at hand, else nowhere
    bool warned_ = false;
    std::uint32_t operand_index_ = 0;
};

} // namespace ptarmigan::ptx
