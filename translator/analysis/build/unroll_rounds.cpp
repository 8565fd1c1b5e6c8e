// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/build/unroll_rounds.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/build/evaluate.h"
#include "translator/analysis/graph/copies.h"
#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;

constexpr unsigned most_rounds = 16;
/// Of all rounds together: what is written out takes as long to compile as it is long.
constexpr std::size_t most_statements = 1200;

class Rounds {
public:
    Rounds(FunctionGraph& graph, LoopInfo loop) : graph_(graph), loop_(std::move(loop)) {
        inside_.resize(graph.blocks.size());
        for (BlockId block : loop_.blocks) inside_[block] = true;
    }

    bool unroll() {
        if (!is_simple() || !has_worthwhile_places()) return false;
        const unsigned rounds = count();
        std::size_t statements = 0;
        for (BlockId block : loop_.blocks) statements += graph_.blocks[block].instructions.size();
        if (rounds < 2 || statements * rounds > most_statements) return false;
        write_out(rounds);
        return true;
    }

private:
    /// With barriers, without calls and matrix products, whose sums are kept from round to round, and left at one
    /// place, which each round comes to.
    bool is_simple() {
        if (loop_.preheader == no_block || loop_.latch == no_block) return false;
        bool meets = false;
        unsigned exits = 0;
        for (BlockId id : loop_.blocks) {
            const Block& block = graph_.blocks[id];
            meets = meets || block.ends_with_barrier;
            for (const GraphInstruction& each : block.instructions)
                if (is_call(each.inst) || has_effect(each.inst, ptx::Effects::whole_warp)) return false;
            for (std::size_t i = 0; i < block.successors.size(); ++i) {
                if (inside_[block.successors[i]]) continue;
                ++exits;
                exit_ = id;
                way_out_ = unsigned(i);
            }
        }
        if (!meets || exits != 1 || graph_.blocks[exit_].terminator.kind != Terminator::Kind::branch) return false;
        const Edges successors = successor_edges(graph_);
        return DominatorTree(successors, reverse_edges(successors), 0).dominates(exit_, loop_.latch);
    }

    std::size_t position(BlockId block, BlockId predecessor) const {
        const auto& all = graph_.blocks[block].predecessors;
        return std::size_t(std::find(all.begin(), all.end(), predecessor) - all.begin());
    }

    /// An address depends on both the thread's number and the round's, by more than sums and products.
    bool has_worthwhile_places() const {
        enum : unsigned { of_round = 1, of_thread = 2, of_both = 4 };
        std::vector<unsigned> kinds(graph_.values.size());
        const std::size_t first = position(loop_.header, loop_.preheader);
        for (const Phi& phi : graph_.blocks[loop_.header].phis)
            if (graph_.values[phi.incoming[first]].is_constant) kinds[phi.result] = of_round;
        const auto kind_of = [&](const GraphInstruction& each) {
            unsigned kind = 0;
            const bool is_pure = ptx::form_info(each.inst.form).effects == ptx::Effects::pure;
            if (!is_pure) return kind;
            for (ValueId source : uses(graph_, each)) kind |= kinds[source];
            for (unsigned i = 1; i < each.inst.operand_count; ++i) {
                const Operand& operand = each.inst.operands[i];
                if (operand.kind == Operand::Kind::special &&
                    (ptx::SpecialRegister(operand.index) == ptx::SpecialRegister::tid ||
                     ptx::SpecialRegister(operand.index) == ptx::SpecialRegister::laneid))
                    kind |= of_thread;
            }
            if ((kind & of_round) && (kind & of_thread) && mixes(each.inst.form)) kind |= of_both;
            return kind;
        };
        for (bool changed = true; changed;) {
            changed = false;
            for (const Block& block : graph_.blocks) {
                const auto raise = [&](ValueId value, unsigned kind) {
                    changed = changed || (kind & ~kinds[value]) != 0;
                    kinds[value] |= kind;
                };
                for (const Phi& phi : block.phis)
                    for (ValueId incoming : phi.incoming) raise(phi.result, kinds[incoming]);
                for (const GraphInstruction& each : block.instructions)
                    for (ValueId result : definitions(graph_, each)) raise(result, kind_of(each));
            }
        }
        for (BlockId id : loop_.blocks)
            for (const GraphInstruction& each : graph_.blocks[id].instructions) {
                if (!has_effect(each.inst, ptx::Effects::load | ptx::Effects::store)) continue;
                const Operand& address = accessed_memory(each.inst);
                if (address.kind == Operand::Kind::address && address.base == Operand::Base::reg &&
                    (kinds[address.index] & of_both))
                    return true;
            }
        return false;
    }

