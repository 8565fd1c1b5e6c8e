// SPDX-License-Identifier: Apache-2.0
// What the instruction table says of one form, as plain data. The table itself is isa/*.def.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ptarmigan::ptx {

/// One enumerator per row of the instruction table.
enum class FormId : std::uint16_t {
#define PTX_FORM(id, ...) id,
#include "frontend/isa/instruction_table.def"
#undef PTX_FORM
};

/// Every dot-word that can follow an opcode and is not a type, a state space or a vector size.
enum class Modifier : std::uint16_t {
    none,
#define X(name, spelling) name,
#include "frontend/isa/modifiers.def"
#undef X
};

/// What an operand is for, in the manual's letters.
enum class Role : std::uint8_t {
    none,
#define X(name, spelling) name,
#include "frontend/isa/roles.def"
#undef X
};

/// What a form does besides computing its result; a set of bits.
enum class Effects : std::uint32_t {
    pure = 0,
    load = 1 << 0,       ///< reads memory
    store = 1 << 1,      ///< writes memory
    atomic = 1 << 2,     ///< read-modify-write
    convergent = 1 << 3, ///< communicates between lanes of a warp
    barrier = 1 << 4,    ///< waits for other warps of the CTA
    fence = 1 << 5,      ///< orders memory
    async = 1 << 6,      ///< starts or awaits asynchronous work
    may_trap = 1 << 7,
    terminator = 1 << 8, ///< ends a basic block
    call = 1 << 9,
    volatile_read = 1 << 10, ///< result changes from one execution to the next (clock)
    waits = 1 << 11,         ///< may suspend the warp (nanosleep, mbarrier waits)
    /// Lane by lane its work would be done anew for each (a matrix product), or its answer would tell less of the warp
    /// (activemask), so even quick code runs it as whole warps.
    whole_warp = 1 << 12,
    /// In rows only, instead of `pure`: FormInfo::rounds.
    rounds = 1 << 13,
};
constexpr Effects operator|(Effects a, Effects b) {
    return Effects(std::uint32_t(a) | std::uint32_t(b));
}
constexpr bool any(Effects set, Effects bits) {
    return (std::uint32_t(set) & std::uint32_t(bits)) != 0;
}

/// How the result's shape over the warp follows from the operands' shapes.
enum class ShapeRule : std::uint8_t {
    none,        ///< no result
    elementwise, ///< uniform if all operands are uniform, else varying
    copy,        ///< that of the source: mov, cvta, cvt between integers of one size
    add,         ///< affine in both: add, sub
    subtract,
    multiply,     ///< affine times uniform
    multiply_add, ///< a * b + c
    multiply_wide,
    multiply_wide_add, ///< with a guard against wrapping before the widening
    shift_left,        ///< affine by a uniform amount
    widen,             ///< sign or zero extension: affine if wrapping is excluded or guarded
    narrow,            ///< truncation keeps affine
    select,            ///< selp: uniform predicate keeps the join of both shapes
    special,           ///< by special register (mov from %tid and so on)
    memory,            ///< loads: uniform address gives uniform value (for weak loads), else varying
    uniform,           ///< always the same in all active lanes: votes, redux
    varying,           ///< always varying: atomics, shfl
    by_membermask, ///< uniform if the operand `membermask` is uniform, else varying: vote.sync, redux.sync, match.all
};

struct OperandInfo {
    Role role;
    bool is_destination;
    bool optional;
    std::string_view constraint; ///< the row's own text for the operand's type, e.g. "type", "u32", "address", "pred"
};

/// One row, decoded.
struct FormInfo {
    FormId id;
    std::string_view name;   ///< the row's id: "add_f32"
    std::string_view opcode; ///< "add"
    std::string_view syntax; ///< as in the row
    std::span<const OperandInfo> operands;
    Effects effects;
    bool rounds; ///< the result is a floating-point sum, product, quotient or root
    ShapeRule shape;
    bool lowered;                        ///< has a handler in translator/lower
    std::string_view unsupported_reason; ///< why not, when !lowered
    std::uint8_t ptx_major, ptx_minor;
    std::uint16_t min_sm;     ///< the first of `targets`
    std::string_view targets; ///< as in the row: "80", "90a|100f"; see isa/targets.h
    std::string_view section; ///< manual section, "9.7.1.1"
    std::string_view chapter; ///< file of the row and of its handler, "integer_arithmetic"
};

/// The row of a form. The reference is valid for the life of the process.
const FormInfo& form_info(FormId id);
/// All rows in table order.
std::span<const FormInfo> all_forms();

} // namespace ptarmigan::ptx
