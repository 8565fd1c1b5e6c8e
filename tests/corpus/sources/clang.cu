// SPDX-License-Identifier: Apache-2.0
// CUDA for clang's NVPTX back end, without any header of a toolkit: what that back end writes differently from nvcc
// (parameters with .ptr .align, byte arrays as structures, .callprototype, debug sections). It is compiled, never run.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define noinline __attribute__((noinline))

using size_t = decltype(sizeof 0);
typedef float float4 __attribute__((ext_vector_type(4)));
typedef short short2 __attribute__((ext_vector_type(2)));
typedef char char4 __attribute__((ext_vector_type(4)));

struct Record {
    int key;
    double value;
    char name[3];
    float4 place;
};
struct Bits {
    unsigned a : 3, b : 11, c : 18;
    bool flag;
};
struct Base {
    __device__ virtual int answer(int x) { return x; }
};
struct Derived : Base {
    int offset;
    __device__ int answer(int x) override { return x + offset; }
};

__constant__ Record defaults = {1, 2.5, {'a', 'b', 0}, {1.f, 2.f, 3.f, -0.f}};
__device__ Record* table[3] = {nullptr, nullptr, nullptr};
__device__ const char text[] = "not \"plain\" \xff\n";
__device__ int numbers[4] = {1, -2, 3, -4};
#if __clang_major__ >= 17 // older ones can't write the address of a variable into another
__device__ int* inside = &numbers[2];
#else
__device__ int* inside = nullptr;
#endif
__device__ bool flags[2] = {true, false};
extern __shared__ float dynamic_shared[];

__device__ inline unsigned thread() {
    return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
}
__device__ noinline Record changed(Record r, Bits b, short s) {
    r.key += b.b * s;
    r.value = __builtin_fma(r.value, b.flag ? 2.0 : 0.5, static_cast<double>(b.c));
    return r;
}
__device__ noinline unsigned __int128 squared(unsigned __int128 x) { return x * x; }
#if __clang_major__ >= 17
__device__ noinline int count(int n, ...) { return n; }
#else
__device__ noinline int count(int n, int) { return n; }
#endif
__device__ noinline int deeper(int n) { return n <= 1 ? 1 : n * deeper(n - 1); }
extern "C" __device__ int elsewhere(int, const Record*, float4);

extern "C" __global__ void __launch_bounds__(128, 4) records(Record* r, Record by_value, Bits bits, int n) {
    const unsigned i = thread();
    if (i >= static_cast<unsigned>(n)) return;
    Record copies[3] = {r[i], by_value, defaults};
    r[i] = changed(copies[i % 3], bits, static_cast<short>(i));
    r[i].name[i % 3] = text[i % sizeof text];
    if (table[i % 3]) *table[i % 3] = copies[(i + 1) % 3];
    *inside += deeper(i & 7);
}

extern "C" __global__ void scalars(char* c, short* s, long long* l, double* d, float* f, bool* b, unsigned __int128* w) {
    const unsigned i = thread();
    c[i] = static_cast<char>(c[i] * 3 / 7);
    s[i] = static_cast<short>(s[i] >> (c[i] & 15));
    l[i] = l[i] % 1000003 + (l[i] << 3 | static_cast<unsigned long long>(l[i]) >> 61);
    d[i] = __builtin_sqrt(d[i]) + __builtin_floor(d[i]) + __builtin_fabs(d[i]) + static_cast<double>(l[i]);
    f[i] = __builtin_copysignf(__builtin_truncf(f[i]), -1.f) + static_cast<float>(s[i]) + __builtin_fminf(f[i], 2.f);
    b[i] = !b[i] && (f[i] < d[i] || f[i] != f[i]);
    w[i] = squared(w[i]) + static_cast<unsigned>(__builtin_popcount(i) + __builtin_clz(i | 1) + __builtin_bitreverse32(i));
}

extern "C" __global__ void vectors(float4* v, short2* h, char4* c) {
    const unsigned i = thread();
    __shared__ float4 tile[32];
    tile[i & 31] = v[i] * 2.f + v[i].wzyx;
    __syncthreads();
    v[i] = tile[31 - (i & 31)];
    h[i] = h[i] * static_cast<short>(3);
    c[i] = c[i].yxwz + c[i];
    dynamic_shared[i & 31] = v[i].x;
    __nvvm_membar_gl();
}

extern "C" __global__ void calls(int* out, int kind, Base* object, int (*function)(int), Record* r) {
    switch (kind) {
    case 0: out[0] = function(kind); break;
    case 1: out[1] = object->answer(7); break;
    case 2: out[2] = count(3, 1); break;
    case 3: out[3] = __builtin_abs(out[3]); break;
    case 4: out[4] = elsewhere(1, r, r->place); break;
    case 5: __builtin_trap();
    case 6: out[6] = numbers[kind & 3]; break;
    default: out[7] = 1;
    }
    Derived local;
    local.offset = kind;
    Base* pointer = kind > 3 ? object : &local;
    out[8] = pointer->answer(kind);
}

extern "C" __global__ void atomics(int* i, unsigned long long* u, float* f) {
    __nvvm_atom_add_gen_f(f, 1.f);
    __nvvm_atom_max_gen_i(i, 5);
    __nvvm_atom_cas_gen_ll(reinterpret_cast<long long*>(u), 1, 2);
    __nvvm_atom_inc_gen_ui(reinterpret_cast<unsigned*>(i), 7);
    __atomic_fetch_add(i, 3, __ATOMIC_RELAXED);
    __atomic_exchange_n(u, 9ull, __ATOMIC_RELAXED);
    i[1] = *static_cast<volatile int*>(i + 2);
    asm volatile("{ .reg .pred q; setp.lt.s32 q, %1, 3; @q bra L%=; mov.u32 %0, %%clock; L%=: }" : "=r"(i[3]) : "r"(i[4]));
}

extern "C" __global__ void loops(float* f, const float* __restrict__ g, int n) {
    for (int i = 0; i < n; i += 2) {
        if (g[i] > 1.f) continue;
        float total = 0.f;
        for (int k = i; k < n; ++k) total = __builtin_fmaf(g[k], f[k], total);
        f[i] = total > 10.f ? total : -total;
        if (total == 3.f) break;
    }
}
