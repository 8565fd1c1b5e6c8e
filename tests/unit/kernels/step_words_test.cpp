// SPDX-License-Identifier: Apache-2.0
// Words of shared memory that threads hand each other from barrier to barrier, at places that their numbers alone tell
// (llvm/join_step_loops.h): scans, sums by trees, and random exchanges of bytes, halves, words and pairs of words.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <functional>
#include <random>

using namespace ptarmigan::test;

namespace {

std::string number(std::uint32_t n) {
    return std::to_string(n);
}

/// Exchanges among `threads` (a power of two) and what they come to, statement by statement. Words of shared memory are
/// loaded and stored between barriers, in pieces of all sizes, by addresses that constants tell, by generic ones and by
/// some that nobody knows; added to atomically, behind fences; in loops of a few rounds, some with two ends. A part of
/// the threads may leave early.
class Exchange {
public:
    Exchange(unsigned threads, std::uint32_t seed) : threads_(threads), present_(threads), random_(seed), oddity_(below(4)), memory_(8 * threads), values_(threads, 7) {
        text_ = "mov.u32 %r2, words; mov.u32 %r10, 7; shl.b32 %r1, %r60, 2; add.u32 %r1, %r1, %r2; mul.lo.u32 %r3, %r60, 2654435761;\n"
                "st.shared.u32 [%r1], %r3; not.b32 %r3, %r3; st.shared.u32 [%r1+" + number(4 * threads) + "], %r3;\n"
                "cvt.u64.u32 %l4, %r2; cvta.shared.u64 %l4, %l4; ld.global.u64 %l5, [%l61]; add.u64 %l5, %l4, %l5; bar.sync 0;\n";
        for (unsigned t = 0; t < threads; ++t) {
            put(4 * t, t * 2654435761u, 4);
            put(4 * threads + 4 * t, ~(t * 2654435761u), 4);
        }
        for (unsigned round = 0; round < 6; ++round) {
            if (below(4))
                exchange();
            else
                repeat();
            if (!below(8)) leave();
        }
        text_ += "shl.b32 %r1, %r60, 2; add.u32 %r1, %r1, %r2; mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60;\n"
                 "ld.shared.u32 %r3, [%r1]; st.global.u32 [%l1+" + number(4 * threads) + "], %r3;\n"
                 "ld.shared.u32 %r3, [%r1+" + number(4 * threads) + "]; st.global.u32 [%l1+" + number(8 * threads) + "], %r3;\n"
                 "left: mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60; st.global.u32 [%l1], %r10;\n";
    }

    const std::string& text() const { return text_; }
    std::vector<std::uint32_t> result() const {
        std::vector<std::uint32_t> result = values_;
        result.resize(3 * threads_);
        for (unsigned t = 0; t < present_; ++t)
            for (const unsigned half : {0u, threads_}) result[threads_ + half + t] = std::uint32_t(get(4 * (half + t), 4));
        return result;
    }

private:
    /// What a statement does; false: its loop ends here.
    using Effect = std::function<bool()>;
    void add(Effect effect) {
        if (is_repeated_)
            repeated_.push_back(std::move(effect));
        else
            effect();
    }
    bool odd(unsigned chances) { return below(chances * 3) < oddity_; }
    unsigned below(unsigned limit) { return unsigned(random_() % limit); }
    void put(unsigned at, std::uint64_t value, unsigned bytes) { std::memcpy(&memory_[at], &value, bytes); }
    std::uint64_t get(unsigned at, unsigned bytes) const {
        std::uint64_t value = 0;
        std::memcpy(&value, &memory_[at], bytes);
        return value;
    }

    void exchange() {
        load();
        if (below(2)) load();
        text_ += "bar.sync 0;\n";
        if (odd(5))
            sum();
        else
            store();
        text_ += "bar.sync 0;\n";
    }

