// SPDX-License-Identifier: Apache-2.0
// Finding entries and export tables, and the names of error codes.
#include "runtime/shim/driver_table.h"
#include "runtime/shim/entry.h"
#include "runtime/shim/export_tables.h"

using namespace ptarmigan;
using namespace ptarmigan::shim;

namespace {

struct ErrorName {
    int code;
    const char* name;
    const char* text;
};
constexpr ErrorName error_names[] = {
#define ERROR(code, name, text) {code, #name, text},
#include "runtime/shim/error_names.def"
#undef ERROR
};

CUresult lookup_error(int code, const char** text, const char* ErrorName::*member) {
    if (!text) return static_cast<CUresult>(Status::invalid_value);
    *text = nullptr;
    for (const ErrorName& row : error_names)
        if (row.code == code) {
            *text = row.*member;
            return 0;
        }
    return static_cast<CUresult>(Status::invalid_value);
}

CUresult proc_address(const char* symbol, void** function, int version, std::uint64_t flags, int* result) {
    if (!symbol || !function || version > driver_version ||
        (flags & ~(proc_address_legacy_stream | proc_address_per_thread_stream)))
        return static_cast<CUresult>(Status::invalid_value);
    int outcome = symbol_unknown;
    const DriverEntry* found = find_entry(symbol, version, flags & proc_address_per_thread_stream, outcome);
    *function = found ? found->function : nullptr;
    store(result, outcome);
    return 0; // also for unknown names: the null pointer is the answer
}

} // namespace

PTM_API(cuGetProcAddress_v2, const char* symbol, void** function, int version, std::uint64_t flags, int* result) {
    return fenced([&] { return Status{proc_address(symbol, function, version, flags, result)}; });
}

PTM_API(cuGetProcAddress, const char* symbol, void** function, int version, std::uint64_t flags) {
    return fenced([&] { return Status{proc_address(symbol, function, version, flags, nullptr)}; });
}

PTM_API(cuGetExportTable, const void** table, const CUuuid* id) {
    return fenced([&] {
        if (!table || !id) return Status::invalid_value;
        *table = find_export_table(*id);
        return *table ? Status::success : Status::invalid_value;
    });
}

PTM_API(cuGetErrorName, int code, const char** name) {
    return lookup_error(code, name, &ErrorName::name);
}
PTM_API(cuGetErrorString, int code, const char** text) {
    return lookup_error(code, text, &ErrorName::text);
}
