// SPDX-License-Identifier: Apache-2.0
// The CPU to compile for, by what CPUID and XCR0 (AArch64: the auxiliary vector) say. Never by model number: virtual
// machines report models whose features they lack. No LLVM here: the runtime needs the target's key on the warm path.
#include "translator/compile.h"

#include <algorithm>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>

#if defined(__x86_64__)
#include <xbyak/xbyak_util.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace ptarmigan::translator {
namespace {

#if defined(__x86_64__)

using Xbyak::util::Cpu;

struct Feature {
    const char* name; ///< LLVM's
    Cpu::Type bit;
};

// Everything that LLVM may choose an instruction by. Each one is written as + or -, so that the feature string
// is the whole truth and the CPU name only selects scheduling and tuning. 512-bit state that the system has not
// enabled in XCR0 counts as missing (xbyak checks).
const Feature features[] = {
    {"sse3", Cpu::tSSE3},
    {"ssse3", Cpu::tSSSE3},
    {"sse4.1", Cpu::tSSE41},
    {"sse4.2", Cpu::tSSE42},
    {"popcnt", Cpu::tPOPCNT},
    {"movbe", Cpu::tMOVBE},
    {"lzcnt", Cpu::tLZCNT},
    {"bmi", Cpu::tBMI1},
    {"bmi2", Cpu::tBMI2},
    {"adx", Cpu::tADX},
    {"aes", Cpu::tAESNI},
    {"pclmul", Cpu::tPCLMULQDQ},
    {"rdrnd", Cpu::tRDRAND},
    {"rdseed", Cpu::tRDSEED},
    {"sha", Cpu::tSHA},
    {"f16c", Cpu::tF16C},
    {"fma", Cpu::tFMA},
    {"avx", Cpu::tAVX},
    {"avx2", Cpu::tAVX2},
    {"gfni", Cpu::tGFNI},
    {"vaes", Cpu::tVAES},
    {"vpclmulqdq", Cpu::tVPCLMULQDQ},
    {"avxvnni", Cpu::tAVX_VNNI},
    {"avx512f", Cpu::tAVX512F},
    {"avx512cd", Cpu::tAVX512CD},
    {"avx512bw", Cpu::tAVX512BW},
    {"avx512dq", Cpu::tAVX512DQ},
    {"avx512vl", Cpu::tAVX512VL},
    {"avx512ifma", Cpu::tAVX512_IFMA},
    {"avx512vbmi", Cpu::tAVX512_VBMI},
    {"avx512vbmi2", Cpu::tAVX512_VBMI2},
    {"avx512vnni", Cpu::tAVX512_VNNI},
    {"avx512bitalg", Cpu::tAVX512_BITALG},
    {"avx512vpopcntdq", Cpu::tAVX512_VPOPCNTDQ},
    {"avx512fp16", Cpu::tAVX512_FP16},
    {"avx512vp2intersect", Cpu::tAVX512_VP2INTERSECT},
    {"amx-tile", Cpu::tAMX_TILE},
    {"amx-int8", Cpu::tAMX_INT8},
    {"amx-bf16", Cpu::tAMX_BF16},
};

// Newest first; the first whose bits are all there. AMD is told by its own instructions, not by vendor string.
const char* tuning_model(const Cpu& cpu) {
    const bool avx512 =
        cpu.has(Cpu::tAVX512F) && cpu.has(Cpu::tAVX512BW) && cpu.has(Cpu::tAVX512DQ) && cpu.has(Cpu::tAVX512VL);
    const bool amd = cpu.has(Cpu::tCLZERO);
    if (avx512 && amd) return cpu.has(Cpu::tAVX_VNNI) ? "znver5" : "znver4";
    if (avx512 && cpu.has(Cpu::tAVX512_FP16)) return "sapphirerapids";
    if (avx512 && cpu.has(Cpu::tAVX512_VBMI2)) return "icelake-server";
    if (avx512) return "x86-64-v4";
    if (cpu.has(Cpu::tAVX2) && cpu.has(Cpu::tFMA) && cpu.has(Cpu::tBMI2)) return amd ? "znver3" : "x86-64-v3";
    return cpu.has(Cpu::tSSE42) ? "x86-64-v2" : "x86-64";
}

TargetCpu detect() {
    const Cpu cpu;
    TargetCpu target;
    target.cpu = tuning_model(cpu);
    for (const Feature& feature : features) {
        if (!target.features.empty()) target.features += ',';
        target.features += cpu.has(feature.bit) ? '+' : '-';
        target.features += feature.name;
    }
    target.features += ",-sse4a"; // implied by AMD models, worth nothing here, unknown to xbyak
    // With it LLVM 19 widens single bfloats to choose between them and narrows with vcvtneps2bf16, which flushes
    // subnormals.
    target.features += ",-avx512bf16";
    target.avx512 =
        cpu.has(Cpu::tAVX512F) && cpu.has(Cpu::tAVX512BW) && cpu.has(Cpu::tAVX512DQ) && cpu.has(Cpu::tAVX512VL);
    return target;
}

#elif defined(__aarch64__)

TargetCpu detect() {
    // Bits of AT_HWCAP, fixed by the Linux ABI.
    constexpr unsigned long fphp = 1ul << 9, asimdhp = 1ul << 10, atomics = 1ul << 8, asimddp = 1ul << 20,
                            asimdrdm = 1ul << 12;
    const unsigned long bits = getauxval(AT_HWCAP);
    TargetCpu target;
    target.architecture = TargetCpu::Architecture::aarch64;
    target.cpu = "neoverse-n1";
    const auto add = [&](const char* name, unsigned long mask) {
        if (!target.features.empty()) target.features += ',';
        target.features += (bits & mask) == mask ? '+' : '-';
        target.features += name;
    };
    add("lse", atomics);
    add("fullfp16", fphp | asimdhp);
    add("dotprod", asimddp);
    add("rdm", asimdrdm);
    return target;
}

#endif

/// What LLVM's x86-64-v3 consists of beyond x86-64 (the psABI's list, as far as code is made of it).
constexpr const char* level_3[] = {"sse4.2", "popcnt", "movbe", "lzcnt", "bmi", "bmi2", "f16c", "fma", "avx", "avx2"};
/// The psABI's x86-64-v4 adds these.
constexpr const char* level_4[] = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"};

/// What the oldest CPUs with AVX512-FP16 have beyond level 3; bfloats as in detect().
constexpr const char* sapphire_rapids =
    "+avx512f,+avx512cd,+avx512bw,+avx512dq,+avx512vl,+gfni,+vaes,+vpclmulqdq,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vnni,+avx512bitalg,+avx512vpopcntdq,"
    "+avx512fp16,-avx512bf16";

bool has(const TargetCpu& host, const std::string& name) {
    return ("," + host.features + ",").find(",+" + name + ",") != std::string::npos;
}

bool has_all(const TargetCpu& host, std::span<const char* const> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return has(host, name); });
}

