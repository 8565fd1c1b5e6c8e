// SPDX-License-Identifier: Apache-2.0
// Barriers, fences and the forms around them that no other recording holds: one small kernel a form, whose result the
// hardware makes deterministic. barrier_fence_forms LIBCUDA --record > barrier_fence_forms_h100.txt
#include "tests/recordings/synchronization/cases.h"

#include <array>

using namespace recordings;

namespace {

/// A kernel `k(out, in)`: %rd1 = out, %rd2 = in (64 words 1000, 1001, ...), %r1 = %tid.x, %r2 = %ctaid.x. What a thread has in
/// %r20 at the end is its result; bodies end by running on to it.
struct Kernel {
    std::string name, body;
    unsigned grid = 1, block = 128;
    const char* target = "sm_90";
};

std::string text_of(const Kernel& kernel) {
    return std::string(".version 8.6\n.target ") + kernel.target + "\n.address_size 64\n" + R"(
.visible .global .align 128 .b32 flag[32];
.visible .global .align 128 .b32 data[64];
.visible .entry k(.param .u64 out, .param .u64 in) .maxntid 1024
{
    .reg .b16 %h<8>; .reg .b32 %r<60>; .reg .b64 %rd<40>; .reg .pred %p<10>;
    .shared .align 128 .b32 shared[256];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1,[out]; ld.param.u64 %rd2,[in];
    mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; mov.u32 %r3,%ntid.x; mov.u32 %r20,0;
    mov.u32 %r10,shared; shl.b32 %r11,%r1,2; add.u32 %r12,%r10,%r11;
)" + kernel.body + R"(
END:
    mad.lo.u32 %r4,%r2,%r3,%r1; mul.wide.u32 %rd3,%r4,4; add.u64 %rd3,%rd3,%rd1; st.global.u32 [%rd3],%r20;
    ret;
}
)";
}

/// CTA 1 sees what CTA 0 wrote before the fence: data, fence, flag; flag, fence, data.
Kernel message(const std::string& release, const std::string& acquire) {
    return {"message by " + release + " and " + acquire, R"(
    setp.ne.u32 %p1,%r1,0; @%p1 bra END;
    setp.eq.u32 %p2,%r2,1; @%p2 bra READ;
    mov.u32 %r5,77; st.relaxed.gpu.global.u32 [data],%r5;
)" + release + R"(
    mov.u32 %r6,1; st.relaxed.gpu.global.u32 [flag],%r6; mov.u32 %r20,1; bra END;
READ:
    ld.relaxed.gpu.global.u32 %r7,[flag]; setp.eq.u32 %p3,%r7,0; @%p3 bra READ;
)" + acquire + R"(
    ld.relaxed.gpu.global.u32 %r20,[data];
)", 2, 32};
}

/// The same between two warps through shared memory.
Kernel shared_message(const std::string& fence) {
    return {"shared message by " + fence, R"(
    setp.eq.u32 %p1,%r1,0; @%p1 st.volatile.shared.u32 [%r10],0; bar.sync 0;
    setp.eq.u32 %p2,%r1,32; @%p2 bra READ;
    @!%p1 bra END;
    mov.u32 %r5,91; st.volatile.shared.u32 [%r10+4],%r5;
)" + fence + R"(
    st.volatile.shared.u32 [%r10],1; bra END;
READ:
    ld.volatile.shared.u32 %r7,[%r10]; setp.eq.u32 %p3,%r7,0; @%p3 bra READ;
)" + fence + R"(
    ld.volatile.shared.u32 %r20,[%r10+4];
)", 1, 64};
}

/// A statement that computes nothing, between a store and a load of shared memory.
Kernel between(const std::string& statement, const char* target = "sm_90") {
    return {"between: " + statement, "mul.lo.u32 %r5,%r1,3; st.shared.u32 [%r12],%r5;\n" + statement +
                                         "\nbar.sync 0; xor.b32 %r6,%r11,124; add.u32 %r6,%r6,%r10; ld.shared.u32 %r20,[%r6];\n",
            1, 128, target};
}

