// SPDX-License-Identifier: Apache-2.0
// Streams and events. Expected codes are the NVIDIA driver's on an H200; where that crashes
// (invalid handles), ours says 400.
#include "driver.h"

#include <array>
#include <cstring>
#include <vector>

TEST_CASE("stream: creation, priority, special handles") {
    driver_test::context();
    CUstream stream = nullptr;
    int priority = 1;
    CHECK(cuStreamCreate(&stream, 99) == 1);
    CHECK(cuStreamCreate(nullptr, 0) == 1);
    REQUIRE(cuStreamCreateWithPriority(&stream, 1, 100) == 0);
    CHECK(cuStreamGetPriority(stream, &priority) == 0);
    CHECK(priority == 0);
    CHECK(cuStreamDestroy_v2(stream) == 0);
    CHECK(cuStreamDestroy_v2(stream) == 400);
    CHECK(cuStreamSynchronize(stream) == 400);
    CHECK(cuStreamSynchronize(reinterpret_cast<CUstream>(1)) == 0);
    CHECK(cuStreamSynchronize(reinterpret_cast<CUstream>(2)) == 0);
    CHECK(cuStreamSynchronize(reinterpret_cast<CUstream>(0x999)) == 400);
    for (std::uintptr_t special : {0, 1, 2})
        CHECK(cuStreamDestroy_v2(reinterpret_cast<CUstream>(special)) == 400);
}

// What an H100 (driver 580.159) said to each of these calls.
TEST_CASE("stream: attributes are kept, checked and copied") {
    using namespace ptarmigan::shim;
    driver_test::context();
    CUstream stream = nullptr, other = nullptr;
    REQUIRE(cuStreamCreateWithPriority(&stream, 1, -2) == 0);
    REQUIRE(cuStreamCreate(&other, 0) == 0);
    CUlaunchAttributeValue value{};
    for (unsigned number : {0u, 2u, 4u, 5u, 6u, 7u, 11u, 12u, 13u, 14u, 15u, 16u, 17u, ~0u}) { // not of streams
        CHECK(cuStreamGetAttribute(stream, number, &value) == 1);
        CHECK(cuStreamSetAttribute(stream, number, &value) == 1);
    }
    const auto read = [&](CUstream from, unsigned which) {
        std::memset(&value, 0xcd, sizeof value);
        CHECK(cuStreamGetAttribute(from, which, &value) == 0);
        return value;
    };
    CHECK(read(stream, launch_synchronization_policy).syncPolicy == -1);
    CHECK(read(stream, launch_priority).priority == -2);
    CHECK(read(stream, launch_mem_sync_domain).memSyncDomain == 0);
    CHECK(read(nullptr, launch_mem_sync_domain_map).memSyncDomainMap.remote == 1);
    CHECK(read(nullptr, launch_access_policy_window).accessPolicyWindow.num_bytes == 0);
    CHECK(value.pad[32] == static_cast<char>(0xcd)); // only the attribute's own bytes are written

    const auto number = [&](unsigned which, int given, int code, int kept) {
        CUlaunchAttributeValue argument{};
        argument.priority = given;
        CHECK(cuStreamSetAttribute(other, which, &argument) == code);
        CHECK(read(other, which).priority == kept);
    };
    for (auto [given, code, kept] : {std::array{1, 0, 1}, {4, 0, 4}, {0, 1, 4}, {5, 1, 4}, {-1, 1, 4}})
        number(launch_synchronization_policy, given, code, kept);
    for (auto [given, code, kept] : {std::array{-3, 0, -3}, {7, 0, 0}, {-9, 0, -5}})
        number(launch_priority, given, code, kept);
    for (auto [given, code, kept] : {std::array{1, 0, 1}, {2, 1, 1}, {-1, 1, 1}})
        number(launch_mem_sync_domain, given, code, kept);
    int priority = 1;
    CHECK(cuStreamGetPriority(other, &priority) == 0);
    CHECK(priority == -5);

    CUlaunchAttributeValue map{};
    map.memSyncDomainMap = {1, 2};
    CHECK(cuStreamSetAttribute(other, launch_mem_sync_domain_map, &map) == 0);
    map.memSyncDomainMap = {4, 0};
    CHECK(cuStreamSetAttribute(other, launch_mem_sync_domain_map, &map) == 1);

    const auto window = [&](std::size_t size, float ratio, int hit, int miss) {
        CUlaunchAttributeValue argument{};
        argument.accessPolicyWindow = {reinterpret_cast<void*>(0x1234), size, ratio, hit, miss};
        return cuStreamSetAttribute(other, launch_access_policy_window, &argument);
    };
    CHECK(window(std::size_t{1} << 30, 1.f, 2, 1) == 1);
    CHECK(window(4096, 1.5f, 2, 1) == 1);
    CHECK(window(4096, -.5f, 2, 1) == 1);
    CHECK(window(4096, 1.f, 1, 2) == 1);
    CHECK(window(4096, 1.f, 3, 0) == 0);
    CHECK(window(77, .25f, 2, 1) == 0);

    CHECK(cuStreamCopyAttributes(stream, other) == 0);
    CHECK(read(stream, launch_synchronization_policy).syncPolicy == 4);
    CHECK(read(stream, launch_priority).priority == -5);
    CHECK(read(stream, launch_mem_sync_domain).memSyncDomain == 1);
    CHECK(read(stream, launch_mem_sync_domain_map).memSyncDomainMap.remote == 2);
    CHECK(read(stream, launch_access_policy_window).accessPolicyWindow.hitRatio == .25f);
    CHECK(value.accessPolicyWindow.num_bytes == 77);
    CHECK(cuStreamCopyAttributes(stream, reinterpret_cast<CUstream>(0x999)) == 400); // ours: a GPU's driver crashes
    CHECK(cuStreamGetAttribute(stream, launch_priority, nullptr) == 1); // likewise
    CHECK(cuStreamSetAttribute(stream, launch_priority, nullptr) == 1);
    CHECK(cuStreamDestroy_v2(stream) == 0);
    CHECK(cuStreamDestroy_v2(other) == 0);
}

