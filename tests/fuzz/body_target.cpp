// SPDX-License-Identifier: Apache-2.0
// Any bytes as the statements of a kernel that declares registers of every type: instructions are
// reached at once. What is accepted must print, and parse back to the same.
#include "tests/fuzz/text_target.h"
#include "tests/support/module_comparison.h"

namespace {

const char* const before = R"(.version 9.0
.target sm_100a
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.global .align 16 .b32 array[64];
.const .b64 constants[4];
.global .texref picture;
.func (.param .b32 r) callee(.param .b32 a, .param .align 8 .b8 s[16]);
.visible .entry kernel(.param .u64 in, .param .align 8 .b8 block[32])
{
.reg .pred %p<9>; .reg .b8 %b<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .b128 %q<9>;
.reg .f16x2 %hh<9>; .reg .f32 %f<9>; .reg .f64 %e<9>; .reg .v4 .f32 v; .local .align 16 .b8 stack[64];
.param .b32 pa; .param .align 8 .b8 ps[16]; .param .b32 pr;
)";

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ptarmigan;
    const std::string text =
        before + std::string(reinterpret_cast<const char*>(data), size) + "\n}\n";
    const auto loader =
        ptx::ModuleLoader::load(text, "input", {.bind_all_bodies = true, .max_errors = 20});
    if (!loader->ok()) return 0;
    const std::string fault = test::round_trip_fault(*loader);
    if (!fault.empty()) fuzz::finding(fault);
    return 0;
}
