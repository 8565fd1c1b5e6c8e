// SPDX-License-Identifier: Apache-2.0
// wgmma: pairs of right programs and of programs that forget something.
#include "copy_pairs.h"
#include "kernel.h"

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 128, words = 2048;
using Words = std::vector<std::uint32_t>;
const Frame frame{"sm_90a", "9.0", ""};

/// %l60: input, %l61: output of 512 words. The input's first 2304 bytes are A (64 x 16 halves) and B (16 x 8); 4 words a thread from
/// byte 4096 on are C, and from 6144 on the thread's registers of another A. %r1: the tile (A, B behind it), %r2, %l1, %l2, %l3: this
/// thread's 16 bytes of tile, input, output, C. %l20, %l21: descriptors of A and B. %p0: thread 0. The tile has zeros.
Words run_program(const std::string& body, const std::string& schedule) {
    const Schedule scope(schedule);
    Words values(words);
    static constexpr std::uint32_t halves[] = {0x3c00, 0x4000, 0xc200, 0x4400, 0x0000, 0xbc00, 0x4500, 0x3800};
    const auto half = [](unsigned i) { return halves[(i * 2654435761u >> 20) % 8]; };
    for (unsigned i = 0; i < words; ++i) values[i] = half(2 * i) | half(2 * i + 1) << 16;
    for (unsigned i = 1024; i < 1536; ++i) values[i] = 0x40000000 + (i << 12); // floats of 2 to 8
    Array<std::uint32_t> in(values), out(512);
    run(R"(
        .reg .b32 %a<4>, %z; .reg .f32 %g<16>;
        mov.u32 %r1, tile;
        shl.b32 %r10, %r60, 4;
        add.u32 %r2, %r1, %r10;
        mul.wide.u32 %l10, %r60, 16;
        add.u64 %l1, %l60, %l10;
        add.u64 %l2, %l61, %l10;
        add.u64 %l3, %l1, 4096;
        add.u64 %l4, %l1, 6144;
        shr.u32 %r11, %r1, 4;
        cvt.u64.u32 %l20, %r11;
        or.b64 %l20, %l20, 0x800400000;
        add.u64 %l20, %l20, 0;
        add.u64 %l21, %l20, 128;
        and.b64 %l21, %l21, 0x3fff;
        or.b64 %l21, %l21, 0x1000080000;
        setp.eq.u32 %p0, %r60, 0;
        setp.lt.u32 %p3, %r60, 16;
        mov.b32 %r11, 0;
        st.shared.v4.b32 [%r2], {%r11, %r11, %r11, %r11};
        st.shared.v4.b32 [%r2+2048], {%r11, %r11, %r11, %r11};
        @%p0 mbarrier.init.shared.b64 [bar], 1;
        fence.proxy.async;
        bar.sync 0;
    )" + body, {1}, {threads}, {in.address(), out.address()},
        ".shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 bar;", 0, frame);
    return out.values();
}

const std::string fill = R"(
    ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%l1];
    st.shared.v4.b32 [%r2], {%r20, %r21, %r22, %r23};
    @%p3 ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%l1+2048];
    @%p3 st.shared.v4.b32 [%r2+2048], {%r20, %r21, %r22, %r23};
)";
const std::string proxy = "fence.proxy.async.shared::cta;\n", meet = "bar.sync 0;\n", fence = "wgmma.fence.sync.aligned;\n",
                  commit = "wgmma.commit_group.sync.aligned;\n", ready = fill + proxy + meet;
std::string wait(int groups) { return "wgmma.wait_group.sync.aligned " + std::to_string(groups) + ";\n"; }
const std::string load_c = "ld.global.v4.f32 {%g0, %g1, %g2, %g3}, [%l3];\n", load_a = "ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%l4];\n";
const std::string save = "st.global.v4.f32 [%l2], {%g0, %g1, %g2, %g3};\n";
std::string product(const std::string& d = "{%g0, %g1, %g2, %g3}") {
    return "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " + d + ", %l20, %l21, 1, 1, 1, 0, 0;\n";
}
const std::string product_of_registers =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%g0, %g1, %g2, %g3}, {%a0, %a1, %a2, %a3}, %l21, 1, 1, -1, 0;\n";
const std::string wide_product =
    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%g0, %g1, %g2, %g3, %g4, %g5, %g6, %g7}, %l20, %l21, 1, 1, 1, 0, 0;\n";
