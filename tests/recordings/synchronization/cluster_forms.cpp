// SPDX-License-Identifier: Apache-2.0
// Clusters: special registers, addresses, memory of other CTAs, barriers, mbarriers and asynchronous stores across CTAs, what is
// refused. Recorded on an H200 (2026-11-22): cluster_forms LIBCUDA --record > cluster_forms_h200.txt
#include "tests/recordings/synchronization/cases.h"

#include <array>

using namespace recordings;

namespace {

using Extents = std::array<unsigned, 3>;

/// CUlaunchConfig and CUlaunchAttribute, as cuda.h has them.
struct Attribute {
    unsigned id, padding;
    union {
        char pad[64];
        Extents cluster;
    };
};
struct Config {
    Extents grid, block;
    unsigned shared;
    void* stream;
    Attribute* attributes;
    unsigned count;
};

/// A kernel `k` with parameter `out` in %rd1, the CTA's linear number in %r40, %tid.x in %r41, its rank in %r42, the cluster's
/// size in %r43.
struct Kernel {
    std::string body;
    std::string directives{}; ///< behind the parameters
    std::string globals{};
};

std::string text_of(const Kernel& kernel) {
    return ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)" + kernel.directives + "\n{\n" +
           kernel.globals + R"(
    .reg .b16 %h<10>; .reg .b32 %r<60>; .reg .b64 %rd<40>; .reg .f32 %f<10>; .reg .f64 %d<10>; .reg .pred %p<10>; .reg .b128 %q<4>;
    ld.param.u64 %rd1,[out];
    mov.u32 %r50,%ctaid.x; mov.u32 %r51,%ctaid.y; mov.u32 %r52,%ctaid.z; mov.u32 %r53,%nctaid.x; mov.u32 %r54,%nctaid.y;
    mad.lo.u32 %r40,%r52,%r54,%r51; mad.lo.u32 %r40,%r40,%r53,%r50;
    mov.u32 %r41,%tid.x; mov.u32 %r42,%cluster_ctarank; mov.u32 %r43,%cluster_nctarank;
)" + kernel.body + "\n    ret;\n}\n";
}

struct Launch {
    Extents grid{1, 1, 1}, block{32, 1, 1};
    Extents cluster{0, 0, 0}; ///< zeros: no attribute
    unsigned words = 64;      ///< of the result
    bool non_portable = false;
};

/// The result as its first words and a hash of all.
std::string run_kernel(Driver& driver, const Kernel& kernel, const Launch& launch) {
    void *module = driver.load(text_of(kernel)), *function = nullptr;
    driver.call<void**, void*, const char*>("cuModuleGetFunction", &function, module, "k");
    if (launch.non_portable) driver.call<void*, int, int>("cuFuncSetAttribute", function, 14, 1);
    Address out = driver.allocate(launch.words * 4);
    driver.call<Address, unsigned char, std::size_t>("cuMemsetD8_v2", out, 0, launch.words * 4);
    Attribute attribute{};
    attribute.id = 4;
    attribute.cluster = launch.cluster;
    Config config{launch.grid, launch.block, 0, nullptr, &attribute, launch.cluster[0] != 0 ? 1u : 0u};
    void* parameters[] = {&out};
    driver.call<const Config*, void*, void**, void**>("cuLaunchKernelEx", &config, function, parameters, nullptr);
    driver.call("cuCtxSynchronize");
    std::vector<std::uint32_t> words(launch.words);
    driver.download(words.data(), out, words.size() * 4);
    driver.call<Address>("cuMemFree_v2", out);
    driver.unload(module);
    std::string text = hex(hash_bytes(words.data(), words.size() * 4));
    for (std::size_t i = 0; i < words.size() && i < 24; ++i) text += " " + hex(words[i]);
    return text;
}

const std::string sync = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n";

/// %rd2 = out + 4 * words * CTA.
std::string place(unsigned words) {
    return "mul.wide.u32 %rd2,%r40," + std::to_string(words * 4) + "; add.u64 %rd2,%rd2,%rd1;\n";
}

