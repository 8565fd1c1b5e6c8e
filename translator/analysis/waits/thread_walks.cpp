// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/thread_walks.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/build/evaluate.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/low_mask.h"
#include "translator/analysis/memory/alignment.h"
#include "translator/kernel_abi.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::Operand;
using Number = std::optional<std::uint64_t>;

/// Values and accesses that are looked at: some milliseconds.
constexpr std::size_t most_steps = 1 << 17;
/// Bytes of shared memory that a CTA can have.
constexpr std::uint64_t most_shared = 256 * 1024;

enum class Memory : std::uint8_t { none, shared, unknown };

/// Which memory that others of the warp see an instruction comes to, beside global memory.
Memory memory_of(const FunctionGraph& graph, const ptx::Instruction& inst) {
    if (has_effect(inst, Effects::call | Effects::async | Effects::waits)) return Memory::unknown;
    if (!has_effect(inst, Effects::load | Effects::store | Effects::atomic)) return Memory::none;
    if (inst.space == ptx::StateSpace::generic) return graph.shared.empty() ? Memory::none : Memory::unknown;
    if (inst.space != ptx::StateSpace::shared) return Memory::none;
    const std::string_view name = opcode(inst);
    const bool is_plain = name == "ld" || name == "st" || name == "atom" || name == "red";
    return is_plain && accessed_memory(inst).kind == Operand::Kind::address ? Memory::shared : Memory::unknown;
}

class Walks {
public:
    Walks(const FunctionGraph& graph, const BlockShape& block)
        : graph_(graph), block_(block), threads_(std::size_t(block.ntid[0]) * block.ntid[1] * block.ntid[2]),
          words_(most_shared / 4), begun_loop_(graph.blocks.size(), no_loop), rounds_(graph.forest.loops.size()) {
        for (std::size_t loop = 0; loop < graph.forest.loops.size(); ++loop)
            begun_loop_[graph.forest.loops[loop].header] = std::uint32_t(loop);
    }

    std::optional<ThreadWalks> walk() {
        // In a cluster each CTA's window begins elsewhere.
        if (block_.cluster != std::array<std::uint32_t, 3>{1, 1, 1} || !graph_.real_calls.empty()) return std::nullopt;
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& each : block.instructions)
                if (memory_of(graph_, each.inst) == Memory::unknown) return std::nullopt;
        find_actions();
        find_steady_loads();
        for (std::size_t first = 0; first < threads_; first += abi::warp_size)
            if (!walk_warp(first, std::min<std::size_t>(first + abi::warp_size, threads_))) return std::nullopt;
        ThreadWalks result;
        for (const Rounds& rounds : rounds_)
            result.lanes_in_loop.push_back(
                rounds.of_warps == 0 ? 0 : double(rounds.of_lanes) / double(rounds.of_warps * abi::warp_size));
        for (const std::vector<Candidate>& of_loop : candidates_)
            for (const Candidate& each : of_loop)
                if (each.is_steady) result.steady_loads.push_back(each.load);
        return result;
    }

