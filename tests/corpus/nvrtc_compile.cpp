// SPDX-License-Identifier: Apache-2.0
// nvrtc_compile SOURCE OUTPUT.ptx OPTION...: compiles with NVIDIA's run-time compiler, which is
// loaded if it is there.
// `--probe` says by its exit status whether it is.
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Program = void*;

void* open_nvrtc() {
    const char* toolkit = std::getenv("CUDA_PATH");
    const std::string folder = toolkit != nullptr ? toolkit : "/usr/local/cuda";
    for (const std::string& name :
         {std::string("libnvrtc.so.13"), std::string("libnvrtc.so.12"), std::string("libnvrtc.so"),
          folder + "/lib64/libnvrtc.so", folder + "/lib/libnvrtc.so"})
        if (void* library = dlopen(name.c_str(), RTLD_NOW)) return library;
    return nullptr;
}

/// A function of the library, called with the arguments as given.
template <typename... Arguments> int call(void* library, const char* name, Arguments... arguments) {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
    return function != nullptr ? function(arguments...) : -1;
}

std::string text_of(void* library, Program program, const char* what) {
    std::size_t size = 0;
    const std::string name = std::string("nvrtcGet") + what;
    if (call(library, (name + "Size").c_str(), program, &size) != 0) return "";
    std::string text(size, '\0');
    call(library, name.c_str(), program, text.data());
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
}

} // namespace

int main(int argc, char** argv) {
    void* library = open_nvrtc();
    if (argc > 1 && std::strcmp(argv[1], "--probe") == 0) return library != nullptr ? 0 : 1;
    if (library == nullptr || argc < 3) return 2;
    std::stringstream source;
    source << std::ifstream(argv[1]).rdbuf();
    const std::string text = source.str();
    const std::vector<const char*> options(argv + 3, argv + argc);
    Program program = nullptr;
    const char* const* none = nullptr;
    int status = call(library, "nvrtcCreateProgram", &program, text.c_str(),
                      static_cast<const char*>(argv[1]), 0, none, none);
    if (status == 0)
        status = call(library, "nvrtcCompileProgram", program, static_cast<int>(options.size()),
                      options.data());
    if (status != 0) {
        std::fprintf(stderr, "nvrtc: error %d\n%s\n", status,
                     text_of(library, program, "ProgramLog").c_str());
        return 1;
    }
    std::ofstream(argv[2]) << text_of(library, program, "PTX");
    return 0;
}
