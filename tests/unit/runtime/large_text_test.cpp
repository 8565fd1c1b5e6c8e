// SPDX-License-Identifier: Apache-2.0
// Texts of a megabyte and more are checked on several threads, and their bodies are not kept: errors, limits and logs are
// those of small texts. Or their kernels are checked when they are got.
#include "fixture.h"

#include "runtime/base/log.h"
#include "runtime/base/threads.h"
#include "runtime/module/kernel_usage.h"
#include "runtime/module/module_notes.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>

using namespace ptarmigan::runtime;
using namespace ptarmigan::runtime::test;

namespace {

struct Loaded {
    Status status;
    std::string log;
    std::shared_ptr<ModuleSource> source;
    TextHash hash;
};

/// `special` behind some `filler` kernels; no earlier run has left notes of the text.
Loaded load(const std::string &special, unsigned filler, BodyCheck check = BodyCheck::at_load) {
    std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n";
    for (unsigned i = 0; i < filler; ++i) {
        text += ".visible .entry filler" + std::to_string(i) + "() { .reg .b32 %r<9>; .shared .b8 s[" + std::to_string(i + 1) + "];";
        for (unsigned j = 0; j < 40; ++j)
            text += " add.u32 %r1, %r2, " + std::to_string(j) + ";";
        text += " ret; }\n";
    }
    text += special + "// " + std::to_string(getpid()) + "\n";
    Loaded loaded{};
    loaded.hash = hash_text(text);
    loaded.status = ModuleSource::load(std::move(text), "large.ptx", loaded.source, loaded.log, check);
    return loaded;
}

constexpr unsigned many = 1400; ///< kernels of some 900 bytes

std::string line_of(unsigned filler) {
    return "line " + std::to_string(filler + 4) + ";";
}

} // namespace

TEST_CASE("large text: what is wrong with a body is a load error, as in a small text") {
    REQUIRE(ok(Device::initialize()));
    for (const unsigned filler : {3u, many}) {
        const Loaded bad = load(".visible .entry bad() { mov.b32 %q, 1; ret; }\n", filler);
        CHECK(bad.status == Status::invalid_ptx);
        CHECK_THAT(bad.log, Catch::Matchers::Contains(line_of(filler) + " error   : unknown symbol '%q'"));
        CHECK_FALSE(recall_valid_text(bad.hash));

        const Loaded missing = load(".func f();\n.visible .entry k() { call f; ret; }\n", filler);
        CHECK(missing.status == Status::invalid_ptx);
        CHECK(missing.log == "ptxas fatal   : Unresolved extern function 'f'");

        const Loaded excess = load(".func f() { .shared .align 16 .b8 s[230000]; ret; }\n"
                                   ".func g() { call f; ret; }\n"
                                   ".visible .entry k() { .shared .align 16 .b8 s[2449]; call g; ret; }\n",
                                   filler);
        CHECK(excess.status == Status::invalid_ptx);
        CHECK(excess.log == "ptxas error   : Entry function 'k' uses too much shared data (0x38c10 bytes, 0x38c00 max)");
    }
}

TEST_CASE("large text: a valid one has the facts of a small one") {
    REQUIRE(ok(Device::initialize()));
    for (const unsigned filler : {3u, many}) {
        const Loaded good = load(".func f() { .shared .align 16 .b8 s[100]; ret; }\n"
                                 ".visible .entry k() { .shared .b8 s[3]; call f; call f; ret; }\n",
                                 filler);
        REQUIRE(ok(good.status));
        CHECK(good.log.empty());
        const KernelFacts *facts = nullptr;
        REQUIRE(ok(good.source->find_kernel("k")->facts(facts)));
        CHECK(facts->static_shared == 116);
        REQUIRE(ok(good.source->find_kernel("filler2")->facts(facts)));
        CHECK(facts->static_shared == 3);
    }
}

