// SPDX-License-Identifier: Apache-2.0
// Green contexts: where their grids run, and what they share with the primary context.
#include "driver.h"

#include "runtime/shim/stream_types.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <vector>

extern "C" {
CUresult cuDeviceGetDevResource(CUdevice, CUdevResource*, int);
CUresult cuCtxGetDevResource(CUcontext, CUdevResource*, int);
CUresult cuGreenCtxGetDevResource(CUgreenCtx, CUdevResource*, int);
CUresult cuDevSmResourceSplitByCount(CUdevResource*, unsigned*, const CUdevResource*, CUdevResource*, unsigned, unsigned);
CUresult cuDevSmResourceSplit(CUdevResource*, unsigned, const CUdevResource*, CUdevResource*, unsigned,
                              CU_DEV_SM_RESOURCE_GROUP_PARAMS*);
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc*, CUdevResource*, unsigned);
CUresult cuGreenCtxCreate(CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned);
CUresult cuGreenCtxDestroy(CUgreenCtx);
CUresult cuCtxFromGreenCtx(CUcontext*, CUgreenCtx);
CUresult cuGreenCtxStreamCreate(CUstream*, CUgreenCtx, unsigned, int);
CUresult cuGreenCtxRecordEvent(CUgreenCtx, CUevent);
CUresult cuCtxWaitEvent(CUcontext, CUevent);
CUresult cuCtxRecordEvent(CUcontext, CUevent);
CUresult cuStreamGetCtx(CUstream, CUcontext*);
CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                                   void**);
CUresult cuStreamWaitValue32_v2(CUstream, CUdeviceptr, std::uint32_t, unsigned);
}

namespace {

const char* const text = ".version 8.0\n.target sm_90\n.address_size 64\n"
                         ".visible .entry where(.param .u64 p)\n{\n .reg .b64 a, i; .reg .b32 s, n, c;\n ld.param.u64 a, [p];\n"
                         " mov.u32 s, %smid;\n mov.u32 n, %nsmid;\n mov.u32 c, %ctaid.x;\n mul.wide.u32 i, c, 8;\n"
                         " add.s64 a, a, i;\n st.global.v2.u32 [a], {s, n};\n ret;\n}\n";

/// Two green contexts of 16 multiprocessors each.
struct Parts {
    CUgreenCtx green[2] = {};
    Parts() {
        driver_test::context();
        CUdevResource whole, parts[2];
        REQUIRE(cuDeviceGetDevResource(0, &whole, 1) == 0);
        unsigned count = 2;
        REQUIRE(cuDevSmResourceSplitByCount(parts, &count, &whole, nullptr, 0, 16) == 0);
        REQUIRE(count == 2);
        for (int i = 0; i < 2; ++i) {
            CUdevResourceDesc description = nullptr;
            REQUIRE(cuDevResourceGenerateDesc(&description, &parts[i], 1) == 0);
            REQUIRE(cuGreenCtxCreate(&green[i], description, 0, 1) == 0);
        }
    }
    ~Parts() {
        for (CUgreenCtx context : green) CHECK(cuGreenCtxDestroy(context) == 0);
    }
    CUstream stream(int i) const {
        CUstream made = nullptr;
        REQUIRE(cuGreenCtxStreamCreate(&made, green[i], 1, 0) == 0);
        return made;
    }
};

CUfunction where() {
    static CUfunction function = [] {
        CUmodule module = nullptr;
        CUfunction found = nullptr;
        REQUIRE(cuModuleLoadData(&module, text) == 0);
        REQUIRE(cuModuleGetFunction(&found, module, "where") == 0);
        return found;
    }();
    return function;
}

/// In whatever context is current.
CUdeviceptr allocate(std::size_t size) {
    CUdeviceptr memory = 0;
    REQUIRE(cuMemAlloc_v2(&memory, size) == 0);
    return memory;
}

/// The multiprocessors that a grid in `stream` claims to run on.
std::set<unsigned> places(CUstream stream) {
    constexpr unsigned blocks = 1000;
    CUdeviceptr memory = allocate(blocks * 8);
    void* arguments[] = {&memory};
    REQUIRE(cuLaunchKernel(where(), blocks, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr) == 0);
    REQUIRE(cuStreamSynchronize(stream) == 0);
    std::vector<unsigned> pairs(2 * blocks);
    REQUIRE(cuMemcpyDtoH_v2(pairs.data(), memory, blocks * 8) == 0);
    REQUIRE(cuMemFree_v2(memory) == 0);
    std::set<unsigned> sms;
    for (unsigned i = 0; i < blocks; ++i) sms.insert(pairs[2 * i]);
    CHECK(std::all_of(sms.begin(), sms.end(), [&](unsigned sm) { return sm < pairs[1]; }));
    return sms;
}

} // namespace

