// SPDX-License-Identifier: Apache-2.0
// Forms of bulk copies and of their fences (manual 9.7.9.25, 9.7.9.28, 9.7.13.4, 9.7.13.16), each against what the host computes.
#include "copy_pairs.h"
#include "kernel.h"

#include "runtime/copy_engine/tensor_map.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

using Words = std::vector<std::uint32_t>;
constexpr unsigned words = 64;

Words numbers(std::uint32_t seed, unsigned count = words) {
    Words values(count);
    for (unsigned i = 0; i < count; ++i) values[i] = (i + 1) * 2654435761u ^ seed;
    return values;
}

const std::string room = ".shared .align 1024 .b8 tile[2048]; .shared .align 8 .b64 bar;\n";

/// %r1: tile, %r2: mbarrier, expecting %r3 bytes; %p0: thread 0. 64 threads.
std::string begin(unsigned bytes) {
    return "mov.u32 %r1, tile; mov.u32 %r2, bar; setp.eq.u32 %p0, %r60, 0;\n"
           "@%p0 mbarrier.init.shared.b64 [%r2], 1; @%p0 fence.mbarrier_init.release.cluster;\n"
           "barrier.cluster.arrive; barrier.cluster.wait;\n"
           "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], " + std::to_string(bytes) + ";\n";
}
/// Waits, then each thread stores word %r60 of the tile to the CTA's part of the output.
const std::string end = R"(
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
    @!%p1 bra WAIT;
    shl.b32 %r4, %r60, 2; add.u32 %r4, %r4, %r1; ld.shared.u32 %r5, [%r4];
    mul.wide.u32 %l1, %r62, 4; add.u64 %l1, %l1, %l61; st.global.u32 [%l1], %r5;
    barrier.cluster.arrive; barrier.cluster.wait;
)";
const Frame pair{"sm_90", "9.0", " .reqnctapercluster 2,1,1"};

} // namespace

TEST_CASE("bulk copies: loads with each word", "[kernels][async]") {
    struct Form {
        const char* text;
        unsigned blocks; ///< of the cluster, which get the words
    };
    for (const Form& form : {
             Form{"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%l60], 256, [%r2];", 1},
             Form{"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%l60], 256, [%r2], %l10;", 1},
             Form{"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%l60], 256, [%r2], %l10;", 1},
             Form{"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%l60], 256, [%r2], %h1;", 2},
             Form{"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r1], [%l60], 256, [%r2], %h1, %l10;", 2},
         }) {
        INFO(form.text);
        const Words input = numbers(7);
        Array<std::uint32_t> in(input), out(2 * words);
        // Of two blocks the first one copies for both.
        const std::string own = form.blocks == 2 ? "setp.eq.u32 %p2, %r61, 0; and.pred %p0, %p0, %p2;" : "";
        run(begin(256) + own + "createpolicy.fractional.L2::evict_first.b64 %l10, 1.0; mov.b16 %h1, 3; @%p0 " + form.text + end, {2}, {64},
            {in.address(), out.address()}, room, 0, pair);
        Words expected = input;
        expected.insert(expected.end(), input.begin(), input.end());
        CHECK(out.values() == expected);
    }
}

