// SPDX-License-Identifier: Apache-2.0
// What approximate instructions cost: nanoseconds of processor time per 16 lanes of each, exact or fast as
// PTARMIGAN_APPROX says.
//   approximations LIBCUDA
// The figures of `ptarmigan isa` (tools/ptarmigan/approximations.def) are its output with PTARMIGAN_WORKERS=1.
#include "tests/recordings/driver.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using recordings::Driver;

struct Form {
    const char* statement; ///< without operands
    const char* type;      ///< of the register: b16, b32 or b64
    unsigned sources;
};

constexpr Form forms[] = {
    {"rcp.approx.f32", "b32", 1},       {"rcp.approx.ftz.f32", "b32", 1},  {"sqrt.approx.f32", "b32", 1},
    {"sqrt.approx.ftz.f32", "b32", 1},  {"rsqrt.approx.f32", "b32", 1},    {"rsqrt.approx.ftz.f32", "b32", 1},
    {"sin.approx.f32", "b32", 1},       {"sin.approx.ftz.f32", "b32", 1},  {"cos.approx.f32", "b32", 1},
    {"cos.approx.ftz.f32", "b32", 1},   {"lg2.approx.f32", "b32", 1},      {"lg2.approx.ftz.f32", "b32", 1},
    {"ex2.approx.f32", "b32", 1},       {"ex2.approx.ftz.f32", "b32", 1},  {"tanh.approx.f32", "b32", 1},
    {"div.approx.f32", "b32", 2},       {"div.approx.ftz.f32", "b32", 2},  {"div.full.f32", "b32", 2},
    {"div.full.ftz.f32", "b32", 2},     {"rcp.approx.ftz.f64", "b64", 1},  {"rsqrt.approx.f64", "b64", 1},
    {"rsqrt.approx.ftz.f64", "b64", 1}, {"tanh.approx.f16", "b16", 1},     {"tanh.approx.f16x2", "b32", 1},
    {"tanh.approx.bf16", "b16", 1},     {"tanh.approx.bf16x2", "b32", 1},  {"ex2.approx.f16", "b16", 1},
    {"ex2.approx.f16x2", "b32", 1},     {"ex2.approx.ftz.bf16", "b16", 1}, {"ex2.approx.ftz.bf16x2", "b32", 1},
};
constexpr unsigned threads = 256, values = 16384, rounds = 200;

/// A pass over `values` elements: loads, the statement if there is one, a store.
std::string kernel(const Form& form, const char* name, bool empty) {
    const std::string type = form.type, bytes = std::to_string(std::stoi(type.substr(1)) / 8);
    return std::string(".visible .entry ") + name +
           "(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %q<6>; .reg .b32 %r<6>; .reg ." + type +
           " %a, %b, %d;\nmov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r1, " + std::to_string(threads) +
           ", %r2; mul.wide.u32 %q1, %r3, " + bytes + ";\nld.param.u64 %q2, [in]; add.u64 %q2, %q2, %q1; ld.global." +
           type + " %a, [%q2]; ld.global." + type +
           " %b, [%q2+64];\nld.param.u64 %q3, [out]; add.u64 %q3, %q3, %q1;\n" +
           (empty ? "xor." + type + " %d, %a, %b;\n"
                  : form.statement + std::string(" %d, %a") + (form.sources == 2 ? ", %b" : "") + ";\n") +
           "st.global." + type + " [%q3], %d;\nret;\n}\n";
}

double processor_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

double fastest(Driver& driver, void* module, const char* name, void** arguments) {
    double best = 1e9;
    for (unsigned round = 0; round < rounds; ++round) {
        const double start = processor_seconds();
        driver.launch(module, name, values / threads, threads, 1, arguments);
        driver.call("cuCtxSynchronize");
        best = std::min(best, processor_seconds() - start);
    }
    return best;
}

} // namespace

int main(int argc, char** argv) try {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s LIBCUDA\n", argv[0]);
        return 2;
    }
    setenv("PTARMIGAN_TIER", "best", 0); // what is timed is good code
    Driver driver(argv[1]);
    recordings::Address in = driver.allocate(values * 8 + 64), out = driver.allocate(values * 8);
    for (const Form& form : forms) {
        // Values from 1 to 2, in whatever format.
        std::vector<unsigned char> data(values * 8 + 64);
        const std::string name = form.statement;
        for (std::size_t i = 0; i < data.size() / 8; ++i) {
            const std::uint64_t one =
                name.find("f64") != std::string::npos    ? 0x3ff0000000000000 + (i << 38)
                : name.find("bf16") != std::string::npos ? 0x3f803f803f803f80 + (i & 127) * 0x0001000100010001
                : name.find("f16") != std::string::npos  ? 0x3c003c003c003c00 + (i & 1023) * 0x0001000100010001
                                                         : 0x3f8000003f800000 + (i << 8) * 0x0000000100000001;
            std::copy_n(reinterpret_cast<const unsigned char*>(&one), 8, data.begin() + long(i * 8));
        }
        driver.upload(in, data.data(), data.size());
        void* module = driver.load(".version 9.0\n.target sm_90\n.address_size 64\n" + kernel(form, "full", false) +
                                   kernel(form, "empty", true));
        void* arguments[] = {&in, &out};
        const double seconds = fastest(driver, module, "full", arguments) - fastest(driver, module, "empty", arguments);
        std::printf("%-24s %6.2f\n", form.statement, seconds * 1e9 / (values / 16));
        driver.unload(module);
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
