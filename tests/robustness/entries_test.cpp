// SPDX-License-Identifier: Apache-2.0
// Every implemented entry of driver_api.def with arguments that mean nothing: zeros, and addresses of
// memory that is no object of ours. A new row of the table is covered without a word here, unless it
// succeeds with zeros: then it belongs into `fine_with_zeros`.
#include "runtime/shim/driver_table.h"
#include "tests/driver_api/driver.h"

#include <sys/mman.h>

#include <array>
#include <cstring>
#include <random>
#include <set>

using namespace ptarmigan::shim;

namespace {

constexpr std::size_t most_arguments = 12;
using Arguments = std::array<std::uint64_t, most_arguments>;

/// Calls an entry of any signature: all parameters are integers, pointers or structs of one word.
int call(const DriverEntry& entry, const Arguments& a) {
    using Word = std::uint64_t;
    auto function = reinterpret_cast<int (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word,
                                             Word, Word, Word)>(entry.function);
    return function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
}

/// Zeroed memory at addresses that are also harmless as sizes and counts: one page per argument, and
/// far more behind them than the largest of these addresses.
class Scratch {
public:
    static constexpr std::uint64_t first = 0x100000, page = 0x1000, bytes = 0x1000000;
    Scratch() {
        REQUIRE(mmap(reinterpret_cast<void*>(first), bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                     0) == reinterpret_cast<void*>(first));
    }
    ~Scratch() { munmap(reinterpret_cast<void*>(first), bytes); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    void clear() { std::memset(reinterpret_cast<void*>(first), 0, 2 * most_arguments * page); }
    static std::uint64_t argument(std::size_t index) { return first + index * page; }
};

/// Entries that call a function given to them: scratch memory holds no code.
const std::set<std::string> callers{
    "cuLaunchHostFunc",      "cuLaunchHostFunc_ptsz", "cuLaunchHostFunc_v2",
    "cuLaunchHostFunc_v2_ptsz", "cuLogsRegisterCallback", "cuStreamAddCallback", "cuStreamAddCallback_ptsz"};

/// Entries for which zeros are arguments as good as any: queries without a result, nothing to copy, the
/// default stream, the first device. Base names: all versions and forms of an entry are alike in this.
const std::set<std::string> fine_with_zeros{
    // context and device
    "cuCtxGetStreamPriorityRange", "cuCtxPopCurrent", "cuCtxResetPersistingL2Cache",
    "cuCtxSetCacheConfig", "cuCtxSetCurrent", "cuCtxSetFlags", "cuCtxSetLimit",
    "cuCtxSetSharedMemConfig", "cuCtxSynchronize", "cuDevicePrimaryCtxRelease",
    "cuDeviceGraphMemTrim", "cuMemcpyPeer", "cuMemcpyPeerAsync",
    "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxSetFlags", "cuInit",
    "cuProfilerStart", "cuProfilerStop", "cuStreamCopyAttributes",
    // memory: freeing, copying or filling nothing
    "cuMemFree", "cuMemFreeAsync", "cuMemFreeHost", "cuMemGetInfo", "cuMemcpy", "cuMemcpyAsync",
    "cuMemcpyDtoD", "cuMemcpyDtoDAsync", "cuMemcpyDtoH", "cuMemcpyDtoHAsync", "cuMemcpyHtoD",
    "cuMemcpyHtoDAsync", "cuMemGetAddressRange", "cuMemcpyAtoA", "cuMemcpyAtoD", "cuMemcpyAtoH", "cuMemcpyAtoHAsync",
    "cuMemcpyDtoA", "cuMemcpyHtoA", "cuMemcpyHtoAAsync", "cuMemsetD8", "cuMemsetD16", "cuMemsetD32", "cuMemsetD2D8",
    "cuMemsetD2D16", "cuMemsetD2D32", "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async",
    "cuMemsetD2D8Async", "cuMemsetD2D16Async", "cuMemsetD2D32Async",
    // the default stream
    "cuStreamBatchMemOp", "cuStreamQuery", "cuStreamSynchronize",
    // objects that are none, as the NVIDIA driver has it
    "cuSurfObjectDestroy", "cuTexObjectDestroy"};

/// Makes whatever a call may have taken away available again.
void restore() {
    CUcontext context = nullptr;
    REQUIRE(cuDevicePrimaryCtxRetain(&context, 0) == 0);
    REQUIRE(cuCtxSetCurrent(context) == 0);
}

} // namespace

TEST_CASE("entries: without a context zeros are no crash either") {
    driver_test::context();
    for (const DriverEntry& entry : driver_entries()) {
        REQUIRE(cuCtxSetCurrent(nullptr) == 0);
        INFO(entry.export_name);
        CHECK(call(entry, {}) < 1000);
    }
    restore();
}

TEST_CASE("entries: zeros are refused") {
    driver_test::context();
    for (const DriverEntry& entry : driver_entries()) {
        if (!entry.implemented)
            continue;
        // Zeros are the thread's own stream there, which may be captured, where the legacy one may not.
        if (std::strstr(entry.export_name, "Capture_ptsz") || std::strstr(entry.export_name, "Capture_v2_ptsz")) continue;
        restore();
        INFO(entry.export_name);
        const int result = call(entry, {});
        CHECK((result == 0) == (fine_with_zeros.count(entry.base_name) == 1));
    }
}

TEST_CASE("entries: addresses of nothing in particular are survived") {
    driver_test::context();
    Scratch scratch;
    std::mt19937 random(20261121);
    for (const DriverEntry& entry : driver_entries()) {
        if (!entry.implemented || callers.count(entry.export_name))
            continue;
        for (unsigned round = 0; round < 40; ++round) {
            Arguments arguments{};
            const unsigned chosen = round == 0 ? ~0u : round <= 12 ? 1u << (round - 1) : random();
            for (std::size_t i = 0; i < arguments.size(); ++i)
                if (chosen >> i & 1)
                    arguments[i] = Scratch::argument(i);
            scratch.clear();
            restore();
            if (round % 10 == 9)
                REQUIRE(cuCtxSetCurrent(nullptr) == 0);
            INFO(entry.export_name << " " << std::hex << (chosen & 0xfff));
            const int result = call(entry, arguments);
            CHECK(result >= 0);
            CHECK(result < 1000);
        }
    }
    restore();
}
