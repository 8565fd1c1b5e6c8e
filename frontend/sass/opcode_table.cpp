// SPDX-License-Identifier: Apache-2.0
// Reads the rows' syntax.
#include "frontend/sass/opcode_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <iterator>

namespace ptarmigan::sass {
namespace {

struct Row {
    FormId id;
    std::string_view name;
    std::uint16_t code;
    std::uint8_t first, last;
    Layout layout;
    std::string_view syntax, rule, refusal;
    unsigned traits;
};

#define LIFT(rule, ...) #rule, "", 0u __VA_OPT__(| (__VA_ARGS__))
#define REFUSE(reason) "", reason, 0u
#define SASS_FORM_ROW(first, last, id, code, layout, syntax, ...)                                                      \
    {FormId::id, #id, code, first, last, Layout::layout, syntax, __VA_ARGS__},
#define SASS_FORM_IN(...) SASS_FORM_ROW(__VA_ARGS__)
#define SASS_FORM(...) SASS_FORM_ROW(0, 255, __VA_ARGS__)
constexpr Row rows[] = {
#include "frontend/sass/opcode_table.def"
};
#undef SASS_FORM
#undef SASS_FORM_ROW
#undef LIFT
#undef REFUSE

class SyntaxReader {
public:
    SyntaxReader(std::string_view text, Form& form) : text_(text), form_(form) {}

    bool read() {
        form_.mnemonic = word();
        while (peek() == '.')
            if (!modifier()) return false;
        if (at_ == text_.size()) return true;
        if (!take(' ')) return false;
        for (;;) {
            if (!operand()) return false;
            if (at_ == text_.size()) return true;
            if (!take(',') || !take(' ')) return false;
        }
    }

private:
    char peek() const { return at_ < text_.size() ? text_[at_] : 0; }
    bool take(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    std::string word() {
        std::string result;
        while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_') result += text_[at_++];
        return result;
    }
    unsigned number() {
        unsigned value = 0;
        while (std::isdigit(static_cast<unsigned char>(peek()))) value = value * 10 + unsigned(text_[at_++] - '0');
        return value;
    }
    bool field(BitField& result) {
        do {
            if (!std::isdigit(static_cast<unsigned char>(peek()))) return false;
            const unsigned first = number();
            const unsigned count = take(':') ? number() : 1;
            if (first + count > 128 || count == 0) return false;
            result.parts.push_back({std::uint8_t(first), std::uint8_t(count)});
        } while (take('+'));
        return true;
    }
    static unsigned width(const BitField& field) {
        unsigned bits = 0;
        for (const BitField::Part& part : field.parts) bits += part.count;
        return bits;
    }
    /// `.NAME`, `.NAME@72`, `.!NAME@72`, `.{A,B}@72:1`
    bool modifier() {
        if (!take('.')) return false;
        ModifierSpec spec;
        if (take('{')) {
            do {
                std::string name;
                while (peek() != ',' && peek() != '}' && peek() != 0) name += text_[at_++];
                spec.names.push_back(name == "_" ? std::string() : name);
            } while (take(','));
            if (!take('}') || !take('@') || !field(spec.field)) return false;
            if (take('=')) { // the values, where they are not 0, 1, 2...
                std::vector<std::string> by_value;
                for (std::string& name : spec.names) {
                    const unsigned value = number();
                    if (value > 255) return false;
                    if (by_value.size() <= value) by_value.resize(value + 1, "?");
                    by_value[value] = std::move(name);
                    take(',');
                }
                spec.names = std::move(by_value);
            }
            if (width(spec.field) > 8) return false;
            if (spec.names.size() > (1u << width(spec.field))) return false;
            spec.names.resize(1u << width(spec.field), "?");
        } else {
            const bool when_clear = take('!');
            std::string name = word();
            if (name.empty()) return false;
            if (take('@')) {
                if (!field(spec.field) || width(spec.field) != 1) return false;
                spec.names = {"", std::move(name)};
                if (when_clear) std::swap(spec.names[0], spec.names[1]);
            } else {
                spec.names = {std::move(name)}; // no field: value 0
            }
        }
        if (take('/')) { // of some architectures only
            spec.first = std::uint8_t(number());
            if (take('-')) spec.last = std::uint8_t(number());
        }
        form_.modifiers.push_back(std::move(spec));
        return true;
    }
    bool operand() {
        OperandSpec spec;
        for (;; ++at_) {
            if (peek() == '-')
                spec.may_negate = true;
            else if (peek() == '|')
                spec.may_be_absolute = true;
            else if (peek() == '~')
                spec.may_invert = true;
            else if (peek() == '^')
                spec.invert_with_x = true;
            else if (peek() == '!')
                spec.may_negate = true;
            else
                break;
        }
        const auto set = [&](unsigned first, unsigned count) {
            spec.field.parts = {{std::uint8_t(first), std::uint8_t(count)}};
        };
        if (take('[')) {
            spec.kind = peek();
            if (std::string_view("glstuyz").find(spec.kind) == std::string_view::npos) return false;
            ++at_;
            if (!take(']')) return false;
        } else if (take('#')) {
            spec.kind = '#';
            spec.is_signed = take('s');
            if (!field(spec.field)) return false;
            if (take('=')) spec.silent = number();
        } else if (take('{')) {
            spec.kind = '{';
            spec.silent = 0;
            if (!field(spec.field) || !take('}')) return false;
        } else if (text_.substr(at_).rfind("PR", 0) == 0) {
            spec.kind = 'R';
            at_ += 2;
        } else if (text_.substr(at_).rfind("SB", 0) == 0) {
            spec.kind = 'Q';
            at_ += 2;
            set(44, 3);
        } else {
            spec.kind = peek();
            if (spec.kind == 0) return false;
            ++at_;
            switch (spec.kind) {
            case 'd':
            case 'D':
                spec.is_result = peek() != '@';
                set(take('@') ? number() : 16, 8);
                break;
            case 'a': set(24, 8); break;
            case 'm':
            case 'G': set(number(), 8); break;
            case 'h': set(40, 8); break;
            case 'P':
            case 'U':
            case 'Z':
            case 'Y':
            case 'X':
            case 'V': set(number(), 3); break;
            case 'B': set(number(), 4); break;
            case 'L': set(number(), 64); break;
            case 'b':
            case 'c':
            case 'C':
            case 'S':
            case 'N':
            case 'T':
            case 'A':
            case 'E':
            case 'W':
            case 'J':
            case 'k': break;
            default: return false;
            }
        }
        if (take('{')) {
            spec.is_at_most = take('<');
            spec.registers = take('F') ? float_size : std::uint8_t(number());
            spec.is_result = take('w') || spec.is_result;
            if (spec.registers == 0 || !take('}')) return false;
        }
        if (take(':')) spec.type = text_[at_++];
        if (take('?')) spec.optional = true;
        if (take('p')) spec.always_from_blackwell = true;
        for (const char word : {'x', 'e', 'm', 'r', 'c', 'w', 'o'})
            if (take(word)) spec.only_with = word;
        if (peek() == '.') {
            spec.suffix = int(form_.modifiers.size());
            if (!modifier()) return false;
        }
        form_.operands.push_back(std::move(spec));
        return form_.operands.size() <= Instruction::max_operands;
    }

    std::string_view text_;
    Form& form_;
    std::size_t at_ = 0;
};

struct Table {
    std::vector<Form> forms;
    std::vector<std::string> faults;
    std::array<const Form*, 4096> by_opcode[std::size(families)]{};

    Table() {
        forms.reserve(std::size(rows));
        for (const Row& row : rows) {
            Form form{row.id,   row.name,    row.code,   row.first, row.last, row.layout, row.syntax,
                      row.rule, row.refusal, row.traits, {},        {},       {}};
            if (!SyntaxReader(row.syntax, form).read()) faults.emplace_back(row.name);
            forms.push_back(std::move(form));
        }
        for (const Form& form : forms) {
            const auto add = [&](unsigned opcode) {
                for (unsigned family = 0; family < std::size(families); ++family) {
                    if (families[family].last < form.first || families[family].first > form.last) continue;
                    if (by_opcode[family][opcode] != nullptr)
                        faults.push_back(std::string(form.name) + ": opcode taken");
                    by_opcode[family][opcode] = &form;
                }
            };
            const auto layouts = [&](std::initializer_list<unsigned> values) {
                for (const unsigned value : values) add(form.code | value << 9);
            };
            switch (form.layout) {
            case Layout::exact: add(form.code); break;
            case Layout::abc: layouts({1, 2, 3, 4, 5, 6, 7}); break;
            case Layout::ab: layouts({1, 4, 5, 6}); break;
            case Layout::ac:
            case Layout::ad: layouts({1, 2, 3, 7}); break;
            case Layout::uabc: layouts({1, 2, 4}); break;
            case Layout::uab: layouts({1, 4}); break;
            case Layout::uad: layouts({1, 2}); break;
            case Layout::aw: layouts({2, 3, 7}); break;
            }
        }
    }
};

const Table& table() {
    static const Table& result = *new Table; // never destroyed: kernels may outlive static destructors
    return result;
}

} // namespace

std::uint64_t BitField::of(const Code& code) const {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (const Part& part : parts) {
        value |= code.bits(part.first, part.count) << shift;
        shift += part.count;
    }
    return value;
}

unsigned registers_of(const Instruction& inst, unsigned place) {
    using Kind = Operand::Kind;
    const Operand& operand = inst.operands[place];
    if (operand.kind == Kind::address || operand.kind == Kind::register_target) return operand.wide ? 2 : 1;
    if (operand.kind != Kind::reg && operand.kind != Kind::uniform) return 0;
    const OperandSpec& spec = inst.form->operands[place];
    const auto has_one_of = [&](std::initializer_list<const char*> words) {
        return std::any_of(words.begin(), words.end(), [&](const char* word) { return inst.has(word); });
    };
    constexpr unsigned f64 = 3;
    if (spec.registers == float_size) return inst.code.bits(75, 3) == f64 ? 2 : 1;
    if (spec.registers != 0) return inst.has("32") ? 1 : spec.registers;
    if (has_one_of({"128", "4", "F16x8.RN", "BF16x8.RN", "F32x4.FTZ.RN"})) return 4;
    if (has_one_of({"64", "2", "U64", "S64", "F64.RN", "F16x4.RN", "BF16x4.RN", "F32x2.FTZ.RN"})) return 2;
    return 1;
}

std::span<const Form> all_forms() {
    return table().forms;
}
unsigned family_of(unsigned architecture) {
    unsigned family = 0;
    while (family < std::size(families) &&
           (architecture < families[family].first || architecture > families[family].last))
        ++family;
    return family;
}
const Form* find_form(unsigned opcode, unsigned architecture) {
    const unsigned family = family_of(architecture);
    return opcode < 4096 && family < std::size(families) ? table().by_opcode[family][opcode] : nullptr;
}
std::string_view name_of_opcode(unsigned opcode) {
    struct Named {
        unsigned opcode;
        std::string_view name;
    };
#define SASS_FORM(...)
#define SASS_NAME(mnemonic, code) {code, mnemonic},
    static constexpr Named names[] = {
#include "frontend/sass/opcode_table.def"
    };
#undef SASS_FORM
    for (const Named& named : names)
        if (named.opcode == opcode) return named.name;
    return {};
}
std::span<const std::string> table_faults() {
    return table().faults;
}

} // namespace ptarmigan::sass
