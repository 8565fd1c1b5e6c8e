// SPDX-License-Identifier: Apache-2.0
#include "runtime/context/printf_buffer.h"

#include <cstdio>

namespace ptarmigan::runtime {

void PrintfBuffer::append(std::string_view text) {
    std::lock_guard lock(mutex_);
    if (text_.size() + text.size() <= capacity_) text_ += text;
}

void PrintfBuffer::flush() {
    {
        std::lock_guard lock(mutex_);
        if (text_.empty()) return;
    }
    std::lock_guard order(flush_mutex_);
    std::string text;
    {
        std::lock_guard lock(mutex_);
        text.swap(text_);
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

void PrintfBuffer::set_capacity(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    capacity_ = bytes;
}

} // namespace ptarmigan::runtime