    void repeat() {
        const unsigned rounds = 2 + below(4), word = below(threads_), bit = 1u << below(8);
        const std::string label = number(labels_++);
        is_repeated_ = true;
        text_ += "mov.u32 %r20, 0;\nagain" + label + ":\n";
        exchange();
        if (below(2)) {
            text_ += "ld.shared.u32 %r3, [words+" + number(4 * word) + "]; and.b32 %r3, %r3, " + number(bit) + "; setp.ne.u32 %p2, %r3, 0; @%p2 bra end" + label + ";\n";
            add([=, this] { return (get(4 * word, 4) & bit) == 0; });
            if (below(2)) exchange();
        }
        text_ += "add.u32 %r20, %r20, 1; setp.lt.u32 %p2, %r20, " + number(rounds) + "; @%p2 bra again" + label + ";\nend" + label + ": bar.sync 0;\n";
        is_repeated_ = false;
        for (unsigned round = 0; round < rounds; ++round)
            for (const Effect& effect : repeated_)
                if (!effect()) {
                    round = rounds;
                    break;
                }
        repeated_.clear();
    }

    void leave() {
        present_ = 1 + below(present_);
        text_ += "setp.ge.u32 %p3, %r60, " + number(present_) + "; @%p3 bra left;\n";
    }

    struct Place {
        unsigned log, factor, add, count;
        unsigned of(unsigned t) const { return ((t * factor + add) & (count - 1)) << log; }
    };
    /// Mostly words. `all`: each thread has a place of its own.
    Place place(bool all, bool is_word = false) {
        const unsigned log = is_word || !odd(3) ? 2 : below(4);
        const unsigned count = all ? threads_ : (8 * threads_) >> log;
        Place place{log, below(3) ? 1 : below(9), below(4) ? below(threads_) : 0, count};
        if (all) place.factor |= 1;
        text_ += "mul.lo.u32 %r1, %r60, " + number(place.factor) + "; add.u32 %r1, %r1, " + number(place.add) + "; and.b32 %r1, %r1, " + number(count - 1) +
                 "; shl.b32 %r1, %r1, " + number(log) + ";\n";
        return place;
    }
    /// The space and the operand of an access at the offset %r1.
    std::pair<std::string, std::string> address() {
        const unsigned kind = odd(8) ? below(3) : 3;
        if (kind > 1) {
            text_ += "add.u32 %r1, %r1, %r2;\n";
            return {kind == 2 ? ".volatile.shared" : ".shared", "[%r1]"};
        }
        text_ += "cvt.u64.u32 %l6, %r1; add.u64 %l6, %l6, " + std::string(kind == 0 ? "%l4" : "%l5") + ";\n";
        return {"", "[%l6]"};
    }

    struct Guard {
        unsigned kind, limit;
        bool holds(unsigned t, std::uint32_t value) const { return kind == 0 || (kind == 1 ? t < limit : kind == 2 ? t >= limit : (value & 4) != 0); }
    };
    /// By the thread's number, or by its data.
    Guard guard() {
        const Guard guard{odd(4) ? 3 : below(3), below(threads_)};
        if (guard.kind == 1) text_ += "setp.lt.u32 %p1, %r60, " + number(guard.limit) + ";\n";
        if (guard.kind == 2) text_ += "setp.ge.u32 %p1, %r60, " + number(guard.limit) + ";\n";
        if (guard.kind == 3) text_ += "and.b32 %r3, %r10, 4; setp.ne.u32 %p1, %r3, 0;\n";
        return guard;
    }

    /// A predicated access, or one that a branch goes around.
    void access(const Guard& only, const std::string& text) {
        if (only.kind == 0 || below(2)) {
            text_ += (only.kind ? "@%p1 " : "") + text + ";\n";
        } else {
            const std::string label = "around" + number(labels_++);
            text_ += "@!%p1 bra " + label + ";\n" + text + ";\n" + label + ":\n";
        }
    }

