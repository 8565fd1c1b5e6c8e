// SPDX-License-Identifier: Apache-2.0
//
//     n = last - first                                     bb: count_block
//     if (n % U != 0) do { round } while (--count != 0)    single_, count from n % U
//     if (n - 1 >= U - 1) do { U rounds } while (j < last) several_
//
// becomes: count from n, and never the second loop.
#include "translator/analysis/loops/reroll_loops.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"
#include "translator/analysis/loops/symbolic_rounds.h"

#include <algorithm>
#include <bit>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Modifier;
using ptx::Operand;

/// Longer rounds hide a wrong guess.
constexpr std::size_t longest_round = 100;

/// One block that goes back to itself, by way of an empty latch.
struct RoundLoop {
    BlockId header = no_block, latch = no_block, preheader = no_block, exit = no_block;
    std::size_t entry_edge = 0, back_edge = 0; ///< of the header's phis
};

/// `a` op `b`, decided by the branch of `block`: the way to take if it holds.
struct Test {
    GraphInstruction* comparison = nullptr;
    Modifier relation = Modifier::none;
    BlockId if_true = no_block, if_false = no_block;
};

class Reroller {
public:
    explicit Reroller(FunctionGraph& graph) : graph_(graph), definitions_(definitions_of(graph)) {}

    unsigned run() {
        std::vector<RoundLoop> loops;
        for (const LoopInfo& info : graph_.forest.loops)
            if (const std::optional<RoundLoop> loop = round_loop(info)) loops.push_back(*loop);
        unsigned count = 0;
        for (const RoundLoop& several : loops)
            for (const RoundLoop& single : loops)
                if (single.header != several.header && reroll(single, several)) {
                    ++count;
                    break;
                }
        return count;
    }

private:
    const Block& block(BlockId id) const { return graph_.blocks[id]; }
    bool is_empty_jump(BlockId id) const {
        return block(id).instructions.empty() && !block(id).ends_with_barrier && block(id).hand_over == 0 &&
               block(id).terminator.kind == Terminator::Kind::jump;
    }

    std::optional<RoundLoop> round_loop(const LoopInfo& info) const {
        RoundLoop loop{.header = info.header, .latch = info.latch, .preheader = info.preheader};
        if (info.blocks.size() != 2 || loop.latch == no_block || loop.preheader == no_block ||
            loop.latch == loop.header || !is_empty_jump(loop.latch) || !block(loop.latch).phis.empty())
            return std::nullopt;
        const Block& header = block(loop.header);
        if (header.terminator.kind != Terminator::Kind::branch || header.predecessors.size() != 2 ||
            header.instructions.size() > longest_round || header.hand_over != 0 || header.ends_with_barrier)
            return std::nullopt;
        loop.back_edge = header.predecessors[1] == loop.latch ? 1 : 0;
        loop.entry_edge = 1 - loop.back_edge;
        loop.exit = header.successors[0] == loop.latch ? header.successors[1] : header.successors[0];
        if (header.predecessors[loop.entry_edge] != loop.preheader || block(loop.exit).predecessors.size() != 1)
            return std::nullopt;
        return loop;
    }

    std::optional<Test> test_of(BlockId id) {
        const Terminator& end = block(id).terminator;
        if (end.kind != Terminator::Kind::branch || end.condition == no_value) return std::nullopt;
        const GraphInstruction* found = definitions_[end.condition];
        if (!found || found->inst.guard != ptx::no_id) return std::nullopt;
        const ptx::Instruction& inst = found->inst;
        if (inst.form != FormId::setp_bits && inst.form != FormId::setp_signed && inst.form != FormId::setp_unsigned)
            return std::nullopt;
        if (ptx::bit_size(inst.type()) != 32 || inst[ptx::Role::a].negated || inst[ptx::Role::b].negated)
            return std::nullopt;
        if (definitions(graph_, *found).size() != 1) return std::nullopt;
        Test test{.comparison = const_cast<GraphInstruction*>(found)};
        test.relation =
            inst.one_of({Modifier::eq, Modifier::ne, Modifier::lt, Modifier::ge, Modifier::lo, Modifier::hs});
        test.if_true = block(id).successors[end.negated ? 1 : 0];
        test.if_false = block(id).successors[end.negated ? 0 : 1];
        return test.relation == Modifier::none ? std::nullopt : std::optional(test);
    }
    /// Likewise with the relation turned round if it is `opposite`.
    std::optional<Test> test_of(BlockId id, Modifier relation, Modifier opposite) {
        std::optional<Test> test = test_of(id);
        if (!test || (test->relation != relation && test->relation != opposite)) return std::nullopt;
        if (test->relation == opposite) std::swap(test->if_true, test->if_false);
        return test;
    }

