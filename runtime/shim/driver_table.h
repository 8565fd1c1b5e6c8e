// SPDX-License-Identifier: Apache-2.0
// driver_api.def as data: which entries exist, and which one a name, version and kind of default
// stream mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ptarmigan::shim {

/// Which default stream an export means.
enum class EntryStreams : std::uint8_t {
    plain,      ///< has no per-thread form
    legacy,     ///< the form for the legacy default stream
    per_thread, ///< the _ptsz/_ptds form
    export_only ///< cuGetProcAddress does not know it
};

/// One row of driver_api.def.
struct DriverEntry {
    const char* export_name;
    const char* base_name;
    int since;
    EntryStreams streams;
    bool implemented;
    void* function;
};

/// All rows, ordered by base name (strcmp), then version.
std::span<const DriverEntry> driver_entries();

/// What cuGetProcAddress_v2 answers. `symbol` may be empty, not null. Returns the entry or null,
/// and in `result` one of ProcAddressResult. The caller has checked `version` against
/// driver_version.
const DriverEntry* find_entry(const char* symbol, int version, bool per_thread_stream, int& result);

/// Says once per entry on stderr that it is not supported, and why (null: it is to come). Returns `code`.
int report_unsupported(const char* export_name, int code, const char* why);

} // namespace ptarmigan::shim