namespace {

template <class T> Words each(const Words& a, const Words& b, const std::function<T(T, T)>& f) {
    Words result(words);
    for (unsigned i = 0; i < words; i += sizeof(T) / 4) {
        T x, y;
        std::memcpy(&x, &a[i], sizeof x);
        std::memcpy(&y, &b[i], sizeof y);
        const T z = f(x, y);
        std::memcpy(&result[i], &z, sizeof z);
    }
    return result;
}

struct Reduction {
    const char* head;
    Words (*result)(const Words& old, const Words& source);
};
using U = std::uint32_t;
using S = std::int32_t;
using L = std::uint64_t;
using M = std::int64_t;
// The table's names are long: `f(a, b)` of what was there and what comes.
#define REDUCES(type, expression) \
    [](const Words& old, const Words& source) { return each<type>(old, source, [](type a, type b) -> type { return expression; }); }

const Reduction to_shared[] = {
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.and.b32", REDUCES(U, a & b)},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.or.b32", REDUCES(U, a | b)},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.xor.b32", REDUCES(U, a ^ b)},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32", REDUCES(U, a + b)},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s32", REDUCES(U, a + b)},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64", REDUCES(L, a + b)},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.inc.u32", REDUCES(U, a >= b ? 0 : a + 1)},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.dec.u32", REDUCES(U, a == 0 || a > b ? b : a - 1)},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.u32", REDUCES(U, std::min(a, b))},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.max.u32", REDUCES(U, std::max(a, b))},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.s32", REDUCES(S, std::min(a, b))},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.max.s32", REDUCES(S, std::max(a, b))},
};
const Reduction to_global[] = {
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.and.b32", REDUCES(U, a & b)},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.or.b64", REDUCES(L, a | b)},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.b64", REDUCES(L, a ^ b)},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64", REDUCES(L, a + b)},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u32", REDUCES(U, a >= b ? 0 : a + 1)},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.dec.u32", REDUCES(U, a == 0 || a > b ? b : a - 1)},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.min.u64", REDUCES(L, std::min(a, b))},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s64", REDUCES(M, std::max(a, b))},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32", REDUCES(S, std::min(a, b))},
};

} // namespace

TEST_CASE("bulk copies: reductions of another block's shared memory", "[kernels][async]") {
    for (const Reduction& form : to_shared) {
        INFO(form.head);
        Words old = numbers(3), source = numbers(0x5555);
        for (unsigned i = 0; i < words; i += 5) old[i] = source[i]; // the bounds of inc and dec
        old[1] = old[6] = 0;
        Array<std::uint32_t> in(source), was(old), out(2 * words);
        // Block 0 reduces its tile (the source) into block 1's (the old words).
        run(begin(256) + R"(
            setp.eq.u32 %p2, %r61, 0;
            selp.b64 %l2, %l60, %l62, %p2;
            mul.wide.u32 %l3, %r60, 4; add.u64 %l3, %l3, %l2; ld.global.u32 %r6, [%l3];
            shl.b32 %r7, %r60, 2; add.u32 %r7, %r7, %r1; st.shared.u32 [%r7], %r6;
            fence.proxy.async.shared::cta;
            barrier.cluster.arrive; barrier.cluster.wait;
            mapa.shared::cluster.u32 %r8, %r1, 1; mapa.shared::cluster.u32 %r9, %r2, 1;
            @!%p2 bra WAIT;
            @%p0 )" + std::string(form.head) + R"( [%r8], [%r1], 256, [%r9];
            @%p0 mbarrier.complete_tx.shared.b64 [%r2], 256;
        )" + end, {2}, {64}, {in.address(), out.address(), was.address()}, room, 0, pair);
        const Words result = out.values();
        CHECK(Words(result.begin(), result.begin() + words) == source);
        CHECK(Words(result.begin() + words, result.end()) == form.result(old, source));
    }
}

