// SPDX-License-Identifier: Apache-2.0
// Constants as written to the bits of a PTX type.
#pragma once

#include "frontend/parse/syntax.h"

#include <optional>
#include <string>

namespace ptarmigan::ptx {

/// The bits of `constant` as a value of `type`, zero-extended to 64; nothing if it can't be one
/// (then `why` says so).
std::optional<std::uint64_t> constant_bits(const Constant& constant, ScalarType type, std::string& why);

} // namespace ptarmigan::ptx
