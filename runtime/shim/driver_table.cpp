// SPDX-License-Identifier: Apache-2.0
// Makes the table from driver_api.def, and the bodies of its unsupported entries.
#include "runtime/shim/driver_table.h"

#include "runtime/device/device.h"
#include "runtime/shim/cuda_types.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace ptarmigan::shim {

/// What an entry without a body of its own does: before cuInit as all others do, then report_unsupported().
static int refuse(const char* export_name, int code, const char* why) {
    constexpr int not_initialized = 3;
    return runtime::Device::initialized() ? report_unsupported(export_name, code, why) : not_initialized;
}

} // namespace ptarmigan::shim

// Implemented entries are declared without their parameters: only their addresses are taken here.
#define IMPLEMENTED(name, base, since, streams) extern "C" int name();
#define UNSUPPORTED(name, base, since, streams)                                                                        \
    extern "C" __attribute__((visibility("default"))) int name() {                                                     \
        return ptarmigan::shim::refuse(#name, 801, nullptr);                                                           \
    }
#define REFUSED(name, base, since, streams, code, why)                                                                 \
    extern "C" __attribute__((visibility("default"))) int name() {                                                     \
        return ptarmigan::shim::refuse(#name, code, why);                                                              \
    }
#include "runtime/shim/driver_api.def"
#undef IMPLEMENTED
#undef UNSUPPORTED
#undef REFUSED

namespace ptarmigan::shim {
namespace {

bool name_less(const DriverEntry& a, const DriverEntry& b) {
    int order = std::strcmp(a.base_name, b.base_name);
    return order != 0 ? order < 0 : a.since < b.since;
}

std::vector<DriverEntry> make_entries() {
#define IMPLEMENTED(name, base, since, streams)                                                                        \
    {#name, #base, since, EntryStreams::streams, true, reinterpret_cast<void*>(&::name)},
#define UNSUPPORTED(name, base, since, streams)                                                                        \
    {#name, #base, since, EntryStreams::streams, false, reinterpret_cast<void*>(&::name)},
#define REFUSED(name, base, since, streams, code, why) UNSUPPORTED(name, base, since, streams)
    std::vector<DriverEntry> entries = {
#include "runtime/shim/driver_api.def"
    };
#undef IMPLEMENTED
#undef UNSUPPORTED
#undef REFUSED
    std::stable_sort(entries.begin(), entries.end(), name_less);
    return entries;
}

} // namespace

std::span<const DriverEntry> driver_entries() {
    static const auto& entries =
        *new std::vector<DriverEntry>(make_entries()); // never destroyed: used from exit handlers
    return entries;
}

const DriverEntry* find_entry(const char* symbol, int version, bool per_thread_stream, int& result) {
    auto entries = driver_entries();
    DriverEntry key{nullptr, symbol, 0, EntryStreams::plain, false, nullptr};
    const DriverEntry* best = nullptr;
    result = symbol_unknown;
    for (auto row = std::lower_bound(entries.begin(), entries.end(), key, name_less);
         row != entries.end() && std::strcmp(row->base_name, symbol) == 0; ++row) {
        if (row->streams == EntryStreams::export_only) continue;
        result = symbol_version_too_low;
        EntryStreams other_form = per_thread_stream ? EntryStreams::legacy : EntryStreams::per_thread;
        if (row->streams != other_form && row->since <= version) best = &*row;
    }
    if (best) result = symbol_found;
    return best;
}

int report_unsupported(const char* export_name, int code, const char* why) {
    static std::mutex mutex;
    static auto& named = *new std::set<std::string>;
    std::lock_guard lock(mutex);
    if (named.insert(export_name).second)
        std::fprintf(stderr, "ptarmigan: %s is not supported%s%s\n", export_name, why ? ": " : "", why ? why : "");
    return code;
}

} // namespace ptarmigan::shim