    static bool is_value(const Operand& operand, ValueId value) {
        return operand.kind == Operand::Kind::reg && operand.index == value;
    }
    bool is_number(const Operand& operand, std::uint64_t number) const {
        const std::optional<std::uint64_t> constant = constant_of(graph_, operand);
        return constant && std::uint32_t(*constant) == number;
    }
    /// Two ways to name one value.
    bool same(const Operand& a, const Operand& b) const {
        if (a.kind == Operand::Kind::reg && b.kind == Operand::Kind::reg && a.index == b.index) return true;
        const auto x = constant_of(graph_, a), y = constant_of(graph_, b);
        return x && y && std::uint32_t(*x) == std::uint32_t(*y);
    }

    static ValueId initial(const RoundLoop& loop, const Phi& phi) { return phi.incoming[loop.entry_edge]; }
    static ValueId next(const RoundLoop& loop, const Phi& phi) { return phi.incoming[loop.back_edge]; }

    /// What has the value of `value` behind the loop, seen from its exit.
    ValueId inside(const RoundLoop& loop, ValueId value) const {
        for (const Phi& phi : block(loop.exit).phis)
            if (phi.result == value) return phi.incoming[0];
        return value;
    }

    bool reroll(const RoundLoop& single, const RoundLoop& several) {
        single_ = single;
        several_ = several;
        SymbolicRounds rounds(graph_);
        return find_frame() && find_count() && find_ends() && match_phis() && leaves_through_phis() &&
               computes_the_same(rounds) && rewrite();
    }

    /// The blocks around the loops: `guard_` chooses the first or `skip_first_`, both come to `between_`, that chooses
    /// the second or `skip_second_`, both come to `behind_`.
    bool find_frame() {
        if (!is_empty_jump(single_.exit) || !is_empty_jump(several_.exit)) return false;
        between_ = block(single_.exit).successors[0];
        if (block(between_).predecessors.size() != 2 || block(between_).terminator.kind != Terminator::Kind::branch ||
            block(several_.preheader).predecessors != std::vector<BlockId>{between_})
            return false;
        from_single_ = block(between_).predecessors[1] == single_.exit ? 1 : 0;
        const BlockId skip = block(between_).predecessors[1 - from_single_];
        if (!is_empty_jump(skip) || !block(skip).phis.empty() || block(skip).predecessors.size() != 1) return false;
        guard_ = block(skip).predecessors[0];
        if (block(single_.preheader).predecessors != std::vector<BlockId>{guard_}) return false;
        const auto& ways = block(between_).successors;
        const BlockId past = ways[0] == several_.preheader ? ways[1] : ways[0];
        if (past == several_.preheader || !is_empty_jump(past) || !block(past).phis.empty() ||
            block(past).predecessors.size() != 1)
            return false;
        skip_second_ = past;
        behind_ = block(past).successors[0];
        return block(several_.exit).successors[0] == behind_;
    }