TEST_CASE("bulk copies: reductions of global memory", "[kernels][async]") {
    const auto reduce = [](const std::string& head, const Words& old, const Words& source) {
        Array<std::uint32_t> in(source), out(old);
        run(R"(
            mov.u32 %r1, tile; setp.eq.u32 %p0, %r60, 0;
            mul.wide.u32 %l3, %r60, 4; add.u64 %l3, %l3, %l60; ld.global.u32 %r6, [%l3];
            shl.b32 %r7, %r60, 2; add.u32 %r7, %r7, %r1; st.shared.u32 [%r7], %r6;
            fence.proxy.async.shared::cta; bar.sync 0;
            @%p0 )" + head + R"( [%l61], [%r1], 256;
            cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        )", {1}, {64}, {in.address(), out.address()}, room);
        return out.values();
    };
    for (const Reduction& form : to_global) {
        INFO(form.head);
        Words old = numbers(3), source = numbers(0x5555);
        for (unsigned i = 0; i < words; i += 5) old[i] = source[i];
        old[1] = old[6] = 0;
        CHECK(reduce(form.head, old, source) == form.result(old, source));
    }
    // Halves: 1.5 + 2.25 and 65504 + 65504 in both places of a word; bfloats likewise.
    CHECK(reduce("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16", Words(words, 0x7bff3e00), Words(words, 0x7bff4080)) ==
          Words(words, 0x7c004380));
    CHECK(reduce("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16", Words(words, 0x00013fc0), Words(words, 0x00014010)) ==
          Words(words, 0x00024070));
    CHECK(reduce("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f16", Words(words, 0xbc003e00), Words(words, 0x3c004080)) ==
          Words(words, 0xbc003e00));
    CHECK(reduce("cp.reduce.async.bulk.global.shared::cta.bulk_group.max.bf16", Words(words, 0xbf803fc0), Words(words, 0x3f804010)) ==
          Words(words, 0x3f804010));
}

TEST_CASE("cp.async: cache hints are hints", "[kernels][async]") {
    for (const char* form : {"cp.async.ca.shared.global.L2::cache_hint [%r4], [%l3], 16, %l10;",
                             "cp.async.ca.shared.global.L2::cache_hint.L2::128B [%r4], [%l3], 16, 16, %l10;",
                             "cp.async.cg.shared.global.L2::cache_hint [%r4], [%l3], 16, %l10;",
                             "cp.async.cg.shared::cta.global.L2::cache_hint.L2::256B [%r4], [%l3], 16, 16, %l10;"}) {
        INFO(form);
        const Words input = numbers(9, 4 * words);
        Array<std::uint32_t> in(input), out(4 * words);
        run(std::string(R"(
            mov.u32 %r1, tile; shl.b32 %r4, %r60, 4; add.u32 %r4, %r4, %r1;
            mul.wide.u32 %l2, %r60, 16; add.u64 %l3, %l2, %l60; add.u64 %l4, %l2, %l61;
            createpolicy.fractional.L2::evict_last.b64 %l10, 1.0;
        )") + form + R"(
            cp.async.wait_all;
            ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4]; st.global.v4.u32 [%l4], {%r5, %r6, %r7, %r8};
        )", {1}, {64}, {in.address(), out.address()}, room);
        CHECK(out.values() == input);
    }
}

namespace {

/// A map of 16 rows of 64 words at `address`, of which a tile takes 4 rows of 16 words.
std::vector<std::uint8_t> map_of(std::uint64_t address, bool im2col = false) {
    const std::uint64_t dim[] = {64, 4, 4}, plain[] = {64, 16}, stride[] = {256, 1024};
    const std::uint32_t box[] = {16, 4}, step[] = {1, 1, 1};
    const int corner[] = {0, 0, 0};
    runtime::TensorMapRequest request;
    request.kind = im2col ? runtime::TensorMapRequest::Kind::im2col : runtime::TensorMapRequest::Kind::tiled;
    request.type = 2;
    request.rank = im2col ? 3 : 2;
    request.address = address;
    request.dim = im2col ? dim : plain;
    request.stride = stride;
    request.box = box;
    request.step = step;
    request.lower = request.upper = corner;
    request.channels = 16;
    request.pixels = 4;
    runtime::TensorMap map;
    REQUIRE(runtime::make_tensor_map(request, 9, map) == runtime::Status::success);
    return {map.bytes, map.bytes + 128};
}

Words tile_at(const Words& tensor, unsigned row, unsigned column) {
    Words tile;
    for (unsigned i = 0; i < 4; ++i) tile.insert(tile.end(), tensor.begin() + 64 * (row + i) + column, tensor.begin() + 64 * (row + i) + column + 16);
    return tile;
}

} // namespace

