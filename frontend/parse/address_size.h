// SPDX-License-Identifier: Apache-2.0
// Whether a text asks for 32-bit addresses, which no device of today has.
#pragma once

#include <string_view>

namespace ptarmigan::ptx {

/// The text says `.address_size 32`. Without the directive the driver's compiler takes 64.
bool declares_32_bit_addresses(std::string_view text);

} // namespace ptarmigan::ptx
