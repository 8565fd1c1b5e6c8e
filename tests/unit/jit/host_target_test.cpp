// SPDX-License-Identifier: Apache-2.0
// The host's features against what the compiler's own CPUID code says.
#include "translator/compile.h"

#include <catch2/catch.hpp>

using namespace ptarmigan::translator;

TEST_CASE("host target: named targets") {
    CHECK(named_target("host").key() == host_target().key());
    CHECK(named_target("x86-64-v4").avx512);
    CHECK_FALSE(named_target("x86-64-v3").avx512);
    CHECK(named_target("aarch64").architecture == TargetCpu::Architecture::aarch64);
    CHECK_THROWS_AS(named_target("vax"), std::invalid_argument);
    CHECK(named_target("x86-64-v3").key() != named_target("x86-64-v4").key());
}

TEST_CASE("host target: code for a level runs where all of its instructions are") {
    const TargetCpu v3 = named_target("x86-64-v3"), v4 = named_target("x86-64-v4"), arm = named_target("aarch64");
    TargetCpu host;
    host.features = "+sse3,+sse4.2,+popcnt,+movbe,+lzcnt,+bmi,+bmi2,+f16c,+fma,+avx,+avx2,-avx512f";
    CHECK(can_run(host, v3));
    CHECK_FALSE(can_run(host, v4));
    CHECK_FALSE(can_run(host, arm));
    CHECK(can_run(arm, arm));
    const TargetCpu sve = named_target("neoverse-v1"), longer = named_target("a64fx");
    CHECK(sve.key() != arm.key());
    CHECK(can_run(sve, sve));
    CHECK_FALSE(can_run(arm, sve));
    CHECK_FALSE(can_run(sve, longer));
    CHECK_FALSE(can_run(longer, sve));
    host.features = "+sse3,+sse4.2,+popcnt,+movbe,+lzcnt,+bmi,+bmi2,+f16c,+fma,+avx,-avx2";
    CHECK_FALSE(can_run(host, v3));
    CHECK(can_run(host, host));
    host.features += ",+avx2,+avx512f,+avx512cd,+avx512bw,+avx512dq,+avx512vl";
    CHECK(can_run(host, v4));
    const TargetCpu halves = named_target("sapphirerapids");
    CHECK(halves.avx512);
    CHECK_FALSE(can_run(host, halves));
    host.features += ",+gfni,+vaes,+vpclmulqdq,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vnni,+avx512bitalg,+avx512vpopcntdq";
    CHECK_FALSE(can_run(host, halves));
    host.features += ",+avx512fp16";
    CHECK(can_run(host, halves));
}

#if defined(__x86_64__)
TEST_CASE("host target: features follow CPUID") {
    const std::string features = "," + host_target().features + ",";
    const auto agrees = [&](const char* name, bool there) {
        INFO(name);
        CHECK((features.find(std::string(",+") + name + ",") != std::string::npos) == there);
        CHECK((features.find(std::string(",-") + name + ",") != std::string::npos) == !there);
    };
    agrees("avx2", __builtin_cpu_supports("avx2"));
    agrees("fma", __builtin_cpu_supports("fma"));
    agrees("bmi2", __builtin_cpu_supports("bmi2"));
    agrees("avx512f", __builtin_cpu_supports("avx512f"));
    agrees("avx512bw", __builtin_cpu_supports("avx512bw"));
    agrees("avx512vbmi2", __builtin_cpu_supports("avx512vbmi2"));
    CHECK(host_target().avx512 ==
          (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")));
}
#endif