    void load() {
        const Place from = place(false);
        const auto [space, operand] = address();
        const Guard only = guard();
        const std::string type = "u" + number(8u << from.log), reg = from.log == 3 ? "%l3" : from.log == 2 ? "%r4" : "%h1";
        if (from.log == 3) text_ += "mov.u64 %l3, 0;\n";
        if (from.log == 2) text_ += "mov.u32 %r4, 0;\n";
        if (from.log < 2) text_ += "mov.u16 %h1, 0;\n";
        access(only, "ld" + space + "." + type + " " + reg + ", " + operand);
        if (from.log == 3) text_ += "mov.b64 {%r4, %r5}, %l3; xor.b32 %r4, %r4, %r5;\n";
        if (from.log < 2) text_ += "cvt.u32.u16 %r4, %h1;\n";
        text_ += "mad.lo.u32 %r10, %r10, 3, %r4;\n";
        add([=, this] {
            for (unsigned t = 0; t < present_; ++t) {
                const std::uint64_t loaded = only.holds(t, values_[t]) ? get(from.of(t), 1u << from.log) : 0;
                values_[t] = values_[t] * 3 + std::uint32_t(loaded ^ loaded >> 32);
            }
            return true;
        });
    }

    void store() {
        const Place to = place(true);
        const auto [space, operand] = address();
        const Guard only = guard();
        const std::string type = "u" + number(8u << to.log), reg = to.log == 3 ? "%l3" : to.log == 2 ? "%r10" : "%h1";
        if (to.log == 3) text_ += "mov.b64 %l3, {%r10, %r60};\n";
        if (to.log < 2) text_ += "cvt.u16.u32 %h1, %r10;\n";
        access(only, "st" + space + "." + type + " " + operand + ", " + reg);
        add([=, this] {
            for (unsigned t = 0; t < present_; ++t)
                if (only.holds(t, values_[t])) put(to.of(t), values_[t] | std::uint64_t(t) << 32, 1u << to.log);
            return true;
        });
    }

    /// By all threads, several of them to one word.
    void sum() {
        const Place to = place(false, true);
        const auto [space, operand] = address();
        const Guard only = guard();
        if (below(2)) text_ += "membar.cta;\n";
        access(only, "red" + std::string(space.empty() ? "" : ".shared") + ".add.u32 " + operand + ", %r10");
        if (below(2)) text_ += "membar.gl;\n";
        add([=, this] {
            for (unsigned t = 0; t < present_; ++t)
                if (only.holds(t, values_[t])) put(to.of(t), get(to.of(t), 4) + values_[t], 4);
            return true;
        });
    }

    unsigned threads_, present_;
    std::mt19937 random_;
    unsigned oddity_; ///< 0: only what can go from store to load in registers
    std::vector<unsigned char> memory_;
    std::vector<std::uint32_t> values_;
    std::string text_;
    std::vector<Effect> repeated_;
    bool is_repeated_ = false;
    unsigned labels_ = 0;
};

const char* const shared_words = ".shared .align 8 .b8 words[3072];\n";

} // namespace

TEST_CASE("random exchanges of words from barrier to barrier", "[kernels][barriers][memory][words]") {
    const unsigned threads = GENERATE(32u, 64u, 128u, 256u);
    const std::uint32_t seed = GENERATE(range(0u, 40u));
    CAPTURE(threads, seed);
    const Exchange exchange(threads, seed * 1000 + threads);
    INFO(exchange.text());
    Array<std::uint32_t> out(3 * threads);
    Array<std::uint64_t> zero(1);
    run(exchange.text(), {1}, {threads}, {out.address(), zero.address()}, shared_words);
    CHECK(out.values() == exchange.result());
}

