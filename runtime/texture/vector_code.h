// SPDX-License-Identifier: Apache-2.0
// Functions that are compiled once more for wider vectors, with the bits of the portable ones.
#pragma once

#include <cstdint>

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

/// `Loop::run<lanes>(arguments...)`, a loop over the lanes of a step that has to be inlined, for steps of up to 16 and
/// of up to 32 lanes and for each kind of vectors.
template <class Loop, class Result, class... Arguments> class StepCode {
public:
    static Result run(std::uint64_t active, VectorCode most, Arguments... arguments) {
        static const Forms best = forms_of(VectorCode::avx512);
        const Forms forms = most == VectorCode::avx512 ? best : forms_of(most);
        return (active >> 16 == 0 ? forms.half : forms.whole)(arguments...);
    }

private:
    using Form = Result (*)(Arguments...);
    struct Forms {
        Form half, whole;
    };

    template <unsigned lanes> static Result anywhere(Arguments... arguments) {
        return Loop::template run<lanes>(arguments...);
    }
    template <unsigned lanes> PTARMIGAN_FOR_AVX2 static Result avx2(Arguments... arguments) {
        return Loop::template run<lanes>(arguments...);
    }
    template <unsigned lanes> PTARMIGAN_FOR_AVX512 static Result avx512(Arguments... arguments) {
        return Loop::template run<lanes>(arguments...);
    }

    static Forms forms_of(VectorCode most) {
        switch (vector_code(most)) {
        case VectorCode::avx512: return {avx512<16>, avx512<32>};
        case VectorCode::avx2: return {avx2<16>, avx2<32>};
        case VectorCode::portable: break;
        }
        return {anywhere<16>, anywhere<32>};
    }
};

} // namespace ptarmigan::runtime
