// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/joined_votes.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/kernel_abi.h"

#include <algorithm>
#include <unordered_set>

namespace ptarmigan::translator {
namespace {

/// A vote of all that are alive, which come together. `uni` would be two.
bool is_joinable(const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    const bool is_vote = inst.form == ptx::FormId::vote_sync || inst.form == ptx::FormId::vote_sync_ballot;
    return is_vote && !inst.has(ptx::Modifier::uni) && instruction.meets_whole_warp && inst.guard == ptx::no_id &&
           instruction.hand_over == 0;
}

/// Votes may be moved across it, and it may wait behind them.
bool is_arithmetic(const GraphInstruction& instruction) {
    return ptx::form_info(instruction.inst.form).effects == ptx::Effects::pure && instruction.hand_over == 0;
}

class Gathering {
public:
    Gathering(const FunctionGraph& graph, std::size_t instructions) : graph_(graph) { ordered_.reserve(instructions); }

    void add(GraphInstruction instruction) {
        const bool is_vote = is_joinable(instruction), depends = reads_late(instruction);
        if (is_vote ? depends || votes_.size() == abi::most_joined_votes : !is_arithmetic(instruction)) flush();
        if (is_vote)
            add_late(votes_, std::move(instruction));
        else if (depends && !votes_.empty())
            add_late(behind_, std::move(instruction));
        else
            ordered_.push_back(std::move(instruction));
    }
    std::vector<GraphInstruction> take() {
        flush();
        return std::move(ordered_);
    }

private:
    bool reads_late(const GraphInstruction& instruction) const {
        if (late_.empty()) return false;
        const auto values = uses(graph_, instruction);
        return std::any_of(values.begin(), values.end(), [&](ValueId value) { return late_.count(value) != 0; });
    }
    void add_late(std::vector<GraphInstruction>& where, GraphInstruction instruction) {
        for (ValueId value : definitions(graph_, instruction)) late_.insert(value);
        where.push_back(std::move(instruction));
    }
    void flush() {
        for (std::vector<GraphInstruction>* waiting : {&votes_, &behind_}) {
            for (GraphInstruction& instruction : *waiting) ordered_.push_back(std::move(instruction));
            waiting->clear();
        }
        late_.clear();
    }

    const FunctionGraph& graph_;
    std::vector<GraphInstruction> ordered_, votes_;
    std::vector<GraphInstruction> behind_; ///< arithmetic on what the votes give
    std::unordered_set<ValueId> late_;     ///< results of both
};

} // namespace

void gather_votes(FunctionGraph& graph) {
    for (Block& block : graph.blocks) {
        if (std::count_if(block.instructions.begin(), block.instructions.end(), is_joinable) < 2) continue;
        Gathering gathering(graph, block.instructions.size());
        for (GraphInstruction& instruction : block.instructions) gathering.add(std::move(instruction));
        block.instructions = gathering.take();
    }
}

unsigned joined_votes(const FunctionGraph& graph, const Block& block, std::size_t first) {
    std::unordered_set<ValueId> results;
    unsigned count = 0;
    for (std::size_t i = first; i < block.instructions.size() && count < abi::most_joined_votes; ++i, ++count) {
        const GraphInstruction& instruction = block.instructions[i];
        if (!is_joinable(instruction)) break;
        const auto values = uses(graph, instruction);
        if (std::any_of(values.begin(), values.end(), [&](ValueId value) { return results.count(value) != 0; })) break;
        for (ValueId value : definitions(graph, instruction)) results.insert(value);
    }
    return count;
}

} // namespace ptarmigan::translator
