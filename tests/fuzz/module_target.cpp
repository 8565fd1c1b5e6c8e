// SPDX-License-Identifier: Apache-2.0
// Any bytes as a PTX text: lexer, parser, binder. An error or an accepted module are both fine.
#include "frontend/module_loader.h"
#include "tests/fuzz/text_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ptarmigan;
    const auto loader =
        ptx::ModuleLoader::load(std::string(reinterpret_cast<const char*>(data), size), "input",
                                {.bind_all_bodies = true, .max_errors = 20});
    const std::string messages = loader->diagnostics().render_all();
    if (loader->ok() != (loader->diagnostics().error_count() == 0) ||
        loader->ok() == (messages.find("error") != std::string::npos))
        fuzz::finding("verdict and messages disagree:\n" + messages);
    return 0;
}
