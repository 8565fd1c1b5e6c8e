// SPDX-License-Identifier: Apache-2.0
// Export tables as libcudart 11 to 13 and the libraries above it use them. A table is an array of 8-byte slots: its
// size in bytes, then functions. Slots that nothing was seen to call answer 801 and name themselves.
// What an H100's driver answers: tests/driver_api/answers/table_answers_h100.txt.
#include "runtime/shim/export_tables.h"

#include "runtime/base/log.h"
#include "runtime/context/context.h"
#include "runtime/context/current_context.h"
#include "runtime/context/green_context.h"
#include "runtime/device/device.h"
#include "runtime/module/module.h"
#include "runtime/shim/context_storage.h"
#include "runtime/shim/convert.h"
#include "runtime/shim/cudart_handshake.h"
#include "runtime/shim/driver_table.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image);

namespace ptarmigan::shim {
namespace {

using Slot = const void*;

/// `table`: the first four bytes of its id.
template <std::uint32_t table, std::size_t slot> int unknown_slot() {
    char name[64];
    std::snprintf(name, sizeof name, "slot %zu of cuGetExportTable's table %08x", slot, table);
    return report_unsupported(name, 801, nullptr);
}

template <class Function> Slot slot(Function* function) {
    return reinterpret_cast<const void*>(function);
}
Slot table_size(std::size_t slots) {
    return reinterpret_cast<const void*>(slots * sizeof(Slot));
}

// ---- 6bd5fb6c: the runtime's own interface ----

/// [2]: the primary context's handle, neither retained nor activated.
CUresult primary_context_handle(CUcontext* context, CUdevice device) {
    return entry([&] {
        if (!context) return Status::invalid_value;
        if (device < 0 || device >= runtime::Device::count()) return Status::invalid_device;
        *context = to_handle<CUcontext>(runtime::primary_context(device));
        return Status::success;
    });
}

/// [6]: the module of a program's fat binary in the current context, by which libcudart 11 loads. What the next two
/// arguments are for was not seen: they go with variables of the host that kernels see by name.
CUresult load_fat_binary(CUmodule* module, const void* wrapper, void* first, void* second, std::size_t) {
    if (first || second) return unknown_slot<0x6bd5fb6c, 6>();
    return cuModuleLoadFatBinary(module, wrapper);
}
/// [7]: libcudart 11 tells at its end which wrapper it lets go of; nothing is kept by wrapper here.
CUresult forget_fat_binary(const void*, std::size_t) {
    return 0;
}

/// [12]: libcudart from 13.1 on asks for a setting of the driver by its name. No name was found that the driver knows.
CUresult named_setting(void*, const char*) {
    return 0;
}

// ---- a094798c: hooks of profiling tools ----

// One word per runtime function; all zero: no tool wants calls. The runtime refuses fewer than 523
// and 14.
std::uint32_t tool_enables[0x400];
std::uint32_t tool_domains[14];

CUresult tool_callback_enables(void** words, std::size_t* count) {
    store(words, static_cast<void*>(tool_enables));
    store(count, std::size(tool_enables));
    return 0;
}
CUresult tool_domain_enables(void** words, std::size_t* count) {
    store(words, static_cast<void*>(tool_domains));
    store(count, std::size(tool_domains));
    return 0;
}

// ---- 42d85a81: the context as tools see it ----

/// [2]: the current context, or null.
CUresult current_context_handle(CUcontext* context) {
    store(context, reinterpret_cast<CUcontext>(runtime::current_context()));
    return 0;
}

// ---- 21318c60: what libraries ask of contexts and streams ----

/// [4]: whether there is such a context.
CUresult is_context(CUcontext context, std::uint64_t* answer) {
    store(answer, context ? 1u : 0u);
    return 0;
}

/// [51]: the object behind a stream handle; the numbers 0 to 2 stand for streams of `context`.
CUresult stream_object(CUcontext handle, CUstream stream, void** object) {
    return fenced([&] {
        if (!object) return Status::invalid_value;
        auto found = find_handle<runtime::Stream>(stream);
        if (!found) {
            auto context = find_handle<runtime::Context>(handle);
            if (!context || !context->active()) return Status::invalid_handle;
            const Status status = runtime::resolve_stream(*context, stream, false, found);
            if (status != Status::success) return Status::invalid_handle;
        }
        *object = found.get();
        return Status::success;
    });
}

/// [39]: the number of a stream, by its object.
CUresult stream_number(CUcontext handle, void* object, std::uint64_t* number) {
    return fenced([&] {
        auto stream = find_handle<runtime::Stream>(object);
        auto context = find_handle<runtime::Context>(handle);
        if (!stream && context && context->active()) // default streams are in no table
            for (const std::uintptr_t name : {stream_legacy, stream_per_thread})
                if (std::shared_ptr<runtime::Stream> found;
                    runtime::resolve_stream(*context, reinterpret_cast<void*>(name), false, found) == Status::success &&
                    found.get() == object)
                    stream = found;
        store(number, stream ? stream->id() : 0);
        return Status::success;
    });
}

// ---- 6e163fbe: a module's kernels without their names ----

/// [7]: calls `visit` with each kernel of a module; returns how many there are. So cuFFT, whose modules have one each,
/// finds it; it takes any other number than 1 for a failure. An H100's driver returned 1 for such a module.
int visit_functions(CUcontext, CUmodule handle, void (*visit)(void*, CUfunction), void* user) {
    int visited = 0;
    const CUresult result = fenced([&] {
        const auto module = find_handle<runtime::Module>(handle);
        if (!module || !visit) return Status::invalid_value;
        for (const auto& function : module->functions()) {
            visit(user, to_handle<CUfunction>(function));
            ++visited;
        }
        return Status::success;
    });
    return result == 0 ? visited : 0;
}

// ---- c693336e: values that the runtime keeps per context ----

CUresult storage_put(CUcontext context, void* key, void* value, ContextStorage::Destructor destructor) {
    return fenced([&] { return ContextStorage::get().put(context, key, value, destructor); });
}
CUresult storage_delete(CUcontext context, void* key) {
    return fenced([&] { return ContextStorage::get().remove(context, key); });
}
CUresult storage_get(void** value, CUcontext context, void* key) {
    return fenced([&] { return ContextStorage::get().find(value, context, key); });
}

// ---- 263e8860: checks of a context ----

/// [2]: libcudart 13.1 and later takes a context of the state 1 for a green one, and destroys only those.
CUresult context_check(CUcontext handle, std::uint32_t* state, const void** detail) {
    const auto context = find_handle<runtime::Context>(handle);
    store(state, context && context->green() ? 1u : 0u);
    if (detail) *detail = nullptr;
    return 0;
}
std::uint32_t context_check_at_init() {
    return 0;
}

// ---- f8cff951: the runtime's error log ----

/// [1], and [2] from libcudart 13.3 on.
void log_runtime_error() {} // the runtime reports the same error to its caller

// ---- d4082055: the validity check ----

const Slot* cudart_table();
const Slot* validity_table();

CUresult validity_check(std::uint32_t runtime_version, std::uint64_t unix_seconds, std::uint64_t* answer) {
    return fenced([&] {
        if (!answer) return Status::invalid_value;
        std::memset(answer, 0,
                    16); // a wrong answer makes the runtime report 103, its own code for this
        if (!handshake_enabled()) {
            runtime::log_once("handshake", "the validity check of NVIDIA's runtime library is not answered "
                                           "(PTARMIGAN_CUDART_HANDSHAKE): it will report error 103");
            return Status::success;
        }
        std::vector<HandshakeDevice> devices;
        for (int i = 0; i < runtime::Device::count(); ++i) {
            runtime::Device& device = runtime::Device::get(i);
            auto number = [&](int id) { return static_cast<std::uint32_t>(device.attribute(id).value_or(0)); };
            devices.push_back({device.uuid(), number(50), number(33), number(34)});
        }
        HandshakeInput input{};
        input.driver_version = driver_version;
        input.runtime_version = runtime_version;
        input.process = static_cast<std::uint32_t>(getpid());
        input.thread = static_cast<std::uint32_t>(pthread_self());
        input.cudart_table = reinterpret_cast<std::uint64_t>(cudart_table());
        input.check_table = reinterpret_cast<std::uint64_t>(validity_table());
        input.check_function = reinterpret_cast<std::uint64_t>(validity_table()[1]);
        input.unix_seconds = unix_seconds;
        std::array<std::uint64_t, 2> words{};
        if (!answer_handshake(input, devices, words)) {
            runtime::log_once("handshake version",
                              "CUDA runtime version " + std::to_string(runtime_version) +
                                  " asks for a validity check that is not known; it will report error 103");
            return Status::success;
        }
        std::memcpy(answer, words.data(), sizeof words);
        return Status::success;
    });
}

// ---- the tables ----

template <std::uint32_t table, std::size_t... index>
std::array<Slot, sizeof...(index)> unknown_slots(std::index_sequence<index...>) {
    return {slot(unknown_slot<table, index>)...};
}

/// A table of `count` slots with a leading size, all unknown but the named ones.
template <std::uint32_t table, std::size_t count>
std::array<Slot, count> sized_table(std::initializer_list<std::pair<std::size_t, Slot>> known = {}) {
    std::array<Slot, count> slots = unknown_slots<table>(std::make_index_sequence<count>());
    slots[0] = table_size(count);
    for (auto& [index, function] : known) slots[index] = function;
    return slots;
}

const auto error_log = sized_table<0xf8cff951, 3>({{1, slot(log_runtime_error)}, {2, slot(log_runtime_error)}});
const auto cudart = sized_table<0x6bd5fb6c, 13>({{2, slot(primary_context_handle)},
                                                 {6, slot(load_fat_binary)},
                                                 {7, slot(forget_fat_binary)},
                                                 {10, nullptr},
                                                 {12, slot(named_setting)}});
const auto tool_hooks = sized_table<0xa094798c, 7>({{2, slot(tool_callback_enables)}, {6, slot(tool_domain_enables)}});
const auto tool_contexts = sized_table<0x42d85a81, 3>({{2, slot(current_context_handle)}});
/// The one table without a size: it ends with a null pointer.
const std::array<Slot, 4> context_values = {slot(storage_put), slot(storage_delete), slot(storage_get), nullptr};
const auto context_checks = sized_table<0x263e8860, 15>({{2, slot(context_check)}, {3, slot(context_check_at_init)}});
const auto validity = sized_table<0xd4082055, 3>({{1, slot(validity_check)}});
const auto library_queries =
    sized_table<0x21318c60, 93>({{4, slot(is_context)}, {39, slot(stream_number)}, {51, slot(stream_object)}});
const auto module_queries = sized_table<0x6e163fbe, 99>({{7, slot(visit_functions)}});
/// cuBLASLt asks slot 4 of it for two objects where it chooses a product of f16, without asking whether there is a
/// table, and goes on without them: nothing that a user could do anything about. An H200's driver, whose table has 17
/// slots, makes two new ones at each call (3 before cuInit, 201 without a context); what they are for is not known.
CUresult blas_objects(void*, void*) {
    runtime::log(runtime::LogLevel::info, "cuBLASLt's question for two objects (table 1734dc26) has no answer");
    return 801;
}
const auto blas_queries = sized_table<0x1734dc26, 64>({{4, slot(blas_objects)}});

/// cuPTI tells its version, which JAX asks for, and the time only where this table is. What it calls in it when it is
/// to profile (slot 32 first) answers 801, and cuPTI says that to its caller.
const auto profiler = sized_table<0x7cb63f9b, 120>();

const Slot* cudart_table() {
    return cudart.data();
}
const Slot* validity_table() {
    return validity.data();
}

using TableId = std::array<unsigned char, 16>;

/// From 32 hexadecimal digits.
consteval TableId id(std::string_view digits) {
    const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    TableId result{};
    for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = static_cast<unsigned char>(value(digits[2 * i]) * 16 + value(digits[2 * i + 1]));
    return result;
}

struct TableRow {
    TableId id;
    const Slot* table;
};
const TableRow table_rows[] = {
    {id("f8cff95121468b4eb9e2fb469e7c0dd9"), error_log.data()},
    {id("6bd5fb6c5bf4e74a8987d93912fd9df9"), cudart.data()},
    {id("a094798c2e742e7493f20800200c0a66"), tool_hooks.data()},
    {id("42d85a8123f6cb478298f6e78a3aecdc"), tool_contexts.data()},
    {id("c693336e1121df11a8c368f355d89593"), context_values.data()},
    {id("263e88607cd2614392f6bbd5006dfa7e"), context_checks.data()},
    {id("d4082055bde6704b8d34ba123c66e1f2"), validity.data()},
    {id("21318c60971432488ca641ff7324c8f2"), library_queries.data()},
    {id("6e163fbeb958444d835ce182aff1991e"), module_queries.data()},
    {id("1734dc26800d47458726c0f1e7dd8bca"), blas_queries.data()},
    {id("7cb63f9b9ca48e42a484beb66e6aed7f"), profiler.data()},
    // da9151d3 (a cache of compiled code) is left out: NVRTC without it compiles, as does cuBLAS.
};

} // namespace

const void* find_export_table(const CUuuid& id) {
    for (const TableRow& row : table_rows)
        if (std::memcmp(row.id.data(), id.bytes, row.id.size()) == 0) return row.table;
    return nullptr;
}

void clear_context_storage(runtime::Context& context) {
    ContextStorage::get().clear(context);
}

} // namespace ptarmigan::shim
