// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/build/loop_accumulators.h"

#include "frontend/ptx/matrix_fragments.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;

/// The registers of an accumulator, in order.
using Tuple = std::vector<ValueId>;

constexpr std::size_t most_accumulators = 256; ///< numbers of abi::MatrixChain are bytes

bool is_same(const ptx::MatrixForm& a, const ptx::MatrixForm& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

/// A group of a loop, and what its chains take and make.
struct Candidate {
    const ProductGroup* group;
    BlockId block;
    ptx::MatrixForm form;
    std::vector<Tuple> taken, made; ///< by chain

    bool goes_with(const Candidate& other) const {
        return is_same(form, other.form) && group->pairs == other.group->pairs;
    }
};

/// How the values of a graph are read, as far as loops' accumulators ask.
struct Readers {
    std::uint32_t inside = 0;   ///< the loop
    std::vector<BlockId> exits; ///< blocks of the loop from where phis outside take it
    bool others = false;
};

class Finder {
public:
    Finder(const FunctionGraph& graph, const ProductGroups& groups) : graph_(graph) {
        for (BlockId block = 0; block < graph.blocks.size(); ++block)
            for (const GraphInstruction& instruction : graph.blocks[block].instructions) {
                const ProductGroup* group = groups.with(instruction.inst);
                if (group && group->products.front() == &instruction.inst)
                    if (auto candidate = candidate_of(*group, block)) by_loop_[loop_of(block)].push_back(*candidate);
            }
        by_loop_.erase(no_loop);
    }

    /// Groups of each loop whose accumulators stay in their places.
    std::map<std::uint32_t, std::vector<Candidate>> run(const std::function<bool(BlockId)>& refuses) {
        std::map<std::uint32_t, std::vector<Candidate>> result;
        for (auto& [number, candidates] : by_loop_) {
            const LoopInfo& loop = graph_.forest.loops[number];
            if (loop.latch == no_block || loop.preheader == no_block || loop.divergent_exit || refuses(loop.header))
                continue;
            collect_readers(number, candidates);
            while (drop_some(number, candidates)) {
            }
            if (!candidates.empty()) result[number] = candidates;
        }
        return result;
    }

    /// What the latch passes to these phis of the header.
    Tuple next_round(const LoopInfo& loop, const Tuple& phis) const {
        const Block& header = graph_.blocks[loop.header];
        const auto latch = std::find(header.predecessors.begin(), header.predecessors.end(), loop.latch);
        Tuple next;
        for (ValueId value : phis)
            next.push_back(phi_of(header, value)->incoming[std::size_t(latch - header.predecessors.begin())]);
        return next;
    }

    bool are_phis_of(const LoopInfo& loop, const Tuple& tuple) const {
        return std::all_of(tuple.begin(), tuple.end(),
                           [&](ValueId value) { return phi_of(graph_.blocks[loop.header], value) != nullptr; });
    }

private:
    std::uint32_t loop_of(BlockId block) const { return graph_.forest.loop_of[block]; }

    static const Phi* phi_of(const Block& block, ValueId value) {
        const auto found =
            std::find_if(block.phis.begin(), block.phis.end(), [&](const Phi& phi) { return phi.result == value; });
        return found == block.phis.end() ? nullptr : &*found;
    }

    /// Adds an operand's registers to `tuple`; false where they are no values of `bits` bits in all lanes.
    bool add_registers(const Operand& operand, unsigned count, unsigned bits, Tuple& tuple) const {
        const auto add = [&](const Operand& element) {
            if (element.kind != Operand::Kind::reg) return false;
            const SsaValue& value = graph_.values[element.index];
            if (value.is_constant || value.is_undefined || !value.shape.is_varying() ||
                ptx::bit_size(value.type) != bits)
                return false;
            tuple.push_back(element.index);
            return true;
        };
        if (operand.kind != Operand::Kind::vector) return count == 1 && add(operand);
        if (operand.count != count) return false;
        for (std::uint32_t i = 0; i < count; ++i)
            if (!add(graph_.pool[operand.first + i])) return false;
        return true;
    }

    std::optional<Candidate> candidate_of(const ProductGroup& group, BlockId block) const {
        Candidate candidate{&group, block, ptx::matrix_form(*group.products.front()), {}, {}};
        const ptx::MatrixFragment d(candidate.form, ptx::MatrixOperand::d);
        const unsigned count = d.registers(), bits = d.register_bits(), sides = group.pairs ? 2 : 1;
        // A place has as many bytes as the registers.
        const unsigned elements = unsigned{candidate.form.m} * candidate.form.n;
        if (d.distinct_registers() != count || elements * ptx::bit_size(d.type()) != 32 * count * bits) return {};
        const auto registers_of = [&](const std::vector<ProductGroup::Accumulator>& accumulators, unsigned number) {
            const auto found = std::find_if(accumulators.begin(), accumulators.end(),
                                            [&](const auto& each) { return each.number == number; });
            return found == accumulators.end() ? nullptr : found->registers;
        };
        for (const abi::MatrixChain& chain : group.chains) {
            if (chain.c != chain.d) return {};
            Tuple taken, made;
            for (unsigned side = 0; side < sides; ++side) {
                const Operand* c = registers_of(group.given, chain.c * sides + side);
                const Operand* result = registers_of(group.results, chain.d * sides + side);
                if (!c || !result || !add_registers(*c, count, bits, taken) ||
                    !add_registers(*result, count, bits, made))
                    return {};
            }
            candidate.taken.push_back(std::move(taken));
            candidate.made.push_back(std::move(made));
        }
        return candidate;
    }

    void collect_readers(std::uint32_t loop, const std::vector<Candidate>& candidates) {
        readers_.clear();
        for (const Candidate& candidate : candidates)
            for (const auto* tuples : {&candidate.taken, &candidate.made})
                for (const Tuple& tuple : *tuples)
                    for (ValueId value : tuple) readers_.try_emplace(value);
        const auto read = [&](ValueId value, bool inside) {
            const auto found = readers_.find(value);
            if (found == readers_.end()) return;
            if (inside)
                ++found->second.inside;
            else
                found->second.others = true;
        };
        for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
            const Block& block = graph_.blocks[id];
            const bool inside = graph_.forest.inside(loop_of(id), loop);
            for (const Phi& phi : block.phis)
                for (std::size_t i = 0; i < phi.incoming.size(); ++i) {
                    const BlockId from = block.predecessors[i];
                    const auto found = readers_.find(phi.incoming[i]);
                    if (found == readers_.end()) continue;
                    if (!inside && graph_.forest.inside(loop_of(from), loop))
                        found->second.exits.push_back(from);
                    else
                        read(phi.incoming[i], inside);
                }
            for (const GraphInstruction& instruction : block.instructions)
                for (ValueId value : uses(graph_, instruction)) read(value, inside);
            if (block.terminator.condition != no_value) read(block.terminator.condition, inside);
        }
    }

    /// Takes away candidates that don't fit; true if there was one. What others passed on to it fits no more then.
    bool drop_some(std::uint32_t number, std::vector<Candidate>& candidates) {
        const LoopInfo& loop = graph_.forest.loops[number];
        std::map<Tuple, const Candidate*> makers;
        std::map<Tuple, unsigned> takers; ///< how many groups
        std::set<Tuple> passed_on;        ///< to the next round
        for (const Candidate& candidate : candidates) {
            for (const Tuple& tuple : candidate.made) makers.emplace(tuple, &candidate);
            for (const Tuple& tuple : candidate.taken) {
                ++takers[tuple];
                if (are_phis_of(loop, tuple)) passed_on.insert(next_round(loop, tuple));
            }
        }
        const auto is_made_alike = [&](const Tuple& tuple, const Candidate& candidate) {
            const auto maker = makers.find(tuple);
            return maker != makers.end() && maker->second->goes_with(candidate);
        };
        const auto in_header = [&](const Candidate& other) { return other.block == loop.header; };
        const bool header_leaves_first = std::none_of(candidates.begin(), candidates.end(), in_header);
        const auto fits = [&](const Candidate& candidate) {
            for (const Tuple& tuple : candidate.taken) {
                if (takers[tuple] != 1) return false;
                const bool starts = are_phis_of(loop, tuple);
                if (!is_made_alike(starts ? next_round(loop, tuple) : tuple, candidate)) return false;
                for (ValueId value : tuple) {
                    const Readers& readers = readers_.at(value);
                    const bool leaves_first = starts && header_leaves_first &&
                                              std::all_of(readers.exits.begin(), readers.exits.end(),
                                                          [&](BlockId from) { return from == loop.header; });
                    if (readers.others || readers.inside != 1 || !(readers.exits.empty() || leaves_first)) return false;
                }
            }
            for (const Tuple& tuple : candidate.made) {
                const auto taker = takers.find(tuple);
                const bool is_passed_on = passed_on.count(tuple) != 0;
                if ((taker != takers.end()) == is_passed_on) return false; // both, or lost in the loop
                for (ValueId value : tuple)
                    if (readers_.at(value).others || readers_.at(value).inside != 1) return false;
            }
            return true;
        };
        std::vector<Candidate> kept; // `makers` points to where they are
        for (const Candidate& candidate : candidates)
            if (fits(candidate)) kept.push_back(candidate);
        const bool dropped = kept.size() != candidates.size();
        candidates = std::move(kept);
        return dropped;
    }

    const FunctionGraph& graph_;
    std::map<std::uint32_t, std::vector<Candidate>> by_loop_;
    std::map<ValueId, Readers> readers_; ///< of the loop at hand
};

} // namespace

