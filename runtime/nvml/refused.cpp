// SPDX-License-Identifier: Apache-2.0
// The bodies of the rows of nvml_api.def that have none of their own.
#include "runtime/base/log.h"
#include "runtime/nvml/library_state.h"

#include <string>

namespace ptarmigan::nvml {
namespace {

enum class Sound { loud, quiet };

nvmlReturn_t refuse(const char* name, bool device_first, nvmlDevice_t handle, const char* why, Sound sound) {
    return entry(name, [&]() -> nvmlReturn_t {
        unsigned index = 0;
        if (device_first && !index_of(handle, index)) return invalid_argument;
        if (sound == Sound::loud || runtime::log_enabled(runtime::LogLevel::info))
            runtime::log_once(name, std::string(name) + " is not supported: " + why);
        return not_supported;
    });
}

constexpr bool device = true, other = false;

} // namespace
} // namespace ptarmigan::nvml

#define IMPLEMENTED(name)
#define ABSENT(name, first, why)                                                                                       \
    PTM_NVML name(nvmlDevice_t handle) {                                                                               \
        return ptarmigan::nvml::refuse(#name, ptarmigan::nvml::first, handle, why, ptarmigan::nvml::Sound::quiet);     \
    }
#define REFUSED(name, first, why)                                                                                      \
    PTM_NVML name(nvmlDevice_t handle) {                                                                               \
        return ptarmigan::nvml::refuse(#name, ptarmigan::nvml::first, handle, why, ptarmigan::nvml::Sound::loud);      \
    }
#include "runtime/nvml/nvml_api.def"
#undef IMPLEMENTED
#undef ABSENT
#undef REFUSED
