// SPDX-License-Identifier: Apache-2.0
// Pairs of right programs and of programs that forget something, of one CTA.
#include "copy_pairs.h"
#include "kernel.h"

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 128, words = 1024;
using Words = std::vector<std::uint32_t>;

/// %l60: 1024 words of input; %l61: as many of output. Registers %r1: address of the tile (4 KB), %r2: this thread's 16 bytes of it,
/// %l1 and %l2: 16 bytes of input and output per thread; %p0: thread 0; %r3, %r4: the tile's second half and this thread's bytes of it.
Words run_program(const std::string& body, const std::string& schedule) {
    const Schedule scope(schedule);
    Words values(words);
    for (unsigned i = 0; i < words; ++i) values[i] = i * 2654435761u + 12345;
    Array<std::uint32_t> in(values), out(words);
    run(R"(
        mov.u32 %r1, tile;
        shl.b32 %r10, %r60, 4;
        add.u32 %r2, %r1, %r10;
        add.u32 %r3, %r1, 2048;
        add.u32 %r4, %r2, 2048;
        mul.wide.u32 %l10, %r60, 16;
        add.u64 %l1, %l60, %l10;
        add.u64 %l2, %l61, %l10;
        setp.eq.u32 %p0, %r60, 0;
        mov.b32 %r11, 0;
        st.shared.v4.b32 [%r2], {%r11, %r11, %r11, %r11};
        st.shared.v4.b32 [%r4], {%r11, %r11, %r11, %r11};
        @%p0 mbarrier.init.shared.b64 [bar], 1;
        @%p0 mbarrier.init.shared.b64 [all], 128;
        fence.proxy.async;
        bar.sync 0;
    )" + body, {1}, {threads}, {in.address(), out.address()},
        ".shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 bar; .shared .align 8 .b64 all;");
    return out.values();
}

/// Writes both halves of the tile out; the second half 2048 bytes further.
const std::string save = R"(
    ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r2];
    st.global.v4.b32 [%l2], {%r20, %r21, %r22, %r23};
    ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r4];
    st.global.v4.b32 [%l2+2048], {%r20, %r21, %r22, %r23};
)";
const std::string copy_halves = R"(
    cp.async.cg.shared.global [%r2], [%l1], 16;
    cp.async.commit_group;
    cp.async.cg.shared.global [%r4], [%l1+2048], 16;
)";
const std::string load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes ";
/// Thread 0 loads both halves, expecting `bytes`.
std::string load_halves(unsigned bytes) {
    return "@!%p0 bra LOADED; mbarrier.arrive.expect_tx.shared.b64 _, [bar], " + std::to_string(bytes) + ";\n" + load +
           "[%r1], [%l60], 2048, [bar];\nadd.u64 %l11, %l60, 2048;\n" + load + "[%r3], [%l11], 2048, [bar];\nLOADED:\n";
}
std::string wait_for(const std::string& object, unsigned parity) {
    return "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [" + object + "], " + std::to_string(parity) + "; @!%p1 bra WAIT;\n";
}
/// Every thread fills its bytes of both halves with the input.
const std::string fill = R"(
    ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%l1];
    st.shared.v4.b32 [%r2], {%r20, %r21, %r22, %r23};
    ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%l1+2048];
    st.shared.v4.b32 [%r4], {%r20, %r21, %r22, %r23};
)";
const std::string store = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%l61], [%r1], 4096;\n";
const std::string commit = "@%p0 cp.async.bulk.commit_group;\n", proxy = "fence.proxy.async.shared::cta;\n", meet = "bar.sync 0;\n";
/// Thread 0 stores the first half, lets the tile be overwritten, and stores it again as the second half.
std::string store_twice(const std::string& between) {
    return fill + proxy + meet + "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%l61], [%r1], 2048;\n" + commit + between + meet +
           "ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r4]; st.shared.v4.b32 [%r2], {%r20, %r21, %r22, %r23};\n" + proxy + meet +
           "add.u64 %l11, %l61, 2048; @%p0 cp.async.bulk.global.shared::cta.bulk_group [%l11], [%r1], 2048;\n" + commit +
           "@%p0 cp.async.bulk.wait_group 0;\n";
}
/// Thread 0 stores to the second half of the output, and all read it from there into the first.
std::string read_back(const std::string& wait) {
    return fill + proxy + meet + "add.u64 %l11, %l61, 2048; @%p0 cp.async.bulk.global.shared::cta.bulk_group [%l11], [%r3], 2048;\n" + commit + wait +
           meet + "ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%l2+2048]; st.global.v4.b32 [%l2], {%r20, %r21, %r22, %r23};\n" +
           "@%p0 cp.async.bulk.wait_group 0;\n";
}

const Pair pairs[] = {
    {"cp.async without wait", copy_halves + "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;" + save,
     copy_halves + "cp.async.commit_group; bar.sync 0;" + save},
    {"cp.async waits for one group of two", copy_halves + "cp.async.commit_group; cp.async.wait_group 0;" + save,
     copy_halves + "cp.async.commit_group; cp.async.wait_group 1;" + save},
    {"cp.async not committed", copy_halves + "cp.async.wait_all;" + save, copy_halves + "cp.async.wait_group 0;" + save},
    {"arrival before the copies", copy_halves + "cp.async.mbarrier.arrive.noinc.shared.b64 [all];\n" + wait_for("all", 0) + save,
     copy_halves + "mbarrier.arrive.shared.b64 _, [all];\n" + wait_for("all", 0) + save},
    {"bulk load without wait", load_halves(4096) + wait_for("bar", 0) + save, load_halves(4096) + meet + save},
    {"wrong parity", load_halves(4096) + wait_for("bar", 0) + save, load_halves(4096) + wait_for("bar", 1) + save, false},
    {"too few bytes expected", load_halves(4096) + wait_for("bar", 0) + save, load_halves(2048) + wait_for("bar", 0) + save},
    {"store without proxy fence", fill + proxy + meet + store + commit + "@%p0 cp.async.bulk.wait_group 0;",
     fill + meet + store + commit + "@%p0 cp.async.bulk.wait_group 0;"},
    {"proxy fence before the writes", fill + proxy + meet + store + commit + "@%p0 cp.async.bulk.wait_group.read 0;",
     proxy + fill + meet + store + commit + "@%p0 cp.async.bulk.wait_group.read 0;"},
    {"store without wait", fill + proxy + meet + store + commit + "@%p0 cp.async.bulk.wait_group.read 0;", fill + proxy + meet + store + commit},
    {"store not committed", fill + proxy + meet + store + commit + "@%p0 cp.async.bulk.wait_group 0;",
     fill + proxy + meet + store + "@%p0 cp.async.bulk.wait_group 0;"},
    {"overwritten before it is read", store_twice("@%p0 cp.async.bulk.wait_group.read 0;\n"), store_twice("")},
    {"read back before it is written", read_back("@%p0 cp.async.bulk.wait_group 0;\n"), read_back("@%p0 cp.async.bulk.wait_group.read 0;\n")},
};

} // namespace

TEST_CASE("async: right programs are right whenever copies are done, wrong ones fail when they are late", "[kernels][async][pairs]") {
    for (const Pair& pair : pairs) check_pair(pair, run_program);
}
