// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/constraint_decoder.h"

namespace ptarmigan::ptx {

namespace {

using Kind = Constraint::Kind;

struct Name {
    std::string_view text;
    Kind kind;
};
constexpr Name plain[] = {
    {"pred", Kind::pred},   {"imm", Kind::imm},           {"address", Kind::address}, {"tensor", Kind::tensor_address},
    {"label", Kind::label}, {"function", Kind::function}, {"targets", Kind::targets}, {"prototype", Kind::prototype},
    {"any", Kind::any},
};
constexpr Name typed[] = {
    {"wide", Kind::wide}, {"half", Kind::half},    {"wider", Kind::wider}, {"vec", Kind::vec},
    {"raw", Kind::type},  {"rawlist", Kind::list}, {"frag", Kind::list},   {"or_pred", Kind::type},
    {"pack", Kind::pack}, {"list", Kind::list},    {"tight", Kind::vec},   {"bits", Kind::vec},
};

Constraint with_type(Kind kind, std::string_view type, std::span<const DecodedRow::Slot> slots, std::string& fault) {
    Constraint constraint;
    constraint.kind = kind;
    if (type.starts_with('.')) type.remove_prefix(1);
    for (const DecodedRow::Slot& slot : slots)
        if (slot.name == type && slot.slot.type_index >= 0) {
            constraint.slot = slot.slot.type_index;
            return constraint;
        }
    const Word word = find_word(type);
    if (word.kind == Word::Kind::type)
        constraint.literal = static_cast<ScalarType>(word.value);
    else
        fault = "unknown type '" + std::string(type) + "' in a constraint";
    return constraint;
}

} // namespace

Constraint decode_constraint(std::string_view text, std::span<const DecodedRow::Slot> slots, std::string& fault) {
    Constraint constraint;
    if (text == "handle") {
        constraint.literal = ScalarType::u64;
        return constraint;
    }
    for (const Name& name : plain)
        if (text == name.text) {
            constraint.kind = name.kind;
            if (name.kind == Kind::pred) constraint.literal = ScalarType::pred;
            return constraint;
        }
    if (text.starts_with('.')) return with_type(Kind::type, text, slots, fault);
    const std::size_t open = text.find('(');
    if (open != std::string_view::npos && text.ends_with(')'))
        for (const Name& name : typed)
            if (text.substr(0, open) == name.text) {
                constraint = with_type(name.kind, text.substr(open + 1, text.size() - open - 2), slots, fault);
                constraint.fragment = name.text == "frag";
                constraint.untyped = name.text.starts_with("raw");
                constraint.or_predicate = name.text == "or_pred";
                constraint.any_class = name.text == "bits";
                constraint.tight = constraint.any_class || name.text == "tight";
                return constraint;
            }
    fault = "unknown constraint '" + std::string(text) + "'";
    return {};
}

} // namespace ptarmigan::ptx