TEST_CASE("tensor copies: loads to the own block", "[kernels][async]") {
    const Words tensor = numbers(11, 1024);
    Array<std::uint32_t> in(tensor);
    for (const bool im2col : {false, true}) {
        Array<std::uint8_t> map(map_of(in.address(), im2col));
        Array<std::uint32_t> out(words);
        // Tiles: row 5. Columns: pixel W 1 of image 1, moved by no offset: the same rows.
        run(begin(256) + "mov.u32 %r10, 8; mov.u32 %r11, 5; mov.u32 %r12, 1; mov.b16 %h2, 0; prefetch.tensormap [%l62];\n@%p0 " +
                (im2col ? "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r1], [%l62, {%r10, %r12, %r12}], [%r2], {%h2};"
                        : "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%l62, {%r10, %r11}], [%r2];") +
                end, {1}, {64}, {0, out.address(), map.address()}, room);
        CHECK(out.values() == tile_at(tensor, 5, 8));
    }
}

TEST_CASE("tensor maps: a kernel changes a map in shared memory, publishes it and copies through it", "[kernels][async]") {
    // The map is of another tensor, type, box, swizzle and fill until all its fields are replaced.
    const Words tensor = numbers(13, 1024);
    Array<std::uint32_t> in(tensor), out(words);
    std::vector<std::uint8_t> bytes = map_of(0x1000);
    Array<std::uint8_t> source(bytes), target(128);
    run(begin(256) + R"(
        mov.u32 %r20, map; add.u32 %r21, %r20, 128;
        setp.ge.u32 %p2, %r60, 32; @%p2 bra WAIT;
        mul.wide.u32 %l2, %r60, 4; add.u64 %l3, %l2, %l62; ld.global.u32 %r6, [%l3];
        shl.b32 %r7, %r60, 2; add.u32 %r7, %r7, %r20; st.shared.u32 [%r7], %r6;
        bar.warp.sync -1;
        @!%p0 bra REPLACED;
        cvt.u64.u32 %l4, %r20; cvta.shared.u64 %l4, %l4;
        tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r20], %l60;
        tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r20], 1;
        mov.u32 %r10, 16; tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r20], 0, %r10;
        mov.u32 %r10, 4; tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r20], 1, %r10;
        mov.u32 %r10, 64; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r20], 0, %r10;
        mov.u32 %r10, 7; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r20], 1, %r10;
        mov.u32 %r10, 1; tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r20], 1, %r10;
        mov.b64 %l5, 512; tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r20], 0, %l5;
        tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r20], 7;
        tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r20], 0;
        tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r20], 2;
        tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r20], 1;
    REPLACED:
        bar.warp.sync -1;
        tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%l63], [%r20], 128;
        fence.proxy.tensormap::generic.release.gpu;
        fence.proxy.tensormap::generic.acquire.gpu [%l63], 128;
        mov.u32 %r10, 8; mov.u32 %r11, 5;
        @%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%l63, {%r10, %r11}], [%r2];
    )" + end, {1}, {64}, {in.address(), out.address(), source.address(), target.address()}, room + ".shared .align 128 .b8 map[128];\n", 0, {"sm_90a"});
    // Rows 5 and 6 of stride 512 bytes, then two that are outside; 64-byte swizzle: line (128 bytes) 1 has its pieces 0 and 1, 2 and 3 exchanged.
    Words expected;
    for (unsigned row = 0; row < 4; ++row)
        for (unsigned i = 0; i < 16; ++i) {
            const unsigned piece = row < 2 ? i : i ^ 4;
            expected.push_back(row < 2 ? tensor[128 * (5 + row) + 8 + piece] : 0x7ff77ff7);
        }
    CHECK(out.values() == expected);
}

