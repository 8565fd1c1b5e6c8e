// SPDX-License-Identifier: Apache-2.0
// What additions to memory make of NaNs: a multiprocessor quiets signalling ones in shared memory, the L2 cache keeps those of f64.
//   signalling_nans LIBCUDA --record > signalling_nans_h100.txt; signalling_nans LIBCUDA RECORDING
// Where a multiprocessor adds two NaNs, which one is left depends on registers, and no line says so.
#include "tests/recordings/driver.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace {

using recordings::Address;

struct Addition {
    const char* name;
    const char* code; ///< %d1, %f1: what is added; %rd1: where; %d2, %f2: what stands there, for those that add elsewhere
    bool is_double = true, by_cache = true;
};

const Addition additions[] = {
    {"atom.global.add.f64", "atom.global.add.f64 %d0, [%rd1], %d1;"},
    {"red.global.add.f64", "red.global.add.f64 [%rd1], %d1;"},
    {"atom.add.f64", "atom.add.f64 %d0, [%rd1], %d1;"},
    {"atom.acq_rel.gpu.global.add.f64", "atom.acq_rel.gpu.global.add.f64 %d0, [%rd1], %d1;"},
    {"atom.global.sys.add.f64", "atom.global.sys.add.f64 %d0, [%rd1], %d1;"},
    {"cp.reduce.async.bulk.global.add.f64",
     "st.shared.v2.f64 [s], {%d1, %d1}; fence.proxy.async; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f64 [%rd1], [s], 16; "
     "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"},
    {"atom.shared.add.f64", "st.shared.f64 [s], %d2; atom.shared.add.f64 %d0, [s], %d1; ld.shared.f64 %d0, [s]; st.global.f64 [%rd1], %d0;",
     true, false},
    {"atom.shared::cluster.add.f64",
     "st.shared.f64 [s], %d2; mapa.shared::cluster.u32 %r1, s, 0; atom.shared::cluster.add.f64 %d0, [%r1], %d1; ld.shared.f64 %d0, [s]; "
     "st.global.f64 [%rd1], %d0;",
     true, false},
    {"red.add.f64 of shared memory",
     "st.shared.f64 [s], %d2; cvta.shared.u64 %rd2, s; red.add.f64 [%rd2], %d1; ld.shared.f64 %d0, [s]; st.global.f64 [%rd1], %d0;", true,
     false},
    {"atom.global.add.f32", "atom.global.add.f32 %f0, [%rd1], %f1;", false},
    {"red.global.add.f32", "red.global.add.f32 [%rd1], %f1;", false},
    {"cp.reduce.async.bulk.global.add.f32",
     "st.shared.v4.f32 [s], {%f1, %f1, %f1, %f1}; fence.proxy.async; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], "
     "[s], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
     false},
    {"atom.shared.add.f32", "st.shared.f32 [s], %f2; atom.shared.add.f32 %f0, [s], %f1; ld.shared.f32 %f0, [s]; st.global.f32 [%rd1], %f0;",
     false, false}};

const std::uint64_t doubles[] = {0,
                                 0x8000000000000000,
                                 0x3ff0000000000000,
                                 0x7ff0000000000001,
                                 0xfff0000000000123,
                                 0x7ff8000000000005,
                                 0xfff8000000000077,
                                 0x7ff0000000000000,
                                 0xfff0000000000000,
                                 0x7fffffffffffffff,
                                 0x7ff7ffffffffffff};
const std::uint64_t singles[] = {0,          0x80000000, 0x3f800000, 0x7f800001, 0xff800123, 0x7fc00005,
                                 0xffc00077, 0x7f800000, 0xff800000, 0x7fffffff, 0xffbfffff};

bool is_nan(std::uint64_t bits, bool is_double) {
    double value = 0;
    float single = 0;
    std::memcpy(&value, &bits, sizeof value);
    std::memcpy(&single, &bits, sizeof single);
    return is_double ? std::isnan(value) : std::isnan(single);
}

std::string module_of(const Addition& addition) {
    return std::string(".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry kernel(.param .u64 p)\n{\n"
                       "    .shared .align 16 .b8 s[16]; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f64 %d<4>; .reg .f32 %f<4>;\n"
                       "    ld.param.u64 %rd1, [p]; ld.global.f64 %d1, [%rd1+16]; ld.global.f64 %d2, [%rd1];\n"
                       "    ld.global.f32 %f1, [%rd1+16]; ld.global.f32 %f2, [%rd1];\n    ") +
           addition.code + "\n    ret;\n}\n";
}

std::string run_all(const char* library) {
    recordings::Driver driver(library);
    Address memory = driver.allocate(256);
    std::string text;
    for (const Addition& addition : additions) {
        void* const module = driver.load(module_of(addition));
        const auto& values = addition.is_double ? doubles : singles;
        for (const std::uint64_t there : values)
            for (const std::uint64_t added : values) {
                if (!addition.by_cache && is_nan(there, addition.is_double) && is_nan(added, addition.is_double)) continue;
                std::uint64_t words[4] = {there, 0, added, 0};
                driver.upload(memory, words, sizeof words);
                void* parameters[] = {&memory};
                driver.launch(module, "kernel", 1, 1, 1, parameters);
                driver.call("cuCtxSynchronize");
                driver.download(words, memory, sizeof words);
                char line[160];
                std::snprintf(line, sizeof line, "%s: %llx + %llx -> %llx\n", addition.name, static_cast<unsigned long long>(there),
                              static_cast<unsigned long long>(added), static_cast<unsigned long long>(words[0]));
                text += line;
            }
        driver.unload(module);
    }
    return text;
}

int compare(const std::string& text, const char* path) {
    std::istringstream given(text);
    std::ifstream recorded(path);
    unsigned compared = 0, failed = 0;
    for (std::string line, expected; std::getline(given, line); ++compared) {
        std::getline(recorded, expected);
        if (line == expected) continue;
        ++failed;
        std::printf("%s, recorded %s\n", line.c_str(), expected.c_str());
    }
    std::string more;
    const bool is_longer = static_cast<bool>(std::getline(recorded, more));
    std::printf("%u additions compared, %u differ\n", compared, failed);
    return failed != 0 || compared == 0 || is_longer;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA RECORDING | --record\n", argv[0]);
        return 2;
    }
    try {
        const std::string text = run_all(argv[1]);
        if (std::strcmp(argv[2], "--record") != 0) return compare(text, argv[2]);
        std::fputs(text.c_str(), stdout);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
