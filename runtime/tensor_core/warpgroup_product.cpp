// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/warpgroup_product.h"

#include "runtime/tensor_core/form_product.h"
#include "runtime/tensor_core/form_table.h"
#include "runtime/tensor_core/fragments.h"

namespace ptarmigan::runtime::tensor_core {
namespace {

using ptx::MatrixFragment;
using ptx::MatrixOperand;

MatrixProduct product_without_c(const ptx::MatrixForm& form) {
    MatrixProduct product = product_of(form);
    product.c_is_zero = true;
    return product;
}

unsigned line_bytes(const ptx::MatrixForm& form, MatrixOperand operand) {
    const MatrixFragment fragment(form, operand);
    return fragment.line_elements() * ptx::bit_size(fragment.type()) / 8;
}

/// What follows from a form.
struct Plan {
    explicit Plan(const ptx::MatrixForm& wanted)
        : form(wanted), a(MatrixFragment(wanted, MatrixOperand::a)), d(MatrixFragment(wanted, MatrixOperand::d)),
          multiply(product_of(wanted)), multiply_only(product_without_c(wanted)),
          a_bytes(line_bytes(wanted, MatrixOperand::a)), b_bytes(line_bytes(wanted, MatrixOperand::b)) {}

    ptx::MatrixForm form;
    FragmentMover a, d;
    Multiplier multiply, multiply_only; ///< with and without C
    unsigned a_bytes, b_bytes;          ///< of a row of A and a column of B
};

const Plan& plan_of(const ptx::MatrixForm& form) {
    static FormTable<Plan, 16384> plans;
    return plans[form];
}

bool read_operand(std::uint64_t descriptor, bool across, const SharedMemory& memory, unsigned first, unsigned count,
                  unsigned bytes, std::uint8_t* lines) {
    const SharedMatrix matrix(descriptor);
    return across ? matrix.read_across(memory, first, count, bytes, lines)
                  : matrix.read_lines(memory, first, count, bytes, lines);
}

} // namespace

bool WarpgroupMultiplier::multiply(const abi::WarpgroupCall& call, unsigned warp, const SharedMemory& memory,
                                   std::uint32_t (*d)[32]) {
    const Plan& plan = plan_of(call.form);
    const ptx::MatrixForm& form = plan.form;
    if (!read_operand(call.b, form.b_by_rows, memory, 0, form.n, plan.b_bytes, b_)) return false;
    if (!form.a_in_memory)
        plan.a.gather(call.a_registers, a_);
    else if (!read_operand(call.a, form.a_by_columns, memory, warp * form.m, form.m, plan.a_bytes, a_))
        return false;
    const bool is_sparse = ptx::is_sparse(form.opcode);
    if (is_sparse) select_by_metadata(form, call.detail, call.metadata, selected_);
    if (call.adds) plan.d.gather(d, d_);
    (call.adds ? plan.multiply : plan.multiply_only)(a_, b_, d_, d_, is_sparse ? selected_ : nullptr);
    plan.d.scatter(d_, d);
    return true;
}

unsigned warpgroup_registers(const ptx::MatrixForm& form) {
    return plan_of(form).d.fragment().registers();
}

void deposit_lane(const abi::WarpgroupCall& step, unsigned lane_of_step, abi::WarpgroupCall& warp, unsigned lane) {
    const auto* from = abi::registers_of(step);
    auto* to = abi::registers_of(warp);
    warp.metadata[lane] = step.metadata[lane_of_step];
    for (unsigned r = 0; r < abi::WarpgroupCall::a_words; ++r)
        warp.a_registers[r][lane] = step.a_registers[r][lane_of_step];
    for (unsigned r = 0; r < step.registers; ++r) to[r][lane] = from[r][lane_of_step];
}

void collect_lane(const abi::WarpgroupCall& warp, unsigned lane, abi::WarpgroupCall& step, unsigned lane_of_step) {
    const auto* from = abi::registers_of(warp);
    auto* to = abi::registers_of(step);
    for (unsigned r = 0; r < step.registers; ++r) to[r][lane_of_step] = from[r][lane];
}

} // namespace ptarmigan::runtime::tensor_core
