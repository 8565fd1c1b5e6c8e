// SPDX-License-Identifier: Apache-2.0
// A comparison that ends a loop is a difference that moves towards zero: where it starts over what it gains by a round
// is the number of rounds.
#include "translator/analysis/loops/count_rounds.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/loops/launch_numbers.h"
#include "translator/analysis/loops/loop_strides.h"

#include <algorithm>
#include <map>
#include <optional>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::FormId;
using ptx::Operand;
using ptx::Role;
using Kind = LaunchNumber::Kind;
using Index = LaunchNumberMaker::Index;

/// Of a statement in code for one lane, where a plain one takes a nanosecond: lanes that meet are fibers that are
/// switched (32: launch.cpp's weight of them), and a product of matrices is 4,096 multiplications for 32 lanes.
constexpr std::uint32_t meeting_cost = 32, product_cost = 256;

std::uint32_t cost_of(const ptx::Instruction& inst) {
    if (!has_effect(inst, Effects::convergent)) return 1;
    const bool multiplies =
        ptx::form_info(inst.form).chapter == "matrix" && !has_effect(inst, Effects::load | Effects::store);
    return multiplies ? product_cost : meeting_cost;
}

/// Makes numbers of what values are before the loops begin that they change in.
class NumberMaker : LaunchNumberMaker {
public:
    NumberMaker(const FunctionGraph& graph, const LoopStrides& strides, std::vector<LaunchNumber>& numbers)
        : LaunchNumberMaker(graph), strides_(strides), numbers_(numbers) {}

    Index of(const LinearSum& sum) {
        Index total = constant(sum.constant);
        for (const auto& [term, factor] : sum.terms) {
            const Index value = of(term);
            if (!value) return std::nullopt;
            total = combine(Kind::add, 64, total, combine(Kind::multiply, 64, value, constant(factor)));
        }
        return total;
    }

private:
    Index add(const LaunchNumber& number) override {
        numbers_.push_back(number);
        return static_cast<std::uint32_t>(numbers_.size() - 1);
    }

    Index of(const LinearSum::Term& term) {
        if (term.kind == LinearSum::Term::Kind::value) return of(term.id);
        if (term.kind == LinearSum::Term::Kind::special) return special(term.id, term.component);
        return std::nullopt;
    }

    Index special(std::uint32_t id, std::uint8_t component) override {
        switch (ptx::SpecialRegister(id)) {
        case ptx::SpecialRegister::nctaid:
            if (component > 2) return std::nullopt;
            return add({.kind = Kind::grid_extent, .value = component});
        case ptx::SpecialRegister::tid:
        case ptx::SpecialRegister::ctaid:
        case ptx::SpecialRegister::laneid:
        case ptx::SpecialRegister::warpid: return constant(0);
        default: return std::nullopt;
        }
    }

    Index of(ValueId value) override {
        const auto [known, is_new] = known_.try_emplace(value);
        if (!is_new || numbers_.size() > most_numbers || depth_ > most_depth) return known->second;
        ++depth_;
        const Index made = make(value);
        --depth_;
        return known_[value] = made;
    }

    Index make(ValueId value) {
        const SsaValue& info = graph_.values[value];
        if (info.is_constant) {
            const unsigned unwanted = 64 - std::clamp(ptx::bit_size(info.type), 1u, 64u);
            return constant(static_cast<std::int64_t>(info.constant << unwanted) >> unwanted);
        }
        const LinearSums::Definition& definition = strides_.sums().definition(value);
        if (definition.phi) return phi(*definition.phi, info.block);
        if (!definition.instruction || definition.instruction->inst.guard != ptx::no_id) return std::nullopt;
        const ptx::Instruction& inst = definition.instruction->inst;
        return inst.form == FormId::ld ? parameter(inst, value) : result(inst);
    }

