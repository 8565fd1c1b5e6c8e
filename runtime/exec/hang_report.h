// SPDX-License-Identifier: Apache-2.0
// Who waits where, in words.
#pragma once

#include "runtime/exec/fiber_cta.h"

#include <functional>
#include <string>

namespace ptarmigan::runtime {

/// One line per group of neighbouring steps of `cta` that wait for the same thing at the same place, each beginning
/// with a line break; at most `most` lines. `place_of` turns a PTX line into "file:line".
std::string describe_waits(FiberCta& cta, const std::function<std::string(std::uint32_t)>& place_of, std::size_t most);

} // namespace ptarmigan::runtime
