// SPDX-License-Identifier: Apache-2.0
// Message passing through what orders asynchronous programs: mbarrier objects of one CTA and of a
// cluster's neighbour, with release and acquire or with fences, barrier.cluster, bulk copies both
// ways. One warp writes 32 words and tells another one, thousands of times; a word that is not the
// round's is counted.
//   async_litmus LIBCUDA [ROUNDS]     exit status 1 if something forbidden was seen
#include "tests/recordings/driver.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace recordings;

struct Shape {
    const char* name;
    bool cluster;        ///< the reader is in the neighbour
    const char* produce; ///< writes %r20 (for the lane) at %rd2 or %r2 and tells [%r6]
    const char* consume; ///< after a phase of `full`: reads %r10
    const char* wait = "acquire.cta";
};

const Shape shapes[] = {
    {"mbarrier, global memory", false,
     "st.global.u32 [%rd2],%r20; mbarrier.arrive.release.cta.shared::cta.b64 _,[%r6];",
     "ld.global.u32 %r10,[%rd2];"},
    {"mbarrier, shared memory", false,
     "st.shared.u32 [%r2],%r20; mbarrier.arrive.shared.b64 _,[%r6];", "ld.shared.u32 %r10,[%r2];"},
    {"relaxed mbarrier behind fences", false,
     "st.global.u32 [%rd2],%r20; fence.acq_rel.cta; mbarrier.arrive.relaxed.cta.shared::cta.b64 "
     "_,[%r6];",
     "fence.acq_rel.cta; ld.global.u32 %r10,[%rd2];", "relaxed.cta"},
    {"mbarrier of a neighbour, its shared memory", true,
     "st.shared::cluster.u32 [%r7],%r20; mbarrier.arrive.release.cluster.shared::cluster.b64 "
     "_,[%r6];",
     "ld.shared.u32 %r10,[%r2];", "acquire.cluster"},
    {"mbarrier of a neighbour, own shared memory", true,
     "st.shared.u32 [%r2],%r20; mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%r6];",
     "ld.shared::cluster.u32 %r10,[%r7];", "acquire.cluster"},
    {"mbarrier of a neighbour, global memory", true,
     "st.global.u32 [%rd2],%r20; mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%r6];",
     "ld.global.u32 %r10,[%rd2];", "acquire.cluster"},
    {"bulk copy to shared memory", false,
     "st.global.u32 [%rd2],%r20; fence.proxy.async; bar.warp.sync -1;\n"
     "@%p1 mbarrier.arrive.expect_tx.shared.b64 _,[%r6],128; @!%p1 mbarrier.arrive.shared.b64 "
     "_,[%r6];\n"
     "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
     "[buf],[%rd2],128,[%r6];",
     "ld.shared.u32 %r10,[%r2];"},
    {"bulk copy to global memory", false,
     "st.shared.u32 [%r2],%r20; fence.proxy.async.shared::cta; bar.warp.sync -1;\n"
     "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2],[buf],128; @%p1 "
     "cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;\n"
     "bar.warp.sync -1; mbarrier.arrive.shared.b64 _,[%r6];",
     "ld.global.u32 %r10,[%rd2];"},
    {"bulk copy to a neighbour", true,
     "st.shared.u32 [%r2],%r20; fence.proxy.async.shared::cta; bar.warp.sync -1;\n"
     "@%p1 mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _,[%r6],128; @!%p1 "
     "mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%r6];\n"
     "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
     "[%r8],[buf],128,[%r6];",
     "add.u32 %r11,%r12,%r21; ld.shared.u32 %r10,[%r11];", "acquire.cluster"},
    {"st.async to a neighbour", true,
     "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _,[%r6],4; "
     "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r7],%r20,[%r6];",
     "ld.shared.u32 %r10,[%r2];", "acquire.cluster"},
};

/// The reader is warp or block 0, which runs first: without its wait the two lose each other, and
/// the test does not end. %r2: the lane's word of `buf`, %r7: the other block's, %r8: its `other`;
/// %r6: `full` where the reader is, %r9: `empty` where the writer is; %rd2: the lane's word of the
/// round.
std::string text_of(const Shape& shape) {
    const std::string wait = shape.wait, scope = shape.cluster ? "cluster" : "cta";
    return std::string(".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param "
                       ".u64 data, .param .u64 bad, .param .u32 rounds)") +
           (shape.cluster ? " .reqnctapercluster 2,1,1" : "") + R"( {
    .shared .align 128 .b8 buf[128]; .shared .align 128 .b8 other[128]; .shared .align 8 .b64 full; .shared .align 8 .b64 empty;
    .reg .b32 %r<40>; .reg .b64 %rd<10>; .reg .pred %p<8>;
    ld.param.u64 %rd1,[data]; ld.param.u64 %rd9,[bad]; ld.param.u32 %r19,[rounds];
    mov.u32 %r1,%laneid; mov.u32 %r3,%tid.x; shr.u32 %r3,%r3,5; setp.eq.u32 %p1,%r1,0; shl.b32 %r21,%r1,2;
    mov.u32 %r12,other; mov.u32 %r2,buf; add.u32 %r2,%r2,%r21; mov.u32 %r6,full; mov.u32 %r9,empty; mov.u32 %r30,full; mov.u32 %r31,empty;
    mov.u32 %r4,%cluster_ctarank; )" +
           (shape.cluster ? R"(
    xor.b32 %r5,%r4,1; mapa.shared::cluster.u32 %r7,%r2,%r5; mapa.shared::cluster.u32 %r8,%r12,%r5;
    mapa.shared::cluster.u32 %r6,%r6,0; mapa.shared::cluster.u32 %r9,%r9,1; setp.eq.u32 %p2,%r4,1;)"
                          : "\n    setp.eq.u32 %p2,%r3,1;") +
           R"(
    mov.u32 %r32,%tid.x; setp.eq.u32 %p3,%r32,0;
    @%p3 mbarrier.init.shared.b64 [full],32; @%p3 mbarrier.init.shared.b64 [empty],32; fence.mbarrier_init.release.cluster;
    )" + (shape.cluster ? "barrier.cluster.arrive; barrier.cluster.wait;" : "bar.sync 0;") +
           R"(
    mul.wide.u32 %rd3,%r21,1; add.u64 %rd2,%rd1,%rd3; mov.u32 %r18,0;
