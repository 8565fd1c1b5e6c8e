// SPDX-License-Identifier: Apache-2.0
// Integers wrap as 64-bit ones; everything saturates in the end. No LLVM: also linked into the runtime.
#include "translator/launch_work.h"

#include <algorithm>
#include <cstring>

namespace ptarmigan::translator {
namespace {

using Kind = LaunchNumber::Kind;

std::int64_t extend(std::int64_t value, const LaunchNumber& number) {
    if (number.bits >= 64) return value;
    const unsigned unwanted = 64u - number.bits;
    const std::uint64_t high = static_cast<std::uint64_t>(value) << unwanted;
    return number.is_signed ? static_cast<std::int64_t>(high) >> unwanted : static_cast<std::int64_t>(high >> unwanted);
}

std::int64_t divide(std::int64_t a, std::int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));
    return a / b;
}

std::int64_t upper_product(std::int64_t a, std::int64_t b, const LaunchNumber& number) {
    if (number.is_signed) return static_cast<std::int64_t>((__int128{a} * b) >> number.bits);
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<std::int64_t>(static_cast<unsigned __int128>(x) * y >> number.bits);
}

std::uint64_t magnitude(std::int64_t value) {
    return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/// One where the end is not ahead: there is no telling what such a loop does.
std::uint64_t rounds(const LaunchLoop& loop, const std::vector<std::int64_t>& values) {
    if (loop.distance == LaunchLoop::unknown) return 1;
    const std::int64_t distance = values[loop.distance], gain = values[loop.gain];
    if (gain == 0 || (distance < 0) == (gain < 0)) return 1;
    return std::max<std::uint64_t>(magnitude(distance) / magnitude(gain), 1);
}

} // namespace

std::int64_t parameter(const LaunchNumber& number, std::span<const std::uint8_t> parameters) {
    const std::size_t size = number.bits / 8u, offset = static_cast<std::size_t>(number.value);
    if (size > parameters.size() || offset > parameters.size() - size) return 0;
    std::int64_t value = 0;
    std::memcpy(&value, parameters.data() + offset, size);
    return extend(value, number);
}

std::int64_t combine(const LaunchNumber& number, std::int64_t left, std::int64_t right) {
    const std::int64_t a = extend(left, number), b = extend(right, number);
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    const auto wrapped = [](std::uint64_t bits) { return static_cast<std::int64_t>(bits); };
    const bool shifts_all = static_cast<std::uint64_t>(right) >= number.bits;
    switch (number.kind) {
    case Kind::add: return wrapped(x + y);
    case Kind::subtract: return wrapped(x - y);
    case Kind::multiply: return wrapped(x * y);
    case Kind::multiply_high: return upper_product(a, b, number);
    case Kind::divide: return divide(a, b);
    case Kind::remainder: return b == 0 ? 0 : wrapped(x - static_cast<std::uint64_t>(divide(a, b)) * y);
    case Kind::minimum: return std::min(a, b);
    case Kind::maximum: return std::max(a, b);
    case Kind::bit_and: return a & b;
    case Kind::bit_or: return a | b;
    case Kind::bit_xor: return a ^ b;
    case Kind::shift_left: return shifts_all ? 0 : wrapped(x << right);
    case Kind::shift_right:
        if (!number.is_signed) return shifts_all ? 0 : wrapped(x >> right);
        return a >> (shifts_all ? number.bits - 1 : right);
    case Kind::equal: return a == b;
    case Kind::less: return number.is_signed ? a < b : x < y;
    default: return a;
    }
}

bool is_consistent(const LaunchWork& work) {
    for (std::size_t i = 0; i < work.numbers.size(); ++i) {
        const LaunchNumber& number = work.numbers[i];
        if (number.kind > Kind::extend || number.bits == 0 || number.bits > 64) return false;
        const bool is_component = number.kind >= Kind::grid_extent && number.kind <= Kind::thread_index;
        if (is_component && (number.value < 0 || number.value > 2)) return false;
        if (is_arithmetic(number.kind) && (number.a >= i || number.b >= i)) return false;
    }
    for (std::size_t i = 0; i < work.loops.size(); ++i) {
        const LaunchLoop& loop = work.loops[i];
        if (i != 0 && loop.parent >= i) return false;
        if (loop.distance == LaunchLoop::unknown) continue;
        if (loop.distance >= work.numbers.size() || loop.gain >= work.numbers.size()) return false;
    }
    return true;
}

std::uint64_t statements_of_thread(const LaunchWork& work, std::span<const std::uint8_t> parameters,
                                   std::span<const std::uint32_t, 3> grid_extents) {
    std::vector<std::int64_t> values;
    values.reserve(work.numbers.size());
    for (const LaunchNumber& number : work.numbers) {
        if (number.kind == Kind::constant)
            values.push_back(number.value);
        else if (number.kind == Kind::parameter)
            values.push_back(parameter(number, parameters));
        else if (number.kind == Kind::grid_extent)
            values.push_back(grid_extents[static_cast<std::size_t>(number.value)]);
        else if (!is_arithmetic(number.kind))
            values.push_back(0);
        else
            values.push_back(combine(number, values[number.a], values[number.b]));
    }
    std::uint64_t statements = 0;
    std::vector<std::uint64_t> times;
    times.reserve(work.loops.size());
    for (const LaunchLoop& loop : work.loops) {
        times.push_back(times.empty() ? 1 : saturating_product(times[loop.parent], rounds(loop, values)));
        statements += std::min(saturating_product(times.back(), loop.cost), UINT64_MAX - statements);
    }
    return statements;
}

} // namespace ptarmigan::translator