/// %rd2 = out + 4 * (CTA * threads + thread).
std::string thread_place(unsigned threads) {
    return "mad.lo.u32 %r55,%r40," + std::to_string(threads) + ",%r41; mul.wide.u32 %rd2,%r55,4; add.u64 %rd2,%rd2,%rd1;\n";
}

Kernel registers(const std::string& directives = "") {
    std::string body = "setp.ne.u32 %p1,%r41,0; @%p1 ret;\n" + place(16);
    unsigned index = 0;
    for (const char* name : {"%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"})
        for (const char* component : {".x", ".y", ".z"})
            body += "mov.u32 %r1," + std::string(name) + component + "; st.global.u32 [%rd2+" + std::to_string(4 * index++) + "],%r1;\n";
    body += "st.global.u32 [%rd2+48],%r42; st.global.u32 [%rd2+52],%r43; mov.pred %p2,%is_explicit_cluster; selp.u32 %r1,1,0,%p2; "
            "st.global.u32 [%rd2+56],%r1;\n";
    return {body, directives};
}

/// What addresses are, relative to the CTA's own. Rank of the neighbour in %r1, its address in %r3 (shared) and %rd5 (generic).
const Kernel addresses = {
    "setp.ne.u32 %p1,%r41,0; @%p1 ret;\n" + place(16) + R"(
    add.u32 %r1,%r42,1; rem.u32 %r1,%r1,%r43;
    mov.u32 %r2,v; mapa.shared::cluster.u32 %r3,%r2,%r1; sub.u32 %r4,%r3,%r2; st.global.u32 [%rd2],%r4;
    getctarank.shared::cluster.u32 %r5,%r3; st.global.u32 [%rd2+4],%r5;
    getctarank.shared::cluster.u32 %r5,%r2; st.global.u32 [%rd2+8],%r5;
    shr.u32 %r5,%r2,24; st.global.u32 [%rd2+12],%r5;
    mov.u64 %rd3,v; cvta.shared.u64 %rd4,%rd3; mapa.u64 %rd5,%rd4,%r1; sub.u64 %rd6,%rd5,%rd4; cvt.u32.u64 %r6,%rd6; st.global.u32 [%rd2+16],%r6;
    getctarank.u64 %r5,%rd5; st.global.u32 [%rd2+20],%r5;
    getctarank.u64 %r5,%rd4; st.global.u32 [%rd2+24],%r5;
    isspacep.shared %p1,%rd4; isspacep.shared::cta %p2,%rd4; isspacep.shared::cluster %p3,%rd4; isspacep.global %p4,%rd4;
    selp.u32 %r7,1,0,%p1; selp.u32 %r8,2,0,%p2; selp.u32 %r9,4,0,%p3; selp.u32 %r10,8,0,%p4;
    or.b32 %r7,%r7,%r8; or.b32 %r9,%r9,%r10; or.b32 %r7,%r7,%r9; st.global.u32 [%rd2+28],%r7;
    isspacep.shared %p1,%rd5; isspacep.shared::cta %p2,%rd5; isspacep.shared::cluster %p3,%rd5; isspacep.global %p4,%rd5;
    selp.u32 %r7,1,0,%p1; selp.u32 %r8,2,0,%p2; selp.u32 %r9,4,0,%p3; selp.u32 %r10,8,0,%p4;
    or.b32 %r7,%r7,%r8; or.b32 %r9,%r9,%r10; or.b32 %r7,%r7,%r9; st.global.u32 [%rd2+32],%r7;
    cvta.to.shared::cluster.u64 %rd7,%rd5; cvt.u32.u64 %r11,%rd7; sub.u32 %r11,%r11,%r3; st.global.u32 [%rd2+36],%r11;
    cvta.to.shared.u64 %rd7,%rd4; cvt.u32.u64 %r11,%rd7; sub.u32 %r11,%r11,%r2; st.global.u32 [%rd2+40],%r11;
    mapa.shared::cluster.u32 %r12,%r3,%r42; sub.u32 %r12,%r12,%r2; st.global.u32 [%rd2+44],%r12;
    cvta.shared::cluster.u64 %rd8,%rd3; sub.u64 %rd8,%rd8,%rd4; cvt.u32.u64 %r12,%rd8; st.global.u32 [%rd2+48],%r12;
)", "", ".shared .align 16 .b32 v[64];"};

