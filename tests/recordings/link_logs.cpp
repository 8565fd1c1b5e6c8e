// SPDX-License-Identifier: Apache-2.0
// What the cuLink* calls return and log for inputs that fit, contradict each other or are no code at all. Needs only the
// driver API, so the same program records and verifies:
//   link_logs LIBCUDA LOGS.txt            compares; fails if a line differs or a known difference is gone
//   link_logs LIBCUDA LOGS.txt --record   prints what this driver does
// A case is a line "== name: create RESULT" and one line per call: its result, the error log so far, the size written
// back. Marks in the first column: '?' the result is the same, the text is known to differ; '~' the result is known to
// differ, and the rest of the case is not compared.
#include <dlfcn.h>

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

struct Case {
    std::string name;
    std::vector<Input> inputs;
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
    return {
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
    unsigned options[] = {error_buffer, error_buffer_size};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    Handle state = nullptr;
    const int created = call("cuLinkCreate_v2", 2u, +options, +values, &state);
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

int record_or_compare(const char* driver, const char* path, bool record) {
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
    for (const Case& example : cases()) {
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
        std::fprintf(stderr, "usage: %s LIBCUDA LOGS.txt [--record]\n", argv[0]);
        return 2;
    }
    try {
        return record_or_compare(argv[1], argv[2], argc > 3 && std::string(argv[3]) == "--record");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
