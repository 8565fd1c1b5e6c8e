// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/module/fatbin.h"

namespace ptarmigan::runtime {

/// What a program's images are loaded by: device 0, PTARMIGAN_ACCEPT_NEWER_PTX, PTARMIGAN_MACHINE_CODE and
/// PTARMIGAN_PREFER. Thread-safe.
ImageOptions image_options_of_loads();

} // namespace ptarmigan::runtime
