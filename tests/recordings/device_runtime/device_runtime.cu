// SPDX-License-Identifier: Apache-2.0
// Device-side launches: what the device runtime answers. Prints one line per question; ../README.md says how to run it.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define OUT(text, ...) printf(text "\n", __VA_ARGS__)

__device__ int g_counter, g_order[4096], g_slot;

__global__ void nothing() {}
__global__ void note(int tag) { if (threadIdx.x == 0) g_order[atomicAdd(&g_slot, 1)] = tag; }
__global__ void shape(int *out) {
    extern __shared__ int dynamic[];
    if (threadIdx.x == 0 && threadIdx.y == 0 && blockIdx.x == 0 && blockIdx.y == 0) {
        dynamic[0] = 7;
        unsigned bytes; asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
        out[0] = gridDim.x; out[1] = gridDim.y; out[2] = gridDim.z; out[3] = blockDim.x; out[4] = blockDim.y; out[5] = blockDim.z;
        out[6] = bytes; out[7] = dynamic[0];
    }
}
struct Wide { char c; double d; short s; int a[5]; };
__global__ void wide(char a, Wide w, short b, double c, int *out) {
    out[0] = a; out[1] = w.c; out[2] = (int)w.d; out[3] = w.s; out[4] = w.a[4]; out[5] = b; out[6] = (int)c;
}

