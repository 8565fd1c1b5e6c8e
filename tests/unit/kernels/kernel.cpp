// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

namespace ptarmigan::test {

std::string kernel_text(const std::string& body, const std::string& globals, const Frame& frame) {
    const bool has_b128 = frame.version >= "8.3";
    return ".version " + frame.version + "\n.target " + frame.target + "\n.address_size 64\n" + globals +
           "\n.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)" + frame.directives + "\n{\n"
           "    .reg .pred %p<8>;\n    .reg .b8 %c<2>;\n    .reg .b16 %h<32>;\n    .reg .b32 %r<64>;\n    .reg .b64 %l<64>;\n"
           "    .reg .f32 %f<32>;\n    .reg .f64 %d<16>;\n" + (has_b128 ? "    .reg .b128 %q<8>;\n" : "") +
           "    mov.u32 %r60, %tid.x;\n    mov.u32 %r61, %ctaid.x;\n    mov.u32 %r62, %ntid.x;\n"
           "    mad.lo.u32 %r62, %r61, %r62, %r60;\n"
           "    ld.param.u64 %l60, [p0];\n    ld.param.u64 %l61, [p1];\n    ld.param.u64 %l62, [p2];\n"
           "    ld.param.u64 %l63, [p3];\n" +
           body + "\n    ret;\n}\n";
}

void run(const std::string& body, Extents grid, Extents block, std::initializer_list<std::uint64_t> parameters,
         const std::string& globals, std::uint32_t dynamic_shared, const Frame& frame) {
    Module module(kernel_text(body, globals, frame), "test.ptx");
    std::vector<std::uint64_t> all(parameters);
    all.resize(4);
    module.launch("k", grid, block, {all[0], all[1], all[2], all[3]}, dynamic_shared);
    synchronize();
}

} // namespace ptarmigan::test
