// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/detect_cpu.h"

#include <xbyak/xbyak_util.h>

namespace ptarmigan::translator {
namespace {

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

} // namespace

TargetCpu detect_cpu() {
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

std::string describe_vectors(const TargetCpu& target) {
    return target.avx512 ? "AVX-512" : "";
}

} // namespace ptarmigan::translator