TEST_CASE("words go round in a loop of a few rounds", "[kernels][barriers][memory][words]") {
    const unsigned threads = GENERATE(32u, 64u, 128u), rounds = GENERATE(2u, 4u), leavers = GENERATE(0u, 1u, 40u);
    CAPTURE(threads, rounds, leavers);
    const std::string text =
        "mov.u32 %r2, words; shl.b32 %r1, %r60, 2; add.u32 %r1, %r1, %r2; add.u32 %r3, %r60, 1; and.b32 %r3, %r3, " + number(threads - 1) + ";\n"
        "shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r2; mov.u32 %r10, %r60; mov.u32 %r20, 0; setp.ge.u32 %p1, %r60, " + number(threads - 8) + ";\n"
        "mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60; setp.lt.u32 %p3, %r60, " + number(leavers) + "; mov.u32 %r4, 5; st.shared.u32 [%r1], %r4; bar.sync 0;\n"
        "round: @%p1 bra meet; add.u32 %r4, %r10, %r20; st.shared.u32 [%r1], %r4;\n"
        "meet: bar.sync 0; ld.shared.u32 %r4, [%r3]; mad.lo.u32 %r10, %r10, 3, %r4; @%p3 bra left; bar.sync 0;\n"
        "add.u32 %r20, %r20, 1; setp.lt.u32 %p2, %r20, " + number(rounds) + "; @%p2 bra round;\n"
        "left: st.global.u32 [%l1], %r10;\n";
    std::vector<std::uint32_t> values(threads), words(threads, 5);
    for (unsigned t = 0; t < threads; ++t) values[t] = t;
    for (unsigned round = 0; round < rounds; ++round) {
        const unsigned first = round > 0 ? leavers : 0;
        for (unsigned t = first; t + 8 < threads; ++t) words[t] = values[t] + round;
        for (unsigned t = first; t < threads; ++t) values[t] = values[t] * 3 + words[(t + 1) % threads];
    }
    Array<std::uint32_t> out(threads);
    run(text, {1}, {threads}, {out.address()}, shared_words);
    CHECK(out.values() == values);
}

TEST_CASE("scans by doubling reach, in order", "[kernels][barriers][memory][words]") {
    const unsigned threads = GENERATE(32u, 64u, 100u, 128u, 256u, 512u), blocks = 3;
    const bool is_float = GENERATE(false, true);
    CAPTURE(threads, is_float);
    const std::string type = is_float ? "f32" : "u32", value = is_float ? "%f1" : "%r4", other = is_float ? "%f2" : "%r5", zero = is_float ? "0f00000000" : "0";
    std::string text = "mov.u32 %r2, words; shl.b32 %r1, %r60, 2; add.u32 %r1, %r1, %r2; mul.wide.u32 %l1, %r62, 4; add.u64 %l2, %l1, %l60; add.u64 %l3, %l1, %l61;\n"
                       "ld.global." + type + " " + value + ", [%l2]; st.shared." + type + " [%r1], " + value + "; bar.sync 0;\n";
    for (unsigned reach = 1; reach < threads; reach *= 2)
        text += "mov." + type + " " + other + ", " + zero + "; setp.ge.u32 %p1, %r60, " + number(reach) + "; @%p1 ld.shared." + type + " " + other + ", [%r1+-" + number(4 * reach) + "];\n"
                "bar.sync 0; ld.shared." + type + " " + value + ", [%r1]; add." + type + " " + value + ", " + value + ", " + other + "; st.shared." + type + " [%r1], " + value + "; bar.sync 0;\n";
    text += "ld.shared." + type + " " + value + ", [%r1]; st.global." + type + " [%l3], " + value + ";\n";
    std::mt19937 random(threads);
    std::vector<std::uint32_t> in(threads * blocks);
    for (std::uint32_t& each : in) {
        const float real = float(int(random() % 2000) - 1000) / 7;
        each = std::uint32_t(random());
        if (is_float && each % 64 == 0)
            each |= 0x7fa00000; // a NaN of some kind
        else if (is_float)
            std::memcpy(&each, &real, 4);
    }
    std::vector<std::uint32_t> expected = in;
    for (unsigned block = 0; block < blocks; ++block)
        for (unsigned reach = 1; reach < threads; reach *= 2)
            for (unsigned t = threads; t-- > reach;) {
                std::uint32_t &to = expected[block * threads + t], from = expected[block * threads + t - reach];
                float a, b;
                std::memcpy(&a, &to, 4);
                std::memcpy(&b, &from, 4);
                a += b;
                if (is_float)
                    std::memcpy(&to, &a, 4);
                else
                    to += from;
            }
    for (std::uint32_t& each : expected)
        if (is_float && (each & 0x7fffffff) > 0x7f800000) each = 0x7fffffff;
    Array<std::uint32_t> device_in(in), out(in.size());
    run(text, {blocks}, {threads}, {device_in.address(), out.address()}, shared_words);
    CHECK(out.values() == expected);
}

