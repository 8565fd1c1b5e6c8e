// SPDX-License-Identifier: Apache-2.0
// One walk in reverse post order. A phi that depends on a later definition (a loop) is unknown: address arithmetic in
// loops is mostly guarded at run time, and iteration counts are seldom known.
#include "translator/analysis/arithmetic/value_ranges.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/arithmetic/thread_bits.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <map>
#include <optional>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;
using ptx::ScalarType;
using Wide = __int128;

/// Threads times instructions that comparisons may be computed for: a tenth of a millisecond and more.
constexpr std::size_t comparison_budget = 1 << 15;

Interval type_range(ScalarType type) {
    unsigned bits = ptx::bit_size(type);
    if (ptx::is_signed(type) && bits <= 32)
        return {-(std::int64_t(1) << (bits - 1)), (std::int64_t(1) << (bits - 1)) - 1};
    if (bits <= 32) return {0, (std::int64_t(1) << bits) - 1};
    return {};
}

/// Unknown if it does not say more than the register's width does, or might overflow our own arithmetic.
Interval make(Wide low, Wide high, unsigned bits) {
    constexpr Wide limit = Wide(1) << 62;
    if (low < -limit || high > limit || low > high) return {};
    if (bits < 64 && high - low >= (Wide(1) << bits)) return {};
    return {std::int64_t(low), std::int64_t(high)};
}

class RangeAnalysis {
public:
    RangeAnalysis(const FunctionGraph& graph, const BlockShape& block, bool small_grid)
        : graph_(graph), block_(block), small_grid_(small_grid), ranges_(graph.values.size()),
          done_(graph.values.size(), false) {}

    /// Of the first round of the loop with this header, each time that control comes to it.
    void begin_loop_at(BlockId header) { first_round_of_ = header; }

    std::vector<Interval> run() {
        for (ValueId v = 0; v < graph_.values.size(); ++v) {
            const SsaValue& value = graph_.values[v];
            if (!value.is_constant) continue;
            done_[v] = true;
            unsigned bits = ptx::bit_size(value.type);
            if (bits > 64 || ptx::is_float(value.type)) continue;
            std::int64_t number =
                bits < 64 ? std::int64_t(value.constant << (64 - bits)) >> (64 - bits) : std::int64_t(value.constant);
            ranges_[v] = make(number, number, bits);
        }
        for (const Block& block : graph_.blocks) {
            for (const Phi& phi : block.phis) visit(phi);
            for (const GraphInstruction& instruction : block.instructions) visit(instruction);
        }
        return std::move(ranges_);
    }

    /// Outcome of setp as far as the ranges known so far decide it.
    std::optional<bool> decided(const ptx::Instruction& inst) const;
    void use(std::vector<Interval> ranges) { ranges_ = std::move(ranges); }

private:
    void visit(const Phi& phi);
    void visit(const GraphInstruction& instruction);
    Interval source(const Operand& operand) const;
    Interval special(const Operand& operand) const;
    Interval result(const ptx::Instruction& inst) const;
    Interval as_type(Interval interval, ScalarType type) const;
    Interval product(Interval a, Interval b, unsigned bits) const;
    Interval shifted_right(const ptx::Instruction& inst) const;

    const FunctionGraph& graph_;
    const BlockShape& block_;
    bool small_grid_;
    std::vector<Interval> ranges_;
    std::vector<bool> done_;
    BlockId first_round_of_ = no_block;
};

void RangeAnalysis::visit(const Phi& phi) {
    done_[phi.result] = true;
    Interval all;
    const BlockId block = graph_.values[phi.result].block;
    for (std::size_t i = 0; i < phi.incoming.size(); ++i) {
        const ValueId incoming = phi.incoming[i];
        if (graph_.values[incoming].is_undefined) continue;
        if (block == first_round_of_ && graph_.blocks[block].predecessors[i] >= block) continue; // not yet
        if (!done_[incoming] || !ranges_[incoming].known()) return;
        const Interval& in = ranges_[incoming];
        all = all.known() ? Interval{std::min(all.low, in.low), std::max(all.high, in.high)} : in;
    }
    if (all.known()) ranges_[phi.result] = make(all.low, all.high, ptx::bit_size(graph_.values[phi.result].type));
}

