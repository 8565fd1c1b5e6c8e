// SPDX-License-Identifier: Apache-2.0
// The CPU to compile for. No LLVM here: the runtime needs the target's key on the warm path.
#include "translator/compile.h"

#include "translator/llvm/detect_cpu.h"
#include "translator/llvm/sve.h"

#include <algorithm>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>

namespace ptarmigan::translator {
namespace {

/// What LLVM's x86-64-v3 consists of beyond x86-64 (the psABI's list, as far as code is made of it).
constexpr const char* level_3[] = {"sse4.2", "popcnt", "movbe", "lzcnt", "bmi", "bmi2", "f16c", "fma", "avx", "avx2"};
/// The psABI's x86-64-v4 adds these.
constexpr const char* level_4[] = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"};

/// What the oldest CPUs with AVX512-FP16 have beyond level 3; bfloats as in detect_cpu().
constexpr const char* sapphire_rapids =
    "+avx512f,+avx512cd,+avx512bw,+avx512dq,+avx512vl,+gfni,+vaes,+vpclmulqdq,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vnni,+avx512bitalg,+avx512vpopcntdq,"
    "+avx512fp16,-avx512bf16";

/// What code for LLVM's neoverse-n1, our aarch64, is made of beyond Armv8.0: as detect_cpu() names it.
constexpr const char* neoverse_n1[] = {"aes", "sha2", "crc", "lse", "fullfp16", "rdm", "rcpc", "dotprod"};

/// CPUs with longer vectors than NEON's, and what they have beyond our aarch64, of what LLVM's names for them stand
/// for.
struct SveCpu {
    const char* name;
    unsigned bits;
    const char* features;
};
constexpr SveCpu sve_cpus[] = {
    // lse2 is not among AT_HWCAP's bits.
    {"neoverse-v1", 256, "+sve,+fp16fml,+i8mm,+jsconv,+complxnum,+sha3,+rcpc-immo,-lse2,-bf16"},
    {"a64fx", 512, "+sve,+complxnum,-bf16"},
};

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
    if (target.key() == host.key()) return true;
    if (sve_bits(target) != 0 && sve_bits(target) != sve_bits(host)) return false;
    if (target.architecture == TargetCpu::Architecture::aarch64)
        return has_all(host, neoverse_n1) && has_named(host, target);
    return has_all(host, level_3) && (!target.avx512 || has_all(host, level_4)) && has_named(host, target);
}

unsigned sve_bits(const TargetCpu& target) {
    if (target.architecture != TargetCpu::Architecture::aarch64 || !has(target, "sve")) return 0;
    for (const SveCpu& cpu : sve_cpus)
        if (target.cpu == cpu.name) return cpu.bits;
    return 0;
}

const char* sve_cpu(unsigned bits) {
    for (const SveCpu& cpu : sve_cpus)
        if (cpu.bits == bits) return cpu.name;
    return nullptr;
}

TargetCpu host_target() {
    static const auto& target = *new TargetCpu(detect_cpu()); // never destroyed: kernels may be compiled at exit
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
    for (const SveCpu& cpu : sve_cpus) {
        if (name != cpu.name) continue;
        target.architecture = TargetCpu::Architecture::aarch64;
        target.cpu = cpu.name;
        target.features = cpu.features;
        return target;
    }
    throw std::invalid_argument("unknown target '" + name +
                                "' (host, x86-64-v3, x86-64-v4, sapphirerapids, aarch64, neoverse-v1, a64fx)");
}

} // namespace ptarmigan::translator
