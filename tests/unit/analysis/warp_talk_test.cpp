// SPDX-License-Identifier: Apache-2.0
// Which kernels count on their warp being one step, so that quick code keeps its width.
#include "graph_fixture.h"

#include "tests/support/growth.h"
#include "translator/analysis/waits/warp_talk.h"

#include <time.h>

#include <string>

using namespace ptarmigan;
using namespace ptarmigan::translator;

namespace {

/// %r1 is %tid.x, %r2 its word in `words`, %r6 is n.
bool talks(const std::string& body, unsigned threads = 128) {
    test::AnalysedKernel kernel(R"(
        mov.u32 %r1, %tid.x;
        mov.u32 %r10, words;
        mad.lo.u32 %r2, %r1, 4, %r10;
        ld.param.u32 %r6, [n];
    )" + body + "ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], %r7; ret;",
                                {threads, 1, 1}, 1, ".shared .align 4 .b8 words[8192];\n.shared .align 4 .b8 others[8192];\n");
    return talks_without_meeting(kernel.graph, kernel.shape);
}

/// Thread CPU time of the analysis for a loop over `count` diamonds, each with a store to a word of the thread's own in
/// either arm and a load behind; the words lie elsewhere in each round.
double microseconds(unsigned count) {
    std::string body = "mov.u32 %r1, %tid.x; mov.u32 %r2, words; mad.lo.u32 %r2, %r1, 4, %r2; ld.param.u32 %r6, [n]; mov.u32 %r7, 0; mov.u32 %r9, 0;\n"
                       "round: mad.lo.u32 %r8, %r9, 4194304, %r2;\n";
    for (unsigned i = 0; i < count; ++i) {
        const std::string n = std::to_string(i), word = "[%r8+" + std::to_string(512 * i) + "]";
        body += "and.b32 %r3, %r6, " + std::to_string(1u << (i % 20)) + "; setp.ne.u32 %p1, %r3, 0; @%p1 bra else" + n + ";\n"
                "st.shared.u32 " + word + ", %r6; bra join" + n + ";\nelse" + n + ": st.shared.u32 " + word + ", %r7;\n"
                "join" + n + ": ld.shared.u32 %r5, " + word + "; add.u32 %r7, %r7, %r5;\n";
    }
    body += "add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, %r6; @%p2 bra round; ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], %r7; ret;";
    const test::AnalysedKernel kernel(body, {128, 1, 1}, 1, ".extern .shared .align 4 .b8 words[];\n");
    timespec start{}, end{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    CHECK_FALSE(talks_without_meeting(kernel.graph, kernel.shape));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return double(end.tv_sec - start.tv_sec) * 1e6 + double(end.tv_nsec - start.tv_nsec) * 1e-3;
}

} // namespace

