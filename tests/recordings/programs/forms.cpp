// SPDX-License-Identifier: Apache-2.0
#include "tests/recordings/programs/forms.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace random_programs {
namespace {

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

bool is_float_type(const std::string& type) { return type[0] == 'f' || type.rfind("bf16", 0) == 0; }

/// mul and add without .rn may become one fma.
bool may_be_contracted(const std::string& statement, const std::string& result) {
    const std::string opcode = statement.substr(0, statement.find('.'));
    if (opcode != "add" && opcode != "sub" && opcode != "mul") return false;
    const bool is_float = is_float_type(result) || contains(statement, "f16") || contains(statement, "f32x2");
    const bool has_rounding = contains(statement, ".rn") || contains(statement, ".rz") || contains(statement, ".rm") || contains(statement, ".rp");
    return is_float && !has_rounding;
}

/// What ptxas 13.0 gets wrong under a condition, written or made of a branch: `set` with an f32 result converts the old
/// value too, testp forgets the guard.
bool is_miscompiled(const Form& form) {
    return form.opcode() == "testp" || (form.opcode() == "set" && form.result == "f32");
}

} // namespace

bool Form::is_long() const {
    static constexpr const char* parts[] = {"approx", "div", "rem", "rcp", "sqrt", "tanh", "ex2"};
    return std::any_of(std::begin(parts), std::end(parts), [&](const char* part) { return contains(statement, part); });
}

bool Form::may_choose_a_nan() const {
    const std::string name = opcode();
    if (name == "min" || name == "max" || name == "neg" || name == "abs") return result == "f32" || result == "f64";
    return result == "f64" && (name == "add" || name == "sub" || name == "mul" || name == "fma");
}

std::vector<Form> read_forms(const char* path, unsigned count) {
    std::ifstream file(path);
    std::vector<Form> forms;
    std::string line;
    for (unsigned i = 0; i < count; ++i) {
        if (!std::getline(file, line)) throw std::runtime_error(std::string(path) + ": too few forms");
        std::istringstream fields(line);
        Form form;
        std::string hash, sources;
        fields >> hash >> form.result >> sources >> form.statement;
        std::istringstream types(sources);
        for (std::string type; std::getline(types, type, ',');) form.sources.push_back(type);
        if (!may_be_contracted(form.statement, form.result) && !is_miscompiled(form)) forms.push_back(std::move(form));
    }
    return forms;
}

} // namespace random_programs
