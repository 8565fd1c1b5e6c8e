// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/matrix_product.h"

#include "runtime/base/env.h"
#include "runtime/tensor_core/scale_groups.h"
#include "runtime/tensor_core/vector_product.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ptarmigan::runtime::tensor_core {

#if defined(__x86_64__)
namespace {

/// Tiles of bytes and bf16, which Linux lets a process use when it asks for them.
bool may_use_amx() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    constexpr unsigned bf16 = 1u << 22, tile = 1u << 24, int8 = 1u << 25;
    constexpr long request_permission = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return (d & (bf16 | tile | int8)) == (bf16 | tile | int8) &&
           syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

} // namespace
#endif

bool can_run(Code code) {
#if defined(__x86_64__)
    static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                             __builtin_cpu_supports("f16c") && __builtin_cpu_supports("popcnt");
    static const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (code == Code::avx2) return avx2;
    if (code == Code::avx512) return avx512;
    static const bool amx = avx512 && may_use_amx();
    if (code == Code::amx) return amx;
#endif
    return code == Code::portable;
}

Code best_code() {
    static const Code best = can_run(Code::avx512) ? Code::avx512 : can_run(Code::avx2) ? Code::avx2 : Code::portable;
    return best;
}

namespace {

/// There may be vector code for such products.
bool is_known_to_vectors(const MatrixProduct& product) {
    if (product.unit == Unit::scaled) return product.scales == 1;
    return product.c_halvings == 0;
}

} // namespace

Multiply multiplier([[maybe_unused]] Code code, const MatrixProduct& product, [[maybe_unused]] Accuracy accuracy) {
    if (code == Code::amx) code = Code::avx512;
    Multiply found = nullptr;
    if (product.unit == Unit::scaled_groups && code != Code::portable) return multiply_scale_groups;
    if (!is_known_to_vectors(product)) return multiply_portably;
#if defined(__x86_64__)
    static const bool vnni = __builtin_cpu_supports("avx512vnni"), bf16 = __builtin_cpu_supports("avx512bf16");
    if (code == Code::avx512 && vnni && product.unit == Unit::integer) found = avx512_vnni_multiplier(product);
    if (code == Code::avx512 && bf16 && accuracy == Accuracy::fast) found = avx512_bf16_multiplier(product);
    if (code == Code::avx512 && !found) found = avx512_multiplier(product, accuracy);
    if (code != Code::portable && !found) found = avx2_multiplier(product, accuracy);
#endif
    return found ? found : multiply_portably;
}

void multiply(const MatrixProduct& product, const void* a, const void* b, const void* c, void* d,
              const std::uint8_t* selected, const Scales& scales) {
    const Multiplier multiplier(product);
    multiplier(a, b, c, d, selected, scales);
}

Accuracy wanted_accuracy() {
    static const Accuracy accuracy = env_text(Env::mma) == "fast" ? Accuracy::fast : Accuracy::exact;
    return accuracy;
}

Multiplier::Multiplier(const MatrixProduct& product)
    : product_(product), code_(multiplier(best_code(), product, wanted_accuracy())) {}

void Multiplier::operator()(const void* a, const void* b, const void* c, void* d, const std::uint8_t* selected,
                            const Scales& scales) const {
    code_(product_, {a, b, c, d, selected, scales});
}

} // namespace ptarmigan::runtime::tensor_core
