// SPDX-License-Identifier: Apache-2.0
// Pairs of right programs and of programs that forget the proxy fence between what threads write to global memory and copies that read or reduce
// it there (manual 9.7.9.25.2): late copies find what was there before.
#include "copy_pairs.h"
#include "kernel.h"
#include "tensor_maps.h"

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 64, words = 256;
constexpr unsigned seeds = 3; ///< of random times: the pairs are many, and each run compiles
using Words = std::vector<std::uint32_t>;

Words numbers(std::uint32_t seed) {
    Words values(words);
    for (unsigned i = 0; i < words; ++i) values[i] = (i + 1) * 2654435761u ^ seed;
    return values;
}

/// `data` is written to and copied; a flag, then maps of `data` from byte 128 on: of 256 words, and of 16 rows of 16 with a swizzle.
struct Memory {
    Buffer data{8 * words};
    Array<std::uint32_t> out, values;
    Array<std::uint8_t> flag_and_maps;
    Memory() : out(words), values(numbers(1)), flag_and_maps(maps()) { write_data(Words(2 * words)); }
    void write_data(const Words& contents) { data.upload(contents.data(), contents.size() * 4); }
    std::vector<std::uint8_t> maps() const {
        std::vector<std::uint8_t> bytes(128);
        for (const auto& map : {map_of_words(data.address(), {256}, {}, {256}), map_of_words(data.address(), {16, 16}, {64}, {16, 16}, 2)})
            bytes.insert(bytes.end(), map.begin(), map.end());
        return bytes;
    }
};

const std::string functions = R"(
.func put(.param .b64 place, .param .b32 value) {
    .reg .b64 %l<2>; .reg .b32 %r<2>;
    ld.param.u64 %l1, [place]; ld.param.u32 %r1, [value]; st.global.u32 [%l1], %r1; ret;
}
)";

/// %l60: data; %l61: output; %l62: values; %l63: flag and maps. %r1, %r2: tile of 256 words and mbarrier; %r3, %l1, %l2, %l3: this thread's 16 bytes
/// of the tile, of the data, of the output and of the values, which are in %r20 to %r23; %p0: thread 0.
void start(const std::string& body, const Memory& memory, Extents grid = {1}) {
    run(R"(
        mov.u32 %r1, tile; mov.u32 %r2, bar; setp.eq.u32 %p0, %r60, 0; shl.b32 %r3, %r60, 4; add.u32 %r3, %r3, %r1; mul.wide.u32 %l10, %r60, 16;
        add.u64 %l1, %l60, %l10; add.u64 %l2, %l61, %l10; add.u64 %l3, %l62, %l10; mov.u32 %r10, 0; add.u64 %l8, %l63, 128; add.u64 %l9, %l63, 256;
        @%p0 mbarrier.init.shared.b64 [%r2], 1; fence.proxy.async.shared::cta; bar.sync 0; ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%l3];
    )" + body, grid, {threads}, {memory.data.address(), memory.out.address(), memory.values.address(), memory.flag_and_maps.address()},
        functions + ".shared .align 1024 .b8 tile[1024]; .shared .align 8 .b64 bar;", 0, {"sm_90a"});
}
Words run_program(const std::string& body, const std::string& schedule) {
    const Schedule scope(schedule);
    const Memory memory;
    start(body, memory);
    return memory.out.values();
}
Words run_blocks(const std::string& body, const std::string& schedule) {
    const Schedule scope(schedule);
    const Memory memory;
    start(body, memory, {2});
    return memory.out.values();
}

const std::string meet = "bar.sync 0;\n", fence = "fence.proxy.async;\n", global_fence = "fence.proxy.async.global;\n";
const std::string save = "ld.shared.v4.u32 {%r24, %r25, %r26, %r27}, [%r3]; st.global.v4.u32 [%l2], {%r24, %r25, %r26, %r27};\n";
/// Thread 0 copies by `copy`, in phase `phase` of the mbarrier; all write out what came.
std::string loaded(const std::string& copy, unsigned bytes, unsigned phase) {
    const std::string number = std::to_string(phase);
    return "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], " + std::to_string(bytes) + ";\n@%p0 " + copy + "WAIT" + number +
           ": mbarrier.try_wait.parity.shared.b64 %p1, [%r2], " + number + "; @!%p1 bra WAIT" + number + ";\n" + save;
}
std::string load(unsigned bytes = 1024, unsigned phase = 0) {
    return loaded("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%l60], " + std::to_string(bytes) + ", [%r2];\n", bytes, phase);
}
const std::string load_tensor = "cp.async.bulk.tensor.", by_tile = ".shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], ";
const std::string load_1d = loaded(load_tensor + "1d" + by_tile + "[%l8, {%r10}], [%r2];\n", 1024, 0),
                  load_2d = loaded(load_tensor + "2d" + by_tile + "[%l9, {%r10, %r10}], [%r2];\n", 1024, 0);

