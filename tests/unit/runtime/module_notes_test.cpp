// SPDX-License-Identifier: Apache-2.0
// What is remembered of a text between loads changes nothing but time: errors, logs and facts are the same.
#include "fixture.h"

#include "runtime/module/module_notes.h"

#include <string>
#include <unistd.h>

using namespace ptarmigan::runtime;
using namespace ptarmigan::runtime::test;

namespace {

/// A text that no earlier run of this test has left notes of.
std::string fresh_text(const std::string &body) {
    return "// " + std::to_string(getpid()) + "\n.version 8.0\n.target sm_90\n.address_size 64\n" +
           ".visible .entry k() .maxntid 96, 1, 1\n{\n.shared .align 4 .b8 s[40];\n" +
           ".local .align 4 .b8 l[24];\n" + body + "ret;\n}\n";
}

Status load(const std::string &text, std::shared_ptr<ModuleSource> &source, std::string &log) {
    return ModuleSource::load(text, "test.ptx", source, log, BodyCheck::at_load);
}

} // namespace

TEST_CASE("module notes: a text with an error in a body fails each time, with the same log") {
    REQUIRE(ok(Device::initialize()));
    const std::string text = fresh_text("add.s32 %r1, %r2;\n");
    std::shared_ptr<ModuleSource> source;
    std::string first, second;
    CHECK(load(text, source, first) == Status::invalid_ptx);
    CHECK(load(text, source, second) == Status::invalid_ptx);
    CHECK(!first.empty());
    CHECK(first == second);
    CHECK(!recall_valid_text(hash_text(text)));
}

TEST_CASE("module notes: a valid text has the same log and facts each time") {
    REQUIRE(ok(Device::initialize()));
    const std::string text = fresh_text(".reg .b32 %r<50>;\nadd.s32 %r1, %r2, %r3;\n");
    KernelFacts facts[2];
    std::string logs[2];
    for (int i = 0; i < 2; ++i) {
        std::shared_ptr<ModuleSource> source;
        REQUIRE(ok(load(text, source, logs[i])));
        const KernelFacts *found = nullptr;
        REQUIRE(ok(source->find_kernel("k")->facts(found)));
        facts[i] = *found;
        CHECK(found->static_shared == 40);
        CHECK(found->local == 24);
        CHECK(found->max_threads == 96);
        // What a launch does; without a cache nothing is kept, and the second load finds out again.
        remember_facts(source->text_hash(), "k", *found);
    }
    CHECK(logs[0] == logs[1]);
    CHECK(facts[0].registers == facts[1].registers);
}
