// SPDX-License-Identifier: Apache-2.0
// What the cuLink* calls return and log for inputs that fit, contradict each other or are no code at all. Needs only the
// driver API, so the same program records and verifies:
//   link_logs LIBCUDA LOGS.txt            compares; fails if a line differs or a known difference is gone
//   link_logs LIBCUDA LOGS.txt --record [CASE...]   prints what this driver does, with all cases or these in this order
// A case is a line "== name: create RESULT" and one line per call: its result, the error log so far, the size written
// back. Marks in the first column: '?' the result is the same, the text is known to differ; '!' the text is the same, the
// result is known to differ; '~' the result is known to differ, and the rest of the case is not compared.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Handle = void*;

void* library = nullptr;

template <class... Arguments> int call(const char* name, Arguments... arguments) {
    void* entry = dlsym(library, name);
    if (!entry) throw std::runtime_error(std::string("no ") + name);
    return reinterpret_cast<int (*)(Arguments...)>(entry)(arguments...);
}

enum Kind : int { cubin, ptx, fatbinary, object, archive, nvvm, no_kind = 77 };

struct Input {
    Kind kind;
    std::string data;
};

/// A CUjit_option besides the error log, with its value.
struct Option {
    unsigned option = 0;
    std::size_t value = 0;
};
enum OptionNumber : unsigned { wall_time = 2, info_buffer, info_buffer_size, optimization_level = 7, target_of_context, debug_info = 11, log_verbose, line_info };

struct Case {
    std::string name;
    std::vector<Input> inputs;
    std::vector<Option> options{};
};

// --- inputs --------------------------------------------------------------------------------------

const std::string header = "\n.version 8.5\n.target sm_90\n.address_size 64\n";

/// Texts are parts of PTX: the header comes before them.
Input text(const std::string& part) {
    return {ptx, header + part};
}

std::string declared(const std::string& function, const std::string& type) {
    return ".extern .func (.param ." + type + " r) " + function + "(.param ." + type + " a);\n";
}

std::string called(const std::string& function, const std::string& type) {
    return "{ .param ." + type + " i; .param ." + type + " o; st.param." + type + " [i], 7; call (o), " + function +
           ", (i); ld.param." + type + " x, [o]; }\n";
}

/// A kernel that stores x.
std::string kernel(const std::string& type, const std::string& body) {
    return ".visible .entry k(.param .u64 p) { .reg ." + type + " x; .reg .b64 d;\n" + body +
           "ld.param.u64 d, [p]; st." + type + " [d], x; ret; }\n";
}

std::string function_adding(int number) {
    return ".visible .func (.param .b32 r) f(.param .b32 a) { .reg .b32 x; ld.param.u32 x, [a]; add.u32 x, x, " +
           std::to_string(number) + "; st.param.b32 [r], x; ret; }\n";
}

/// A function or, without result, a kernel that calls each of `callees`.
std::string calling(const std::string& name, const std::string& callees, bool is_kernel) {
    std::string text = is_kernel ? ".visible .entry " + name + "(.param .u64 p) { .reg .b32 x;\n"
                                 : ".visible .func (.param .b32 r) " + name + "(.param .b32 a) { .reg .b32 x;\n";
    for (const char callee : callees) text += called(std::string("f") + callee, "b32");
    return text + (is_kernel ? "ret; }\n" : "st.param.b32 [r], x; ret; }\n");
}

std::string declared_all(const std::string& callees) {
    std::string text;
    for (const char callee : callees) text += declared(std::string("f") + callee, "b32");
    return text;
}

/// Links of units that miss functions: in which order they are named.
std::vector<Case> orders() {
    const auto kernel_calling = [](const std::string& name, const std::string& callees) { return calling(name, callees, true); };
    const auto function_calling = [](char name, const std::string& callees) {
        return calling(std::string("f") + name, callees, false);
    };
    const std::string two = kernel_calling("k1", "ab") + kernel_calling("k2", "ce");
    return {
        {"order: two kernels", {text(declared_all("abce") + two)}},
        {"order: two kernels, declared the other way round", {text(declared_all("ecba") + two)}},
        {"order: a kernel and what it calls", {text(declared_all("ab") + function_calling('f', "b") + kernel_calling("k", "fa"))}},
        {"order: two callees", {text(declared_all("abc") + function_calling('f', "c") + function_calling('g', "b") + kernel_calling("k", "fga"))}},
        {"order: two callees, called the other way round",
         {text(declared_all("abc") + function_calling('f', "c") + function_calling('g', "b") + kernel_calling("k", "gfa"))}},
        {"order: one callee of two callees",
         {text(declared_all("ecba") + function_calling('x', "a") + function_calling('f', "xb") + function_calling('g', "xc") +
               kernel_calling("k", "fge"))}},
        {"order: initial value and kernels",
         {text(declared_all("abc") + kernel_calling("k1", "a") + ".visible .global .u64 t = fc;\n" + kernel_calling("k2", "b"))}},
        {"order: in another unit",
         {text(declared_all("fg") + kernel_calling("k1", "f") + kernel_calling("k2", "g")),
          text(declared_all("yz") + function_calling('f', "y") + function_calling('g', "z"))}},
    };
}

