// SPDX-License-Identifier: Apache-2.0
// Functions that device code declares and the runtime has: nothing needs to define them.
#pragma once

#include "frontend/ptx/device_library.h"
#include "frontend/ptx/device_runtime.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace ptarmigan::ptx {

/// Each has a lowering in translator/lower/calls.cpp, which checks that against this list. Besides, the device
/// runtime's and the device library's.
inline constexpr std::string_view provided_functions[] = {"vprintf", "malloc", "free", "__assertfail"};

constexpr bool is_provided_function(std::string_view name) {
    return device_runtime_function(name) || is_device_library_function(name) ||
           std::find(std::begin(provided_functions), std::end(provided_functions), name) !=
               std::end(provided_functions);
}

} // namespace ptarmigan::ptx
