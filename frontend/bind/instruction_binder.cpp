// SPDX-License-Identifier: Apache-2.0
// One instruction: choice of its row, gates of version and target, guard, operands in the row's
// order.
#include "frontend/bind/body_binder.h"
#include "frontend/isa/explain.h"
#include "frontend/isa/special_registers.h"
#include "frontend/isa/targets.h"
#include "frontend/isa/word_rules.h"

namespace ptarmigan::ptx {

bool BodyBinder::available(FormId form) const {
    const FormPattern& pattern = FormTable::get().pattern(form);
    const FormInfo& info = *pattern.info;
    const Target& target = context_.module.target;
    const Version version = is_implied_ ? first_without_implied_words : context_.module.version;
    if (version < Version{info.ptx_major, info.ptx_minor}) return false;
    if (!pattern.arch_specific) return target.sm >= info.min_sm;
    return has_target(info.targets, target.sm, target.suffix);
}

void BodyBinder::require_available(FormId form) {
    if (available(form)) return;
    const FormInfo& info = form_info(form);
    const Module& module = context_.module;
    const InstructionSyntax& syntax = parser_->instruction;
    std::string text(syntax.opcode);
    for (std::string_view word : syntax.words) text += "." + std::string(word);
    const std::string missing = lacking({info.ptx_major, info.ptx_minor}, info.targets, module.version, module.target);
    text = quoted(text) + " needs " + missing;
    const std::string words = broken_word_rule(syntax.opcode, syntax.words, module.version, module.target);
    const bool says_more = !words.empty() && words.find(missing) == std::string::npos;
    if (says_more) text += "; " + words;
    if (diagnostics_.is_full()) fail(syntax.location, text);
    std::vector<FormId> here;
    for (const FormId row : FormTable::get().rows_of(syntax.opcode))
        if (available(row)) here.push_back(row);
    const std::string other = explain_other_sign(syntax, here);
    fail(syntax.location, other.empty() ? text : text + "; " + other);
}

/// Once per spelling: the answer is the same for the whole module.
void BodyBinder::check_words(const HeadMatch& head) {
    if (head.words_checked) return;
    const InstructionSyntax& syntax = parser_->instruction;
    const std::string misplaced = misplaced_word(syntax.opcode, syntax.words);
    if (!misplaced.empty()) fail(syntax.location, misplaced);
    std::vector<std::string_view> words; // without those overlooked
    for (std::size_t i = 0; i < syntax.words.size(); ++i)
        if (i >= 32 || (head.overlooked >> i & 1) == 0) words.push_back(syntax.words[i]);
    const std::string broken = broken_word_rule(syntax.opcode, words, context_.module.version, context_.module.target);
    if (!broken.empty()) fail(syntax.location, broken);
    head.result_is_sink = result_must_sink(syntax.opcode, words);
    head.words_checked = true;
}

void BodyBinder::warn_of_overlooked_words(const HeadMatch& head) {
    const InstructionSyntax& syntax = parser_->instruction;
    for (std::size_t i = 0; i < syntax.words.size() && i < 32; ++i)
        if ((head.overlooked >> i & 1) != 0)
            warn(syntax.location, "'." + std::string(syntax.words[i]) + "' has no meaning for this " +
                                      quoted(syntax.opcode) + " and is overlooked, as by ptxas");
}

/// Vectors of 256 bits are younger than the rows they belong to.
void BodyBinder::check_vector_width(const HeadMatch& head) {
    if (head.vector_size * bit_size(head.types[0]) <= 128) return;
    const Module& module = context_.module;
    if (head.vector_size * bit_size(head.types[0]) > 256)
        fail(parser_->instruction.location, "a vector holds up to 256 bits");
    if (module.version < Version{8, 8} || module.target.sm < 100)
        fail(parser_->instruction.location, "vectors of 256 bits need .version 8.8 and .target sm_100 or later");
}

/// Generic addresses are as wide as the module says; ptxas 13 makes none of 32 bits any more.
void BodyBinder::check_address_size(const HeadMatch& head) {
    if (context_.module.address_size == 64 && head.types[0] == ScalarType::u32 && form_info(head.form).opcode == "cvta")
        fail(parser_->instruction.location, "generic addresses have 64 bits in this module");
}

namespace {

/// Where `word` of an instruction stands: its dot. The words are parts of the text, as the opcode is.
SourceLocation word_location(const InstructionSyntax& syntax, std::string_view word) {
    SourceLocation at = syntax.location;
    const char* first = syntax.head.empty() ? syntax.opcode.data() : syntax.head.data();
    for (const char* c = first; c < word.data() - 1; ++c)
        at = *c == '\n' ? SourceLocation{at.line + 1, 1} : SourceLocation{at.line, at.column + 1};
    return at;
}

} // namespace

/// The message points to the word that it is about; what is no word at all is reported in its own line, as ptxas does.
void BodyBinder::fail_words(const InstructionSyntax& syntax) {
    if (diagnostics_.is_full()) fail(syntax.location, {});
    const Explanation why = explain_words(syntax);
    if (why.word.empty()) fail(syntax.location, why.text);
    const SourceLocation at = word_location(syntax, why.word);
    if (why.unknown) fail_there(at, why.text);
    fail(at, why.text);
}

const HeadMatch& BodyBinder::choose_form(const std::vector<HeadMatch>& heads, OperandNodes& nodes) {
    const InstructionSyntax& syntax = parser_->instruction;
    if (heads.empty()) fail_words(syntax);
    const HeadMatch* unavailable = nullptr;
    for (const HeadMatch& head : heads) {
        const auto is_vector = [&](std::string_view name) {
            return is_vector_register(name) || (head.vector_size == 4 && is_special_vector(name));
        };
        if (!FormMatcher::operands_fit(head, syntax, is_vector, nodes)) continue;
        if (head.words_checked) return head;
        if (available(head.form)) {
            check_words(head);
            return head;
        }
        if (unavailable == nullptr) unavailable = &head;
    }
    if (unavailable != nullptr) require_available(unavailable->form);
    fail(syntax.location, diagnostics_.is_full() ? std::string() : explain_operands(heads, syntax));
}

/// `div.f32` is div.approx.f32 before PTX 1.4.
void BodyBinder::add_implied_word() {
    is_implied_ = false;
    InstructionSyntax& syntax = parser_->instruction;
    const std::string_view implied = implied_word(syntax.opcode, syntax.words, context_.module.version);
    if (implied.empty() || !matcher_.find(syntax).matches.empty()) return;
    const InstructionSyntax written = syntax;
    syntax.words.insert(syntax.words.begin(), implied);
    syntax.head = {};
    is_implied_ = !matcher_.find(syntax).matches.empty();
    if (!is_implied_) syntax = written; // for the message
}

void BodyBinder::instruction() {
    if (context_.module.version < first_without_implied_words) add_implied_word();
    const FormMatcher::Head& head = matcher_.find(parser_->instruction);
    const Shape shape = shape_of_instruction();
    const BoundShape* known = shape.nodes == 0 ? nullptr : shapes_.find(head.number, shape.key);
    known != nullptr ? bind_alike(*known, shape) : bind_in_full(head, shape);
}

void BodyBinder::bind_in_full(const FormMatcher::Head& words, const Shape& shape) {
    OperandNodes nodes;
    warned_ = false;
    const HeadMatch& head = choose_form(words.matches, nodes);
    const auto patterns = FormTable::get().pattern(head.form).operands;

    if (head.overlooked != 0) warn_of_overlooked_words(head);
    check_vector_width(head);
    check_address_size(head);
    const std::size_t pool = body_.operand_pool.size();
    Instruction& out = body_.instructions.emplace_back();
    out.form = head.form;
    out.location = parser_->instruction.location;
    out.space = head.space;
    out.vector_size = head.vector_size;
    out.types = head.types;
    out.modifiers = head.modifiers;
    out.modifier_count = head.modifier_count;
    out.operand_count = static_cast<std::uint8_t>(patterns.size());
    try {
        if (!parser_->instruction.guard.empty()) bind_guard(out);
        if (any(form_info(head.form).effects, Effects::call)) return bind_call(nodes, out);
        for (std::size_t i = 0; i < patterns.size(); ++i) {
            operand_index_ = static_cast<std::uint32_t>(i);
            if (patterns[i].form == OperandPattern::Form::hidden) {
                bind_hidden(patterns[i].role, out, out.operands[i]);
            } else if (nodes[i] >= 0) {
                bind_operand(patterns[i], head, static_cast<std::size_t>(nodes[i]), out.operands[i]);
            }
        }
        if (patterns.size() > 0) check_selected_destination(out);
        if (patterns.size() > 3) check_copied_size(out);
        if (patterns.size() == 2) check_fraction(out);
        // What is warned of is warned of each time, and constants that are compared are compared each time.
        const std::string_view opcode = form_info(head.form).opcode;
        if (shape.nodes != 0 && !warned_ && opcode != "cp" && opcode != "createpolicy")
            shapes_.add(words.number,
                        BoundShape(shape, parser_->instruction.operands, nodes, out, body_.operand_pool, pool));
    } catch (const Recover&) {
        report_unknown_registers();
        results_of_call_.clear();
        drop_half_bound(pool);
        throw;
    } catch (const Preparation&) {
        drop_half_bound(pool);
        throw;
    }
}

/// What the text does not have: the carry flag, or the registers of the first operand as they are before. Those of a
/// wait_group are for others to say.
void BodyBinder::bind_hidden(Role role, const Instruction& inst, Operand& out) {
    const bool is_carry = role == Role::cc_in || role == Role::cc_out;
    if (is_carry) {
        out.kind = Operand::Kind::reg;
        out.type = ScalarType::pred;
        out.index = carry_flag();
    } else if (inst.operands[0].kind == Operand::Kind::vector) {
        out = inst.operands[0];
    }
}

/// Keeps label positions right, but leaves nothing half bound behind; `pool` is the size that the pool of operands had.
/// Label uses of it would patch another instruction.
void BodyBinder::drop_half_bound(std::size_t pool) {
    std::erase_if(scopes_.back().label_uses, [&](const Scope::LabelUse& use) {
        return !use.in_target_list && use.where + 1 == body_.instructions.size();
    });
    body_.instructions.pop_back();
    body_.operand_pool.resize(pool);
}

void BodyBinder::instruction_with_preparations() {
    for (;;) {
        try {
            instruction();
            if (!results_of_call_.empty()) load_results_of_call();
            return;
        } catch (const Preparation& what) { // each one rewrites an operand: no end of them is no danger
            prepare(what);
        }
    }
}

/// The other registers that nothing declares, if one was the reason to give up: all in one run.
void BodyBinder::report_unknown_registers() {
    if (!gave_up_on_name_) return;
    for (const OperandSyntax& operand : parser_->instruction.operands) {
        if (operand.kind != OperandSyntax::Kind::name || !operand.name.starts_with('%')) continue;
        if (find(operand.name).kind != Symbol::Kind::none || find_special_register(operand.name).found) continue;
        try {
            fail_unknown(operand.location, operand.name);
        } catch (const Recover&) { // goes on with the next one
        }
    }
    gave_up_on_name_ = false;
}

void BodyBinder::bind_guard(Instruction& out) {
    const InstructionSyntax& syntax = parser_->instruction;
    const Symbol symbol = find(syntax.guard);
    if (symbol.kind == Symbol::Kind::none && !find_special_register(syntax.guard).found)
        fail_unknown(syntax.guard_location, syntax.guard);
    if (symbol.kind != Symbol::Kind::reg || symbol.vector_size != 1 ||
        body_.registers[symbol.index].type != ScalarType::pred)
        fail(syntax.guard_location, "the guard '" + std::string(syntax.guard) + "' is not a predicate register");
    out.guard = symbol.index;
    out.guard_negated = syntax.guard_negated;
}

/// The condition code register (manual 9.7.2) is a register like any other to the later stages.
RegisterId BodyBinder::carry_flag() {
    if (carry_flag_ == no_id) {
        carry_flag_ = static_cast<RegisterId>(body_.registers.size());
        body_.registers.push_back({"%cc.cf", ScalarType::pred});
    }
    return carry_flag_;
}

} // namespace ptarmigan::ptx
