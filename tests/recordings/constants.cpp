// SPDX-License-Identifier: Apache-2.0
// Constants as written, in every place that takes one: what bits an operand, an element of a vector and a variable get (manual 4.5).
//   constants LIBCUDA --record > constants_h100.txt; constants LIBCUDA RECORDING
// A line of the recording: the place with the constant, then `refused` or the words that the kernel stored. A constant that made the
// driver's compiler crash has no line (580.159: those of more than 32 bits in some places), so a place is recorded by a process of its own.
#include "tests/recordings/driver.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

using recordings::Address;
using recordings::Driver;

const char* const constants[] = {
    "7",    "-7",    "7U",         "0xffffffffffffffff", "0x123456789abcdef0", "5 - 9",      "1.1",        "-1.1",
    "1e9",  "3.0",   "0f3f8ccccd", "0fbf8ccccd",         "0d3ff199999999999a", "0d7ff0000000000001",       "0f7f800001",
    "-0f3f8ccccd",   "-0d3ff199999999999a",              "1.1 + 1.1",          "!0",         "~0",         "(3 > 2) ? 4 : 5"};

/// `$` is the constant. %rd1 holds the address of the result; %r1, %h1, %c1, %rd3, %f1, %d1 values that are not constant.
const char* const places[] = {
    "st.global.b8 [%rd1], $;", "st.global.u8 [%rd1], $;", "st.global.s16 [%rd1], $;", "st.global.b16 [%rd1], $;",
    "st.global.b32 [%rd1], $;", "st.global.u32 [%rd1], $;", "st.global.s32 [%rd1], $;", "st.global.b64 [%rd1], $;",
    "st.global.u64 [%rd1], $;", "st.global.s64 [%rd1], $;", "st.global.f32 [%rd1], $;", "st.global.f64 [%rd1], $;",
    "st.global.v2.b8 [%rd1], {$, %c1};", "st.global.v2.u8 [%rd1], {$, %h1};", "st.global.v2.s8 [%rd1], {$, %h1};",
    "st.global.v2.b16 [%rd1], {$, %h1};", "st.global.v2.u16 [%rd1], {$, %h1};", "st.global.v2.s16 [%rd1], {$, %h1};",
    "st.global.v2.b32 [%rd1], {$, %r1};", "st.global.v2.u32 [%rd1], {$, %r1};", "st.global.v2.s32 [%rd1], {$, %r1};",
    "st.global.v2.b64 [%rd1], {$, %rd3};", "st.global.v2.u64 [%rd1], {$, %rd3};", "st.global.v2.s64 [%rd1], {$, %rd3};",
    "st.global.v2.f32 [%rd1], {$, %f1};", "st.global.v2.f64 [%rd1], {$, %d1};", "st.global.v4.f32 [%rd1], {%f1, $, %f1, $};",
    "st.global.v4.b32 [%rd1], {%r1, $, %r1, $};", "st.global.v4.u8 [%rd1], {%h1, $, %h1, $};", "st.global.v2.f32 [%rd1], {$, $};",
    "mov.b32 %r2, {$, %h1}; st.global.b32 [%rd1], %r2;", "mov.b32 %r2, {%c1, $, %c1, $}; st.global.b32 [%rd1], %r2;",
    "mov.b16 %h2, {$, %c1}; st.global.b16 [%rd1], %h2;", "mov.b64 %rd4, {%r1, $}; st.global.b64 [%rd1], %rd4;",
    "mov.b64 %rd4, {%h1, $, %h1, $}; st.global.b64 [%rd1], %rd4;", "mov.b128 %q1, {%rd3, $}; st.global.b128 [%rd1], %q1;",
    "mov.b16 %h2, $; st.global.b16 [%rd1], %h2;", "mov.u16 %h2, $; st.global.b16 [%rd1], %h2;", "mov.s16 %h2, $; st.global.b16 [%rd1], %h2;",
    "mov.b32 %r2, $; st.global.b32 [%rd1], %r2;", "mov.u32 %r2, $; st.global.b32 [%rd1], %r2;", "mov.s32 %r2, $; st.global.b32 [%rd1], %r2;",
    "mov.b64 %rd4, $; st.global.b64 [%rd1], %rd4;", "mov.u64 %rd4, $; st.global.b64 [%rd1], %rd4;", "mov.s64 %rd4, $; st.global.b64 [%rd1], %rd4;",
    "mov.f32 %f2, $; st.global.f32 [%rd1], %f2;", "mov.f64 %d2, $; st.global.f64 [%rd1], %d2;",
    "mov.pred %p1, $; selp.b32 %r2, 1, 2, %p1; st.global.b32 [%rd1], %r2;", "selp.b32 %r2, $, %r1, %p2; st.global.b32 [%rd1], %r2;",
    "selp.f32 %f2, $, %f1, %p2; st.global.f32 [%rd1], %f2;", "selp.f64 %d2, $, %d1, %p2; st.global.f64 [%rd1], %d2;",
    "add.f32 %f2, %f1, $; st.global.f32 [%rd1], %f2;", "add.f64 %d2, %d1, $; st.global.f64 [%rd1], %d2;",
    "fma.rn.f64 %d2, %d1, $, %d1; st.global.f64 [%rd1], %d2;", "fma.rn.f32 %f2, $, %f1, $; st.global.f32 [%rd1], %f2;",
    "add.s32 %r2, %r1, $; st.global.b32 [%rd1], %r2;", "add.u64 %rd4, %rd3, $; st.global.b64 [%rd1], %rd4;",
    "and.b32 %r2, %r1, $; st.global.b32 [%rd1], %r2;", "and.b64 %rd4, %rd3, $; st.global.b64 [%rd1], %rd4;",
    "shl.b32 %r2, %r1, $; st.global.b32 [%rd1], %r2;", "mul.wide.s16 %r2, %h1, $; st.global.b32 [%rd1], %r2;",
    "mad.wide.s32 %rd4, %r1, $, %rd3; st.global.b64 [%rd1], %rd4;", "cvt.f64.f32 %d2, $; st.global.f64 [%rd1], %d2;",
    "cvt.f32.f64 %f2, $; st.global.f32 [%rd1], %f2;", "cvt.rn.f32.s32 %f2, $; st.global.f32 [%rd1], %f2;",
    "cvt.rzi.s32.f32 %r2, $; st.global.b32 [%rd1], %r2;", "cvt.u64.u8 %rd4, $; st.global.b64 [%rd1], %rd4;",
    "cvt.s64.s16 %rd4, $; st.global.b64 [%rd1], %rd4;",
    "setp.lt.f32 %p1, %f1, $; selp.b32 %r2, 1, 2, %p1; st.global.b32 [%rd1], %r2;",
    "setp.lt.f64 %p1, %d1, $; selp.b32 %r2, 1, 2, %p1; st.global.b32 [%rd1], %r2;",
    "red.global.add.f32 [%rd1], $;", "red.global.add.f64 [%rd1], $;", "red.global.add.u32 [%rd1], $;", "red.global.add.u64 [%rd1], $;",
    "red.global.v2.f32.add [%rd1], {$, %f1};", "red.global.v4.f32.add [%rd1], {%f1, $, %f1, $};",
    "red.global.v2.f16.noftz.add [%rd1], {$, %h1};", "red.global.v2.bf16.noftz.add [%rd1], {$, %h1};",
    "prmt.b32 %r2, %r1, $, 0x5410; st.global.b32 [%rd1], %r2;", "vadd.s32.s32.s32 %r2, %r1, $; st.global.b32 [%rd1], %r2;",
    "red.global.v2.f16x2.noftz.add [%rd1], {$, %r1};", "atom.global.v2.f32.add {%f2, %f3}, [%rd1], {$, %f1};",
    "atom.global.exch.b32 %r2, [%rd1], $;", "atom.global.exch.b64 %rd4, [%rd1], $;", "atom.global.cas.b32 %r2, [%rd1], 0, $;",
   
    "call (%r2), same32, ($); st.global.b32 [%rd1], %r2;", "call (%f2), same_f32, ($); st.global.f32 [%rd1], %f2;",
    "call (%d2), same_f64, ($); st.global.f64 [%rd1], %d2;", "call (%rd4), same64, ($); st.global.b64 [%rd1], %rd4;"};

