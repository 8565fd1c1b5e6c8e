// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/shapes/lane_agreement.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"
#include "translator/analysis/graph/split_block.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Modifier;
using ptx::Operand;
using ptx::Role;
using ptx::ScalarType;

/// Larger kernels are not made twice, for the time that takes; larger blocks neither.
constexpr std::size_t most_statements = 300, most_in_block = 160;
/// Instructions that a test at the entry may need.
constexpr std::size_t most_operands = 48;
constexpr unsigned most_widenings = 8; ///< that are tested
constexpr unsigned deepest = 8;        ///< definitions that are looked through

Operand immediate(std::int64_t number, ScalarType type) {
    const unsigned bits = ptx::bit_size(type);
    return constant_operand(std::uint64_t(number) & (bits < 64 ? (std::uint64_t(1) << bits) - 1 : ~std::uint64_t(0)),
                            type);
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

bool is_pure(const ptx::Instruction& inst) {
    return ptx::form_info(inst.form).effects == ptx::Effects::pure;
}

bool is_special(const Operand& operand, ptx::SpecialRegister which) {
    return operand.kind == Operand::Kind::special && ptx::SpecialRegister(operand.index) == which;
}

/// A value of 32 or 64 bits whose lanes are known distances apart.
bool is_line(const FunctionGraph& graph, const Operand& operand, unsigned bits) {
    if (operand.kind != Operand::Kind::reg || operand.negated || bits < 32 ||
        ptx::bit_size(graph.values[operand.index].type) != bits || ptx::bit_size(operand.type) != bits)
        return false;
    const Shape& shape = graph.values[operand.index].shape;
    return shape.is_affine() && !shape.steps && shape.guard == no_value;
}

/// Its lanes' dividends are known distances apart, its divisor is one number, and its result is varying so far.
bool is_candidate(const FunctionGraph& graph, const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    if ((inst.form != FormId::div_int && inst.form != FormId::rem_int) || inst.guard != ptx::no_id) return false;
    const unsigned bits = ptx::bit_size(inst.type());
    const Operand &d = inst.operands[0], &a = inst.operands[1], &b = inst.operands[2];
    const auto is_whole = [&](const Operand& operand) {
        return operand.kind == Operand::Kind::reg && !operand.negated &&
               ptx::bit_size(graph.values[operand.index].type) == bits;
    };
    if (!is_whole(d) || !is_line(graph, a, bits) || !graph.values[d.index].shape.is_varying()) return false;
    const auto size = std::int64_t(graph.values[a.index].shape.offsets->size());
    std::optional<std::uint64_t> constant;
    if (b.kind == Operand::Kind::imm) constant = b.value;
    if (is_whole(b) && graph.values[b.index].is_constant) constant = graph.values[b.index].constant;
    if (constant) return *constant >= std::uint64_t(size); // else lanes have several quotients
    return is_whole(b) && graph.values[b.index].shape.is_uniform();
}

/// A comparison whose answer changes once as the number grows; lanes seldom share that of another. Else none.
Modifier order_of(const ptx::Instruction& inst) {
    using enum Modifier;
    return inst.one_of({lt, le, gt, ge, lo, ls, hi, hs});
}

/// One side's lanes are known distances apart, the other one's are the same, and the answer is varying so far. Returns
/// the number of the operand that is a line; none: no such comparison.
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

/// A 32-bit line that is made wider and has a guard, for lanes that wrap. Returns the number of the operand.
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

/// What `block` computes to see whether lanes share quotients and answers, and whether none wraps.
class Test {
public:
    Test(FunctionGraph& graph, BlockId block, std::vector<GraphInstruction>& code)
        : graph_(graph), block_(block), code_(code) {}

    /// `a`, `b`: the operands, by the values that they have in the block.
    void add(const GraphInstruction& division, const Operand& a, const Operand& b) {
        model_ = &division;
        const ptx::Instruction& inst = division.inst;
        const ScalarType type = inst.type();
        const bool is_remainder = inst.form == FormId::rem_int;
        const auto known = std::find_if(tested_.begin(), tested_.end(), [&](const Tested& t) {
            return t.type == type && t.a == a.index && t.b.kind == b.kind && t.b.index == b.index &&
                   t.b.value == b.value && (t.nonzero || !is_remainder);
        });
        if (known != tested_.end()) return;
        tested_.push_back({type, a.index, b, is_remainder});
        const auto [lowest, highest] = ends(a, type, shape_of(inst.operands[1]));
        require(Modifier::eq, type, emit(FormId::div_int, type, {lowest, b}),
                emit(FormId::div_int, type, {highest, b}));
        if (is_remainder) require(Modifier::ne, type, b, immediate(0, type));
    }

    /// Of a comparison, whose operand number `line` is one; `a`, `b`: its operands.
    void add_comparison(const GraphInstruction& comparison, unsigned line, const Operand& a, const Operand& b) {
        model_ = &comparison;
        const ptx::Instruction& inst = comparison.inst;
        const auto [lowest, highest] = ends(line == 2 ? a : b, inst.type(), shape_of(inst.operands[line]));
        const auto answer = [&](const Operand& end) {
            return compare(inst.form, order_of(inst), inst.type(), line == 2 ? end : a, line == 2 ? b : end);
        };
        const Operand differ = emit(FormId::xor_bits, ScalarType::pred, {answer(lowest), answer(highest)});
        require(emit(FormId::not_bits, ScalarType::pred, {differ}));
    }

    /// Of a widening of `a`, its operand number `line`.
    void add_widening(const GraphInstruction& widening, unsigned line, const Operand& a) {
        model_ = &widening;
        const ScalarType from = widening.inst.operands[line].type;
        const ScalarType type = ptx::is_signed(from) ? ScalarType::s32 : ScalarType::u32;
        ends(a, type, shape_of(widening.inst.operands[line]));
    }

    ValueId result() const { return all_.index; }

private:
    struct Tested {
        ScalarType type;
        ValueId a;
        Operand b;
        bool nonzero; ///< the divisor, too
    };

    static Operand retyped(Operand operand, ScalarType type) {
        operand.type = type;
        return operand;
    }

    const Shape& shape_of(const Operand& operand) const { return graph_.values[operand.index].shape; }

    /// The lowest and the highest of the lanes' values of `line`, if the test holds: no lane wraps.
    std::pair<Operand, Operand> ends(const Operand& line, ScalarType type, const Shape& shape) {
        for (const Ends& known : ends_)
            if (known.line == line.index && known.type == type) return known.values;
        const LaneOffsets& offsets = *shape.offsets;
        const auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
        const ScalarType bits = ptx::bit_size(type) == 64 ? ScalarType::b64 : ScalarType::b32;
        const Operand first = emit(FormId::mov, bits, {retyped(line, bits)}, Modifier::uni);
        const Operand lowest = emit(FormId::add_int, type, {retyped(first, type), immediate(*low, type)});
        const Operand highest = emit(FormId::add_int, type, {retyped(first, type), immediate(*high, type)});
        require(Modifier::le, type, lowest, highest);
        ends_.push_back({line.index, type, {lowest, highest}});
        return ends_.back().values;
    }

    Operand emit(FormId form, ScalarType type, std::initializer_list<Operand> sources,
                 Modifier modifier = Modifier::none, ScalarType result_type = ScalarType::none) {
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

    Operand compare(FormId form, Modifier comparison, ScalarType type, const Operand& a, const Operand& b) {
        return emit(form, type, {a, b}, comparison, ScalarType::pred);
    }
    void require(const Operand& holds) {
        all_ = all_.kind == Operand::Kind::none ? holds : emit(FormId::and_bits, ScalarType::pred, {all_, holds});
    }
    void require(Modifier comparison, ScalarType type, const Operand& a, const Operand& b) {
        require(compare(ptx::is_signed(type) ? FormId::setp_signed : FormId::setp_unsigned, comparison, type, a, b));
    }

    FunctionGraph& graph_;
    const BlockId block_;
    std::vector<GraphInstruction>& code_;
    const GraphInstruction* model_ = nullptr;
    struct Ends {
        ValueId line;
        ScalarType type;
        std::pair<Operand, Operand> values;
    };
    std::vector<Tested> tested_;
    std::vector<Ends> ends_;
    Operand all_; ///< predicate; none: nothing was tested
};

/// Copies of instructions, with values of their own for what is in `names`.
class Copies {
public:
    explicit Copies(FunctionGraph& graph) : graph_(graph) {}

    ValueId name(ValueId value) const {
        const auto found = names_.find(value);
        return found == names_.end() ? value : found->second;
    }
    /// A value of `block` that stands for `value` in the copies.
    ValueId add(ValueId value, BlockId block) {
        SsaValue copy = graph_.values[value];
        copy.block = block;
        copy.is_phi = false;
        graph_.values.push_back(std::move(copy));
        return names_[value] = ValueId(graph_.values.size() - 1);
    }
    GraphInstruction copy(const GraphInstruction& instruction) {
        GraphInstruction result = instruction;
        for (unsigned i = 0; i < result.inst.operand_count; ++i) {
            Operand& operand = result.inst.operands[i];
            if (operand.kind != Operand::Kind::vector && operand.kind != Operand::Kind::list) continue;
            const std::uint32_t first = operand.first;
            operand.first = std::uint32_t(graph_.pool.size());
            for (std::uint32_t e = 0; e < operand.count; ++e) {
                const Operand element = graph_.pool[first + e];
                graph_.pool.push_back(element);
            }
        }
        for_each_register(graph_, result, [&](Operand& operand, bool) { operand.index = name(operand.index); });
        if (result.inst.guard != ptx::no_id) result.inst.guard = name(result.inst.guard);
        for (ValueId& value : result.previous) value = name(value);
        return result;
    }

private:
    FunctionGraph& graph_;
    std::unordered_map<ValueId, ValueId> names_;
};

/// What is tested as it is where the test holds; a remainder by the quotient.
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

void find_loops_again(FunctionGraph& graph) {
    const Edges successors = successor_edges(graph), predecessors = reverse_edges(successors);
    graph.forest = find_loops(successors, predecessors, DominatorTree(successors, predecessors, 0));
}

/// The kernel twice, behind a test.
class KernelVersions {
public:
    explicit KernelVersions(FunctionGraph& graph) : graph_(graph), definitions_(graph.values.size(), nullptr) {}

    BlockId run() {
        std::size_t statements = 0;
        for (const Block& block : graph_.blocks) {
            statements += block.instructions.size();
            for (const GraphInstruction& instruction : block.instructions)
                for (ValueId value : definitions(graph_, instruction)) definitions_[value] = &instruction;
        }
        if (statements > most_statements) return 0;
        const bool widens = widenings() <= most_widenings;
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
            if (graph_.forest.loop_of[block] != no_loop) continue;
            for (const GraphInstruction& instruction : graph_.blocks[block].instructions) {
                const ptx::Instruction& inst = instruction.inst;
                if (is_candidate(graph_, instruction))
                    consider(instruction, inst.operands[1], inst.operands[2], true);
                else if (line_of_comparison(graph_, inst))
                    consider(instruction, inst.operands[2], inst.operands[3], false);
                else if (const auto line = line_of_widening(graph_, inst); line && widens)
                    consider(instruction, inst.operands[*line], inst.operands[*line], true);
            }
        }
        // Addresses alone are not worth it.
        if (!has_question_) return 0;
        return make_twice();
    }

private:
    /// A guard is a comparison at each access, a test one for all of them; but what it compares has to be known, and
    /// kept, from the entry on.
    unsigned widenings() const {
        unsigned count = 0;
        for (BlockId block = 0; block < graph_.blocks.size(); ++block)
            for (const GraphInstruction& instruction : graph_.blocks[block].instructions)
                if (graph_.forest.loop_of[block] == no_loop && line_of_widening(graph_, instruction.inst)) ++count;
        return count;
    }

    /// Everything that the operands are computed from is known where the kernel begins. Lanes compare their numbers in
    /// the block with something in order to part, but those in the grid in order to stay within bounds.
    void consider(const GraphInstruction& instruction, const Operand& a, const Operand& b, bool in_block) {
        const std::size_t before = needed_.size();
        const bool known = need(a) && need(b);
        if (known && needed_.size() <= most_operands &&
            (in_block || depends_on_cta(a, deepest) || depends_on_cta(b, deepest))) {
            tested_.insert(instruction.inst.operands[0].index);
            has_question_ = has_question_ || ptx::form_info(instruction.inst.form).shape == ptx::ShapeRule::elementwise;
            return;
        }
        for (std::size_t i = before; i < needed_.size(); ++i) is_needed_.erase(needed_[i]);
        needed_.resize(before);
    }
    bool depends_on_cta(const Operand& operand, unsigned depth) const {
        if (is_special(operand, ptx::SpecialRegister::ctaid)) return true;
        if (operand.kind != Operand::Kind::reg || depth == 0) return false;
        const GraphInstruction* made = definitions_[operand.index];
        if (!made) return false;
        const auto infos = ptx::form_info(made->inst.form).operands;
        for (unsigned i = 0; i < made->inst.operand_count; ++i)
            if (!infos[i].is_destination && depends_on_cta(made->inst.operands[i], depth - 1)) return true;
        return false;
    }
    bool need(const Operand& operand) {
        if (operand.kind == Operand::Kind::imm || operand.kind == Operand::Kind::special ||
            operand.kind == Operand::Kind::none || operand.kind == Operand::Kind::sink)
            return true;
        return operand.kind == Operand::Kind::reg && need(operand.index);
    }
    bool need(ValueId value) {
        if (graph_.values[value].is_constant) return true;
        const GraphInstruction* made = definitions_[value];
        if (!made || made->inst.guard != ptx::no_id) return false;
        if (is_needed_.contains(made)) return true;
        if (needed_.size() > most_operands) return false;
        const ptx::Instruction& inst = made->inst;
        const Operand& address = inst[Role::a];
        const bool is_parameter = graph_.is_entry && inst.space == ptx::StateSpace::param && inst.form == FormId::ld &&
                                  address.kind == Operand::Kind::address && address.base == Operand::Base::variable;
        if (!is_parameter) {
            if (!is_pure(inst)) return false;
            const auto infos = ptx::form_info(inst.form).operands;
            for (unsigned i = 0; i < inst.operand_count; ++i)
                if (!infos[i].is_destination && !need(inst.operands[i])) return false;
        }
        for (ValueId result : definitions(graph_, *made))
            if (graph_.values[result].shape.is_varying()) return false;
        is_needed_.insert(made);
        needed_.push_back(made);
        return true;
    }

    BlockId make_twice() {
        // The general version keeps its values and its numbers, but for the entry, which becomes the last block.
        std::vector<GraphInstruction> test_code;
        Copies operands(graph_);
        Test test(graph_, 0, test_code);
        for (const GraphInstruction* instruction : needed_) {
            for (ValueId value : definitions(graph_, *instruction)) operands.add(value, 0);
            test_code.push_back(operands.copy(*instruction));
        }
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions) {
                if (!is_tested(instruction)) continue;
                const ptx::Instruction named = operands.copy(instruction).inst;
                if (const auto compared = line_of_comparison(graph_, instruction.inst))
                    test.add_comparison(instruction, *compared, named.operands[2], named.operands[3]);
                else if (const auto widened = line_of_widening(graph_, instruction.inst))
                    test.add_widening(instruction, *widened, named.operands[*widened]);
                else
                    test.add(instruction, named.operands[1], named.operands[2]);
            }
        const auto count = BlockId(graph_.blocks.size()); // of each version; its entry's number in the general one
        move_entry(count);
        copy_blocks(count);
        const auto exit = BlockId(graph_.blocks.size());
        graph_.blocks.emplace_back();
        graph_.blocks[exit].terminator = graph_.blocks[graph_.exit_block].terminator;
        for (BlockId old : {graph_.exit_block, graph_.exit_block + count}) {
            graph_.blocks[old].terminator.kind = Terminator::Kind::jump;
            graph_.blocks[old].successors = {exit};
            graph_.blocks[exit].predecessors.push_back(old);
        }
        graph_.exit_block = exit;
        Block& entry = graph_.blocks[0];
        entry.instructions = std::move(test_code);
        entry.terminator.kind = Terminator::Kind::branch;
        entry.terminator.condition = test.result();
        entry.terminator.location = entry.instructions.front().inst.location;
        entry.successors = {2 * count, count};
        for (BlockId version : entry.successors) graph_.blocks[version].predecessors = {0};
        find_loops_again(graph_);
        return count;
    }

    bool is_tested(const GraphInstruction& instruction) const {
        const Operand& d = instruction.inst.operands[0];
        return d.kind == Operand::Kind::reg && tested_.contains(d.index) && definitions_[d.index] == &instruction;
    }

    void move_entry(BlockId to) {
        graph_.blocks.push_back(std::move(graph_.blocks[0]));
        graph_.blocks[0] = {};
        for (BlockId successor : graph_.blocks[to].successors)
            std::replace(graph_.blocks[successor].predecessors.begin(), graph_.blocks[successor].predecessors.end(),
                         BlockId(0), to);
        for (const GraphInstruction& instruction : graph_.blocks[to].instructions)
            for (ValueId value : definitions(graph_, instruction)) graph_.values[value].block = to;
        if (graph_.exit_block == 0) graph_.exit_block = to;
    }

    /// Blocks 1 to `count` once more, behind them.
    void copy_blocks(BlockId count) {
        Copies copies(graph_);
        for (BlockId old = 1; old <= count; ++old) {
            for (const Phi& phi : graph_.blocks[old].phis)
                graph_.values[copies.add(phi.result, old + count)].is_phi = true;
            for (const GraphInstruction& instruction : graph_.blocks[old].instructions)
                for (ValueId value : definitions(graph_, instruction)) copies.add(value, old + count);
        }
        for (BlockId old = 1; old <= count; ++old) {
            Block block = graph_.blocks[old];
            for (Phi& phi : block.phis) {
                phi.result = copies.name(phi.result);
                for (ValueId& value : phi.incoming) value = copies.name(value);
            }
            std::vector<GraphInstruction> code;
            for (const GraphInstruction& instruction : graph_.blocks[old].instructions) {
                if (is_tested(instruction))
                    append_uniform(graph_, old + count, copies.copy(instruction), code);
                else
                    code.push_back(copies.copy(instruction));
            }
            block.instructions = std::move(code);
            if (block.terminator.condition != no_value)
                block.terminator.condition = copies.name(block.terminator.condition);
            for (BlockId& successor : block.successors) successor += count;
            for (BlockId& predecessor : block.predecessors) predecessor += count;
            graph_.blocks.push_back(std::move(block));
        }
    }

    FunctionGraph& graph_;
    std::vector<const GraphInstruction*> definitions_;
    std::vector<const GraphInstruction*> needed_; ///< by a test, each behind what it reads
    std::unordered_set<const GraphInstruction*> is_needed_;
    std::unordered_set<ValueId> tested_; ///< results of what is tested
    bool has_question_ = false;          ///< there are quotients and answers among them
};

