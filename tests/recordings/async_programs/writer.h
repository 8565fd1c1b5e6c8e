// SPDX-License-Identifier: Apache-2.0
// Text with {} for arguments.
#pragma once

#include <string>
#include <type_traits>

namespace async_programs {

class Writer {
public:
    /// Appends `format`, each {} replaced by the next argument. A brace that is not followed by another stays.
    template <class... Arguments> void operator()(const char* format, const Arguments&... arguments) {
        const char* rest = format;
        ((rest = up_to_argument(rest), append(arguments)), ...);
        text_ += rest;
    }
    std::string take() { return std::move(text_); }

private:
    const char* up_to_argument(const char* from) {
        while (!(from[0] == '{' && from[1] == '}')) text_ += *from++;
        return from + 2;
    }
    template <class T> void append(const T& value) {
        if constexpr (std::is_arithmetic_v<T>)
            text_ += std::to_string(value);
        else
            text_ += value;
    }
    std::string text_;
};

} // namespace async_programs
