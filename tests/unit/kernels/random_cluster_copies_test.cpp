// SPDX-License-Identifier: Apache-2.0
// Random programs of clusters that write, send, copy, multicast and reduce into each other's shared memory, and copy from there: the
// results are those of a model of the memory, whenever copies are done and whoever fences.
#include "copy_pairs.h"
#include "kernel.h"
#include "tests/recordings/random.h"

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 128, buffers = 4, bytes = 4 * threads;
using Buffer = std::vector<std::uint32_t>; ///< a word for each thread

/// Steps, each of which all CTAs do before the next begins: from buffer `i` of a CTA to buffer `j` of the one `distance` ranks further.
class Generator {
public:
    explicit Generator(unsigned seed) : random_(0xc1057e00u + seed) {
        constexpr unsigned sizes[] = {2, 2, 3, 4, 8};
        size = sizes[random_.below(5)];
        for (unsigned i = 0; i < size * buffers; ++i) input.push_back(Buffer(threads));
        for (Buffer& buffer : input)
            for (std::uint32_t& word : buffer) word = std::uint32_t(random_.bits());
        memory = input;
        sums.assign(size, Buffer(threads));
        const unsigned steps = 6 + random_.below(10);
        for (unsigned i = 0; i < steps; ++i) step(i);
    }

    unsigned size, parity = 0, stores = 0;
    std::string text;
    std::vector<Buffer> input, memory, sums; ///< by rank and buffer; sums by rank
    std::vector<Buffer> stored; ///< by store and rank

private:
    Buffer& at(unsigned rank, unsigned buffer) { return memory[rank % size * buffers + buffer]; }
    std::string number(unsigned value) { return std::to_string(value); }

    /// Behind writes of threads: they fence, or whoever copies from there does.
    void written(unsigned buffer, bool own) {
        const unsigned kind = random_.below(own ? 4 : 3);
        dirty_[buffer] = kind == 0;
        if (kind != 0) text += kind == 1 ? "fence.proxy.async;\n" : kind == 2 ? "fence.proxy.async.shared::cluster;\n" : "fence.proxy.async.shared::cta;\n";
    }
    /// Before copies to or from a buffer of the own CTA.
    void make_clean(unsigned buffer) {
        if (!dirty_[buffer]) return;
        text += random_.below(2) ? "fence.proxy.async.shared::cta;\n" : "fence.proxy.async;\n";
        meet();
        for (bool& dirty : dirty_) dirty = false;
    }
    void meet() { text += "barrier.cluster.arrive; barrier.cluster.wait;\n"; }
    /// Each CTA's mbarrier is told of a buffer.
    void expect() {
        text += "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], " + number(bytes) + ";\n";
        meet();
    }
    void wait() {
        const std::string label = "W" + number(labels_++);
        text += label + ": mbarrier.try_wait.parity.shared.b64 %p1, [%r2], " + number(parity) + "; @!%p1 bra " + label + ";\n";
        parity ^= 1;
    }

