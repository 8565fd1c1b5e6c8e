// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/driver_table.h"

#include "runtime/device/device.h"
#include "runtime/shim/cuda_types.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <set>
#include <string>

using namespace ptarmigan::shim;

namespace {

std::string resolve(const char* name, int version, bool per_thread = false) {
    int result = -1;
    const DriverEntry* entry = find_entry(name, version, per_thread, result);
    if (entry)
        return entry->export_name;
    return result == symbol_unknown ? "unknown" : "too old";
}

} // namespace

TEST_CASE("driver table: names resolve by version, as the NVIDIA driver does it") {
    CHECK(resolve("cuMemAlloc", 2000) == "cuMemAlloc");
    CHECK(resolve("cuMemAlloc", 3010) == "cuMemAlloc");
    CHECK(resolve("cuMemAlloc", 3020) == "cuMemAlloc_v2");
    CHECK(resolve("cuMemAlloc", 13000) == "cuMemAlloc_v2");
    CHECK(resolve("cuGetProcAddress", 11030) == "cuGetProcAddress");
    CHECK(resolve("cuGetProcAddress", 12000) == "cuGetProcAddress_v2");
    CHECK(resolve("cuDevicePrimaryCtxRelease", 7000) == "cuDevicePrimaryCtxRelease");
    CHECK(resolve("cuCtxCreate", 11040) == "cuCtxCreate_v3");
    CHECK(resolve("cuCtxSynchronize", 13000) == "cuCtxSynchronize_v2");
    CHECK(resolve("cuLaunchHostFunc", 13000) == "cuLaunchHostFunc");
    CHECK(resolve("cuLaunchHostFunc", 13010) == "cuLaunchHostFunc_v2");
    CHECK(resolve("cuFuncGetParamCount", 13010) == "too old");
    CHECK(resolve("cuLibraryLoadData", 11000) == "too old");
    CHECK(resolve("cuInit", 1999) == "too old");
}

TEST_CASE("driver table: per-thread forms are taken on request only") {
    CHECK(resolve("cuLaunchKernel", 12000, true) == "cuLaunchKernel_ptsz");
    CHECK(resolve("cuLaunchKernel", 4000, true) == "too old");
    CHECK(resolve("cuLaunchKernel", 12000, false) == "cuLaunchKernel");
    CHECK(resolve("cuMemcpyHtoD", 12000, true) == "cuMemcpyHtoD_v2_ptds");
    CHECK(resolve("cuInit", 12000, true) == "cuInit");
}

TEST_CASE("driver table: unknown and suffixed names are not found") {
    CHECK(resolve("", 0) == "unknown");
    CHECK(resolve("cuNope", 12000) == "unknown");
    CHECK(resolve("cuMemAlloc_v2", 12000) == "unknown");
    CHECK(resolve("cuLaunchKernel_ptsz", 12000) == "unknown");
}

TEST_CASE("driver table: exports are distinct and have a function") {
    std::set<std::string> names;
    unsigned implemented = 0;
    for (const DriverEntry& entry : driver_entries()) {
        CHECK(names.insert(entry.export_name).second);
        CHECK(entry.function != nullptr);
        implemented += entry.implemented;
    }
    CHECK(names.size() == 725);
    CHECK(implemented > 400);
}

TEST_CASE("driver table: both default-stream forms of an entry have the same status") {
    std::map<std::string, bool> legacy;
    for (const DriverEntry& entry : driver_entries())
        if (entry.streams == EntryStreams::legacy)
            legacy[entry.export_name] = entry.implemented;
    for (const DriverEntry& entry : driver_entries()) {
        if (entry.streams != EntryStreams::per_thread)
            continue;
        std::string name = entry.export_name;
        name.resize(name.rfind("_pt"));
        INFO(entry.export_name);
        REQUIRE(legacy.count(name));
        CHECK(legacy[name] == entry.implemented);
    }
}

TEST_CASE("driver table: refused entries return their status, but before cuInit 3") {
    const auto call = [](const char* name) {
        for (const DriverEntry& entry : driver_entries())
            if (!entry.implemented && std::strcmp(entry.export_name, name) == 0)
                return reinterpret_cast<int (*)()>(entry.function)();
        return -1;
    };
    if (!ptarmigan::runtime::Device::initialized()) CHECK(call("cuGLGetDevices") == 3);
    REQUIRE(ptarmigan::runtime::Device::initialize() == ptarmigan::runtime::Status::success);
    CHECK(call("cuGLGetDevices") == 304);
    CHECK(call("cuProfilerInitialize") == 801);
    CHECK(call("cuMemAlloc") == 201);
}