    /// n % U, n = last - first, and first < last wherever the loops are come to.
    bool find_count() {
        const std::optional<Test> any = test_of(guard_, Modifier::eq, Modifier::ne);
        if (!any || any->if_false != single_.preheader || !is_number(any->comparison->inst[ptx::Role::b], 0))
            return false;
        guard_test_ = any->comparison;
        const Operand& rest = guard_test_->inst[ptx::Role::a];
        const GraphInstruction* remainder = rest.kind == Operand::Kind::reg ? definitions_[rest.index] : nullptr;
        if (!remainder || remainder->inst.form != FormId::and_bits || remainder->inst.guard != ptx::no_id ||
            ptx::bit_size(remainder->inst.type()) != 32)
            return false;
        remainder_ = rest.index;
        const std::optional<std::uint64_t> mask = constant_of(graph_, remainder->inst[ptx::Role::b]);
        if (!mask || (*mask != 1 && *mask != 3 && *mask != 7 && *mask != 15)) return false;
        unrolled_ = std::uint32_t(*mask) + 1;
        const Operand& count = remainder->inst[ptx::Role::a];
        const GraphInstruction* difference = count.kind == Operand::Kind::reg ? definitions_[count.index] : nullptr;
        if (!difference || difference->inst.form != FormId::sub_int || difference->inst.guard != ptx::no_id ||
            ptx::bit_size(difference->inst.type()) != 32)
            return false;
        count_ = count.index;
        first_ = difference->inst[ptx::Role::b];
        last_ = difference->inst[ptx::Role::a];
        if (!look_through_maximum()) return false;
        return is_not_empty(graph_.values[count_].block);
    }

    /// max(last, first + 1), where first < last, is last.
    bool look_through_maximum() {
        const GraphInstruction* maximum = last_.kind == Operand::Kind::reg ? definitions_[last_.index] : nullptr;
        if (!maximum || maximum->inst.form != FormId::max_int) return true;
        if (maximum->inst.type() != ptx::ScalarType::s32 || maximum->inst.guard != ptx::no_id) return false;
        for (const auto& [one, other] :
             {std::pair{ptx::Role::a, ptx::Role::b}, std::pair{ptx::Role::b, ptx::Role::a}}) {
            const Operand& least = maximum->inst[one];
            const GraphInstruction* sum = least.kind == Operand::Kind::reg ? definitions_[least.index] : nullptr;
            if (!sum || sum->inst.form != FormId::add_int || sum->inst.guard != ptx::no_id ||
                ptx::bit_size(sum->inst.type()) != 32 || !same(sum->inst[ptx::Role::a], first_) ||
                !is_number(sum->inst[ptx::Role::b], 1))
                continue;
            last_ = maximum->inst[other];
            return true;
        }
        return false;
    }

    /// A branch on the only way to the block says first < last.
    bool is_not_empty(BlockId id) {
        for (unsigned steps = 0; steps < 16 && block(id).predecessors.size() == 1; ++steps) {
            const BlockId before = block(id).predecessors[0];
            if (const std::optional<Test> test = test_of(before, Modifier::lt, Modifier::ge)) {
                const ptx::Instruction& inst = test->comparison->inst;
                if (inst.form == FormId::setp_signed && test->if_true == id && test->if_false != id &&
                    same(inst[ptx::Role::a], first_) && same(inst[ptx::Role::b], last_))
                    return true;
            }
            id = before;
        }
        return false;
    }

    /// The first loop counts down to zero, the second is come to if n - 1 >= U - 1 and goes on while j + U < last.
    bool find_ends() {
        const std::optional<Test> ends = test_of(single_.header, Modifier::ne, Modifier::eq);
        if (!ends || ends->if_true != single_.latch || !is_number(ends->comparison->inst[ptx::Role::b], 0))
            return false;
        counter_ = nullptr;
        for (const Phi& phi : block(single_.header).phis)
            if (initial(single_, phi) == remainder_ &&
                is_value(ends->comparison->inst[ptx::Role::a], next(single_, phi)))
                counter_ = &phi;
        if (!counter_) return false;
        std::optional<Test> enough = test_of(between_, Modifier::lt, Modifier::ge);
        if (!enough) enough = test_of(between_, Modifier::lo, Modifier::hs);
        if (!enough || enough->comparison->inst.form != FormId::setp_unsigned || enough->if_true != skip_second_ ||
            !is_number(enough->comparison->inst[ptx::Role::b], unrolled_ - 1) || !block(between_).phis.size())
            return false;
        between_test_ = enough->comparison;
        const std::optional<Test> more = test_of(several_.header, Modifier::lt, Modifier::ge);
        if (!more || more->comparison->inst.form != FormId::setp_signed || more->if_true != several_.latch ||
            !same(more->comparison->inst[ptx::Role::b], last_) ||
            more->comparison->inst[ptx::Role::a].kind != Operand::Kind::reg)
            return false;
        index_ = nullptr;
        for (const Phi& phi : block(several_.header).phis)
            if (next(several_, phi) == more->comparison->inst[ptx::Role::a].index) index_ = &phi;
        return index_ != nullptr && is_used_once(*guard_test_) && is_used_once(*between_test_);
    }

