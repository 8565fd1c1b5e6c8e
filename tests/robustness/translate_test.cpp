// SPDX-License-Identifier: Apache-2.0
// Mutated programs through everything that a program's PTX goes through before it runs: loading by the
// driver's entries, queries of functions, and translation to machine code. Any verdict is right; a
// crash, a hang and an error without a text are not.
#include "mutants.h"
#include "runtime/base/handle_table.h"
#include "runtime/base/log.h"
#include "runtime/module/module.h"
#include "runtime/shim/convert.h"
#include "tests/driver_api/driver.h"
#include "tests/reject/text_files.h"

#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>

using namespace ptarmigan;

extern "C" {
CUresult cuModuleEnumerateFunctions(CUfunction*, unsigned, CUmodule);
CUresult cuFuncGetName(const char**, CUfunction);
}

namespace {

/// Far more than any input of these tests takes, sanitizers included.
constexpr unsigned seconds_per_input = 60;

struct Tally {
    unsigned inputs = 0, loaded = 0, translated = 0, refused = 0;
    unsigned surprises = 0; ///< refusals without a reason that names the program's fault
};

/// Translates a kernel for a block shape that it allows.
void translate(CUfunction handle, test::Random& random, Tally& tally) {
    static constexpr std::array<std::array<std::uint32_t, 3>, 6> shapes{
        {{32, 1, 1}, {1, 1, 1}, {256, 1, 1}, {16, 16, 1}, {33, 3, 2}, {1024, 1, 1}}};
    auto function = shim::find_handle<runtime::Function>(handle);
    REQUIRE(function);
    const auto& block = shapes[random() % shapes.size()];
    const runtime::KernelFacts* facts = nullptr;
    if (function->kernel().facts(facts) != runtime::Status::success ||
        block[0] * block[1] * block[2] > facts->max_threads)
        return;
    runtime::KernelCode code;
    const bool small = random() % 2, fibers = random() % 8 == 0, late = random() % 4 == 0;
    const runtime::Status status =
        function->kernel().code({block, {1, 1, 1}}, small, fibers, late, code);
    if (status == runtime::Status::success) {
        ++tally.translated;
        return;
    }
    ++tally.refused;
    INFO(runtime::error_detail());
    // The compiler being "not found" is what an exception of no known kind becomes: a bug.
    const bool known =
        status == runtime::Status::not_supported || status == runtime::Status::invalid_ptx;
    tally.surprises += !known || runtime::error_detail().empty();
    CHECK(known);
    CHECK_FALSE(runtime::error_detail().empty());
}

void try_input(const std::string& text, test::Random& random, Tally& tally) {
    alarm(seconds_per_input); // its signal ends the process: a hang is a failure
    ++tally.inputs;
    CUmodule module = nullptr;
    char error[4096], info[256];
    std::memset(error, 'x', sizeof error);
    unsigned options[] = {5, 6, 3, 4};
    void* values[] = {error, reinterpret_cast<void*>(sizeof error), info,
                      reinterpret_cast<void*>(sizeof info)};
    const CUresult result = cuModuleLoadDataEx(&module, text.c_str(), 4, options, values);
    CHECK(std::memchr(error, 0, sizeof error) != nullptr);
    if (result != 0) {
        CHECK((result == 200 || result == 218 || result == 222 || result == 2));
        CHECK((result == 2 || std::strlen(error) > 0));
        alarm(0);
        return;
    }
    ++tally.loaded;
    std::array<CUfunction, 8> functions{};
    unsigned count = 0;
    REQUIRE(cuModuleGetFunctionCount(&count, module) == 0);
    REQUIRE(cuModuleEnumerateFunctions(functions.data(), functions.size(), module) == 0);
    for (unsigned i = 0; i < std::min<std::size_t>(count, functions.size()); ++i) {
        const char* name = nullptr;
        CHECK(cuFuncGetName(&name, functions[i]) == 0);
        CUfunction found = nullptr;
        CHECK(cuModuleGetFunction(&found, module, name) == 0);
        for (int attribute = 0; attribute < 16; ++attribute) {
            int value = 0;
            CHECK(cuFuncGetAttribute(&value, attribute, functions[i]) == 0);
        }
        translate(functions[i], random, tally);
    }
    CHECK(cuModuleUnload(module) == 0);
    alarm(0);
}

std::vector<test::TextFile> bases() {
    std::vector<test::TextFile> files = test::ptx_files(PTARMIGAN_PTX_DIR);
    for (test::TextFile& file : test::ptx_files(PTARMIGAN_BENCH_DIR))
        files.push_back(std::move(file));
    return files;
}

void report(const Tally& tally) {
    std::printf("%u inputs: %u loaded, %u kernels translated, %u refused\n", tally.inputs,
                tally.loaded, tally.translated, tally.refused);
}

} // namespace

