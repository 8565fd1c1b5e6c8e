// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/page_size.h"

#include <cstdlib>
#include <unistd.h>

namespace ptarmigan::runtime {

std::size_t page_size() {
    static const std::size_t size = [] {
        auto actual = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const char* text = std::getenv("PTARMIGAN_TEST_PAGE_SIZE");
        const std::size_t wanted = text ? std::strtoull(text, nullptr, 10) : 0;
        return wanted > actual && wanted % actual == 0 ? wanted : actual;
    }();
    return size;
}

std::size_t round_up_to_pages(std::size_t bytes) {
    return (bytes + page_size() - 1) / page_size() * page_size();
}

} // namespace ptarmigan::runtime
