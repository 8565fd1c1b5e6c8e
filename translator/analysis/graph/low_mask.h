// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ptarmigan::translator {

/// The lowest `bits` bits; all of them from 64 on.
constexpr std::uint64_t low_mask(unsigned bits) {
    return bits >= 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << bits) - 1;
}

} // namespace ptarmigan::translator
