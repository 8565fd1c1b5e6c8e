// SPDX-License-Identifier: Apache-2.0
// Where the lanes of a warp hold the elements of a matrix (manual 9.7.14.4.1, 9.7.14.5.1 to 13 and 9.7.15.5.1.1; the
// order inside of wmma's fragments, which the manual leaves open, is Hopper's). A lane is 4 * g + t.
#pragma once

#include "frontend/ptx/matrix_form.h"

namespace ptarmigan::ptx {

enum class MatrixOperand : std::uint8_t { a, b, c, d };

/// One operand of a product. Its matrix is a number of lines: rows of A, C and D, columns of B. Sparse A: what it
/// stores. mma.m8n8k4 of halves is four products; their lines follow each other.
///
/// A register of all lanes is a block of 8 lines and 4 cells, a cell being one register wide; that of lane (g, t) is
/// line g, cell t. Accumulators of registers that hold one element are in pairs of registers, a block of 8 lines and 8
/// elements: that of lane (g, t) in the second of a pair is element 2 t + 1.
class MatrixFragment {
public:
    enum class Order : std::uint8_t {
        cells,
        pairs,
        crossed, ///< pairs (of registers, or of halves in one) with lines and elements exchanged
        quads,   ///< mma.m8n8k4 of halves
    };
    struct Place {
        unsigned line = 0, element = 0;
    };
    /// First line and element of a register's block (orders but quads); of a pair's, for either of its registers.
    using Block = Place;

    MatrixFragment(const MatrixForm& form, MatrixOperand operand);

    unsigned lines() const { return lines_; }
    unsigned line_elements() const { return line_elements_; }
    MatrixType type() const { return type_; }
    unsigned registers() const { return registers_; } ///< of a lane
    unsigned register_bits() const { return bit_size(type_) == 64 ? 64 : 32; }
    unsigned register_elements() const { return register_bits() / bit_size(type_); }
    /// wmma's fragments of halves have eight registers whatever they hold: this many hold something, the others are
    /// copies of them in turn.
    unsigned distinct_registers() const { return distinct_; }
    Order order() const { return order_; }

    /// Of the register's element `element`; registers below distinct_registers().
    Place place(unsigned lane, unsigned index, unsigned element) const;
    Block block(unsigned index) const;

private:
    MatrixType type_;
    Order order_ = Order::cells;
    bool accumulates_, across_ = false; ///< quads: elements are spread over lanes
    unsigned lines_, line_elements_, registers_, distinct_;
    bool lines_last_ = false; ///< cells: blocks of a line stand side by side before those of the next lines
};

} // namespace ptarmigan::ptx