LOOP:
    mad.lo.u32 %r20,%r18,32,%r1; add.u32 %r20,%r20,1; and.b32 %r16,%r18,1; xor.b32 %r17,%r16,1;
    @!%p2 bra READ;
EMPTY:
    mbarrier.try_wait.parity.acquire.)" +
           scope + R"(.shared::cta.b64 %p4,[%r31],%r17; @!%p4 bra EMPTY;
    )" + shape.produce +
           R"(
    bra NEXT;
READ:
    mbarrier.try_wait.parity.)" +
           wait + R"(.shared::cta.b64 %p4,[%r30],%r16; @!%p4 bra READ;
    )" + shape.consume +
           R"(
    setp.ne.u32 %p5,%r10,%r20; @%p5 red.global.add.u32 [%rd9],1;
    )" +
           (shape.cluster ? "mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%r9];"
                          : "mbarrier.arrive.release.cta.shared::cta.b64 _,[%r9];") +
           R"(
NEXT:
    add.u64 %rd2,%rd2,128; add.u32 %r18,%r18,1; setp.lt.u32 %p6,%r18,%r19; @%p6 bra LOOP;
    )" + (shape.cluster ? "barrier.cluster.arrive; barrier.cluster.wait;" : "") +
           "\n    ret;\n}\n";
}

/// Both blocks write, wait and read what the other one has written, in shared and in global memory.
const char* const cluster_barrier = R"(.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 bad, .param .u32 rounds) .reqnctapercluster 2,1,1 {
    .shared .align 128 .b8 buf[128];
    .reg .b32 %r<40>; .reg .b64 %rd<10>; .reg .pred %p<8>;
    ld.param.u64 %rd1,[data]; ld.param.u64 %rd9,[bad]; ld.param.u32 %r19,[rounds];
    mov.u32 %r1,%laneid; shl.b32 %r21,%r1,2; mov.u32 %r2,buf; add.u32 %r2,%r2,%r21; mov.u32 %r4,%cluster_ctarank; xor.b32 %r5,%r4,1;
    mapa.shared::cluster.u32 %r7,%r2,%r5; mov.u32 %r18,0;
    mad.lo.u32 %r22,%r4,128,%r21; mad.lo.u32 %r23,%r5,128,%r21; cvt.u64.u32 %rd2,%r22; cvt.u64.u32 %rd3,%r23;
    add.u64 %rd2,%rd2,%rd1; add.u64 %rd3,%rd3,%rd1;
LOOP:
    mad.lo.u32 %r20,%r18,64,%r1; mad.lo.u32 %r24,%r5,32,%r20; mad.lo.u32 %r20,%r4,32,%r20;
    st.shared.u32 [%r2],%r20; st.global.u32 [%rd2],%r20;
    barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
    ld.shared::cluster.u32 %r10,[%r7]; ld.global.u32 %r11,[%rd3];
    setp.ne.u32 %p5,%r10,%r24; @%p5 red.global.add.u32 [%rd9],1; setp.ne.u32 %p5,%r11,%r24; @%p5 red.global.add.u32 [%rd9],1;
    fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait;
    add.u32 %r18,%r18,1; setp.lt.u32 %p6,%r18,%r19; @%p6 bra LOOP;
    ret;
}
)";

} // namespace

int main(int count, char** arguments) {
    if (count < 2) {
        std::fprintf(stderr, "usage: %s LIBCUDA [ROUNDS]\n", arguments[0]);
        return 2;
    }
    Driver driver(arguments[1]);
    std::uint32_t rounds = count > 2 ? static_cast<std::uint32_t>(std::atoi(arguments[2])) : 2000;
    Address data = driver.allocate(std::size_t{128} * rounds + 256), bad = driver.allocate(4);
    unsigned forbidden = 0;
    const auto run = [&](const char* name, const std::string& text, unsigned blocks,
                         unsigned threads) {
        const std::vector<std::uint32_t> zeros(std::size_t{32} * rounds + 64);
        driver.upload(data, zeros.data(), zeros.size() * 4);
        driver.upload(bad, zeros.data(), 4);
        void* module = driver.load(text);
        void* parameters[] = {&data, &bad, &rounds};
        driver.launch(module, "k", blocks, threads, 1, parameters);
        driver.call("cuCtxSynchronize");
        std::uint32_t wrong = 0;
        driver.download(&wrong, bad, 4);
        driver.unload(module);
        std::printf("%-45s %u wrong words in %u rounds\n", name, wrong, rounds);
        forbidden += wrong;
    };
    for (const Shape& shape : shapes)
        run(shape.name, text_of(shape), shape.cluster ? 2 : 1, shape.cluster ? 32 : 64);
    run("barrier.cluster, shared and global memory", cluster_barrier, 2, 32);
    return forbidden == 0 ? 0 : 1;
}