TEST_CASE("event: states and codes") {
    driver_test::context();
    CUevent first = nullptr, second = nullptr, untimed = nullptr;
    float time = -1;
    CHECK(cuEventCreate(&first, 99) == 1);
    REQUIRE(cuEventCreate(&first, 0) == 0);
    REQUIRE(cuEventCreate(&second, 0) == 0);
    REQUIRE(cuEventCreate(&untimed, 2) == 0);
    CHECK(cuEventQuery(first) == 0);
    CHECK(cuEventSynchronize(first) == 0);
    CHECK(cuEventElapsedTime_v2(&time, first, second) == 400);
    CHECK(cuEventRecord(nullptr, nullptr) == 400);
    CHECK(cuEventRecord(first, nullptr) == 0);
    CHECK(cuEventRecord(second, nullptr) == 0);
    CHECK(cuEventRecord(untimed, nullptr) == 0);
    CHECK(cuEventSynchronize(second) == 0);
    CHECK(cuEventElapsedTime_v2(&time, first, second) == 0);
    CHECK(time >= 0);
    CHECK(cuEventElapsedTime_v2(&time, first, untimed) == 400);
    CHECK(cuStreamWaitEvent(nullptr, nullptr, 0) == 400);
    CHECK(cuStreamWaitEvent(nullptr, first, 9) == 1);
    CHECK(cuEventDestroy_v2(first) == 0);
    CHECK(cuEventDestroy_v2(first) == 400);
    CHECK(cuEventDestroy_v2(second) == 0);
    CHECK(cuEventDestroy_v2(untimed) == 0);
}

