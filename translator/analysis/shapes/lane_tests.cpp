// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/shapes/lane_tests.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/low_mask.h"
#include "translator/analysis/graph/make_operands.h"

#include <algorithm>

namespace ptarmigan::translator {

using ptx::FormId;
using ptx::Modifier;
using ptx::Operand;
using ptx::ScalarType;

namespace {

Operand immediate(std::int64_t number, ScalarType type) {
    return constant_operand(std::uint64_t(number) & low_mask(ptx::bit_size(type)), type);
}

ptx::Instruction make(FormId form, ScalarType type, std::initializer_list<Operand> operands, SourceLocation location,
                      Modifier modifier = Modifier::none) {
    ptx::Instruction inst;
    inst.form = form;
    inst.types[0] = type;
    inst.location = location;
    if (modifier != Modifier::none) inst.modifiers[inst.modifier_count++] = modifier;
    inst.operand_count = std::uint8_t(ptx::form_info(form).operands.size());
    std::copy(operands.begin(), operands.end(), inst.operands.begin());
    return inst;
}

Operand retyped(Operand operand, ScalarType type) {
    operand.type = type;
    return operand;
}

/// A register of all of the type's bits.
bool is_whole(const FunctionGraph& graph, const Operand& operand, unsigned bits) {
    return operand.kind == Operand::Kind::reg && !operand.negated &&
           ptx::bit_size(graph.values[operand.index].type) == bits;
}

/// The values of the two halves that a register is taken apart into.
std::optional<std::pair<ValueId, ValueId>> definitions_of_halves(const FunctionGraph& graph,
                                                                 const GraphInstruction& unpack) {
    const Operand& parts = unpack.inst.operands[0];
    if (parts.kind != Operand::Kind::vector || parts.count != 2) return std::nullopt;
    const Operand &low = graph.pool[parts.first], &high = graph.pool[parts.first + 1];
    const auto value = [](const Operand& part) {
        return part.kind == Operand::Kind::reg ? ValueId(part.index) : no_value;
    };
    return std::pair{value(low), value(high)};
}

/// Numbers whose bits have no sign.
ScalarType unsigned_of(ScalarType type) {
    return ptx::bit_size(type) == 64 ? ScalarType::u64 : ScalarType::u32;
}

} // namespace

bool is_pure(const ptx::Instruction& inst) {
    return ptx::form_info(inst.form).effects == ptx::Effects::pure;
}

bool is_line(const FunctionGraph& graph, const Operand& operand, unsigned bits) {
    if (operand.kind != Operand::Kind::reg || operand.negated || bits < 32 ||
        ptx::bit_size(graph.values[operand.index].type) != bits || ptx::bit_size(operand.type) != bits)
        return false;
    const Shape& shape = graph.values[operand.index].shape;
    return shape.is_affine() && !shape.steps && shape.guard == no_value;
}

bool is_tested_quotient(const FunctionGraph& graph, const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    if ((inst.form != FormId::div_int && inst.form != FormId::rem_int) || inst.guard != ptx::no_id) return false;
    const unsigned bits = ptx::bit_size(inst.type());
    const Operand &d = inst.operands[0], &a = inst.operands[1], &b = inst.operands[2];
    if (!is_whole(graph, d, bits) || !is_line(graph, a, bits) || !graph.values[d.index].shape.is_varying())
        return false;
    const auto size = std::int64_t(graph.values[a.index].shape.offsets->size());
    std::optional<std::uint64_t> constant;
    if (b.kind == Operand::Kind::imm) constant = b.value;
    if (is_whole(graph, b, bits) && graph.values[b.index].is_constant) constant = graph.values[b.index].constant;
    if (constant) return *constant >= std::uint64_t(size); // else lanes have several quotients
    return is_whole(graph, b, bits) && graph.values[b.index].shape.is_uniform();
}

bool is_tested_shift(const FunctionGraph& graph, const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    if (inst.form != FormId::shr || inst.guard != ptx::no_id) return false;
    const unsigned bits = ptx::bit_size(inst.type());
    const Operand &d = inst.operands[0], &a = inst.operands[1], &b = inst.operands[2];
    if (!is_whole(graph, d, bits) || !is_line(graph, a, bits) || !graph.values[d.index].shape.is_varying() ||
        b.kind != Operand::Kind::imm || b.value >= bits)
        return false;
    const auto [low, high] =
        std::minmax_element(graph.values[a.index].shape.offsets->begin(), graph.values[a.index].shape.offsets->end());
    return b.value >= 63 || (std::int64_t(1) << b.value) > *high - *low; // else lanes have several quotients
}

bool is_shift_by_number(const FunctionGraph& graph, const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    if (inst.form != FormId::shr || inst.guard != ptx::no_id) return false;
    const unsigned bits = ptx::bit_size(inst.type());
    const Operand &d = inst.operands[0], &a = inst.operands[1], &b = inst.operands[2];
    return is_whole(graph, d, bits) && is_line(graph, a, bits) && graph.values[d.index].shape.is_varying() &&
           is_whole(graph, b, 32) && graph.values[b.index].shape.is_uniform();
}

std::optional<unsigned> line_of_mask(const FunctionGraph& graph, const ptx::Instruction& inst) {
    const unsigned bits = ptx::bit_size(inst.type());
    if (inst.form != FormId::and_bits || inst.guard != ptx::no_id || (bits != 32 && bits != 64) ||
        !is_whole(graph, inst.operands[0], bits) || !graph.values[inst.operands[0].index].shape.is_varying())
        return std::nullopt;
    for (const unsigned line : {1u, 2u}) {
        const Operand& mask = inst.operands[3 - line];
        if (is_line(graph, inst.operands[line], bits) && !inst.operands[line].negated && is_whole(graph, mask, bits) &&
            graph.values[mask.index].shape.is_uniform())
            return line;
    }
    return std::nullopt;
}

std::optional<ReciprocalQuotient> reciprocal_quotient(const FunctionGraph& graph,
                                                      const std::vector<const GraphInstruction*>& definitions,
                                                      const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    const auto is_same_everywhere = [&](const Operand& operand) {
        return operand.kind == Operand::Kind::imm ||
               (is_whole(graph, operand, 32) && graph.values[operand.index].shape.is_uniform());
    };
    if (inst.form != FormId::shr || inst.guard != ptx::no_id || ptx::is_signed(inst.type()) ||
        !is_whole(graph, inst.operands[0], 32) || !is_whole(graph, inst.operands[1], 32) ||
        !graph.values[inst.operands[0].index].shape.is_varying() || !is_same_everywhere(inst.operands[2]))
        return std::nullopt;
    const auto made_by = [&](const Operand& operand, FormId form) -> const GraphInstruction* {
        if (operand.kind != Operand::Kind::reg || operand.negated) return nullptr;
        const GraphInstruction* made = definitions[operand.index];
        return made && made->inst.form == form && made->inst.guard == ptx::no_id ? made : nullptr;
    };
    const auto product = [&](const ptx::Instruction& product,
                             const Operand& line) -> std::optional<ReciprocalQuotient> {
        if (!is_line(graph, line, 32)) return std::nullopt;
        for (unsigned side : {1u, 2u}) {
            const Operand &factor = product.operands[3 - side], &other = product.operands[side];
            if (other.kind == Operand::Kind::reg && other.index == line.index && !other.negated &&
                is_same_everywhere(factor))
                return ReciprocalQuotient{line, factor, inst.operands[2]};
        }
        return std::nullopt;
    };
    // mul.hi and add, as it is written.
    if (const GraphInstruction* sum = made_by(inst.operands[1], FormId::add_int))
        for (unsigned side : {1u, 2u})
            if (const GraphInstruction* upper = made_by(sum->inst.operands[side], FormId::mul_hi);
                upper && !ptx::is_signed(upper->inst.type()) && ptx::bit_size(upper->inst.type()) == 32)
                if (const auto found = product(upper->inst, sum->inst.operands[3 - side])) return found;
    // The upper half of line * factor + line * 2^32, as ptxas computes both at once.
    const GraphInstruction* unpack = made_by(inst.operands[1], FormId::mov_unpack);
    if (!unpack) return std::nullopt;
    const auto halves = definitions_of_halves(graph, *unpack);
    if (!halves || halves->second != inst.operands[1].index) return std::nullopt;
    const GraphInstruction* wide = made_by(unpack->inst.operands[1], FormId::mad_wide);
    if (!wide || ptx::is_signed(wide->inst.type())) return std::nullopt;
    const GraphInstruction* pack = made_by(wide->inst.operands[3], FormId::mov_pack);
    if (!pack || pack->inst.operands[1].count != 2) return std::nullopt;
    const Operand &low = graph.pool[pack->inst.operands[1].first], &high = graph.pool[pack->inst.operands[1].first + 1];
    if (constant_of(graph, low) != std::uint64_t(0) || high.kind != Operand::Kind::reg) return std::nullopt;
    Operand line = high;
    line.type = ScalarType::u32;
    return product(wide->inst, line);
}

Modifier order_of(const ptx::Instruction& inst) {
    using enum Modifier;
    return inst.one_of({lt, le, gt, ge, lo, ls, hi, hs});
}

std::optional<unsigned> line_of_comparison(const FunctionGraph& graph, const ptx::Instruction& inst) {
    if ((inst.form != FormId::setp_signed && inst.form != FormId::setp_unsigned) || inst.guard != ptx::no_id)
        return std::nullopt;
    const Operand &d = inst.operands[0], &other = inst.operands[1];
    if (d.kind != Operand::Kind::reg || (other.kind != Operand::Kind::none && other.kind != Operand::Kind::sink) ||
        !graph.values[d.index].shape.is_varying())
        return std::nullopt;
    if (order_of(inst) == Modifier::none) return std::nullopt;
    for (unsigned line : {2u, 3u}) {
        const Operand& uniform = inst.operands[5 - line];
        const bool is_uniform =
            uniform.kind == Operand::Kind::imm ||
            (uniform.kind == Operand::Kind::reg && !uniform.negated && graph.values[uniform.index].shape.is_uniform());
        if (is_uniform && is_line(graph, inst.operands[line], ptx::bit_size(inst.type()))) return line;
    }
    return std::nullopt;
}

std::optional<unsigned> line_of_widening(const FunctionGraph& graph, const ptx::Instruction& inst) {
    const ptx::ShapeRule rule = ptx::form_info(inst.form).shape;
    if (rule != ptx::ShapeRule::widen && rule != ptx::ShapeRule::multiply_wide &&
        rule != ptx::ShapeRule::multiply_wide_add)
        return std::nullopt;
    const Operand& d = inst.operands[0];
    if (inst.guard != ptx::no_id || d.kind != Operand::Kind::reg || inst.modifier_count >= inst.max_modifiers ||
        graph.values[d.index].shape.guard != d.index)
        return std::nullopt;
    for (unsigned line = 1; line <= (rule == ptx::ShapeRule::widen ? 1u : 2u); ++line)
        if (is_line(graph, inst.operands[line], 32)) return line;
    return std::nullopt;
}

CtaSpans cta_spans(const FunctionGraph& graph) {
    CtaSpans spans(graph.values.size());
    for (std::size_t value = 0; value < spans.size(); ++value) {
        const Shape& shape = graph.values[value].shape;
        spans[value].is_uniform = shape.is_uniform() || graph.values[value].is_constant;
        if (!shape.is_affine() || shape.steps || shape.guard != no_value) continue;
        const auto [low, high] = std::minmax_element(shape.offsets->begin(), shape.offsets->end());
        if (*high - *low < std::int64_t(1) << 31) spans[value] = {spans[value].is_uniform, true, *low, *high};
    }
    return spans;
}

std::pair<std::int64_t, std::int64_t> LaneTest::span_of(const Operand& line) const {
    if (spans_) return {(*spans_)[line.index].low, (*spans_)[line.index].high};
    const LaneOffsets& offsets = *graph_.values[line.index].shape.offsets;
    const auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
    return {*low, *high};
}

Operand LaneTest::add(const GraphInstruction& division, const Operand& a, const Operand& b) {
    model_ = &division;
    const ptx::Instruction& inst = division.inst;
    const ScalarType type = inst.type();
    const FormId form = inst.form == FormId::shr ? FormId::shr : FormId::div_int;
    const auto known = std::find_if(tested_.begin(), tested_.end(), [&](const Tested& t) {
        return t.form == form && t.type == type && t.a == a.index && t.b.kind == b.kind && t.b.index == b.index &&
               t.b.value == b.value;
    });
    if (known != tested_.end()) return known->quotient;
    const ScalarType number = form == FormId::shr && !ptx::is_signed(type) ? unsigned_of(type) : type;
    const auto span = span_of(inst.operands[1]);
    const auto [lowest, highest] = ends(a, number, span);
    const Operand quotient = emit(form, number, {lowest, b});
    tested_.push_back({form, type, a.index, b, quotient});
    if (form == FormId::div_int) {
        // One division: what is left of the lowest does not reach the divisor in the highest either. Their distance is
        // no more than the highest itself, so the sum does not wrap. A divisor of 0 leaves all, a negative one less
        // than nothing.
        const Operand rest = emit(FormId::sub_int, number, {lowest, emit(FormId::mul_lo, number, {quotient, b})});
        if (ptx::is_signed(number)) require(Modifier::ge, number, lowest, immediate(0, number));
        require(Modifier::lt, number,
                emit(FormId::add_int, number, {rest, immediate(span.second - span.first, number)}), b);
        return quotient;
    }
    require(Modifier::eq, number, quotient, emit(form, number, {highest, b}));
    return quotient;
}

Operand LaneTest::add_reciprocal(const GraphInstruction& shift, const ReciprocalQuotient& quotient,
                                 const ReciprocalQuotient& named) {
    model_ = &shift;
    const auto [lowest, highest] = ends(named.line, ScalarType::s32, span_of(quotient.line));
    const auto divided = [&](const Operand& number) {
        const Operand upper = emit(FormId::mul_hi, ScalarType::u32, {number, named.factor}, Modifier::hi);
        return emit(FormId::shr, ScalarType::u32,
                    {emit(FormId::add_int, ScalarType::u32, {upper, number}), named.shift});
    };
    // Below 2^31 the sum does not wrap.
    require(Modifier::ge, ScalarType::s32, lowest, immediate(0, ScalarType::s32));
    const Operand result = divided(lowest);
    require(Modifier::eq, ScalarType::u32, result, divided(highest));
    return result;
}

Operand LaneTest::add_mask(const GraphInstruction& instruction, unsigned line, const Operand& a, const Operand& mask) {
    model_ = &instruction;
    const bool is_wide = ptx::bit_size(instruction.inst.type()) == 64;
    const ScalarType number = is_wide ? ScalarType::u64 : ScalarType::u32,
                     bits = is_wide ? ScalarType::b64 : ScalarType::b32;
    const Operand named = retyped(mask, bits);
    // Of lower bits: lanes between two that share the others share them, too.
    const Operand next = emit(FormId::add_int, number, {retyped(mask, number), immediate(1, number)});
    const Operand common = emit(FormId::and_bits, bits, {named, retyped(next, bits)});
    require(Modifier::eq, number, retyped(common, number), immediate(0, number));
    const auto [lowest, highest] = ends(retyped(a, number), number, span_of(instruction.inst.operands[line]));
    const Operand others = emit(FormId::not_bits, bits, {named});
    const Operand shared = emit(FormId::and_bits, bits, {retyped(lowest, bits), others});
    const Operand last = emit(FormId::and_bits, bits, {retyped(highest, bits), others});
    require(Modifier::eq, number, retyped(shared, number), retyped(last, number));
    return retyped(shared, number);
}

void LaneTest::begin_if() {
    before_if_ = all_;
    tested_before_if_ = tested_.size();
    ends_before_if_ = ends_.size();
    all_ = {};
}

void LaneTest::end_if(const Operand& condition, bool taken) {
    const Operand inside = all_;
    all_ = before_if_;
    // What was found out there is not known elsewhere.
    tested_.erase(tested_.begin() + std::ptrdiff_t(tested_before_if_), tested_.end());
    ends_.erase(ends_.begin() + std::ptrdiff_t(ends_before_if_), ends_.end());
    if (inside.kind == Operand::Kind::none) return;
    const Operand others = taken ? emit(FormId::not_bits, ScalarType::pred, {condition}) : condition;
    require(emit(FormId::or_bits, ScalarType::pred, {inside, others}));
}

void LaneTest::add_comparison(const GraphInstruction& comparison, unsigned line, const Operand& a, const Operand& b) {
    model_ = &comparison;
    const ptx::Instruction& inst = comparison.inst;
    const auto [lowest, highest] = ends(line == 2 ? a : b, inst.type(), span_of(inst.operands[line]));
    const auto answer = [&](const Operand& end) {
        return compare(inst.form, order_of(inst), inst.type(), line == 2 ? end : a, line == 2 ? b : end);
    };
    const Operand differ = emit(FormId::xor_bits, ScalarType::pred, {answer(lowest), answer(highest)});
    require(emit(FormId::not_bits, ScalarType::pred, {differ}));
}

void LaneTest::add_widening(const GraphInstruction& widening, unsigned line, const Operand& a) {
    model_ = &widening;
    const ScalarType from = widening.inst.operands[line].type;
    const ScalarType type = ptx::is_signed(from) ? ScalarType::s32 : ScalarType::u32;
    ends(a, type, span_of(widening.inst.operands[line]));
}

void LaneTest::add_quotient(const GraphInstruction& division, const Operand& a, const Operand& b,
                            std::uint64_t number) {
    const Operand quotient = add(division, a, b);
    require(Modifier::eq, quotient.type, quotient, immediate(std::int64_t(number), quotient.type));
}

void LaneTest::add_answer(const GraphInstruction& comparison, unsigned line, const Operand& a, const Operand& b,
                          bool answer) {
    model_ = &comparison;
    const ptx::Instruction& inst = comparison.inst;
    for (const auto ends_of_line = ends(line == 2 ? a : b, inst.type(), span_of(inst.operands[line]));
         const Operand& end : {ends_of_line.first, ends_of_line.second}) {
        const Operand found = compare(inst.form, order_of(inst), inst.type(), line == 2 ? end : a, line == 2 ? b : end);
        require(answer ? found : emit(FormId::not_bits, ScalarType::pred, {found}));
    }
}

void LaneTest::add_number(const GraphInstruction& made, const Operand& value, std::uint64_t number) {
    model_ = &made;
    const ScalarType type = unsigned_of(value.type);
    require(Modifier::eq, type, retyped(value, type), immediate(std::int64_t(number), type));
}

void LaneTest::add_result(ValueId holds) {
    require(register_operand(holds, ScalarType::pred));
}

/// The lowest and the highest of the lanes' values of `line`, if the test holds: no lane wraps.
std::pair<Operand, Operand> LaneTest::ends(const Operand& line, ScalarType type,
                                           std::pair<std::int64_t, std::int64_t> span) {
    for (const Ends& known : ends_)
        if (known.line == line.index && known.type == type) return known.values;
    const ScalarType bits = ptx::bit_size(type) == 64 ? ScalarType::b64 : ScalarType::b32;
    const Operand first = emit(FormId::mov, bits, {retyped(line, bits)}, Modifier::uni);
    const Operand lowest = emit(FormId::add_int, type, {retyped(first, type), immediate(span.first, type)});
    const Operand highest = emit(FormId::add_int, type, {retyped(first, type), immediate(span.second, type)});
    require(Modifier::le, type, lowest, highest);
    ends_.push_back({line.index, type, {lowest, highest}});
    return ends_.back().values;
}

Operand LaneTest::emit(FormId form, ScalarType type, std::initializer_list<Operand> sources, Modifier modifier,
                       ScalarType result_type) {
    if (result_type == ScalarType::none) result_type = type;
    const Operand result = register_operand(new_value(graph_, result_type, block_), result_type);
    GraphInstruction instruction;
    instruction.body = model_->body;
    instruction.function = model_->function;
    instruction.inst = make(form, type, {}, model_->inst.location, modifier);
    const auto infos = ptx::form_info(form).operands;
    auto source = sources.begin();
    for (std::size_t i = 0; i < infos.size(); ++i) {
        if (i == 0)
            instruction.inst.operands[i] = result;
        else if (!infos[i].is_destination && source != sources.end())
            instruction.inst.operands[i] = *source++;
    }
    code_.push_back(std::move(instruction));
    return result;
}

Operand LaneTest::compare(FormId form, Modifier comparison, ScalarType type, const Operand& a, const Operand& b) {
    return emit(form, type, {a, b}, comparison, ScalarType::pred);
}

void LaneTest::require(const Operand& holds) {
    all_ = all_.kind == Operand::Kind::none ? holds : emit(FormId::and_bits, ScalarType::pred, {all_, holds});
}

void LaneTest::require(Modifier comparison, ScalarType type, const Operand& a, const Operand& b) {
    require(compare(ptx::is_signed(type) ? FormId::setp_signed : FormId::setp_unsigned, comparison, type, a, b));
}

void append_uniform(FunctionGraph& graph, BlockId block, GraphInstruction division,
                    std::vector<GraphInstruction>& code) {
    ptx::Instruction& inst = division.inst;
    if (inst.form != FormId::rem_int) {
        inst.modifiers[inst.modifier_count++] = Modifier::uni;
        code.push_back(std::move(division));
        return;
    }
    const ScalarType type = inst.type();
    const Operand d = inst.operands[0], a = inst.operands[1], b = inst.operands[2];
    const Operand quotient = register_operand(new_value(graph, type, block), type);
    const Operand whole = register_operand(new_value(graph, type, block), type);
    const SourceLocation location = inst.location;
    for (const ptx::Instruction& step : {make(FormId::div_int, type, {quotient, a, b}, location, Modifier::uni),
                                         make(FormId::mul_lo, type, {whole, quotient, b}, location),
                                         make(FormId::sub_int, type, {d, a, whole}, location)}) {
        division.inst = step;
        code.push_back(division);
    }
}

void append_masked(GraphInstruction mask, unsigned line, const Operand& shared, std::vector<GraphInstruction>& code) {
    const ptx::Instruction inst = mask.inst;
    const ScalarType number = shared.type;
    mask.inst = make(FormId::sub_int, number,
                     {retyped(inst.operands[0], number), retyped(inst.operands[line], number), shared}, inst.location);
    code.push_back(std::move(mask));
}

void append_known(FunctionGraph& graph, BlockId block, GraphInstruction division, const Operand& quotient,
                  std::vector<GraphInstruction>& code) {
    const ptx::Instruction inst = division.inst;
    const Operand& d = inst.operands[0];
    if (inst.form != FormId::rem_int) {
        const ScalarType bits = ptx::bit_size(quotient.type) == 64 ? ScalarType::b64 : ScalarType::b32;
        division.inst = make(FormId::mov, bits, {retyped(d, bits), retyped(quotient, bits)}, inst.location);
        code.push_back(std::move(division));
        return;
    }
    const ScalarType type = inst.type();
    const Operand whole = register_operand(new_value(graph, type, block), type);
    division.inst = make(FormId::mul_lo, type, {whole, quotient, inst.operands[2]}, inst.location);
    code.push_back(division);
    division.inst = make(FormId::sub_int, type, {d, inst.operands[1], whole}, inst.location);
    code.push_back(std::move(division));
}

} // namespace ptarmigan::translator
