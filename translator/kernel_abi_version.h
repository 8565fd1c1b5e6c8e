// SPDX-License-Identifier: Apache-2.0
// By itself, because everything includes kernel_abi.h and few ask for the number.
#pragma once

#include <cstdint>

namespace ptarmigan::abi {

/// Of what generated code and the runtime share (kernel_abi.h), and of what generated code does: part of the key of
/// the disk cache, and compared where the translator's library is loaded.
inline constexpr std::uint32_t kernel_abi_version = 34;

} // namespace ptarmigan::abi