const char* const variable_types[] = {"b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f16", "f32", "f64"};

std::string replaced(std::string text, const std::string& constant) {
    for (std::size_t at = 0; (at = text.find('$', at)) != std::string::npos; at += constant.size()) text.replace(at, 1, constant);
    return text;
}

std::string module_of(const std::string& variable, const std::string& body) {
    return ".version 8.6\n.target sm_90\n.address_size 64\n" + variable +
           ".func (.reg .b32 %r) same32(.reg .b32 %a) { mov.b32 %r, %a; ret; }\n"
           ".func (.reg .b64 %r) same64(.reg .b64 %a) { mov.b64 %r, %a; ret; }\n"
           ".func (.reg .f32 %r) same_f32(.reg .f32 %a) { mov.f32 %r, %a; ret; }\n"
           ".func (.reg .f64 %r) same_f64(.reg .f64 %a) { mov.f64 %r, %a; ret; }\n"
           ".visible .entry kernel(.param .u64 result)\n{\n    .reg .b8 %c<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %rd<6>;\n"
           "    .reg .b128 %q<2>; .reg .f32 %f<4>; .reg .f64 %d<4>; .reg .pred %p<3>;\n    ld.param.u64 %rd1, [result];\n"
           "    ld.global.b8 %c1, [%rd1+64]; ld.global.b16 %h1, [%rd1+64]; ld.global.b32 %r1, [%rd1+64]; ld.global.b64 %rd3, [%rd1+64];\n"
           "    ld.global.f32 %f1, [%rd1+72]; ld.global.f64 %d1, [%rd1+80]; setp.ne.u32 %p2, %r1, 0;\n    " +
           body + "\n    ret;\n}\n";
}

