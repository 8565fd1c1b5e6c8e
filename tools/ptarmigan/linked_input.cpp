// SPDX-License-Identifier: Apache-2.0
#include "tools/ptarmigan/linked_input.h"

#include "frontend/link/linker.h"
#include "frontend/ptx/provided_functions.h"
#include "tools/ptarmigan/commands.h"

#include <cstdio>

namespace ptarmigan::tool {

int read_input(const std::vector<std::string>& paths, std::string& text, std::string& name) {
    if (paths.size() > 1) return link_input(paths, text, name);
    name = paths.front();
    return read_file(name, text) ? exit_success : exit_usage;
}

int link_input(const std::vector<std::string>& paths, std::string& text, std::string& name) {
    ptx::Linker linker(ptx::is_provided_function);
    bool sound = true;
    for (const std::string& path : paths) {
        std::string messages;
        if (!read_file(path, text)) return exit_usage;
        sound = linker.add(std::move(text), path, messages) && sound;
        std::fputs(messages.c_str(), stderr);
    }
    if (!sound) return exit_failure;
    ptx::LinkResult result = linker.link();
    for (const std::string& error : result.errors) std::fprintf(stderr, "ptarmigan: error: %s\n", error.c_str());
    text = std::move(result.text);
    name = "<linked>";
    return result.ok ? exit_success : exit_failure;
}

} // namespace ptarmigan::tool
