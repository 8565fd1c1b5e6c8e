// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/dense_pair.h"

#include "runtime/tensor_core/number.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ptarmigan::runtime::tensor_core {
namespace {

unsigned bits_of(Format format) {
    switch (format) {
    case Format::f16:
    case Format::bf16: return 16;
    case Format::tf32: return 32;
    case Format::s4:
    case Format::u4: return 4;
    default: return 8;
    }
}

using HalfTable = std::array<std::uint16_t, 256>;

HalfTable make_table(Format format) {
    HalfTable table{};
    for (unsigned i = 0; i < 256; ++i) table[i] = static_cast<std::uint16_t>(widen_fp8(format, i));
    return table;
}

const HalfTable& table_of(Format format) {
    static const HalfTable e4m3 = make_table(Format::e4m3), e5m2 = make_table(Format::e5m2);
    return format == Format::e4m3 ? e4m3 : e5m2;
}

template <typename Element> void put(std::uint8_t* row, unsigned k, const void* from, std::size_t index) {
    std::memcpy(row + k * sizeof(Element), static_cast<const std::uint8_t*>(from) + index * sizeof(Element),
                sizeof(Element));
}

} // namespace

bool DensePair::fill_gaps(const MatrixProduct& product, const Operands& operands) {
    const unsigned stored = product.stored(), row_bytes = product.k * bits_of(product.a) / 8;
    if (product.m * row_bytes > most_bytes) return false;
    std::memset(dense_, 0, product.m * row_bytes);
    for (unsigned row = 0; row < product.m; ++row) {
        std::uint64_t taken[2] = {};
        std::uint8_t* to = dense_ + row * row_bytes;
        for (unsigned i = 0; i < stored; ++i) {
            const std::size_t index = std::size_t{row} * stored + i;
            unsigned k = operands.selected[index];
            if (product.a == Format::tf32) {
                const unsigned low = operands.selected[2 * index];
                if (low % 2 != 0 || operands.selected[2 * index + 1] != low + 1) return false;
                k = low / 2;
            }
            const std::uint64_t bit = std::uint64_t{1} << k % 64;
            if (taken[k / 64] & bit) return false;
            taken[k / 64] |= bit;
            switch (bits_of(product.a)) {
            case 32: put<std::uint32_t>(to, k, operands.a, index); break;
            case 16: put<std::uint16_t>(to, k, operands.a, index); break;
            case 8: put<std::uint8_t>(to, k, operands.a, index); break;
            default: to[k / 2] |= static_cast<std::uint8_t>(load_element(product.a, operands.a, index) << k % 2 * 4);
            }
        }
    }
    return true;
}

/// The first sum takes those of every two pieces of `piece` elements that come first.
void DensePair::widen(const MatrixProduct& product, Format format, const std::uint8_t* from, unsigned lines,
                      unsigned piece, std::uint16_t* to) {
    const HalfTable& table = table_of(format);
    for (unsigned line = 0; line < lines; ++line)
        for (unsigned sum = 0; sum < 2; ++sum)
            for (unsigned k = sum * piece; k < product.k; k += 2 * piece)
                for (unsigned i = 0; i < piece; ++i) *to++ = table[from[line * product.k + k + i]];
}

bool DensePair::make(MatrixProduct& product, Operands& operands) {
    const bool sparse = product.sparse;
    if (sparse) {
        if (!fill_gaps(product, operands)) return false;
        product.sparse = false;
        operands.a = dense_;
        operands.selected = nullptr;
    }
    if (product.unit != Unit::fp8_by_f16) return true;
    if (unsigned{product.m} * product.k > most_elements || unsigned{product.n} * product.k > most_elements)
        return false;
    const unsigned piece = sparse ? 4 : 2; // of stored elements always two
    widen(product, product.a, static_cast<const std::uint8_t*>(operands.a), product.m, piece, a_);
    widen(product, product.b, static_cast<const std::uint8_t*>(operands.b), product.n, piece, b_);
    product.a = product.b = Format::f16;
    operands.a = a_;
    operands.b = b_;
    return true;
}

#if defined(__x86_64__)
FloatMode::FloatMode(Rounding rounding) : before_(_mm_getcsr()) {
    constexpr unsigned masked = 0x1f80, modes[] = {0x0000, 0x6000, 0x2000, 0x4000};
    _mm_setcsr(masked | modes[static_cast<unsigned>(rounding)]);
}
FloatMode::~FloatMode() {
    _mm_setcsr(before_);
}
#else
FloatMode::FloatMode(Rounding) : before_(0) {}
FloatMode::~FloatMode() = default;
#endif

} // namespace ptarmigan::runtime::tensor_core
