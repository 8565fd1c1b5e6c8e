// SPDX-License-Identifier: Apache-2.0
// Functions of modules: when cuFuncIsLoaded says that one is loaded, and what is said of functions that nothing defines.
//   module_functions LIBCUDA --record > module_functions_h100.txt; module_functions LIBCUDA RECORDING
// Each part runs in a process of its own, because the driver reads CUDA_MODULE_LOADING once.
#include "tests/recordings/driver.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

using recordings::Driver;
using Function = void*;

/// Calls by name that may fail.
class Asker {
public:
    explicit Asker(const char* path) : driver_(path), library_(dlopen(path, RTLD_NOW)) {}

    template <class... Parameters> int code(const char* name, Parameters... arguments) {
        return reinterpret_cast<int (*)(Parameters...)>(dlsym(library_, name))(arguments...);
    }
    /// cuFuncIsLoaded: its state, or its error with a minus.
    int state(Function function) {
        int value = -77;
        const int error = code("cuFuncIsLoaded", &value, function);
        return error ? -error : value;
    }

private:
    Driver driver_;
    void* library_;
};

const char* const kernels = ".version 8.0\n.target sm_80\n.address_size 64\n"
                            ".visible .entry a(.param .u64 p) { .reg .u64 %r<4>; ld.param.u64 %r1, [p]; st.global.u64 [%r1], %r1; ret; }\n"
                            ".visible .entry b() { ret; }\n.visible .entry c() { ret; }\n.visible .entry d() { ret; }\n"
                            ".visible .entry e() { ret; }\n.visible .entry f() { ret; }\n.visible .entry g() { ret; }\n"
                            ".visible .entry h() { ret; }\n.visible .entry i() { ret; }\n";

/// The functions of a module, by letter.
class Functions {
public:
    Functions(Asker& ask, void* module) : ask_(ask) {
        unsigned count = 0;
        ask.code("cuModuleGetFunctionCount", &count, module);
        std::vector<Function> all(count);
        ask.code("cuModuleEnumerateFunctions", all.data(), count, module);
        for (Function function : all) {
            const char* name = "?";
            ask.code("cuFuncGetName", &name, function);
            if (name[0] >= 'a' && name[0] < 'a' + 9) by_letter_[name[0] - 'a'] = function;
        }
    }
    Function operator[](char letter) const { return by_letter_[letter - 'a']; }
    void print(const char* when) const {
        std::printf("%s:", when);
        for (char letter = 'a'; letter < 'a' + 9; ++letter) std::printf(" %c=%d", letter, ask_.state((*this)[letter]));
        std::printf("\n");
    }

private:
    Asker& ask_;
    Function by_letter_[9] = {};
};

int launch(Asker& ask, void* function) {
    return ask.code("cuLaunchKernel", function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, static_cast<void*>(nullptr), static_cast<void**>(nullptr),
                    static_cast<void**>(nullptr));
}

void ask_functions(Asker& ask) {
    void* module = nullptr;
    std::printf("load %d\n", ask.code("cuModuleLoadData", &module, static_cast<const void*>(kernels)));
    const Functions functions(ask, module);
    functions.print("enumerated");
    Function got = nullptr;
    std::printf("get %d", ask.code("cuModuleGetFunction", &got, module, "a"));
    std::printf(", the enumerated one: %d\n", got == functions['a']);
    functions.print("a got");
    int value = 0, second = 0;
    std::size_t size = 0;
    std::printf("attribute %d\n", ask.code("cuFuncGetAttribute", &value, 4, functions['b']));
    functions.print("b's attribute");
    std::printf("parameter %d\n", ask.code("cuFuncGetParamInfo", functions['b'], std::size_t(0), &size, &size));
    functions.print("b's parameter");
    std::printf("set attribute %d\n", ask.code("cuFuncSetAttribute", functions['b'], 8, 1024));
    functions.print("b's attribute set");
    std::printf("load %d", ask.code("cuFuncLoad", functions['c']));
    std::printf(" again %d\n", ask.code("cuFuncLoad", functions['c']));
    functions.print("c loaded");
    std::printf("launch %d\n", launch(ask, functions['d']));
    std::printf("synchronize %d\n", ask.code("cuCtxSynchronize"));
    functions.print("d launched");
    std::printf("blocks %d\n", ask.code("cuOccupancyMaxActiveBlocksPerMultiprocessor", &value, functions['e'], 128, std::size_t(0)));
    functions.print("e's blocks");
    std::printf("block size %d\n", ask.code("cuOccupancyMaxPotentialBlockSize", &value, &second, functions['f'], static_cast<void*>(nullptr), std::size_t(0), 0));
    functions.print("f's block size");
    std::printf("shared %d\n", ask.code("cuOccupancyAvailableDynamicSMemPerBlock", &size, functions['g'], 1, 128));
    functions.print("g's shared memory");
    std::printf("cache %d\n", ask.code("cuFuncSetCacheConfig", functions['h'], 1));
    functions.print("h's cache");
    void* of = nullptr;
    std::printf("module %d\n", ask.code("cuFuncGetModule", &of, functions['i']));
    functions.print("i's module");
    std::printf("no place %d, no function %d, load none %d\n", ask.code("cuFuncIsLoaded", static_cast<int*>(nullptr), got), ask.state(nullptr),
                ask.code("cuFuncLoad", static_cast<void*>(nullptr)));
}

