// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for nvcc and NVRTC with a bit of everything that makes them write unusual PTX. It is compiled, never run.
#ifndef __CUDACC_RTC__
#include <cassert>
#include <cstdio>
#endif
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#if __CUDA_ARCH__ >= 890
#include <cuda_fp8.h>
#endif
#include <mma.h>

struct alignas(16) Particle {
    float4 position;
    double mass;
    char tag[5];
};

__constant__ int table[] = {1, -2, 3, 0x7fffffff};
__constant__ Particle constants[2];
__device__ const char message[] = "text \"with\" escapes\n\t\\ and \x7f bytes";
__device__ double counters[4] = {1.5, -0.0, 1e300, 5e-324};
__device__ const float* pointers[2] = {nullptr, nullptr};
__device__ int (*operations[2])(int, int);
__managed__ unsigned long long managed_counter = 42;
extern __shared__ unsigned char dynamic_shared[];

struct Shape {
    __device__ virtual float area() const { return 0.f; }
    __device__ virtual ~Shape() {}
};
struct Circle : Shape {
    float r;
    __device__ explicit Circle(float radius) : r(radius) {}
    __device__ float area() const override { return 3.14159265f * r * r; }
};
struct Square : Shape {
    float a;
    __device__ explicit Square(float side) : a(side) {}
    __device__ float area() const override { return a * a; }
};

extern "C" __device__ __noinline__ int sum(int a, int b) { return a + b; }
extern "C" __device__ __noinline__ int product(int a, int b) { return a * b; }
__device__ int (*const chosen[])(int, int) = {sum, product};
__device__ __noinline__ Particle moved(Particle p, float3 by) {
    p.position.x += by.x, p.position.y += by.y, p.position.z += by.z;
    return p;
}
__device__ unsigned long long fibonacci(unsigned n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

extern "C" __global__ void __launch_bounds__(256, 2) particles(Particle* p, const Particle by_value, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle local[4];
    for (int k = 0; k < 4; ++k) local[k] = moved(p[i], make_float3(k, by_value.position.y, 2.f));
    p[i] = local[table[i & 3] & 3];
    p[i].mass = sin(p[i].mass) + pow(p[i].mass, 1.25) + counters[i & 3];
    p[i].tag[i % 5] = message[i % sizeof message];
}

extern "C" __global__ void control(int* out, int kind, int n) {
    switch (kind) {
    case 0: out[0] = sum(n, 1); break;
    case 1: out[1] = product(n, 2); break;
    case 2: out[2] = n / kind; break;
    case 3: out[3] = n % kind; break;
    case 4: out[4] = __clz(n); break;
    case 5: out[5] = __brev(n); break;
    case 6: out[6] = __popc(n) + __ffs(n); break;
    case 7: out[7] = chosen[n & 1](n, kind); break;
    case 8: out[8] = static_cast<int>(fibonacci(n)); break;
    default: out[9] = operations[kind & 1](kind, n);
    }
    for (int i = 0; i < n; ++i) {
        if (out[i] == 7) continue;
        if (out[i] < 0) break;
        do out[i] = out[i] * 3 + 1;
        while (out[i] & 1);
    }
}

extern "C" __global__ void shapes(float* out, int kind) {
    __shared__ alignas(16) char storage[sizeof(Circle) + sizeof(Square)];
    Shape* shape = kind ? static_cast<Shape*>(new (storage) Circle(2.f)) : new Square(3.f);
    *out = shape->area();
    if (!kind) delete shape;
}

extern "C" __global__ void warps(unsigned* out, float* f, unsigned long long* wide) {
    const unsigned mask = __activemask(), lane = threadIdx.x & 31;
    out[0] = __shfl_xor_sync(mask, lane, 5) + __shfl_up_sync(mask, lane, 1) + __shfl_sync(mask, lane, 3, 8);
    out[1] = __ballot_sync(mask, lane & 1) + __any_sync(mask, lane > 7) + __all_sync(mask, lane);
    out[2] = __match_any_sync(mask, lane >> 2);
    atomicAdd(f, 1.f);
    atomicAdd(reinterpret_cast<double*>(wide), 1.0);
    atomicCAS(wide, 1ull, 2ull);
    atomicMax(wide + 1, 7ull);
    atomicAdd_block(out, 1u);
    atomicExch_system(out + 1, 2u);
    atomicInc(out + 2, 100u);
    __threadfence_system();
    __syncwarp();
    __syncthreads();
    out[3] = __syncthreads_count(lane & 1) + __syncthreads_or(lane == 4);
    reinterpret_cast<float*>(dynamic_shared)[threadIdx.x] = f[lane];
    out[4] = clock() + static_cast<unsigned>(clock64());
    out[5] = __dp4a(lane, out[1], out[2]) + __byte_perm(out[0], out[1], 0x3175) + __funnelshift_l(lane, mask, 7);
    out[6] = __vaddss4(out[0], out[1]) + __vmaxs2(out[2], out[3]) + __sad(3, 4, lane);
    wide[2] = __umul64hi(wide[0], wide[1]) / (wide[1] + 3);
    __nanosleep(10);
#if __CUDA_ARCH__ >= 800
    out[7] = __reduce_add_sync(mask, lane);
#endif
}

extern "C" __global__ void halves(__half2* h, __nv_bfloat162* b, float* f, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        h[i] = __hfma2(h[i], h[i], __float2half2_rn(f[i]));
        h[i] = h2exp(__hmax2(h[i], h2rsqrt(h[i])));
        b[i] = __hadd2(b[i], __floats2bfloat162_rn(f[i], 1.f));
        f[i] = __half2float(__low2half(h[i])) + __bfloat162float(__high2bfloat16(b[i])) + __saturatef(f[i]);
        f[i] = __fmaf_rz(f[i], __frcp_rn(f[i]), __fsqrt_ru(f[i])) + __expf(f[i]) + __sinf(f[i]) + tanhf(f[i]);
        f[i] = __fdividef(f[i], 3.f) + rsqrtf(f[i]) + __int2float_rd(i) + erfcinvf(f[i]) + lgammaf(f[i]);
    }
#if __CUDA_ARCH__ >= 890
    __nv_fp8_e4m3 small(f[0]);
    f[1] = static_cast<float>(small);
#endif
}