/// Everything that `target` names beyond its level.
bool has_named(const TargetCpu& host, const TargetCpu& target) {
    std::istringstream list(target.features);
    for (std::string feature; std::getline(list, feature, ',');)
        if (feature[0] == '+' && !has(host, feature.substr(1))) return false;
    return true;
}

} // namespace

bool can_run(const TargetCpu& host, const TargetCpu& target) {
    if (target.architecture != host.architecture) return false;
    if (target.key() == host.key() || target.architecture == TargetCpu::Architecture::aarch64) return true;
    return has_all(host, level_3) && (!target.avx512 || has_all(host, level_4)) && has_named(host, target);
}

TargetCpu host_target() {
    static const auto& target = *new TargetCpu(detect()); // never destroyed: kernels may be compiled at exit
    return target;
}

TargetCpu named_target(const std::string& name) {
    if (name == "host") return host_target();
    TargetCpu target;
    if (name == "x86-64-v3") {
        target.cpu = name;
        return target;
    }
    if (name == "x86-64-v4") {
        target.cpu = name;
        target.avx512 = true;
        return target;
    }
    if (name == "sapphirerapids") {
        target.cpu = name;
        target.features = sapphire_rapids;
        target.avx512 = true;
        return target;
    }
    if (name == "aarch64") {
        target.architecture = TargetCpu::Architecture::aarch64;
        target.cpu = "neoverse-n1";
        return target;
    }
    throw std::invalid_argument("unknown target '" + name + "' (host, x86-64-v3, x86-64-v4, sapphirerapids, aarch64)");
}

} // namespace ptarmigan::translator
