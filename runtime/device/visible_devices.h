// SPDX-License-Identifier: Apache-2.0
// Which devices CUDA_VISIBLE_DEVICES names, and in what order.
#pragma once

#include "runtime/base/status.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ptarmigan::runtime {

/// Indices into `uuids` of the devices that `list` names, in its order: by number, with anything that is no digit
/// behind it, or by "GPU-" (or "MIG-") and the beginning of a UUID in letters of either case that only one device has.
/// A list names devices in one of these ways, as its first entry does. The first entry that names none ends it;
/// no_device if that is the first one of all. invalid_device if a device is named twice. All that as the driver 580 of
/// one H100 and of two H200 answers.
Status find_visible_devices(std::string_view list, std::span<const std::array<std::uint8_t, 16>> uuids,
                            std::vector<int>& numbers);

} // namespace ptarmigan::runtime
