// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace ptarmigan::runtime {

/// The unit in which the system makes memory accessible: 4 KiB on x86-64; 4, 16 or 64 KiB on AArch64.
/// PTARMIGAN_TEST_PAGE_SIZE makes it appear larger, which works everywhere.
std::size_t page_size();

/// The next multiple of it.
std::size_t round_up_to_pages(std::size_t bytes);

} // namespace ptarmigan::runtime
