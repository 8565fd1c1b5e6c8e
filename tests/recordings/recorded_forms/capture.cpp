// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 that counts: for each PTX text that a recorder loads it appends the instruction forms that stand in it, a line
// each, to the file RECORDED_FORMS. Kernels are not run; the rest is ours. See `update`.
#include "frontend/isa/instruction_form.h"
#include "frontend/module_loader.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>

namespace {

using namespace ptarmigan;

std::set<std::string> forms_in(const char* text) {
    std::set<std::string> forms;
    const auto loader = ptx::ModuleLoader::load(text, "recorded", {.bind_all_bodies = true});
    if (!loader->ok()) return forms; // a case of its own: what the driver says to it
    for (ptx::FunctionId id = 0; id < loader->module().functions.size(); ++id)
        if (!loader->module().functions[id].is_declaration)
            for (const ptx::Instruction& instruction : loader->body(id).instructions)
                forms.insert(std::string(ptx::form_info(instruction.form).name));
    return forms;
}

/// At once: a recorder's processes may end in any way.
void append(const std::string& lines) {
    const char* path = std::getenv("RECORDED_FORMS");
    const int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (file < 0 || write(file, lines.data(), lines.size()) != ssize_t(lines.size())) std::abort();
    close(file);
}

void count(const void* image) {
    std::string lines;
    for (const std::string& form : forms_in(static_cast<const char*>(image))) lines += form + "\n";
    append(lines);
}

template <class Function> Function next(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default"))) int

EXPORTED cuModuleLoadData(void** module, const void* image) {
    count(image);
    return next<int (*)(void**, const void*)>("cuModuleLoadData")(module, image);
}

EXPORTED cuModuleLoadDataEx(void** module, const void* image, unsigned options, const void* names, const void* values) {
    count(image);
    return next<int (*)(void**, const void*, unsigned, const void*, const void*)>("cuModuleLoadDataEx")(module, image, options, names, values);
}

EXPORTED cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) {
    return 0;
}

EXPORTED cuLaunchKernelEx(const void*, void*, void**, void**) {
    return 0;
}
