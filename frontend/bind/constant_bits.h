// SPDX-License-Identifier: Apache-2.0
// Constants as written to the bits of a PTX type.
#pragma once

#include "frontend/parse/syntax.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ptarmigan::ptx {

/// The bits of `constant` as a value of `type`, zero-extended to 64; nothing if it can't be one
/// (then `why` says so).
std::optional<std::uint64_t> constant_bits(const Constant& constant, ScalarType type, std::string& why);

/// What becomes of a constant that is not of its vector's type.
enum class ElementRule : std::uint8_t {
    converted, ///< a double among .f32 elements is rounded, as elsewhere
    bits,      ///< its low 32 bits are taken
    fragment,  ///< likewise, and integers go with .f64, .tf32 and packed halves
};
/// Likewise as an element of a braced vector or an argument of a call, where ptxas takes real constants for integer
/// types too: as many of the constant's own bits as fit for .b32, .u32, .b64 and .u64, zero for the others. What a GPU
/// makes of each is in tests/recordings/constants_h100.txt.
std::optional<std::uint64_t> element_bits(const Constant& constant, ScalarType type, ElementRule rule,
                                          std::string& why);
/// Whether `bits` say another number than `constant` does in writing.
bool loses_value(const Constant& constant, ScalarType type, std::uint64_t bits);

} // namespace ptarmigan::ptx
