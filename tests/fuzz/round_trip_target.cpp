// SPDX-License-Identifier: Apache-2.0
// Any bytes as a PTX text: what is accepted must print, and parse back to the same.
#include "tests/fuzz/text_target.h"
#include "tests/support/module_comparison.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ptarmigan;
    const auto loader =
        ptx::ModuleLoader::load(std::string(reinterpret_cast<const char*>(data), size), "input",
                                {.bind_all_bodies = true, .max_errors = 20});
    if (!loader->ok()) return 0;
    const std::string fault = test::round_trip_fault(*loader);
    if (!fault.empty()) fuzz::finding(fault);
    return 0;
}
