// SPDX-License-Identifier: Apache-2.0
// Pairs of right programs and of programs that forget a fence between what threads write to a tensor map and copies through it (manual
// 9.7.13.4, 9.7.13.16): those copy through the map as it was.
#include "copy_pairs.h"
#include "kernel.h"
#include "tensor_maps.h"

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 64, words = 256;
using Words = std::vector<std::uint32_t>;

/// Of a tensor of 16 rows of 16 words without gaps, of which a tile takes 4 rows.
std::vector<std::uint8_t> map_of(std::uint64_t address) {
    return map_of_words(address, {16, 16}, {64}, {16, 4});
}

struct Memory {
    Array<std::uint32_t> first, second, out;
    Array<std::uint8_t> maps; ///< of the first tensor, then of the second, then of the output, then of the first
    Memory() : first(numbers(1)), second(numbers(2)), out(words), maps(all_maps()) {}
    static Words numbers(std::uint32_t seed) {
        Words values(words);
        for (unsigned i = 0; i < words; ++i) values[i] = (i + 1) * 2654435761u ^ seed;
        return values;
    }
    std::vector<std::uint8_t> all_maps() const {
        std::vector<std::uint8_t> bytes;
        for (std::uint64_t address : {first.address(), second.address(), out.address(), first.address()})
            for (std::uint8_t byte : map_of(address)) bytes.push_back(byte);
        return bytes;
    }
};

/// %l60, %l61: the second tensor, the output; %l62: the maps. %r1, %r2: tile of 64 words and mbarrier; %r3: this thread's word of the tile;
/// %l1, %l2: this thread's words of the first 64 of the second tensor and of the output; %p0: thread 0. %l63: zero at first, a flag's address.
void start(const std::string& body, Memory& memory, const Array<std::uint32_t>& flag, Extents grid = {1}) {
    run(R"(
        mov.u32 %r1, tile; mov.u32 %r2, bar; setp.eq.u32 %p0, %r60, 0; shl.b32 %r3, %r60, 2; add.u32 %r3, %r3, %r1;
        mul.wide.u32 %l3, %r60, 4; add.u64 %l1, %l60, %l3; add.u64 %l2, %l61, %l3; mov.u32 %r10, 0; mov.u32 %r11, map; mov.u32 %r12, 4;
        add.u32 %r13, %r11, %r60; cvt.u64.u32 %l4, %r60; add.u64 %l4, %l4, %l62; ld.global.u8 %r14, [%l4]; st.shared.u8 [%r13], %r14;
        ld.global.u8 %r14, [%l4+64]; st.shared.u8 [%r13+64], %r14;
        @%p0 mbarrier.init.shared.b64 [%r2], 1; fence.proxy.async; bar.sync 0;
    )" + body, grid, {threads}, {memory.second.address(), memory.out.address(), memory.maps.address(), flag.address()},
        ".shared .align 1024 .b8 tile[256]; .shared .align 128 .b8 map[128]; .shared .align 8 .b64 bar;", 0, {"sm_90a"});
}

Words run_program(const std::string& body, const std::string& schedule) {
    const Schedule scope(schedule);
    Memory memory;
    start(body, memory, Array<std::uint32_t>(1));
    return memory.out.values();
}
/// The second block's thread 0 waits until the first one's has set the flag.
Words run_blocks(const std::string& body, const std::string& schedule) {
    const Schedule scope(schedule);
    Memory memory;
    start(body, memory, Array<std::uint32_t>(1), {2});
    return memory.out.values();
}

const std::string replace = "@%p0 tensormap.replace.tile.global_address.global.b1024.b64 [%l62], %l60;\n";
const std::string replace_shared = "@%p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r11], %l60; bar.sync 0;\n";
const std::string publish =
    replace_shared + "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%l62], [%r11], 128;\n";
const std::string release = "@%p0 fence.proxy.tensormap::generic.release.gpu;\n", meet = "bar.sync 0;\n";
const std::string acquire = "fence.proxy.tensormap::generic.acquire.gpu [%l62], 128;\n";
/// Through the map at %l62, phase `phase` of the mbarrier, and to 64 words of the output.
std::string load(unsigned phase = 0) {
    const std::string number = std::to_string(phase);
    return "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 256;\n"
           "@%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%l62, {%r10, %r10}], [%r2];\n"
           "WAIT" + number + ": mbarrier.try_wait.parity.shared.b64 %p1, [%r2], " + std::to_string(phase % 2) + "; @!%p1 bra WAIT" + number +
           ";\nld.shared.u32 %r20, [%r3]; st.global.u32 [%l2+" + std::to_string(256 * phase) + "], %r20;\n" + meet;
}
/// The map that stands `place` places behind %l62 is put there by thread 0's plain stores, or by those of many.
std::string copy_map(unsigned place) {
    std::string text;
    for (unsigned i = 0; i < 128; i += 16) {
        text += "@%p0 ld.global.v2.u64 {%l10, %l11}, [%l62+" + std::to_string(128 * place + i) + "];\n";
        text += "@%p0 st.global.v2.u64 [%l62+" + std::to_string(i) + "], {%l10, %l11};\n";
    }
    return text;
}
/// Through the map at %l62, a tile with this thread's words of the second tensor.
std::string store(const std::string& form) {
    return "ld.global.u32 %r20, [%l1]; st.shared.u32 [%r3], %r20; fence.proxy.async.shared::cta;\n" + meet + "@%p0 " + form +
           "[%l62, {%r10, %r12}], [%r1];\n@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;\n";
}
const std::string replace_again =
    "add.u64 %l12, %l60, 512; @%p0 tensormap.replace.tile.global_address.global.b1024.b64 [%l62], %l12;\n";