const std::string stores = "st.global.v4.u32 [%l1], {%r20, %r21, %r22, %r23};\n";
const std::string write_one = "@%p0 st.global.v4.u32 [%l60], {%r20, %r21, %r22, %r23};\n";
const std::string write_scalars = "st.global.u32 [%l1], %r20; cvt.u16.u32 %h1, %r21; st.global.u16 [%l1+4], %h1; st.global.u8 [%l1+7], %r22; st.global.u64 [%l1+8], %l3;\n";
const std::string write_odd = "and.b32 %r30, %r60, 1; setp.eq.u32 %p2, %r30, 1; @%p2 st.global.u32 [%l1], %r20;\n";
const std::string write_branch =
    "and.b32 %r30, %r60, 3; setp.eq.u32 %p2, %r30, 2; @!%p2 bra OVER; st.global.u32 [%l1+12], %r20; OVER:\n";
const std::string write_loop = "mov.u32 %r30, 0; mov.u64 %l12, %l1;\nAGAIN: st.global.u32 [%l12], %r20; add.u64 %l12, %l12, 4; add.u32 %r30, %r30, 1;\n"
                               "setp.lt.u32 %p2, %r30, 4; @%p2 bra AGAIN;\n";
const std::string call = "{ .param .b64 place; .param .b32 value; st.param.b64 [place], %l1; st.param.b32 [value], %r20; call put, (place, value); }\n";
const std::string call_pointer =
    "{ .param .b64 place; .param .b32 value; st.param.b64 [place], %l1; st.param.b32 [value], %r20; mov.u64 %l12, put;\n"
    "LIKE: .callprototype _ (.param .b64 _, .param .b32 _); call %l12, (place, value), LIKE; }\n";
const std::string scattered = "xor.b32 %r30, %r60, 21; mul.wide.u32 %l12, %r30, 16; add.u64 %l12, %l12, %l60; st.global.u32 [%l12+4], %r20;\n";
const std::string write_wide = "mov.b128 %q0, {%l3, %l1}; st.global.b128 [%l1], %q0;\n";
const std::string fill = "st.shared.v4.u32 [%r3], {%r20, %r21, %r22, %r23}; fence.proxy.async.shared::cta;\n" + meet;
const std::string fill_generic = "cvt.u64.u32 %l11, %r3; cvta.shared.u64 %l12, %l11; st.v4.u32 [%l12], {%r20, %r21, %r22, %r23};\n"
                                 "fence.proxy.async.shared::cta; bar.sync 0;\n";
/// Thread 0 writes the tile to the data by `copy` and waits.
std::string done(const std::string& copy) {
    return "@%p0 " + copy + "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;\n" + meet;
}
const std::string store = done("cp.async.bulk.global.shared::cta.bulk_group [%l60], [%r1], 1024;\n"),
                  reduce = done("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%l60], [%r1], 1024;\n"),
                  reduce_2d = done("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%l9, {%r10, %r10}], [%r1];\n");
const std::string read_data = "ld.global.v4.u32 {%r24, %r25, %r26, %r27}, [%l1]; st.global.v4.u32 [%l2], {%r24, %r25, %r26, %r27};\n";
std::string byte_at(unsigned offset) { return "@%p0 st.global.u8 [%l60+" + std::to_string(offset) + "], %r20;\n"; }

Pair with_and_without(const std::string& name, const std::string& before, const std::string& after) {
    return {name, before + global_fence + meet + after, before + meet + after};
}

std::string one_warp(const std::string& body) { return "setp.ge.u32 %p2, %r60, 32; @%p2 bra PAST;\n" + body + "PAST:\n"; }

