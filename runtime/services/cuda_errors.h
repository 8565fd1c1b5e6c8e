// SPDX-License-Identifier: Apache-2.0
// Error codes of CUDA's runtime (cudaError_t) as device code sees them. Most numbers are the driver's.
#pragma once

#include "runtime/base/status.h"

namespace ptarmigan::runtime {

inline constexpr int cuda_error_invalid_memcpy_direction = 21, cuda_error_invalid_device_function = 98,
                     cuda_error_invalid_device = 101;

/// cudaError_t of a driver status.
constexpr int runtime_error(Status status) {
    switch (status) {
    case Status::not_initialized: return 3;
    case Status::unsupported_limit: return 215;
    default: return static_cast<int>(status);
    }
}

/// "cudaErrorInvalidValue" and "invalid argument"; "unrecognized error code" for numbers that are none.
const char* runtime_error_name(int error);
const char* runtime_error_text(int error);

} // namespace ptarmigan::runtime