std::vector<Kernel> kernels() {
    std::vector<Kernel> all = {
        {"bar.arrive, 64 threads", R"(
            setp.ge.u32 %p1,%r1,64; @%p1 bra END; setp.ge.u32 %p2,%r1,32; @%p2 bra WAIT;
            mad.lo.u32 %r5,%r1,7,1; st.shared.u32 [%r12],%r5; bar.arrive 1,64; mov.u32 %r20,5; bra END;
        WAIT: bar.sync 1,64; ld.shared.u32 %r20,[%r12+-128];
        )"},
        {"bar.arrive, registers, two rounds", R"(
            mov.u32 %r8,3; mov.u32 %r9,128; shr.u32 %r7,%r1,5; setp.eq.u32 %p1,%r7,3; mov.u32 %r6,0;
        LOOP: @%p1 bra TAKE; mad.lo.u32 %r5,%r6,1000,%r1; st.shared.u32 [%r12],%r5; bar.arrive %r8,%r9; bar.sync 4,128; bra NEXT;
        TAKE: bar.sync %r8,%r9; ld.shared.u32 %r5,[%r12+-384]; ld.shared.u32 %r4,[%r12+-128]; add.u32 %r5,%r5,%r4; add.u32 %r20,%r20,%r5; bar.sync 4,128;
        NEXT: add.u32 %r6,%r6,1; setp.lt.u32 %p2,%r6,2; @%p2 bra LOOP;
        )"},
        {"bar.red.popc", "rem.u32 %r5,%r1,3; setp.eq.u32 %p1,%r5,0; bar.red.popc.u32 %r20,0,%p1;\n"},
        {"bar.red.popc, negated, 64 of 128", R"(
            setp.ge.u32 %p2,%r1,64; @%p2 bra END; rem.u32 %r5,%r1,5; setp.eq.u32 %p1,%r5,0; bar.red.popc.u32 %r20,2,64,!%p1;
        )"},
        {"bar.red.popc, 100 threads", "setp.lt.u32 %p1,%r1,37; bar.red.popc.u32 %r20,15,%p1;\n", 1, 100},
        {"bar.red.and, bar.red.or", R"(
            setp.lt.u32 %p1,%r1,128; bar.red.and.pred %p2,0,%p1; selp.u32 %r20,1,0,%p2;
            setp.ne.u32 %p1,%r1,77; bar.red.and.pred %p2,1,%p1; selp.u32 %r5,2,0,%p2; or.b32 %r20,%r20,%r5;
            setp.eq.u32 %p1,%r1,77; bar.red.or.pred %p2,2,%p1; selp.u32 %r5,4,0,%p2; or.b32 %r20,%r20,%r5;
            setp.gt.u32 %p1,%r1,200; bar.red.or.pred %p2,3,%p1; selp.u32 %r5,8,0,%p2; or.b32 %r20,%r20,%r5;
            bar.red.or.pred %p2,4,!%p1; selp.u32 %r5,16,0,%p2; or.b32 %r20,%r20,%r5;
        )"},
        {"bar.red.and, 64 threads each half", R"(
            shr.u32 %r7,%r1,6; add.u32 %r8,%r7,5; setp.ne.u32 %p1,%r1,100; bar.red.and.pred %p2,%r8,64,%p1; selp.u32 %r20,1,0,%p2;
        )"},
        {"barrier.red in warps of different places", R"(
            shr.u32 %r7,%r1,5; setp.lt.u32 %p1,%r1,50; setp.eq.u32 %p2,%r7,1; @%p2 bra OTHER;
            barrier.red.popc.u32 %r20,6,128,%p1; bra END;
        OTHER: barrier.red.popc.u32 %r20,6,128,%p1; add.u32 %r20,%r20,1000;
        )"},
        {"legacy shfl", R"(
            mul.lo.u32 %r5,%r1,11; shfl.up.b32 %r6|%p1,%r5,3,0; shfl.down.b32 %r7,%r5,5,31; shfl.bfly.b32 %r8,%r5,9,31; shfl.idx.b32 %r9,%r5,4,0x181f;
            xor.b32 %r20,%r6,%r7; mad.lo.u32 %r20,%r20,31,%r8; mad.lo.u32 %r20,%r20,31,%r9; selp.u32 %r4,1,0,%p1; add.u32 %r20,%r20,%r4;
        )", 1, 64, "sm_60"},
        {"legacy vote", R"(
            rem.u32 %r5,%r1,3; setp.eq.u32 %p1,%r5,0; vote.all.pred %p2,%p1; selp.u32 %r20,1,0,%p2; vote.any.pred %p2,%p1; selp.u32 %r6,2,0,%p2; or.b32 %r20,%r20,%r6;
            vote.uni.pred %p2,%p1; selp.u32 %r6,4,0,%p2; or.b32 %r20,%r20,%r6; vote.ballot.b32 %r7,%p1; mad.lo.u32 %r20,%r7,8,%r20;
        )", 1, 64, "sm_60"},
        {"griddepcontrol", R"(
            griddepcontrol.wait; mul.lo.u32 %r20,%r1,5; griddepcontrol.launch_dependents; add.u32 %r20,%r20,1;
        )", 3, 64},
        {"cp.async with a cache policy", R"(
            createpolicy.fractional.L2::evict_last.b64 %rd5,0.5; and.b32 %r5,%r1,3; mul.wide.u32 %rd6,%r5,16; add.u64 %rd6,%rd6,%rd2;
            shl.b32 %r6,%r5,4; add.u32 %r6,%r6,%r10; setp.ge.u32 %p1,%r1,4; @%p1 bra DONE;
            cp.async.cg.shared.global.L2::cache_hint [%r6],[%rd6],16,%rd5; cp.async.ca.shared.global.L2::cache_hint [%r6+256],[%rd6],8,4,%rd5; cp.async.wait_all;
        DONE: bar.sync 0; and.b32 %r7,%r1,63; shl.b32 %r7,%r7,2; add.u32 %r7,%r7,%r10; setp.ge.u32 %p2,%r1,16; @%p2 bra END;
            ld.shared.u32 %r20,[%r7]; and.b32 %r8,%r1,3; setp.lt.u32 %p3,%r8,2; @%p3 ld.shared.u32 %r9,[%r7+256]; @%p3 mad.lo.u32 %r20,%r9,3,%r20;
        )"},
        {"bulk copy, multicast with a cache policy, size of a range", R"(
            setp.ne.u32 %p1,%r1,0; mov.u32 %r5,bar; @%p1 bra WAIT;
            createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %rd5,[%rd2],64,256;
            mbarrier.init.shared.b64 [%r5],1; fence.mbarrier_init.release.cluster; mbarrier.arrive.expect_tx.shared.b64 %rd6,[%r5],256;
            mov.u16 %h1,1;
            cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r10],[%rd2],256,[%r5],%h1,%rd5;
        WAIT: bar.sync 0;
        TRY: mbarrier.try_wait.parity.shared.b64 %p2,[%r5],0; @!%p2 bra TRY;
            setp.ge.u32 %p3,%r1,64; @%p3 bra END; ld.shared.u32 %r20,[%r12];
        )"},
        {"tensormap.cp_fenceproxy", R"(
            mov.u64 %rd5,data; cvta.global.u64 %rd5,%rd5; setp.ge.u32 %p1,%r1,32; @%p1 bra END;
            mad.lo.u32 %r5,%r1,13,4; st.shared.u32 [%r12],%r5; bar.warp.sync 0xffffffff;
            tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd5],[%r10],128;
            fence.proxy.tensormap::generic.acquire.gpu [%rd5],128;
            mul.wide.u32 %rd6,%r1,4; add.u64 %rd6,%rd6,%rd5; ld.u32 %r20,[%rd6];
        )", 1, 32},
        {"discard, then written", R"(
            mov.u64 %rd5,data; and.b32 %r5,%r1,63; setp.eq.u32 %p1,%r1,0; @%p1 discard.global.L2 [data],128; bar.sync 0;
            mul.wide.u32 %rd6,%r5,4; add.u64 %rd6,%rd6,%rd5; st.global.u32 [%rd6],%r5; ld.global.u32 %r20,[%rd6];
        )"},
        {"alloca", R"(
            stacksave.u64 %rd5; and.b32 %r5,%r1,3; add.u32 %r5,%r5,1; mul.wide.u32 %rd6,%r5,16; alloca.u64 %rd7,%rd6,16; st.local.u32 [%rd7],%r1; cvt.u64.u32 %rd8,%r5; add.u64 %rd9,%rd7,%rd6;
            st.local.u32 [%rd9+-4],%r5; ld.local.u32 %r6,[%rd7]; ld.local.u32 %r7,[%rd9+-4]; mad.lo.u32 %r20,%r6,100,%r7; stackrestore.u64 %rd5; stacksave.u64 %rd10; setp.eq.u64 %p1,%rd10,%rd5; selp.u32 %r8,100000,0,%p1; add.u32 %r20,%r20,%r8;
        )"},
    };
    for (const char* fence : {"membar.gl;", "membar.sys;", "fence.acq_rel.gpu;", "fence.acq_rel.sys;", "fence.sc.gpu;", "fence.sc.sys;", "fence.gpu;"})
        all.push_back(message(fence, fence));
    all.push_back(message("fence.release.gpu;", "fence.acquire.gpu;"));
    all.push_back(message("fence.proxy.alias; fence.acq_rel.gpu;", "fence.acq_rel.gpu; fence.proxy.alias;"));
    all.push_back(message("fence.proxy.async; fence.acq_rel.gpu;", "fence.acq_rel.gpu; fence.proxy.async.global;"));
    all.push_back(message("fence.proxy.tensormap::generic.release.gpu; fence.acq_rel.gpu;",
                          "mov.u64 %rd8,data; cvta.global.u64 %rd8,%rd8; fence.proxy.tensormap::generic.acquire.gpu [%rd8],128; fence.acq_rel.gpu;"));
    for (const char* fence : {"membar.cta;", "fence.acq_rel.cta;", "fence.sc.cta;", "fence.acq_rel.cluster;", "fence.sc.cluster;"})
        all.push_back(shared_message(fence));
    for (const char* statement : {"fence.acquire.sync_restrict::shared::cluster.cluster;", "fence.release.sync_restrict::shared::cta.cluster;",
                                  "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;",
                                  "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;", "fence.proxy.alias;", "membar.proxy.alias;",
                                  "fence.proxy.async.shared::cta;", "fence.proxy.async.shared::cluster;", "fence.mbarrier_init.release.cluster;", "pmevent 7;",
                                  "pmevent.mask 0x11;"})
        all.push_back(between(statement));
    return all;
}

