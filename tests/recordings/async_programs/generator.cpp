// SPDX-License-Identifier: Apache-2.0
// Stages: which operations stand side by side, who waits for what.
#include "tests/recordings/async_programs/generator.h"

#include "tests/recordings/async_programs/writer.h"
#include "tests/recordings/random.h"

#include <algorithm>
#include <vector>

namespace async_programs {
namespace {

/// Who arrives at an mbarrier object in each of its phases: its count. `everybody` of the CTA, a thread of each warp, a thread
/// of each CTA of the cluster.
enum class Arrivals { one, everybody, warps, cluster };

class Generator {
public:
    explicit Generator(std::uint32_t seed) : seed_(seed), random_(0xa51c0000u + seed) {}

    Program run() {
        threads_ = 32 * (1 + random_.below(4));
        constexpr unsigned sizes[] = {1, 2, 2, 4};
        cluster_ = sizes[random_.below(4)];
        program_.block = threads_;
        program_.grid = cluster_ * (1 + random_.below(2));
        choose_tensors();
        prologue();
        const unsigned rounds = 1 + random_.below(3), stages = 2 + random_.below(3);
        w_("    mov.u32 %round, 0;\nROUND:\n");
        for (unsigned i = 0; i < stages; ++i) stage();
        w_("    add.u32 %round, %round, 1; setp.lt.u32 %p0, %round, {}; @%p0 bra ROUND;\n", rounds);
        drop();
        epilogue();
        program_.text = w_.take();
        return program_;
    }

private:
    bool chance(unsigned of) { return random_.below(of) == 0; }
    template <class T> T pick(std::initializer_list<T> of) { return of.begin()[random_.below(unsigned(of.size()))]; }
    std::string label(const char* stem) { return stem + std::to_string(labels_++); }

    void choose_tensors() {
        const unsigned swizzle = random_.below(4);
        const unsigned width = swizzle == 0 ? pick({4u, 8u, 16u}) : pick({2u, 4u, 4u}) << swizzle >> (swizzle == 1 ? 0 : 1);
        program_.load.box = {std::min(width, 4u << swizzle | (swizzle == 0 ? 12u : 0u)), pick({4u, 8u})};
        program_.load.swizzle = swizzle;
        program_.load.size = {37 + random_.below(60), 20 + random_.below(40)};
        program_.load.pitch = 512;
        program_.store.box = {8, 8};
        program_.store.swizzle = random_.below(2);
        program_.store.size = {16, scratch_bytes / 64 * program_.grid};
        program_.store.pitch = 64;
    }
    unsigned tile_bytes(const TensorShape& shape) const { return shape.box[0] * shape.box[1] * 4; }