TEST_CASE("green contexts: grids run on their own multiprocessors") {
    Parts parts;
    CUstream streams[2] = {parts.stream(0), parts.stream(1)};
    const std::set<unsigned> first = places(streams[0]), second = places(streams[1]);
    CHECK(first.size() == 16);
    CHECK(second.size() == 16);
    for (unsigned sm : first) CHECK(second.count(sm) == 0);
    CHECK(places(nullptr).size() == 132);
    for (CUstream stream : streams) CHECK(cuStreamDestroy_v2(stream) == 0);
}

TEST_CASE("green contexts: memory, modules and streams are the primary context's") {
    const CUcontext primary = driver_test::context();
    Parts parts;
    CUcontext context = nullptr, now = nullptr;
    REQUIRE(cuCtxFromGreenCtx(&context, parts.green[0]) == 0);
    CHECK(context != primary);
    REQUIRE(cuCtxSetCurrent(context) == 0);
    REQUIRE(cuCtxGetCurrent(&now) == 0);
    CHECK(now == context);
    const CUdeviceptr memory = allocate(4096);
    CHECK(places(nullptr).size() == 16); // the default stream is the green context's
    CUstream stream = nullptr;
    REQUIRE(cuStreamCreate(&stream, 1) == 0);
    CHECK(places(stream).size() == 16);
    REQUIRE(cuStreamGetCtx(stream, &now) == 0);
    CHECK(now == context);
    CUdevResource resource;
    REQUIRE(cuCtxGetDevResource(context, &resource, 1) == 0);
    CHECK(resource.sm.smCount == 16);
    REQUIRE(cuCtxSetCurrent(primary) == 0);
    CHECK(places(nullptr).size() == 132);
    CHECK(places(stream).size() == 16);
    CHECK(cuMemFree_v2(memory) == 0);
    CHECK(cuStreamDestroy_v2(stream) == 0);
}

TEST_CASE("green contexts: events of all their streams") {
    const CUcontext primary = driver_test::context();
    Parts parts;
    CUstream streams[2] = {parts.stream(0), parts.stream(0)};
    void* flag = nullptr;
    REQUIRE(cuMemHostAlloc(&flag, 4096, 0) == 0);
    const std::atomic_ref<std::uint32_t> word(*static_cast<std::uint32_t*>(flag));
    word = 0;
    for (CUstream stream : streams) REQUIRE(cuStreamWaitValue32_v2(stream, reinterpret_cast<CUdeviceptr>(flag), 1, 1) == 0);
    CUevent event = nullptr, other = nullptr;
    REQUIRE(cuEventCreate(&event, 2) == 0);
    REQUIRE(cuEventCreate(&other, 2) == 0);
    REQUIRE(cuGreenCtxRecordEvent(parts.green[0], event) == 0);
    REQUIRE(cuGreenCtxRecordEvent(parts.green[1], other) == 0);
    CHECK(cuEventSynchronize(other) == 0); // nothing in that one
    CHECK(cuEventQuery(event) == 600);
    REQUIRE(cuCtxWaitEvent(primary, event) == 0);
    CUstream later = nullptr;
    REQUIRE(cuStreamCreate(&later, 1) == 0);
    REQUIRE(cuEventRecord(other, later) == 0); // of a stream that did not exist yet
    CHECK(cuEventQuery(other) == 600);
    word = 1;
    CHECK(cuEventSynchronize(other) == 0);
    CHECK(cuEventQuery(event) == 0);
    CHECK(cuCtxSynchronize() == 0);
    CHECK(cuStreamDestroy_v2(later) == 0);
    for (CUstream stream : streams) CHECK(cuStreamDestroy_v2(stream) == 0);
    CHECK(cuEventDestroy_v2(event) == 0);
    CHECK(cuEventDestroy_v2(other) == 0);
    CHECK(cuMemFreeHost(flag) == 0);
}

