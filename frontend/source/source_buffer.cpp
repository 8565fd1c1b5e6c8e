// SPDX-License-Identifier: Apache-2.0
#include "frontend/source/source_buffer.h"

namespace ptarmigan::ptx {

SourceBuffer::SourceBuffer(std::string text, std::string name) : text_(std::move(text)), name_(std::move(name)) {
    while (!text_.empty() && text_.back() == '\0') text_.pop_back();
}

std::string_view SourceBuffer::line(std::uint32_t number) const {
    std::string_view rest = text_;
    for (std::uint32_t i = 1; i < number; ++i) {
        const std::size_t end = rest.find('\n');
        if (end == std::string_view::npos) return {};
        rest.remove_prefix(end + 1);
    }
    rest = rest.substr(0, rest.find('\n'));
    if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
    return rest;
}

} // namespace ptarmigan::ptx