/// The part of one block that depends on quotients, twice.
class BlockVersions {
public:
    BlockVersions(FunctionGraph& graph, BlockId block) : graph_(graph), block_(block) {}

    bool run() {
        if (graph_.blocks[block_].ends_with_barrier || graph_.blocks[block_].instructions.size() > most_in_block)
            return false;
        part();
        if (divisions_.empty()) return false;
        std::vector<GraphInstruction> rest = std::move(rest_);
        Test test(graph_, block_, first_);
        for (std::size_t i : divisions_) test.add(rest[i], rest[i].inst.operands[1], rest[i].inst.operands[2]);
        graph_.blocks[block_].instructions = std::move(first_);
        split_block(graph_, block_, graph_.blocks[block_].instructions.size());
        make_twice(rest, test.result());
        return true;
    }

private:
    /// What does not depend on quotients comes first.
    void part() {
        std::unordered_set<ValueId> late;
        for (GraphInstruction& instruction : graph_.blocks[block_].instructions) {
            const FewValues read = uses(graph_, instruction);
            const bool is_late = std::any_of(read.begin(), read.end(), [&](ValueId v) { return late.contains(v); });
            const bool divides = !is_late && is_candidate(graph_, instruction);
            if (!divides && !is_late && (divisions_.empty() || is_pure(instruction.inst))) {
                first_.push_back(instruction);
                continue;
            }
            for (ValueId value : definitions(graph_, instruction)) late.insert(value);
            if (divides) divisions_.push_back(rest_.size());
            rest_.push_back(instruction);
        }
    }