TEST_CASE("tensor maps: one is changed when stores have read it and their source", "[kernels][async]") {
    const Words tile = numbers(17, words);
    for (const char* schedule : {"eager", "late", "random:1", "random:2", "random:3"}) {
        INFO(schedule);
        const Schedule scope(schedule);
        Array<std::uint32_t> first(1024), second(1024), data(tile);
        Array<std::uint8_t> map(map_of(first.address()));
        run(R"(
            mov.u32 %r1, tile; shl.b32 %r2, %r60, 2; add.u32 %r2, %r2, %r1; setp.eq.u32 %p0, %r60, 0; mov.u32 %r10, 8; mov.u32 %r11, 5; mov.u32 %r12, 0;
            mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60; ld.global.u32 %r3, [%l1]; st.shared.u32 [%r2], %r3;
            fence.proxy.async.shared::cta; bar.sync 0;
            @!%p0 bra DONE;
            cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%l62, {%r12, %r12}], [%r1];
            cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
            tensormap.replace.tile.global_address.global.b1024.b64 [%l62], %l61;
            st.shared.u32 [%r1], 99; fence.proxy.async.shared::cta;
            fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu [%l62], 128;
            cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%l62, {%r10, %r11}], [%r1];
            cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
            tensormap.replace.tile.rank.global.b1024.b32 [%l62], 0;
        DONE:
        )", {1}, {64}, {data.address(), second.address(), map.address()}, room, 0, {"sm_90a"});
        Words one(1024), other(1024);
        for (unsigned i = 0; i < words; ++i) {
            one[i / 16 * 64 + i % 16] = tile[i];
            other[(5 + i / 16) * 64 + 8 + i % 16] = i == 0 ? 99 : tile[i];
        }
        CHECK((first.values() == one));
        CHECK((second.values() == other));
    }
}

TEST_CASE("tensor maps: all lanes have published a map before one patches it again", "[kernels][async]") {
    constexpr unsigned rounds = 8;
    Array<std::uint32_t> out(rounds * 32);
    run(R"(
        mov.u32 %r20, map; mov.u32 %r1, 0; shl.b32 %r2, %r60, 2; add.u32 %r2, %r2, %r20; st.shared.u32 [%r2], 0; setp.eq.u32 %p0, %r60, 0; bar.warp.sync -1;
    NEXT:
        mad.lo.u32 %r3, %r1, 3, 7;
        @%p0 st.shared.u32 [%r20+64], %r3;
        bar.warp.sync -1;
        tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%l61], [%r20], 128;
        add.u64 %l61, %l61, 128; add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 8;
        @%p1 bra NEXT;
    )", {1}, {32}, {0, out.address()}, ".shared .align 128 .b8 map[128];\n");
    for (unsigned round = 0; round < rounds; ++round) CHECK(out.values()[32 * round + 16] == 3 * round + 7);
}

TEST_CASE("fences: each form leaves values alone", "[kernels][async]") {
    for (const char* form : {"fence.acquire.sync_restrict::shared::cluster.cluster;", "fence.release.sync_restrict::shared::cta.cluster;",
                             "fence.proxy.alias;", "membar.proxy.alias;", "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;",
                             "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;", "pmevent 7;"}) {
        INFO(form);
        Array<std::uint32_t> out(words);
        // Each thread publishes a word between two fences; its neighbour reads it behind a barrier.
        run(std::string("mov.u32 %r1, tile; shl.b32 %r2, %r60, 2; add.u32 %r3, %r1, %r2; mul.lo.u32 %r4, %r60, 77; st.shared.u32 [%r3], %r4;\n") + form +
                " bar.sync 0; " + form + R"(
            xor.b32 %r5, %r2, 4; add.u32 %r5, %r5, %r1; ld.shared.u32 %r6, [%r5];
            mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l61; st.global.u32 [%l1], %r6;
        )", {1}, {64}, {0, out.address()}, room);
        Words expected(words);
        for (unsigned i = 0; i < words; ++i) expected[i] = (i ^ 1) * 77;
        CHECK(out.values() == expected);
    }
}