    static bool mixes(FormId form) {
        switch (form) {
        case FormId::and_bits:
        case FormId::or_bits:
        case FormId::xor_bits:
        case FormId::shr:
        case FormId::div_int:
        case FormId::rem_int: return true;
        default: return false;
        }
    }

    using Known = std::map<ValueId, std::uint64_t>;

    std::optional<std::uint64_t> number(const Known& known, ValueId value) const {
        if (graph_.values[value].is_constant) return graph_.values[value].constant;
        const auto found = known.find(value);
        return found == known.end() ? std::nullopt : std::optional(found->second);
    }

    /// How often lanes come to the exit's test until it lets them go; 0: not known, or too often.
    unsigned count() const {
        const std::vector<Phi>& phis = graph_.blocks[loop_.header].phis;
        const std::size_t first = position(loop_.header, loop_.preheader), again = position(loop_.header, loop_.latch);
        std::vector<BlockId> order;
        for (BlockId block : reverse_post_order(successor_edges(graph_), 0))
            if (inside_[block]) order.push_back(block);
        Known at_header;
        for (const Phi& phi : phis)
            if (const auto value = number({}, phi.incoming[first])) at_header[phi.result] = *value;
        for (unsigned round = 1; round <= most_rounds; ++round) {
            Known known = at_header;
            for (BlockId block : order)
                for (const GraphInstruction& each : graph_.blocks[block].instructions) compute(known, each);
            const Terminator& test = graph_.blocks[exit_].terminator;
            const auto condition = number(known, test.condition);
            if (!condition) return 0;
            const unsigned way = (*condition & 1) != std::uint64_t(test.negated) ? 0 : 1;
            if (way == way_out_) return round;
            at_header.clear();
            for (const Phi& phi : phis)
                if (const auto value = number(known, phi.incoming[again])) at_header[phi.result] = *value;
        }
        return 0;
    }

    void compute(Known& known, const GraphInstruction& each) const {
        if (each.inst.guard != ptx::no_id) return;
        const auto number_of = [&](const Operand& operand) {
            return operand.kind == Operand::Kind::reg ? number(known, operand.index) : std::nullopt;
        };
        std::vector<std::uint64_t> sources;
        if (const auto result = evaluate(graph_, each.inst, number_of, sources))
            known[each.inst.operands[0].index] = *result;
    }

    /// All rounds but the last as copies in front of it, which stays where it is, so that what is read behind the loop
    /// is the last round's.
    void write_out(unsigned rounds) {
        const std::size_t first = position(loop_.header, loop_.preheader), again = position(loop_.header, loop_.latch);
        std::vector<ValueId> at_header; ///< of the round at hand, by phi
        for (const Phi& phi : graph_.blocks[loop_.header].phis) at_header.push_back(phi.incoming[first]);
        BlockId before = loop_.preheader;
        for (unsigned round = 1; round < rounds; ++round) before = copy_round(before, again, at_header);
        Block& header = graph_.blocks[loop_.header];
        for (std::size_t i = 0; i < header.phis.size(); ++i) header.phis[i].incoming = {at_header[i]};
        header.predecessors = {before};
        graph_.blocks[before].successors = {loop_.header};
        leave_last_round(exit_);
    }