namespace {

// Each thread has a word; in each round side 0 writes 2 * round + 1 to it and waits for the answer, side 1 the other way round.
const char* const talk_text = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry talk(.param .u64 words, .param .u32 side, .param .u32 rounds)
{
    .reg .b32 %side, %rounds, %mine, %other, %seen, %x, %y; .reg .b64 %a; .reg .pred %p;
    ld.param.u64 %a, [words]; ld.param.u32 %side, [side]; ld.param.u32 %rounds, [rounds];
    mov.u32 %x, %ctaid.x; mov.u32 %y, %ntid.x; mov.u32 %seen, %tid.x; mad.lo.u32 %x, %x, %y, %seen;
    mad.wide.u32 %a, %x, 4, %a;
    setp.ne.u32 %p, %side, 0; selp.u32 %mine, 2, 1, %p; selp.u32 %other, 1, 2, %p; shl.b32 %rounds, %rounds, 1;
    @%p bra LISTEN;
SAY:
    st.release.gpu.global.u32 [%a], %mine;
    setp.ne.u32 %p, %side, 0; @%p bra NEXT;
LISTEN:
    ld.acquire.gpu.global.u32 %seen, [%a];
    setp.ne.u32 %p, %seen, %other; @%p bra LISTEN;
    setp.ne.u32 %p, %side, 0; @%p bra SAY;
NEXT:
    add.u32 %mine, %mine, 2; add.u32 %other, %other, 2;
    setp.gt.u32 %p, %mine, %rounds; @%p bra DONE;
    setp.eq.u32 %p, %side, 0; @%p bra SAY; bra LISTEN;
DONE:
    ret;
}
)";

} // namespace

TEST_CASE("stream: two kernels talk to each other through memory") {
    driver_test::context();
    constexpr unsigned blocks = 3, threads = 70;
    unsigned rounds = 20, sides[] = {0, 1};
    CUmodule module = nullptr;
    CUfunction talk = nullptr;
    REQUIRE(cuModuleLoadData(&module, talk_text) == 0);
    REQUIRE(cuModuleGetFunction(&talk, module, "talk") == 0);
    CUdeviceptr words = 0;
    REQUIRE(cuMemAlloc_v2(&words, blocks * threads * 4) == 0);
    REQUIRE(cuMemsetD8_v2(words, 0, blocks * threads * 4) == 0);
    CUstream streams[2] = {};
    for (unsigned i = 0; i < 2; ++i) {
        REQUIRE(cuStreamCreate(&streams[i], 1) == 0);
        void* parameters[] = {&words, &sides[i], &rounds};
        REQUIRE(cuLaunchKernel(talk, blocks, 1, 1, threads, 1, 1, 0, streams[i], parameters, nullptr) == 0);
    }
    for (CUstream stream : streams) CHECK(cuStreamSynchronize(stream) == 0);
    std::vector<unsigned> values(blocks * threads);
    REQUIRE(cuMemcpyDtoH_v2(values.data(), words, values.size() * 4) == 0);
    for (unsigned value : values) CHECK(value == 2 * rounds);
    for (CUstream stream : streams) CHECK(cuStreamDestroy_v2(stream) == 0);
    CHECK(cuMemFree_v2(words) == 0);
    CHECK(cuModuleUnload(module) == 0);
}

TEST_CASE("stream: a host function that waits for its own stream is refused, where the driver would hang") {
    driver_test::context();
    struct State {
        CUstream stream = nullptr;
        CUresult result = -1;
    } state;
    REQUIRE(cuStreamCreate(&state.stream, 1) == 0);
    const auto wait = [](void* of) {
        auto& mine = *static_cast<State*>(of);
        mine.result = cuStreamSynchronize(mine.stream);
    };
    for (int i = 0; i < 4; ++i) { // by a thread of the library's, and soon by the one that waits
        state.result = -1;
        REQUIRE(cuLaunchHostFunc(state.stream, wait, &state) == 0);
        CHECK(cuStreamSynchronize(state.stream) == 0);
        CHECK(state.result == 800);
    }
    CHECK(cuStreamDestroy_v2(state.stream) == 0);
}
