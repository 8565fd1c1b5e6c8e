// SPDX-License-Identifier: Apache-2.0
// Pipelines as libraries write them: double buffering with cp.async, a ring of stages that one warp fills and others empty, tiles through
// tensor maps. Right whenever copies are done.
#include "kernel.h"
#include "tensor_maps.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <numeric>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

using Words = std::vector<std::uint32_t>;

/// Runs `body` with PTARMIGAN_ASYNC at each of its kinds and checks that `out` holds `expected` afterwards.
void check_always(const std::string& body, unsigned threads, const Words& input, const Words& expected, const std::string& globals,
                  const std::vector<std::uint8_t>& map = {}) {
    std::vector<std::string> schedules{"eager", "late"};
    for (unsigned seed = 0; seed < 8; ++seed) schedules.push_back("random:" + std::to_string(seed));
    Array<std::uint32_t> in(input);
    for (const std::string& schedule : schedules) {
        INFO(schedule);
        setenv("PTARMIGAN_ASYNC", schedule.c_str(), 1);
        Array<std::uint32_t> out(expected.size());
        std::vector<std::uint8_t> bytes = map;
        bytes.resize(128);
        const std::uint64_t address = in.address();
        std::copy_n(reinterpret_cast<const std::uint8_t*>(&address), 8, bytes.begin());
        Array<std::uint8_t> device_map(bytes);
        run(body, {1}, {threads}, {in.address(), out.address(), device_map.address()}, globals);
        unsetenv("PTARMIGAN_ASYNC");
        CHECK((out.values() == expected));
    }
}

Words numbers(unsigned count) {
    Words values(count);
    for (unsigned i = 0; i < count; ++i) values[i] = i * 2654435761u + 99;
    return values;
}

} // namespace

TEST_CASE("pipeline: double buffering with cp.async", "[kernels][async]") {
    // 64 threads sum 16 chunks of 64 words: each thread adds what its neighbour has copied.
    constexpr unsigned threads = 64, chunks = 16;
    const Words input = numbers(threads * chunks);
    Words expected(threads);
    for (unsigned t = 0; t < threads; ++t)
        for (unsigned c = 0; c < chunks; ++c) expected[t] += input[c * threads + (t ^ 1)];
    check_always(R"(
        mov.u32 %r1, buffers;
        shl.b32 %r2, %r60, 2;
        add.u32 %r3, %r1, %r2;              // own word of buffer 0
        xor.b32 %r4, %r2, 4;
        add.u32 %r4, %r1, %r4;              // the neighbour's
        mul.wide.u32 %l1, %r60, 4;
        add.u64 %l1, %l60, %l1;
        cp.async.ca.shared.global [%r3], [%l1], 4;
        cp.async.commit_group;
        mov.u32 %r5, 0;                     // chunk
        mov.u32 %r6, 0;                     // sum
    NEXT:
        add.u32 %r7, %r5, 1;
        setp.lt.u32 %p0, %r7, 16;
        and.b32 %r8, %r7, 1;
        shl.b32 %r8, %r8, 8;
        add.u32 %r9, %r3, %r8;
        mul.wide.u32 %l2, %r7, 256;
        add.u64 %l2, %l1, %l2;
        @%p0 cp.async.ca.shared.global [%r9], [%l2], 4;
        cp.async.commit_group;
        cp.async.wait_group 1;
        bar.sync 0;
        and.b32 %r10, %r5, 1;
        shl.b32 %r10, %r10, 8;
        add.u32 %r11, %r4, %r10;
        ld.shared.u32 %r12, [%r11];
        add.u32 %r6, %r6, %r12;
        bar.sync 0;
        mov.u32 %r5, %r7;
        @%p0 bra NEXT;
        mul.wide.u32 %l3, %r60, 4;
        add.u64 %l3, %l61, %l3;
        st.global.u32 [%l3], %r6;
    )", threads, input, expected, ".shared .align 16 .b8 buffers[512];");
}

