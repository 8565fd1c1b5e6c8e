// SPDX-License-Identifier: Apache-2.0
#include "runtime/code/perf_map.h"

#include "runtime/base/env.h"
#include "runtime/code/image_loader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <string>

namespace ptarmigan::runtime {
namespace {

void add_symbol(std::string& text, std::uintptr_t begin, std::uintptr_t end, const std::string& name) {
    char range[64];
    std::snprintf(range, sizeof range, "%" PRIxPTR " %" PRIxPTR " ", begin, end - begin);
    text += range + name + '\n';
}

std::string symbols(const LoadedImage& image, bool by_line) {
    std::string text;
    const auto& lines = image.lines();
    const std::uintptr_t begin = image.code_begin();
    std::uintptr_t at = begin; // what precedes the first line belongs to the kernel as a whole
    std::string name = image.name();
    for (std::size_t i = 0; by_line && i < lines.size(); ++i) {
        if (i > 0 && lines[i].line == lines[i - 1].line) continue; // another access of the same line
        if (begin + lines[i].offset > at) add_symbol(text, at, begin + lines[i].offset, name);
        at = begin + lines[i].offset;
        name = image.name() + " line " + std::to_string(lines[i].line);
    }
    if (image.code_end() > at) add_symbol(text, at, image.code_end(), name);
    return text;
}

} // namespace

void add_to_perf_map(const LoadedImage& image) {
    const std::string mode = env_text(Env::perf_map);
    if (mode != "kernels" && mode != "lines") return;
    const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map"; // where perf looks
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return;
    const std::string text = symbols(image, mode == "lines");
    // One write per image: O_APPEND keeps those of other threads apart.
    if (::write(fd, text.data(), text.size()) < 0) {
    }
    ::close(fd);
}

} // namespace ptarmigan::runtime
