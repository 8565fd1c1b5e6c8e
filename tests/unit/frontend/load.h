// SPDX-License-Identifier: Apache-2.0
// Loads PTX for a test: a module, or a kernel around a few statements.
#pragma once

#include "frontend/module_loader.h"

#include <catch2/catch.hpp>

#include <memory>
#include <string>

namespace ptarmigan::test {

inline const std::string header = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// A module that must be free of errors.
inline std::unique_ptr<ptx::ModuleLoader> load(const std::string& declarations) {
    auto loader = ptx::ModuleLoader::load(header + declarations, "test.ptx",
                                          {.bind_all_bodies = true, .max_errors = 20});
    INFO(loader->diagnostics().render_all());
    REQUIRE(loader->ok());
    return loader;
}

/// Whether a module has no errors.
inline bool is_accepted(const std::string& declarations) {
    return ptx::ModuleLoader::load(header + declarations, "test.ptx", {.bind_all_bodies = true, .max_errors = 1})->ok();
}

/// A kernel `k` with registers %p %h %r %u %f %d %e of 8 each around `statements`.
inline std::string kernel_around(const std::string& statements) {
    return ".visible .entry k(.param .u64 in, .param .u32 n)\n{\n"
           ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .u32 %u<8>; .reg .f32 %f<8>;\n"
           ".reg .b64 %d<8>; .reg .f64 %e<8>;\n" +
           statements + "\n}\n";
}
inline std::unique_ptr<ptx::ModuleLoader> load_kernel(const std::string& statements,
                                                      const std::string& before = "") {
    return load(before + kernel_around(statements));
}

inline const ptx::Body& body_of(ptx::ModuleLoader& loader, const std::string& function = "k") {
    return loader.body(loader.module().find_function(function).value());
}

inline std::string form_name(const ptx::Instruction& inst) {
    return std::string(ptx::form_info(inst.form).name);
}

} // namespace ptarmigan::test
