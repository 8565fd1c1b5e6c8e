// SPDX-License-Identifier: Apache-2.0
#include "frontend/ptx/matrix_fragments.h"

namespace ptarmigan::ptx {

namespace {

MatrixType type_of(const MatrixForm& form, MatrixOperand operand) {
    switch (operand) {
    case MatrixOperand::a: return form.a;
    case MatrixOperand::b: return form.b;
    case MatrixOperand::c: return form.c;
    default: return form.d;
    }
}

constexpr unsigned block_lines = 8, block_cells = 4, quad_products = 4;

} // namespace

MatrixFragment::MatrixFragment(const MatrixForm& form, MatrixOperand operand)
    : type_(type_of(form, operand)), accumulates_(operand == MatrixOperand::c || operand == MatrixOperand::d) {
    lines_ = operand == MatrixOperand::b ? form.n : form.m;
    line_elements_ = accumulates_ ? form.n : form.k;
    if (operand == MatrixOperand::a && is_sparse(form.opcode)) line_elements_ /= 2;
    const bool is_quad = form.opcode != MatrixOpcode::wmma && form.m == 8 && form.a == MatrixType::f16;
    if (is_quad) {
        lines_ *= quad_products;
        order_ = Order::quads;
        across_ = operand == MatrixOperand::a   ? form.a_by_columns
                  : operand == MatrixOperand::b ? form.b_by_rows
                                                : false;
    } else if (accumulates_) {
        const bool is_crossed = form.opcode == MatrixOpcode::wmma && form.n == 32;
        order_ = is_crossed ? Order::crossed : type_ == MatrixType::f16 ? Order::cells : Order::pairs;
    }
    distinct_ = lines_ * line_elements_ / (32 * register_elements());
    registers_ = distinct_;
    if (form.opcode == MatrixOpcode::wmma && !accumulates_) {
        if (type_ == MatrixType::f16) registers_ = 8;
        // B of 16 columns: what lies along k comes first.
        lines_last_ = operand == MatrixOperand::b && lines_ == 16;
    }
}

MatrixFragment::Block MatrixFragment::block(unsigned index) const {
    const unsigned line_blocks = lines_ / block_lines;
    const unsigned width = order_ == Order::cells ? block_cells * register_elements() : 2 * block_cells;
    const unsigned across = order_ == Order::crossed ? lines_ / block_lines : line_elements_ / width;
    const bool one_per_register = order_ == Order::cells || register_elements() == 2;
    const unsigned number = one_per_register ? index : index / 2;
    if (order_ == Order::crossed) return {0, number * block_lines};
    unsigned line = 0, column = 0;
    if (line_blocks == 4 && across == 2) { // wmma's 32 lines: two by two
        line = number / 4 * 2 + number % 2;
        column = number / 2 % 2;
    } else if (lines_last_) {
        line = number / across;
        column = number % across;
    } else {
        line = number % line_blocks;
        column = number / line_blocks;
    }
    return {line * block_lines, column * width};
}

MatrixFragment::Place MatrixFragment::place(unsigned lane, unsigned index, unsigned element) const {
    const unsigned g = lane / 4, t = lane % 4;
    if (order_ == Order::quads) {
        const unsigned product = g % 4, high = lane / 16;
        const unsigned first = product * (lines_ / quad_products);
        const unsigned number = index * register_elements() + element;
        if (!accumulates_ || type_ == MatrixType::f16)
            return across_ ? Place{first + number + 4 * high, t} : Place{first + t + 4 * high, number};
        return {first + (t & 1) + (number & 2) + 4 * high, (number & 4) + (t & 2) + (number & 1)};
    }
    const Block at = block(index);
    if (order_ == Order::cells) return {at.line + g, at.element + t * register_elements() + element};
    const unsigned of_pair = register_elements() == 2 ? element : index % 2;
    if (order_ == Order::crossed) return {at.line + 2 * t + of_pair, at.element + g};
    return {at.line + g, at.element + 2 * t + of_pair};
}

} // namespace ptarmigan::ptx
