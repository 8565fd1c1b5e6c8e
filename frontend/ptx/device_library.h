// SPDX-License-Identifier: Apache-2.0
// Functions of libcudadevrt that are code like any other: they come into a module that declares them and nothing
// defines them, as PTX.
#pragma once

#include <string_view>

namespace ptarmigan::ptx {

/// Groups of threads by handle (cuda_device_runtime_api.h): what cooperative_groups was made of before CUDA 11, and
/// compilers other than nvcc call.
inline constexpr std::string_view device_library_functions[] = {
    "cudaCGGetIntrinsicHandle", "cudaCGGetSize", "cudaCGGetRank", "cudaCGSynchronize", "cudaCGSynchronizeGrid",
};

constexpr bool is_device_library_function(std::string_view name) {
    for (std::string_view function : device_library_functions)
        if (function == name) return true;
    return false;
}

/// Definitions of all of them, in PTX of version 3.1 and later.
extern const std::string_view device_library_text;

} // namespace ptarmigan::ptx
