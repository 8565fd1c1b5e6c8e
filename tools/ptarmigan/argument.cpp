// SPDX-License-Identifier: Apache-2.0
#include "tools/ptarmigan/argument.h"

#include "tools/ptarmigan/commands.h"

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace ptarmigan::tool {
namespace {

constexpr std::uint64_t buffer_limit = std::uint64_t{1} << 36;

[[noreturn]] void fail(const std::string& spec, const std::string& reason) {
    throw std::invalid_argument("argument '" + spec + "': " + reason);
}

ElementType parse_type(const std::string& name, const std::string& spec) {
    struct Row {
        const char* name;
        ElementType type;
    };
    static constexpr Row rows[] = {{"u8", {'u', 1}},  {"u16", {'u', 2}}, {"u32", {'u', 4}}, {"u64", {'u', 8}},
                                   {"s8", {'s', 1}},  {"s16", {'s', 2}}, {"s32", {'s', 4}}, {"s64", {'s', 8}},
                                   {"b8", {'b', 1}},  {"b16", {'b', 2}}, {"b32", {'b', 4}}, {"b64", {'b', 8}},
                                   {"f16", {'f', 2}}, {"f32", {'f', 4}}, {"f64", {'f', 8}}, {"bf16", {'h', 2}}};
    for (const Row& row : rows)
        if (name == row.name) return row.type;
    fail(spec, "unknown type " + name);
}

/// To a 16-bit float of `mantissa` bits, rounding to nearest even.
std::uint16_t to_short_float(double value, unsigned mantissa) {
    unsigned exponent_bits = 15 - mantissa;
    int bias = (1 << (exponent_bits - 1)) - 1;
    std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    auto infinity = static_cast<std::uint16_t>(((1u << exponent_bits) - 1) << mantissa);
    if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | (1u << (mantissa - 1)));
    double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return sign | infinity;
    if (magnitude == 0) return sign;
    int exponent = std::max(std::ilogb(magnitude), 1 - bias);
    double steps = std::nearbyint(std::ldexp(magnitude, static_cast<int>(mantissa) - exponent));
    // Counting in units of the last place carries from mantissa to exponent by itself.
    double biased = std::ldexp(exponent + bias - 1, static_cast<int>(mantissa)) + steps;
    return sign | (biased >= infinity ? infinity : static_cast<std::uint16_t>(biased));
}

double from_short_float(std::uint16_t bits, unsigned mantissa) {
    unsigned exponent_bits = 15 - mantissa;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (bits & 0x7fff) >> mantissa;
    double fraction = bits & ((1u << mantissa) - 1);
    double magnitude;
    if (exponent == (1 << exponent_bits) - 1)
        magnitude = fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    else if (exponent == 0)
        magnitude = std::ldexp(fraction, 1 - bias - static_cast<int>(mantissa));
    else
        magnitude = std::ldexp(fraction + (1 << mantissa), exponent - bias - static_cast<int>(mantissa));
    return bits & 0x8000 ? -magnitude : magnitude;
}

void put_double(const ElementType& type, double value, std::uint8_t* out) {
    if (type.size == 8) {
        std::memcpy(out, &value, 8);
    } else if (type.size == 4) {
        auto narrow = static_cast<float>(value);
        std::memcpy(out, &narrow, 4);
    } else {
        std::uint16_t bits = to_short_float(value, type.kind == 'h' ? 7 : 10);
        std::memcpy(out, &bits, 2);
    }
}

void put_integer(const ElementType& type, std::uint64_t value, std::uint8_t* out) {
    std::memcpy(out, &value, type.size); // little-endian hosts only, as all targets are
}

bool is_float(const ElementType& type) {
    return type.kind == 'f' || type.kind == 'h';
}

void parse_value(const ElementType& type, const std::string& text, std::uint8_t* out, const std::string& spec) {
    char* end = nullptr;
    errno = 0;
    if (is_float(type)) {
        double value = std::strtod(text.c_str(), &end);
        if (text.empty() || *end) fail(spec, "not a number: " + text);
        put_double(type, value, out);
        return;
    }
    bool negative = !text.empty() && text[0] == '-';
    std::uint64_t value = negative ? static_cast<std::uint64_t>(std::strtoll(text.c_str(), &end, 0))
                                   : std::strtoull(text.c_str(), &end, 0);
    if (text.empty() || *end || errno == ERANGE || (negative && type.kind != 's'))
        fail(spec, (negative && type.kind != 's' ? "not an unsigned number: " : "not a whole number: ") + text);
    if (!negative && type.size < 8 && value >> (type.size * 8 - (type.kind == 's')))
        fail(spec, "out of range: " + text);
    if (negative && type.size < 8 && static_cast<std::int64_t>(value) < -(std::int64_t{1} << (type.size * 8 - 1)))
        fail(spec, "out of range: " + text);
    put_integer(type, value, out);
}

/// splitmix64: short, good enough for test data, and the same everywhere.
std::uint64_t next_random(std::uint64_t& state) {
    std::uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

void fill_buffer(Argument& buffer, const std::string& how, const std::string& spec) {
    const ElementType& type = buffer.type;
    auto element = [&](std::uint64_t i) { return buffer.bytes.data() + i * type.size; };
    auto value_of = [&](const char* prefix) {
        std::size_t length = std::strlen(prefix);
        return how.compare(0, length, prefix) == 0 ? how.substr(length) : std::string();
    };
    if (how == "zero") return;
    if (how == "iota") {
        for (std::uint64_t i = 0; i < buffer.count; ++i)
            is_float(type) ? put_double(type, static_cast<double>(i), element(i)) : put_integer(type, i, element(i));
    } else if (std::string value = value_of("const:"); !value.empty()) {
        for (std::uint64_t i = 0; i < buffer.count; ++i) parse_value(type, value, element(i), spec);
    } else if (std::string seed = value_of("random:"); !seed.empty()) {
        std::uint64_t state = std::strtoull(seed.c_str(), nullptr, 0);
        for (std::uint64_t i = 0; i < buffer.count; ++i) {
            std::uint64_t random = next_random(state);
            if (is_float(type))
                put_double(type, static_cast<double>(random >> 40) * 0x1p-24,
                           element(i)); // [0, 1), exact in f32
            else
                put_integer(type, random, element(i));
        }
    } else if (std::string path = value_of("file:"); !path.empty()) {
        std::string contents;
        if (!read_file(path, contents)) fail(spec, "cannot read " + path);
        if (contents.size() < buffer.bytes.size())
            fail(spec, path + " has only " + std::to_string(contents.size()) + " bytes");
        std::memcpy(buffer.bytes.data(), contents.data(), buffer.bytes.size());
    } else {
        fail(spec, "unknown contents " + how + " (zero, iota, const:V, random:SEED, file:PATH)");
    }
}

Argument parse_buffer(const std::string& text, const std::string& spec) {
    auto open = text.find('['), close = text.find("]=");
    if (open == std::string::npos || close == std::string::npos || close < open)
        fail(spec, "expected buf:TYPE[COUNT]=CONTENTS, as in buf:f32[256]=zero");
    Argument buffer;
    buffer.is_buffer = true;
    buffer.type = parse_type(text.substr(0, open), spec);
    char* end = nullptr;
    std::string count = text.substr(open + 1, close - open - 1);
    buffer.count = std::strtoull(count.c_str(), &end, 0);
    if (count.empty() || *end || buffer.count == 0 || buffer.count > buffer_limit / buffer.type.size)
        fail(spec, "bad element count " + count);
    buffer.bytes.resize(buffer.count * buffer.type.size);
    fill_buffer(buffer, text.substr(close + 2), spec);
    return buffer;
}

} // namespace

Argument parse_argument(const std::string& spec) {
    auto colon = spec.find(':');
    if (colon == std::string::npos)
        fail(spec, "expected TYPE:VALUE (u32:7) or buf:TYPE[COUNT]=CONTENTS (buf:f32[256]=zero)");
    std::string name = spec.substr(0, colon), rest = spec.substr(colon + 1);
    if (name == "buf") return parse_buffer(rest, spec);
    Argument argument;
    argument.type = parse_type(name, spec);
    argument.bytes.resize(argument.type.size);
    parse_value(argument.type, rest, argument.bytes.data(), spec);
    return argument;
}

std::string format_element(const ElementType& type, const std::uint8_t* bytes) {
    char text[64];
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes, type.size);
    if (type.kind == 'f' && type.size == 8) {
        std::snprintf(text, sizeof text, "%.17g", std::bit_cast<double>(bits));
    } else if (type.kind == 'f' && type.size == 4) {
        std::snprintf(text, sizeof text, "%.9g", std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    } else if (is_float(type)) {
        std::snprintf(text, sizeof text, "%.9g",
                      from_short_float(static_cast<std::uint16_t>(bits), type.kind == 'h' ? 7 : 10));
    } else if (type.kind == 's') {
        unsigned shift = 64 - type.size * 8;
        std::snprintf(text, sizeof text, "%lld",
                      static_cast<long long>(static_cast<std::int64_t>(bits << shift) >> shift));
    } else if (type.kind == 'b') {
        std::snprintf(text, sizeof text, "0x%0*llx", static_cast<int>(type.size * 2),
                      static_cast<unsigned long long>(bits));
    } else {
        std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(bits));
    }
    return text;
}

} // namespace ptarmigan::tool