__global__ void errors() {
    cudaError_t e0 = cudaPeekAtLastError();
    nothing<<<1, 2048>>>(); OUT("block2048 peek %d get %d get %d", cudaPeekAtLastError(), cudaGetLastError(), cudaGetLastError());
    nothing<<<0, 32>>>(); OUT("grid0 peek %d get %d get %d", cudaPeekAtLastError(), cudaGetLastError(), cudaGetLastError());
    nothing<<<1, 0>>>(); OUT("block0 get %d", cudaGetLastError());
    nothing<<<dim3(1, 70000, 1), 32>>>(); OUT("gridy70000 get %d", cudaGetLastError());
    nothing<<<1, dim3(1, 1, 128)>>>(); OUT("blockz128 get %d", cudaGetLastError());
    nothing<<<1, 32, 48 * 1024>>>(); OUT("shared48k get %d", cudaGetLastError());
    nothing<<<1, 32, 48 * 1024 + 16>>>(); OUT("shared48k+16 get %d", cudaGetLastError());
    nothing<<<1, 32, 400 * 1024>>>(); OUT("shared400k get %d", cudaGetLastError());
    nothing<<<1, 32>>>(); OUT("fine get %d before %d", cudaGetLastError(), e0);
    nothing<<<1, 32, 0, (cudaStream_t)0x1>>>(); OUT("legacy stream get %d", cudaGetLastError());
    nothing<<<1, 32, 0, (cudaStream_t)0x2>>>(); OUT("per-thread stream get %d", cudaGetLastError());
    OUT("names %s %s %s", cudaGetErrorName(cudaErrorInvalidConfiguration), cudaGetErrorName(cudaSuccess), cudaGetErrorName((cudaError_t)12345));
    OUT("strings %s / %s / %s", cudaGetErrorString(cudaErrorInvalidConfiguration), cudaGetErrorString(cudaSuccess), cudaGetErrorString((cudaError_t)12345));
}
__global__ void per_thread_errors() {
    if (threadIdx.x == 1) nothing<<<1, 2048>>>();
    __syncwarp();
    int e = cudaGetLastError();
    int all = __reduce_add_sync(0xffffffffu, e * (threadIdx.x == 1 ? 1 : 1000));
    if (threadIdx.x == 0) OUT("errors of a warp whose lane 1 failed: sum %d", all);
}
__global__ void bad_buffers() {
    void *none = cudaGetParameterBufferV2((void *)nothing, dim3(1), dim3(2048), 0);
    OUT("buffer of block 2048: %s, last %d", none ? "some" : "null", cudaGetLastError());
    void *shared = cudaGetParameterBufferV2((void *)nothing, dim3(1), dim3(32), 400 * 1024);
    OUT("buffer of shared 400k: %s, last %d", shared ? "some" : "null", cudaGetLastError());

}
__global__ void streams() {
    cudaStream_t s = 0, t = 0;
    int a = cudaStreamCreateWithFlags(&s, cudaStreamDefault), b = cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
    OUT("stream default %d (%s) nonblocking %d (%s)", a, s ? "set" : "null", b, t ? "set" : "null");
    OUT("last %d", cudaGetLastError());
    cudaEvent_t e = 0, f = 0;
    int c = cudaEventCreateWithFlags(&e, cudaEventDefault), d = cudaEventCreateWithFlags(&f, cudaEventDisableTiming);
    OUT("event default %d (%s) notiming %d (%s)", c, e ? "set" : "null", d, f ? "set" : "null");
    OUT("last %d", cudaGetLastError());
    OUT("record %d wait %d", cudaEventRecord(f, t), cudaStreamWaitEvent(t, f, 0));
    OUT("destroys %d %d", cudaEventDestroy(f), cudaStreamDestroy(t));
    OUT("last %d", cudaGetLastError());
}
__global__ void queries(int *out) {
    int v = -1, n = -1, d = -1; size_t limit = 0;
    cudaError_t r = cudaRuntimeGetVersion(&v); OUT("runtime version %d (%d)", v, r);
    r = cudaGetDeviceCount(&n); cudaError_t q = cudaGetDevice(&d); OUT("devices %d (%d) device %d (%d)", n, r, d, q);
    const int attributes[] = {1, 2, 8, 9, 10, 13, 16, 75, 76, 39, 81, 9999, -1, 0};
    for (int a : attributes) { v = -7; r = cudaDeviceGetAttribute(&v, (cudaDeviceAttr)a, 0); OUT("attribute %d: %d (%d)", a, r == 0 ? v : -7, r); }
    r = cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 3); OUT("attribute of device 3: (%d)", r);
    for (int l = 0; l < 8; ++l) { limit = 77; r = cudaDeviceGetLimit(&limit, (cudaLimit)l); OUT("limit %d: %llu (%d)", l, (unsigned long long)limit, r); }
    cudaFuncAttributes f; memset(&f, 0x55, sizeof f);
    r = cudaFuncGetAttributes(&f, (const void *)shape); 
    OUT("func: shared %llu const %llu local %llu threads %d ptx %d bin %d maxdyn %d carve %d (%d)", (unsigned long long)f.sharedSizeBytes, (unsigned long long)f.constSizeBytes,
        (unsigned long long)f.localSizeBytes, f.maxThreadsPerBlock, f.ptxVersion, f.binaryVersion, f.maxDynamicSharedSizeBytes, f.preferredShmemCarveout, r);
    int blocks = -1; r = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)nothing, 256, 0); OUT("occupancy %d (%d)", blocks, r);
    cudaFuncCache cache; r = cudaDeviceGetCacheConfig(&cache); OUT("cache config %d (%d)", (int)cache, r);
    OUT("last %d", cudaGetLastError());
}
__global__ void shape_parent(int *out) { shape<<<dim3(3, 2, 2), dim3(8, 4, 2), 1000>>>(out); }
__global__ void wide_parent(int *out) {
    Wide w; w.c = 2; w.d = 3.5; w.s = 4; for (int i = 0; i < 5; ++i) w.a[i] = i * 10;
    wide<<<1, 1>>>(1, w, 5, 6.5, out);
}
__global__ void order_parent() {
    note<<<1, 32, 0, cudaStreamTailLaunch>>>(100);
    note<<<1, 32>>>(1); note<<<1, 32>>>(2); note<<<1, 32>>>(3);
    note<<<1, 32, 0, cudaStreamTailLaunch>>>(101);
    note<<<1, 32, 0, cudaStreamTailLaunch>>>(102);
}
__global__ void tail_a(int tag) { note<<<1, 1>>>(tag + 1); note<<<1, 1, 0, cudaStreamTailLaunch>>>(tag + 2); if (threadIdx.x == 0) g_order[atomicAdd(&g_slot, 1)] = tag; }
__global__ void tail_nested() {
    tail_a<<<1, 1, 0, cudaStreamTailLaunch>>>(10);
    tail_a<<<1, 1, 0, cudaStreamTailLaunch>>>(20);
    tail_a<<<1, 1>>>(30);
}
__global__ void depth(int level, int limit, int stream) {
    g_counter = level;
    if (level == limit) return;
    cudaStream_t s = stream == 0 ? 0 : stream == 1 ? cudaStreamFireAndForget : cudaStreamTailLaunch;
    depth<<<1, 1, 0, s>>>(level + 1, limit, stream);
    cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess) printf("depth stream %d: error %d at level %d\n", stream, e, level);
}
__global__ void many(int count) {
    int failed = 0, first = -1, code = 0;
    for (int i = 0; i < count; ++i) {
        note<<<1, 32>>>(i);
        cudaError_t e = cudaGetLastError();
        if (e != cudaSuccess) { if (first < 0) first = i, code = e; ++failed; }
    }
    printf("many %d: failed %d first at %s code %d\n", count, failed > 0, first < 0 ? "none" : "some", code);
}
__global__ void add_one(int *p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] += 1; }
__global__ void copies(int *a, int *b, int n) {
    cudaError_t e1 = cudaMemsetAsync(a, 1, n * 4, 0);
    add_one<<<(n + 31) / 32, 32>>>(a, n);
    cudaError_t e2 = cudaMemcpyAsync(b, a, n * 4, cudaMemcpyDeviceToDevice, 0);
    add_one<<<(n + 31) / 32, 32>>>(b, n);
    OUT("copies %d %d host-to-device %d odd %d zero %d", e1, e2, cudaMemcpyAsync(b, a, 4, cudaMemcpyHostToDevice, 0), cudaMemcpyAsync(b, a, 4, (cudaMemcpyKind)9, 0),
        cudaMemcpyAsync(b, a, 0, cudaMemcpyDeviceToDevice, 0));
    OUT("last %d", cudaGetLastError());
    cudaError_t e3 = cudaMemset2DAsync(b + 64, 64, 3, 8, 2, 0), e4 = cudaMemcpy2DAsync(b + 128, 64, b + 64, 64, 12, 2, cudaMemcpyDeviceToDevice, 0);
    OUT("2d %d %d", e3, e4);
    void *p = nullptr; cudaError_t m = cudaMalloc(&p, 1000); OUT("malloc %d %s free %d", m, p ? "some" : "null", cudaFree(p));
    p = (void *)1; m = cudaMalloc(&p, 0); OUT("malloc0 %d %s", m, p ? (p == (void *)1 ? "untouched" : "some") : "null");
    m = cudaMalloc(&p, (size_t)1 << 40); OUT("malloc huge %d last %d", m, cudaGetLastError());
    OUT("free null %d", cudaFree(nullptr));
}
__global__ void trapper() { __trap(); }
__global__ void trap_parent() { trapper<<<1, 1>>>(); }
__global__ void blocks_parent(int *sum) { if (threadIdx.x < 2) add_one<<<1, 1>>>(sum + threadIdx.x, 1); }

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IONBF, 0);
    int *out; cudaMalloc(&out, 4096);
    int host[1024] = {};
    auto finish = [&](const char *what) { cudaError_t l = cudaGetLastError(); cudaError_t e = cudaDeviceSynchronize(); printf("%s: launch %d sync %d\n", what, l, e); return e; };
    auto show = [&](int count) { cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost); for (int i = 0; i < count; ++i) printf("%d ", host[i]); printf("\n"); };
    auto order = [&] { int slot = 0, list[4096]; cudaMemcpyFromSymbol(&slot, g_slot, 4); cudaMemcpyFromSymbol(list, g_order, sizeof list);
        for (int i = 0; i < slot && i < 40; ++i) printf("%d ", list[i]); printf("(%d)\n", slot); int zero = 0; cudaMemcpyToSymbol(g_slot, &zero, 4); };
    auto clear = [&] { cudaMemset(out, 0, 4096); };
    clear();
    errors<<<1, 1>>>(); finish("errors");
    per_thread_errors<<<1, 32>>>(); finish("per thread");
    bad_buffers<<<1, 1>>>(); finish("buffers");
    streams<<<1, 1>>>(); finish("streams");
    queries<<<1, 1>>>(out); finish("queries");
    shape_parent<<<1, 1>>>(out); finish("shape"); show(8);
    wide_parent<<<1, 1>>>(out); finish("wide"); show(7);
    order_parent<<<1, 1>>>(); finish("order"); order();
    tail_nested<<<1, 1>>>(); finish("tails"); order();
    for (int s = 0; s < 3; ++s) { depth<<<1, 1>>>(0, 30, s); finish("depth"); int c; cudaMemcpyFromSymbol(&c, g_counter, 4); printf("reached %d\n", c); }
    many<<<1, 1>>>(1000); finish("many"); order();
    many<<<1, 1>>>(3000); finish("many"); { int z = 0; cudaMemcpyToSymbol(g_slot, &z, 4); }
    clear(); copies<<<1, 1>>>(out, out + 300, 200); finish("copies"); show(4);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost); printf("%x %x %x %x %x %x\n", host[300], host[499], host[300 + 64], host[300 + 66], host[300 + 128], host[300 + 131]);
    clear(); blocks_parent<<<100, 32>>>(out); finish("blocks"); show(3);
    size_t value = 0; cudaDeviceGetLimit(&value, cudaLimitDevRuntimePendingLaunchCount); printf("pending limit %zu\n", value);
    value = 0; cudaError_t e = cudaDeviceGetLimit(&value, cudaLimitDevRuntimeSyncDepth); printf("sync depth %zu (%d)\n", value, e);
    trap_parent<<<1, 1>>>(); finish("trap");
    printf("after %d\n", cudaMemset(out, 0, 4));
}
