// SPDX-License-Identifier: Apache-2.0
// A kernel that is handed a peer's memory without access to it: that is said, once access is given it is not. Hidden:
// ctest runs it with PTARMIGAN_DEVICES=2.
#include "driver.h"
#include "fault_child.h"

#include <cstdint>
#include <string>

extern "C" {
CUresult cuCtxEnablePeerAccess(CUcontext, unsigned);
CUresult cuMemcpyPeer(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t);
}

using namespace driver_test;

namespace {

const char* const text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u32 value, .param .u64 place)
{
    .reg .u64 %place;
    .reg .u32 %value;
    ld.param.u32 %value, [value];
    ld.param.u64 %place, [place];
    st.global.u32 [%place], %value;
    ret;
}
)";

/// 0 if the kernel on device 0 has written to the memory of device `owner`.
int write_to(int owner, bool with_access) {
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    CUdeviceptr place = 0;
    const CUcontext first = begin_on(0), second = begin_on(1);
    if (!first || !second) return -1;
    if (cuCtxSetCurrent(owner == 0 ? first : second) != 0 || cuMemAlloc_v2(&place, 4096) != 0) return -2;
    if (cuCtxSetCurrent(first) != 0 || (with_access && cuCtxEnablePeerAccess(second, 0) != 0)) return -3;
    if (cuModuleLoadData(&module, text) != 0 || cuModuleGetFunction(&kernel, module, "k") != 0) return -4;
    std::uint32_t value = 7, got = 0;
    void* parameters[] = {&value, &place};
    if (cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) != 0 || cuCtxSynchronize() != 0) return -5;
    if (cuCtxSetCurrent(owner == 0 ? first : second) != 0 || cuMemcpyDtoH_v2(&got, place, sizeof got) != 0) return -6;
    return got == value ? 0 : -7;
}

/// 0 if copies on device 0 refuse what device 1 has freed.
int copy_freed() {
    CUdeviceptr here = 0, freed = 0;
    char host[16]{};
    const auto h = reinterpret_cast<CUdeviceptr>(host);
    const CUcontext first = begin_on(0), second = begin_on(1);
    if (!first || !second) return -1;
    if (cuCtxSetCurrent(first) != 0 || cuMemAlloc_v2(&here, 4096) != 0) return -2;
    if (cuCtxSetCurrent(second) != 0 || cuMemAlloc_v2(&freed, 4096) != 0 || cuMemFree_v2(freed) != 0) return -3;
    if (cuCtxSetCurrent(first) != 0) return -4;
    for (const CUdeviceptr good : {here, h})
        if (cuMemcpy(freed, good, 16) != 1 || cuMemcpy(good, freed, 16) != 1) return -5;
    if (cuMemcpyPeer(here, first, freed, second, 16) != 1 || cuMemcpyPeer(freed, second, here, first, 16) != 1) return -6;
    if (cuMemcpyHtoD_v2(here, reinterpret_cast<void*>(freed), 16) != 1) return -7;
    if (cuMemcpyDtoH_v2(reinterpret_cast<void*>(freed), here, 16) != 1) return -8;
    return 0;
}

} // namespace

TEST_CASE("what a peer has freed is not taken for the host's", "[.peer_memory]") {
    const std::string said = said_by_child(copy_freed);
    INFO(said);
    CHECK(said.find("code 0") != std::string::npos);
}

TEST_CASE("a peer's memory without access is said", "[.peer_memory]") {
    const std::string what = "kernel k on device 0 is handed memory of another device";
    const auto says_it = [&](const std::string& said) { return said.find(what) != std::string::npos; };
    const std::string own = said_by_child([] { return write_to(0, false); });
    const std::string without = said_by_child([] { return write_to(1, false); });
    const std::string with = said_by_child([] { return write_to(1, true); });
    INFO(own + without + with);
    for (const std::string* said : {&own, &without, &with}) CHECK(said->find("code 0") != std::string::npos);
    CHECK(!says_it(own));
    CHECK(says_it(without));
    CHECK(!says_it(with));
}
