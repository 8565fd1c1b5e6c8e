// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/matrix_shape.h"

#include "frontend/isa/words.h"

#include <charconv>

namespace ptarmigan::ptx {

MatrixShape matrix_shape(std::span<const Modifier> words) {
    for (Modifier modifier : words) {
        const std::string_view word = spelling(modifier);
        MatrixShape shape;
        const char* at = word.data();
        const char* end = at + word.size();
        auto read = [&](char letter, unsigned& value) {
            if (at == end || *at != letter) return false;
            const auto result = std::from_chars(at + 1, end, value);
            at = result.ptr;
            return result.ec == std::errc{};
        };
        if (read('m', shape.m) && read('n', shape.n) && (at == end || read('k', shape.k)) && at == end) return shape;
    }
    return {};
}

} // namespace ptarmigan::ptx
