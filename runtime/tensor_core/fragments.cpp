// SPDX-License-Identifier: Apache-2.0
// Most registers are blocks of 8 lines and 4 cells: eight copies of 16 or 32 bytes.
#include "runtime/tensor_core/fragments.h"

#include <cstring>
#include <type_traits>

namespace ptarmigan::runtime::tensor_core {
namespace {

using ptx::MatrixFragment;
using Order = MatrixFragment::Order;

constexpr unsigned lanes = 32, block_lines = 8, block_cells = 4;

/// Four cells.
template <typename Word> struct Cells {
    typedef Word Vector __attribute__((vector_size(block_cells * sizeof(Word))));
    static Vector load(const void* from) {
        Vector cells;
        std::memcpy(&cells, from, sizeof cells);
        return cells;
    }
    static void store(void* to, Vector cells) { std::memcpy(to, &cells, sizeof cells); }
};

/// The loops of one kind of move. `Word`: a register.
template <typename Word, bool is_gather> struct Moves {
    using Row = Cells<Word>;
    using Cell = std::conditional_t<is_gather, const Word, Word>;
    using Byte = std::conditional_t<is_gather, std::uint8_t, const std::uint8_t>;

    static void cells(Cell* block, Byte* bytes, std::size_t line_bytes) {
        for (unsigned line = 0; line < block_lines; ++line) {
            if constexpr (is_gather)
                Row::store(bytes + line * line_bytes, Row::load(block + line * block_cells));
            else
                Row::store(block + line * block_cells, Row::load(bytes + line * line_bytes));
        }
    }

    static void pair(Cell* even, Cell* odd, Byte* bytes, std::size_t line_bytes) {
        for (unsigned line = 0; line < block_lines; ++line, even += block_cells, odd += block_cells) {
            Byte *first = bytes + line * line_bytes, *second = first + block_cells * sizeof(Word);
            if constexpr (is_gather) {
                const auto a = Row::load(even), b = Row::load(odd);
                Row::store(first, __builtin_shufflevector(a, b, 0, 4, 1, 5));
                Row::store(second, __builtin_shufflevector(a, b, 2, 6, 3, 7));
            } else {
                const auto a = Row::load(first), b = Row::load(second);
                Row::store(even, __builtin_shufflevector(a, b, 0, 2, 4, 6));
                Row::store(odd, __builtin_shufflevector(a, b, 1, 3, 5, 7));
            }
        }
    }

    /// One by one: elements of 16 bits or of a whole register.
    static void elements(const MatrixFragment& fragment, std::size_t stride, Cell* registers, Byte* matrix) {
        const unsigned per_register = fragment.register_elements(), bytes = sizeof(Word) / per_register;
        for (unsigned r = 0; r < fragment.distinct_registers(); ++r)
            for (unsigned lane = 0; lane < lanes; ++lane)
                for (unsigned j = 0; j < per_register; ++j) {
                    const MatrixFragment::Place at = fragment.place(lane, r, j);
                    Byte* element = matrix + at.line * stride + at.element * bytes;
                    auto* part = reinterpret_cast<std::conditional_t<is_gather, const std::uint8_t, std::uint8_t>*>(
                                     registers + r * lanes + lane) +
                                 j * bytes;
                    if constexpr (is_gather)
                        std::memcpy(element, part, bytes);
                    else
                        std::memcpy(part, element, bytes);
                }
    }

    /// `block(r)`: where in the matrix register r's block begins.
    template <class Block>
    static void all(const MatrixFragment& fragment, std::size_t stride, const Block& block, Cell* registers,
                    Byte* matrix) {
        const unsigned count = fragment.distinct_registers();
        if (fragment.order() == Order::cells) {
            for (unsigned r = 0; r < count; ++r) cells(registers + r * lanes, matrix + block(r), stride);
        } else if (fragment.order() == Order::pairs) {
            for (unsigned r = 0; r < count; r += 2)
                pair(registers + r * lanes, registers + (r + 1) * lanes, matrix + block(r), stride);
        } else {
            elements(fragment, stride, registers, matrix);
        }
    }
};

} // namespace

FragmentMover::FragmentMover(const MatrixFragment& fragment)
    : fragment_(fragment), line_bytes_(fragment.line_elements() * ptx::bit_size(fragment.type()) / 8) {
    if (fragment.order() == Order::quads) return;
    for (unsigned r = 0; r < fragment.distinct_registers(); ++r) {
        const MatrixFragment::Block at = fragment.block(r);
        blocks_.at(r) = {at.line, at.element * ptx::bit_size(fragment.type()) / 8};
    }
}

void FragmentMover::gather(ConstRegisters registers, void* matrix, std::size_t stride) const {
    auto* bytes = static_cast<std::uint8_t*>(matrix);
    const auto block = [&](unsigned r) { return blocks_[r].line * stride + blocks_[r].offset; };
    if (fragment_.register_bits() == 64)
        Moves<std::uint64_t, true>::all(fragment_, stride, block, reinterpret_cast<const std::uint64_t*>(registers),
                                        bytes);
    else
        Moves<std::uint32_t, true>::all(fragment_, stride, block, registers[0], bytes);
}

void FragmentMover::scatter(const void* matrix, Registers registers, std::size_t stride) const {
    const auto* bytes = static_cast<const std::uint8_t*>(matrix);
    const auto block = [&](unsigned r) { return blocks_[r].line * stride + blocks_[r].offset; };
    if (fragment_.register_bits() == 64)
        Moves<std::uint64_t, false>::all(fragment_, stride, block, reinterpret_cast<std::uint64_t*>(registers), bytes);
    else
        Moves<std::uint32_t, false>::all(fragment_, stride, block, registers[0], bytes);
}

void select_by_metadata(const ptx::MatrixForm& form, unsigned selector, const std::uint32_t (&metadata)[32],
                        std::uint8_t* selected) {
    const unsigned bits = ptx::bit_size(form.a);
    const unsigned chunk = bits == 32 ? 2 : bits == 4 ? 8 : 4; // elements of a column
    const unsigned chunks = form.k / chunk;
    const bool is_wide = bits >= 16;
    for (unsigned row = 0; row < form.m; ++row)
        for (unsigned c = 0; c < chunks; ++c) {
            const unsigned high = row / 8;
            unsigned lane = row % 8 * 4, nibble = 0;
            if (is_wide) {
                lane += chunks == 4 ? selector : 2 * selector + c / 4;
                nibble = 4 * high + c % 4;
            } else {
                lane += (chunks == 8 ? 2 * selector : c / 8 * 2) + high;
                nibble = c % 8;
            }
            const std::uint32_t pair = metadata[lane % 32] >> 4 * nibble;
            for (const unsigned index : {pair & 3, pair >> 2 & 3}) {
                if (bits != 4) {
                    *selected++ = static_cast<std::uint8_t>(4 * c + index); // tf32: of halves, four in a chunk too
                } else {
                    *selected++ = static_cast<std::uint8_t>(8 * c + 2 * index);
                    *selected++ = static_cast<std::uint8_t>(8 * c + 2 * index + 1);
                }
            }
        }
}

} // namespace ptarmigan::runtime::tensor_core
