// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/warp_product.h"

#include "runtime/base/log.h"
#include "runtime/tensor_core/form_product.h"
#include "runtime/tensor_core/form_table.h"
#include "runtime/tensor_core/fragments.h"
#include "runtime/tensor_core/product_group.h"

#include <cstring>

namespace ptarmigan::runtime::tensor_core {
namespace {

using ptx::MatrixFragment;
using ptx::MatrixOperand;

/// What .satfinite means to wmma.mma of halves (PTX before 6.5): D f16 is the f32 result toward zero. Elsewhere
/// nothing.
bool narrows_toward_zero(const ptx::MatrixForm& form) {
    return form.satfinite && form.a == ptx::MatrixType::f16 && form.c == ptx::MatrixType::f32 &&
           form.d == ptx::MatrixType::f16;
}

/// f32 to f16 toward zero; infinities stay.
std::uint16_t narrow_toward_zero(std::uint32_t bits) {
    const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return 0x7fff;
    if (magnitude == 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7c00);
    const int exponent = static_cast<int>(magnitude >> 23) - 127;
    if (exponent > 15) return static_cast<std::uint16_t>(sign | 0x7bff);
    if (exponent >= -14)
        return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(exponent + 15) << 10 |
                                          (magnitude >> 13 & 0x3ff));
    if (exponent < -24) return static_cast<std::uint16_t>(sign);
    return static_cast<std::uint16_t>(sign | ((magnitude & 0x7fffff) | 0x800000) >> (-exponent - 1));
}

/// What the engine computes of a form.
MatrixProduct computed_of(const ptx::MatrixForm& form) {
    MatrixProduct product = product_of(form);
    if (narrows_toward_zero(form)) product.d = Format::f32;
    return product;
}

/// mma has eight columns, pairs of a group sixteen.
bool is_pair_of(const ptx::MatrixForm& form) {
    return form.opcode == ptx::MatrixOpcode::mma && form.n == 16;
}
ptx::MatrixForm single_of(ptx::MatrixForm form) {
    if (is_pair_of(form)) form.n = 8;
    return form;
}

/// What follows from a form. The fragments are those of one product of a pair.
struct Plan {
    explicit Plan(const ptx::MatrixForm& wanted)
        : form(wanted), a(MatrixFragment(single_of(wanted), MatrixOperand::a)),
          b(MatrixFragment(single_of(wanted), MatrixOperand::b)),
          c(MatrixFragment(single_of(wanted), MatrixOperand::c)),
          d(MatrixFragment(single_of(wanted), MatrixOperand::d)), multiply(computed_of(wanted)),
          multiply_group(computed_of(wanted)), products(a.fragment().lines() / wanted.m),
          is_sparse(ptx::is_sparse(wanted.opcode)), is_pair(is_pair_of(wanted)) {}

