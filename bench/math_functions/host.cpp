// SPDX-License-Identifier: Apache-2.0
// The same functions in loops that the host's compiler vectorises, by libmvec where glibc has one (-O3 -ffast-math).
#include "host.h"

#include <math.h>
#define MATH(name) name
#define F(name, type, expression, from, to)                                                                            \
    static void name(const void* in, void* out, int count) {                                                           \
        const type* __restrict source = static_cast<const type*>(in);                                                  \
        type* __restrict target = static_cast<type*>(out);                                                             \
        _Pragma("omp simd") for (int i = 0; i < count; ++i) {                                                          \
            const type x = source[i];                                                                                  \
            target[i] = expression;                                                                                    \
        }                                                                                                              \
    }
#include "functions.def"
#undef F
#define F(name, type, expression, from, to) {#name, #type, sizeof(type), from, to, name},
const HostFunction host_functions[] = {
#include "functions.def"
};
const int host_function_count = sizeof(host_functions) / sizeof(*host_functions);