void ask_kernels(Asker& ask) {
    void *library = nullptr, *kernel = nullptr, *module = nullptr;
    Function function = nullptr;
    void* const none = nullptr;
    std::printf("library %d\n", ask.code("cuLibraryLoadData", &library, static_cast<const void*>(kernels), none, none, 0u, none, none, 0u));
    ask.code("cuLibraryGetKernel", &kernel, library, "b");
    std::printf("kernel's handle %d\n", ask.state(kernel));
    std::printf("function %d", ask.code("cuKernelGetFunction", &function, kernel));
    std::printf(": %d\n", ask.state(function));
    ask.code("cuLibraryGetKernel", &kernel, library, "c");
    std::printf("load kernel %d\n", ask.code("cuFuncLoad", kernel));
    ask.code("cuLibraryGetKernel", &kernel, library, "d");
    std::printf("launch kernel %d\n", launch(ask, kernel));
    int value = 0;
    ask.code("cuLibraryGetKernel", &kernel, library, "e");
    std::printf("kernel's attribute %d\n", ask.code("cuKernelGetAttribute", &value, 4, kernel, 0));
    ask.code("cuLibraryGetKernel", &kernel, library, "f");
    std::printf("kernel's blocks %d\n", ask.code("cuOccupancyMaxActiveBlocksPerMultiprocessor", &value, kernel, 128, std::size_t(0)));
    std::size_t size = 0;
    ask.code("cuLibraryGetKernel", &kernel, library, "g");
    std::printf("kernel's attribute set %d\n", ask.code("cuKernelSetAttribute", 8, 1024, kernel, 0));
    ask.code("cuLibraryGetKernel", &kernel, library, "h");
    std::printf("kernel's cache %d\n", ask.code("cuKernelSetCacheConfig", kernel, 1, 0));
    ask.code("cuLibraryGetKernel", &kernel, library, "a");
    std::printf("kernel's parameter %d\n", ask.code("cuKernelGetParamInfo", kernel, std::size_t(0), &size, &size));
    ask.code("cuLibraryGetKernel", &kernel, library, "i");
    void* of = nullptr;
    std::printf("kernel's module %d\n", ask.code("cuFuncGetModule", &of, kernel));
    std::printf("module %d\n", ask.code("cuLibraryGetModule", &module, library));
    Functions(ask, module).print("library's module");
}