/// The first eight results and a hash of all.
std::string run(Driver& driver, const Kernel& kernel) {
    constexpr unsigned most = 512;
    std::array<std::uint32_t, 64> in;
    for (unsigned i = 0; i < in.size(); ++i) in[i] = 1000 + i;
    std::array<std::uint32_t, most> out{};
    Address memory[2] = {driver.allocate(sizeof out), driver.allocate(sizeof in)};
    driver.upload(memory[0], out.data(), sizeof out);
    driver.upload(memory[1], in.data(), sizeof in);
    void* const module = driver.load(text_of(kernel));
    void* parameters[] = {&memory[0], &memory[1]};
    driver.launch(module, "k", kernel.grid, kernel.block, 1, parameters);
    driver.call<>("cuCtxSynchronize");
    driver.download(out.data(), memory[0], sizeof out);
    std::string text;
    for (unsigned i = 0; i < 8; ++i) text += std::to_string(out[i]) + " ";
    text += hex(hash_bytes(out.data(), sizeof out));
    driver.unload(module);
    for (const Address address : memory) driver.call<Address>("cuMemFree_v2", address);
    return text;
}

} // namespace

int main(int argc, char** argv) {
    std::vector<Case> cases;
    for (const Kernel& kernel : kernels()) {
        std::string name = kernel.name;
        for (std::size_t at; (at = name.find(": ")) != std::string::npos;) name.erase(at, 1);
        cases.push_back({name, [kernel](Driver& driver) { return run(driver, kernel); }});
    }
    return run_cases(argc, argv, cases);
}
