// SPDX-License-Identifier: Apache-2.0
// Device printf: parsing of conversions.
#include "runtime/services/printf.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

/// Reads vprintf's argument buffer: every value at a multiple of its size.
class ArgumentReader {
public:
    explicit ArgumentReader(const void* buffer) : buffer_(static_cast<const char*>(buffer)) {}
    template <class T> T next() {
        offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
        T value;
        std::memcpy(&value, buffer_ + offset_, sizeof value);
        offset_ += sizeof value;
        ++count_;
        return value;
    }
    int count() const { return count_; }

private:
    const char* buffer_;
    std::size_t offset_ = 0;
    int count_ = 0;
};

/// One conversion of a format, as written.
struct Conversion {
    std::string text;    ///< "%-08.3" with stars replaced, without length and letter
    unsigned length = 0; ///< bytes of an integer argument: 1, 2, 4 or 8
    char letter = 0;
    bool known = true;
    const char* end = nullptr;
};

/// Digits, or a star that takes an int argument.
const char* parse_number(const char* at, ArgumentReader& arguments, std::string& text) {
    if (*at == '*') {
        text += std::to_string(arguments.next<std::int32_t>());
        return at + 1;
    }
    while (*at >= '0' && *at <= '9') text += *at++;
    return at;
}

/// `at` is behind the percent sign.
Conversion parse_conversion(const char* at, ArgumentReader& arguments) {
    Conversion result;
    result.text = "%";
    while (*at && std::strchr("-+ #0", *at)) result.text += *at++;
    at = parse_number(at, arguments, result.text);
    if (*at == '.') {
        result.text += *at++;
        // CUDA's printf knows no star here: such a conversion is printed as it is written (H100, 2026-11-22).
        result.known = *at != '*';
        at = result.known ? parse_number(at, arguments, result.text) : at + 1;
    }
    result.length = 4;
    if (*at == 'l') {
        result.length = 8;
        at += at[1] == 'l' ? 2 : 1;
    } else if (*at == 'h') {
        result.length = at[1] == 'h' ? 1 : 2;
        at += at[1] == 'h' ? 2 : 1;
    } else if (*at != 0 && std::strchr("zjtq", *at)) {
        // No letters of the guide's, but an H100 prints the value too (and what follows in the format wrongly).
        result.length = 8;
        ++at;
    }
    result.letter = *at;
    result.end = *at ? at + 1 : at;
    return result;
}

template <class T> void append_formatted(std::string& out, const std::string& format, T value) {
    char buffer[256];
    const int length = std::snprintf(buffer, sizeof buffer, format.c_str(), value);
    if (length < 0) return;
    if (static_cast<std::size_t>(length) < sizeof buffer) {
        out.append(buffer, static_cast<std::size_t>(length));
        return;
    }
    const std::size_t start = out.size();
    out.resize(start + static_cast<std::size_t>(length) + 1);
    std::snprintf(out.data() + start, static_cast<std::size_t>(length) + 1, format.c_str(), value);
    out.pop_back();
}

void append_integer(std::string& out, const Conversion& conversion, ArgumentReader& arguments) {
    const bool is_signed = conversion.letter == 'd' || conversion.letter == 'i';
    std::int64_t value = conversion.length == 8 ? arguments.next<std::int64_t>() : arguments.next<std::int32_t>();
    if (conversion.length < 8) {
        const unsigned shift = 64 - 8 * conversion.length;
        const std::uint64_t high = static_cast<std::uint64_t>(value) << shift;
        value = is_signed ? static_cast<std::int64_t>(high) >> shift : static_cast<std::int64_t>(high >> shift);
    }
    append_formatted(out, conversion.text + "ll" + conversion.letter, static_cast<long long>(value));
}

/// False if the letter is none of CUDA's.
bool append_conversion(std::string& out, const Conversion& conversion, ArgumentReader& arguments) {
    if (!conversion.known) return false;
    switch (conversion.letter) {
    case '%': out += '%'; return true;
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X': append_integer(out, conversion, arguments); return true;
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A': append_formatted(out, conversion.text + conversion.letter, arguments.next<double>()); return true;
    case 'c':
        append_formatted(out, conversion.text + 'c', static_cast<int>(arguments.next<std::int32_t>()));
        return true;
    case 'p': append_formatted(out, conversion.text + 'p', arguments.next<const void*>()); return true;
    case 's': {
        const char* string = arguments.next<const char*>();
        append_formatted(out, conversion.text + 's', string ? string : "(null)");
        return true;
    }
    default: return false;
    }
}

} // namespace

std::string format_device_printf(const char* format, const void* buffer, int& count) {
    std::string out;
    ArgumentReader arguments(buffer);
    for (const char* at = format; *at;) {
        if (*at != '%') {
            const char* end = std::strchr(at, '%');
            if (!end) end = at + std::strlen(at);
            out.append(at, end);
            at = end;
            continue;
        }
        if (at[1] == '%') {
            out += '%';
            at += 2;
            continue;
        }
        const Conversion conversion = parse_conversion(at + 1, arguments);
        if (!append_conversion(out, conversion, arguments)) out.append(at, conversion.end);
        at = conversion.end;
    }
    count = arguments.count();
    return out;
}

} // namespace ptarmigan::runtime