TEST_CASE("exclusive sums up and down a tree", "[kernels][barriers][memory][words]") {
    const unsigned threads = GENERATE(32u, 64u, 128u, 256u), count = 2 * threads;
    CAPTURE(threads);
    std::string text = "mov.u32 %r2, words; shl.b32 %r1, %r60, 3; add.u32 %r1, %r1, %r2; cvt.u64.u32 %l1, %r60; shl.b64 %l1, %l1, 3; add.u64 %l2, %l1, %l60; add.u64 %l3, %l1, %l61;\n"
                       "ld.global.u32 %r4, [%l2]; ld.global.u32 %r5, [%l2+4]; st.shared.u32 [%r1], %r4; st.shared.u32 [%r1+4], %r5;\n";
    const auto ends = [&](unsigned offset) { // of the left half in %r6, of the right one in %r7, for thread t
        return "shl.b32 %r6, %r60, 1; add.u32 %r6, %r6, 1; mul.lo.u32 %r6, %r6, " + number(4 * offset) + "; add.u32 %r6, %r6, %r2; add.u32 %r7, %r6, " + number(4 * offset) + ";\n";
    };
    unsigned offset = 1, label = 0;
    for (unsigned d = threads; d > 0; d /= 2, offset *= 2, ++label)
        text += "bar.sync 0; setp.ge.u32 %p1, %r60, " + number(d) + "; @%p1 bra up" + number(label) + ";\n" + ends(offset) +
                "ld.shared.u32 %r4, [%r6+-4]; ld.shared.u32 %r5, [%r7+-4]; add.u32 %r5, %r5, %r4; st.shared.u32 [%r7+-4], %r5;\nup" + number(label) + ":\n";
    text += "setp.ne.u32 %p1, %r60, 0; @%p1 bra zero; mov.u32 %r4, 0; st.shared.u32 [words+" + number(4 * count - 4) + "], %r4;\nzero:\n";
    for (unsigned d = 1; d < count; d *= 2, ++label) {
        offset /= 2;
        text += "bar.sync 0; setp.ge.u32 %p1, %r60, " + number(d) + "; @%p1 bra down" + number(label) + ";\n" + ends(offset) +
                "ld.shared.u32 %r4, [%r6+-4]; ld.shared.u32 %r5, [%r7+-4]; st.shared.u32 [%r6+-4], %r5; add.u32 %r5, %r5, %r4; st.shared.u32 [%r7+-4], %r5;\ndown" + number(label) + ":\n";
    }
    text += "bar.sync 0; ld.shared.u32 %r4, [%r1]; ld.shared.u32 %r5, [%r1+4]; st.global.u32 [%l3], %r4; st.global.u32 [%l3+4], %r5;\n";
    std::vector<std::uint32_t> in(count), expected(count);
    std::mt19937 random(threads);
    for (unsigned i = 0; i < count; ++i) {
        in[i] = std::uint32_t(random());
        if (i + 1 < count) expected[i + 1] = expected[i] + in[i];
    }
    Array<std::uint32_t> device_in(in), out(count);
    run(text, {1}, {threads}, {device_in.address(), out.address()}, shared_words);
    CHECK(out.values() == expected);
}
