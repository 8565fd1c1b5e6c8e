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

/// The name without its prefixes, or the only symbol.
struct DeviceRuntimeName {
    std::string_view name;
    bool is_symbol = false;
};
inline constexpr DeviceRuntimeName device_runtime_names[] = {
#define DEVICE_RUNTIME(name) {#name},
#define DEVICE_RUNTIME_AS(name, symbol) {symbol, true},
#include "frontend/ptx/device_runtime.def"
#undef DEVICE_RUNTIME
};

constexpr std::optional<DeviceRuntime> device_runtime_named(std::string_view name, bool is_symbol) {
    for (std::uint32_t i = 0; i < std::size(device_runtime_names); ++i)
        if (device_runtime_names[i].is_symbol == is_symbol && device_runtime_names[i].name == name)
            return DeviceRuntime(i);
    return std::nullopt;
}

/// The function that a declaration of this name means, if it is one of the device runtime's.
constexpr std::optional<DeviceRuntime> device_runtime_function(std::string_view name) {
    constexpr std::string_view prefixes[] = {"__cudaCDP2", "cuda"}, suffix = "_ptsz";
    if (const auto own = name.starts_with("__cuda") ? device_runtime_named(name, true) : std::nullopt) return own;
    for (std::string_view prefix : prefixes) {
        if (!name.starts_with(prefix)) continue;
        name.remove_prefix(prefix.size());
        if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
        return device_runtime_named(name, false);
    }
    return std::nullopt;
}

/// True for functions that a cooperative grid may call too: they ask the driver nothing. A cooperative launch of a
/// kernel that can come to another one is refused (H100: CUDA_ERROR_NOT_PERMITTED).
constexpr bool fits_cooperative_grids(DeviceRuntime function) {
    return function == DeviceRuntime::GetErrorName || function == DeviceRuntime::GetErrorString;
}

} // namespace ptarmigan::ptx
