// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels and go wrong, or go deep. What goes right: tests/programs/rdc/device_launch.cu.
#include "fault_child.h"

using namespace driver_test;

namespace {

const std::string runtime_functions = R"(
.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 s);
.extern .func (.param .b32 r) cudaMemcpyAsync(.param .b64 d, .param .b64 f, .param .b64 n, .param .b32 k, .param .b64 s);
)";

/// Kernel `name` with two 64-bit parameters, in %l1 and %l2; one thread runs `body`.
std::string kernel(const std::string& name, const std::string& body) {
    return ".visible .entry " + name + "(.param .u64 p0, .param .u64 p1)\n{\n.reg .b64 %l<20>; .reg .b32 %r<20>; .reg .pred %p<4>;\n" +
           "ld.param.u64 %l1, [p0]; ld.param.u64 %l2, [p1]; mov.u32 %r1, %tid.x; setp.ne.u32 %p0, %r1, 0; @%p0 ret;\n" + body + "\nret;\n}\n";
}

/// Launches `name` with %l1 and %l2 as one block of `threads`; %r10 is what the launch returns.
std::string launch(const std::string& name, unsigned stream = 0, const std::string& threads = "32") {
    return "{ mov.u64 %l10, " + name + "; .param .b64 f; st.param.b64 [f], %l10; .param .align 4 .b8 g[12]; st.param.b32 [g], 1;"
           " st.param.b32 [g+4], 1; st.param.b32 [g+8], 1; .param .align 4 .b8 b[12]; st.param.b32 [b], " + threads + "; st.param.b32 [b+4], 1;"
           " st.param.b32 [b+8], 1; .param .b32 s; st.param.b32 [s], 0; .param .b64 r;"
           " call.uni (r), __cudaCDP2GetParameterBufferV2, (f, g, b, s); ld.param.b64 %l11, [r]; }\n"
           "st.u64 [%l11], %l1; st.u64 [%l11+8], %l2;\n"
           "{ .param .b64 p; st.param.b64 [p], %l11; .param .b64 s; st.param.b64 [s], " + std::to_string(stream) + "; .param .b32 r;"
           " call.uni (r), __cudaCDP2LaunchDeviceV2, (p, s); ld.param.b32 %r10, [r]; }\n";
}

bool ends_with_code(const std::string& said, int code) { return said.find("\ncode " + std::to_string(code) + "\n") != std::string::npos; }

std::string said_by(const std::string& kernels, std::uint64_t second, std::uint64_t* result = nullptr) {
    return said_by_child([&] { return code_of_launch(runtime_functions + kernels, 0, second, result); });
}

} // namespace

TEST_CASE("fault: device_launch", "[.]") {
    const std::string broken = kernel("child", "mov.u64 %l3, 16; st.global.u32 [%l3], %r1;");
    std::string said = said_by(broken + kernel("k", launch("child")), 0);
    INFO(said);
    CHECK(ends_with_code(said, 700));
    CHECK(said.find("kernel child: illegal address") != std::string::npos);

    said = said_by(kernel("k", "{ .param .b64 p; st.param.b64 [p], %l1; .param .b64 s; st.param.b64 [s], 0; .param .b32 r;"
                               " call.uni (r), __cudaCDP2LaunchDeviceV2, (p, s); }"), 0);
    INFO(said);
    CHECK(ends_with_code(said, 700)); // no parameter buffer: as on an H200

    said = said_by(kernel("child", "txq.num_samples.b32 %r1, [%l1]; st.global.u32 [%l1], %r1;") + kernel("k", launch("child")), 0);
    INFO(said);
    CHECK(ends_with_code(said, 801));
    CHECK(said.find("txq") != std::string::npos);

    said = said_by(kernel("k", "mov.u64 %l3, 4096; { .param .b64 d; st.param.b64 [d], %l1; .param .b64 f; st.param.b64 [f], %l3;"
                               " .param .b64 n; st.param.b64 [n], 64; .param .b32 w; st.param.b32 [w], 3; .param .b64 s; st.param.b64 [s], 0;"
                               " .param .b32 r; call.uni (r), cudaMemcpyAsync, (d, f, n, w, s); }"), 0);
    INFO(said);
    CHECK(ends_with_code(said, 700)); // from where no memory is
}

TEST_CASE("fault: device_launch_depth", "[.]") {
    // Each grid launches the next one, as a child or behind itself, and the last one fails on purpose if it is reached.
    for (unsigned stream : {0u, 3u, 4u}) {
        const std::string body = "sub.u64 %l2, %l2, 1; setp.eq.u64 %p1, %l2, 0; @%p1 trap;\n" + launch("k", stream) +
                                 "setp.ne.u32 %p2, %r10, 0; @%p2 st.global.u32 [%l2], %r1;";
        const std::string said = said_by(kernel("k", body), 3000);
        INFO(said);
        CHECK(ends_with_code(said, 719));
    }
}

TEST_CASE("fault: device_launch_many", "[.]") {
    // A launch that is refused leaves nothing behind; 20,000 children of one thread all run: the last one traps if they did.
    const std::string count = kernel("count", "atom.global.add.u64 %l3, [%l1], 1; setp.eq.u64 %p1, %l3, %l2; @%p1 trap;");
    const std::string body = "mov.u64 %l4, 0; st.global.u64 [%l1], %l4; mov.u32 %r2, 0;\nL:\n" + launch("count") +
                             launch("count", 0, "5000") + "setp.ne.u32 %p2, %r10, 9; @%p2 st.global.u32 [%l4], %r1;\n"
                             "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20000; @%p1 bra L;";
    const std::string said = said_by(count + kernel("k", body), 19999);
    INFO(said);
    CHECK(ends_with_code(said, 719));
}