extern "C" __global__ void images(cudaTextureObject_t t, cudaSurfaceObject_t s, float4* out) {
    out[0] = tex2D<float4>(t, 0.5f, 0.25f);
    out[1] = tex3D<float4>(t, 0.5f, 0.25f, 0.75f);
    out[2] = tex2DLod<float4>(t, 0.5f, 0.25f, 2.f);
    out[3] = tex2DLayered<float4>(t, 0.5f, 0.25f, 3);
    out[4] = texCubemap<float4>(t, 0.5f, 0.25f, 1.f);
    out[5] = tex2Dgather<float4>(t, 0.5f, 0.25f, 2);
    out[6] = tex1Dfetch<float4>(t, 5);
    surf2Dwrite(out[0], s, 16, 3, cudaBoundaryModeClamp);
    out[7] = surf2Dread<float4>(s, 32, 1);
}

extern "C" __global__ void tiles(const __half* a, const __half* b, float* c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, __half, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    fill_fragment(fc, 0.f);
    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, b, 16);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync(c, fc, 16, mem_row_major);
}

extern "C" __global__ void inline_assembly(unsigned* out, const void* p) {
    unsigned lane, r;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("{ .reg .pred q;\n\t setp.ne.u32 q, %1, 0; // a comment\n\t selp.u32 %0, 1, 2, q; }" : "=r"(r) : "r"(lane));
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p) : "memory");
    asm("bfe.u32 %0, %0, 3, 5;\n\tlop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(r) : "r"(lane), "r"(out[0]));
    asm volatile("red.global.add.u32 [%0], 1;\n\tmembar.gl;" ::"l"(out));
    out[lane] = r;
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.init.shared::cta.b64 [%0], 1;\n\t"
                 "mbarrier.arrive.release.cta.shared::cta.b64 state, [%0];\n\t"
                 "barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;\n\t}" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(dynamic_shared))));
#endif
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) clusters(const __grid_constant__ Particle p, unsigned* out) {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    out[rank] = static_cast<unsigned>(p.mass);
}
#endif

#ifndef __CUDACC_RTC__
extern "C" __global__ void host_services(int n) {
    assert(n != 3);
    printf("%d %s %f\n", n, message, 1.5);
    void* p = malloc(n);
    if (p) free(p);
    if (n == 99) __trap();
    if (n == 98) __brkpt();
}
#endif

namespace spaced::inner {
template <typename T, int N> __global__ void generic(T (&values)[N], T* out) {
    T total{};
#pragma unroll 1
    for (int i = 0; i < N; ++i) total += values[i];
    out[threadIdx.x] = total;
}
template __global__ void generic<double, 7>(double (&)[7], double*);
template __global__ void generic<short, 3>(short (&)[3], short*);
} // namespace spaced::inner