void RangeAnalysis::visit(const GraphInstruction& instruction) {
    FewValues results = definitions(graph_, instruction);
    for (ValueId value : results) done_[value] = true;
    if (results.size() != 1) return;
    Interval interval = result(instruction.inst);
    unsigned bits = ptx::bit_size(graph_.values[results[0]].type);
    if (ptx::bit_size(instruction.inst.operands[0].type) != bits) return;
    if (!instruction.previous.empty() && !graph_.values[instruction.previous[0]].is_undefined) {
        const Interval& old = ranges_[instruction.previous[0]];
        if (!old.known() || !interval.known()) return;
        interval = {std::min(interval.low, old.low), std::max(interval.high, old.high)};
    }
    if (interval.known()) ranges_[results[0]] = make(interval.low, interval.high, bits);
}

Interval RangeAnalysis::special(const Operand& operand) const {
    unsigned c = operand.component;
    if (c > 2) return {};
    std::int64_t ntid = block_.ntid[c];
    std::int64_t grid = c == 0 ? 0x7fffffff : 65535;
    if (small_grid_) grid = std::min<std::int64_t>(grid, 0x7fffffff / ntid);
    switch (ptx::SpecialRegister(operand.index)) {
    case ptx::SpecialRegister::tid: return {0, ntid - 1};
    case ptx::SpecialRegister::ntid: return {ntid, ntid};
    case ptx::SpecialRegister::ctaid: return {0, std::max<std::int64_t>(grid - 1, 0)};
    case ptx::SpecialRegister::nctaid: return {1, std::max<std::int64_t>(grid, 1)};
    case ptx::SpecialRegister::laneid: return {0, 31};
    case ptx::SpecialRegister::warpid: return {0, 31};
    default: return {};
    }
}

Interval RangeAnalysis::source(const Operand& operand) const {
    unsigned bits = ptx::bit_size(operand.type);
    switch (operand.kind) {
    case Operand::Kind::imm: {
        if (bits > 64 || ptx::is_float(operand.type)) return {};
        std::int64_t number =
            bits < 64 ? std::int64_t(operand.value << (64 - bits)) >> (64 - bits) : std::int64_t(operand.value);
        return make(number, number, bits);
    }
    case Operand::Kind::special: return special(operand);
    case Operand::Kind::reg:
        // Reading fewer bits keeps the congruence if the interval is short enough.
        if (!ranges_[operand.index].known()) return {};
        return make(ranges_[operand.index].low, ranges_[operand.index].high, bits);
    default: return {};
    }
}

/// The value read as a number of `type`: the interval if that is exact, else all the type can hold.
Interval RangeAnalysis::as_type(Interval interval, ScalarType type) const {
    Interval range = type_range(type);
    if (!range.known()) return interval; // 64 bits: callers only use it for what cannot wrap
    if (interval.known() && interval.low >= range.low && interval.high <= range.high) return interval;
    // An unsigned reading of small negative numbers, or the other way round, may still fit after one turn.
    std::int64_t turn = std::int64_t(1) << ptx::bit_size(type);
    for (std::int64_t shift : {turn, -turn})
        if (interval.known() && interval.low + shift >= range.low && interval.high + shift <= range.high)
            return {interval.low + shift, interval.high + shift};
    return range;
}

Interval RangeAnalysis::product(Interval a, Interval b, unsigned bits) const {
    if (!a.known() || !b.known()) return {};
    Wide corners[] = {Wide(a.low) * b.low, Wide(a.low) * b.high, Wide(a.high) * b.low, Wide(a.high) * b.high};
    return make(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4), bits);
}

Interval RangeAnalysis::shifted_right(const ptx::Instruction& inst) const {
    ScalarType type = inst.type();
    Interval a = as_type(source(inst.operands[1]), type), by = source(inst.operands[2]);
    if (!a.known() || ptx::bit_size(type) > 32 || by.low != by.high || by.low < 0) return {};
    std::int64_t amount = std::min<std::int64_t>(by.low, 62);
    return {a.low >> amount, a.high >> amount};
}