    void step(unsigned number_of_step) {
        const unsigned i = random_.below(buffers), j = (i + 1 + random_.below(buffers - 1)) % buffers, distance = 1 + random_.below(size - 1);
        const unsigned salt = 7 * number_of_step + 3;
        // %r20, %r21: the places of the buffers, %r22, %r23: this thread's words, %r24: the mbarrier; 21, 23, 24 of the other CTA.
        text += "add.u32 %r10, %r3, " + number(distance) + "; rem.u32 %r10, %r10, " + number(size) + "; add.u32 %r20, %r1, " + number(i * bytes) +
                "; add.u32 %r11, %r1, " + number(j * bytes) + "; mapa.shared::cluster.u32 %r21, %r11, %r10; mapa.shared::cluster.u32 %r24, %r2, %r10;\n" +
                "add.u32 %r22, %r20, %r4; add.u32 %r23, %r21, %r4;\n";
        const auto each = [&](auto apply) {
            for (unsigned rank = 0; rank < size; ++rank)
                for (unsigned t = 0; t < threads; ++t) apply(at(rank, i)[t], at(rank + distance, j)[t], t);
        };
        switch (random_.below(10)) {
        case 0:
            text += "ld.shared.u32 %r30, [%r22]; mad.lo.u32 %r30, %r30, 3, %r60; st.shared.u32 [%r22], %r30;\n";
            each([](std::uint32_t& own, std::uint32_t&, unsigned t) { own = own * 3 + t; });
            written(i, true);
            break;
        case 1:
            text += "ld.shared.u32 %r30, [%r22]; add.u32 %r30, %r30, " + number(salt) + "; st.shared::cluster.u32 [%r23], %r30;\n";
            each([&](std::uint32_t own, std::uint32_t& other, unsigned) { other = own + salt; });
            written(j, false);
            break;
        case 2:
            text += "ld.shared.u32 %r30, [%r22]; red.shared::cluster.add.u32 [%r23], %r30;\n";
            each([](std::uint32_t own, std::uint32_t& other, unsigned) { other += own; });
            written(j, false);
            break;
        case 3:
        case 4: {
            const bool adds = random_.below(2);
            make_clean(i);
            make_clean(j);
            expect();
            text += std::string("@%p0 ") + (adds ? "cp.reduce.async.bulk" : "cp.async.bulk") + ".shared::cluster.shared::cta.mbarrier::complete_tx::bytes" +
                    (adds ? ".add.u32" : "") + " [%r21], [%r20], " + number(bytes) + ", [%r24];\n";
            each([&](std::uint32_t own, std::uint32_t& other, unsigned) { other = adds ? other + own : own; });
            wait();
            break;
        }
        case 5: {
            const unsigned from = random_.below(size * buffers), mask = 1 + random_.below((1u << size) - 1), who = random_.below(size);
            make_clean(j);
            for (unsigned rank = 0; rank < size; ++rank)
                if (mask >> rank & 1) at(rank, j) = input[from];
            text += "shr.u32 %r31, " + number(mask) + ", %r3; and.b32 %r31, %r31, 1; mul.lo.u32 %r31, %r31, " + number(bytes) +
                    ";\n@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], %r31;\n";
            meet();
            text += "add.u64 %l10, %l60, " + number(from * bytes) + "; mov.b16 %h1, " + number(mask) + "; setp.eq.and.u32 %p2, %r3, " + number(who) +
                    ", %p0;\n@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r11], [%l10], " + number(bytes) +
                    ", [%r2], %h1;\n";
            wait();
            break;
        }
        case 6:
            make_clean(i);
            text += "mad.lo.u32 %r31, %r3, " + number(bytes) + ", " + number(stores++ * size * bytes) + "; cvt.u64.u32 %l10, %r31; add.u64 %l10, %l10, %l61;\n" +
                    "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%l10], [%r20], " + number(bytes) +
                    "; @%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group" + (random_.below(2) ? ".read" : "") + " 0;\n";
            for (unsigned rank = 0; rank < size; ++rank) stored.push_back(at(rank, i));
            break;
        case 7:
            make_clean(i);
            text += "mul.wide.u32 %l10, %r3, " + number(bytes) + "; add.u64 %l10, %l10, %l62;\n@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%l10], [%r20], " +
                    number(bytes) + "; @%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group.read 0;\n";
            for (unsigned rank = 0; rank < size; ++rank)
                for (unsigned t = 0; t < threads; ++t) sums[rank][t] += at(rank, i)[t];
            break;
        default: {
            const bool adds = random_.below(2);
            expect();
            text += std::string("ld.shared.u32 %r30, [%r22]; ") + (adds ? "red.async.relaxed.cluster" : "st.async.weak") + ".shared::cluster.mbarrier::complete_tx::bytes." +
                    (adds ? "add." : "") + "u32 [%r23], %r30, [%r24];\n";
            each([&](std::uint32_t own, std::uint32_t& other, unsigned) { other = adds ? other + own : own; });
            wait();
            dirty_[j] = true;
        }
        }
        meet();
    }