    /// By its block's branch alone.
    bool is_used_once(const GraphInstruction& comparison) const {
        return uses_of(definitions(graph_, comparison)[0]).empty();
    }

    /// For each phi of the second loop the one of the first that it goes on with, by way of a phi between them.
    bool match_phis() {
        matches_.clear();
        for (const Phi& phi : block(between_).phis) {
            const ValueId after = inside(single_, phi.incoming[from_single_]);
            const Phi* found = nullptr;
            for (const Phi& each : block(single_.header).phis)
                if (next(single_, each) == after && is_same(initial(single_, each), phi.incoming[1 - from_single_]))
                    found = &each;
            if (!found) return false;
            matches_.push_back({.first = found, .between = phi.result, .second = nullptr});
        }
        for (const Phi& phi : block(several_.header).phis)
            for (Match& match : matches_)
                if (match.between == initial(several_, phi) && !match.second) match.second = &phi;
        const Match* index = match_of(*index_);
        return index && index->first != counter_ && same_value(initial(single_, *index->first), first_);
    }
    bool is_same(ValueId a, ValueId b) const {
        const SsaValue &x = graph_.values[a], &y = graph_.values[b];
        return a == b || (x.is_constant && y.is_constant && x.type == y.type && x.constant == y.constant);
    }
    bool same_value(ValueId value, const Operand& operand) const {
        if (is_value(operand, value)) return true;
        const auto constant = constant_of(graph_, operand);
        return constant && graph_.values[value].is_constant &&
               std::uint32_t(graph_.values[value].constant) == std::uint32_t(*constant);
    }

    struct Match {
        const Phi* first = nullptr;
        ValueId between = no_value;
        const Phi* second = nullptr; ///< null: only addresses go on with it
    };
    const Match* match_of(const Phi& second) const {
        for (const Match& match : matches_)
            if (match.second == &second) return &match;
        return nullptr;
    }

