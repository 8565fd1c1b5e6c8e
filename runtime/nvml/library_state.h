// SPDX-License-Identifier: Apache-2.0
// What all entries of libnvidia-ml.so.1 share: who has called nvmlInit, and which handle is which device. Thread-safe.
#pragma once

#include "runtime/device/device.h"
#include "runtime/nvml/nvml_types.h"

#include <exception>
#include <string>

namespace ptarmigan::nvml {

enum Result : nvmlReturn_t {
    success = 0,
    uninitialized = 1,
    invalid_argument = 2,
    not_supported = 3,
    not_found = 6,
    insufficient_size = 7,
    timeout = 10,
    function_not_found = 13,
    version_mismatch = 25,
    unknown_error = 999,
};

void initialize();
/// False if there were as many shutdowns as initialisations before.
bool shut_down();
bool is_initialized();

/// All devices of the model, whatever CUDA_VISIBLE_DEVICES says, in the order of their PCI bus ids.
unsigned device_count();
runtime::Device& device_at(unsigned index);
/// Handles are good until the process ends.
nvmlDevice_t handle_of(unsigned index);
/// False if it is no handle of ours.
bool index_of(nvmlDevice_t handle, unsigned& index);

/// "GPU-" and RFC 4122's form.
std::string uuid_text(const runtime::Device& device);

/// Copies a text with its end; insufficient_size where it doesn't fit.
nvmlReturn_t give_text(const std::string& text, char* place, unsigned size);

/// The log's: calls that fail at PTARMIGAN_LOG=info.
nvmlReturn_t report(const char* entry, nvmlReturn_t result);

/// An entry that needs no device. Exceptions stay inside.
template <class Body> nvmlReturn_t entry(const char* name, Body&& body) {
    try {
        return report(name, is_initialized() ? static_cast<nvmlReturn_t>(body()) : uninitialized);
    } catch (const std::exception&) {
        return report(name, unknown_error);
    }
}

/// An entry of a device: body(Device&, index).
template <class Body> nvmlReturn_t device_entry(const char* name, nvmlDevice_t handle, Body&& body) {
    return entry(name, [&]() -> nvmlReturn_t {
        unsigned index = 0;
        if (!index_of(handle, index)) return invalid_argument;
        return body(device_at(index), index);
    });
}

/// An answer of one number.
template <class Number, class Value> nvmlReturn_t give(Number* place, Value value) {
    if (!place) return invalid_argument;
    *place = static_cast<Number>(value);
    return success;
}

} // namespace ptarmigan::nvml

#define PTM_NVML extern "C" __attribute__((visibility("default"))) nvmlReturn_t