/// Each thread stores to the next CTA, adds in the one after, reads back through a third way.
Kernel exchange(const std::string& store, const std::string& atomic, const std::string& load) {
    return {R"(
    mov.u32 %r1,v; shl.b32 %r2,%r41,4; add.u32 %r1,%r1,%r2; mov.u32 %r3,0; st.shared.v4.u32 [%r1],{%r3,%r3,%r3,%r3};
    add.u32 %r4,%r42,1; rem.u32 %r4,%r4,%r43; add.u32 %r5,%r42,2; rem.u32 %r5,%r5,%r43;
    mapa.shared::cluster.u32 %r6,%r1,%r4; mapa.shared::cluster.u32 %r7,%r1,%r5;
    cvt.u64.u32 %rd3,%r6; cvta.shared::cluster.u64 %rd3,%rd3; cvt.u64.u32 %rd4,%r7; cvta.shared::cluster.u64 %rd4,%rd4;
    mad.lo.u32 %r8,%r40,1000,%r41; add.u32 %r9,%r8,0x12340000; cvt.u64.u32 %rd5,%r9; mul.lo.u64 %rd5,%rd5,0x100000001;
    cvt.rn.f32.u32 %f1,%r8; cvt.rn.f64.u32 %d1,%r8; cvt.u16.u32 %h1,%r8;
)" + sync + store + "\n" + sync + atomic + "\n" + sync + load + "\n" + sync +
                thread_place(32) + "st.global.u32 [%rd2],%r20;\n"
                                   "ld.shared.v4.u32 {%r21,%r22,%r23,%r24},[%r1]; xor.b32 %r21,%r21,%r22; mul.lo.u32 %r23,%r23,7; add.u32 %r21,%r21,%r23; add.u32 %r21,%r21,%r24; "
                                   "st.global.u32 [%rd2+1024],%r21;\n",
            "", ".shared .align 16 .b32 v[512];"};
}

/// Thread 0 of the CTAs with rank > 0 does `remote` to CTA 0's objects; CTA 0 waits at `bar` and reports `data` and the object's phase.
/// Addresses in CTA 0: bar in %r1 and %rd3, data in %r2 and %rd4; %r3 = 100 + rank.
Kernel tell(unsigned arrivals, unsigned transactions, const std::string& remote) {
    return {R"(
    mov.u32 %r10,bar; mov.u32 %r11,data; mov.u32 %r12,0;
    setp.ne.u32 %p1,%r41,0;
    @%p1 bra MADE;
    mbarrier.init.shared.b64 [%r10],)" + std::to_string(arrivals) + R"(;
    st.shared.v4.u32 [%r11],{%r12,%r12,%r12,%r12}; mov.u32 %r13,50; st.shared.u32 [%r11+16],%r13; mov.u32 %r13,-1; st.shared.u32 [%r11+20],%r13;
    setp.ne.u32 %p2,%r42,0;
    @!%p2 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r10],)" + std::to_string(transactions) + R"(;
MADE:
    fence.mbarrier_init.release.cluster;
)" + sync + R"(
    setp.eq.u32 %p2,%r42,0;
    @%p2 bra WAIT;
    @%p1 bra DONE;
    mapa.shared::cluster.u32 %r1,%r10,0; mapa.shared::cluster.u32 %r2,%r11,0; add.u32 %r3,%r42,100; cvt.u64.u32 %rd5,%r3; cvt.rn.f32.u32 %f1,%r3; cvt.rn.f64.u32 %d1,%r3;
    cvt.u64.u32 %rd3,%r1; cvta.shared::cluster.u64 %rd3,%rd3; cvt.u64.u32 %rd4,%r2; cvta.shared::cluster.u64 %rd4,%rd4;
)" + remote + R"(
    bra DONE;
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3,[%r10],0;
    @!%p3 bra WAIT;
    @%p1 bra DONE;
    mov.u32 %r20,0;
COPY:
    shl.b32 %r21,%r20,2; add.u32 %r22,%r11,%r21; ld.shared.u32 %r23,[%r22]; cvt.u64.u32 %rd6,%r21; add.u64 %rd6,%rd6,%rd1; st.global.u32 [%rd6],%r23;
    add.u32 %r20,%r20,1; setp.lt.u32 %p4,%r20,6; @%p4 bra COPY;
    mbarrier.test_wait.parity.shared.b64 %p3,[%r10],1; selp.u32 %r24,1,0,%p3; st.global.u32 [%rd1+32],%r24;
DONE:
)" + sync, "", ".shared .align 8 .b64 bar; .shared .align 16 .b32 data[8];"};
}

