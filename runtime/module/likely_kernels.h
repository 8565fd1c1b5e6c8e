// SPDX-License-Identifier: Apache-2.0
// Kernels of a text that are compiled ahead of their first launch, on CPUs that have nothing else to do.
#pragma once

#include "runtime/module/launch_forecast.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace ptarmigan::runtime {

class ModuleSource;

/// Where a kernel had to be compiled, those behind it in the text that LaunchForecast expects follow. Only kernels that
/// declare the shape of their blocks can be compiled ahead. Goes on while enough of what it compiled is launched.
/// Thread-safe.
class LikelyKernels {
public:
    /// Kernel `index` of `source`, to which this belongs, is launched for the first time and has to be compiled.
    void compile_behind(ModuleSource& source, std::uint32_t index);
    /// It is launched for the first time.
    void note_launch(ModuleSource& source, std::uint32_t index);

private:
    enum class State : std::uint8_t { unknown, queued, begun, compiled, launched };
    void compile(ModuleSource& source, std::uint32_t index);
    /// Under mutex_: false where the text has so many kernels that few are launched.
    bool prepare(ModuleSource& source);

    std::mutex mutex_;                       ///< guards what follows
    std::optional<LaunchForecast> forecast_; ///< made when first asked
    std::vector<State> states_;              ///< by kernel
};

} // namespace ptarmigan::runtime
