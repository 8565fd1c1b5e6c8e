// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/dense_pair.h"

#include <cstring>

namespace ptarmigan::runtime::tensor_core {
namespace {

/// The k's of a row that have an element, 64 or 128 of them. In registers: this is what filling a row waits for.
template <typename Bits> class Taken {
public:
    void take(unsigned k) {
        const Bits bit = Bits{1} << k;
        twice_ |= bits_ & bit;
        bits_ |= bit;
    }
    bool is_good() const { return twice_ == 0; }

private:
    Bits bits_ = 0, twice_ = 0;
};
__extension__ using Wide = unsigned __int128;

template <typename Element>
bool fill_row(const std::uint8_t* from, const std::uint8_t* selected, unsigned stored, std::uint8_t* to) {
    Taken<std::uint64_t> taken;
    for (unsigned i = 0; i < stored; ++i) {
        std::memcpy(to + selected[i] * sizeof(Element), from + i * sizeof(Element), sizeof(Element));
        taken.take(selected[i]);
    }
    return taken.is_good();
}

bool fill_tf32_row(const std::uint8_t* from, const std::uint8_t* halves, unsigned stored, std::uint8_t* to) {
    Taken<std::uint64_t> taken;
    bool whole = true;
    for (unsigned i = 0; i < stored; ++i) {
        const unsigned low = halves[2 * i];
        whole &= low % 2 == 0 && halves[2 * i + 1] == low + 1;
        taken.take(low / 2);
        std::memcpy(to + low / 2 * 4, from + i * 4, 4);
    }
    return whole && taken.is_good();
}

bool fill_half_bytes(const std::uint8_t* from, const std::uint8_t* selected, unsigned stored, std::uint8_t* to) {
    Taken<Wide> taken;
    for (unsigned i = 0; i < stored; ++i) {
        const unsigned element = from[i / 2] >> i % 2 * 4 & 15, k = selected[i];
        to[k / 2] |= static_cast<std::uint8_t>(element << k % 2 * 4);
        taken.take(k);
    }
    return taken.is_good();
}

/// Of every two pieces of a line the first one to the front half, the other one to the back half.
template <typename Piece> void part_pieces(const std::uint8_t* from, unsigned lines, unsigned bytes, std::uint8_t* to) {
    const unsigned pairs = bytes / 2 / sizeof(Piece);
    for (unsigned line = 0; line < lines; ++line, from += bytes, to += bytes) {
        for (unsigned i = 0; i < pairs; ++i) {
            std::memcpy(to + i * sizeof(Piece), from + 2 * i * sizeof(Piece), sizeof(Piece));
            std::memcpy(to + (pairs + i) * sizeof(Piece), from + (2 * i + 1) * sizeof(Piece), sizeof(Piece));
        }
    }
}

} // namespace

bool DensePair::fill_gaps(const MatrixProduct& product, const Operands& operands) {
    const unsigned stored = product.stored(), bits = bit_size(product.a);
    const unsigned row_bytes = product.k * bits / 8, given_bytes = stored * bits / 8;
    if (product.m * row_bytes > most_bytes || product.k > (bits == 4 ? 128u : 64u)) return false;
    std::memset(dense_, 0, product.m * row_bytes);
    bool good = true;
    for (unsigned row = 0; row < product.m; ++row) {
        const auto* from = static_cast<const std::uint8_t*>(operands.a) + row * given_bytes;
        const std::uint8_t* selected = operands.selected + std::size_t{row} * stored;
        std::uint8_t* to = dense_ + row * row_bytes;
        switch (bits) {
        case 32: good &= fill_tf32_row(from, operands.selected + std::size_t{row} * stored * 2, stored, to); break;
        case 16: good &= fill_row<std::uint16_t>(from, selected, stored, to); break;
        case 8: good &= fill_row<std::uint8_t>(from, selected, stored, to); break;
        default: good &= fill_half_bytes(from, selected, stored, to);
        }
    }
    return good;
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
    const unsigned k = product.k;
    if (product.m * k > most_elements || product.n * k > most_elements) return false;
    const auto* a = static_cast<const std::uint8_t*>(operands.a);
    const auto* b = static_cast<const std::uint8_t*>(operands.b);
    // A sum takes two of every four stored elements, which are two of four k or four of eight.
    if (sparse) {
        part_pieces<std::uint32_t>(a, product.m, k, a_);
        part_pieces<std::uint32_t>(b, product.n, k, b_);
    } else {
        part_pieces<std::uint16_t>(a, product.m, k, a_);
        part_pieces<std::uint16_t>(b, product.n, k, b_);
    }
    operands.a = a_;
    operands.b = b_;
    return true;
}

void part_for_two_sums(const void* from, unsigned lines, unsigned k, void* to) {
    part_pieces<std::uint16_t>(static_cast<const std::uint8_t*>(from), lines, k, static_cast<std::uint8_t*>(to));
}

} // namespace ptarmigan::runtime::tensor_core
