// SPDX-License-Identifier: Apache-2.0
// What CUDA_VISIBLE_DEVICES says of the one device.
#pragma once

#include "runtime/base/status.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace ptarmigan::runtime {

/// success if `list` begins with the device: its number, 0, with anything that is no digit behind it, or "GPU-" and the
/// beginning of its UUID in letters of either case. no_device otherwise, invalid_device if it is named by number twice.
/// "MIG-" names are of no device here. The rest as an H100's driver (580) answers; entries behind one that it does not
/// know do not count.
Status find_visible_device(std::string_view list, const std::array<std::uint8_t, 16>& uuid);

} // namespace ptarmigan::runtime
