// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/vector_code.h"

#include "runtime/tensor_core/dense_pair.h"
#include "runtime/tensor_core/vector_product.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

namespace ptarmigan::runtime::tensor_core {
namespace {

/// The CPU has tiles of bytes and bf16.
bool has_tiles() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    constexpr unsigned bf16 = 1u << 22, tile = 1u << 24, int8 = 1u << 25;
    return (d & (bf16 | tile | int8)) == (bf16 | tile | int8);
}

/// Linux lets a process use them when it asks, and wants larger stacks for signals then.
bool may_use_tiles() {
    constexpr long request_permission = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return has_tiles() && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

} // namespace

bool can_run_vectors(Code code) {
    static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                             __builtin_cpu_supports("f16c") && __builtin_cpu_supports("popcnt");
    static const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (code == Code::avx2) return avx2;
    if (code == Code::avx512) return avx512;
    if (code != Code::amx) return false;
    static const bool amx = avx512 && may_use_tiles();
    return amx;
}

Multiply vector_multiplier(Code code, const MatrixProduct& product, Accuracy accuracy) {
    static const bool vnni = __builtin_cpu_supports("avx512vnni"), bf16 = __builtin_cpu_supports("avx512bf16");
    Multiply found = nullptr;
    if (code == Code::avx512 && vnni && product.unit == Unit::integer) found = avx512_vnni_multiplier(product);
    if (code == Code::avx512 && bf16 && accuracy == Accuracy::fast) found = avx512_bf16_multiplier(product);
    if (code == Code::avx512 && !found) found = avx512_multiplier(product, accuracy);
    return found ? found : avx2_multiplier(product, accuracy);
}

MultiplyGroup vector_group_multiplier(Code code, const MatrixProduct& product, Accuracy accuracy) {
    static const bool vnni = __builtin_cpu_supports("avx512vnni");
    // CPUs with tiles have narrow units for pairs: a Xeon's groups take 1.3 times as long as with multiply-adds.
    static const bool bf16 = __builtin_cpu_supports("avx512bf16") && !has_tiles();
    if (code == Code::amx) {
        if (const MultiplyGroup tiles = amx_group_multiplier(product, accuracy)) return tiles;
        code = Code::avx512;
    }
    MultiplyGroup found = nullptr;
    if (code == Code::avx512 && vnni && product.unit == Unit::integer) found = avx512_vnni_group_multiplier(product);
    if (code == Code::avx512 && bf16 && accuracy == Accuracy::fast) found = avx512_bf16_group_multiplier(product);
    if (code == Code::avx512 && !found) found = avx512_group_multiplier(product, accuracy);
    return found ? found : avx2_group_multiplier(product, accuracy);
}

bool has_tile_code(const MatrixProduct& product, Accuracy accuracy) {
    return amx_group_multiplier(product, accuracy) != nullptr;
}

FloatMode::FloatMode(Rounding rounding) : before_(_mm_getcsr()) {
    constexpr unsigned masked = 0x1f80, modes[] = {0x0000, 0x6000, 0x2000, 0x4000};
    _mm_setcsr(masked | modes[static_cast<unsigned>(rounding)]);
}
FloatMode::~FloatMode() {
    _mm_setcsr(before_);
}

} // namespace ptarmigan::runtime::tensor_core
