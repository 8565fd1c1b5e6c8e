// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/image_options.h"

#include "runtime/base/env.h"
#include "runtime/device/device.h"
#include "runtime/device/device_profile.h"

namespace ptarmigan::runtime {

ImageOptions image_options_of_loads() {
    ImageOptions options;
    options.device_architecture = Device::get().compute_capability();
    options.accept_newer = env_flag(Env::accept_newer_ptx);
    options.prefers_sass = env_text(Env::prefer) == "sass";
    options.lifts = options.prefers_sass || env_flag(Env::machine_code);
    options.own_generation_only = chosen_profile() != nullptr;
    return options;
}

} // namespace ptarmigan::runtime
