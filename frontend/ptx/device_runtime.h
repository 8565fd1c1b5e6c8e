// SPDX-License-Identifier: Apache-2.0
// Names of CUDA's device runtime: what kernels call to launch kernels (CUDA programming guide, dynamic parallelism).
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace ptarmigan::ptx {

/// One function of the device runtime, under whichever name it is declared.
enum class DeviceRuntime : std::uint32_t {
#define DEVICE_RUNTIME(name) name,
#include "frontend/ptx/device_runtime.def"
#undef DEVICE_RUNTIME
};

inline constexpr std::string_view device_runtime_names[] = {
#define DEVICE_RUNTIME(name) #name,
#include "frontend/ptx/device_runtime.def"
#undef DEVICE_RUNTIME
};

/// The function that a declaration of this name means, if it is one of the device runtime's.
constexpr std::optional<DeviceRuntime> device_runtime_function(std::string_view name) {
    constexpr std::string_view prefixes[] = {"__cudaCDP2", "cuda"}, suffix = "_ptsz";
    for (std::string_view prefix : prefixes) {
        if (!name.starts_with(prefix)) continue;
        name.remove_prefix(prefix.size());
        if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
        for (std::uint32_t i = 0; i < std::size(device_runtime_names); ++i)
            if (device_runtime_names[i] == name) return DeviceRuntime(i);
        return std::nullopt;
    }
    return std::nullopt;
}

} // namespace ptarmigan::ptx