class Runner {
public:
    explicit Runner(const char* library) : driver_(library), memory_(driver_.allocate(sizeof initial_)) {
        const std::uint64_t bits = 0x1122334455667788;
        const float single = 2.5f;
        const double real = 3.25;
        std::memcpy(initial_ + 64, &bits, 8);
        std::memcpy(initial_ + 72, &single, 4);
        std::memcpy(initial_ + 80, &real, 8);
    }

    std::string run(const std::string& text) {
        void* module = nullptr;
        try {
            module = driver_.load(text);
        } catch (const std::exception&) {
            return " refused";
        }
        driver_.upload(memory_, initial_, sizeof initial_);
        Address address = memory_;
        void* parameters[] = {&address};
        driver_.launch(module, "kernel", 1, 1, 1, parameters);
        driver_.call("cuCtxSynchronize");
        std::uint32_t words[4];
        driver_.download(words, memory_, sizeof words);
        driver_.unload(module);
        std::string line;
        for (const std::uint32_t word : words) {
            char number[16];
            std::snprintf(number, sizeof number, " %08x", word);
            line += number;
        }
        return line;
    }

private:
    Driver driver_;
    Address memory_;
    unsigned char initial_[128] = {};
};

struct Case {
    std::string name, text;
};

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (const char* place : places)
        for (const char* constant : constants) {
            const std::string body = replaced(place, constant);
            cases.push_back({body, module_of("", body)});
        }
    for (const char* type : variable_types)
        for (const char* constant : constants) {
            const std::string variable = ".global .align 16 ." + std::string(type) + " g[16] = {" + constant + ", " + constant + "};";
            cases.push_back({variable, module_of(variable + "\n", "ld.global.v2.b64 {%rd3, %rd4}, [g]; st.global.v2.b64 [%rd1], {%rd3, %rd4};")});
        }
    return cases;
}

/// Each process goes on behind the case in which the one before it died.
void record(const char* library) {
    const std::vector<Case> cases = all_cases();
    auto* next = static_cast<std::size_t*>(mmap(nullptr, sizeof(std::size_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    while (*next < cases.size()) {
        const pid_t child = fork();
        if (child == 0) {
            Runner runner(library);
            while (*next < cases.size()) {
                const Case& one = cases[(*next)++];
                const std::string result = runner.run(one.text);
                std::printf("%s ->%s\n", one.name.c_str(), result.c_str());
                std::fflush(stdout);
            }
            _exit(0);
        }
        waitpid(child, nullptr, 0);
    }
}

int compare(const char* library, const char* recording) {
    std::map<std::string, std::string> recorded;
    std::ifstream file(recording);
    for (std::string line; std::getline(file, line);)
        if (const std::size_t arrow = line.find(" ->"); arrow != std::string::npos) recorded[line.substr(0, arrow)] = line.substr(arrow + 3);
    unsigned compared = 0, failed = 0;
    Runner runner(library);
    for (const Case& one : all_cases()) {
        const auto expected = recorded.find(one.name);
        if (expected == recorded.end()) continue;
        ++compared;
        const std::string result = runner.run(one.text);
        if (expected->second == result) continue;
        ++failed;
        std::printf("%s ->%s, recorded%s\n", one.name.c_str(), result.c_str(), expected->second.c_str());
    }
    std::printf("%u constants compared, %u differ\n", compared, failed);
    return failed != 0 || compared != recorded.size();
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA RECORDING | --record\n", argv[0]);
        return 2;
    }
    try {
        if (std::strcmp(argv[2], "--record") != 0) return compare(argv[1], argv[2]);
        record(argv[1]);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
