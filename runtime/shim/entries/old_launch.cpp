// SPDX-License-Identifier: Apache-2.0
// Launches of CUDA 2 and 3: shape, shared memory and parameters are set beforehand, one call each, and stay for the
// next launch. What an H100's driver answers: tests/driver_api/answers/code_answers_h100.txt.
#include "runtime/launch/launch.h"
#include "runtime/shim/convert.h"

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::Function;

namespace {

constexpr std::size_t most_parameters = 32764; ///< bytes

/// What has been set for a function.
struct Preset {
    std::array<std::uint32_t, 3> block{1, 1, 1};
    std::uint32_t dynamic_shared = 0;
    std::size_t parameter_size = 0;
    std::vector<std::uint8_t> parameters; ///< as far as written
};

/// Of all functions. Thread-safe.
class Presets {
public:
    static Presets& get() {
        static auto* presets = new Presets; // never destroyed: programs call in from their exit handlers
        return *presets;
    }
    template <class Edit> void edit(const std::shared_ptr<Function>& function, Edit&& change) {
        std::lock_guard lock(mutex_);
        Entry& entry = entries_[function.get()];
        if (entry.function.expired()) entry = {function, {}}; // none, or of an unloaded function at this address
        change(entry.preset);
    }
    Preset of(const std::shared_ptr<Function>& function) {
        Preset preset;
        edit(function, [&](const Preset& set) { preset = set; });
        return preset;
    }

private:
    struct Entry {
        std::weak_ptr<Function> function;
        Preset preset;
    };
    std::mutex mutex_;
    std::unordered_map<const Function*, Entry> entries_;
};

/// context_entry() for calls on a function of the current context: body(const std::shared_ptr<Function>&).
template <class Body> CUresult preset_entry(CUfunction handle, Body&& body) {
    return context_entry([&](Context& context) {
        const auto function = find_handle<Function>(handle);
        if (!function || &function->module().context() != &context) return Status::invalid_handle;
        return body(function);
    });
}

/// preset_entry() for calls that only set: edit(Preset&).
template <class Edit> CUresult set(CUfunction handle, Edit&& edit) {
    return preset_entry(handle, [&](const std::shared_ptr<Function>& function) {
        Presets::get().edit(function, edit);
        return Status::success;
    });
}

CUresult set_parameter(CUfunction handle, int offset, const void* value, std::size_t size) {
    return preset_entry(handle, [&](const std::shared_ptr<Function>& function) {
        if (offset < 0 || static_cast<std::size_t>(offset) + size > most_parameters || (size && !value))
            return Status::invalid_value;
        if (size == 0) return Status::success;
        Presets::get().edit(function, [&](Preset& preset) {
            const std::size_t end = static_cast<std::size_t>(offset) + size;
            if (preset.parameters.size() < end) preset.parameters.resize(end);
            std::memcpy(preset.parameters.data() + offset, value, size);
        });
        return Status::success;
    });
}

CUresult launch_preset(CUfunction handle, int width, int height, CUstream stream) {
    return preset_entry(handle, [&](const std::shared_ptr<Function>& function) {
        if (width <= 0 || height <= 0) return Status::invalid_value;
        Context& context = function->module().context();
        std::shared_ptr<runtime::Stream> queue;
        const Status status = runtime::resolve_stream(context, stream, false, queue);
        if (status != Status::success) return status;
        if (&queue->context() != &context) return Status::invalid_handle;
        Preset preset = Presets::get().of(function);
        if (preset.parameter_size > function->kernel().parameters().size) return Status::launch_out_of_resources;
        runtime::LaunchConfig config;
        config.grid = {static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), 1};
        config.block = preset.block;
        config.dynamic_shared = preset.dynamic_shared;
        preset.parameters.resize(std::max<std::size_t>(preset.parameter_size, 1));
        void* extra[] = {reinterpret_cast<void*>(1), preset.parameters.data(), reinterpret_cast<void*>(2),
                         &preset.parameter_size, nullptr};
        return runtime::launch(*function, config, *queue, nullptr, extra);
    });
}

} // namespace

PTM_API(cuFuncSetBlockShape, CUfunction function, int x, int y, int z) {
    return preset_entry(function, [&](const std::shared_ptr<Function>& found) {
        if (x <= 0 || y <= 0 || z <= 0 || x > 1024 || y > 1024 || z > 64 || x * y > 1024 || x * y * z > 1024)
            return Status::invalid_value;
        Presets::get().edit(found, [&](Preset& preset) {
            preset.block = {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
                            static_cast<std::uint32_t>(z)};
        });
        return Status::success;
    });
}
PTM_API(cuFuncSetSharedSize, CUfunction function, unsigned bytes) {
    return preset_entry(function, [&](const std::shared_ptr<Function>& found) {
        const runtime::KernelFacts* facts = nullptr;
        if (const Status status = found->kernel().facts(facts); status != Status::success) return status;
        if (bytes > found->kernel().max_dynamic_shared(*facts)) return Status::invalid_value;
        Presets::get().edit(found, [&](Preset& preset) { preset.dynamic_shared = bytes; });
        return Status::success;
    });
}

PTM_API(cuParamSetSize, CUfunction function, unsigned bytes) {
    if (bytes > most_parameters) return preset_entry(function, [](const auto&) { return Status::invalid_value; });
    return set(function, [&](Preset& preset) { preset.parameter_size = bytes; });
}
PTM_API(cuParamSeti, CUfunction function, int offset, unsigned value) {
    return set_parameter(function, offset, &value, sizeof value);
}
PTM_API(cuParamSetf, CUfunction function, int offset, float value) {
    return set_parameter(function, offset, &value, sizeof value);
}
PTM_API(cuParamSetv, CUfunction function, int offset, void* value, unsigned size) {
    return set_parameter(function, offset, value, size);
}

PTM_API(cuLaunch, CUfunction function) {
    return launch_preset(function, 1, 1, nullptr);
}
PTM_API(cuLaunchGrid, CUfunction function, int width, int height) {
    return launch_preset(function, width, height, nullptr);
}
PTM_API(cuLaunchGridAsync, CUfunction function, int width, int height, CUstream stream) {
    return launch_preset(function, width, height, stream);
}