    void prologue() {
        w_(".visible .entry k{}(.param .u64 input, .param .u64 scratch, .param .u64 slots, .param .u64 dump, .param .u64 out,\n"
           "    .param .align 64 .b8 load_map[128], .param .align 64 .b8 store_map[128])\n    .reqntid {}, 1, 1{}\n{\n",
           seed_, threads_, cluster_ > 1 ? " .reqnctapercluster " + std::to_string(cluster_) + ", 1, 1" : "");
        w_("    .shared .align 1024 .b8 buffers[{}];\n    .shared .align 8 .b64 bar[{}];\n", buffer_bytes * buffer_count, barrier_count);
        w_(R"(    .reg .b32 %me, %rank, %cta, %acc, %round, %base, %bars, %expect, %tile, %t<12>, %parity<{}>;
    .reg .b64 %input, %scratch, %slots, %dump, %out, %state, %a<6>, %load_map, %store_map;
    .reg .pred %leader, %waits, %p<4>; .reg .b16 %mask;
    ld.param.u64 %input, [input]; ld.param.u64 %scratch, [scratch]; ld.param.u64 %slots, [slots];
    ld.param.u64 %dump, [dump]; ld.param.u64 %out, [out];
    cvta.to.global.u64 %input, %input; cvta.to.global.u64 %scratch, %scratch; cvta.to.global.u64 %slots, %slots;
    mov.b64 %load_map, load_map; cvta.param.u64 %load_map, %load_map;
    mov.b64 %store_map, store_map; cvta.param.u64 %store_map, %store_map;
    mov.u32 %me, %tid.x; mov.u32 %rank, %cluster_ctarank; mov.u32 %cta, %ctaid.x;
    mov.u32 %base, buffers; mov.u32 %bars, bar;
    mul.wide.u32 %a0, %cta, {}; add.u64 %scratch, %scratch, %a0;
    mad.lo.u32 %acc, %cta, {}, %me; mad.lo.u32 %acc, %acc, 0x9e3779b1, {};
)",
           barrier_count, scratch_bytes, most_threads, seed_);
        // Buffers begin as pieces of the input, another one in each CTA.
        w_("    mul.lo.u32 %t0, %cta, 0x1c40; mov.u32 %t1, %me;\nFILL:\n"
           "    shl.b32 %t2, %t1, 2; add.u32 %t3, %t2, %t0; and.b32 %t3, %t3, {}; cvt.u64.u32 %a0, %t3; add.u64 %a0, %a0, %input;\n"
           "    ld.global.u32 %t4, [%a0]; add.u32 %t2, %t2, %base; st.shared.u32 [%t2], %t4;\n"
           "    add.u32 %t1, %t1, {}; setp.lt.u32 %p0, %t1, {}; @%p0 bra FILL;\n    setp.eq.u32 %p1, %me, 0;\n",
           input_bytes - 4, threads_, buffer_bytes * buffer_count / 4);
        for (unsigned i = 0; i < barrier_count; ++i) {
            arrivals_[i] = cluster_ > 1 ? pick({Arrivals::one, Arrivals::everybody, Arrivals::warps, Arrivals::cluster})
                                        : pick({Arrivals::one, Arrivals::everybody, Arrivals::warps});
            const unsigned counts[] = {1, threads_, threads_ / 32, cluster_};
            w_("    @%p1 mbarrier.init.shared.b64 [bar+{}], {}; mov.u32 %parity{}, 0;\n", 8 * i, counts[unsigned(arrivals_[i])], i);
        }
        w_("    fence.mbarrier_init.release.cluster;\n");
    }

    /// All threads of the cluster, and what they have written is there for everybody.
    void meet() {
        if (cluster_ == 1) {
            w_("    {}\n", pick<const char*>({"bar.sync 0;", "barrier.sync.aligned 0;", "bar.sync 1;"}));
            return;
        }
        const char* aligned = chance(2) ? ".aligned" : "";
        const char* acquire = chance(2) ? ".acquire" : "";
        const char* release = chance(2) ? ".release" : "";
        w_("    barrier.cluster.arrive{}{}; barrier.cluster.wait{}{};\n", release, aligned, acquire, aligned);
    }

    struct Load {
        unsigned buffer;
        bool late; ///< there when all have met, not before
    };

    /// The bytes that this CTA's object of the stage is to be told of.
    void expect(unsigned bytes) { w_("    add.u32 %expect, %expect, {};\n", bytes); }

    /// %leader: `count` threads from a random multiple of 32 on, or one that is elected.
    void choose_leader(unsigned count) {
        const unsigned first = 32 * random_.below(threads_ / 32);
        if (count == 1 && chance(3))
            w_("    shr.u32 %t0, %me, 5; setp.eq.u32 %p0, %t0, {}; elect.sync %t1|%leader, 0xffffffff; and.pred %leader, %leader, %p0;\n", first / 32);
        else
            w_("    sub.u32 %t0, %me, {}; setp.lt.u32 %leader, %t0, {};\n", first + (count == 1 ? random_.below(32) : 0), count);
    }

    /// %t4: the address of `offset` in the CTA that is `distance` ranks further, for a shared address of this one.
    void neighbour(const char* result, const std::string& own, unsigned distance) {
        w_("    add.u32 %t5, %rank, {}; and.b32 %t5, %t5, {}; add.u32 %t6, {}; mapa.shared::cluster.u32 {}, %t6, %t5;\n", distance, cluster_ - 1, own, result);
    }
    std::string in_buffer(unsigned buffer, unsigned offset = 0) { return "%base, " + std::to_string(buffer * buffer_bytes + offset); }
    std::string barrier_place() const { return "%bars, " + std::to_string(8 * barrier_); }

    unsigned free_buffer() {
        const unsigned buffer = free_.back();
        free_.pop_back();
        return buffer;
    }

