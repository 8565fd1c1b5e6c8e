// SPDX-License-Identifier: Apache-2.0
// Any bytes as an image that a program hands to the driver. Wrappers are left out: their pointers
// are the program's own.
#include "runtime/module/fatbin.h"
#include "tests/fuzz/text_target.h"

#include <cstring>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ptarmigan;
    const std::vector<std::uint8_t> image(data,
                                          data + size); // of just this size: a byte more is a fault
    if (runtime::image_kind(image.data(), image.size()) == runtime::ImageKind::wrapper) return 0;
    const runtime::ImagePtx ptx = runtime::read_image(image.data(), image.size(), {90, true});
    if ((ptx.result == runtime::ImageResult::ok) != ptx.message.empty())
        fuzz::finding("a failure without a message, or a message without one: " + ptx.message);
    for (const runtime::PtxEntry& entry : runtime::list_container(image.data(), image.size()).ptx)
        runtime::unpack_ptx(entry);
    return 0;
}