TEST_CASE("barriers: forms with .cta and .aligned", "[kernels][async]") {
    // Warp 0 writes and arrives, warp 1 waits and reads; then both count their odd threads.
    Array<std::uint32_t> out(words);
    run(R"(
        mov.u32 %r1, tile; setp.ge.u32 %p0, %r60, 32; and.b32 %r2, %r60, 31; shl.b32 %r2, %r2, 2; add.u32 %r2, %r2, %r1;
        mov.u32 %r5, 1000;
        @%p0 bra READER;
        add.u32 %r3, %r60, 500; st.shared.u32 [%r2], %r3;
        barrier.cta.arrive.aligned 3, 64;
        bra BOTH;
    READER:
        barrier.cta.sync.aligned 3, 64;
        ld.shared.u32 %r5, [%r2];
    BOTH:
        and.b32 %r6, %r60, 1; setp.ne.u32 %p1, %r6, 0;
        barrier.cta.red.popc.aligned.u32 %r7, 4, 64, !%p1;
        barrier.red.popc.u32 %r8, 5, %p0;
        mad.lo.u32 %r5, %r7, 10000, %r5; mad.lo.u32 %r5, %r8, 1000000, %r5;
        mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l61; st.global.u32 [%l1], %r5;
    )", {1}, {64}, {0, out.address()}, room);
    for (unsigned i = 0; i < words; ++i) CHECK(out.values()[i] == 32320000 + (i < 32 ? 1000 : i + 468));
}

TEST_CASE("votes without member masks", "[kernels][async]") {
    Array<std::uint32_t> out(words);
    run(R"(
        and.b32 %r1, %r60, 3; setp.eq.u32 %p0, %r1, 3; setp.ge.u32 %p4, %r60, 32;
        vote.all.pred %p1, %p0; vote.any.pred %p2, %p0; vote.uni.pred %p3, !%p4; vote.ballot.b32 %r2, !%p0;
        selp.u32 %r3, 1, 0, %p1; selp.u32 %r4, 2, 0, %p2; selp.u32 %r5, 4, 0, %p3;
        add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; xor.b32 %r2, %r2, %r3;
        mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l61; st.global.u32 [%l1], %r2;
    )", {1}, {64}, {0, out.address()}, "", 0, {"sm_60", "6.0"});
    CHECK(out.values() == Words(words, 0x77777777 ^ 6));
}

// Beyond the manual; ptxas 13.0 makes REDAS.ADD.64 of it.
TEST_CASE("red.async: sums of .s64", "[kernels][async]") {
    Array<std::uint64_t> out(2);
    run(R"(
        mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r3, %cluster_ctarank; xor.b32 %r4, %r3, 1; setp.eq.u32 %p0, %r60, 0;
        mapa.shared::cluster.u32 %r5, %r1, %r4; mapa.shared::cluster.u32 %r6, %r2, %r4;
        @%p0 st.shared.u64 [%r1], 100;
        @%p0 mbarrier.init.shared.b64 [%r2], 1;
        @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 256;
        barrier.cluster.arrive; barrier.cluster.wait;
        cvt.s64.s32 %l1, %r60; neg.s64 %l1, %l1;
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s64 [%r5], %l1, [%r6];
    WAIT:
        mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
        @!%p1 bra WAIT;
        mul.wide.u32 %l2, %r3, 8; add.u64 %l2, %l2, %l61; ld.shared.u64 %l3, [%r1]; st.global.u64 [%l2], %l3;
        barrier.cluster.arrive; barrier.cluster.wait;
    )", {2}, {32}, {0, out.address()}, room, 0, pair);
    CHECK(out.values() == std::vector<std::uint64_t>(2, std::uint64_t(100 - 31 * 16)));
}

