// SPDX-License-Identifier: Apache-2.0
// Vector types of the builtins and the conventions that they keep: no library calls, no target intrinsics, table
// lookups through gather(). The same sources compile to bitcode for the translator and natively for the tests.
#pragma once

#include <cstdint>

#define PTM_INLINE inline __attribute__((always_inline))

template <typename T, int N> using Lanes = T __attribute__((ext_vector_type(N)));
template <int N> using F32 = Lanes<float, N>;
template <int N> using F64 = Lanes<double, N>;
template <int N> using I32 = Lanes<int, N>;
template <int N> using I64 = Lanes<long, N>;

template <int N> PTM_INLINE I32<N> bits(F32<N> v) {
    return __builtin_bit_cast(I32<N>, v);
}
template <int N> PTM_INLINE F32<N> real(I32<N> v) {
    return __builtin_bit_cast(F32<N>, v);
}
template <int N> PTM_INLINE I64<N> bits(F64<N> v) {
    return __builtin_bit_cast(I64<N>, v);
}
template <int N> PTM_INLINE F64<N> real(I64<N> v) {
    return __builtin_bit_cast(F64<N>, v);
}
template <int N> PTM_INLINE I64<N> widen(I32<N> v) {
    return __builtin_convertvector(v, I64<N>);
}
template <int N> PTM_INLINE I32<N> narrow(I64<N> v) {
    return __builtin_convertvector(v, I32<N>);
}
/// Logical shift right.
template <int N> PTM_INLINE I32<N> shift_down(I32<N> v, I32<N> count) {
    using U = Lanes<unsigned, N>;
    return __builtin_bit_cast(I32<N>, __builtin_bit_cast(U, v) >> __builtin_bit_cast(U, count));
}

// table[index] per lane; the linker of the builtins gives these bodies (one gather instruction where there is one).
#ifdef PTARMIGAN_BUILTINS_NATIVE
#define PTM_GATHER(n)                                                                                                  \
    inline I32<n> ptm_gather_##n(const int* table, I32<n> index) {                                                     \
        I32<n> result;                                                                                                 \
        for (int i = 0; i < n; ++i) result[i] = table[index[i]];                                                       \
        return result;                                                                                                 \
    }
#else
#define PTM_GATHER(n) I32<n> ptm_gather_##n(const int* table, I32<n> index);
#endif
extern "C" {
PTM_GATHER(4)
PTM_GATHER(8)
PTM_GATHER(16)
}

template <int N> PTM_INLINE I32<N> gather(const int* table, I32<N> index) {
    if constexpr (N == 16)
        return ptm_gather_16(table, index);
    else if constexpr (N == 8)
        return ptm_gather_8(table, index);
    else if constexpr (N == 4)
        return ptm_gather_4(table, index);
    else
        return I32<N>(table[index[0]]);
}