TEST_CASE("green: multiprocessors are split by what groups ask for") {
    driver_test::context();
    using Group = CU_DEV_SM_RESOURCE_GROUP_PARAMS;
    CUdevResource whole, rest, parts[2];
    REQUIRE(cuDeviceGetDevResource(0, &whole, 1) == 0);
    const unsigned all = whole.sm.smCount;
    REQUIRE(all >= 32);

    SECTION("two counts, and the rest") {
        Group groups[2] = {{16, 8}, {10, 2}};
        REQUIRE(cuDevSmResourceSplit(parts, 2, &whole, &rest, 0, groups) == 0);
        CHECK(parts[0].sm.smCount == 16);
        CHECK(parts[0].sm.smCoscheduledAlignment == 8);
        CHECK(parts[1].sm.smCount == 10);
        CHECK(rest.sm.smCount == all - 26);
        CUdevResourceDesc description = nullptr;
        CUgreenCtx green = nullptr;
        REQUIRE(cuDevResourceGenerateDesc(&description, &parts[1], 1) == 0);
        REQUIRE(cuGreenCtxCreate(&green, description, 0, 1) == 0);
        CUdevResource own;
        REQUIRE(cuGreenCtxGetDevResource(green, &own, 1) == 0);
        CHECK(own.sm.smCount == 10);
        CHECK(cuGreenCtxDestroy(green) == 0);
        Group once_more[1] = {{8, 2}}; // what is left is split again
        REQUIRE(cuDevSmResourceSplit(parts, 1, &rest, &rest, 0, once_more) == 0);
        CHECK(rest.sm.smCount == all - 34);
    }
    SECTION("a count of 0 is found out") {
        Group groups[2] = {{8, 4}, {0, 2, 0, 1}};
        REQUIRE(cuDevSmResourceSplit(parts, 2, &whole, &rest, 0, groups) == 0);
        CHECK(groups[1].smCount == (all - 8) / 2 * 2);
        CHECK(parts[1].sm.smCount == groups[1].smCount);
        CHECK(parts[1].sm.flags == 1);
        CHECK(rest.type == (all % 2 ? 1 : 0));
        Group own[1] = {}; // the device's own number stands as 0
        REQUIRE(cuDevSmResourceSplit(nullptr, 1, &whole, nullptr, 0, own) == 0);
        CHECK(own[0].coscheduledSmCount == 0);
        CHECK(own[0].smCount % 8 == 0);
        CHECK(own[0].smCount > 0);
        Group too_many[2] = {{0, 2, 0, 1}, {}}; // nothing is left for the second
        CHECK(cuDevSmResourceSplit(nullptr, 2, &whole, nullptr, 0, too_many) == 0);
        CHECK(too_many[1].smCount == 0);
        Group again[2] = {{0, 2, 0, 1}, {}};
        CHECK(cuDevSmResourceSplit(parts, 2, &whole, nullptr, 0, again) == 915);
        CHECK(again[0].smCount == 0); // unchanged
    }
    SECTION("what can't be") {
        const auto refuses = [&](Group group, int code) {
            CHECK(cuDevSmResourceSplit(parts, 1, &whole, nullptr, 0, &group) == code);
        };
        refuses({7, 2}, 1);
        refuses({12, 8}, 915);
        refuses({all + 2, 2}, 915);
        refuses({8, 3}, 1);
        refuses({8, 64}, 1);
        refuses({8, 2, 0, 2}, 915); // no locality domains
        refuses({8, 2, 0, 8}, 1);
        Group fine{8, 2}, more{8, 2};
        more.reserved[3] = 1;
        refuses(more, 1);
        CHECK(cuDevSmResourceSplit(parts, 1, &whole, nullptr, 1, &fine) == 1);
        CHECK(cuDevSmResourceSplit(parts, 0, &whole, nullptr, 0, &fine) == 1);
        CHECK(cuDevSmResourceSplit(parts, 1, nullptr, nullptr, 0, &fine) == 1);
        CHECK(cuDevSmResourceSplit(parts, 1, &whole, nullptr, 0, nullptr) == 1);
        CUdevResource none = whole;
        none.type = 0;
        CHECK(cuDevSmResourceSplit(parts, 1, &none, nullptr, 0, &fine) == 914);
    }
}

TEST_CASE("a green context as libcudart 13.1 and later makes and ends it: without flags, by its CUcontext") {
    driver_test::context();
    CUdevResource whole, part;
    unsigned count = 1;
    CUdevResourceDesc description = nullptr;
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    REQUIRE(cuDeviceGetDevResource(0, &whole, 1) == 0);
    REQUIRE(cuDevSmResourceSplitByCount(&part, &count, &whole, nullptr, 0, 16) == 0);
    REQUIRE(cuDevResourceGenerateDesc(&description, &part, 1) == 0);
    CHECK(cuGreenCtxCreate(&green, description, 0, 2) == 1);
    REQUIRE(cuGreenCtxCreate(&green, description, 0, 0) == 0);
    REQUIRE(cuCtxFromGreenCtx(&context, green) == 0);
    const auto by_context = reinterpret_cast<CUgreenCtx>(context);
    REQUIRE(cuGreenCtxStreamCreate(&stream, by_context, 1, 0) == 0);
    CHECK(cuStreamSynchronize(stream) == 0);
    CHECK(cuStreamDestroy_v2(stream) == 0);
    CHECK(cuGreenCtxDestroy(reinterpret_cast<CUgreenCtx>(driver_test::context())) != 0); // a primary one
    CHECK(cuGreenCtxDestroy(by_context) == 0);
    CHECK(cuGreenCtxDestroy(green) == 400);
    CHECK(cuGreenCtxDestroy(by_context) == 400);
}
