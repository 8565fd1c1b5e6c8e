// SPDX-License-Identifier: Apache-2.0
#include "two_devices.h"

namespace devices {

const char* const text = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 variable = 5;
.visible .global .attribute(.managed) .u32 managed_variable = 6;
.visible .entry put(.param .u64 to, .param .u32 value) {
    .reg .b64 %a;
    .reg .b32 %v;
    ld.param.u64 %a, [to];
    ld.param.u32 %v, [value];
    st.global.u32 [%a], %v;
    ret;
}
.visible .entry get(.param .u64 from, .param .u64 to) {
    .reg .b64 %a, %b;
    .reg .b32 %v;
    ld.param.u64 %a, [from];
    ld.param.u64 %b, [to];
    ld.global.u32 %v, [%a];
    st.global.u32 [%b], %v;
    ret;
}
.visible .entry add(.param .u64 to) {
    .reg .b64 %a;
    .reg .b32 %i, %o;
    .reg .pred %p;
    ld.param.u64 %a, [to];
    mov.u32 %i, 0;
again:
    atom.sys.global.add.u32 %o, [%a], 1;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 1000;
    @%p bra again;
    ret;
}
.visible .entry trapped() {
    trap;
    ret;
}
)";

void Both::start() {
    must("cuInit", 0u);
    for (int i = 0; i < 2; ++i) {
        Side& side = at[i];
        must("cuDevicePrimaryCtxRetain", &side.context, i);
        must("cuCtxSetCurrent", side.context);
        must("cuStreamCreate", &side.stream, 1u);
        must("cuEventCreate", &side.event, 0u);
        must("cuModuleLoadData", &side.module, static_cast<const void*>(text));
        must("cuModuleGetFunction", &side.put, side.module, "put");
        must("cuModuleGetFunction", &side.get, side.module, "get");
        must("cuModuleGetFunction", &side.add, side.module, "add");
        must("cuMemAlloc_v2", &side.memory, std::size_t{4096});
        must("cuMemsetD32_v2", side.memory, 100u + i, std::size_t{1024});
        must("cuCtxSynchronize");
    }
    use(0);
}

std::string Both::put(int i, CUdeviceptr to, unsigned value) const {
    void* parameters[] = {&to, &value};
    const int launched = call("cuLaunchKernel", at[i].put, 1u, 1u, 1u, 1u, 1u, 1u, 0u, at[i].stream, &parameters[0], static_cast<void**>(nullptr));
    return list({number(launched), number(call("cuStreamSynchronize", at[i].stream))});
}

std::string Both::get(int i, CUdeviceptr from) const {
    CUdeviceptr to = at[i].memory + 2048;
    void* parameters[] = {&from, &to};
    const int launched = call("cuLaunchKernel", at[i].get, 1u, 1u, 1u, 1u, 1u, 1u, 0u, at[i].stream, &parameters[0], static_cast<void**>(nullptr));
    const int waited = call("cuStreamSynchronize", at[i].stream);
    return number(launched) + " " + number(waited) + (launched || waited ? "" : " " + word(to));
}

std::string list(std::initializer_list<std::string> words) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
    return all;
}

void fill(CUdeviceptr at, unsigned value) {
    const std::vector<unsigned> words(1024, value);
    must("cuMemcpyHtoD_v2", at, static_cast<const void*>(words.data()), std::size_t{4096});
}

std::string word(CUdeviceptr at) {
    unsigned value = 0;
    const int result = call("cuMemcpyDtoH_v2", static_cast<void*>(&value), at, sizeof value);
    return result ? "!" + number(result) : number(value);
}

std::string health(const Both& both, int i) {
    const int set = call("cuCtxSetCurrent", both.at[i].context);
    CUdeviceptr made = 0;
    return list({number(set), number(call("cuCtxSynchronize")), number(call("cuMemAlloc_v2", &made, std::size_t{4096})), word(both.at[i].memory), number(call("cuStreamQuery", both.at[i].stream))});
}

} // namespace devices