LoopAccumulators::LoopAccumulators(const FunctionGraph& graph, const ProductGroups& groups,
                                   const std::function<bool(BlockId)>& refuses) {
    if (groups.empty() || !graph.forest.reducible) return;
    Finder finder(graph, groups);
    for (const auto& [number, candidates] : finder.run(refuses)) {
        const LoopInfo& loop = graph.forest.loops[number];
        std::size_t total = 0;
        for (const Candidate& candidate : candidates)
            for (const Tuple& tuple : candidate.taken) total += finder.are_phis_of(loop, tuple) ? 1 : 0;
        if (total > most_accumulators) continue;
        // Groups of one form share a bank. Where an accumulator comes from is known once all are numbered that the
        // header begins.
        std::map<Tuple, std::pair<std::uint32_t, std::uint32_t>> numbers;
        const std::size_t first_bank = banks_.size();
        for (const Candidate& candidate : candidates) {
            for (const Tuple& tuple : candidate.taken) {
                if (!finder.are_phis_of(loop, tuple)) continue;
                auto bank =
                    std::find_if(banks_.begin() + std::ptrdiff_t(first_bank), banks_.end(), [&](const Bank& each) {
                        return is_same(each.form, candidate.form) && each.pairs == candidate.group->pairs;
                    });
                if (bank == banks_.end()) {
                    const unsigned bytes = unsigned(tuple.size()) * 32 * ptx::bit_size(graph.values[tuple[0]].type) / 8;
                    bank = banks_.insert(bank, {number, candidate.form, candidate.group->pairs, {}, 0, bytes});
                }
                numbers[tuple] = {std::uint32_t(bank - banks_.begin()), std::uint32_t(bank->phis.size())};
                bank->phis.push_back(tuple);
            }
        }
        for (bool changed = true; changed;) {
            changed = false;
            for (const Candidate& candidate : candidates)
                for (std::size_t i = 0; i < candidate.taken.size(); ++i)
                    if (const auto from = numbers.find(candidate.taken[i]); from != numbers.end())
                        changed |= numbers.emplace(candidate.made[i], from->second).second;
        }
        // An accumulator comes back to where it was.
        const auto comes_back = [&](const auto& entry) {
            if (!finder.are_phis_of(loop, entry.first)) return true;
            const auto next = numbers.find(finder.next_round(loop, entry.first));
            return next != numbers.end() && next->second == entry.second;
        };
        if (!std::all_of(numbers.begin(), numbers.end(), comes_back)) {
            banks_.resize(first_bank);
            continue;
        }
        for (const Candidate& candidate : candidates) {
            Use use{};
            for (const Tuple& tuple : candidate.taken) {
                use.bank = numbers.at(tuple).first;
                use.accumulators.push_back(std::uint8_t(numbers.at(tuple).second));
            }
            uses_.emplace(candidate.group, std::move(use));
        }
        for (const auto& [tuple, number_of] : numbers)
            for (std::uint32_t i = 0; i < tuple.size(); ++i) places_[tuple[i]] = {number_of.first, number_of.second, i};
    }
    for (Bank& bank : banks_) {
        bank.offset = bytes_;
        bytes_ += (bank.accumulator_bytes * std::uint32_t(bank.phis.size()) + 63) / 64 * 64;
    }
}

const LoopAccumulators::Place* LoopAccumulators::place(ValueId value) const {
    if (places_.empty()) return nullptr;
    const auto found = places_.find(value);
    return found == places_.end() ? nullptr : &found->second;
}

const LoopAccumulators::Use* LoopAccumulators::use(const ProductGroup& group) const {
    const auto found = uses_.find(&group);
    return found == uses_.end() ? nullptr : &found->second;
}

} // namespace ptarmigan::translator