const std::string to_output = "@%p0 tensormap.replace.tile.global_address.global.b1024.b64 [%l62], %l61;\n";
const std::string tensor_store = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group ",
                  tensor_add = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group ";

const Pair pairs[] = {
    {"changed, not acquired", replace + release + acquire + load(), replace + release + load()},
    {"changed, not released", replace + release + acquire + load(), replace + acquire + load()},
    {"acquired before it is changed", replace + release + acquire + load(), acquire + meet + replace + release + load()},
    {"released before it is changed", replace + release + acquire + load(), release + replace + acquire + load()},
    {"another kind of fence", replace + release + acquire + load(), replace + "fence.proxy.async; fence.acq_rel.gpu;\n" + load()},
    {"another map acquired", replace + release + acquire + load(),
     replace + release + "add.u64 %l12, %l62, 128; fence.proxy.tensormap::generic.acquire.gpu [%l12], 128;\n" + load()},
    {"published, not acquired", publish + acquire + load(), publish + load()},
    {"changed again, not acquired again", replace + release + acquire + load() + replace_again + release + acquire + load(1),
     replace + release + acquire + load() + replace_again + release + load(1)},
    {"overwritten after it was used", load() + copy_map(1) + release + acquire + load(1), load() + copy_map(1) + release + load(1)},
    {"overwritten after it was acquired", acquire + meet + copy_map(1) + release + acquire + load(), acquire + meet + copy_map(1) + release + load()},
    {"stored through a map that is not acquired", to_output + release + acquire + store(tensor_store), to_output + release + store(tensor_store)},
    {"reduced through a map that is not acquired", to_output + release + acquire + store(tensor_add), to_output + release + store(tensor_add)},
    {"one thread acquires for its block", replace + release + "@%p0 " + acquire + meet + load(), replace + release + load()},
};

const std::string flag_set = meet + "fence.acq_rel.gpu; @%p0 st.relaxed.gpu.global.u32 [%l63], 1;\n";
const std::string flag_seen = "SEEN: ld.acquire.gpu.global.u32 %r30, [%l63]; setp.eq.u32 %p3, %r30, 0; @%p3 bra SEEN; bar.sync 0;\n";
std::string blocks(const std::string& one, const std::string& other) {
    return "setp.ne.u32 %p4, %r61, 0; @%p4 bra OTHER;\n" + one + flag_set + "bra END;\nOTHER:\n" + flag_seen + other + "END:\n";
}
const Pair block_pairs[] = {
    {"changed by another block", blocks(replace + release, acquire + load()), blocks(replace + release, load())},
    {"acquired by another block", blocks(publish + acquire, acquire + load()), blocks(publish + acquire, load())},
    {"published by another block", blocks(publish, acquire + load()), blocks(publish, load())},
    {"not released by another block", blocks(replace + release, acquire + load()), blocks(replace, acquire + load())},
};

} // namespace

TEST_CASE("tensor maps: late copies need the fences of the tensormap proxy", "[kernels][async][pairs]") {
    for (const Pair& pair : pairs) check_pair(pair, run_program);
    for (const Pair& pair : block_pairs) check_pair(pair, run_blocks);
}

TEST_CASE("tensor maps: grids see what earlier ones wrote to them", "[kernels][async]") {
    for (const char* schedule : {"eager", "late", "random:1"}) {
        INFO(schedule);
        const Schedule scope(schedule);
        Memory memory;
        const Array<std::uint32_t> flag(1);
        start(load() + replace, memory, flag);
        CHECK(memory.out.values()[5] == Memory::numbers(1)[5]);
        start(load(), memory, flag);
        CHECK(memory.out.values()[5] == Memory::numbers(2)[5]);
        start(copy_map(3), memory, flag);
        start(load(), memory, flag);
        CHECK(memory.out.values()[5] == Memory::numbers(1)[5]);
    }
}