struct Undefined {
    const char *what, *body;
};
const Undefined undefined[] = {
    {"extern, called", ".extern .func foo();\n.visible .entry k() { call foo; ret; }\n"},
    {"extern, called in another kernel", ".extern .func foo();\n.visible .entry k() { ret; }\n.visible .entry z() { call foo; ret; }\n"},
    {"extern, not called", ".extern .func foo();\n.visible .entry k() { ret; }\n"},
    {"not extern, called", ".func foo();\n.visible .entry k() { call foo; ret; }\n"},
    {"not extern, not called", ".func foo();\n.visible .entry k() { ret; }\n"},
    {"weak, called", ".weak .func foo();\n.visible .entry k() { call foo; ret; }\n"},
    {"unreachable call", ".extern .func foo();\n.visible .entry k() { ret; call foo; ret; }\n"},
    {"called in a function nobody calls", ".extern .func foo();\n.func g() { call foo; ret; }\n.visible .entry k() { ret; }\n"},
    {"address by mov", ".extern .func foo();\n.visible .entry k() { .reg .u64 %r; mov.u64 %r, foo; ret; }\n"},
    {"address in an initialiser", ".extern .func foo();\n.global .u64 p = foo;\n.visible .entry k() { ret; }\n"},
    {"two, called", ".extern .func foo();\n.extern .func bar();\n.visible .entry k() { call bar; call foo; ret; }\n"},
    {"two, called in two kernels", ".extern .func foo();\n.extern .func bar();\n.visible .entry k() { call bar; ret; }\n.visible .entry z() { call foo; ret; }\n"},
    {"one not extern and not called, one called", ".func foo();\n.extern .func bar();\n.visible .entry k() { call bar; ret; }\n"},
    {"one in an initialiser, one called", ".extern .func foo();\n.extern .func bar();\n.global .u64 p = foo;\n.visible .entry k() { call bar; ret; }\n"},
    {"one by mov, then one called", ".extern .func foo();\n.extern .func bar();\n.visible .entry k() { .reg .u64 %r; mov.u64 %r, foo; call bar; ret; }\n"},
    {"one called, then one by mov", ".extern .func foo();\n.extern .func bar();\n.visible .entry k() { .reg .u64 %r; call bar; mov.u64 %r, foo; ret; }\n"},
    {"called, then by mov", ".extern .func foo();\n.visible .entry k() { .reg .u64 %r; call foo; mov.u64 %r, foo; ret; }\n"},
    {"by mov, then called", ".extern .func foo();\n.visible .entry k() { .reg .u64 %r; mov.u64 %r, foo; call foo; ret; }\n"},
    {"in a list of targets", ".extern .func foo();\n.visible .entry k() { .reg .u64 %r; l: .calltargets foo; mov.u64 %r, 0; call %r, l; ret; }\n"},
    {"extern variable", ".extern .global .u32 g;\n.visible .entry k() { .reg .u32 %r; ld.global.u32 %r, [g]; ret; }\n"},
};

void ask_undefined(Asker& ask) {
    for (const Undefined& one : undefined) {
        const std::string text = std::string(".version 8.0\n.target sm_80\n.address_size 64\n") + one.body;
        char log[2000] = "";
        int options[] = {5, 6}; // CU_JIT_ERROR_LOG_BUFFER and its size
        void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
        void* module = nullptr;
        const int code = ask.code("cuModuleLoadDataEx", &module, static_cast<const void*>(text.c_str()), 2u, options, values);
        std::printf("%s: %d '%s'\n", one.what, code, log);
    }
}

int run_part(const char* library, const char* part) {
    Asker ask(library);
    if (std::strcmp(part, "undefined") == 0) {
        ask_undefined(ask);
    } else {
        setvbuf(stdout, nullptr, _IOLBF, 0);
        ask_functions(ask);
        ask_kernels(ask);
    }
    return 0;
}

/// What a part prints, in a process of its own.
std::string output_of(const char* self, const char* library, const char* loading, const char* part) {
    setenv("CUDA_MODULE_LOADING", loading, 1);
    const std::string command = std::string("'") + self + "' '" + library + "' --part " + part + " 2>/dev/null";
    std::FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) throw std::runtime_error("popen failed");
    std::string text = "# " + std::string(loading) + " " + part + "\n";
    char buffer[4096];
    while (const std::size_t bytes = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, bytes);
    const int status = pclose(pipe);
    if (status != 0) text += "exit status " + std::to_string(status) + "\n";
    return text;
}

} // namespace

int main(int argc, char** argv) try {
    if (argc == 4 && std::strcmp(argv[2], "--part") == 0) return run_part(argv[1], argv[3]);
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA RECORDING | --record\n", argv[0]);
        return 2;
    }
    std::string text;
    for (const char* loading : {"LAZY", "EAGER"})
        for (const char* part : {"loading", "undefined"}) text += output_of(argv[0], argv[1], loading, part);
    if (std::strcmp(argv[2], "--record") == 0) {
        std::fputs(text.c_str(), stdout);
        return 0;
    }
    std::ifstream file(argv[2]);
    const std::string recorded{std::istreambuf_iterator<char>(file), {}};
    if (recorded.empty()) throw std::runtime_error(std::string("cannot read ") + argv[2]);
    if (text == recorded) return 0;
    std::printf("recorded:\n%s\nnow:\n%s", recorded.c_str(), text.c_str());
    return 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
