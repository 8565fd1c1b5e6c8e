// SPDX-License-Identifier: Apache-2.0
// Compilations that crash, throw or do not end: the launch gives the right result all the same, and nothing else in the
// process notices. PTARMIGAN_TEST_COMPILE_FAULT (translator/jit/enter_stage.h) makes them fail.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <thread>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 64;

/// A setting of the environment while it lives.
class Setting {
public:
    Setting(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
    ~Setting() { unsetenv(name_); }
    Setting(const Setting&) = delete;

private:
    const char* name_;
};

Setting fault(const std::string& text) { return {"PTARMIGAN_TEST_COMPILE_FAULT", text}; }

/// CPU time of the process: what else the machine does is no part of it.
double process_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

std::string number_of_text() {
    static std::atomic<unsigned> count{0};
    return std::to_string(++count);
}

/// A kernel `name` that no one has compiled yet: thread i stores i * i + n.
std::string new_text(const std::string& name, const std::string& n) {
    return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry " + name +
           "(.param .u64 out)\n{ .reg .b32 %r<4>; .reg .b64 %l<4>;\nmov.u32 %r0, %tid.x; mad.lo.u32 %r1, %r0, %r0, " + n +
           ";\nld.param.u64 %l0, [out]; mad.wide.u32 %l1, %r0, 4, %l0; st.global.u32 [%l1], %r1; ret; }\n";
}

bool computes(const std::string& name) {
    const std::string n = number_of_text();
    Array<std::uint32_t> out(threads);
    Module module(new_text(name, n), "net.ptx");
    module.launch(name, {1}, {threads}, {out.address()});
    synchronize();
    const auto results = out.values();
    for (unsigned i = 0; i < threads; ++i)
        if (results[i] != i * i + std::stoul(n)) return false;
    return true;
}

std::vector<struct sigaction> handlers() {
    std::vector<struct sigaction> result;
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGALRM, SIGXCPU, SIGPROF}) {
        struct sigaction action {};
        sigaction(number, nullptr, &action);
        result.push_back(action);
    }
    return result;
}

bool same(const std::vector<struct sigaction>& a, const std::vector<struct sigaction>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i].sa_sigaction != b[i].sa_sigaction || a[i].sa_flags != b[i].sa_flags) return false;
    return true;
}

volatile sig_atomic_t aborts_seen = 0;
void see_abort(int) { aborts_seen = aborts_seen + 1; }

} // namespace

TEST_CASE("a compilation that fails at any stage is tried again in another form", "[kernels][net]") {
    REQUIRE(computes("k"));
    const auto before = handlers();
    std::vector<std::string> faults{"overflow@code:1"}; // takes 256 MB of memory
    for (const char* kind : {"null", "abort", "trap", "fatal", "memory", "exception"}) {
        for (const char* stage : {"analysis", "emission", "optimization", "code", "linking"})
            faults.push_back(std::string(kind) + "@" + stage + ":1");
        faults.push_back(std::string(kind) + "@code:3");
    }
    for (const std::string& wanted : faults) {
        INFO(wanted);
        {
            const Setting setting = fault("*:" + wanted);
            CHECK(computes("k"));
        }
        CHECK(same(handlers(), before));
    }
    CHECK(computes("k"));
}

TEST_CASE("a compilation that does not end is given up", "[kernels][net]") {
    const Setting budget("PTARMIGAN_COMPILE_BUDGET", "0.25");
    {
        const Setting setting = fault("*:loop@code:1");
        CHECK(computes("k"));
    }
    // Not while it holds a lock of the C library's: this thread allocates afterwards.
    const Setting setting = fault("*:churn@code:1");
    CHECK(computes("k"));
}

TEST_CASE("a chain of borrows in a small block, which LLVM combines for ever on AVX-512", "[kernels][net]") {
    const Setting budget("PTARMIGAN_COMPILE_BUDGET", "1");
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < 16; ++i) numbers.push_back(i * 0x123456789abcdefull % 1000 - (i == 5));
    Array<std::uint64_t> in(numbers), out(3 * 4);
    run("mul.wide.u32 %l2, %r60, 24; add.u64 %l2, %l2, %l61; mul.wide.u32 %l3, %r60, 8; add.u64 %l3, %l3, %l60;\n"
        "ld.global.u32 %r13, [%l3]; ld.global.u64 %l4, [%l3+32]; ld.global.u64 %l5, [%l3+64]; ld.global.u64 %l6, [%l3+96];\n"
        "cvt.u64.u32 %l8, %r13; cnot.b64 %l10, %l8; sub.cc.u64 %l11, 0, %l6; subc.cc.u64 %l12, 0, %l5; subc.u64 %l13, %l4, %l10;\n"
        "match.any.sync.b64 %r5, %l11, 15; cvt.u64.u32 %l14, %r5;\n"
        "st.global.u64 [%l2], %l14; st.global.u64 [%l2+8], %l12; st.global.u64 [%l2+16], %l13;",
        {1}, {4}, {in.address(), out.address()});
    const auto results = out.values();
    for (unsigned t = 0; t < 4; ++t) {
        const std::uint64_t d4 = numbers[t + 4], d5 = numbers[t + 8], d6 = numbers[t + 12];
        std::uint64_t mask = 0;
        for (unsigned lane = 0; lane < 4; ++lane) mask |= std::uint64_t(numbers[lane + 12] == d6) << lane;
        const bool first = d6 != 0, second = d5 + first > 0;
        CHECK(results[3 * t] == mask);
        CHECK(results[3 * t + 1] == 0 - d5 - first);
        CHECK(results[3 * t + 2] == d4 - (std::uint32_t(numbers[t]) == 0) - second);
    }
}