    // Operations. Each takes a buffer as its target, where it has one; `sources_` are read only in this stage.

    void load_bulk() {
        const unsigned buffer = free_buffer(), parts = pick({1u, 1u, 2u, 4u}), size = 16 * (1 + random_.below(buffer_bytes / 16 / parts));
        const unsigned offset = 16 * random_.below((input_bytes - buffer_bytes) / 16);
        const bool multicast = cluster_ > 1 && chance(3), own = !multicast && chance(3);
        choose_leader(parts);
        w_("    mad.lo.u32 %t1, %t0, {}, %base; add.u32 %t1, %t1, {}; mul.wide.u32 %a0, %t0, {}; add.u64 %a0, %a0, %input; add.u64 %a0, %a0, {};\n",
           parts == 1 ? 0 : size, buffer * buffer_bytes, parts == 1 ? 0 : size, offset);
        loads_.push_back({buffer, false});
        if (multicast) {
            const unsigned mask = 1 + random_.below((1u << cluster_) - 1), sender = random_.below(cluster_);
            w_("    setp.eq.u32 %p0, %rank, {}; and.pred %leader, %leader, %p0; mov.b16 %mask, {};\n", sender, mask);
            w_("    @%leader cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%t1], [%a0], {}, [bar+{}], %mask;\n", size, 8 * barrier_);
            w_("    shr.u32 %t2, {}, %rank; and.b32 %t2, %t2, 1; mad.lo.u32 %expect, %t2, {}, %expect;\n", mask, size * parts);
            return;
        }
        w_("    @%leader cp.async.bulk.shared::{}.global.mbarrier::complete_tx::bytes [%t1], [%a0], {}, [bar+{}];\n", own ? "cta" : "cluster", size, 8 * barrier_);
        expect(size * parts);
    }

    void load_tensor() {
        const unsigned buffer = free_buffer(), size = tile_bytes(program_.load);
        const int x = 4 * (int(random_.below(28)) - 3), y = int(random_.below(70)) - 8;
        choose_leader(1);
        loads_.push_back({buffer, false});
        const bool multicast = cluster_ > 1 && chance(3);
        w_("    add.u32 %t1, %base, {};\n", buffer * buffer_bytes);
        if (multicast) w_("    setp.eq.u32 %p0, %rank, 0; and.pred %leader, %leader, %p0; mov.b16 %mask, {};\n", (1u << cluster_) - 1);
        w_("    mov.u32 %t2, {}; mov.u32 %t3, {};\n", x, y);
        w_("    @%leader cp.async.bulk.tensor.2d.shared::cluster.global{}.mbarrier::complete_tx::bytes{} [%t1], [%load_map, {%t2, %t3}], [bar+{}]{};\n",
           chance(2) ? ".tile" : "", multicast ? ".multicast::cluster" : "", 8 * barrier_, multicast ? ", %mask" : "");
        expect(size);
    }

    /// To the neighbour's buffer, which its object is told of.
    void move_bulk() {
        const unsigned buffer = free_buffer(), size = 16 * (1 + random_.below(buffer_bytes / 16)), distance = 1 + random_.below(cluster_ - 1);
        choose_leader(1);
        neighbour("%t4", in_buffer(buffer), distance);
        neighbour("%t7", barrier_place(), distance);
        w_("    add.u32 %t1, %base, {};\n", source() * buffer_bytes);
        const char* reduction = pick<const char*>({"", "", "add.u32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.u32", "add.u64", "inc.u32", "dec.u32"});
        if (*reduction)
            w_("    @%leader cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{} [%t4], [%t1], {}, [%t7];\n", reduction, size);
        else
            w_("    @%leader cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%t4], [%t1], {}, [%t7];\n", size);
        loads_.push_back({buffer, false});
        expect(size);
    }

