// SPDX-License-Identifier: Apache-2.0
// SSA construction after Cytron et al., phis only where the register is live.
#include "translator/analysis/build/build_ssa.h"

#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using ptx::RegisterId;

class SsaBuilder {
public:
    explicit SsaBuilder(FlatFunction& flat)
        : graph_(flat.graph), registers_(flat.registers), current_(registers_.size(), no_value),
          undefined_(registers_.size(), no_value), phi_register_(graph_.blocks.size()) {}

    void run() {
        Edges successors = successor_edges(graph_), predecessors = reverse_edges(successors);
        tree_ = DominatorTree(successors, predecessors, 0);
        collect();
        place_phis(dominance_frontiers(tree_, predecessors));
        rename();
    }

private:
    ValueId new_value(RegisterId reg, BlockId block) {
        SsaValue value;
        value.type = registers_[reg].type;
        value.name = registers_[reg].name;
        value.block = block;
        graph_.values.push_back(std::move(value));
        return ValueId(graph_.values.size() - 1);
    }
    ValueId read(RegisterId reg) {
        if (current_[reg] != no_value) return current_[reg];
        if (undefined_[reg] == no_value) {
            undefined_[reg] = new_value(reg, no_block);
            graph_.values[undefined_[reg]].is_undefined = true;
        }
        return undefined_[reg];
    }
    void define(RegisterId reg, ValueId value) {
        undo_.emplace_back(reg, current_[reg]);
        current_[reg] = value;
    }
    void collect();
    void place_phis(const Edges& frontiers);
    void rename();
    void rename_block(BlockId block);
    void rename_instruction(BlockId block, GraphInstruction& instruction);

    FunctionGraph& graph_;
    const std::vector<ptx::Register>& registers_;
    DominatorTree tree_;
    std::vector<std::vector<BlockId>> writers_, readers_; ///< by register: blocks that write it, that read it first
    std::vector<ValueId> current_, undefined_;
    std::vector<std::vector<RegisterId>> phi_register_; ///< by block: registers of its phis
    std::vector<std::pair<RegisterId, ValueId>> undo_;
};

void SsaBuilder::collect() {
    writers_.resize(registers_.size());
    readers_.resize(registers_.size());
    auto note = [](std::vector<BlockId>& list, BlockId block) {
        if (list.empty() || list.back() != block) list.push_back(block);
    };
    for (BlockId block : tree_.order()) {
        auto reads = [&](RegisterId reg) {
            bool written = !writers_[reg].empty() && writers_[reg].back() == block;
            if (!written) note(readers_[reg], block);
        };
        for (GraphInstruction& instruction : graph_.blocks[block].instructions) {
            bool guarded = instruction.inst.guard != ptx::no_id;
            if (guarded) reads(instruction.inst.guard);
            for_each_register(graph_, instruction, [&](ptx::Operand& operand, bool definition) {
                if (!definition || guarded) reads(operand.index);
            });
            for_each_register(graph_, instruction, [&](ptx::Operand& operand, bool definition) {
                if (definition) note(writers_[operand.index], block);
            });
        }
        if (graph_.blocks[block].terminator.condition != no_value) reads(graph_.blocks[block].terminator.condition);
    }
}

void SsaBuilder::place_phis(const Edges& frontiers) {
    std::size_t count = graph_.blocks.size();
    std::vector<RegisterId> live(count, ptx::no_id), writes(count, ptx::no_id), placed(count, ptx::no_id);
    std::vector<BlockId> work;
    for (RegisterId reg = 0; reg < registers_.size(); ++reg) {
        if (readers_[reg].empty() || writers_[reg].empty()) continue;
        for (BlockId block : writers_[reg]) writes[block] = reg;
        // Blocks at whose entry the register is live.
        work = readers_[reg];
        for (BlockId block : work) live[block] = reg;
        while (!work.empty()) {
            BlockId block = work.back();
            work.pop_back();
            for (BlockId p : graph_.blocks[block].predecessors) {
                if (writes[p] == reg || live[p] == reg) continue;
                live[p] = reg;
                work.push_back(p);
            }
        }
        work = writers_[reg];
        while (!work.empty()) {
            BlockId block = work.back();
            work.pop_back();
            for (BlockId join : frontiers[block]) {
                if (placed[join] == reg || live[join] != reg) continue;
                placed[join] = reg;
                phi_register_[join].push_back(reg);
                work.push_back(join);
            }
        }
    }
}

void SsaBuilder::rename_instruction(BlockId block, GraphInstruction& instruction) {
    bool guarded = instruction.inst.guard != ptx::no_id;
    if (guarded) instruction.inst.guard = read(instruction.inst.guard);
    for_each_register(graph_, instruction, [&](ptx::Operand& operand, bool definition) {
        if (!definition)
            operand.index = read(operand.index);
        else if (guarded)
            instruction.previous.push_back(read(operand.index));
    });
    for_each_register(graph_, instruction, [&](ptx::Operand& operand, bool definition) {
        if (!definition) return;
        ValueId value = new_value(operand.index, block);
        define(operand.index, value);
        operand.index = value;
    });
}

void SsaBuilder::rename_block(BlockId id) {
    Block& block = graph_.blocks[id];
    for (RegisterId reg : phi_register_[id]) {
        Phi phi;
        phi.result = new_value(reg, id);
        graph_.values[phi.result].is_phi = true;
        phi.incoming.assign(block.predecessors.size(), no_value);
        block.phis.push_back(std::move(phi));
        define(reg, block.phis.back().result);
    }
    for (GraphInstruction& instruction : block.instructions) rename_instruction(id, instruction);
    if (block.terminator.condition != no_value) block.terminator.condition = read(block.terminator.condition);
}

void SsaBuilder::rename() {
    // Phis of a block must exist before a predecessor that comes later fills them in, so operands of joins are
    // collected here and written when all blocks are done.
    struct Incoming {
        BlockId block;
        std::size_t phi, position;
        ValueId value;
    };
    std::vector<Incoming> incoming;
    struct Visit {
        BlockId block;
        std::size_t undo_size;
        std::size_t next_child;
    };
    std::vector<Visit> stack;
    auto enter = [&](BlockId block) {
        stack.push_back({block, undo_.size(), 0});
        rename_block(block);
        for (BlockId s : graph_.blocks[block].successors) {
            const auto& predecessors = graph_.blocks[s].predecessors;
            for (std::size_t p = 0; p < predecessors.size(); ++p)
                if (predecessors[p] == block)
                    for (std::size_t i = 0; i < phi_register_[s].size(); ++i)
                        incoming.push_back({s, i, p, read(phi_register_[s][i])});
        }
    };
    enter(0);
    while (!stack.empty()) {
        auto& visit = stack.back();
        const auto& children = tree_.children(visit.block);
        if (visit.next_child < children.size()) {
            enter(children[visit.next_child++]);
            continue;
        }
        while (undo_.size() > visit.undo_size) {
            current_[undo_.back().first] = undo_.back().second;
            undo_.pop_back();
        }
        stack.pop_back();
    }
    for (const Incoming& in : incoming) graph_.blocks[in.block].phis[in.phi].incoming[in.position] = in.value;
}

} // namespace

void build_ssa(FlatFunction& flat) {
    // The pool may hold elements of instructions in blocks that were dropped; nothing reads those.
    SsaBuilder(flat).run();
}

} // namespace ptarmigan::translator