Interval RangeAnalysis::result(const ptx::Instruction& inst) const {
    if (inst.operand_count < 2) return {};
    const auto& o = inst.operands;
    ScalarType type = inst.type();
    unsigned bits = ptx::bit_size(o[0].type);
    auto sum = [&](Interval a, Interval b) -> Interval {
        if (!a.known() || !b.known()) return {};
        return make(Wide(a.low) + b.low, Wide(a.high) + b.high, bits);
    };
    switch (inst.form) {
    case FormId::mov:
    case FormId::cvt_same_16:
    case FormId::cvt_same_32:
    case FormId::cvt_same_64:
    case FormId::cvt_narrow_16:
    case FormId::cvt_narrow_32: {
        Interval a = source(o[1]);
        return a.known() ? make(a.low, a.high, bits) : a;
    }
    case FormId::cvt_widen_16:
    case FormId::cvt_widen_32:
    case FormId::cvt_widen_64: return as_type(source(o[1]), o[1].type);
    case FormId::add_int: return sum(source(o[1]), source(o[2]));
    case FormId::sub_int: {
        Interval b = source(o[2]);
        return b.known() ? sum(source(o[1]), {-b.high, -b.low}) : b;
    }
    case FormId::mul_lo: return product(source(o[1]), source(o[2]), bits);
    case FormId::mad_lo: return sum(product(source(o[1]), source(o[2]), bits), source(o[3]));
    case FormId::mul_wide: return product(as_type(source(o[1]), type), as_type(source(o[2]), type), bits);
    case FormId::mad_wide:
        return sum(product(as_type(source(o[1]), type), as_type(source(o[2]), type), bits), source(o[3]));
    case FormId::shl: {
        Interval by = source(o[2]);
        if (!by.known() || by.low != by.high || by.low < 0 || by.low >= 62 || by.low >= bits) return {};
        return product(source(o[1]), {std::int64_t(1) << by.low, std::int64_t(1) << by.low}, bits);
    }
    case FormId::shr: return shifted_right(inst);
    case FormId::and_bits: {
        Interval a = source(o[1]), b = source(o[2]);
        bool a_small = a.known() && a.low >= 0, b_small = b.known() && b.low >= 0;
        if (a_small && b_small) return {0, std::min(a.high, b.high)};
        return a_small ? Interval{0, a.high} : b_small ? Interval{0, b.high} : Interval{};
    }
    case FormId::rem_int: {
        Interval b = source(o[2]);
        if (!b.known() || b.low != b.high || b.low <= 0) return {};
        return {ptx::is_signed(type) ? 1 - b.low : 0, b.low - 1};
    }
    case FormId::div_int: {
        Interval a = as_type(source(o[1]), type), b = source(o[2]);
        if (!a.known() || bits > 32 || b.low != b.high || b.low <= 0) return {};
        return {a.low / b.low, a.high / b.low};
    }
    case FormId::selp: {
        Interval a = source(o[1]), b = source(o[2]);
        if (!a.known() || !b.known()) return {};
        return make(std::min(a.low, b.low), std::max(a.high, b.high), bits);
    }
    default: return {};
    }
}

std::optional<bool> RangeAnalysis::decided(const ptx::Instruction& inst) const {
    using ptx::Modifier;
    ScalarType type = inst.type();
    if (ptx::bit_size(type) > 32 || !ptx::is_integer(type)) return std::nullopt;
    Interval a = as_type(source(inst.operands[2]), type), b = as_type(source(inst.operands[3]), type);
    bool less = a.high<b.low, greater = a.low> b.high;
    bool less_equal = a.high <= b.low, greater_equal = a.low >= b.high;
    bool equal = a.known() && less_equal && greater_equal;
    auto either = [](bool yes, bool no) -> std::optional<bool> {
        return yes ? std::optional<bool>(true) : no ? std::optional<bool>(false) : std::nullopt;
    };
    switch (inst.one_of({Modifier::eq, Modifier::ne, Modifier::lt, Modifier::le, Modifier::gt, Modifier::ge})) {
    case Modifier::eq: return either(equal, less || greater);
    case Modifier::ne: return either(less || greater, equal);
    case Modifier::lt: return either(less, greater_equal);
    case Modifier::le: return either(less_equal, greater);
    case Modifier::gt: return either(greater, less_equal);
    case Modifier::ge: return either(greater_equal, less);
    default: return std::nullopt;
    }
}

} // namespace

