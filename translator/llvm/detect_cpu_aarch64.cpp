// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/detect_cpu.h"

#include "translator/llvm/sve.h"

#include <string>
#include <sys/auxv.h>
#include <sys/prctl.h>

namespace ptarmigan::translator {
namespace {

struct Feature {
    const char* name;          ///< LLVM's
    unsigned long first_word;  ///< bits of AT_HWCAP that must all be there, fixed by the Linux ABI
    unsigned long second_word; ///< likewise of AT_HWCAP2
};

constexpr unsigned long bit(unsigned number) {
    return 1ul << number;
}

const Feature features[] = {
    {"aes", bit(3) | bit(4), 0},
    {"sha2", bit(5) | bit(6), 0},
    {"crc", bit(7), 0},
    {"lse", bit(8), 0}, // without it atomics are loops of exclusive loads and stores
    {"fullfp16", bit(9) | bit(10), 0},
    {"rdm", bit(12), 0},
    {"jsconv", bit(13), 0},
    {"complxnum", bit(14), 0},
    {"rcpc", bit(15), 0},
    {"sha3", bit(17) | bit(21), 0},
    {"dotprod", bit(20), 0},
    {"fp16fml", bit(23), 0},
    {"rcpc-immo", bit(26), 0},
    {"fptoint", 0, bit(8)},
    {"i8mm", 0, bit(13)},
};

/// Of SVE's vectors in this thread, and in those that it starts; 0 where there is no SVE.
unsigned vector_bits() {
    if (!(getauxval(AT_HWCAP) & bit(22))) return 0;
    const int length = prctl(PR_SVE_GET_VL); // bytes in the lower half
    return length < 0 ? 0 : static_cast<unsigned>(length & 0xffff) * 8;
}

} // namespace

TargetCpu detect_cpu() {
    const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    TargetCpu target;
    target.architecture = TargetCpu::Architecture::aarch64;
    target.cpu = "neoverse-n1";
    for (const Feature& feature : features) {
        const bool there =
            (first & feature.first_word) == feature.first_word && (second & feature.second_word) == feature.second_word;
        if (!target.features.empty()) target.features += ',';
        target.features += there ? '+' : '-';
        target.features += feature.name;
    }
    if (const char* cpu = sve_cpu(vector_bits())) {
        target.cpu = cpu;
        target.features += ",+sve,-lse2";
    }
    target.features += ",-bf16"; // as AVX512_BF16 on x86: narrowing a bfloat that was widened may change its NaN
    return target;
}

std::string describe_vectors(const TargetCpu& target) {
    if (const unsigned bits = sve_bits(target)) return "SVE of " + std::to_string(bits) + " bits";
    const unsigned bits = vector_bits();
    return bits == 0 ? "NEON" : "NEON; SVE of " + std::to_string(bits) + " bits is not used";
}

} // namespace ptarmigan::translator