/// What a missing function gives with options that ask for more.
std::vector<Case> with_options(const Input& caller, const Input& misser) {
    static char info[8192];
    const Option buffer{info_buffer, reinterpret_cast<std::size_t>(info)}, size{info_buffer_size, sizeof info};
    const Input late = {ptx, "\n.version 8.5\n.target sm_90a\n.address_size 64\n" + caller.data.substr(header.size())};
    return {
        {"undefined, information", {caller}, {buffer, size}},
        {"undefined, verbose", {caller}, {{log_verbose, 1}}},
        {"undefined, information, verbose", {caller}, {buffer, size, {log_verbose, 1}}},
        {"undefined, wall time", {caller}, {{wall_time, 0}}},
        {"undefined, wall time, information, verbose", {caller}, {{wall_time, 0}, buffer, size, {log_verbose, 1}}},
        {"undefined, target of the context", {caller}, {{target_of_context, 0}}},
        {"undefined, debug", {caller}, {{debug_info, 1}}},
        {"undefined, lines", {caller}, {{line_info, 1}}},
        {"undefined, level 0", {caller}, {{optimization_level, 0}}},
        {"undefined, sm_90a", {late}},
        {"undefined, sm_90a, information, verbose", {late}, {buffer, size, {log_verbose, 1}}},
        {"three undefined, information, verbose", {misser}, {buffer, size, {log_verbose, 1}}},
    };
}

std::vector<Case> cases() {
    const Input caller = text(declared("f", "b32") + kernel("b32", called("f", "b32")));
    const Input wide_caller = text(declared("f", "b64") + kernel("b64", called("f", "b64")));
    const Input callee = text(function_adding(1));
    const Input misser = text(declared("f", "b32") + declared("g", "b32") + ".extern .global .u32 gv;\n" +
                              kernel("b32", called("g", "b32") + called("f", "b32") + "ld.global.u32 x, [gv];\n"));
    const auto reader = [](const std::string& declaration) {
        return text(declaration + kernel("b32", "ld.global.u32 x, [v];\n"));
    };
    const Input common = reader(".common .global .u32 v;\n"), weak = text(".weak .global .u32 v = 5;\n");
    const std::string garbage = "garbage garbage garbage";
    std::vector<Case> all = {
        {"ok", {caller, callee}},
        {"two definitions", {caller, callee, text(function_adding(0))}},
        {"prototype mismatch", {wide_caller, callee}},
        {"undefined", {caller}},
        {"three undefined", {misser}},
        {"bad ptx", {text(".visible .entry k(){ foo.u32 a; ret; }\n")}},
        {"not ptx", {{ptx, "hello"}}},
        {"empty", {{ptx, ""}}},
        {"nvvm", {{nvvm, "BC"}}},
        {"fatbin garbage", {{fatbinary, garbage}}},
        {"cubin garbage", {{cubin, garbage}}},
        {"object garbage", {{object, garbage}}},
        {"library garbage", {{archive, garbage}}},
        {"common+weak", {common, weak}},
        {"weak+common", {weak, common}},
        {"two variables", {reader(".visible .global .u32 v = 1;\n"), text(".visible .global .u32 v = 2;\n")}},
        {"size mismatch", {reader(".extern .global .u32 v;\n"), text(".visible .global .u64 v = 2;\n")}},
        {"nothing", {}},
        {"no entry", {callee}},
        {"bad type", {{no_kind, caller.data}}},
    };
    for (const std::vector<Case>& more : {orders(), with_options(caller, misser)}) all.insert(all.end(), more.begin(), more.end());
    return all;
}

// --- run -----------------------------------------------------------------------------------------

std::string one_line(const std::string& log) {
    std::string line;
    for (const char c : log) line += c == '\n' ? "\\n" : std::string(1, c);
    return line;
}

