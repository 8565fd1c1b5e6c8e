// SPDX-License-Identifier: Apache-2.0
// Any bytes as a cubin. What is lifted is PTX that the front end takes; what is not, is named.
#include "frontend/module_loader.h"
#include "frontend/sass/lift.h"
#include "tests/fuzz/text_target.h"

#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ptarmigan;
    const std::vector<std::uint8_t> image(data, data + size); // of just this size: a byte more is a fault
    sass::LiftedModule lifted;
    std::string error;
    if (!sass::lift_cubin(image, lifted, error)) {
        if (error.empty()) fuzz::finding("a failure without a message");
        return 0;
    }
    for (const sass::RefusedKernel& kernel : lifted.refused)
        if (kernel.reason.empty()) fuzz::finding("a kernel is refused without a reason");
    const auto loader = ptx::ModuleLoader::load(lifted.text, "lifted", {.bind_all_bodies = true, .max_errors = 20});
    if (!loader->ok()) fuzz::finding("the lifted text is refused:\n" + loader->diagnostics().render_all());
    return 0;
}