private:
    /// A thread on its way.
    struct Walker {
        std::size_t thread = 0;
        BlockId block = 0;
        bool has_exited = false;
        std::vector<Number> values;        ///< by number_of_
        std::vector<std::uint32_t> rounds; ///< by loop, since the last barrier
    };
    struct Rounds {
        std::uint64_t of_lanes = 0, of_warps = 0;
    };
    struct Action {
        const GraphInstruction* instruction = nullptr;
        bool is_access = false;
        std::uint32_t bytes = 0;
        bool writes = false;
    };
    /// A load whose place is known when the loop begins.
    struct Candidate {
        ThreadWalks::SteadyLoad load;
        const ptx::Instruction* inst = nullptr;
        std::uint64_t begin = 0, end = 0; ///< of the thread that is on its way in the loop
        bool is_steady = true;
    };
    /// Who has come to a word since the last barrier.
    struct Word {
        std::uint32_t interval = 0; ///< number of the interval this is of
        std::uint8_t lane = 0;
        bool several = false, written = false;
    };

    /// What decides about ways and places, and what that is computed from.
    void find_actions() {
        const std::vector<const GraphInstruction*> definitions = definitions_of(graph_);
        std::vector<const Phi*> phis(graph_.values.size());
        for (const Block& block : graph_.blocks)
            for (const Phi& phi : block.phis) phis[phi.result] = &phi;
        std::vector<ValueId> work;
        std::vector<bool> wanted(graph_.values.size());
        const auto want = [&](ValueId value) {
            if (value == no_value || wanted[value]) return;
            wanted[value] = true;
            work.push_back(value);
        };
        for (const Block& block : graph_.blocks) {
            want(block.terminator.condition);
            for (const GraphInstruction& each : block.instructions) {
                if (memory_of(graph_, each.inst) != Memory::shared) continue;
                const Operand& address = accessed_memory(each.inst);
                if (address.base == Operand::Base::reg) want(address.index);
                if (each.inst.guard != ptx::no_id) want(each.inst.guard);
            }
        }
        while (!work.empty()) {
            const ValueId value = work.back();
            work.pop_back();
            if (phis[value])
                for (ValueId incoming : phis[value]->incoming) want(incoming);
            else if (definitions[value] && is_computed(definitions[value]->inst))
                for (ValueId source : uses(graph_, *definitions[value])) want(source);
        }
        number_of_.assign(graph_.values.size(), 0);
        for (ValueId value = 0; value < wanted.size(); ++value)
            if (wanted[value]) number_of_[value] = ++wanted_;
        actions_.resize(graph_.blocks.size());
        for (BlockId id = 0; id < graph_.blocks.size(); ++id)
            for (const GraphInstruction& each : graph_.blocks[id].instructions) {
                if (memory_of(graph_, each.inst) == Memory::shared)
                    actions_[id].push_back({&each, true, access_bytes(each.inst),
                                            has_effect(each.inst, Effects::store | Effects::atomic)});
                const FewValues results = translator::definitions(graph_, each);
                if (std::any_of(results.begin(), results.end(), [&](ValueId v) { return wanted[v]; }))
                    actions_[id].push_back({&each});
            }
    }

    /// Nothing in the loop is ordered with a load, and no thread waits for another one.
    bool orders_nothing(const LoopInfo& loop) const {
        return std::all_of(loop.blocks.begin(), loop.blocks.end(), [&](BlockId id) {
            const Block& block = graph_.blocks[id];
            return !block.ends_with_barrier && block.hand_over == 0 &&
                   std::all_of(block.instructions.begin(), block.instructions.end(), [](const GraphInstruction& each) {
                       return !is_strong(each.inst) &&
                              !has_effect(each.inst, Effects::atomic | Effects::convergent | Effects::barrier |
                                                         Effects::fence | Effects::async | Effects::call |
                                                         Effects::volatile_read | Effects::waits);
                   });
        });
    }

    void find_steady_loads() {
        candidates_.resize(graph_.forest.loops.size());
        for (std::uint32_t number = 0; number < candidates_.size(); ++number) {
            const LoopInfo& loop = graph_.forest.loops[number];
            if (loop.preheader == no_block || !orders_nothing(loop)) continue;
            const std::vector<GraphInstruction>& code = graph_.blocks[loop.header].instructions;
            for (std::size_t i = 0; i < code.size(); ++i) {
                const ptx::Instruction& inst = code[i].inst;
                if (memory_of(graph_, inst) != Memory::shared || opcode(inst) != "ld" || inst.guard != ptx::no_id)
                    continue;
                const Operand& address = accessed_memory(inst);
                const BlockId from = address.base == Operand::Base::reg ? graph_.values[address.index].block : no_block;
                if (from == no_block || !graph_.forest.inside(graph_.forest.loop_of[from], number))
                    candidates_[number].push_back({{number, i}, &inst});
            }
        }
    }

    static bool is_computed(const ptx::Instruction& inst) { return ptx::form_info(inst.form).effects == Effects::pure; }

    /// From barrier to barrier, one thread after the other.
    bool walk_warp(std::size_t first, std::size_t end) {
        std::vector<Walker> walkers(end - first);
        for (std::size_t lane = 0; lane < walkers.size(); ++lane) {
            walkers[lane].thread = first + lane;
            walkers[lane].values.resize(wanted_ + 1);
        }
        while (true) {
            ++interval_;
            for (Walker& walker : walkers) walker.rounds.assign(rounds_.size(), 0);
            for (std::size_t lane = 0; lane < walkers.size(); ++lane)
                if (!walk_to_barrier(walkers[lane], std::uint8_t(lane))) return false;
            count_rounds(walkers);
            // All have come to the same place.
            for (const Walker& walker : walkers)
                if (walker.block != walkers[0].block || walker.has_exited != walkers[0].has_exited) return false;
            if (walkers[0].has_exited) return true;
        }
    }

    void count_rounds(const std::vector<Walker>& walkers) {
        for (std::size_t loop = 0; loop < rounds_.size(); ++loop) {
            std::uint32_t most = 0;
            for (const Walker& walker : walkers) {
                most = std::max(most, walker.rounds[loop]);
                rounds_[loop].of_lanes += walker.rounds[loop];
            }
            rounds_[loop].of_warps += most;
        }
    }

    bool walk_to_barrier(Walker& walker, std::uint8_t lane) {
        while (true) {
            const std::vector<Action>& actions = actions_[walker.block];
            const Block& block = graph_.blocks[walker.block];
            if (steps_left_ < actions.size() + block.phis.size() + 1) return false;
            steps_left_ -= actions.size() + block.phis.size() + 1;
            if (begun_loop_[walker.block] != no_loop) ++walker.rounds[begun_loop_[walker.block]];
            for (const Action& action : actions)
                if (action.is_access ? !access(walker, lane, action) : !compute(walker, *action.instruction))
                    return false;
            if (block.terminator.kind == Terminator::Kind::exit) {
                walker.has_exited = true;
                return true;
            }
            if (!leave(walker, block)) return false;
            if (block.ends_with_barrier) return true;
        }
    }

    bool leave(Walker& walker, const Block& block) {
        std::size_t way = 0;
        if (block.terminator.kind != Terminator::Kind::jump) {
            const Number condition = value_of(walker, block.terminator.condition);
            if (!condition) return false;
            if (block.terminator.kind == Terminator::Kind::branch)
                way = (*condition & 1) != std::uint64_t(block.terminator.negated) ? 0 : 1;
            else
                way = std::size_t(*condition);
        }
        if (way >= block.successors.size()) return false;
        const BlockId from = walker.block;
        walker.block = block.successors[way];
        begin_loop(walker, from);
        const Block& next = graph_.blocks[walker.block];
        incoming_.clear();
        for (std::size_t i = 0; i < next.predecessors.size(); ++i) {
            if (next.predecessors[i] != from) continue;
            for (const Phi& phi : next.phis)
                if (number_of_[phi.result]) incoming_.push_back(value_of(walker, phi.incoming[i]));
            break;
        }
        std::size_t moved = 0;
        for (const Phi& phi : next.phis)
            if (number_of_[phi.result]) walker.values[number_of_[phi.result]] = incoming_[moved++];
        return true;
    }

    void begin_loop(const Walker& walker, BlockId from) {
        const std::uint32_t loop = begun_loop_[walker.block];
        if (loop == no_loop || graph_.forest.inside(graph_.forest.loop_of[from], loop)) return;
        for (Candidate& each : candidates_[loop]) {
            const Number place = place_of(walker, *each.inst);
            each.begin = place.value_or(0);
            each.end = each.begin + access_bytes(*each.inst);
            each.is_steady = each.is_steady && place;
        }
    }

    /// `walker` writes to `place`: what its loops load from there changes.
    void note_write(const Walker& walker, std::uint64_t place, std::uint32_t bytes) {
        for (std::uint32_t loop = graph_.forest.loop_of[walker.block]; loop != no_loop;
             loop = graph_.forest.loops[loop].parent)
            for (Candidate& each : candidates_[loop])
                if (place < each.end && each.begin < place + bytes) each.is_steady = false;
    }

    /// None if that is not known.
    Number place_of(const Walker& walker, const ptx::Instruction& inst) const {
        const Operand& address = accessed_memory(inst);
        std::uint64_t place = address.value;
        if (address.base == Operand::Base::reg) {
            const Number base = value_of(walker, address.index);
            if (!base) return std::nullopt;
            place += *base;
        } else if (address.base == Operand::Base::variable) {
            if (address.scope != ptx::VariableScope::shared) return std::nullopt;
            place += graph_.shared.at(address.index).offset;
        }
        return place & low_mask(32);
    }

    bool access(const Walker& walker, std::uint8_t lane, const Action& action) {
        const ptx::Instruction& inst = action.instruction->inst;
        if (inst.guard != ptx::no_id) {
            const Number guard = value_of(walker, inst.guard);
            if (!guard) return false;
            if ((*guard & 1) == std::uint64_t(inst.guard_negated)) return true;
        }
        const Number found = place_of(walker, inst);
        if (!found) return false;
        const std::uint64_t place = *found;
        if (action.bytes == 0 || place + action.bytes > most_shared) return false;
        for (std::uint64_t i = place / 4; i <= (place + action.bytes - 1) / 4; ++i)
            if (!come_to(words_[i], lane, action.writes)) return false;
        if (action.writes) note_write(walker, place, action.bytes);
        return true;
    }

    /// False if two lanes meet.
    bool come_to(Word& word, std::uint8_t lane, bool writes) const {
        if (word.interval != interval_) {
            word = {interval_, lane, false, writes};
            return true;
        }
        if (word.lane == lane && !word.several) {
            word.written = word.written || writes;
            return true;
        }
        word.several = true;
        return !writes && !word.written;
    }

    Number value_of(const Walker& walker, ValueId value) const {
        const SsaValue& info = graph_.values[value];
        if (info.is_constant) return info.constant;
        return walker.values[number_of_[value]]; // 0: nobody wants it, and it has no number
    }

    bool compute(Walker& walker, const GraphInstruction& instruction) {
        const FewValues results = definitions(graph_, instruction);
        if (results.size() == 1) {
            walker.values[number_of_[results[0]]] = result_of(walker, instruction);
            return true;
        }
        for (ValueId result : results)
            if (number_of_[result]) walker.values[number_of_[result]] = std::nullopt;
        return true;
    }

    Number result_of(const Walker& walker, const GraphInstruction& instruction) {
        const ptx::Instruction& inst = instruction.inst;
        if (inst.guard != ptx::no_id) {
            const Number guard = value_of(walker, inst.guard);
            if (!guard || instruction.previous.size() != 1) return std::nullopt;
            if ((*guard & 1) == std::uint64_t(inst.guard_negated)) return value_of(walker, instruction.previous[0]);
        }
        return evaluate(
            graph_, inst, [&](const Operand& operand) { return number_of(walker, operand); }, sources_);
    }

    Number number_of(const Walker& walker, const Operand& operand) const {
        switch (operand.kind) {
        case Operand::Kind::special: return special(walker, operand);
        case Operand::Kind::reg: return value_of(walker, operand.index);
        case Operand::Kind::variable:
            if (operand.scope != ptx::VariableScope::shared) return std::nullopt;
            return graph_.shared.at(operand.index).offset + operand.value;
        default: return std::nullopt;
        }
    }

    Number special(const Walker& walker, const Operand& operand) const {
        if (const auto constant = constant_special(operand, block_)) return constant;
        const std::uint64_t t = walker.thread, x = block_.ntid[0], y = block_.ntid[1];
        switch (ptx::SpecialRegister(operand.index)) {
        case ptx::SpecialRegister::tid:
            if (operand.component > 2) return std::nullopt;
            return operand.component == 0 ? t % x : operand.component == 1 ? t / x % y : t / (x * y);
        case ptx::SpecialRegister::laneid: return t % abi::warp_size;
        default: return std::nullopt;
        }
    }

    const FunctionGraph& graph_;
    const BlockShape& block_;
    const std::size_t threads_;
    std::vector<std::vector<Action>> actions_; ///< by block
    std::vector<std::size_t> number_of_;       ///< by value: from 1 on, of those that are wanted
    std::size_t wanted_ = 0;
    std::vector<Word> words_;
    std::vector<std::uint32_t> begun_loop_;          ///< by block: the loop whose header it is
    std::vector<Rounds> rounds_;                     ///< by loop
    std::vector<std::vector<Candidate>> candidates_; ///< likewise
    std::uint32_t interval_ = 0;
    std::size_t steps_left_ = most_steps;
    std::vector<Number> incoming_;
    std::vector<std::uint64_t> sources_;
};

} // namespace

std::optional<ThreadWalks> walk_threads(const FunctionGraph& graph, const BlockShape& block) {
    return Walks(graph, block).walk();
}

} // namespace ptarmigan::translator
