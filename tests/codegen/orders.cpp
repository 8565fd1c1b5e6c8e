// SPDX-License-Identifier: Apache-2.0
// The CPU's ordered instructions for every instruction with a .sem or .scope, and every fence: each row of the instruction table with each of its
// semantics and scopes, everything else plain. On x86 a test run never sees an ordering that is too weak.
//   codegen_orders GOLDEN LLVM_VERSION [--update]
#include "frontend/isa/form_pattern.h"
#include "frontend/module_loader.h"
#include "tests/agreement/statements.h"
#include "translator/compile.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>

using namespace ptarmigan;

namespace {

using ptx::Word;

constexpr const char* version = "9.0";
constexpr const char* target = "sm_100a";

bool is_one_of(Word word, std::initializer_list<std::string_view> names) {
    const std::string_view text = ptx::spelling(word);
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return text == name || text == "." + std::string(name); });
}

/// A place for semantics or scopes.
bool orders(const ptx::WordSlot& slot) {
    return std::any_of(slot.choices.begin(), slot.choices.end(), [](Word word) {
        return is_one_of(word, {"relaxed", "acquire", "release", "acq_rel", "sc", "weak", "volatile", "mmio", "cta", "cluster", "gpu", "sys", "gl"});
    });
}

bool is_fence(std::string_view opcode) { return opcode == "fence" || opcode == "membar"; }

/// All words of the orders' places; of others the first, or none where that is allowed. Global or shared memory rather than any.
void heads(const ptx::FormPattern& pattern, std::size_t slot, const std::string& text, std::vector<std::string>& all) {
    if (slot == pattern.slots.size()) return all.push_back(text);
    const ptx::WordSlot& here = pattern.slots[slot];
    const auto with = [&](Word word) {
        const std::string_view name = ptx::spelling(word);
        heads(pattern, slot + 1, text + (name.front() == '.' ? "" : ".") + std::string(name), all);
    };
    const bool every = (orders(here) || is_fence(pattern.info->opcode)) && !here.is_space;
    if (here.optional && !here.is_space) heads(pattern, slot + 1, text, all);
    if (every) {
        for (Word word : here.choices) with(word);
    } else if (here.is_space || !here.optional) {
        with(here.choices.front());
    }
}

std::vector<std::string> statements() {
    std::vector<std::string> all;
    ptx::FormMatcher matcher;
    for (const ptx::FormInfo& info : ptx::all_forms()) {
        const ptx::FormPattern& pattern = ptx::FormTable::get().pattern(info.id);
        if (!info.lowered || (!is_fence(info.opcode) && std::none_of(pattern.slots.begin(), pattern.slots.end(), orders))) continue;
        std::vector<std::string> words;
        heads(pattern, 0, std::string(info.opcode), words);
        for (const std::string& head : words)
            for (const ptx::HeadMatch& match : test::rows_for(matcher, head)) {
                if (match.form != info.id) continue;
                const std::string statement = test::with_operands(head, match, false).front();
                if (test::accepted_here(version, target, statement)) all.push_back(statement);
                break;
            }
    }
    return all;
}

/// Ordered and atomic instructions of the kernel, each run of equal ones once; "call" is a service of the runtime.
std::string ordered_code(const std::string& assembly, bool arm) {
    static const std::regex on_arm("(ldar|ldapr|stlr|ldaxr|stlxr|ldxr|stxr|ldaxp|stlxp|ldxp|stxp|dmb|cas|swp|ld(add|set|clr|eor|smax|smin|umax|umin))[a-z]*|blr"),
        on_x86("lock|xchg[a-z]*|mfence|call[a-z]*");
    std::string code, last;
    std::istringstream lines(assembly);
    bool inside = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("ptarmigan_kernel:", 0) == 0) inside = true;
        if (line.rfind(".Lfunc_end", 0) == 0) inside = false;
        if (!inside || line.size() < 2 || line[0] != '\t' || line[1] == '.') continue;
        std::istringstream parts(line);
        std::string name, operand;
        parts >> name >> operand;
        if (!std::regex_match(name, arm ? on_arm : on_x86)) continue;
        std::string text = name == "blr" || name.rfind("call", 0) == 0 ? "call" : name == "dmb" || name == "lock" ? name + " " + operand : name;
        if (text != last) code += (code.empty() ? "" : ", ") + text;
        last = text;
    }
    return code.empty() ? "-" : code;
}

/// Loads that define the registers of the statement: of unknown values, or operations with them become others.
std::string definitions(const std::string& statement) {
    static const std::regex register_name("%([bf](16|32|64|128))_([0-9]+)(:([0-9]+))?");
    std::string text;
    for (std::sregex_iterator at(statement.begin(), statement.end(), register_name), end; at != end; ++at) {
        const int first = std::stoi((*at)[3]), count = (*at)[5].matched ? std::stoi((*at)[5]) : 1;
        for (int i = first; i < first + count; ++i)
            text += "ld.param." + (*at)[1].str() + " %" + (*at)[1].str() + "_" + std::to_string(i) + ", [pvar]; ";
    }
    return text;
}

std::string code_of(const std::string& statement, const char* cpu) {
    const std::string text = test::module_header(version, target) + test::wrap(definitions(statement) + statement, 0);
    const auto loader = ptx::ModuleLoader::load(text, "orders.ptx");
    translator::CompileOptions options;
    options.target = translator::named_target(cpu);
    options.lane_width = 1;
    return ordered_code(translator::dump(*loader, "k0", translator::BlockShape{}, options, "asm"), std::string_view(cpu) == "aarch64");
}

/// A line per statement.
std::string table() {
    std::string text;
    for (const std::string& statement : statements())
        text += statement + "  x86-64: " + code_of(statement, "x86-64-v3") + "  aarch64: " + code_of(statement, "aarch64") + "\n";
    return text;
}

} // namespace

int main(int count, char** arguments) {
    if (count < 3) {
        std::fprintf(stderr, "usage: %s GOLDEN LLVM_VERSION [--update]\n", arguments[0]);
        return 2;
    }
    const std::string head = std::string("LLVM ") + arguments[2] + "\n", actual = table();
    if (count > 3) {
        std::ofstream(arguments[1]) << head << actual;
        return 0;
    }
    std::ifstream file(arguments[1]);
    std::string line;
    std::getline(file, line);
    if (line + "\n" != head) {
        std::printf("SKIPPED: recorded with %s, this is LLVM %s\n", line.c_str(), arguments[2]);
        return 77;
    }
    std::istringstream lines(actual);
    unsigned different = 0, number = 1;
    std::string here, golden;
    while (true) {
        const bool more_here = bool(std::getline(lines, here)), more_golden = bool(std::getline(file, golden));
        if (!more_here && !more_golden) break;
        ++number;
        if (more_here == more_golden && here == golden) continue;
        if (++different <= 20) std::printf("%u:\n  golden %s\n  here   %s\n", number, more_golden ? golden.c_str() : "", more_here ? here.c_str() : "");
    }
    if (different) std::printf("%u lines differ. If the order is as strong as the manual asks: ninja -C build update_codegen\n", different);
    return different != 0 || actual.empty();
}