TEST_CASE("warp talk: another thread's word with nothing between", "[races]") {
    CHECK(talks("st.shared.u32 [%r2], %r6; ld.shared.u32 %r7, [%r2 + 4];"));
    CHECK(talks("st.volatile.shared.u32 [%r2], %r6; ld.volatile.shared.u32 %r7, [%r2 + 64];"));
    CHECK(talks("setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [words], %r6; ld.shared.u32 %r7, [words];"));
    // Copies from one place, to two.
    CHECK(talks("ld.param.u64 %rd2, [p]; cp.async.ca.shared.global [%r2 + 1024], [%rd2], 4; cp.async.ca.shared.global [%r2], [%rd2], 4; ld.shared.u32 %r7, [%r2 + 4];"));
    CHECK_FALSE(talks("ld.param.u64 %rd2, [p]; cp.async.ca.shared.global [%r2], [%rd2], 4; ld.shared.u32 %r7, [%r2];"));
    // The last round's store, this round's load.
    CHECK(talks(R"(
        mov.u32 %r7, 0;
    round:
        ld.volatile.shared.u32 %r8, [%r2 + 4];
        st.volatile.shared.u32 [%r2], %r8;
        add.u32 %r7, %r7, 1;
        setp.lt.u32 %p1, %r7, %r6;
        @%p1 bra round;
    )"));
}

TEST_CASE("warp talk: through global memory, where the addresses tell", "[races]") {
    const std::string own = "ld.param.u64 %rd1, [p]; mad.wide.u32 %rd2, %r1, 4, %rd1;";
    CHECK(talks(own + "st.global.u32 [%rd2], %r6; ld.global.u32 %r7, [%rd2 + 4];"));
    CHECK(talks(own + "add.u32 %r3, %r1, -1; mad.wide.u32 %rd3, %r3, 4, %rd1; st.global.u32 [%rd2], %r6; setp.eq.u32 %p1, %r1, 0;"
                      "mov.u32 %r7, 0; @%p1 bra first; ld.global.u32 %r7, [%rd3]; first:"));
    CHECK_FALSE(talks(own + "st.global.u32 [%rd2], %r6; bar.warp.sync -1; ld.global.u32 %r7, [%rd2 + 4];"));
    CHECK_FALSE(talks(own + "st.global.u32 [%rd2], %r6; ld.global.u32 %r7, [%rd2];"));
    CHECK_FALSE(talks(own + "st.global.u32 [%rd2], %r6; ld.global.u32 %r7, [%rd2 + 512];"));
    // Another pointer, a distance that nobody knows: of that, what a block of one warp does.
    const std::string pointer = own + "ld.param.u64 %rd3, [q]; st.global.u32 [%rd2], %r6; ld.global.u32 %r7, [%rd3];";
    CHECK_FALSE(talks(pointer));
    CHECK_FALSE(talks(pointer, 32));
    const std::string next = own + "mov.u32 %r7, 0; round: add.u32 %r3, %r1, 1; rem.u32 %r3, %r3, %r6; mad.wide.u32 %rd3, %r3, 4, %rd1;"
                                   "ld.global.u32 %r8, [%rd3]; st.global.u32 [%rd2], %r8; add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, %r6; @%p1 bra round;";
    CHECK_FALSE(talks(next));
    CHECK_FALSE(talks(next, 33));
    CHECK(talks(next, 32));
}

TEST_CASE("warp talk: lanes that a minimum sends to one word of global memory change it together", "[races]") {
    const std::string clamped = "ld.param.u64 %rd1, [p]; add.u32 %r3, %r6, -1; min.u32 %r3, %r1, %r3;", word = "mad.wide.u32 %rd2, %r3, 4, %rd1;",
                      load = "ld.global.u32 %r7, [%rd2];", add = "add.u32 %r8, %r7, %r6;", store = "st.global.u32 [%rd2], %r8;";
    CHECK(talks(clamped + word + load + add + store));
    CHECK(talks("and.b32 %r1, %r1, 31;" + clamped + word + load + add + store));
    // What is added may come from far.
    std::string far = "mov.u32 %r9, %r6;";
    for (int i = 0; i < 300; ++i) far += "mul.lo.u32 %r9, %r9, %r6; xor.b32 %r9, %r9, 5;";
    CHECK(talks(clamped + word + far + load + "add.u32 %r8, %r7, %r9;" + store));
    CHECK(talks(clamped + word + far + load + "add.u32 %r8, %r9, %r7;" + store));
    // They load before one stores, or store what is none of the word; or no two of them have one word.
    CHECK_FALSE(talks(clamped + word + load + add + "bar.warp.sync -1;" + store));
    CHECK_FALSE(talks(clamped + word + load + "add.u32 %r8, %r6, 1;" + store));
    CHECK_FALSE(talks("ld.param.u64 %rd1, [p]; mov.u32 %r3, %r1;" + word + load + add + store));
    CHECK_FALSE(talks("ld.param.u64 %rd1, [p]; min.u32 %r3, %r6, 100; add.u32 %r3, %r3, %r1;" + word + load + add + store));
}

TEST_CASE("warp talk: not where lanes wait for each other between, or keep to their own", "[races]") {
    CHECK_FALSE(talks("st.shared.u32 [%r2], %r6; bar.warp.sync -1; ld.shared.u32 %r7, [%r2 + 4];"));
    CHECK_FALSE(talks("st.shared.u32 [%r2], %r6; shfl.sync.idx.b32 %r8, %r6, 0, 31, -1; ld.shared.u32 %r7, [%r2 + 4];"));
    CHECK_FALSE(talks("setp.eq.u32 %p1, %r1, 0; @%p1 st.volatile.shared.u32 [words], %r6; bar.sync 0;"
                      "ld.volatile.shared.u32 %r7, [words];"));
    CHECK_FALSE(talks("st.shared.u32 [%r2], %r6; ld.shared.u32 %r7, [%r2];"));
    CHECK_FALSE(talks("st.shared.u32 [%r2], %r6; mov.u32 %r11, words; mad.lo.u32 %r12, %r1, 4, %r11; ld.shared.u32 %r7, [%r12];"));
    CHECK_FALSE(talks("st.shared.u32 [%r2], %r6; ld.shared.u32 %r7, [%r2 + 4096];"));
    CHECK_FALSE(talks("ld.shared.u32 %r7, [%r2 + 4]; st.shared.u32 [%r2], %r7;")); // settle_races()
}

TEST_CASE("warp talk: a word that the thread writes on some way is its own while the address stays", "[races]") {
    // %r8: an address that nobody knows.
    const std::string elsewhere = "ld.param.u64 %rd2, [q]; ld.global.u32 %r8, [%rd2]; setp.lt.u32 %p1, %r1, %r6;";
    const std::string other = "st.shared.u32 [%r8], %r6; ", own = "st.shared.u32 [%r2], %r6; ";
    CHECK(talks(elsewhere + other + "ld.shared.u32 %r7, [%r2];"));
    CHECK_FALSE(talks(elsewhere + own + other + "ld.shared.u32 %r7, [%r2];"));
    CHECK_FALSE(talks(elsewhere + "@%p1 bra skip; " + own + "skip: " + other + "ld.shared.u32 %r7, [%r2];"));
    CHECK_FALSE(talks(elsewhere + "@!%p1 bra skip; " + own + "skip: " + other + "ld.shared.u32 %r7, [%r2];"));
    CHECK_FALSE(talks(elsewhere + "@%p1 bra skip; " + own + "bra join; skip: " + own + "join: " + other + "ld.shared.u32 %r7, [%r2];"));
    CHECK_FALSE(talks(elsewhere + "@%p1 " + own + other + "ld.shared.u32 %r7, [%r2];"));
    CHECK_FALSE(talks(elsewhere + "@%p1 " + own + other + "@!%p1 ld.shared.u32 %r7, [%r2];"));
    CHECK_FALSE(talks(elsewhere + "mov.u32 %r7, 0; @%p1 " + own + other + "@%p1 ld.shared.u32 %r7, [%r2];"));
    // In each round, and in all but the first.
    const std::string again = "add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, %r6; @%p2 bra round;";
    CHECK_FALSE(talks(elsewhere + "mov.u32 %r9, 0; round: " + own + other + "ld.shared.u32 %r7, [%r2]; " + again));
    CHECK_FALSE(talks(elsewhere + "mov.u32 %r9, 0; round: " + other + "ld.shared.u32 %r7, [%r2]; " + own + again));
}

TEST_CASE("warp talk: counters in places that nobody knows are each thread's own", "[races]") {
    const std::string places = "ld.param.u64 %rd2, [q]; mad.wide.u32 %rd3, %r1, 8, %rd2; ld.global.v2.u32 {%r8, %r9}, [%rd3];"
                               "add.u32 %r8, %r8, %r2; add.u32 %r9, %r9, %r2; setp.lt.u32 %p1, %r1, %r6;";
    const auto counter = [](const std::string& place, const std::string& between = "") {
        return "ld.shared.u32 %r7, [" + place + "]; " + between + "add.u32 %r7, %r7, 1; st.shared.u32 [" + place + "], %r7; ";
    };
    CHECK_FALSE(talks(places + counter("%r8") + counter("%r9")));
    CHECK_FALSE(talks(places + "@%p1 bra skip; " + counter("%r8") + "skip: " + counter("%r9")));
    CHECK(talks(places + "st.shared.u32 [%r8], %r6; ld.shared.u32 %r7, [%r9];"));
    CHECK(talks(places + counter("%r8") + counter("%r9", "bar.warp.sync -1; ")));
    CHECK(talks(places + counter("%r8") + "ld.shared.u32 %r7, [%r9]; @%p1 st.shared.u32 [%r9], %r6;"));
    CHECK(talks(places + counter("%r8") + "ld.volatile.shared.u32 %r7, [%r9]; st.volatile.shared.u32 [%r9], %r6;"));
    CHECK(talks(counter("words") + counter("words"))); // one for all
    // Two words that are put in order, as a sort does in a warp.
    const std::string exchange = "ld.shared.u32 %r11, [%r8]; ld.shared.u32 %r12, [%r9]; min.u32 %r13, %r11, %r12; max.u32 %r14, %r11, %r12;"
                                 "st.shared.u32 [%r8], %r13; st.shared.u32 [%r9], %r14;";
    CHECK(talks(places + exchange + "add.u32 %r8, %r8, %r6; add.u32 %r9, %r9, %r6;" + exchange));
    CHECK(talks(places + counter("%r8") + counter("%r9 + 4") + "ld.shared.u32 %r7, [%r9];"));
}

TEST_CASE("warp talk: what was passed between store and load", "[races]") {
    // Words of all threads from %r8 on, which is another in each round: next to each other in one, anywhere in two.
    const auto rounds = [](const std::string& body) {
        return "mov.u32 %r7, 0; mov.u32 %r9, 0; round: mad.lo.u32 %r8, %r9, 4, %r2; " + body +
               "add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, %r6; @%p2 bra round; ";
    };
    CHECK_FALSE(talks(rounds("st.shared.u32 [%r8], %r6; ld.shared.u32 %r7, [%r8];")));
    CHECK_FALSE(talks(rounds("st.shared.u32 [%r8], %r6; setp.lt.u32 %p1, %r9, 7; @%p1 bra over; add.u32 %r7, %r7, 1; over: ld.shared.u32 %r7, [%r8 + 512];")));
    CHECK(talks(rounds("ld.shared.u32 %r7, [%r8]; st.shared.u32 [%r8], %r6; ")));
    CHECK_FALSE(talks(rounds("ld.shared.u32 %r7, [%r8]; st.shared.u32 [%r8], %r6; bar.warp.sync -1; ")));
    CHECK(talks(rounds("setp.lt.u32 %p1, %r9, 7; @%p1 bra over; st.shared.u32 [%r8], %r6; over: ld.shared.u32 %r7, [%r8];")));
}

TEST_CASE("warp talk: the time grows with the number of accesses, not with its square", "[races]") {
    const auto time = [](unsigned count) { return [count] { return microseconds(count); }; };
    const test::Growth grown = test::growth(8, time(100), time(400));
    INFO(grown.one << " us for 100 diamonds, " << grown.four << " us for four times as many");
    CHECK(grown.below(8));
}