std::vector<std::string> run(const Case& example) {
    constexpr unsigned error_buffer = 5, error_buffer_size = 6;
    char log[8192] = "";
    std::vector<unsigned> options = {error_buffer, error_buffer_size};
    std::vector<void*> values = {log, reinterpret_cast<void*>(sizeof log)};
    for (const Option& option : example.options) {
        options.push_back(option.option);
        values.push_back(reinterpret_cast<void*>(option.value));
    }
    Handle state = nullptr;
    const int created =
        call("cuLinkCreate_v2", static_cast<unsigned>(options.size()), options.data(), values.data(), &state);
    std::vector<std::string> lines = {"== " + example.name + ": create " + std::to_string(created)};
    const auto add_line = [&](const char* what, int result, const char* size) {
        const auto bytes = created == 0 ? reinterpret_cast<std::size_t>(values[1]) : 0;
        lines.push_back("  " + std::string(what) + " " + std::to_string(result) + " [" + one_line(log) + "] " + size +
                        " " + std::to_string(bytes));
    };
    for (std::size_t i = 0; i < example.inputs.size(); ++i) {
        const Input& input = example.inputs[i];
        const std::string name = "in" + std::to_string(i) + ".ptx";
        const int added = call("cuLinkAddData_v2", state, int{input.kind}, static_cast<const void*>(input.data.c_str()),
                               input.data.size() + 1, name.c_str(), 0u, static_cast<unsigned*>(nullptr),
                               static_cast<void**>(nullptr));
        add_line("add", added, "size");
    }
    void* image = nullptr;
    std::size_t size = 0;
    const int completed = call("cuLinkComplete", state, &image, &size);
    add_line("complete", completed, "errsize");
    if (completed == 0) {
        Handle module = nullptr;
        const int loaded = call("cuModuleLoadData", &module, static_cast<const void*>(image));
        lines.push_back("  load " + std::to_string(loaded));
    }
    return lines;
}

// --- comparison ----------------------------------------------------------------------------------

std::string result_of(const std::string& line) {
    return line.substr(0, line.find(" ["));
}

/// Whether the line of this driver is what the recorded line, with its mark, lets expect.
bool as_recorded(const std::string& recorded, const std::string& line) {
    const std::string plain = " " + recorded.substr(1);
    const auto text_of = [](const std::string& whole) { return whole.substr(std::min(whole.size(), whole.find(" ["))); };
    if (recorded[0] == '!') return text_of(line) == text_of(plain) && result_of(line) != result_of(plain);
    if (recorded[0] == '?') return line != plain && result_of(line) == result_of(plain);
    if (recorded[0] == '~') return result_of(line) != result_of(plain);
    return line == recorded;
}

/// Differences of a case; `at` goes behind its recorded lines.
unsigned compare(const std::vector<std::string>& lines, const std::vector<std::string>& recorded, std::size_t& at) {
    unsigned differences = 0;
    bool is_compared = true;
    std::size_t i = 0;
    for (; at < recorded.size() && (i == 0 || recorded[at].rfind("==", 0) != 0); ++at, ++i) {
        if (!is_compared) continue;
        const std::string line = i < lines.size() ? lines[i] : "  (nothing)";
        if (!as_recorded(recorded[at], line)) {
            std::printf("%s\n  recorded: %s\n  here:     %s\n", lines[0].c_str(), recorded[at].c_str(), line.c_str());
            ++differences;
        }
        is_compared = recorded[at][0] != '~';
    }
    if (is_compared && i < lines.size()) {
        std::printf("%s\n  not recorded: %s\n", lines[0].c_str(), lines[i].c_str());
        ++differences;
    }
    return differences;
}

/// All cases, or those of these names in this order.
std::vector<Case> chosen_cases(const std::vector<std::string>& names) {
    const std::vector<Case> all = cases();
    std::vector<Case> chosen;
    for (const std::string& name : names)
        for (const Case& example : all)
            if (example.name == name) chosen.push_back(example);
    return names.empty() ? all : chosen;
}

int record_or_compare(const char* driver, const char* path, bool record, const std::vector<std::string>& names) {
    library = dlopen(driver, RTLD_NOW);
    if (!library) throw std::runtime_error(dlerror());
    int device = 0;
    Handle context = nullptr;
    if (call("cuInit", 0u) != 0 || call("cuDeviceGet", &device, 0) != 0 ||
        call("cuDevicePrimaryCtxRetain", &context, device) != 0 || call("cuCtxSetCurrent", context) != 0)
        throw std::runtime_error("no device");
    std::vector<std::string> recorded;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (!line.empty()) recorded.push_back(line);
    unsigned differences = 0;
    std::size_t at = 0;
    for (const Case& example : chosen_cases(names)) {
        const std::vector<std::string> lines = run(example);
        if (record)
            for (const std::string& line : lines) std::printf("%s\n", line.c_str());
        else
            differences += compare(lines, recorded, at);
    }
    if (record) return 0;
    std::printf("%zu recorded lines, %u differences\n", recorded.size(), differences);
    return differences == 0 && at == recorded.size() && at != 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA LOGS.txt [--record [CASE...]]\n", argv[0]);
        return 2;
    }
    try {
        const bool record = argc > 3 && std::string(argv[3]) == "--record";
        return record_or_compare(argv[1], argv[2], record, {argv + std::min(argc, record ? 4 : argc), argv + argc});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
