// SPDX-License-Identifier: Apache-2.0
// Relocatable device code that a program brings: its translation units to one PTX text.
#pragma once

#include "runtime/module/fatbin.h"

#include <string>

namespace ptarmigan::runtime {

/// Links the units of an image into its `text`; does nothing if there are none. False, and `log`
/// says why, if they don't fit together. Functions that no unit defines stay declared: nvlink has
/// found them once (in libcudadevrt, say), and a kernel that calls one fails by name.
bool link_image(ImagePtx& image, std::string& log);

} // namespace ptarmigan::runtime
