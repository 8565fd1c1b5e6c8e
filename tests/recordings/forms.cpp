// SPDX-License-Identifier: Apache-2.0
#include "tests/recordings/forms.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace recordings {
namespace {

/// `name` with what the type says besides the type: "-u32.b1" makes "-%r10.b1" of "%r10".
std::string decorated(const std::string& type, const std::string& name) {
    std::size_t dot = type.find('.');
    return (type[0] == '-' ? "-" : "") + name + (dot == std::string::npos ? "" : type.substr(dot));
}

char register_class(unsigned bits) { return bits == 64 ? 'q' : bits == 16 ? 'h' : bits == 1 ? 'p' : 'r'; }

std::string source_register(const Form& form, unsigned source) {
    return std::string("%") + register_class(bits_of(form.sources[source])) + '1' + std::to_string(source);
}

/// `text` with all of `name` replaced.
std::string replaced(std::string text, const std::string& name, const std::string& by) {
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + by.size())) text.replace(at, name.size(), by);
    return text;
}

} // namespace

const char* const form_registers = ".reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<20>; .reg .b64 %q<20>;\n";

unsigned Form::operand_count() const {
    return unsigned(std::count_if(sources.begin(), sources.end(), [](const std::string& type) { return !is_immediate(type); }));
}

bool is_immediate(const std::string& type) { return type.rfind("imm", 0) == 0; }

unsigned bits_of(const std::string& type) {
    if (type == "pred") return 1;
    if (type == "bf16") return 16;
    return unsigned(std::stoi(type.substr(type[0] == '-' ? 2 : 1)));
}

std::string operand_load(const Form& form, unsigned source, const std::string& from) {
    const std::string name = source_register(form, source);
    if (name[1] == 'q') return "mov.b64 " + name + ", " + from + ";\n";
    if (name[1] == 'p') return "cvt.u32.u64 %r3, " + from + ";\nand.b32 %r3, %r3, 1;\nsetp.ne.u32 " + name + ", %r3, 0;\n";
    return std::string("cvt.u") + (name[1] == 'h' ? "16" : "32") + ".u64 " + name + ", " + from + ";\n";
}

std::string operation(const Form& form) {
    std::string statements = form.statement;
    std::string operands;
    for (unsigned i = 0; i < form.sources.size(); ++i) {
        const std::string& type = form.sources[i];
        if (i != 0) operands += ", ";
        if (is_immediate(type)) {
            operands += type.substr(3);
            continue;
        }
        const std::string name = source_register(form, i);
        operands += decorated(type, name);
        statements = replaced(statements, std::string("%") + "abce"[i], name);
    }
    const char letter = register_class(bits_of(form.result));
    const std::string result = letter == 'p' ? "%p2" : std::string("%") + letter + '1';
    std::string text = statements.find("%d") != std::string::npos
                           ? replaced(statements, "%d", result) + '\n'
                           : form.statement + ' ' + decorated(form.result, result) + ", " + operands + ";\n";
    if (letter == 'p') text += "selp.u64 %q1, 1, 0, %p2;\n";
    else if (letter != 'q') text += std::string("cvt.u64.u") + (letter == 'h' ? "16" : "32") + " %q1, %" + letter + "1;\n";
    return text;
}

FormList read_forms(const char* path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(std::string("cannot read ") + path);
    FormList list;
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("module ", 0) == 0) {
            list.declarations += line.substr(7) + '\n';
            continue;
        }
        std::istringstream words(line);
        Form form;
        std::string hash, sources;
        words >> hash >> form.result >> sources >> std::ws;
        std::getline(words, form.statement);
        form.known_difference = hash[0] == '~';
        form.hash = std::strtoull(hash.c_str() + form.known_difference, nullptr, 16);
        std::istringstream types(sources);
        for (std::string type; std::getline(types, type, ',');) form.sources.push_back(type);
        list.forms.push_back(std::move(form));
    }
    return list;
}

} // namespace recordings