TEST_CASE("large text: where kernels are checked when they are got, a bad one fails then, the others work") {
    REQUIRE(ok(Device::initialize()));
    const std::string bad = ".func f() { mov.b32 %q, 1; ret; }\n.visible .entry bad() { call f; ret; }\n"
                            ".visible .entry big() { .shared .align 16 .b8 s[232449]; ret; }\n";
    CHECK(load(bad, 3, BodyCheck::at_load_or_got).status == Status::invalid_ptx); // a small text has no later
    const Loaded loaded = load(bad, many, BodyCheck::at_load_or_got);
    REQUIRE(ok(loaded.status));
    CHECK_FALSE(recall_valid_text(loaded.hash));
    CHECK(ok(loaded.source->find_kernel("filler2")->check()));
    CHECK(loaded.source->find_kernel("bad")->check() == Status::invalid_ptx);
    CHECK_THAT(error_detail(), Catch::Matchers::Contains("large.ptx:1404:21: error: unknown symbol '%q'"));
    CHECK(loaded.source->find_kernel("big")->check() == Status::invalid_ptx);
    CHECK_THAT(error_detail(), Catch::Matchers::Contains("Entry function 'big' uses too much shared data"));
    CHECK(loaded.source->find_kernel("bad")->check() == Status::invalid_ptx);

    // A function that nothing defines: of the kernels that call it or take its address, not of those that only list it.
    const Loaded lacking = load(".extern .func f();\n.func g() { call f; ret; }\n.visible .entry calls() { call g; ret; }\n"
                                ".visible .entry holds() { .reg .u64 %r; mov.u64 %r, f; ret; }\n"
                                ".visible .entry lists() { .reg .u64 %r; l: .calltargets f; mov.u64 %r, 0; call %r, l; ret; }\n",
                                many, BodyCheck::at_load_or_got);
    REQUIRE(ok(lacking.status));
    CHECK(ok(lacking.source->find_kernel("filler2")->check()));
    CHECK(lacking.source->find_kernel("calls")->check() == Status::invalid_ptx);
    CHECK_THAT(error_detail(), Catch::Matchers::Contains("Unresolved extern function 'f'"));
    CHECK(lacking.source->find_kernel("holds")->check() == Status::invalid_ptx);
    CHECK_THAT(error_detail(), Catch::Matchers::Contains("Cannot take address of function 'f' "));
    CHECK(ok(lacking.source->find_kernel("lists")->check()));

    // What is wrong outside of bodies still is at load.
    CHECK(load(".global .u32 x = y;\n", many, BodyCheck::at_load_or_got).status == Status::invalid_ptx);
    CHECK(load(".func f();\n", many, BodyCheck::at_load_or_got).log == "ptxas fatal   : Unresolved extern function 'f'");
}

TEST_CASE("large text: a chain of functions does not use up the stack") {
    std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.func f0() { .shared .b8 s[7]; ret; }\n";
    constexpr unsigned length = 20000;
    for (unsigned i = 1; i < length; ++i)
        text += ".func f" + std::to_string(i) + "() { call f" + std::to_string(i - 1) + "; ret; }\n";
    const auto loader = ptarmigan::ptx::ModuleLoader::load(text, "chain.ptx");
    CHECK(usage_of(*loader, length - 1).shared == 7);
}

TEST_CASE("threads: the work is done on all of them, and where no more can be made") {
    std::atomic<unsigned> calls = 0;
    run_on_threads(4, [&] { ++calls; });
    CHECK(calls == 4);
    run_on_threads(0, [&] { ++calls; });
    CHECK(calls == 5);
    constexpr int not_limited = 2;
    const pid_t child = fork();
    if (child == 0) { // no address space for many stacks
        calls = 0;
        const rlimit limit{1u << 20, 1u << 20};
        setrlimit(RLIMIT_AS, &limit);
        const bool is_limited = mmap(nullptr, 64u << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
        run_on_threads(64, [&] { ++calls; });
        _exit(!is_limited ? not_limited : calls >= 1 && calls < 64 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == not_limited)
        WARN("not tested: the address space of a process can't be limited (qemu-user)");
    else
        CHECK(status == 0);
}