const std::string clear_upper = "mov.f32 %g4, 0f00000000; mov.f32 %g5, %g4; mov.f32 %g6, %g4; mov.f32 %g7, %g4;\n";
const std::string second = "{%g4, %g5, %g6, %g7}";
/// Sums of both accumulators.
const std::string save_sums = R"(
    add.f32 %g0, %g0, %g4; add.f32 %g1, %g1, %g5; add.f32 %g2, %g2, %g6; add.f32 %g3, %g3, %g7;
)" + save;
const std::string change_c = "mul.f32 %g0, %g0, %g1; add.f32 %g1, %g1, %g1; add.f32 %g2, %g2, %g0; add.f32 %g3, %g3, %g0;\n";
const std::string overwrite = "mov.b32 %r11, 0x3c003c00; @%p3 st.shared.v4.b32 [%r2+2048], {%r11, %r11, %r11, %r11};\n" + proxy;
const std::string load_in_bulk = "@!%p0 bra LOADED; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 2304;\n"
                                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%l60], 2304, [bar];\nLOADED:\n";
const std::string wait_for_load = "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;\n";
/// Three products in turn, each in a group of its own.
const std::string rounds = R"(
    mov.u32 %r30, 0;
    ROUND:
    wgmma.fence.sync.aligned;
)" + product() + commit + wait(1) + "add.u32 %r30, %r30, 1; setp.lt.u32 %p4, %r30, 3; @%p4 bra ROUND;\n";

const Pair pairs[] = {
    {"results before the wait", ready + load_c + fence + product() + commit + wait(0) + save, ready + load_c + fence + product() + commit + save + wait(0)},
    {"waits for one group of two", ready + load_c + fence + product() + commit + product() + commit + wait(0) + save,
     ready + load_c + fence + product() + commit + product() + commit + wait(1) + save},
    {"not committed", ready + load_c + fence + product() + commit + wait(0) + save, ready + load_c + fence + product() + wait(0) + save},
    {"accumulators without a fence", ready + load_c + fence + product() + commit + wait(0) + save, ready + load_c + product() + commit + wait(0) + save},
    {"fence before the accumulators are written", ready + load_c + fence + product() + commit + wait(0) + save,
     ready + fence + load_c + product() + commit + wait(0) + save},
    {"A from registers without a fence", ready + load_c + load_a + fence + product_of_registers + commit + wait(0) + save,
     ready + load_c + fence + load_a + product_of_registers + commit + wait(0) + save},
    {"accumulators changed between products",
     ready + load_c + fence + product() + commit + wait(0) + change_c + fence + product() + commit + wait(0) + save,
     ready + load_c + fence + product() + commit + wait(0) + change_c + product() + commit + wait(0) + save},
    {"another shape without a fence", ready + load_c + clear_upper + fence + product() + commit + wait(0) + fence + wide_product + commit + wait(0) + save,
     ready + load_c + clear_upper + fence + product() + commit + wide_product + commit + wait(0) + save},
    {"no proxy fence", ready + load_c + fence + product() + commit + wait(0) + save, fill + meet + load_c + fence + product() + commit + wait(0) + save},
    {"proxy fence before the writes", ready + load_c + fence + product() + commit + wait(0) + save,
     proxy + fill + meet + load_c + fence + product() + commit + wait(0) + save},
    {"overwritten before the wait", ready + load_c + fence + product() + commit + wait(0) + meet + overwrite + save,
     ready + load_c + fence + product() + commit + overwrite + meet + wait(0) + save},
    {"the second group's results", ready + load_c + clear_upper + fence + product() + commit + product(second) + commit + wait(0) + save_sums,
     ready + load_c + clear_upper + fence + product() + commit + product(second) + commit + wait(1) + save_sums + wait(0)},
    {"loaded in bulk, not waited for", load_in_bulk + wait_for_load + load_c + fence + product() + commit + wait(0) + save,
     load_in_bulk + load_c + fence + product() + commit + wait(0) + save, false},
    {"the last round of a loop", ready + load_c + rounds + wait(0) + save, ready + load_c + rounds + save + wait(0)},
};

} // namespace

TEST_CASE("wgmma: right programs are right whenever products are done, wrong ones fail when they are late", "[kernels][async][pairs]") {
    for (const Pair& pair : pairs) check_pair(pair, run_program, 2);
}

TEST_CASE("wgmma: what a warp overwrites behind its wait the others have read", "[kernels]") {
    // Warp 0 comes far ahead; the others multiply by what it has overwritten if they need not come to its wait.
    const std::string body = ready + load_c + "setp.ge.u32 %p4, %r60, 32; @%p4 bra LATE; bra NOW; LATE: nanosleep.u32 200; NOW:\n" + fence + product() +
                             commit + wait(0) + "@%p4 bra DONE;\n" + overwrite + "DONE:\n" + save;
    const std::string plain = ready + load_c + fence + product() + commit + wait(0) + save;
    CHECK((run_program(body, "eager") == run_program(plain, "eager")));
    CHECK((run_program(body, "late") == run_program(plain, "eager")));
}
