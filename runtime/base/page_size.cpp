// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/page_size.h"

#include <bit>
#include <cstdlib>
#include <unistd.h>

namespace ptarmigan::runtime {

std::size_t page_size() {
    static const std::size_t size = [] {
        auto actual = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const char* text = std::getenv("PTARMIGAN_TEST_PAGE_SIZE");
        const std::size_t wanted = text ? std::strtoull(text, nullptr, 10) : 0;
        return wanted > actual && std::has_single_bit(wanted) ? wanted : actual;
    }();
    return size;
}

std::size_t round_up_to_pages(std::size_t bytes) {
    const std::size_t rest = page_size() - 1; // pages are powers of two, and this stands in the way of each launch
    return (bytes + rest) & ~rest;
}

} // namespace ptarmigan::runtime