    void make_twice(const std::vector<GraphInstruction>& rest, ValueId condition) {
        const auto join = BlockId(graph_.blocks.size() - 1); // what split_block() made
        const BlockId uniform = join + 1, general = join + 2;
        graph_.blocks.resize(graph_.blocks.size() + 2);
        std::unordered_set<ValueId> defined;
        for (const GraphInstruction& instruction : rest)
            for (ValueId value : definitions(graph_, instruction)) defined.insert(value);
        std::unordered_set<ValueId> leaving;
        const auto use = [&](ValueId value) {
            if (defined.contains(value)) leaving.insert(value);
        };
        for (const Block& block : graph_.blocks) {
            for (const Phi& phi : block.phis)
                for (ValueId value : phi.incoming) use(value);
            for (const GraphInstruction& instruction : block.instructions)
                for (ValueId value : uses(graph_, instruction)) use(value);
            if (block.terminator.condition != no_value) use(block.terminator.condition);
        }
        Copies in_uniform(graph_), in_general(graph_);
        for (const GraphInstruction& instruction : rest)
            for (ValueId value : definitions(graph_, instruction)) {
                in_uniform.add(value, uniform);
                if (!leaving.contains(value)) {
                    graph_.values[value].block = general;
                    continue;
                }
                in_general.add(value, general);
                Phi phi;
                phi.result = value;
                phi.incoming = {in_uniform.name(value), in_general.name(value)};
                graph_.blocks[join].phis.push_back(std::move(phi));
                graph_.values[value].block = join;
                graph_.values[value].is_phi = true;
            }
        std::vector<GraphInstruction> uniform_code, general_code;
        for (std::size_t i = 0; i < rest.size(); ++i) {
            if (std::find(divisions_.begin(), divisions_.end(), i) != divisions_.end())
                append_uniform(graph_, uniform, in_uniform.copy(rest[i]), uniform_code);
            else
                uniform_code.push_back(in_uniform.copy(rest[i]));
            general_code.push_back(in_general.copy(rest[i]));
        }
        Block& block = graph_.blocks[block_];
        block.terminator.kind = Terminator::Kind::branch;
        block.terminator.condition = condition;
        block.successors = {uniform, general};
        for (BlockId version : {uniform, general}) {
            Block& made = graph_.blocks[version];
            made.instructions = std::move(version == uniform ? uniform_code : general_code);
            made.terminator.kind = Terminator::Kind::jump;
            made.terminator.location = block.terminator.location;
            made.predecessors = {block_};
            made.successors = {join};
        }
        graph_.blocks[join].predecessors = {uniform, general};
    }

