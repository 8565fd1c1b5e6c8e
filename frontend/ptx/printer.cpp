// SPDX-License-Identifier: Apache-2.0
// Module, body or instruction as PTX text. Scopes are gone after binding, so names that occur in
// several of them get a suffix.
#include "frontend/isa/form_pattern.h"
#include "frontend/isa/special_registers.h"
#include "frontend/isa/video_selectors.h"
#include "frontend/isa/word_rules.h"
#include "frontend/module_loader.h"
#include "frontend/ptx/declaration_printer.h"

#include <algorithm>
#include <unordered_set>

namespace ptarmigan::ptx {

namespace {

/// Names of a body that are unique in it.
struct BodyNames {
    std::vector<std::string> registers, variables, labels, prototypes;
};

class Naming {
public:
    std::string unique(const std::string& name) {
        if (taken_.insert(name).second) return name;
        for (;;) {
            std::string candidate = name + "$" + std::to_string(++next_);
            if (taken_.insert(candidate).second) return candidate;
        }
    }
    /// For `v.x`, whose last two characters name the component.
    std::string unique_vector(const std::string& first) { return unique(first.substr(0, first.size() - 2)); }

private:
    std::unordered_set<std::string> taken_;
    unsigned next_ = 0;
};

bool starts_vector(const std::vector<Register>& registers, std::size_t i) {
    return registers[i].name.ends_with(".x") && i + 1 < registers.size() && registers[i + 1].name.ends_with(".y");
}
std::size_t vector_length(const std::vector<Register>& registers, std::size_t i) {
    return i + 3 < registers.size() && registers[i + 2].name.ends_with(".z") ? 4 : 2;
}

BodyNames unique_names(const Body& body) {
    BodyNames names;
    Naming naming;
    for (const Variable& v : body.variables)
        names.variables.push_back(v.space == StateSpace::reg ? v.name : naming.unique(v.name));
    for (std::size_t i = 0; i < body.registers.size();) {
        if (!starts_vector(body.registers, i)) {
            names.registers.push_back(naming.unique(body.registers[i++].name));
            continue;
        }
        const std::string base = naming.unique_vector(body.registers[i].name);
        for (std::size_t n = vector_length(body.registers, i), c = 0; c < n; ++c, ++i)
            names.registers.push_back(base + "." + "xyzw"[c]);
    }
    for (const Label& l : body.labels) names.labels.push_back(naming.unique(l.name));
    for (const Prototype& p : body.prototypes) names.prototypes.push_back(naming.unique(p.name));
    return names;
}

/// Names as declared: good enough for a message about one instruction.
BodyNames plain_names(const Body& body) {
    BodyNames names;
    for (const Variable& v : body.variables) names.variables.push_back(v.name);
    for (const Register& r : body.registers) names.registers.push_back(r.name);
    for (const Label& l : body.labels) names.labels.push_back(l.name);
    for (const Prototype& p : body.prototypes) names.prototypes.push_back(p.name);
    return names;
}

class InstructionPrinter {
public:
    InstructionPrinter(const Module& module, const Body& body, const BodyNames& names)
        : module_(module), body_(body), names_(names) {}

