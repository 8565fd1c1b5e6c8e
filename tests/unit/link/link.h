// SPDX-License-Identifier: Apache-2.0
// Links PTX texts for a test. The units are called a.ptx, b.ptx and so on.
#pragma once

#include "frontend/link/linker.h"
#include "frontend/module_loader.h"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

namespace ptarmigan::test {

inline const std::string link_header = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// Each element of `units` is what follows the header, or a whole text if it starts with .version.
inline ptx::LinkResult try_link(const std::vector<std::string>& units) {
    ptx::Linker linker([](std::string_view name) { return name == "vprintf"; });
    char letter = 'a';
    for (const std::string& unit : units) {
        std::string messages;
        const bool whole = unit.starts_with(".version");
        const bool added = linker.add(whole ? unit : link_header + unit,
                                      std::string(1, letter++) + ".ptx", messages);
        INFO(messages);
        REQUIRE(added);
    }
    return linker.link();
}

inline std::vector<std::string> link_errors(const std::vector<std::string>& units) {
    const ptx::LinkResult result = try_link(units);
    CHECK_FALSE(result.ok);
    CHECK(result.text.empty());
    return result.errors;
}

/// The only error.
inline std::string link_error(const std::vector<std::string>& units) {
    const std::vector<std::string> errors = link_errors(units);
    REQUIRE(errors.size() == 1);
    return errors.front();
}

/// The linked text, loaded with all its bodies, free of errors.
inline std::unique_ptr<ptx::ModuleLoader> link(const std::vector<std::string>& units) {
    ptx::LinkResult result = try_link(units);
    for (const std::string& error : result.errors) UNSCOPED_INFO(error);
    REQUIRE(result.ok);
    INFO(result.text);
    auto loader = ptx::ModuleLoader::load(std::move(result.text), "linked.ptx",
                                          {.bind_all_bodies = true, .max_errors = 20});
    INFO(loader->diagnostics().render_all());
    REQUIRE(loader->ok());
    return loader;
}

} // namespace ptarmigan::test