    recordings::Random random_;
    bool dirty_[buffers] = {true, true, true, true};
    unsigned labels_ = 0;
};

void check_program(unsigned seed, const std::string& schedule) {
    const Schedule scope(schedule);
    const Generator program(seed);
    Buffer all;
    for (const Buffer& buffer : program.input) all.insert(all.end(), buffer.begin(), buffer.end());
    const unsigned size = program.size, words = size * threads;
    // Clusters do the same, each in its part of the results.
    const unsigned clusters = 1 + seed % 3, out_words = std::max(1u, program.stores) * words;
    Array<std::uint32_t> in(all), out(clusters * out_words), sums(clusters * words), left(clusters * words * buffers);
    const auto part = [](const char* results, unsigned part_words) {
        return "mul.wide.u32 %l5, %r9, " + std::to_string(4 * part_words) + "; add.u64 " + results + ", " + results + ", %l5;\n";
    };
    std::string begin = "mov.u32 %r9, %clusterid.x;\n" + part("%l61", out_words) + part("%l62", words) + part("%l63", words * buffers) +
                        "mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r3, %cluster_ctarank; shl.b32 %r4, %r60, 2; setp.eq.u32 %p0, %r60, 0;\n"
                        "@%p0 mbarrier.init.shared.b64 [%r2], 1; @%p0 fence.mbarrier_init.release.cluster;\n";
    std::string end = "@%p0 cp.async.bulk.wait_group 0;\n";
    for (unsigned i = 0; i < buffers; ++i) {
        const std::string place = "mad.lo.u32 %r5, %r3, " + std::to_string(buffers * bytes) + ", " + std::to_string(i * bytes) +
                                  "; add.u32 %r6, %r5, %r4; cvt.u64.u32 %l1, %r6; add.u32 %r7, %r1, " + std::to_string(i * bytes) + "; add.u32 %r7, %r7, %r4;\n";
        begin += place + "add.u64 %l1, %l1, %l60; ld.global.u32 %r8, [%l1]; st.shared.u32 [%r7], %r8;\n";
        end += place + "add.u64 %l1, %l1, %l63; ld.shared.u32 %r8, [%r7]; st.global.u32 [%l1], %r8;\n";
    }
    begin += "barrier.cluster.arrive; barrier.cluster.wait;\n";
    run(begin + program.text + end + "barrier.cluster.arrive; barrier.cluster.wait;", {clusters * size}, {threads},
        {in.address(), out.address(), sums.address(), left.address()},
        ".shared .align 128 .b8 tile[" + std::to_string(buffers * bytes) + "]; .shared .align 8 .b64 bar;\n", 0,
        {"sm_90", "9.0", " .reqnctapercluster " + std::to_string(size) + ",1,1"});
    INFO("seed " << seed << ", " << schedule << "\n" << program.text);
    const auto check = [&](const Array<std::uint32_t>& results, const std::vector<Buffer>& expected) {
        Buffer one, every;
        for (const Buffer& buffer : expected) one.insert(one.end(), buffer.begin(), buffer.end());
        one.resize(results.values().size() / clusters);
        for (unsigned i = 0; i < clusters; ++i) every.insert(every.end(), one.begin(), one.end());
        REQUIRE((results.values() == every));
    };
    check(left, program.memory);
    check(sums, program.sums);
    check(out, program.stored);
}

} // namespace

TEST_CASE("clusters: random programs that copy through each other's shared memory", "[kernels][async]") {
    const char* more = std::getenv("PTARMIGAN_TEST_SEEDS");
    const unsigned seeds = more ? unsigned(std::atoi(more)) : 6;
    for (unsigned seed = 0; seed < seeds; ++seed)
        for (const char* schedule : {"eager", "late", "random:1", "random:2"}) check_program(seed, schedule);
}