namespace {

bool is_comparison(const ptx::Instruction& inst) {
    const bool compares = inst.form == FormId::setp_signed || inst.form == FormId::setp_unsigned;
    return compares && inst.operands[0].kind == Operand::Kind::reg && inst.operands[1].kind != Operand::Kind::reg;
}

void make_constant(ptx::Instruction& inst, bool outcome) {
    Operand number;
    number.kind = Operand::Kind::imm;
    number.type = ScalarType::pred;
    number.value = outcome;
    inst.form = FormId::mov;
    inst.types = {ScalarType::pred};
    inst.modifier_count = 0;
    inst.operand_count = 2;
    inst.operands[1] = number;
}

/// What the threads' numbers alone say, if it is the same for all.
std::optional<bool> decided_by_threads(ThreadBitsTable& threads, const ptx::Instruction& inst) {
    const ThreadBits* known = inst.guard == ptx::no_id ? threads.of_result(inst) : nullptr;
    if (!known || known->low == 0 || !known->assumed.empty()) return std::nullopt;
    const std::uint64_t first = known->of(0);
    for (std::size_t thread = 1; thread < threads.threads(); ++thread)
        if (known->of(thread) != first) return std::nullopt;
    return (first & 1) != 0;
}

/// The comparison by which a loop goes round again from its only latch, and whether it then holds.
struct Again {
    GraphInstruction* comparison = nullptr;
    bool if_holds = false;
};

class SingleRounds {
public:
    SingleRounds(FunctionGraph& graph, const BlockShape& shape) : graph_(graph), shape_(shape) {
        for (Block& block : graph_.blocks)
            for (GraphInstruction& instruction : block.instructions)
                if (is_comparison(instruction.inst)) comparisons_[instruction.inst.operands[0].index] = &instruction;
    }

    /// Loops that end in their first round, as ranges say: `for (i = thread; i < 1024; i += 256)` unrolled by four.
    bool run() {
        bool any = false;
        std::size_t left = most_loops;
        for (BlockId header = 0; header < graph_.blocks.size() && left != 0; ++header) {
            const Again again = goes_round(header);
            if (!again.comparison || graph_.blocks[header].phis.empty()) continue;
            --left;
            RangeAnalysis analysis(graph_, shape_, false);
            analysis.begin_loop_at(header);
            analysis.use(analysis.run());
            const std::optional<bool> outcome = analysis.decided(again.comparison->inst);
            if (!outcome || *outcome == again.if_holds) continue;
            make_constant(again.comparison->inst, *outcome);
            any = true;
        }
        return any;
    }

private:
    /// Each is a walk over the whole kernel.
    static constexpr std::size_t most_loops = 16;

    Again goes_round(BlockId header) const {
        const auto& predecessors = graph_.blocks[header].predecessors;
        BlockId latch = no_block;
        for (BlockId each : predecessors) {
            if (each < header) continue;
            if (latch != no_block) return {};
            latch = each;
        }
        if (latch == no_block) return {};
        BlockId next = header; // where the branch leads if the loop goes on
        while (graph_.blocks[latch].terminator.kind == Terminator::Kind::jump) {
            if (latch <= header || graph_.blocks[latch].predecessors.size() != 1) return {};
            next = latch;
            latch = graph_.blocks[latch].predecessors[0];
        }
        const Terminator& end = graph_.blocks[latch].terminator;
        if (end.kind != Terminator::Kind::branch || end.condition == no_value || latch < header) return {};
        const auto& successors = graph_.blocks[latch].successors;
        if (successors[0] == successors[1]) return {};
        const auto found = comparisons_.find(end.condition);
        if (found == comparisons_.end() || found->second->inst.guard != ptx::no_id) return {};
        return {found->second, (successors[0] == next) != end.negated};
    }

    FunctionGraph& graph_;
    const BlockShape& shape_;
    std::map<ValueId, GraphInstruction*> comparisons_;
};

} // namespace

bool decide_comparisons(FunctionGraph& graph, const BlockShape& block) {
    RangeAnalysis analysis(graph, block, false);
    analysis.use(analysis.run());
    ThreadBitsTable threads(graph, block, comparison_budget);
    std::vector<std::pair<ptx::Instruction*, bool>> decided; // the table looks at them until the end
    for (Block& b : graph.blocks) {
        for (GraphInstruction& instruction : b.instructions) {
            ptx::Instruction& inst = instruction.inst;
            if (!is_comparison(inst)) continue;
            std::optional<bool> outcome = analysis.decided(inst);
            if (!outcome) outcome = decided_by_threads(threads, inst);
            if (outcome) decided.emplace_back(&inst, *outcome);
        }
    }
    for (auto& [inst, outcome] : decided) make_constant(*inst, outcome);
    return !decided.empty() || SingleRounds(graph, block).run();
}

std::vector<Interval> value_ranges(const FunctionGraph& graph, const BlockShape& block, bool small_grid) {
    return RangeAnalysis(graph, block, small_grid).run();
}

} // namespace ptarmigan::translator
