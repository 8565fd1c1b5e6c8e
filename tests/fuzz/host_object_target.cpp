// SPDX-License-Identifier: Apache-2.0
// Any bytes as a host's object or library: ELF sections, archive members, the containers in them.
#include "runtime/module/host_object.h"
#include "runtime/module/fatbin.h"
#include "tests/fuzz/text_target.h"

#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ptarmigan;
    const std::vector<std::uint8_t> file(data, data + size); // of just this size
    std::vector<runtime::DeviceCode> found;
    std::string why;
    if (runtime::find_device_code(file, found, why) != why.empty())
        fuzz::finding("a failure without a reason, or a reason without one: " + why);
    for (const runtime::DeviceCode& code : found)
        runtime::read_image(code.container.data(), code.container.size(), {90, true});
    const runtime::ProgramCode program = runtime::find_program_code(file);
    std::vector<std::pair<const void*, std::size_t>> units;
    for (const auto& unit : program.units) units.emplace_back(unit.data(), unit.size());
    runtime::read_units(units, {90, true});
    for (const auto& container : program.containers)
        runtime::read_image(container.data(), container.size(), {90, true});
    return 0;
}
