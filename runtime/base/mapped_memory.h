// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace ptarmigan::runtime {

/// Whether all pages of the range are mapped: what tells the headers of an image in memory, whose size nobody gave,
/// from damaged ones. Mapped pages that are not readable pass.
bool is_mapped(const void* begin, std::size_t size);

} // namespace ptarmigan::runtime