TEST_CASE("a kernel that no form can be compiled of fails with a code, and the next one works", "[kernels][net]") {
    {
        const Setting setting = fault("*:null@code:100");
        Array<std::uint32_t> out(threads);
        Module module(new_text("k", number_of_text()), "net.ptx");
        int code = 0;
        try {
            module.launch("k", {1}, {threads}, {out.address()});
        } catch (const Error& error) { code = error.code(); }
        CHECK(code == 999);
    }
    CHECK(computes("k"));
}

TEST_CASE("what no form can be compiled of is not tried again in this process", "[kernels][net]") {
    const std::string text = new_text("k", number_of_text());
    Array<std::uint32_t> out(threads);
    const auto code_of_launch = [&] {
        Module module(text, "net.ptx");
        try {
            module.launch("k", {1}, {threads}, {out.address()});
        } catch (const Error& error) { return int(error.code()); }
        return 0;
    };
    {
        const Setting setting = fault("*:null@code:100");
        CHECK(code_of_launch() == 999);
    }
    CHECK(code_of_launch() == 999); // although it would be compiled now
}

TEST_CASE("the form that a kernel could be compiled in is taken at once for the next module of its text", "[kernels][net]") {
    const Setting budget("PTARMIGAN_COMPILE_BUDGET", "1");
    const std::string text = new_text("k", number_of_text());
    Array<std::uint32_t> out(threads);
    const auto seconds = [&] {
        const double begin = process_seconds();
        Module module(text, "net.ptx");
        module.launch("k", {1}, {threads}, {out.address()});
        synchronize();
        return process_seconds() - begin;
    };
    const Setting setting = fault("*:loop@code:1");
    CHECK(seconds() >= 1);
    CHECK(seconds() < 0.9);
}

TEST_CASE("forms that do not end take two budgets together", "[kernels][net]") {
    const Setting budget("PTARMIGAN_COMPILE_BUDGET", "1");
    const Setting setting = fault("*:loop@code:100");
    Array<std::uint32_t> out(threads);
    Module module(new_text("k", number_of_text()), "net.ptx");
    const double begin = process_seconds();
    CHECK_THROWS_AS(module.launch("k", {1}, {threads}, {out.address()}), Error);
    CHECK(process_seconds() - begin < 4.5); // nine, each with a budget of its own
}

TEST_CASE("kernels whose lanes count on their warp keep its width", "[.][kernels][talk]") {
    const Setting setting = fault("*:null@code:1");
    Array<std::uint32_t> out(threads);
    // Without a barrier: right only where a warp is one step.
    run("// " + number_of_text() + "\nmov.u64 %l5, buffer; cvt.u32.u64 %r5, %l5; and.b32 %r6, %r60, 31; mad.lo.u32 %r7, %r60, 4, %r5;\n"
        "xor.b32 %r8, %r60, 31; mad.lo.u32 %r9, %r8, 4, %r5; st.volatile.shared.u32 [%r7], %r60; ld.volatile.shared.u32 %r10, [%r9];\n"
        "mad.wide.u32 %l6, %r60, 4, %l60; st.global.u32 [%l6], %r10;",
        {1}, {threads}, {out.address()}, ".shared .align 4 .b8 buffer[256];\n");
    const auto results = out.values();
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == (i ^ 31));
}

TEST_CASE("32 threads compile, half of them crash", "[kernels][net]") {
    std::string faults;
    const char* kinds[] = {"null", "abort", "exception", "trap"};
    for (unsigned i = 0; i < 32; i += 2) faults += "k" + std::to_string(i) + ":" + kinds[i / 2 % 4] + "@code:2;";
    REQUIRE(computes("k")); // a launch looks after the handlers that are for kernels
    const Setting setting = fault(faults);
    const auto before = handlers();
    std::atomic<unsigned> right{0};
    std::vector<std::thread> all;
    for (unsigned i = 0; i < 32; ++i)
        all.emplace_back([&right, i] {
            for (unsigned round = 0; round < 2; ++round) right += computes("k" + std::to_string(i));
        });
    for (std::thread& thread : all) thread.join();
    CHECK(right == 64);
    CHECK(same(handlers(), before));
}

TEST_CASE("the program's handler of SIGABRT is its own again, and sees signals of other threads meanwhile", "[kernels][net]") {
    struct sigaction mine {}, before {};
    mine.sa_handler = see_abort;
    sigaction(SIGABRT, &mine, &before);
    {
        const Setting budget("PTARMIGAN_COMPILE_BUDGET", "1");
        const Setting setting = fault("*:loop@code:1");
        std::thread compiling([] { CHECK(computes("k")); });
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        aborts_seen = 0;
        raise(SIGABRT);
        CHECK(aborts_seen == 1);
        compiling.join();
    }
    raise(SIGABRT);
    CHECK(aborts_seen == 2);
    struct sigaction after {};
    sigaction(SIGABRT, &before, &after);
    CHECK(after.sa_handler == see_abort);
}
