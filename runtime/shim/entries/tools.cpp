// SPDX-License-Identifier: Apache-2.0
// What debuggers, profilers and managers of processes ask: core dumps, checkpoints, notifications. Codes are an H100's
// (tests/driver_api/answers/other_answers_h100.txt).
#include "runtime/base/log.h"
#include "runtime/device/process_lock.h"
#include "runtime/shim/convert.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unistd.h>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::Device;

namespace {

/// CUcoredumpSettings.
enum CoreDumpSetting : int {
    on_exception = 1,
    trigger_host = 2,
    lightweight = 3,
    user_trigger = 4,
    dump_file = 5,
    dump_pipe = 6,
    generation_flags = 7
};

/// What is kept of core dumps, which are not written: a fault is reported on stderr (runtime/README.md, Faults).
struct CoreDumpSettings {
    std::array<bool, 5> flags{false, false, true, false, false}; ///< by on_exception to user_trigger
    std::string file, pipe;
    int generation = 0;
};

std::mutex settings_mutex; ///< guards what follows
CoreDumpSettings& global_settings() {
    static auto& settings = *new CoreDumpSettings;
    return settings;
}
std::map<std::uint64_t, CoreDumpSettings>& context_settings() { // by Context::id()
    static auto& settings = *new std::map<std::uint64_t, CoreDumpSettings>;
    return settings;
}

CoreDumpSettings& settings_of(const Context& context) {
    return context_settings().try_emplace(context.id(), global_settings()).first->second;
}

/// In file names of all contexts the driver writes the process's number for "%p" at once.
std::string with_process(std::string name) {
    if (const std::size_t at = name.find("%p"); at != std::string::npos) name.replace(at, 2, std::to_string(getpid()));
    return name;
}

Status get_text(const std::string& text, void* value, std::size_t size) {
    std::memset(value, 0, size);
    if (size != 0) std::memcpy(value, text.data(), std::min(text.size(), size - 1));
    return Status::success;
}

Status get_setting(const CoreDumpSettings& settings, int setting, void* value, const std::size_t* size) {
    if (!value || !size) return Status::invalid_value;
    switch (setting) {
    case dump_file: return get_text(settings.file, value, *size);
    case dump_pipe: return get_text(settings.pipe, value, *size);
    case generation_flags:
        if (*size != sizeof settings.generation) return Status::invalid_value;
        std::memcpy(value, &settings.generation, sizeof settings.generation);
        return Status::success;
    default:
        if (setting < on_exception || setting > user_trigger || *size != 1) return Status::invalid_value;
        *static_cast<char*>(value) = settings.flags[static_cast<std::size_t>(setting)];
        return Status::success;
    }
}

Status set_setting(CoreDumpSettings& settings, int setting, const void* value, const std::size_t* size) {
    if (!value || !size) return Status::invalid_value;
    const auto* const bytes = static_cast<const char*>(value);
    switch (setting) {
    case dump_file:
    case dump_pipe: {
        constexpr std::size_t longest = 1024;
        if (*size > longest) return Status::invalid_value;
        (setting == dump_file ? settings.file : settings.pipe) = std::string(bytes, strnlen(bytes, *size));
        return Status::success;
    }
    case generation_flags:
        if (*size != sizeof settings.generation) return Status::invalid_value;
        std::memcpy(&settings.generation, value, sizeof settings.generation);
        return Status::success;
    default:
        if (setting < on_exception || setting > user_trigger || *size != 1) return Status::invalid_value;
        settings.flags[static_cast<std::size_t>(setting)] = *bytes != 0;
        if (setting == on_exception && *bytes)
            runtime::log_once("core dump",
                              "core dumps of kernels are not written; the report of a fault on stderr names "
                              "kernel, line, block and thread");
        return Status::success;
    }
}

/// What may be set and asked for one context: pipes are the process's.
bool is_of_contexts(int setting) {
    return setting != user_trigger && setting != dump_pipe;
}

/// A notification that somebody waits for; there is nothing to notify of.
struct Notification {};

/// No operation is native on a link; invalid_value for what is none.
Status give_no_capabilities(unsigned* capabilities, const int* operations, unsigned count) {
    constexpr int operation_count = 13;
    std::fill_n(capabilities, count, 0u);
    const bool known = std::all_of(operations, operations + count,
                                   [](int operation) { return operation >= 0 && operation < operation_count; });
    return known ? Status::success : Status::invalid_value;
}

} // namespace

PTM_API(cuCoredumpGetAttributeGlobal, int setting, void* value, std::size_t* size) {
    return entry([&] {
        std::lock_guard lock(settings_mutex);
        return get_setting(global_settings(), setting, value, size);
    });
}
PTM_API(cuCoredumpSetAttributeGlobal, int setting, void* value, std::size_t* size) {
    return entry([&] {
        std::lock_guard lock(settings_mutex);
        CoreDumpSettings& settings = global_settings();
        const Status status = set_setting(settings, setting, value, size);
        settings.file = with_process(settings.file);
        settings.pipe = with_process(settings.pipe);
        return status;
    });
}
PTM_API(cuCoredumpGetAttribute, int setting, void* value, std::size_t* size) {
    PTM_REQUIRE(value && size);
    return context_entry([&](Context& context) {
        std::lock_guard lock(settings_mutex);
        return is_of_contexts(setting) ? get_setting(settings_of(context), setting, value, size)
                                       : Status::invalid_value;
    });
}
PTM_API(cuCoredumpSetAttribute, int setting, void* value, std::size_t* size) {
    PTM_REQUIRE(value && size);
    return context_entry([&](Context& context) {
        std::lock_guard lock(settings_mutex);
        return is_of_contexts(setting) ? set_setting(settings_of(context), setting, value, size)
                                       : Status::invalid_value;
    });
}