TEST_CASE("translate: mutated programs") {
    driver_test::context();
    test::Random random(20261121);
    Tally tally;
    for (const test::TextFile& file : bases()) {
        if (file.text.size() > 20000)
            continue; // long ones take the long way in the campaign
        for (int round = 0; round < 6; ++round) {
            INFO(file.name << " round " << round);
            try_input(test::mutate(file.text, random), random, tally);
        }
    }
    report(tally);
    CHECK(tally.translated > 0);
}

TEST_CASE("translate: malformed files are errors of the driver") {
    driver_test::context();
    test::Random random(1);
    Tally tally;
    for (const test::TextFile& file : test::ptx_files(PTARMIGAN_REJECT_DIR)) {
        INFO(file.name);
        try_input(file.text, random, tally);
    }
    CHECK(tally.loaded == 0);
}

// As many as asked for: `--rng-seed N` chooses another set; the input at hand is kept in mutant.ptx.
TEST_CASE("campaign: mutated programs", "[.campaign]") {
    driver_test::context();
    test::Random random(Catch::rngSeed());
    Tally tally;
    const std::vector<test::TextFile> valid = bases(), bad = test::ptx_files(PTARMIGAN_REJECT_DIR);
    for (int round = 0; round < 2000; ++round) {
        const auto& files = random() % 16 == 0 && !bad.empty() ? bad : valid;
        const test::TextFile& file = files[random() % files.size()];
        const std::string mutant = test::mutate(file.text, random);
        std::ofstream("mutant.ptx") << mutant << "\n";
        INFO(file.name << " round " << round);
        const unsigned surprises = tally.surprises;
        try_input(mutant, random, tally);
        if (tally.surprises != surprises)
            std::ofstream("surprise_" + std::to_string(round) + ".ptx") << mutant << "\n";
    }
    report(tally);
}

TEST_CASE("translate: sizes that nothing can hold are refused") {
    driver_test::context();
    test::Random random(1);
    Tally tally;
    const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";
    const std::string body = "{ .reg .b32 %r<4>; mov.u32 %r1, 0; BODY ret; }\n";
    auto in_body = [&](const std::string& text) {
        std::string whole = head + ".visible .entry k(.param .u64 p)\n" + body;
        return whole.replace(whole.find("BODY"), 4, text);
    };
    for (const char* bytes : {"1048576", "1073741824", "4294967296", "4294967297", "1099511627776",
                              "9223372036854775807", "18446744073709551615"}) {
        const std::string array = std::string("[") + bytes + "]";
        INFO(bytes);
        try_input(in_body(".shared .align 4 .b8 s" + array + "; ld.shared.u32 %r2, [s];"), random,
                  tally);
        try_input(in_body(".local .align 4 .b8 l" + array + "; st.local.u32 [l], %r1;"), random,
                  tally);
        try_input(head + ".global .b8 g" + array + ";\n.visible .entry k() { ret; }\n", random,
                  tally);
        try_input(head + ".const .b8 c" + array + ";\n.visible .entry k() { ret; }\n", random,
                  tally);
        try_input(head + ".shared .b8 s" + array + ";\n.visible .entry k() { ret; }\n", random,
                  tally);
        try_input(head + ".visible .entry k(.param .b8 q" + array + ") { ret; }\n", random, tally);
        try_input(head + ".func f(.param .b8 q" + array + ") { ret; }\n", random, tally);
    }
    report(tally);
}

TEST_CASE("translate: offsets at both ends of the address space") {
    driver_test::context();
    test::Random random(1);
    Tally tally;
    try_input(R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .f32 %f<4>; .reg .b64 %rd1;
    ld.param.u64 %rd1, [p];
    ld.global.f32 %f1, [%rd1];
    ld.global.f32 %f2, [%rd1+-9223372036854775808];
    ld.global.f32 %f3, [%rd1+9223372036854775807];
    add.f32 %f1, %f1, %f2;
    add.f32 %f1, %f1, %f3;
    st.global.f32 [%rd1], %f1;
    ret;
}
)",
              random, tally);
    CHECK(tally.loaded == 1);
}
