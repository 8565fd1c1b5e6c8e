// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/warp_product.h"

#include "runtime/base/log.h"
#include "runtime/tensor_core/form_product.h"
#include "runtime/tensor_core/form_table.h"
#include "runtime/tensor_core/fragments.h"

#include <cstring>

namespace ptarmigan::runtime::tensor_core {
namespace {

using ptx::MatrixFragment;
using ptx::MatrixOperand;

/// What follows from a form.
struct Plan {
    explicit Plan(const ptx::MatrixForm& wanted)
        : form(wanted), a(MatrixFragment(wanted, MatrixOperand::a)), b(MatrixFragment(wanted, MatrixOperand::b)),
          c(MatrixFragment(wanted, MatrixOperand::c)), d(MatrixFragment(wanted, MatrixOperand::d)),
          multiply(product_of(wanted)), products(a.fragment().lines() / wanted.m),
          is_sparse(ptx::is_sparse(wanted.opcode)) {}

    ptx::MatrixForm form;
    FragmentMover a, b, c, d;
    Multiplier multiply;
    unsigned products; ///< whose matrices follow each other
    bool is_sparse;
};

const Plan& plan_of(const ptx::MatrixForm& form) {
    static FormTable<Plan, 2048> plans;
    return plans[form];
}

constexpr std::size_t most_a = 2048, most_b = 1024, most_accumulators = 1024; ///< bytes: f64 m16n8k16, and wmma
constexpr std::size_t most_selected = 16 * 64;
constexpr unsigned most_rows = 16, most_columns = 8, most_scales = 4; ///< of block-scaled products

/// Scales of rows and columns as lanes have them (manual 9.7.14.3). Which bytes and lanes count, the warp's first lane
/// says. Row g and row g + 8 are from lanes 0 and 1 (or 2 and 3) of quad g, column g is from one of its lanes.
void gather_scales(const abi::MatrixCall& call, std::uint8_t* rows, std::uint8_t* columns) {
    const unsigned count = call.form.scales;
    const std::uint32_t selectors = call.scale_selectors[0];
    const auto field = [&](unsigned index, unsigned mask) { return selectors >> 8 * index & mask; };
    const unsigned first_bytes = count == 4 ? 0 : count == 2 ? 2 : 3;
    const unsigned byte_a = field(0, first_bytes), pair_a = field(1, 1), byte_b = field(2, first_bytes),
                   lane_b = field(3, 3);
    const auto take = [&](std::uint32_t word, unsigned first, std::uint8_t* to) {
        for (unsigned i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(word >> 8 * (first + i));
    };
    for (unsigned row = 0; row < most_rows; ++row)
        take(call.scale_a[4 * (row % 8) + 2 * pair_a + row / 8], byte_a, rows + row * count);
    for (unsigned column = 0; column < most_columns; ++column)
        take(call.scale_b[4 * column + lane_b], byte_b, columns + column * count);
}

struct Operand {
    const MatrixFragment& fragment;
    std::size_t offset; ///< in MatrixCall
};

std::uint8_t* cell(abi::MatrixCall& call, const Operand& operand, unsigned index, unsigned lane) {
    const unsigned bytes = operand.fragment.register_bits() / 8;
    return reinterpret_cast<std::uint8_t*>(&call) + operand.offset + std::size_t{bytes} * (32 * index + lane);
}

void copy_lane(const Operand& operand, const abi::MatrixCall& from, unsigned from_lane, abi::MatrixCall& to,
               unsigned to_lane) {
    for (unsigned r = 0; r < operand.fragment.distinct_registers(); ++r)
        std::memcpy(cell(to, operand, r, to_lane), cell(const_cast<abi::MatrixCall&>(from), operand, r, from_lane),
                    operand.fragment.register_bits() / 8);
}

} // namespace

void multiply_fragments(abi::MatrixCall& call, std::uint32_t lanes) {
    const Plan& plan = plan_of(call.form);
    if (lanes != ~0u) {
        log_once("part of a warp multiplies",
                 "a product of matrices that only a part of a warp executes is not done, as on a GPU");
        const std::size_t words = plan.d.fragment().registers() * plan.d.fragment().register_bits() / 32;
        for (std::size_t r = 0; r < words; ++r)
            for (std::size_t lane = 0; lane < 32; ++lane)
                call.d[r][lane] = plan.form.c == plan.form.d ? call.c[r][lane] : 0;
        return;
    }
    alignas(64) std::uint8_t a[most_a], b[most_b], c[most_accumulators], d[most_accumulators], selected[most_selected];
    plan.a.gather(call.a, a);
    plan.b.gather(call.b, b);
    plan.c.gather(call.c, c);
    if (plan.is_sparse) select_by_metadata(plan.form, call.selector, call.metadata, selected);
    std::uint8_t rows[most_rows * most_scales], columns[most_columns * most_scales];
    if (plan.form.scales != 0) gather_scales(call, rows, columns);
    const auto part = [&](const FragmentMover& operand, unsigned i) {
        return std::size_t{i} * operand.fragment().lines() / plan.products * operand.line_bytes();
    };
    for (unsigned i = 0; i < plan.products; ++i)
        plan.multiply(a + part(plan.a, i), b + part(plan.b, i), c + part(plan.c, i), d + part(plan.d, i),
                      plan.is_sparse ? selected : nullptr, {rows, columns});
    plan.d.scatter(d, call.d);
}

void deposit_lane(const abi::MatrixCall& step, unsigned lane_of_step, abi::MatrixCall& warp, unsigned lane) {
    const Plan& plan = plan_of(step.form);
    warp.form = step.form;
    warp.selector = step.selector;
    warp.metadata[lane] = step.metadata[lane_of_step];
    warp.scale_a[lane] = step.scale_a[lane_of_step];
    warp.scale_b[lane] = step.scale_b[lane_of_step];
    warp.scale_selectors[lane] = step.scale_selectors[lane_of_step];
    copy_lane({plan.a.fragment(), offsetof(abi::MatrixCall, a)}, step, lane_of_step, warp, lane);
    copy_lane({plan.b.fragment(), offsetof(abi::MatrixCall, b)}, step, lane_of_step, warp, lane);
    copy_lane({plan.c.fragment(), offsetof(abi::MatrixCall, c)}, step, lane_of_step, warp, lane);
}

void collect_lane(const abi::MatrixCall& warp, unsigned lane, abi::MatrixCall& step, unsigned lane_of_step) {
    const Plan& plan = plan_of(warp.form);
    copy_lane({plan.d.fragment(), offsetof(abi::MatrixCall, d)}, warp, lane, step, lane_of_step);
}

void matrix_service(abi::CtaContext*, std::uint32_t, abi::MatrixCall* call) {
    multiply_fragments(*call, static_cast<std::uint32_t>(call->active));
}

} // namespace ptarmigan::runtime::tensor_core
