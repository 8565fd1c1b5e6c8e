// SPDX-License-Identifier: Apache-2.0
// Two ranks of MPI, each with a device: MPI gets device pointers, which are addresses of the process like any other.
// Built with mpicxx by `mpi`; libcuda.so.1 is what the loader finds.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <mpi.h>
#include <vector>

namespace {

void* cuda = nullptr;

template <class... Arguments> void must(const char* name, Arguments... arguments) {
    void* entry = dlsym(cuda, name);
    const int result = entry ? reinterpret_cast<int (*)(Arguments...)>(entry)(arguments...) : -1;
    if (result == 0) return;
    std::printf("%s: %d\n", name, result);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

const char* const text = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 data, .param .f32 by, .param .u32 count) {
    .reg .b64 %a, %o;
    .reg .b32 %i, %b, %n, %t;
    .reg .f32 %v, %by;
    .reg .pred %p;
    ld.param.u64 %a, [data];
    ld.param.f32 %by, [by];
    ld.param.u32 %n, [count];
    mov.u32 %t, %tid.x;
    mov.u32 %i, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mad.lo.u32 %i, %i, %b, %t;
    setp.ge.u32 %p, %i, %n;
    @%p ret;
    mul.wide.u32 %o, %i, 4;
    add.u64 %a, %a, %o;
    ld.global.f32 %v, [%a];
    mul.f32 %v, %v, %by;
    st.global.f32 [%a], %v;
    ret;
}
)";

constexpr int count = 100'000;

} // namespace

int main(int words, char** word) {
    MPI_Init(&words, &word);
    int rank = 0, ranks = 0, devices = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda) MPI_Abort(MPI_COMM_WORLD, 1);
    void *context = nullptr, *module = nullptr, *scale = nullptr;
    must("cuInit", 0u);
    must("cuDeviceGetCount", &devices);
    must("cuDevicePrimaryCtxRetain", &context, rank % devices);
    must("cuCtxSetCurrent", context);
    must("cuModuleLoadData", &module, static_cast<const void*>(text));
    must("cuModuleGetFunction", &scale, module, "scale");
    std::uint64_t mine = 0, other = 0, sums = 0;
    for (std::uint64_t* made : {&mine, &other, &sums}) must("cuMemAlloc_v2", made, count * sizeof(float));
    std::vector<float> host(count);
    for (int i = 0; i < count; ++i) host[static_cast<std::size_t>(i)] = static_cast<float>(i % 1000);
    must("cuMemcpyHtoD_v2", mine, static_cast<const void*>(host.data()), host.size() * sizeof(float));
    float by = static_cast<float>(rank + 2);
    unsigned number = count;
    void* parameters[] = {&mine, &by, &number};
    must("cuLaunchKernel", scale, (number + 255) / 256, 1u, 1u, 256u, 1u, 1u, 0u, static_cast<void*>(nullptr), &parameters[0], static_cast<void**>(nullptr));
    must("cuCtxSynchronize"); // MPI does not know of streams
    const auto* from = reinterpret_cast<const float*>(mine);
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    MPI_Sendrecv(from, count, MPI_FLOAT, next, 0, reinterpret_cast<float*>(other), count, MPI_FLOAT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(from, reinterpret_cast<float*>(sums), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    int wrong = 0;
    float factors = 0;
    for (int i = 0; i < ranks; ++i) factors += static_cast<float>(i + 2);
    must("cuMemcpyDtoH_v2", static_cast<void*>(host.data()), other, host.size() * sizeof(float));
    for (int i = 0; i < count; ++i) wrong += host[static_cast<std::size_t>(i)] != static_cast<float>(i % 1000) * static_cast<float>(before + 2);
    must("cuMemcpyDtoH_v2", static_cast<void*>(host.data()), sums, host.size() * sizeof(float));
    for (int i = 0; i < count; ++i) wrong += host[static_cast<std::size_t>(i)] != static_cast<float>(i % 1000) * factors;
    std::printf("rank %d of %d on device %d of %d: %d wrong\n", rank, ranks, rank % devices, devices, wrong);
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