    FunctionGraph& graph_;
    const BlockId block_;
    std::vector<GraphInstruction> first_, rest_;
    std::vector<std::size_t> divisions_; ///< in rest_
};

} // namespace

BlockId version_kernel(FunctionGraph& graph) {
    return KernelVersions(graph).run();
}

bool is_for_parted_lanes(const FunctionGraph& graph, BlockId block) {
    const Block& entry = graph.blocks[0];
    if (block == 0 || entry.successors.size() != 2 || block > entry.successors[1]) return false;
    const auto has = [&](auto condition) {
        return std::any_of(entry.instructions.begin(), entry.instructions.end(),
                           [&](const GraphInstruction& i) { return condition(i.inst); });
    };
    return has([](const ptx::Instruction& inst) { return inst.has(Modifier::uni); }) &&
           !has([](const ptx::Instruction& inst) { return inst.form == FormId::div_int; });
}

bool version_blocks(FunctionGraph& graph, BlockId first) {
    bool changed = false;
    const auto count = BlockId(graph.blocks.size());
    for (BlockId block = first; block < count; ++block)
        if (graph.forest.loop_of[block] != no_loop && BlockVersions(graph, block).run()) changed = true;
    if (changed) find_loops_again(graph);
    return changed;
}

} // namespace ptarmigan::translator