    ptx::MatrixForm form;
    FragmentMover a, b, c, d;
    Multiplier multiply;
    GroupMultiplier multiply_group;
    unsigned products; ///< whose matrices follow each other
    bool is_sparse, is_pair;
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

void say_that_part_of_a_warp_multiplies() {
    log_once("part of a warp multiplies",
             "a product of matrices that only a part of a warp executes is not done, as on a GPU");
}

} // namespace

void multiply_fragments(abi::MatrixCall& call, std::uint32_t lanes) {
    const Plan& plan = plan_of(call.form);
    if (lanes != ~0u) {
        say_that_part_of_a_warp_multiplies();
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
    if (narrows_toward_zero(plan.form)) {
        std::uint16_t halves[most_accumulators / 4];
        const unsigned elements = unsigned{plan.form.m} * plan.form.n;
        for (unsigned i = 0; i < elements; ++i) {
            std::uint32_t sum;
            std::memcpy(&sum, d + 4 * i, sizeof sum);
            halves[i] = narrow_toward_zero(sum);
        }
        std::memcpy(d, halves, 2 * elements);
    }
    plan.d.scatter(d, call.d);
}

namespace {

std::size_t words_of(const FragmentMover& mover) {
    return std::size_t{mover.fragment().distinct_registers()} * mover.fragment().register_bits() / 32;
}
std::size_t bytes_of(const FragmentMover& mover) {
    return mover.fragment().lines() * mover.line_bytes();
}

/// The accumulators of a group in registers and in the engine's layout. Those of a pair both stand in each line.
class Accumulators {
public:
    Accumulators(const Plan& plan, Registers registers, std::uint8_t* packed)
        : plan_(plan), registers_(registers), packed_(packed) {}

    void pack(unsigned number) const {
        for (unsigned side = 0; side < sides(); ++side)
            plan_.c.gather(registers(number, side), place(number, side), stride());
    }
    void unpack(unsigned number) const {
        for (unsigned side = 0; side < sides(); ++side)
            plan_.d.scatter(place(number, side), registers(number, side), stride());
    }

private:
    unsigned sides() const { return plan_.is_pair ? 2 : 1; }
    std::size_t stride() const { return plan_.d.line_bytes() * sides(); }
    Registers registers(unsigned number, unsigned side) const {
        return registers_ + (number * sides() + side) * words_of(plan_.d);
    }
    std::uint8_t* place(unsigned number, unsigned side) const {
        return packed_ + number * bytes_of(plan_.d) * sides() + side * plan_.d.line_bytes();
    }

    const Plan& plan_;
    Registers registers_;
    std::uint8_t* packed_;
};

} // namespace

void multiply_group(const abi::MatrixGroup& group, std::uint32_t lanes) {
    using Operation = abi::MatrixGroupOperation;
    const Plan& plan = plan_of(group.form);
    const auto operation = static_cast<Operation>(group.operation);
    if (operation == Operation::pack || operation == Operation::unpack) {
        const Accumulators all(plan, group.accumulators, static_cast<std::uint8_t*>(group.packed));
        for (unsigned i = 0; i < group.accumulator_count; ++i)
            operation == Operation::pack ? all.pack(i) : all.unpack(i);
        return;
    }
    const bool is_packed = operation == Operation::multiply_packed;
    const std::size_t words_a = words_of(plan.a), words_b = words_of(plan.b), words_d = words_of(plan.d);
    const unsigned sides = plan.is_pair ? 2 : 1;
    if (lanes != ~0u) {
        say_that_part_of_a_warp_multiplies();
        if (is_packed) return;
        for (unsigned i = 0; i < group.chain_count; ++i)
            std::memmove(group.accumulators[group.chains[i].d * words_d * sides],
                         group.accumulators[group.chains[i].c * words_d * sides],
                         words_d * sides * sizeof *group.accumulators);
        return;
    }
    const std::size_t bytes_a = bytes_of(plan.a), bytes_b = bytes_of(plan.b), bytes_d = bytes_of(plan.d) * sides;
    const unsigned matrices_b = group.b_count * sides;
    const std::size_t operands = group.a_count * bytes_a + matrices_b * bytes_b;
    std::uint8_t* a = group_memory(0, operands + (is_packed ? 0 : group.accumulator_count * bytes_d));
    std::uint8_t* b = a + group.a_count * bytes_a;
    std::uint8_t* accumulators = is_packed ? static_cast<std::uint8_t*>(group.packed) : a + operands;
    for (unsigned i = 0; i < group.a_count; ++i) plan.a.gather(group.a + i * words_a, a + i * bytes_a);
    for (unsigned i = 0; i < matrices_b; ++i) plan.b.gather(group.b + i * words_b, b + i * bytes_b);
    const Accumulators moved(plan, group.accumulators, accumulators);
    // An accumulator is some chain's C or D first; what D's hold before does not matter.
    std::uint64_t made = 0;
    static_assert(abi::MatrixGroup::most_accumulators <= 64);
    for (unsigned i = 0; i < group.chain_count && !is_packed; ++i) {
        const abi::MatrixChain& chain = group.chains[i];
        if (!(made >> chain.c & 1)) moved.pack(chain.c);
        made |= std::uint64_t{1} << chain.c | std::uint64_t{1} << chain.d;
    }
    plan.multiply_group(
        {a, b, accumulators, group.a_count, group.b_count, group.steps, group.chains, group.chain_count});
    for (unsigned i = 0; i < group.chain_count && !is_packed; ++i) moved.unpack(group.chains[i].d);
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

void matrix_group_service(abi::CtaContext*, std::uint32_t, const abi::MatrixGroup* group) {
    multiply_group(*group, static_cast<std::uint32_t>(group->active));
}

} // namespace ptarmigan::runtime::tensor_core
