// SPDX-License-Identifier: Apache-2.0
// The calls of current_context.cpp and the objects that they name.
#pragma once

#include "runtime/shim/cuda_types.h"
#include "runtime/shim/texture_types.h"

#include <functional>
#include <string>
#include <vector>

/// All in the primary context. What a call may destroy has an object of its own.
struct Objects {
    CUcontext context{};
    CUstream stream{}, spare_stream{};
    CUevent event{}, later{}, spare_event{};
    CUmodule module{}, spare_module{};
    CUfunction function{};
    CUlibrary library{}, spare_library{};
    CUkernel kernel{};
    CUmemoryPool pool{}, spare_pool{};
    CUdeviceptr memory{}, spare_memory{}, pooled{}, spare_pooled{}, managed{}, spare_managed{};
    void* host = nullptr;
    void* spare_host = nullptr;
    void* registered = nullptr;
    CUarray array{}, spare_array{};
    CUmipmappedArray mipmap{}, spare_mipmap{};
    CUtexObject texture{}, spare_texture{};
    CUsurfObject surface{}, spare_surface{};

    /// Makes them in the current context, or the primary one where none is; it is current afterwards. Waits for what
    /// it began.
    void prepare();
};

struct Call {
    std::string question;
    std::function<int()> make;
};

/// In an order that leaves what later calls need.
std::vector<Call> context_calls(Objects& objects);