    /// Of a loop's header what it begins with, elsewhere the greatest of what is known.
    Index phi(const Phi& phi, BlockId block) {
        const std::vector<BlockId>& predecessors = graph_.blocks[block].predecessors;
        const std::uint32_t loop = graph_.forest.loop_of[block];
        const bool is_header = loop != no_loop && graph_.forest.loops[loop].header == block;
        Index most;
        for (std::size_t i = 0; i < predecessors.size(); ++i) {
            if (is_header && predecessors[i] == graph_.forest.loops[loop].latch) continue;
            const Index value = of(phi.incoming[i]);
            most = most && value ? combine(Kind::maximum, 64, most, value) : (value ? value : most);
        }
        return most;
    }

    static constexpr std::size_t most_numbers = 512;
    static constexpr unsigned most_depth = 64;
    const LoopStrides& strides_;
    std::vector<LaunchNumber>& numbers_;
    std::map<ValueId, Index> known_; ///< none while it is being made
    unsigned depth_ = 0;
};

class RoundCounter {
public:
    explicit RoundCounter(const FunctionGraph& graph)
        : graph_(graph), strides_(graph), maker_(graph, strides_, work_.numbers) {}

    LaunchWork run() {
        const LoopForest& forest = graph_.forest;
        work_.loops.resize(forest.loops.size() + 1);
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
            const std::uint32_t loop = block < forest.loop_of.size() ? forest.loop_of[block] : no_loop;
            LaunchLoop& home = work_.loops[loop == no_loop ? 0 : loop + 1];
            for (const GraphInstruction& instruction : graph_.blocks[block].instructions)
                home.cost += cost_of(instruction.inst);
            ++home.cost;
        }
        for (std::uint32_t loop = 0; loop < forest.loops.size(); ++loop) {
            const std::uint32_t parent = forest.loops[loop].parent;
            work_.loops[loop + 1].parent = parent == no_loop ? 0 : parent + 1;
            count(loop);
        }
        return std::move(work_);
    }

private:
    void count(std::uint32_t loop) {
        for (BlockId block : graph_.forest.loops[loop].blocks) {
            const Terminator& end = graph_.blocks[block].terminator;
            if (end.kind != Terminator::Kind::branch || end.condition == no_value) continue;
            const std::vector<BlockId>& next = graph_.blocks[block].successors;
            const bool leaves = std::any_of(next.begin(), next.end(), [&](BlockId successor) {
                return !graph_.forest.inside(graph_.forest.loop_of[successor], loop);
            });
            if (leaves && count_by(end.condition, loop)) return;
        }
    }

    bool count_by(ValueId condition, std::uint32_t loop) {
        const GraphInstruction* definition = strides_.sums().definition(condition).instruction;
        if (!definition || !definition->previous.empty()) return false;
        const ptx::Instruction& inst = definition->inst;
        if (inst.form != FormId::setp_bits && inst.form != FormId::setp_signed && inst.form != FormId::setp_unsigned)
            return false;
        const std::optional<LinearSum> left = strides_.sums().of(inst[Role::a], loop),
                                       right = strides_.sums().of(inst[Role::b], loop);
        if (!left || !right) return false;
        const std::optional<LinearSum> gain_left = strides_.gain_of(*left, loop),
                                       gain_right = strides_.gain_of(*right, loop);
        if (!gain_left || !gain_right) return false;
        const unsigned bits = ptx::bit_size(inst.type());
        const LinearSum gain = cut(gain_left->plus(*gain_right, -1), bits);
        if (gain.terms.empty() && gain.constant == 0) return false;
        const auto distance = maker_.of(cut(left->plus(*right, -1), bits)), by = maker_.of(gain);
        if (!distance || !by) return false;
        work_.loops[loop + 1].distance = *distance;
        work_.loops[loop + 1].gain = *by;
        return true;
    }

    /// Its constant as a number with a sign: add.u32 of -1 adds 0xffffffff.
    static LinearSum cut(LinearSum sum, unsigned bits) {
        const unsigned unwanted = 64 - std::clamp(bits, 1u, 64u);
        sum.constant = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum.constant) << unwanted) >> unwanted;
        return sum;
    }

    const FunctionGraph& graph_;
    const LoopStrides strides_;
    LaunchWork work_;
    NumberMaker maker_;
};

} // namespace

LaunchWork count_rounds(const FunctionGraph& graph) {
    return RoundCounter(graph).run();
}

} // namespace ptarmigan::translator