const Launch four{{4, 1, 1}, {32, 1, 1}, {4, 1, 1}, 64};

struct Named {
    std::string name;
    Kernel kernel;
    Launch launch = four;
};

std::vector<Named> kernels() {
    std::vector<Named> all;
    const auto cluster = [](Extents grid, Extents shape, unsigned words, bool non_portable = false) {
        return Launch{grid, {32, 1, 1}, shape, words, non_portable};
    };
    all.push_back({"registers, no cluster", registers(), cluster({4, 2, 1}, {0, 0, 0}, 128)});
    all.push_back({"registers, 1x1x1", registers(), cluster({4, 2, 1}, {1, 1, 1}, 128)});
    all.push_back({"registers, 2x1x1", registers(), cluster({8, 1, 1}, {2, 1, 1}, 128)});
    all.push_back({"registers, 2x2x1", registers(), cluster({4, 6, 1}, {2, 2, 1}, 384)});
    all.push_back({"registers, 1x2x4", registers(), cluster({2, 4, 8}, {1, 2, 4}, 1024)});
    all.push_back({"registers, 3x1x2", registers(), cluster({6, 2, 4}, {3, 1, 2}, 768)});
    all.push_back({"registers, 16x1x1", registers(), cluster({32, 1, 1}, {16, 1, 1}, 512, true)});
    all.push_back({"registers, required 2x1x1", registers(".reqnctapercluster 2,1,1"), cluster({4, 2, 1}, {0, 0, 0}, 128)});
    all.push_back({"registers, required and asked for", registers(".reqnctapercluster 2,1,1"), cluster({4, 2, 1}, {2, 1, 1}, 128)});
    all.push_back({"registers, explicit 2x1x1", registers(".explicitcluster .reqnctapercluster 2,1,1"), cluster({4, 2, 1}, {0, 0, 0}, 128)});
    all.push_back({"registers, explicit", registers(".explicitcluster"), cluster({4, 2, 1}, {2, 2, 1}, 128)});
    all.push_back({"registers, explicit, no cluster", registers(".explicitcluster"), cluster({4, 2, 1}, {0, 0, 0}, 128)});
    all.push_back({"registers, most 4", registers(".maxclusterrank 4"), cluster({4, 2, 1}, {4, 1, 1}, 128)});
    all.push_back({"refused, more than .maxclusterrank", registers(".maxclusterrank 4"), cluster({8, 2, 1}, {8, 1, 1}, 256)});
    all.push_back({"refused, another size than required", registers(".reqnctapercluster 2,1,1"), cluster({4, 2, 1}, {4, 1, 1}, 128)});
    all.push_back({"refused, a grid that does not divide", registers(), cluster({5, 1, 1}, {2, 1, 1}, 128)});
    all.push_back({"refused, 16 without asking", registers(), cluster({16, 1, 1}, {16, 1, 1}, 256)});
    all.push_back({"refused, 32", registers(), cluster({32, 1, 1}, {32, 1, 1}, 512, true)});
    all.push_back({"refused, required and a grid that does not divide", registers(".reqnctapercluster 2,1,1"), cluster({5, 1, 1}, {0, 0, 0}, 128)});
    all.push_back({"addresses, 4", addresses, cluster({8, 1, 1}, {4, 1, 1}, 128)});
    all.push_back({"addresses, 2x2", addresses, cluster({4, 2, 1}, {2, 2, 1}, 128)});
    all.push_back({"addresses, alone", addresses, cluster({8, 1, 1}, {0, 0, 0}, 128)});
    // Memory of other CTAs.
    const std::string read = "ld.shared::cluster.u32 %r20,[%r6];";
    for (const auto& [name, store] : std::vector<std::array<std::string, 2>>{
             {"b8", "st.shared::cluster.u8 [%r6+3],%h1;"}, {"b16", "st.shared::cluster.u16 [%r6+2],%h1;"}, {"b32", "st.shared::cluster.u32 [%r6+8],%r9;"},
             {"b64", "st.shared::cluster.u64 [%r6+8],%rd5;"}, {"f32", "st.shared::cluster.f32 [%r6],%f1;"}, {"f64", "st.shared::cluster.f64 [%r6+8],%d1;"},
             {"v2.b32", "st.shared::cluster.v2.u32 [%r6+8],{%r8,%r9};"}, {"v4.b32", "st.shared::cluster.v4.u32 [%r6],{%r8,%r9,%r8,%r9};"},
             {"v2.b64", "st.shared::cluster.v2.u64 [%r6],{%rd5,%rd5};"}, {"generic b32", "st.u32 [%rd3+4],%r9;"}, {"generic v4", "st.v4.u32 [%rd3],{%r8,%r9,%r9,%r8};"},
             {"volatile", "st.volatile.shared::cluster.u32 [%r6+4],%r9;"}, {"relaxed", "st.relaxed.cluster.shared::cluster.u32 [%r6+4],%r9;"},
             {"release", "st.release.cluster.shared::cluster.u64 [%r6+8],%rd5;"}, {"generic release", "st.release.gpu.u32 [%rd3],%r9;"}})
        all.push_back({"store " + name, exchange(store, "", read), cluster({8, 1, 1}, {4, 1, 1}, 512)});
    for (const auto& [name, atomic] : std::vector<std::array<std::string, 2>>{
             {"add u32", "atom.shared::cluster.add.u32 %r30,[%r7],%r9; red.relaxed.cluster.shared::cluster.add.u32 [%r6],%r30;"}, {"add s32", "red.shared::cluster.add.s32 [%r7],%r9;"},
             {"add u64", "atom.acq_rel.cluster.shared::cluster.add.u64 %rd8,[%r7+8],%rd5;"}, {"add f32", "atom.shared::cluster.add.f32 %f2,[%r7+4],%f1;"},
             {"add f64", "atom.shared::cluster.add.f64 %d2,[%r7+8],%d1;"}, {"and", "atom.shared::cluster.and.b32 %r30,[%r6],%r9;"}, {"or", "atom.shared::cluster.or.b32 %r30,[%r7],%r9;"},
             {"xor b64", "atom.shared::cluster.xor.b64 %rd8,[%r7],%rd5;"}, {"min", "atom.shared::cluster.min.s32 %r30,[%r7],-5;"}, {"max", "atom.shared::cluster.max.u32 %r30,[%r7],%r9;"},
             {"max u64", "atom.shared::cluster.max.u64 %rd8,[%r7],%rd5;"}, {"inc", "atom.shared::cluster.inc.u32 %r30,[%r7],77;"}, {"dec", "atom.shared::cluster.dec.u32 %r30,[%r7],77;"},
             {"exch", "atom.shared::cluster.exch.b32 %r30,[%r7],%r9; st.shared::cluster.u32 [%r6+12],%r30;"}, {"cas", "atom.shared::cluster.cas.b32 %r30,[%r7],0,%r9; st.shared::cluster.u32 [%r6+12],%r30;"},
             {"cas b64", "atom.release.cluster.shared::cluster.cas.b64 %rd8,[%r7+8],0,%rd5;"}, {"cas b16", "atom.shared::cluster.cas.b16 %h2,[%r7+2],0,%h1;"},
             {"generic add", "atom.add.u32 %r30,[%rd4],%r9; red.add.u64 [%rd3+8],%rd5;"}, {"generic cas", "atom.cas.b32 %r30,[%rd4],0,%r9;"},
             {"generic f32", "red.add.f32 [%rd4],%f1;"}, {"f16x2", "atom.shared::cluster.add.noftz.f16x2 %r30,[%r7],%r9;"}, {"bf16x2", "red.shared::cluster.add.noftz.bf16x2 [%r7],%r9;"},
             {"exch b128", "mov.b128 %q1,{%rd5,%rd5}; atom.shared::cluster.exch.b128 %q2,[%r7],%q1;"}})
        all.push_back({"atomic " + name, exchange("", atomic, read), cluster({8, 1, 1}, {4, 1, 1}, 512)});
    for (const auto& [name, load] : std::vector<std::array<std::string, 2>>{
             {"u8", "ld.shared::cluster.u8 %r20,[%r7+1];"}, {"s16", "ld.shared::cluster.s16 %r20,[%r7+2];"}, {"u64", "ld.shared::cluster.u64 %rd8,[%r7+8]; cvt.u32.u64 %r20,%rd8;"},
             {"v4", "ld.shared::cluster.v4.u32 {%r20,%r25,%r26,%r27},[%r7]; xor.b32 %r20,%r20,%r27;"}, {"generic", "ld.u32 %r20,[%rd4+8];"},
             {"volatile", "ld.volatile.shared::cluster.u32 %r20,[%r7+12];"}, {"acquire", "ld.acquire.cluster.shared::cluster.u32 %r20,[%r7+8];"}, {"generic relaxed", "ld.relaxed.gpu.u32 %r20,[%rd3+8];"}})
        all.push_back({"load " + name, exchange("st.shared::cluster.v4.u32 [%r6],{%r8,%r9,%r8,%r9}; ", "", load), cluster({8, 1, 1}, {4, 1, 1}, 512)});
    // Barriers.
    all.push_back({"barrier, a CTA exits", {"setp.eq.u32 %p1,%r42,1; @%p1 ret;\n" + sync + sync + thread_place(32) + "st.global.u32 [%rd2],%r43;"}, cluster({4, 1, 1}, {4, 1, 1}, 128)});
    all.push_back({"barrier, half of each warp exits", {"and.b32 %r1,%r41,16; setp.eq.u32 %p1,%r1,0; @%p1 ret;\nbarrier.cluster.arrive; barrier.cluster.wait; barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire;\n" + thread_place(32) + "st.global.u32 [%rd2],%r43;"}, cluster({4, 1, 1}, {4, 1, 1}, 128)});
    all.push_back({"barrier in two arms", {"and.b32 %r1,%r41,16; setp.eq.u32 %p1,%r1,0; mov.u32 %r2,5;\n@%p1 bra OTHER;\nbarrier.cluster.arrive; add.u32 %r2,%r2,1; barrier.cluster.wait; bra JOIN;\nOTHER: add.u32 %r2,%r2,7; barrier.cluster.arrive; barrier.cluster.wait;\nJOIN:\n" + thread_place(32) + "st.global.u32 [%rd2],%r2;"}, cluster({4, 1, 1}, {4, 1, 1}, 128)});
    all.push_back({"barrier, alone", {sync + sync + thread_place(32) + "st.global.u32 [%rd2],%r43;"}, cluster({4, 1, 1}, {0, 0, 0}, 128)});
    all.push_back({"barrier, many rounds", {R"(
    mov.u32 %r1,v; mov.u32 %r2,0; setp.eq.u32 %p1,%r41,0; @%p1 st.shared.u32 [%r1],%r40;
    add.u32 %r4,%r42,1; rem.u32 %r4,%r4,%r43; mapa.shared::cluster.u32 %r6,%r1,%r4;
ROUND:)" + sync + "ld.shared::cluster.u32 %r5,[%r6]; mad.lo.u32 %r5,%r5,3,%r2;\n" + sync + R"(
    @%p1 st.shared.u32 [%r1],%r5; add.u32 %r2,%r2,1; setp.lt.u32 %p2,%r2,20; @%p2 bra ROUND;)" + sync + thread_place(64) +
                        "st.global.u32 [%rd2],%r5;", "", ".shared .align 4 .b32 v;"}, Launch{{8, 1, 1}, {64, 1, 1}, {8, 1, 1}, 512}});
    // Objects of another CTA. Three CTAs tell the first.
    all.push_back({"arrive", tell(3, 0, "mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%r1];")});
    all.push_back({"arrive, generic", tell(3, 0, "mbarrier.arrive.release.cluster.b64 _,[%rd3];")});
    all.push_back({"arrive, counted", tell(9, 0, "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _,[%r1],3;")});
    all.push_back({"arrive_drop", tell(4, 0, "setp.eq.u32 %p5,%r42,1; @%p5 mbarrier.arrive.shared::cluster.b64 _,[%r1]; mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _,[%r1];")});
    all.push_back({"arrive.expect_tx", tell(3, 0, "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _,[%r1],16; mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r1],16;")});
    all.push_back({"expect_tx", tell(3, 0, "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r1],16; mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r1],16; mbarrier.arrive.shared::cluster.b64 _,[%r1];")});
    const std::string arrive = " mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%r1];";
    const std::string mine = " sub.u32 %r4,%r42,1; shl.b32 %r4,%r4,2; add.u32 %r4,%r4,%r2;\n", first = " setp.eq.u32 %p5,%r42,1;";
    auto async = [&](const std::string& name, unsigned bytes, const std::string& store) { all.push_back({name, tell(3, bytes, mine + first + store + arrive)}); };
    async("st.async b32", 12, " st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4],%r3,[%r1];");
    async("st.async weak u32", 12, " st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4],%r3,[%r1];");
    async("st.async f32", 12, " st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%r4],%f1,[%r1];");
    async("st.async b64", 8, " @%p5 st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r2+8],%rd5,[%r1];");
    async("st.async f64", 8, " @%p5 st.async.shared::cluster.mbarrier::complete_tx::bytes.f64 [%r2+8],%d1,[%r1];");
    async("st.async v2.b32", 8, " @%p5 st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r2+8],{%r3,%r42},[%r1];");
    async("st.async v4.s32", 16, " @%p5 st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.s32 [%r2],{%r3,%r42,%r43,%r3},[%r1];");
    async("st.async v2.u64", 16, " @%p5 st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u64 [%r2],{%rd5,%rd5},[%r1];");
    async("st.async v4.f32", 16, " @%p5 st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r2],{%f1,%f1,%f1,%f1},[%r1];");
    async("st.async generic", 12, " cvt.u64.u32 %rd7,%r4; cvta.shared::cluster.u64 %rd7,%rd7; st.async.mbarrier::complete_tx::bytes.b32 [%rd7],%r3,[%rd3];");
    for (const std::string red : {
             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32",
             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.dec.u32",
             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u32",
             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.s32",
             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u32",
             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32",
             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32",
             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s32",
             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.and.b32",
             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.or.b32",
             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.xor.b32"}) {
        const std::string words = red.substr(red.rfind("::") + 8);
        const std::string name = words.substr(0, words.find('.')) + " " + words.substr(words.find('.') + 1);
        // All with one bound, or the order of CTAs would show.
        const std::string value = name == "dec u32" ? "%r43" : "%r3";
        async("red.async " + name, 24, " " + red + " [%r2+16]," + value + ",[%r1]; " + red + " [%r2+20]," + value + ",[%r1];");
    }
    async("red.async add u64", 24, " red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%r2+8],%rd5,[%r1];");
    async("red.async generic", 12, " add.u64 %rd7,%rd4,16; red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u32 [%rd7],%r3,[%rd3];");
    // Ranks that are none.
    const auto rank = [](const std::string& what) {
        return Kernel{"setp.ne.u32 %p1,%r41,0; @%p1 ret;\nmov.u32 %r1,v; mov.u32 %r9,3; cvt.u64.u32 %rd5,%r1; cvta.shared.u64 %rd5,%rd5;\n" + what, "", ".shared .align 16 .b32 v[64];"};
    };
    const Launch pair{{2, 1, 1}, {32, 1, 1}, {2, 1, 1}, 64};
    all.push_back({"rank 2 of 2, address only", rank("setp.ne.u32 %p2,%r42,1; @%p2 ret; mapa.shared::cluster.u32 %r2,%r1,2; sub.u32 %r2,%r2,%r1; st.global.u32 [%rd1],%r2;"), Launch{{2, 1, 1}, {32, 1, 1}, {2, 1, 1}, 64}});
    all.push_back({"rank 2 of 2, load", rank("mapa.shared::cluster.u32 %r2,%r1,2; ld.shared::cluster.u32 %r3,[%r2]; st.global.u32 [%rd1],%r3;"), pair});
    all.push_back({"rank 2 of 2, store", rank("mapa.shared::cluster.u32 %r2,%r1,2; st.shared::cluster.u32 [%r2],%r9;"), pair});
    all.push_back({"rank 2 of 2, atomic", rank("mapa.shared::cluster.u32 %r2,%r1,2; red.shared::cluster.add.u32 [%r2],%r9;"), pair});
    all.push_back({"rank 2 of 2, generic", rank("mapa.u64 %rd6,%rd5,2; ld.u32 %r3,[%rd6]; st.global.u32 [%rd1],%r3;"), pair});
    all.push_back({"rank 2 of 2, arrive", rank("mapa.shared::cluster.u32 %r2,%r1,2; mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%r2];"), pair});
    // Asynchronous stores that can't be made: target in %r2, object in %r1, the CTA's own variable in %r4, one mbarrier object in its middle. (The recorded kernels began with a 0 there without storing it.)
    const auto misuse = [&](const std::string& name, const std::string& what) {
        all.push_back({name, rank("st.shared.u32 [%r1],0; mov.u32 %r4,%r1; add.u32 %r1,%r1,128; mov.u32 %r2,%r4; mbarrier.init.shared.b64 [%r1],1;\nmbarrier.arrive.expect_tx.shared.b64 _,[%r1],4;\n" + what +
                                  "\nnanosleep.u32 20000; ld.shared.u32 %r3,[%r4]; st.global.u32 [%rd1],%r3;"), pair});
    };
    for (const std::string put : {"st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r2],%r9,[%r1];",
                                  "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r2],%r9,[%r1];"}) {
        const std::string name = put.substr(0, put.find('.')) + ".async, ";
        misuse(name + "own CTA", put);
        misuse(name + "target of rank 2 of 2", "mapa.shared::cluster.u32 %r2,%r2,2; " + put);
        misuse(name + "object of rank 2 of 2", "mapa.shared::cluster.u32 %r1,%r1,2; " + put);
        misuse(name + "misaligned target", "add.u32 %r2,%r2,2; " + put);
        misuse(name + "misaligned object", "add.u32 %r1,%r1,4; " + put);
        misuse(name + "no object", "st.shared.u64 [%r1+8],-1; add.u32 %r1,%r1,8; " + put);
        misuse(name + "target outside", "add.u32 %r2,%r2,0x100000; " + put);
    }
    all.push_back({"rank 1, alone, load", rank("mapa.shared::cluster.u32 %r2,%r1,1; ld.shared::cluster.u32 %r3,[%r2]; st.global.u32 [%rd1],%r3;"), Launch{}});
    all.push_back({"beyond the neighbour's memory", rank("xor.b32 %r3,%r42,1; mapa.shared::cluster.u32 %r2,%r1,%r3; ld.shared::cluster.u32 %r3,[%r2+0x100000]; st.global.u32 [%rd1],%r3;"), pair});
    all.push_back({"misaligned at the neighbour", rank("xor.b32 %r3,%r42,1; mapa.shared::cluster.u32 %r2,%r1,%r3; ld.shared::cluster.u32 %r3,[%r2+2]; st.global.u32 [%rd1],%r3;"), pair});
    return all;
}

} // namespace

int main(int count, char** arguments) {
    std::vector<Case> cases;
    for (const Named& named : kernels())
        cases.push_back({named.name, [named](Driver& driver) { return run_kernel(driver, named.kernel, named.launch); }});
    return run_cases(count, arguments, cases);
}
