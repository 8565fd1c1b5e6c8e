// SPDX-License-Identifier: Apache-2.0
// Stands in for libptarmigan-translator.so: "compiles" every kernel to code that stores 42 to the memory at its first
// argument. Counts compilations in a file-backed way that survives processes: see FAKE_TRANSLATOR_LOG.
#include "translator/compile.h"

#include "translator/kernel_abi_version.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace ptarmigan::translator {
namespace {

void count_compilation() {
    const char* path = std::getenv("FAKE_TRANSLATOR_LOG");
    if (!path) return;
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0) return;
    if (::write(fd, "x", 1) != 1) std::abort();
    ::close(fd);
}

/// True if two of this process's compilations are in code generation at the same time, before long.
bool meets_another() {
    static std::atomic<int> count{0};
    ++count;
    for (int looks = 0; looks < 5000 && count < 2; ++looks) ::usleep(1000);
    return count == 2;
}

/// As a thread of a priority so low that it gets no CPU, from the end of emission on: the first of the process's threads
/// that compiles such a kernel stops there until it is raised again, or another one has got further.
void starve() {
    static std::atomic<int> count{0}, others{0};
    static const int niceness = getpriority(PRIO_PROCESS, 0);
    if (count++ != 0) {
        ++others;
        return;
    }
    const auto is_low = [] { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())) > niceness; };
    for (int looks = 0; looks < 1000 && !is_low(); ++looks) ::usleep(1000); // it may be raised between two looks
    while (is_low() && others == 0) ::usleep(1000);
    ::usleep(100000); // in which the other one ends
}

CompiledKernel fake_compile(ptx::ModuleLoader&, const std::string& kernel, const BlockShape& shape,
                            const CompileOptions& options, CompileTimes*, CompileProgress* progress) {
    if (kernel == "unsupported") throw UnsupportedError("test.ptx:1:1: error: unsupported form");
    count_compilation();
    // Crashes in all forms but the narrow ones without optimisation.
    if (kernel == "crashes" && (options.lane_width != 1 || options.optimization == Optimization::full)) std::abort();
    progress->stage = CompileProgress::Stage::code_generation;
    if (kernel.starts_with("starves")) starve();
    if (kernel.starts_with("meets") && !meets_another()) std::abort();
    ::usleep(20000); // long enough for others to ask for the same kernel meanwhile
    CompiledKernel compiled;
#if defined(__x86_64__)
    compiled.image.bytes = {0xc7, 0x07, 42, 0, 0, 0, 0xc3}; // movl $42, (%rdi); ret
#elif defined(__aarch64__)
    compiled.image.bytes = {0x41, 0x05, 0x80, 0x52,  // mov w1, #42
                            0x01, 0x00, 0x00, 0xb9,  // str w1, [x0]
                            0xc0, 0x03, 0x5f, 0xd6}; // ret
#endif
    compiled.image.bytes.resize(4096);
    compiled.image.code_size = 4096;
    compiled.image.lines = {{0, 7}, {6, 8}};
    compiled.properties.lane_width = 16;
    compiled.properties.step_count = (shape.ntid[0] + 15) / 16;
    return compiled;
}

std::string fake_dump(ptx::ModuleLoader&, const std::string&, const BlockShape&,
                      const CompileOptions&, const std::string& stage, CompileProgress*) {
    return stage;
}

} // namespace

extern "C" __attribute__((visibility("default"))) const TranslatorApi* ptarmigan_translator_entry() {
    static const TranslatorApi api = {abi::kernel_abi_version, fake_compile, fake_dump};
    return &api;
}

} // namespace ptarmigan::translator