const Pair pairs[] = {
    {"the same thread", write_one + fence + load(), write_one + load()},
    {"written by other threads, who fence", stores + fence + meet + load(), stores + meet + load()},
    {"written by other threads, fenced by the copy's", stores + meet + "@%p0 " + fence + load(), stores + meet + load()},
    {"fenced before it is written", stores + fence + meet + load(), fence + stores + meet + load()},
    {"a fence for shared memory", stores + global_fence + meet + load(), stores + "fence.proxy.async.shared::cta;\n" + meet + load()},
    {"other kinds of fence", stores + global_fence + meet + load(), stores + "fence.proxy.alias; fence.sc.sys; membar.gl;\n" + meet + load()},
    with_and_without("scalars of all sizes", write_scalars, load()),
    with_and_without("elements of 128 bits", write_wide, load()),
    with_and_without("some lanes", write_odd, load()),
    with_and_without("in a branch", write_branch, load()),
    with_and_without("in a loop", write_loop, load()),
    with_and_without("scattered", scattered, load()),
    with_and_without("at generic addresses", "st.v4.u32 [%l1], {%r20, %r21, %r22, %r23};\n", load()),
    with_and_without("volatile", "st.volatile.global.u32 [%l1], %r20;\n", load()),
    with_and_without("released", "st.release.gpu.global.u32 [%l1], %r20;\n", load()),
    with_and_without("in a function", call, load()),
    with_and_without("through a pointer to a function", call_pointer, load()),
    with_and_without("atom.add", "atom.global.add.u32 %r30, [%l1+8], %r20;\n", load()),
    with_and_without("atom.exch at a generic address", "atom.exch.b32 %r30, [%l1+8], %r20;\n", load()),
    with_and_without("atom.cas", "atom.global.cas.b32 %r30, [%l1], 0, %r20;\n", load()),
    with_and_without("red, all lanes at one place", "red.global.add.u32 [%l60+4], %r20;\n", load()),
    with_and_without("red of vectors", "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; red.global.add.v2.f32 [%l1], {%f1, %f2};\n", load()),
    with_and_without("wmma.store", one_warp("wmma.store.d.sync.aligned.row.m16n16k16.global.s32 [%l60], {%r20, %r21, %r22, %r23, %r20, %r21, %r22, %r23};\n"), load()),
    with_and_without("wmma.store of halves by columns", one_warp("wmma.store.d.sync.aligned.col.m8n32k16.f16 [%l60], {%r20, %r21, %r22, %r23};\n"), load(512)),
    with_and_without("a tile of one dimension", stores, load_1d),
    with_and_without("a swizzled tile", stores, load_2d),
    with_and_without("some bytes of a swizzled tile", "st.global.u8 [%l1+5], %r20;\n", load_2d),
    with_and_without("reduced into", stores + fill, reduce + read_data),
    with_and_without("a tile reduced into", stores + fill, reduce_2d + read_data),
    with_and_without("written after a copy to there", fill + store + "st.global.u32 [%l1+4], %r10;\n", load()),
    {"written again after a load", stores + fence + meet + load() + meet + "st.global.u32 [%l1], %r10;\n" + fence + meet + load(1024, 1),
     stores + fence + meet + load() + meet + "st.global.u32 [%l1], %r10;\n" + meet + load(1024, 1)},
    {"the last byte", stores + meet + byte_at(527) + fence + meet + byte_at(528) + load(528), stores + fence + meet + byte_at(527) + byte_at(528) + load(528)},
};

const std::string flag_set = meet + "fence.acq_rel.gpu; @%p0 st.relaxed.gpu.global.u32 [%l63], 1;\n";
const std::string flag_seen = "SEEN: ld.acquire.gpu.global.u32 %r30, [%l63]; setp.eq.u32 %p3, %r30, 0; @%p3 bra SEEN; bar.sync 0;\n";
std::string blocks(const std::string& one, const std::string& other) {
    return "setp.ne.u32 %p4, %r61, 0; @%p4 bra OTHER;\n" + one + flag_set + "bra END;\nOTHER:\n" + flag_seen + other + "END:\n";
}
const Pair block_pairs[] = {
    {"fenced by the block that writes", blocks(stores + fence, load()), blocks(stores, load())},
    {"fenced by the block that copies", blocks(stores, fence + load()), blocks(stores, load())},
    {"a tile of another block's", blocks(stores + global_fence, load_2d), blocks(stores, load_2d)},
    {"reduced into by another block", blocks(stores + global_fence, fill + reduce + read_data), blocks(stores, fill + reduce + read_data)},
};

/// Nothing is missing: no thread has written what the copies read.
const Pair right_programs[] = {
    {"copied to and from", fill + store + load(), ""},
    {"neighbours", stores + fence + meet + byte_at(1024) + load(), ""},
    {"copied over what was written", stores + fence + meet + fill + store + load(), ""},
    {"generic addresses of shared memory", fill_generic + store + load(), ""},
};

} // namespace

TEST_CASE("global memory: late copies need a proxy fence behind threads' writes", "[kernels][async][pairs]") {
    for (const Pair& pair : pairs) check_pair(pair, run_program, seeds);
    for (const Pair& pair : block_pairs) check_pair(pair, run_blocks, seeds);
}

TEST_CASE("global memory: late copies are right where threads have not written", "[kernels][async]") {
    for (const Pair& program : right_programs) {
        INFO(program.name);
        const Words expected = run_program(program.right, "eager");
        REQUIRE(expected != Words(words));
        for (const char* schedule : {"late", "random:1", "random:2"}) CHECK((run_program(program.right, schedule) == expected));
    }
}

TEST_CASE("global memory: grids see what earlier ones and the host have written", "[kernels][async]") {
    for (const char* schedule : {"eager", "late", "random:1"}) {
        INFO(schedule);
        const Schedule scope(schedule);
        Memory memory;
        start(stores + meet + load(16), memory); // has a copy, so its writes are noted
        start(load(), memory);
        CHECK((memory.out.values() == numbers(1)));
        memory.write_data(numbers(2));
        start(load(), memory);
        CHECK((memory.out.values() == numbers(2)));
    }
}