    struct Use {
        BlockId block = no_block;
        const Phi* phi = nullptr; ///< as incoming value, by `edge`
        std::size_t edge = 0;
    };
    /// All but of branches.
    std::vector<Use> uses_of(ValueId value) const {
        std::vector<Use> found;
        for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
            for (const Phi& phi : block(id).phis)
                for (std::size_t edge = 0; edge < phi.incoming.size(); ++edge)
                    if (phi.incoming[edge] == value) found.push_back({id, &phi, edge});
            for (const GraphInstruction& instruction : block(id).instructions)
                for (ValueId read : uses(graph_, instruction))
                    if (read == value) found.push_back({.block = id});
        }
        return found;
    }
    bool decides_elsewhere(ValueId value, BlockId where) const {
        for (BlockId id = 0; id < graph_.blocks.size(); ++id)
            if (id != where && block(id).terminator.condition == value) return true;
        return false;
    }

    template <typename Fn> bool all_results(BlockId id, Fn&& fn) const {
        for (const Phi& phi : block(id).phis)
            if (!fn(phi.result)) return false;
        for (const GraphInstruction& instruction : block(id).instructions)
            for (ValueId result : definitions(graph_, instruction))
                if (!fn(result)) return false;
        return true;
    }

    /// Nothing else looks at what the loops leave behind: the first loop's values go to phis between, those to the
    /// second loop, to what its addresses begin with, and past it to phis behind it, which have from the second loop
    /// what it makes of the same.
    bool leaves_through_phis() const {
        const bool first = all_results(single_.header, [&](ValueId value) {
            return !decides_elsewhere(value, single_.header) && goes_only(value, [&](const Use& use) {
                return use.block == single_.header || (use.block == single_.exit && use.phi) ||
                       (use.block == between_ && use.phi && use.edge == from_single_);
            });
        });
        const bool left = all_results(single_.exit, [&](ValueId value) {
            return !decides_elsewhere(value, no_block) && goes_only(value, [&](const Use& use) {
                return use.block == between_ && use.phi && use.edge == from_single_;
            });
        });
        const bool between = all_results(between_, [&](ValueId value) {
            return !decides_elsewhere(value, between_) && goes_only(value, [&](const Use& use) {
                const bool is_match = std::any_of(matches_.begin(), matches_.end(),
                                                  [&](const Match& match) { return match.between == value; });
                if (!is_match) return use.block == between_ && !use.phi; // the test
                if (use.block == several_.preheader) return !use.phi;
                if (use.block == several_.header) return use.phi && use.edge == several_.entry_edge;
                return use.block == behind_ && use.phi && comes_past(use.edge);
            });
        });
        const bool before = all_results(several_.preheader, [&](ValueId value) {
            return !decides_elsewhere(value, no_block) && goes_only(value, [&](const Use& use) {
                return use.block == several_.preheader || use.block == several_.header;
            });
        });
        const bool second = all_results(several_.header, [&](ValueId value) {
            return !decides_elsewhere(value, several_.header) && goes_only(value, [&](const Use& use) {
                return use.block == several_.header || (use.block == several_.exit && use.phi) ||
                       (use.block == behind_ && use.phi);
            });
        });
        const bool gone = all_results(several_.exit, [&](ValueId value) {
            return !decides_elsewhere(value, no_block) &&
                   goes_only(value, [&](const Use& use) { return use.block == behind_ && use.phi; });
        });
        return first && left && between && before && second && gone && meets_behind() && tests_without_phis();
    }
    template <typename Fn> bool goes_only(ValueId value, Fn&& fn) const {
        const std::vector<Use> found = uses_of(value);
        return std::all_of(found.begin(), found.end(), fn);
    }
    bool comes_past(std::size_t edge) const { return block(behind_).predecessors[edge] == skip_second_; }

    bool meets_behind() const {
        const auto& ways = block(behind_).predecessors;
        const auto past = std::find(ways.begin(), ways.end(), skip_second_) - ways.begin();
        const auto through = std::find(ways.begin(), ways.end(), several_.exit) - ways.begin();
        for (const Phi& phi : block(behind_).phis) {
            const ValueId skipped = phi.incoming[std::size_t(past)], come = phi.incoming[std::size_t(through)];
            const ValueId made = inside(several_, come);
            const bool is_same = skipped == come && !is_defined_here(come);
            const bool is_match = std::any_of(matches_.begin(), matches_.end(), [&](const Match& match) {
                return match.second && skipped == match.between && next(several_, *match.second) == made;
            });
            if (!is_same && !is_match) return false;
        }
        return true;
    }
    bool is_defined_here(ValueId value) const {
        const BlockId where = graph_.values[value].block;
        return where == single_.header || where == single_.exit || where == between_ || where == several_.preheader ||
               where == several_.header || where == several_.exit;
    }
    /// Between the loops there is arithmetic only, of what the loops leave alone.
    bool tests_without_phis() const {
        for (BlockId id : {between_, single_.preheader, several_.preheader})
            for (const GraphInstruction& instruction : block(id).instructions)
                if (!is_removable(instruction.inst) || has_effect(instruction.inst, ptx::Effects::load)) return false;
        return block(single_.preheader).phis.empty() && block(several_.preheader).phis.empty();
    }

    bool computes_the_same(SymbolicRounds& rounds) {
        // n - 1 is what the second loop's test compares
        const std::optional<Operand> tested = between_test_->inst[ptx::Role::a];
        if (tested->kind != Operand::Kind::reg) return false;
        const auto less = rounds.of(tested->index).distance_from(rounds.of(count_));
        if (!less || *less != 0xffffffffu) return false;

        // What a round starts with, as far as it is no number that goes up by the same in each round.
        const Match& index = *match_of(*index_);
        const Term start = rounds.unknown(rounds.fresh(), 32);
        const Term first = rounds.of(initial(single_, *index.first)), middle = rounds.of(index.between);
        const std::uint32_t first_wide = rounds.extension_of(first), middle_wide = rounds.extension_of(middle);
        rounds.never_wraps(start, unrolled_);
        const std::uint32_t wide = rounds.extension_of(start);

        SymbolicRounds::Values one, many;
        for (const Phi& phi : block(single_.header).phis) {
            const unsigned bits = rounds.of(phi.result).bits;
            if (&phi == index.first) {
                one.emplace(phi.result, start);
            } else if (const auto place = by_index(rounds, initial(single_, phi), first_wide, wide);
                       place && bits == 64) {
                one.emplace(phi.result, *place);
            } else {
                one.emplace(phi.result, rounds.unknown(rounds.fresh(), bits));
            }
        }
        for (const Phi& phi : block(several_.header).phis) {
            const Match* match = match_of(phi);
            if (match) {
                many.emplace(phi.result, one.at(match->first->result));
                continue;
            }
            const auto place = by_index(rounds, initial(several_, phi), middle_wide, wide);
            if (!place) return false;
            many.emplace(phi.result, *place);
        }
        const SymbolicRounds::Values one_before = one, many_before = many;
        for (std::uint32_t round = 0; round < unrolled_; ++round) {
            if (!rounds.run(single_.header, one)) return false;
            SymbolicRounds::Values after;
            for (const Phi& phi : block(single_.header).phis) {
                const Term now = rounds.of(next(single_, phi), one);
                if (!advances(phi, now, one.at(phi.result), one_before.at(phi.result), wide, 1, index.first == &phi))
                    return false;
                after.emplace(phi.result, now);
            }
            one = std::move(after);
        }
        if (!rounds.run(several_.header, many)) return false;
        for (const Phi& phi : block(several_.header).phis) {
            const Term now = rounds.of(next(several_, phi), many);
            if (!advances(phi, now, many_before.at(phi.result), many_before.at(phi.result), wide, unrolled_,
                          &phi == index_))
                return false;
            const Match* match = match_of(phi);
            if (match && now != one.at(match->first->result)) return false;
        }
        return true;
    }

    /// The start of a number that goes along with the index: what it begins with, with the index in place of the number
    /// that begins.
    static std::optional<Term> by_index(SymbolicRounds& rounds, ValueId begin, std::uint32_t from, std::uint32_t wide) {
        Term term = rounds.of(begin);
        const std::uint64_t factor = term.factor_of(from);
        if (term.bits != 64 || factor == 0) return std::nullopt;
        term.unknowns.erase(from);
        return term.plus(rounds.unknown(wide, 64), factor);
    }
    /// What stands for an index must go on as the index does; the counter by -1.
    bool advances(const Phi& phi, const Term& now, const Term& before, const Term& start, std::uint32_t wide,
                  std::uint32_t rounds, bool is_index) const {
        const std::optional<std::uint64_t> step = now.distance_from(before);
        if (is_index) return step == rounds;
        if (&phi == counter_) return step == 0xffffffffu;
        const std::uint64_t factor = start.bits == 64 ? start.factor_of(wide) : 0;
        return factor == 0 || step == factor * rounds;
    }

    bool rewrite() {
        auto* difference = const_cast<GraphInstruction*>(definitions_[count_]);
        const ptx::ScalarType type = difference->inst[ptx::Role::a].type;
        difference->inst[ptx::Role::a] = last_;
        difference->inst[ptx::Role::a].type = type;
        for (Phi& phi : graph_.blocks[single_.header].phis)
            if (&phi == counter_) phi.incoming[single_.entry_edge] = count_;
        // There always is a round, and always too few are left.
        guard_test_->inst[ptx::Role::a] = constant_operand(1, guard_test_->inst[ptx::Role::a].type);
        between_test_->inst[ptx::Role::a] = constant_operand(0, between_test_->inst[ptx::Role::a].type);
        return true;
    }

    FunctionGraph& graph_;
    std::vector<const GraphInstruction*> definitions_;
    RoundLoop single_, several_;
    BlockId guard_ = no_block, between_ = no_block, skip_second_ = no_block, behind_ = no_block;
    std::size_t from_single_ = 0; ///< edge of `between_`
    GraphInstruction *guard_test_ = nullptr, *between_test_ = nullptr;
    ValueId remainder_ = no_value, count_ = no_value;
    std::uint32_t unrolled_ = 0;
    Operand first_, last_;
    const Phi *counter_ = nullptr, *index_ = nullptr;
    std::vector<Match> matches_;
};

} // namespace

unsigned reroll_loops(FunctionGraph& graph) {
    return graph.forest.reducible ? Reroller(graph).run() : 0;
}

} // namespace ptarmigan::translator