    /// The last round goes out only.
    void leave_last_round(BlockId exit) {
        Block& block = graph_.blocks[exit];
        const BlockId on = block.successors[1 - way_out_];
        lead(block, block.successors[way_out_]);
        drop_predecessor(on, exit);
    }

    /// Without a question.
    static void lead(Block& block, BlockId to) {
        block.successors = {to};
        block.terminator.kind = Terminator::Kind::jump;
        block.terminator.condition = no_value;
        block.terminator.negated = false;
    }

    void drop_predecessor(BlockId block, BlockId predecessor) {
        const std::size_t i = position(block, predecessor);
        Block& from = graph_.blocks[block];
        if (i == from.predecessors.size()) return; // the header, which the latch does not lead to any more
        from.predecessors.erase(from.predecessors.begin() + std::ptrdiff_t(i));
        for (Phi& phi : from.phis) phi.incoming.erase(phi.incoming.begin() + std::ptrdiff_t(i));
    }

    /// A round between `before` and what follows; returns its latch. `at_header`: the phis' values in the next one.
    BlockId copy_round(BlockId before, std::size_t again, std::vector<ValueId>& at_header) {
        const auto offset = BlockId(graph_.blocks.size());
        std::map<BlockId, BlockId> place;
        for (std::size_t i = 0; i < loop_.blocks.size(); ++i) place[loop_.blocks[i]] = offset + BlockId(i);
        Copies copies(graph_);
        for (std::size_t i = 0; i < at_header.size(); ++i)
            copies.rename(graph_.blocks[loop_.header].phis[i].result, at_header[i]);
        for (BlockId old : loop_.blocks) {
            if (old != loop_.header)
                for (const Phi& phi : graph_.blocks[old].phis)
                    graph_.values[copies.add(phi.result, place[old])].is_phi = true;
            for (const GraphInstruction& each : graph_.blocks[old].instructions)
                for (ValueId value : definitions(graph_, each)) copies.add(value, place[old]);
        }
        for (BlockId old : loop_.blocks) {
            Block block = graph_.blocks[old];
            if (old == loop_.header) block.phis.clear();
            for (Phi& phi : block.phis) {
                phi.result = copies.name(phi.result);
                for (ValueId& value : phi.incoming) value = copies.name(value);
            }
            for (GraphInstruction& each : block.instructions) each = copies.copy(each);
            if (block.terminator.condition != no_value)
                block.terminator.condition = copies.name(block.terminator.condition);
            for (BlockId& successor : block.successors)
                if (inside_[successor]) successor = place[successor];
            for (BlockId& predecessor : block.predecessors) predecessor = place[predecessor];
            if (old == loop_.header) block.predecessors = {before};
            if (old == exit_) lead(block, block.successors[1 - way_out_]);
            graph_.blocks.push_back(std::move(block));
        }
        graph_.blocks[before].successors = {place[loop_.header]};
        for (std::size_t i = 0; i < at_header.size(); ++i)
            at_header[i] = copies.name(graph_.blocks[loop_.header].phis[i].incoming[again]);
        return place[loop_.latch];
    }

    FunctionGraph& graph_;
    const LoopInfo loop_;
    std::vector<bool> inside_; ///< by block
    BlockId exit_ = no_block;
    unsigned way_out_ = 0; ///< of the exit's successors
};

} // namespace

bool unroll_rounds(FunctionGraph& graph) {
    if (!graph.forest.reducible) return false;
    for (std::size_t i = 0; i < graph.forest.loops.size(); ++i) {
        const bool is_innermost = std::none_of(graph.forest.loops.begin(), graph.forest.loops.end(),
                                               [&](const LoopInfo& other) { return other.parent == i; });
        // One of them: what the others' blocks are has changed then.
        if (is_innermost && Rounds(graph, graph.forest.loops[i]).unroll()) return true;
    }
    return false;
}

} // namespace ptarmigan::translator