// What the toolkit's cuda::ptx writes; ptxas 13.0 makes the machine code of the same instruction with its space of it.
TEST_CASE("asynchronous operations: 32 bits without a space are a place in shared memory", "[kernels][async]") {
    const Words input = numbers(11);
    Array<std::uint32_t> in(input), out(3 * words);
    run(R"(
        mov.u32 %r1, tile; mov.u32 %r2, bar; setp.eq.u32 %p0, %r60, 0;
        shl.b32 %r4, %r60, 2; add.u32 %r5, %r1, %r4; cvt.u64.u32 %l1, %r4; add.u64 %l2, %l1, %l60;
        st.shared.u32 [%r5+512], 5;
        @%p0 mbarrier.init.shared.b64 [%r2], 193; // 64 threads: .noinc, then one arrival each; one that expects
        @%p0 fence.mbarrier_init.release.cluster;
        barrier.cluster.arrive; barrier.cluster.wait;
        @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 512;
        cp.async.ca.shared.global [%r5], [%l2], 4;
        cp.async.mbarrier.arrive.noinc.b64 [%r2];
        cp.async.mbarrier.arrive.b64 [%r2]; // counts itself
        mbarrier.arrive.shared.b64 _, [%r2];
        mov.u32 %r6, %cluster_ctarank; xor.b32 %r6, %r6, 1;
        mapa.shared::cluster.u32 %r7, %r5, %r6; mapa.shared::cluster.u32 %r8, %r2, %r6;
        add.u32 %r9, %r7, 256;
        st.async.weak.mbarrier::complete_tx::bytes.b32 [%r9], %r60, [%r8];
        add.u32 %r9, %r7, 512;
        red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u32 [%r9], %r60, [%r8];
        mbarrier.arrive.shared.b64 _, [%r2];
WAIT:
        mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
        @!%p1 bra WAIT;
        ld.shared.u32 %r10, [%r5]; ld.shared.u32 %r11, [%r5+256]; ld.shared.u32 %r12, [%r5+512];
        add.u64 %l3, %l61, %l1; mov.u32 %r6, %cluster_ctarank; setp.eq.u32 %p2, %r6, 1;
        @%p2 st.global.u32 [%l3], %r10; @%p2 st.global.u32 [%l3+256], %r11; @%p2 st.global.u32 [%l3+512], %r12;
        barrier.cluster.arrive; barrier.cluster.wait;
    )", {2}, {64}, {in.address(), out.address()}, room, 0, pair);
    Words expected = input;
    for (unsigned i = 0; i < words; ++i) expected.push_back(i);
    for (unsigned i = 0; i < words; ++i) expected.push_back(i + 5);
    CHECK(out.values() == expected);
}

// Beyond the manual; ptxas makes a store of the whole vector, whose other elements nothing wrote.
TEST_CASE("st.async: one register for a vector is its first element", "[kernels][async]") {
    Array<std::uint32_t> out(4);
    run(R"(
        mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r3, 4711; mov.u64 %l1, 0x123456789abcdef0; mov.u32 %r6, %cluster_ctarank;
        mapa.shared::cluster.u32 %r7, %r1, %r6; mapa.shared::cluster.u32 %r8, %r2, %r6;
        mbarrier.init.shared.b64 [%r2], 1;
        fence.mbarrier_init.release.cluster;
        mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 40;
        st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r7], %r3, [%r8];
        st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r7+16], %r3, [%r8];
        st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%r7+32], %l1, [%r8];
WAIT:
        mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
        @!%p1 bra WAIT;
        ld.shared.u32 %r10, [%r1]; ld.shared.u32 %r11, [%r1+16]; ld.shared.v2.u32 {%r12, %r13}, [%r1+32];
        st.global.v4.u32 [%l60], {%r10, %r11, %r12, %r13};
    )", {1}, {1}, {out.address()}, ".shared .align 16 .b8 tile[64]; .shared .align 8 .b64 bar;");
    CHECK(out.values() == std::vector<std::uint32_t>{4711, 4711, 0x9abcdef0, 0x12345678});
}