    std::string print(const Instruction& inst) const {
        std::string text;
        if (inst.guard != no_id)
            text = std::string("@") + (inst.guard_negated ? "!" : "") + names_.registers[inst.guard] + " ";
        const FormPattern& pattern = FormTable::get().pattern(inst.form);
        text += std::string(pattern.info->opcode) + words(pattern, inst);
        return text + operands(pattern, inst) + ";";
    }

private:
    std::string words(const FormPattern& pattern, const Instruction& inst) const {
        std::string text;
        unsigned modifier = 0;
        bool space_done = false;
        for (const WordSlot& slot : pattern.slots) {
            auto has = [&](Word word) {
                return std::find(slot.choices.begin(), slot.choices.end(), word) != slot.choices.end();
            };
            Word word;
            if (slot.type_index >= 0) {
                const ScalarType type =
                    slot.type_index < 6 ? inst.types[static_cast<std::size_t>(slot.type_index)] : ScalarType::none;
                if (type != ScalarType::none) word = {Word::Kind::type, static_cast<std::uint16_t>(type)};
            } else if (modifier < inst.modifier_count &&
                       has({Word::Kind::modifier, static_cast<std::uint16_t>(inst.modifiers[modifier])})) {
                word = {Word::Kind::modifier, static_cast<std::uint16_t>(inst.modifiers[modifier++])};
                space_done = space_done || slot.is_space;
            } else if (slot.is_space && !space_done) {
                space_done = true;
                if (has({Word::Kind::space, static_cast<std::uint16_t>(inst.space)}))
                    word = {Word::Kind::space, static_cast<std::uint16_t>(inst.space)};
            } else if (slot.literal && !slot.optional) {
                word = slot.choices[0];
            } else if (inst.vector_size > 1 && has({Word::Kind::vector, inst.vector_size})) {
                word = {Word::Kind::vector, inst.vector_size};
            }
            if (word.kind != Word::Kind::unknown && !is_only_meant(pattern, inst, word))
                text += "." + std::string(spelling(word));
        }
        return text;
    }

    /// What the binder adds in texts whose version has no such word: .ftz, and what word_rules.def has as IMPLIES.
    bool is_only_meant(const FormPattern& pattern, const Instruction& inst, Word word) const {
        if (module_.version >= Version{1, 4}) return false;
        constexpr Word ftz{Word::Kind::modifier, static_cast<std::uint16_t>(Modifier::ftz)};
        if (word == ftz) return true;
        if (module_.version >= Version{pattern.info->ptx_major, pattern.info->ptx_minor}) return false;
        const std::string_view type = spelling(inst.types[0]);
        return spelling(word) == implied_word(pattern.info->opcode, {&type, 1}, module_.version);
    }

    std::string operands(const FormPattern& pattern, const Instruction& inst) const {
        using Form = OperandPattern::Form;
        std::string text;
        const char* separator = " ";
        for (std::size_t i = 0; i < pattern.operands.size(); ++i) {
            const OperandPattern& p = pattern.operands[i];
            const Operand& operand = inst.operands[i];
            if (p.form == Form::hidden || (operand.kind == Operand::Kind::none && p.form != Form::bracket_first))
                continue;
            if (p.form == Form::bracket_first && operand.kind == Operand::Kind::none) continue;
            text += p.form == Form::pair_second ? "|" : separator;
            separator = ", ";
            if (p.form == Form::bracket_first) text += "[";
            text += operand_text(operand, p);
            const bool more = i + 1 < pattern.operands.size() && pattern.operands[i + 1].form == Form::bracket_next &&
                              inst.operands[i + 1].kind != Operand::Kind::none;
            if ((p.form == Form::bracket_first || p.form == Form::bracket_next) && !more) text += "]";
        }
        return text;
    }

    std::string operand_text(const Operand& operand, const OperandPattern& pattern) const {
        std::string text;
        if (operand.negated) text = pattern.may_negate ? "-" : "!";
        return text + value_text(operand);
    }

    const std::string& variable_name(const Operand& operand) const {
        return operand.scope == VariableScope::body ? names_.variables[operand.index]
                                                    : module_.variables[operand.index].name;
    }

    std::string elements(const Operand& operand, char open, char close) const {
        std::string text(1, open);
        for (std::uint32_t i = 0; i < operand.count; ++i)
            text += (i == 0 ? "" : ", ") + value_text(body_.operand_pool[operand.first + i]);
        return text + close;
    }

