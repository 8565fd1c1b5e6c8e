// SPDX-License-Identifier: Apache-2.0
// Most registers are blocks of 8 lines and 4 cells: eight copies of 16 or 32 bytes.
#include "runtime/tensor_core/fragments.h"

#include <cstring>

namespace ptarmigan::runtime::tensor_core {
namespace {

using ptx::MatrixFragment;
using Order = MatrixFragment::Order;

constexpr unsigned lanes = 32, block_lines = 8, block_cells = 4;

/// Moves elements of a register's width, or of half of it, between a warp's registers and a matrix. `Word`: a cell.
template <typename Word, bool is_gather> class Mover {
public:
    using Cells = std::conditional_t<is_gather, const Word*, Word*>;
    using Bytes = std::conditional_t<is_gather, std::uint8_t*, const std::uint8_t*>;

    Mover(const MatrixFragment& fragment, Cells registers, Bytes matrix)
        : fragment_(fragment), registers_(registers), matrix_(matrix),
          line_bytes_(fragment.line_elements() * ptx::bit_size(fragment.type()) / 8) {}

    void run() {
        switch (fragment_.order()) {
        case Order::cells: return move_cells();
        case Order::pairs: return move_pairs();
        default: return move_elements();
        }
    }

private:
    void move(Cells cells, Bytes bytes, unsigned count) {
        if constexpr (is_gather)
            std::memcpy(bytes, cells, count * sizeof(Word));
        else
            std::memcpy(cells, bytes, count * sizeof(Word));
    }
    Bytes place(const MatrixFragment::Place& at) const {
        return matrix_ + at.line * line_bytes_ + at.element * ptx::bit_size(fragment_.type()) / 8;
    }

    void move_cells() {
        for (unsigned r = 0; r < fragment_.distinct_registers(); ++r) {
            Cells cells = registers_ + r * lanes;
            Bytes bytes = place(fragment_.block(r));
            for (unsigned line = 0; line < block_lines; ++line)
                move(cells + line * block_cells, bytes + line * line_bytes_, block_cells);
        }
    }

    void move_pairs() {
        for (unsigned r = 0; r < fragment_.distinct_registers(); r += 2) {
            Cells even = registers_ + r * lanes, odd = even + lanes;
            Bytes bytes = place(fragment_.block(r));
            for (unsigned line = 0; line < block_lines; ++line) {
                Word row[2 * block_cells];
                if constexpr (!is_gather) std::memcpy(row, bytes + line * line_bytes_, sizeof row);
                for (unsigned t = 0; t < block_cells; ++t) {
                    const unsigned lane = line * block_cells + t;
                    if constexpr (is_gather) {
                        row[2 * t] = even[lane];
                        row[2 * t + 1] = odd[lane];
                    } else {
                        even[lane] = row[2 * t];
                        odd[lane] = row[2 * t + 1];
                    }
                }
                if constexpr (is_gather) std::memcpy(bytes + line * line_bytes_, row, sizeof row);
            }
        }
    }

    /// One by one: elements of 16 bits or of a whole register.
    void move_elements() {
        const unsigned per_register = fragment_.register_elements();
        for (unsigned r = 0; r < fragment_.distinct_registers(); ++r)
            for (unsigned lane = 0; lane < lanes; ++lane)
                for (unsigned j = 0; j < per_register; ++j) {
                    auto* cell = registers_ + r * lanes + lane;
                    Bytes bytes = place(fragment_.place(lane, r, j));
                    if (per_register == 1)
                        move(cell, bytes, 1);
                    else if constexpr (is_gather)
                        std::memcpy(bytes, reinterpret_cast<const std::uint8_t*>(cell) + 2 * j, 2);
                    else
                        std::memcpy(reinterpret_cast<std::uint8_t*>(cell) + 2 * j, bytes, 2);
                }
    }

    const MatrixFragment& fragment_;
    Cells registers_;
    Bytes matrix_;
    const std::size_t line_bytes_;
};

} // namespace

void gather_fragment(const MatrixFragment& fragment, ConstRegisters registers, void* matrix) {
    auto* bytes = static_cast<std::uint8_t*>(matrix);
    if (fragment.register_bits() == 64)
        Mover<std::uint64_t, true>(fragment, reinterpret_cast<const std::uint64_t*>(registers), bytes).run();
    else
        Mover<std::uint32_t, true>(fragment, registers[0], bytes).run();
}

void scatter_fragment(const MatrixFragment& fragment, const void* matrix, Registers registers) {
    const auto* bytes = static_cast<const std::uint8_t*>(matrix);
    if (fragment.register_bits() == 64)
        Mover<std::uint64_t, false>(fragment, reinterpret_cast<std::uint64_t*>(registers), bytes).run();
    else
        Mover<std::uint32_t, false>(fragment, registers[0], bytes).run();
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
