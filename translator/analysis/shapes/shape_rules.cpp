// SPDX-License-Identifier: Apache-2.0
// Transfer functions of the shape analysis. Whatever has no better rule is uniform if all operands are, else varying.
#include "translator/analysis/shapes/shape_rules.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>

namespace ptarmigan::translator {

using ptx::Operand;
using ptx::Role;
using ptx::ShapeRule;
using ptx::StateSpace;
using ptx::VariableScope;
using Level = Shape::Level;

ShapeRules::ShapeRules(ShapeContext& context)
    : context_(context), graph_(context.graph), table_(context.graph, context.width),
      threads_(context.graph, context.block) {
    for (unsigned c = 0; c < 3; ++c) coordinates_[c] = coordinate(c);
    lane_.level = context.width > 1 ? Level::affine : Level::step_uniform;
    lane_.offsets = context.width > 1 ? table_.iota() : nullptr;
}

/// %tid in the lanes of a step: affine if the lanes' distances from lane 0 are the same in every step.
Shape ShapeRules::coordinate(unsigned component) {
    const auto& ntid = context_.block.ntid;
    std::uint32_t threads = ntid[0] * ntid[1] * ntid[2], width = context_.width;
    auto value = [&](std::uint32_t t) -> std::int64_t {
        if (component == 0) return t % ntid[0];
        if (component == 1) return t / ntid[0] % ntid[1];
        return t / (ntid[0] * ntid[1]);
    };
    if (ntid[component] == 1) return uniform_shape(Level::cta_uniform);
    if (width == 1) return uniform_shape();
    LaneOffsets offsets(width, 0);
    for (std::uint32_t lane = 0; lane < width; ++lane) offsets[lane] = value(lane) - value(0);
    // Lanes past the last thread never run, so what they would hold does not matter.
    for (std::uint32_t t = 0; t < threads; ++t)
        if (value(t) - value(t - t % width) != offsets[t % width]) return varying_shape();
    if (all_zero(offsets)) return uniform_shape();
    Shape shape{Level::affine};
    shape.offsets = table_.intern(std::move(offsets));
    return shape;
}

Shape ShapeRules::limit(Shape shape) const {
    if (context_.width == 1 && shape.level > Level::step_uniform) return uniform_shape();
    if (context_.single_step && shape.level == Level::step_uniform) shape.level = Level::cta_uniform;
    return shape;
}

// --- operands ----------------------------------------------------------------------------------------------------

Shape ShapeRules::of_special(const Operand& operand) const {
    using enum ptx::SpecialRegister;
    unsigned c = operand.component;
    switch (ptx::SpecialRegister(operand.index)) {
    case tid: return c < 3 ? coordinates_[c] : uniform_shape(Level::cta_uniform);
    case laneid: return lane_;
    case lanemask_eq:
    case lanemask_le:
    case lanemask_lt:
    case lanemask_ge:
    case lanemask_gt: return varying_shape();
    case warpid: return uniform_shape(); // a step never spans two warps
    case clock:
    case clock_hi:
    case clock64:
    case globaltimer:
    case globaltimer_lo:
    case globaltimer_hi:
    case smid: return context_.invariant_only ? varying_shape() : uniform_shape();
    default: return uniform_shape(Level::cta_uniform);
    }
}

Shape ShapeRules::of_variable(const Operand& operand) {
    bool in_frame =
        operand.scope == VariableScope::frame || (operand.scope == VariableScope::parameter && !graph_.is_entry);
    if (!in_frame) return uniform_shape(Level::cta_uniform);
    Shape shape{Level::affine};
    shape.offsets = table_.zeros();
    shape.steps = table_.iota();
    return shape;
}

Shape ShapeRules::of(const Operand& operand) const {
    switch (operand.kind) {
    case Operand::Kind::reg: {
        Shape shape = graph_.shape_at(block_, operand.index);
        // Part of a register, or a negated one: only uniformity survives.
        if (shape.is_affine() && (operand.negated || !whole_register(operand))) return varying_shape();
        return shape;
    }
    case Operand::Kind::special: {
        Shape shape = of_special(operand);
        return shape.is_affine() ? varying_shape() : shape; // only mov keeps it, see copy()
    }
    case Operand::Kind::variable: {
        bool in_frame =
            operand.scope == VariableScope::frame || (operand.scope == VariableScope::parameter && !graph_.is_entry);
        return in_frame ? varying_shape() : uniform_shape(Level::cta_uniform);
    }
    case Operand::Kind::address: {
        if (operand.base == Operand::Base::reg) return graph_.shape_at(block_, operand.index);
        if (operand.base == Operand::Base::none) return uniform_shape(Level::cta_uniform);
        Operand variable = operand;
        variable.kind = Operand::Kind::variable;
        return of(variable);
    }
    case Operand::Kind::vector:
    case Operand::Kind::list: {
        Shape all = uniform_shape(Level::cta_uniform);
        for (std::uint32_t e = operand.first; e < operand.first + operand.count; ++e) {
            Shape shape = of(graph_.pool[e]);
            if (shape.level == Level::unknown) return shape;
            all =
                shape.is_uniform() && all.is_uniform() ? uniform_shape(worse(all.level, shape.level)) : varying_shape();
        }
        return all;
    }
    default: return uniform_shape(Level::cta_uniform);
    }
}

bool ShapeRules::whole_register(const Operand& operand) const {
    return ptx::bit_size(operand.type) == ptx::bit_size(graph_.values[operand.index].type);
}

/// A known factor, with the sign of the operand's type.
std::optional<std::int64_t> ShapeRules::constant(const Operand& operand) const {
    std::uint64_t bits;
    if (operand.kind == Operand::Kind::imm)
        bits = operand.value;
    else if (operand.kind == Operand::Kind::reg && graph_.values[operand.index].is_constant)
        bits = graph_.values[operand.index].constant;
    else
        return std::nullopt;
    unsigned size = ptx::bit_size(operand.type);
    if (size > 64) return std::nullopt;
    if (size == 64) return std::int64_t(bits);
    if (ptx::is_signed(operand.type)) return std::int64_t(bits << (64 - size)) >> (64 - size);
    return std::int64_t(bits & ((std::uint64_t(1) << size) - 1));
}

// --- rules -------------------------------------------------------------------------------------------------------

Shape ShapeRules::elementwise(const ptx::Instruction& inst) const {
    Shape all = uniform_shape(Level::cta_uniform);
    bool unknown = false, uniform = true;
    auto infos = ptx::form_info(inst.form).operands;
    for (unsigned i = 0; i < inst.operand_count; ++i) {
        if (infos[i].is_destination || inst.operands[i].kind == Operand::Kind::none) continue;
        Shape shape = of(inst.operands[i]);
        if (shape.level == Level::unknown)
            unknown = true;
        else if (!shape.is_uniform())
            uniform = false;
        else
            all.level = worse(all.level, shape.level);
    }
    if (!uniform) return varying_shape();
    return unknown ? Shape{} : all;
}

Shape ShapeRules::copy(const ptx::Instruction& inst) {
    const Operand &d = inst.operands[0], &a = inst.operands[1];
    bool whole = d.kind == Operand::Kind::reg && whole_register(d);
    if (a.kind == Operand::Kind::special) {
        Shape shape = of_special(a);
        return shape.is_affine() && !whole ? varying_shape() : shape;
    }
    if (a.kind == Operand::Kind::variable) {
        Shape shape = of_variable(a);
        return shape.is_affine() && (!whole || ptx::bit_size(d.type) != 64) ? varying_shape() : shape;
    }
    Shape shape = of(a);
    bool same_size = ptx::bit_size(a.type) == ptx::bit_size(d.type);
    // A number that is moved as a float (mov.f32 of a .b32 register, under a condition) is bits.
    return shape.is_affine() && (!whole || !same_size || ptx::is_float(a.type)) ? varying_shape() : shape;
}

Shape ShapeRules::memory(const ptx::Instruction& inst) const {
    const Operand& place = inst[Role::a];
    Shape address = of(place);
    bool constant_space = inst.space == StateSpace::constant || (inst.space == StateSpace::param && graph_.is_entry) ||
                          inst.form == ptx::FormId::ld_global_nc;
    if (!address.is_uniform() && address.level != Level::unknown) return varying_shape();
    if (address.level == Level::unknown) return {};
    if (constant_space) return address;
    if (context_.invariant_only) return varying_shape();
    // A strong load of one place is made once for all lanes of the step; elements that are one access, for each lane.
    const bool lane_by_lane = inst[Role::d].kind == Operand::Kind::vector || ptx::bit_size(inst.type()) > 64;
    if (lane_by_lane && has_effect(inst, ptx::Effects::volatile_read)) return varying_shape();
    if (inst.space == StateSpace::local || (inst.space == StateSpace::param && !graph_.is_entry))
        return varying_shape();
    return uniform_shape();
}

Shape ShapeRules::product(const ptx::Instruction& inst, unsigned a, unsigned b, unsigned bits) {
    Shape x = of(inst.operands[a]), y = of(inst.operands[b]);
    if (x.level == Level::unknown || y.level == Level::unknown) return {};
    if (x.is_uniform() && y.is_uniform()) return uniform_shape(worse(x.level, y.level));
    if (!x.is_affine()) {
        std::swap(x, y);
        std::swap(a, b);
    }
    if (!x.is_affine() || !y.is_uniform()) return varying_shape();
    if (auto factor = constant(inst.operands[b])) return arithmetic(bits).scale(x, *factor);
    return arithmetic(bits).multiply_uniform(x);
}

/// True if the affine form of a narrow value holds in wider arithmetic too: no lane wraps around.
bool ShapeRules::cannot_wrap(const Operand& source, const Shape& shape) const {
    if (source.kind != Operand::Kind::reg) return false;
    const Interval& range = context_.ranges[source.index];
    unsigned bits = ptx::bit_size(source.type);
    if (!range.known() || bits > 32) return false;
    bool sign = ptx::is_signed(source.type);
    std::int64_t low = sign ? -(std::int64_t(1) << (bits - 1)) : 0;
    std::int64_t high = sign ? (std::int64_t(1) << (bits - 1)) - 1 : (std::int64_t(1) << bits) - 1;
    std::int64_t half = std::int64_t(1) << (bits - 1), span = range.high - range.low;
    if (range.low < low || range.high > high || span >= half) return false;
    if (!shape.steps) return true; // distances below half the range: the offsets, taken with sign, are exact
    // With a stride: one lane shows the stride itself, so it is no larger than the span, and neither is any product.
    std::int64_t largest = 0;
    bool unit = false;
    for (std::int64_t step : *shape.steps) {
        largest = std::max(largest, std::abs(step));
        unit = unit || std::abs(step) == 1;
    }
    return unit && all_zero(*shape.offsets) && span < half / std::max<std::int64_t>(largest, 1);
}

/// A narrow affine value after sign or zero extension to 64 bits. `result` is the value that carries the guard.
Shape ShapeRules::widened(const Operand& source, const Shape& shape, ValueId result, unsigned bits) {
    if (!shape.is_affine() || is_tested_ || cannot_wrap(source, shape)) return shape;
    if (ptx::bit_size(source.type) != 32 || bits != 64) return varying_shape();
    Shape guarded = shape;
    guarded.guard = result;
    guarded.guard_scale = 1;
    return guarded;
}

/// mul.wide: the narrow factors widened, then multiplied. The guard's correction is that of the product.
Shape ShapeRules::wide_product(const ptx::Instruction& inst) {
    unsigned bits = ptx::bit_size(inst.operands[0].type);
    Shape x = of(inst.operands[1]), y = of(inst.operands[2]);
    if (x.level == Level::unknown || y.level == Level::unknown) return {};
    if (x.is_uniform() && y.is_uniform()) return uniform_shape(worse(x.level, y.level));
    unsigned a = 1, b = 2;
    if (!x.is_affine()) {
        std::swap(x, y);
        std::swap(a, b);
    }
    if (!x.is_affine() || !y.is_uniform()) return varying_shape();
    Shape wide = widened(inst.operands[a], x, inst.operands[0].index, bits);
    if (!wide.is_affine()) return wide;
    ValueId guard = wide.guard;
    wide.guard = no_value;
    auto factor = constant(inst.operands[b]);
    wide = factor ? arithmetic(bits).scale(wide, *factor) : arithmetic(bits).multiply_uniform(wide);
    if (guard != no_value && wide.is_affine()) wide.guard = guard;
    return wide;
}

Shape ShapeRules::shifted(const ptx::Instruction& inst, unsigned bits) {
    Shape x = of(inst.operands[1]), by = of(inst.operands[2]);
    if (x.level == Level::unknown || by.level == Level::unknown) return {};
    if (x.is_uniform() && by.is_uniform()) return uniform_shape(worse(x.level, by.level));
    if (!x.is_affine() || !by.is_uniform()) return varying_shape();
    auto amount = constant(inst.operands[2]);
    if (!amount) return arithmetic(bits).multiply_uniform(x);
    if (std::uint64_t(*amount) >= bits) return uniform_shape();
    return arithmetic(bits).scale(x, std::int64_t(std::uint64_t(1) << *amount));
}

Shape ShapeRules::selected(const ptx::Instruction& inst) const {
    Shape a = of(inst.operands[1]), b = of(inst.operands[2]), p = of(inst.operands[3]);
    if (a.level == Level::unknown || b.level == Level::unknown || p.level == Level::unknown) return {};
    if (!p.is_uniform()) return varying_shape();
    if (a.is_uniform() && b.is_uniform()) return uniform_shape(worse(p.level, worse(a.level, b.level)));
    if (!a.is_affine() || !b.is_affine() || a.offsets != b.offsets || a.guard != b.guard ||
        (a.guard != no_value && a.guard_scale != b.guard_scale))
        return varying_shape();
    if (a.steps && b.steps && a.steps != b.steps) return varying_shape();
    return a.steps ? a : b;
}

/// The lanes' distances from lane 0, if they are the same in every step.
Shape ShapeRules::shape_of_bits(const ThreadBits& known, unsigned bits) {
    bool complete = known.low >= bits;
    if (!complete && !known.upper_uniform) return varying_shape();
    std::size_t width = context_.width;
    auto distance = [&](std::size_t thread) {
        std::uint64_t difference = known.of(thread) - known.of(thread - thread % width);
        return bits >= 64 ? std::int64_t(difference) : std::int64_t(difference << (64 - bits)) >> (64 - bits);
    };
    LaneOffsets offsets(width, 0);
    for (std::size_t t = 0; t < std::min(width, threads_.threads()); ++t) offsets[t] = distance(t);
    for (std::size_t t = width; t < threads_.threads(); ++t)
        if (distance(t) != offsets[t % width]) return varying_shape();
    if (all_zero(offsets)) return uniform_shape();
    if (bits < 8) return varying_shape(); // predicates have no distances
    Shape shape{Level::affine};
    shape.offsets = table_.intern(std::move(offsets));
    return shape;
}

/// What the threads' numbers tell; nothing where they are not known. The base is then computed from the operands'
/// lane 0, so none may be varying.
std::optional<Shape> ShapeRules::by_threads(const ptx::Instruction& inst) {
    if (context_.width == 1 || inst.guard != ptx::no_id || ptx::form_info(inst.form).effects != ptx::Effects::pure)
        return std::nullopt;
    for (unsigned i = 1; i < inst.operand_count; ++i) {
        const Operand& operand = inst.operands[i];
        if (operand.kind == Operand::Kind::none) continue;
        bool reg = operand.kind == Operand::Kind::reg;
        if (!reg && operand.kind != Operand::Kind::imm) return std::nullopt;
        if (reg && graph_.shape_at(block_, operand.index).is_varying()) return std::nullopt;
    }
    const ThreadBits* known = threads_.of_result(inst);
    if (!known) return std::nullopt;
    for (ValueId value : known->assumed) {
        Shape shape = graph_.shape_at(block_, value);
        if (shape.level == Level::unknown) return Shape{};
        if (!shape.is_uniform()) return std::nullopt;
    }
    return shape_of_bits(*known, ptx::bit_size(inst.operands[0].type));
}

/// Of an instruction that lane_agreement.h made: lane 0's result, `shape` where that can't be asked for.
Shape ShapeRules::of_lane_zero(const ptx::Instruction& inst, const Shape& shape) {
    for (unsigned i = 1; i < inst.operand_count; ++i) {
        const Operand& operand = inst.operands[i];
        if (operand.kind != Operand::Kind::reg) continue;
        const Shape source = graph_.shape_at(block_, operand.index);
        if (source.level == Level::unknown) return {};
        if (source.is_varying() || context_.invariant_only) return shape;
    }
    context_.graph.values[inst.operands[0].index].lane_zero = true;
    return uniform_shape();
}

Shape ShapeRules::unguarded(const ptx::Instruction& inst) {
    Shape shape = by_algebra(inst);
    const Operand& d = inst.operands[0];
    if (d.kind != Operand::Kind::reg) return shape;
    SsaValue& result = context_.graph.values[d.index];
    result.lane_zero = false;
    const ptx::ShapeRule rule = ptx::form_info(inst.form).shape;
    const bool is_wider = rule == ptx::ShapeRule::widen || rule == ptx::ShapeRule::multiply_wide ||
                          rule == ptx::ShapeRule::multiply_wide_add;
    if (inst.has(ptx::Modifier::uni) && context_.width > 1 && !is_wider) return of_lane_zero(inst, shape);
    if (!shape.is_varying() && shape.guard == no_value) return shape;
    std::optional<Shape> known = by_threads(inst);
    if (!known || known->is_varying()) return shape;
    result.lane_zero = known->level != Level::unknown;
    return *known;
}

/// What has no rule of its own: of these only a shuffle that gives all lanes of the warp the value of one (in a segment
/// of 32 lanes every lane's number is in range, so no lane gets its own).
Shape ShapeRules::shuffled(const ptx::Instruction& inst) {
    if (inst.form != ptx::FormId::shfl_sync || !inst.has(ptx::Modifier::idx) || context_.invariant_only)
        return varying_shape();
    constexpr std::int64_t segment_bits = 0x1f1f, whole_warp = 0x1f;
    const std::optional<std::int64_t> segment = constant(inst[Role::c]);
    if (!segment || (*segment & segment_bits) != whole_warp) return varying_shape();
    for (const Role role : {Role::b, Role::membermask}) {
        const Shape shape = of(inst[role]);
        if (shape.level == Level::unknown) return shape;
        if (!shape.is_uniform()) return varying_shape();
    }
    return uniform_shape();
}

Shape ShapeRules::by_algebra(const ptx::Instruction& inst) {
    const ptx::FormInfo& form = ptx::form_info(inst.form);
    const Operand& d = inst.operands[0];
    // Affine results need a register of exactly the result's type, and integer arithmetic: an integer register that
    // selp.f32 reads is taken for a float.
    bool plain = d.kind == Operand::Kind::reg && whole_register(d) && !ptx::is_float(d.type);
    unsigned bits = ptx::bit_size(d.type);
    auto keep = [&](Shape shape) { return shape.is_affine() && !plain ? varying_shape() : shape; };
    auto sum = [&](Shape a, Shape b) -> Shape {
        if (a.level == Level::unknown || b.level == Level::unknown) return {};
        return keep(arithmetic(bits).add(a, b));
    };
    switch (form.shape) {
    case ShapeRule::none: return inst.form == ptx::FormId::wgmma_wait_group ? varying_shape() : Shape{};
    case ShapeRule::copy:
    case ShapeRule::special: return copy(inst);
    case ShapeRule::add: return sum(of(inst.operands[1]), of(inst.operands[2]));
    case ShapeRule::subtract: return sum(of(inst.operands[1]), arithmetic(bits).negate(of(inst.operands[2])));
    case ShapeRule::multiply: return keep(product(inst, 1, 2, bits));
    case ShapeRule::multiply_add: return sum(product(inst, 1, 2, bits), of(inst.operands[3]));
    case ShapeRule::multiply_wide: return keep(wide_product(inst));
    case ShapeRule::multiply_wide_add: return sum(wide_product(inst), of(inst.operands[3]));
    case ShapeRule::shift_left: return keep(shifted(inst, bits));
    case ShapeRule::widen: return keep(widened(inst.operands[1], of(inst.operands[1]), d.index, bits));
    case ShapeRule::narrow: return keep(arithmetic(bits).wrap(of(inst.operands[1])));
    case ShapeRule::select: return keep(selected(inst));
    case ShapeRule::memory: return memory(inst);
    case ShapeRule::uniform:
        if (context_.invariant_only) return varying_shape();
        return uniform_shape(is_cta_barrier(inst) ? Level::cta_uniform : Level::step_uniform);
    case ShapeRule::by_membermask: {
        Shape mask = of(inst[Role::membermask]);
        if (mask.level == Level::unknown) return mask;
        return context_.invariant_only || !mask.is_uniform() ? varying_shape() : uniform_shape();
    }
    case ShapeRule::varying: return shuffled(inst);
    case ShapeRule::elementwise: break;
    }
    Shape shape = elementwise(inst);
    bool repeatable = !has_effect(inst, ptx::Effects::volatile_read | ptx::Effects::load | ptx::Effects::async |
                                            ptx::Effects::waits | ptx::Effects::atomic | ptx::Effects::convergent);
    if (!repeatable && (context_.invariant_only || shape.level == Level::cta_uniform))
        return context_.invariant_only ? varying_shape() : uniform_shape();
    return shape;
}

Shape ShapeRules::result(BlockId block, const GraphInstruction& instruction, unsigned definition) {
    block_ = block;
    is_tested_ = instruction.inst.has(ptx::Modifier::uni);
    Shape shape = limit(unguarded(instruction.inst));
    if (instruction.previous.empty() || shape.level == Level::unknown) return shape;
    ValueId old = instruction.previous[definition];
    if (graph_.values[old].is_undefined) return shape; // nobody looks at lanes whose guard is false
    Shape before = graph_.shape_at(block, old), guard = graph_.shape_at(block, instruction.inst.guard);
    if (guard.level == Level::unknown) return {};
    if (!guard.is_uniform()) return limit(varying_shape());
    Shape merged = join(shape, before); // an unknown one may wait for this very result
    if (merged.is_uniform()) merged.level = worse(merged.level, guard.level);
    return limit(merged);
}

} // namespace ptarmigan::translator