    void put_values() {
        const unsigned buffer = free_buffer(), distance = random_.below(cluster_), count = 1 + random_.below(threads_);
        struct Form {
            const char* text;
            unsigned bytes;
            const char* value;
        };
        const Form form = pick<Form>({{"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32", 4, "%acc"},
                                      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.u64", 8, "%a1"},
                                      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32", 8, "{%acc, %t2}"},
                                      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32", 16, "{%acc, %t2, %me, %t2}"},
                                      {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32", 4, "%acc"},
                                      {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.xor.b32", 4, "%acc"},
                                      {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.s32", 4, "%acc"},
                                      {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u32", 4, "%acc"},
                                      {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64", 8, "%a1"}});
        const unsigned all = std::min(count, buffer_bytes / form.bytes);
        neighbour("%t4", in_buffer(buffer), distance);
        neighbour("%t7", barrier_place(), distance);
        const unsigned factor = 3 + 2 * random_.below(1000), pitch = form.text[0] == 'r' && chance(2) ? 0 : form.bytes;
        w_("    setp.lt.u32 %leader, %me, {}; mad.lo.u32 %t4, %me, {}, %t4; xor.b32 %t2, %acc, %me; mul.wide.u32 %a1, %acc, {};\n", all, pitch, factor);
        w_("    @%leader {} [%t4], {}, [%t7];\n", form.text, form.value);
        loads_.push_back({buffer, false});
        expect(all * form.bytes);
    }

    /// cp.async of all threads, waited for by groups.
    void copy_elements() {
        const unsigned size = pick({4u, 8u, 16u}), waits = random_.below(3), groups = waits == 2 ? 1 + random_.below(3) : 1;
        for (unsigned group = 0; group < groups; ++group) {
            if (free_.empty()) break;
            copy_to(free_buffer(), size);
            if (waits != 0) w_("    cp.async.commit_group;\n");
        }
        w_("    {}\n", waits == 0 ? "cp.async.wait_all;" : "cp.async.wait_group 0;");
    }

    void copy_to(unsigned buffer, unsigned size) {
        const unsigned offset = 16 * random_.below((input_bytes - buffer_bytes) / 16), width = buffer_bytes / size;
        w_("    setp.lt.u32 %leader, %me, {}; mul.lo.u32 %t1, %me, {}; cvt.u64.u32 %a0, %t1; add.u64 %a0, %a0, %input; add.u64 %a0, %a0, {}; add.u32 %t1, %t1, %base;\n",
           std::min(width, 1 + random_.below(2 * threads_)), size, offset);
        const char* cache = size == 16 && chance(2) ? "cg" : "ca";
        std::string rest;
        if (chance(3)) {
            w_("    rem.u32 %t2, %acc, {};\n", size + 1);
            rest = ", %t2";
        } else if (chance(3)) {
            w_("    and.b32 %t2, %acc, 1; setp.eq.u32 %p0, %t2, 0;\n");
            rest = ", %p0";
        }
        w_("    @%leader cp.async.{}.shared.global{} [%t1+{}], [%a0], {}{};\n", cache, chance(4) ? ".L2::128B" : "", buffer * buffer_bytes, size, rest);
        loads_.push_back({buffer, false});
    }

    /// From a buffer to memory of this CTA, or reduced into memory of the grid.
    void store_bulk() {
        struct Way {
            const char* name;
            unsigned slot;
        };
        const Way way = pick<Way>({{"", 0}, {"", 0}, {"add.u32", 0}, {"min.u32", 1}, {"max.s32", 2}, {"and.b32", 3}, {"or.b64", 4}, {"xor.b32", 5}, {"add.u64", 6}, {"max.u64", 7}});
        const unsigned size = 16 * (1 + random_.below(buffer_bytes / 16)), place = 2 * buffer_bytes * random_.below(2);
        choose_leader(1);
        w_("    add.u32 %t1, %base, {};\n", source() * buffer_bytes);
        if (*way.name) {
            w_("    add.u64 %a0, %slots, {};\n    @%leader cp.reduce.async.bulk.global.shared::cta.bulk_group.{} [%a0], [%t1], {};\n", way.slot * buffer_bytes, way.name, size);
        } else {
            if (stored_ & 1u << place / buffer_bytes) return;
            stored_ |= 1u << place / buffer_bytes;
            w_("    add.u64 %a0, %scratch, {};\n    @%leader cp.async.bulk.global.shared::cta.bulk_group [%a0], [%t1], {};\n", place, size);
            read_back_.push_back(place + 4 * random_.below(size / 4));
        }
        w_("    @%leader cp.async.bulk.commit_group;\n");
        if (chance(2)) w_("    @%leader cp.async.bulk.wait_group.read 0;\n");
        w_("    @%leader cp.async.bulk.wait_group 0;\n");
    }

    /// The tile at the CTA's rows.
    void store_tensor() {
        constexpr unsigned rows = scratch_bytes / 64;
        if (stored_ & 2) return;
        stored_ |= 2;
        const unsigned row = 16 + random_.below(8); // the second quarter of the CTA's memory
        choose_leader(1);
        const unsigned from = source() * buffer_bytes;
        w_("    mad.lo.u32 %t2, %cta, {}, {}; mov.u32 %t3, {}; add.u32 %t1, %base, {};\n", rows, row, pick({0, 8, 4, 12}), from);
        const char* reduction = pick<const char*>({"", "", "add", "min", "max", "and", "or", "xor", "inc", "dec"});
        if (*reduction)
            w_("    @%leader cp.reduce.async.bulk.tensor.2d.global.shared::cta.{}.tile.bulk_group [%store_map, {%t3, %t2}], [%t1];\n", reduction);
        else
            w_("    @%leader cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%store_map, {%t3, %t2}], [%t1];\n");
        w_("    @%leader cp.async.bulk.commit_group; @%leader cp.async.bulk.wait_group 0;\n");
        read_back_.push_back(64 * (row + random_.below(8)) + 4 * random_.below(16));
    }

    /// Atomics and stores at a neighbour's words: there when all have met.
    void touch_neighbour() {
        const unsigned buffer = free_buffer(), distance = random_.below(cluster_);
        neighbour("%t4", in_buffer(buffer), distance);
        if (chance(2)) {
            w_("    mul.lo.u32 %t2, %acc, {}; and.b32 %t2, %t2, 0x3fc; add.u32 %t4, %t4, %t2;\n", 1 + 2 * random_.below(100));
            w_("    {} [%t4], {};\n", pick<const char*>({"red.shared::cluster.add.u32", "red.relaxed.cluster.shared::cluster.max.u32", "red.release.cluster.shared::cluster.xor.b32"}), "%acc");
        } else {
            w_("    shl.b32 %t2, %me, 3; add.u32 %t4, %t4, %t2; st.shared::cluster.v2.u32 [%t4], {%acc, %me};\n");
        }
        loads_.push_back({buffer, true});
    }

    unsigned source() { return sources_[random_.below(unsigned(sources_.size()))]; }

    /// Who arrives at the stage's object. The bytes are expected before the last arrival that only this CTA makes.
    void arrive() {
        const Arrivals kind = arrivals_[barrier_];
        const std::string place = "[bar+" + std::to_string(8 * barrier_) + "]";
        const char* scope = chance(2) ? ".release.cluster" : "";
        const std::string space = *scope ? ".shared::cta" : ".shared";
        const auto all = [&](const char* guard) { // one of them expects the bytes
            w_("    setp.eq.u32 %p1, %me, 0;\n");
            if (chance(2)) {
                w_("    @%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 {}, %expect;\n    {} mbarrier.arrive{}{}.b64 %state, {};\n", place, guard, scope, space, place);
                return;
            }
            w_("    selp.u32 %t1, %expect, 0, %p1;\n    {} mbarrier.arrive.expect_tx{}{}.b64 %state, {}, %t1;\n", guard, scope, space, place);
        };
        switch (kind) {
        case Arrivals::one:
            w_("    setp.eq.u32 %p1, %me, 0;\n    @%p1 mbarrier.arrive.expect_tx{}{}.b64 _, {}, %expect;\n", scope, space, place);
            return;
        case Arrivals::everybody: return all("");
        case Arrivals::warps:
            w_("    and.b32 %t2, %me, 31; setp.eq.u32 %p2, %t2, 0;\n");
            return all("@%p2");
        case Arrivals::cluster:
            w_("    setp.eq.u32 %p1, %me, 0; @%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 {}, %expect;\n", place);
            for (unsigned i = 0; i < cluster_; ++i) {
                neighbour("%t7", barrier_place(), i);
                w_("    @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%t7];\n");
            }
            return;
        }
    }

    /// cp.async whose end is the arrival.
    void arrive_by_copies() {
        const std::string place = "[bar+" + std::to_string(8 * barrier_) + "]";
        copy_to(free_buffer(), pick({4u, 8u, 16u}));
        if (chance(2)) {
            w_("    setp.eq.u32 %p1, %me, 0;\n    @%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 {}, %expect;\n    cp.async.mbarrier.arrive.noinc.shared.b64 {};\n", place, place);
            by_state_ = false;
            return;
        }
        w_("    cp.async.mbarrier.arrive.shared.b64 {};\n", place);
        arrive();
    }

    void wait() {
        const std::string place = "[bar+" + std::to_string(8 * barrier_) + "]", again = label("WAIT"), done = label("DONE");
        const bool everybody = chance(2);
        const bool state = by_state_ && arrivals_[barrier_] == Arrivals::everybody && everybody && chance(2);
        w_("    setp.ne.u32 %waits, %me, {}; \n", everybody ? threads_ : 32 * random_.below(threads_ / 32));
        if (!everybody) w_("    @%waits bra {};\n", done);
        const char* scope = cluster_ > 1 ? ".acquire.cluster.shared::cta" : pick<const char*>({".shared", ".acquire.cta.shared::cta", ".shared::cta"});
        const std::string which = state ? "%state" : "%parity" + std::to_string(barrier_);
        const bool tries = chance(2);
        w_("{}:\n    mbarrier.{}{}{}.b64 %p3, {}, {}{};\n    @!%p3 bra {};\n{}:\n", again, tries ? "try_wait" : "test_wait", state ? "" : ".parity", scope, place, which,
           tries && chance(3) ? ", 1000" : "", again, done);
        w_("    xor.b32 %parity{}, %parity{}, 1;\n", barrier_, barrier_);
    }

    void mix(const char* from) { w_("    ld.{} %t3, [%t2]; mad.lo.u32 %acc, %acc, 0x85ebca6b, %t3;\n", from); }

    void stage() {
        free_.clear();
        for (unsigned i = 0; i < buffer_count; ++i) free_.push_back(i);
        for (unsigned i = buffer_count; i-- > 1;) std::swap(free_[i], free_[random_.below(i + 1)]);
        sources_ = {free_[4], free_[5]};
        free_.resize(4);
        loads_.clear();
        read_back_.clear();
        stored_ = 0;
        barrier_ = random_.below(barrier_count);
        by_state_ = true;
        w_("    // stage\n    fence.proxy.async;\n");
        meet();
        w_("    mov.u32 %expect, 0;\n");
        const unsigned operations = 1 + random_.below(4);
        bool copies = false;
        for (unsigned i = 0; i < operations && !free_.empty(); ++i) operation(copies);
        // Bytes may be told of before they are expected, as long as an arrival is missing.
        if (arrivals_[barrier_] == Arrivals::everybody && !free_.empty() && chance(2))
            arrive_by_copies();
        else
            arrive();
        wait();
        w_("    bar.sync 0;\n");
        for (const Load& load : loads_)
            if (!load.late) {
                const unsigned offset = 4 * random_.below(256), pitch = 4 + 8 * random_.below(4);
                w_("    mad.lo.u32 %t2, %me, {}, {}; and.b32 %t2, %t2, 0x3fc; add.u32 %t2, %t2, {}; add.u32 %t2, %t2, %base;\n", pitch, offset, load.buffer * buffer_bytes);
                mix("shared.u32");
            }
        meet();
        look_around();
        meet();
        change();
    }

    void operation(bool& copies) {
        switch (random_.below(cluster_ > 1 ? 11 : 7)) {
        case 0:
        case 1: return load_bulk();
        case 2: return load_tensor();
        case 3:
        case 4: return store_bulk();
        case 5: return store_tensor();
        case 6:
            if (!copies) copy_elements();
            copies = true;
            return;
        case 7:
        case 8: return move_bulk();
        case 9: return put_values();
        default: return touch_neighbour();
        }
    }

    /// Nobody writes now: neighbours' buffers, and what was stored.
    void look_around() {
        const unsigned buffer = random_.below(buffer_count), distance = random_.below(cluster_);
        if (cluster_ > 1) {
            neighbour("%t4", in_buffer(buffer), distance);
            const unsigned offset = 4 * random_.below(256), pitch = 4 + 8 * random_.below(4);
            w_("    mad.lo.u32 %t2, %me, {}, {}; and.b32 %t2, %t2, 0x3fc; add.u32 %t2, %t2, %t4;\n", pitch, offset);
            mix("shared::cluster.u32");
        }
        for (const Load& load : loads_)
            if (load.late) {
                w_("    shl.b32 %t2, %me, 3; add.u32 %t2, %t2, {}; add.u32 %t2, %t2, %base;\n", load.buffer * buffer_bytes);
                mix("shared.u32");
            }
        for (unsigned place : read_back_)
            w_("    ld.global.u32 %t3, [%scratch+{}]; mad.lo.u32 %acc, %acc, 0x85ebca6b, %t3;\n", place);
    }

    /// Threads write their own words.
    void change() {
        for (unsigned i = random_.below(3); i-- > 0;) {
            const unsigned buffer = random_.below(buffer_count), by = random_.below(256);
            w_("    add.u32 %t2, %me, {}; and.b32 %t2, %t2, 255; shl.b32 %t2, %t2, 2; add.u32 %t2, %t2, %base; st.shared.u32 [%t2+{}], %acc;\n    bar.sync 0;\n", by,
               buffer * buffer_bytes);
        }
    }

    /// Half of the threads leave an object of all.
    void drop() {
        for (unsigned i = 0; i < barrier_count; ++i) {
            if (arrivals_[i] != Arrivals::everybody || chance(2)) continue;
            meet();
            const std::string again = label("WAIT"), place = "[bar+" + std::to_string(8 * i) + "]";
            w_("    and.b32 %t0, %me, 1; setp.eq.u32 %p0, %t0, {};\n    @%p0 mbarrier.arrive_drop.shared.b64 _, {};\n    @!%p0 mbarrier.arrive.shared.b64 _, {};\n", random_.below(2), place, place);
            w_("{}:\n    mbarrier.try_wait.parity.shared.b64 %p3, {}, %parity{};\n    @!%p3 bra {};\n    xor.b32 %parity{}, %parity{}, 1;\n", again, place, i, again, i, i);
            w_("    bar.sync 0;\n    @!%p0 mbarrier.arrive.shared.b64 %state, {};\n    @!%p0 mbarrier.pending_count.b64 %t1, %state;\n    bar.sync 0;\n"
               "    mbarrier.test_wait.parity.shared.b64 %p3, {}, %parity{}; selp.u32 %t1, 7, 9, %p3; mad.lo.u32 %acc, %acc, 0x85ebca6b, %t1;\n",
               place, place, i);
        }
    }

    void epilogue() {
        meet();
        w_(R"(    mul.wide.u32 %a0, %cta, {}; add.u64 %dump, %dump, %a0; mov.u32 %t1, %me;
SAVE:
    shl.b32 %t2, %t1, 2; cvt.u64.u32 %a0, %t2; add.u64 %a0, %a0, %dump; add.u32 %t2, %t2, %base; ld.shared.u32 %t3, [%t2]; st.global.u32 [%a0], %t3;
    add.u32 %t1, %t1, {}; setp.lt.u32 %p0, %t1, {}; @%p0 bra SAVE;
    mad.lo.u32 %t1, %cta, {}, %me; mul.wide.u32 %a0, %t1, 4; add.u64 %a0, %a0, %out; st.global.u32 [%a0], %acc;
)",
           dump_bytes, threads_, buffer_bytes * buffer_count / 4, threads_);
        meet();
        w_("    ret;\n}\n");
    }

    std::uint32_t seed_;
    recordings::Random random_;
    Writer w_;
    Program program_;
    unsigned threads_ = 32, cluster_ = 1, labels_ = 0;
    std::array<Arrivals, barrier_count> arrivals_{};
    unsigned barrier_ = 0;          ///< of the stage
    bool by_state_ = true;          ///< %state is of this phase
    std::vector<unsigned> free_, sources_;
    std::vector<Load> loads_;
    std::vector<unsigned> read_back_; ///< places in the CTA's scratch memory
    unsigned stored_ = 0;             ///< quarters of it that the stage writes
};

} // namespace

const char* const program_head = ".version 8.8\n.target sm_90\n.address_size 64\n";

Program generate(std::uint32_t seed) { return Generator(seed).run(); }

} // namespace async_programs
