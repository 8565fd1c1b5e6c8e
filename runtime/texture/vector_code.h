// SPDX-License-Identifier: Apache-2.0
// Functions that are compiled once more for wider vectors, with the bits of the portable ones.
#pragma once

#if defined(__x86_64__)
#define PTARMIGAN_FOR_AVX2 __attribute__((target("avx2,fma")))
#define PTARMIGAN_FOR_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512")))
#else
#define PTARMIGAN_FOR_AVX2
#define PTARMIGAN_FOR_AVX512
#endif

namespace ptarmigan::runtime {

/// Code for which CPUs; what the CPU lacks is replaced by the best that it has.
enum class VectorCode { portable, avx2, avx512 };

/// The best that this CPU has, up to `most`.
inline VectorCode vector_code(VectorCode most) {
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    if (most == VectorCode::avx512 && avx512) return VectorCode::avx512;
    if (most != VectorCode::portable && avx2) return VectorCode::avx2;
#endif
    return VectorCode::portable;
}

} // namespace ptarmigan::runtime