// ---- checkpoints ----
// A process's memory is its own, so the system's means (CRIU) take it whole; what is left to do is to keep its calls
// waiting, those that begin behind the lock. No call here needs cuInit; the other process has to have called it
// (tests/driver_api/answers/checkpoint_answers_h200.txt).

namespace {

/// From one state to another. `storage`: the caller's own place for the memory.
CUresult change(int pid, runtime::ProcessState from, runtime::ProcessState to, const void* storage = nullptr) {
    return fenced([&] {
        if (!storage) return runtime::change_process_state(pid, from, to);
        runtime::log_once("checkpoint storage", "checkpoints with storage of the caller's are not supported");
        return Status::not_supported;
    });
}

} // namespace

PTM_API(cuCheckpointProcessGetState, int pid, int* state) {
    PTM_REQUIRE(state);
    return fenced([&] {
        runtime::ProcessState now{};
        const Status status = runtime::process_state(pid, now);
        if (status == Status::success) *state = static_cast<int>(now);
        return status;
    });
}
PTM_API(cuCheckpointProcessGetRestoreThreadId, int pid, int* thread) {
    PTM_REQUIRE(thread);
    return fenced([&] {
        runtime::ProcessState now{};
        const Status status = runtime::process_state(pid, now);
        if (status == Status::success) *thread = pid; // nothing is restored by a thread of its own: its first
        return status;
    });
}
PTM_API(cuCheckpointProcessLock, int pid, void*) {
    return change(pid, runtime::ProcessState::running, runtime::ProcessState::locked); // at once: no time runs out
}
PTM_API(cuCheckpointProcessCheckpoint, int pid, const CUcheckpointCheckpointArgs* arguments) {
    return change(pid, runtime::ProcessState::locked, runtime::ProcessState::checkpointed,
                  arguments ? arguments->customStorageInfo_out : nullptr);
}
PTM_API(cuCheckpointProcessRestore, int pid, const CUcheckpointRestoreArgs* arguments) {
    if (arguments && arguments->gpuPairs)
        for (unsigned i = 0; i < arguments->gpuPairsCount; ++i)
            if (std::memcmp(&arguments->gpuPairs[i].oldUuid, &arguments->gpuPairs[i].newUuid, sizeof(CUuuid)) != 0)
                return fenced([] {
                    runtime::log_once("checkpoint devices", "a process can't be restored onto other devices");
                    return Status::not_supported;
                });
    return change(pid, runtime::ProcessState::checkpointed, runtime::ProcessState::locked,
                  arguments ? arguments->customStorageInfo_out : nullptr);
}
PTM_API(cuCheckpointProcessUnlock, int pid, void*) {
    return change(pid, runtime::ProcessState::locked, runtime::ProcessState::running);
}

PTM_API(cuDeviceRegisterAsyncNotification, CUdevice device, void* function, void*, void** handle) {
    return entry([&] {
        if (device < 0 || device >= Device::count()) return Status::invalid_device;
        if (!function || !handle) return Status::invalid_value;
        auto notification = std::make_shared<Notification>();
        runtime::HandleTable<Notification>::get().add(notification);
        *handle = notification.get();
        return Status::success;
    });
}
PTM_API(cuDeviceUnregisterAsyncNotification, CUdevice device, void* handle) {
    return entry([&] {
        if (device < 0 || device >= Device::count()) return Status::invalid_device;
        return runtime::HandleTable<Notification>::get().remove(handle) ? Status::success : Status::invalid_value;
    });
}

PTM_API(cuDeviceGetHostAtomicCapabilities, unsigned* capabilities, const int* operations, unsigned count,
        CUdevice device) {
    return entry([&] { // what a link does natively: nothing over PCIe, and an H100 says so
        if (!capabilities || !operations || count == 0) return Status::invalid_value;
        if (device < 0 || device >= Device::count()) return Status::invalid_device;
        return give_no_capabilities(capabilities, operations, count);
    });
}
PTM_API(cuDeviceGetP2PAtomicCapabilities, unsigned* capabilities, const int* operations, unsigned count,
        CUdevice source, CUdevice peer) {
    return entry([&] { // an H200's behind NVLink, though atomics of peers work there as here
        if (!capabilities || !operations || count == 0) return Status::invalid_value;
        const auto valid = [](CUdevice device) { return device >= 0 && device < Device::count(); };
        if (!valid(source) || !valid(peer) || source == peer) return Status::invalid_device;
        return give_no_capabilities(capabilities, operations, count);
    });
}

PTM_API(cuCtxGetExecAffinity, int* affinity, int type) {
    return context_entry([&](Context&) {
        if (!affinity) return Status::invalid_value;
        if (type != 0) return Status::unsupported_exec_affinity;
        affinity[0] = type; // a number of multiprocessors
        affinity[1] = static_cast<int>(Device::get().multiprocessors());
        return Status::success;
    });
}