    std::string value_text(const Operand& operand) const {
        using Kind = Operand::Kind;
        switch (operand.kind) {
        case Kind::none: return "";
        case Kind::reg: {
            const std::string selector = spelling(VideoSelector{operand.component, operand.value});
            return names_.registers[operand.index] + (selector.empty() ? "" : "." + selector);
        }
        case Kind::imm: return constant_text(operand.value, operand.type);
        case Kind::special:
            return special_register_text(static_cast<SpecialRegister>(operand.index), operand.component);
        case Kind::variable: return variable_name(operand) + offset_text(operand.value);
        case Kind::function: return module_.functions[operand.index].name;
        case Kind::label: return names_.labels[operand.index];
        case Kind::address:
            if (operand.base == Operand::Base::none) return std::to_string(operand.value);
            return (operand.base == Operand::Base::reg ? names_.registers[operand.index] : variable_name(operand)) +
                   offset_text(operand.value);
        case Kind::vector: return elements(operand, '{', '}');
        case Kind::list: return elements(operand, '(', ')');
        case Kind::sink: return "_";
        case Kind::target_list: return "$targets_" + std::to_string(operand.index);
        case Kind::call_targets: return "$callees_" + std::to_string(operand.index);
        case Kind::prototype: return names_.prototypes[operand.index];
        }
        return "";
    }

    const Module& module_;
    const Body& body_;
    const BodyNames& names_;
};

class ModulePrinter {
public:
    explicit ModulePrinter(ModuleLoader& loader) : loader_(loader), module_(loader.module()) {}

    std::string print() {
        text_ = module_header(module_);
        for (std::size_t i = 0; i < module_.files.size(); ++i)
            if (!module_.files[i].empty()) line(".file " + std::to_string(i) + " \"" + module_.files[i] + "\"");
        // Functions may be named in initialisers and variables in bodies: heads first, bodies last.
        for (const Function& f : module_.functions) line(function_head(f, false) + ";");
        for (const Variable& v : module_.thread_variables) line(variable_declaration(v, v.name) + ";");
        for (const Variable& v : module_.variables)
            line(module_variable_declaration(module_.version, v) + variable_initializer(module_, v) + ";");
        for (const Function& f : module_.functions)
            if (!f.alias_of.empty()) line(".alias " + f.name + ", " + f.alias_of + ";");
        for (FunctionId f = 0; f < module_.functions.size(); ++f)
            if (!module_.functions[f].is_declaration) body(f);
        return std::move(text_);
    }

private:
    void line(const std::string& text) { text_ += text + "\n"; }

    void body(FunctionId id) {
        const Function& function = module_.functions[id];
        const Body& body = loader_.body(id);
        const BodyNames names = unique_names(body);
        line(function_head(function, true));
        line("{");
        declarations(function, body, names);
        const InstructionPrinter printer(module_, body, names);
        std::vector<std::vector<std::size_t>> labels_at(body.instructions.size() + 1);
        for (std::size_t i = 0; i < body.labels.size(); ++i) labels_at[body.labels[i].instruction].push_back(i);
        std::size_t next_line = 0;
        for (std::size_t i = 0; i <= body.instructions.size(); ++i) {
            for (std::size_t label : labels_at[i]) line(names.labels[label] + ":");
            for (; next_line < body.source_lines.size() && body.source_lines[next_line].instruction == i; ++next_line) {
                const SourceLine& l = body.source_lines[next_line];
                line("\t.loc " + std::to_string(l.file) + " " + std::to_string(l.line) + " " +
                     std::to_string(l.column));
            }
            if (i < body.instructions.size() && !moves_parameter(function, body, i))
                line("\t" + printer.print(body.instructions[i]));
        }
        line("}");
    }

    /// The parameter or result in a register that the instruction moves to or from memory, which is the binder's own
    /// doing; or null.
    static const Variable* moved_parameter(const Function& function, const Instruction& inst) {
        for (const Operand& operand : inst.operands) {
            if (operand.kind != Operand::Kind::address || operand.base != Operand::Base::variable ||
                operand.scope != VariableScope::body)
                continue;
            const std::size_t returns = function.returns.size();
            if (operand.index >= returns + function.parameters.size()) continue;
            const Variable& formal = operand.index < returns ? function.returns[operand.index]
                                                             : function.parameters[operand.index - returns];
            return formal.space == StateSpace::reg ? &formal : nullptr;
        }
        return nullptr;
    }
    static bool moves_predicate(const Function& function, const Instruction& inst) {
        const Variable* formal = moved_parameter(function, inst);
        return formal != nullptr && formal->type == ScalarType::pred;
    }