namespace {

/// Warp 0 fills a ring of three stages of 1024 bytes, warps 1 and 2 empty it, 12 chunks in all. `copy` loads chunk %r5 to [%r9] counting at
/// [%r7]; the consumers read word %r20 (0 to 63, and 64 more) of the stage at %r9, and %r21 is where chunk and word go in the output.
std::string ring(const std::string& copy, const std::string& read) {
    return R"(
        mov.u32 %r1, tile;
        mov.u32 %r2, full;
        mov.u32 %r3, empty;
        setp.ne.u32 %p0, %r60, 0;
        @%p0 bra MADE;
        mbarrier.init.shared.b64 [full], 1;
        mbarrier.init.shared.b64 [full+8], 1;
        mbarrier.init.shared.b64 [full+16], 1;
        mbarrier.init.shared.b64 [empty], 64;
        mbarrier.init.shared.b64 [empty+8], 64;
        mbarrier.init.shared.b64 [empty+16], 64;
        fence.mbarrier_init.release.cluster;
    MADE:
        bar.sync 0;
        mov.u32 %r5, 0;                     // chunk
        mov.u32 %r6, 0;                     // stage
        mov.u32 %r4, 0;                     // parity
        setp.ge.u32 %p1, %r60, 32;
        @%p1 bra CONSUME;
        @%p0 bra DONE;
    PRODUCE:
        shl.b32 %r10, %r6, 3;
        add.u32 %r7, %r2, %r10;
        add.u32 %r8, %r3, %r10;
        shl.b32 %r9, %r6, 10;
        add.u32 %r9, %r1, %r9;
        xor.b32 %r11, %r4, 1;               // the first round finds the stages empty
    EMPTY:
        mbarrier.try_wait.parity.shared.b64 %p2, [%r8], %r11;
        @!%p2 bra EMPTY;
        mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 1024;
    )" + copy + R"(
        add.u32 %r5, %r5, 1;
        add.u32 %r6, %r6, 1;
        setp.eq.u32 %p3, %r6, 3;
        @%p3 xor.b32 %r4, %r4, 1;
        @%p3 mov.u32 %r6, 0;
        setp.lt.u32 %p4, %r5, 12;
        @%p4 bra PRODUCE;
        bra DONE;
    CONSUME:
        sub.u32 %r20, %r60, 32;
    TAKE:
        shl.b32 %r10, %r6, 3;
        add.u32 %r7, %r2, %r10;
        add.u32 %r8, %r3, %r10;
        shl.b32 %r9, %r6, 10;
        add.u32 %r9, %r1, %r9;
    FULL:
        mbarrier.try_wait.parity.shared.b64 %p2, [%r7], %r4;
        @!%p2 bra FULL;
        mov.u32 %r22, 0;
    WORD:
        mad.lo.u32 %r23, %r22, 64, %r20;    // word of the chunk
    )" + read + R"(
        mad.lo.u32 %r21, %r5, 256, %r23;
        mul.wide.u32 %l2, %r21, 4;
        add.u64 %l2, %l61, %l2;
        st.global.u32 [%l2], %r24;
        add.u32 %r22, %r22, 1;
        setp.lt.u32 %p5, %r22, 4;
        @%p5 bra WORD;
        mbarrier.arrive.shared.b64 _, [%r8];
        add.u32 %r5, %r5, 1;
        add.u32 %r6, %r6, 1;
        setp.eq.u32 %p3, %r6, 3;
        @%p3 xor.b32 %r4, %r4, 1;
        @%p3 mov.u32 %r6, 0;
        setp.lt.u32 %p4, %r5, 12;
        @%p4 bra TAKE;
    DONE:
    )";
}

const std::string stages = ".shared .align 1024 .b8 tile[3072]; .shared .align 8 .b64 full[3]; .shared .align 8 .b64 empty[3];";

} // namespace

TEST_CASE("pipeline: one warp loads by bulk copies, two consume", "[kernels][async]") {
    const Words input = numbers(12 * 256);
    check_always(ring(R"(
        mul.wide.u32 %l1, %r5, 1024;
        add.u64 %l1, %l60, %l1;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%l1], 1024, [%r7];
    )", "shl.b32 %r25, %r23, 2; add.u32 %r25, %r9, %r25; ld.shared.u32 %r24, [%r25];"), 96, input, input, stages);
}

TEST_CASE("pipeline: tiles through a swizzled tensor map", "[kernels][async]") {
    // The tensor is 96 rows of 32 words; a tile is 8 rows of 128 bytes, whose pieces of 16 bytes are exchanged by the row's number.
    const Words input = numbers(12 * 256);
    check_always(ring(R"(
        shl.b32 %r12, %r5, 3;
        mov.u32 %r13, 0;
        cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r9], [%l62, {%r13, %r12}], [%r7];
    )", R"(
        shr.u32 %r26, %r23, 5;              // row of the tile
        shl.b32 %r25, %r23, 2;
        shl.b32 %r26, %r26, 4;
        xor.b32 %r25, %r25, %r26;
        add.u32 %r25, %r9, %r25;
        ld.shared.u32 %r24, [%r25];
    )"), 96, input, input, stages, map_of_words(0, {32, 96}, {128}, {32, 8}, 3));
}