    /// A move, or what stands beside that of a predicate: the test of the byte that was loaded, the byte that will be
    /// stored.
    static bool moves_parameter(const Function& function, const Body& body, std::size_t i) {
        const Instruction& inst = body.instructions[i];
        const std::string_view opcode = form_info(inst.form).opcode;
        if (opcode == "setp")
            return i > 0 && moves_predicate(function, body.instructions[i - 1]) &&
                   inst[Role::a].index == body.instructions[i - 1].operands[0].index;
        if (opcode == "selp")
            return i + 1 < body.instructions.size() && moves_predicate(function, body.instructions[i + 1]) &&
                   inst[Role::d].index == body.instructions[i + 1].operands[1].index;
        return moved_parameter(function, inst) != nullptr;
    }

    static bool contains(const std::vector<std::uint32_t>& ids, std::size_t id) {
        return std::find(ids.begin(), ids.end(), id) != ids.end();
    }

    void declarations(const Function& function, const Body& body, const BodyNames& names) {
        std::size_t parameter_registers = 0;
        for (const auto* list : {&function.returns, &function.parameters})
            for (const Variable& v : *list)
                if (v.space == StateSpace::reg) parameter_registers += v.vector_size;
        std::vector<std::uint32_t> bytes; // of predicates that are moved
        for (std::size_t i = 0; i < body.instructions.size(); ++i)
            if (moves_predicate(function, body.instructions[i]))
                for (const Operand& operand : body.instructions[i].operands)
                    if (operand.kind == Operand::Kind::reg) bytes.push_back(operand.index);
        for (std::size_t i = parameter_registers; i < body.registers.size();) {
            const std::string type = std::string(spelling(body.registers[i].type));
            if (body.registers[i].name == "%cc.cf" || contains(bytes, i) ||
                contains(body.thread_registers, i)) { // the binder's own, the module's
                ++i;
            } else if (starts_vector(body.registers, i)) {
                const std::size_t n = vector_length(body.registers, i);
                const std::string& first = names.registers[i];
                line("\t.reg .v" + std::to_string(n) + " ." + type + " " + first.substr(0, first.size() - 2) + ";");
                i += n;
            } else {
                line("\t.reg ." + type + " " + names.registers[i] + ";");
                ++i;
            }
        }
        const std::size_t listed =
            function.parameters_in_body ? 0 : function.returns.size() + function.parameters.size();
        for (std::size_t i = listed; i < body.variables.size(); ++i)
            if (!contains(body.thread_locals, i))
                line("\t" + variable_declaration(body.variables[i], names.variables[i]) +
                     variable_initializer(module_, body.variables[i]) + ";");
        for (std::size_t i = 0; i < body.prototypes.size(); ++i) {
            const Prototype& p = body.prototypes[i];
            line(names.prototypes[i] + ": .callprototype " + (p.returns.empty() ? "" : parameter_list(p.returns)) +
                 " _ " + parameter_list(p.parameters) + (p.noreturn ? " .noreturn;" : ";"));
        }
        for (std::size_t i = 0; i < body.branch_targets.size(); ++i) {
            std::string text = "$targets_" + std::to_string(i) + ": .branchtargets ";
            for (LabelId l : body.branch_targets[i]) text += (text.back() == ' ' ? "" : ", ") + names.labels[l];
            line(text + ";");
        }
        for (std::size_t i = 0; i < body.call_targets.size(); ++i) {
            std::string text = "$callees_" + std::to_string(i) + ": .calltargets ";
            for (FunctionId f : body.call_targets[i])
                text += (text.back() == ' ' ? "" : ", ") + module_.functions[f].name;
            line(text + ";");
        }
    }

    ModuleLoader& loader_;
    const Module& module_;
    std::string text_;
};

} // namespace

std::string print(ModuleLoader& loader) {
    return ModulePrinter(loader).print();
}

std::string print(const Module& module, const Body& body, const Instruction& instruction) {
    const BodyNames names = plain_names(body);
    return InstructionPrinter(module, body, names).print(instruction);
}

} // namespace ptarmigan::ptx
