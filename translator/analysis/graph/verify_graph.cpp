// SPDX-License-Identifier: Apache-2.0
// The invariants listed in verify_graph.h, in the same order.
#include "translator/analysis/graph/verify_graph.h"

#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <stdexcept>

namespace ptarmigan::translator {
namespace {

using Kind = Terminator::Kind;

class GraphVerifier {
public:
    explicit GraphVerifier(const FunctionGraph& graph)
        : graph_(graph), successors_(successor_edges(graph)), predecessors_(reverse_edges(successors_)),
          tree_(successors_, predecessors_, 0) {}

    void run() {
        check_ends();
        check_edges();
        check_loops();
        check_values();
        for (BlockId id = 0; id < graph_.blocks.size(); ++id) check_block(id);
    }

private:
    void require(bool condition, BlockId block, const char* what) const {
        if (condition) return;
        throw std::logic_error("graph of " + graph_.module->functions[graph_.function].name + ", block " +
                               std::to_string(block) + ": " + what);
    }
    void check_ends() const;
    void check_edges() const;
    void check_loops() const;
    void check_values();
    void check_block(BlockId id) const;
    void check_instruction(BlockId id, const GraphInstruction& instruction) const;
    void check_operand(BlockId id, const ptx::Operand& operand) const;
    void check_use(BlockId block, std::uint32_t position, ValueId value) const;

    const FunctionGraph& graph_;
    Edges successors_, predecessors_;
    DominatorTree tree_;
    std::vector<std::uint32_t> place_; ///< by value: index of the defining instruction plus 1, 0 for phis
};

void GraphVerifier::check_ends() const {
    require(!graph_.blocks.empty() && graph_.blocks[0].predecessors.empty(), 0, "the entry has predecessors");
    for (BlockId id = 0; id < graph_.blocks.size(); ++id)
        require((graph_.blocks[id].terminator.kind == Kind::exit) == (id == graph_.exit_block), id,
                "not the only exit");
    const Block& exit = graph_.blocks[graph_.exit_block];
    require(exit.instructions.empty() && exit.phis.empty() && exit.successors.empty(), graph_.exit_block,
            "the exit block is not empty");
}

void GraphVerifier::check_edges() const {
    for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
        const Block& block = graph_.blocks[id];
        for (BlockId s : block.successors) require(s < graph_.blocks.size(), id, "successor out of range");
        auto sorted = [](std::vector<BlockId> list) {
            std::sort(list.begin(), list.end());
            return list;
        };
        require(sorted(block.predecessors) == sorted(predecessors_[id]), id, "predecessors do not mirror successors");
        require(tree_.reachable(id) || id == graph_.exit_block, id, "unreachable");
        std::size_t count = block.successors.size();
        bool choice = block.terminator.condition != no_value;
        switch (block.terminator.kind) {
        case Kind::exit: require(count == 0 && !choice, id, "exit with successors"); break;
        case Kind::jump: require(count == 1 && !choice, id, "jump without one successor"); break;
        case Kind::branch:
            require(count == 2 && block.successors[0] != block.successors[1] && choice, id,
                    "branch without two successors");
            require(graph_.values[block.terminator.condition].type == ptx::ScalarType::pred, id,
                    "branch on no predicate");
            break;
        case Kind::indexed: require(count >= 2 && choice, id, "indexed branch without targets"); break;
        }
        if (count > 1)
            for (BlockId s : block.successors) require(graph_.blocks[s].predecessors.size() == 1, id, "critical edge");
    }
}

void GraphVerifier::check_loops() const {
    for (const LoopInfo& loop : graph_.forest.loops) {
        if (!graph_.forest.reducible) break;
        require(loop.preheader != no_block && loop.latch != no_block, loop.header,
                "loop without unique preheader or latch");
        require(graph_.blocks[loop.preheader].terminator.kind == Kind::jump, loop.preheader, "preheader does not jump");
        require(graph_.blocks[loop.latch].terminator.kind == Kind::jump, loop.latch, "latch does not jump");
    }
}

void GraphVerifier::check_values() {
    place_.assign(graph_.values.size(), no_value);
    auto define = [&](BlockId id, ValueId value, std::uint32_t place) {
        require(value < graph_.values.size(), id, "value out of range");
        const SsaValue& info = graph_.values[value];
        require(place_[value] == no_value && !info.is_constant && !info.is_undefined, id, "value defined twice");
        require(info.block == id && info.is_phi == (place == 0), id, "value does not know its definition");
        place_[value] = place;
    };
    for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
        for (const Phi& phi : graph_.blocks[id].phis) define(id, phi.result, 0);
        std::uint32_t place = 0;
        for (const GraphInstruction& instruction : graph_.blocks[id].instructions) {
            ++place;
            for (ValueId value : definitions(graph_, instruction)) define(id, value, place);
        }
    }
}

void GraphVerifier::check_use(BlockId block, std::uint32_t position, ValueId value) const {
    require(value < graph_.values.size(), block, "used value out of range");
    const SsaValue& info = graph_.values[value];
    if (info.is_constant || info.is_undefined) return;
    require(place_[value] != no_value, block, "used value has no definition");
    const LoopForest& forest = graph_.forest;
    require(!forest.reducible || forest.inside(forest.loop_of[block], forest.loop_of[info.block]), block,
            "value leaves its loop without a phi");
    bool before = info.block == block ? place_[value] < position : tree_.dominates(info.block, block);
    require(before, block, "use is not dominated by the definition");
}

void GraphVerifier::check_operand(BlockId id, const ptx::Operand& operand) const {
    using Operand = ptx::Operand;
    bool variable = operand.kind == Operand::Kind::variable ||
                    (operand.kind == Operand::Kind::address && operand.base == Operand::Base::variable);
    if (operand.has_elements())
        require(std::size_t(operand.first) + operand.count <= graph_.pool.size(), id, "pool range");
    if (!variable) return;
    require(operand.scope != ptx::VariableScope::body, id, "variable of a body scope");
    if (operand.scope == ptx::VariableScope::frame)
        require(operand.index < graph_.locals.size(), id, "local variable out of range");
    if (operand.scope == ptx::VariableScope::shared)
        require(operand.index < graph_.shared.size(), id, "shared variable out of range");
    if (operand.scope == ptx::VariableScope::module)
        require(operand.index < graph_.module->variables.size(), id, "module variable out of range");
}

void GraphVerifier::check_instruction(BlockId id, const GraphInstruction& instruction) const {
    const ptx::Instruction& inst = instruction.inst;
    bool guarded = inst.guard != ptx::no_id;
    std::size_t written = definitions(graph_, instruction).size();
    require(instruction.previous.size() == (guarded ? written : 0), id, "list of previous values has the wrong length");
    require(!is_terminator(inst) || (inst.form == ptx::FormId::exit && graph_.has_thread_exit), id,
            "terminator among the instructions");
    require(!guarded || !(is_call(inst) || is_cta_barrier(inst)), id, "guarded call or barrier");
    for (unsigned i = 0; i < inst.operand_count; ++i) {
        check_operand(id, inst.operands[i]);
        if (inst.operands[i].has_elements())
            for (std::uint32_t e = 0; e < inst.operands[i].count; ++e)
                check_operand(id, graph_.pool[inst.operands[i].first + e]);
    }
}

void GraphVerifier::check_block(BlockId id) const {
    const Block& block = graph_.blocks[id];
    for (const Phi& phi : block.phis) {
        require(phi.incoming.size() == block.predecessors.size(), id, "phi and predecessors differ in length");
        bool distinct = std::any_of(phi.incoming.begin(), phi.incoming.end(),
                                    [&](ValueId v) { return v != phi.incoming[0] && v != phi.result; }) ||
                        phi.incoming[0] == phi.result;
        require(distinct || phi.incoming.size() == 1, id, "phi of one value");
        for (std::size_t i = 0; i < phi.incoming.size(); ++i)
            check_use(block.predecessors[i], no_value - 1, phi.incoming[i]);
    }
    std::uint32_t position = 0;
    for (const GraphInstruction& instruction : block.instructions) {
        ++position;
        check_instruction(id, instruction);
        for (ValueId value : uses(graph_, instruction)) check_use(id, position, value);
        bool barrier = is_cta_barrier(instruction.inst);
        bool last = position == block.instructions.size();
        require(!barrier || (last && block.ends_with_barrier), id, "barrier inside a block");
    }
    if (block.terminator.condition != no_value) check_use(id, no_value - 1, block.terminator.condition);
    if (!block.ends_with_barrier) return;
    require(!block.instructions.empty() && is_cta_barrier(block.instructions.back().inst), id, "no barrier at the end");
    require(block.terminator.kind == Kind::jump && block.successors[0] != graph_.exit_block &&
                graph_.blocks[block.successors[0]].predecessors.size() == 1,
            id, "the block behind a barrier has other predecessors");
}

} // namespace

void verify_graph(const FunctionGraph& graph) {
    GraphVerifier(graph).run();
}

void verify_plan(const FunctionGraph& graph, const LinearPlan& plan) {
    if (!plan.reducible) return;
    auto require = [&](bool condition, BlockId block, const char* what) {
        if (!condition)
            throw std::logic_error("plan of " + graph.module->functions[graph.function].name + ", block " +
                                   std::to_string(block) + ": " + what);
    };
    std::vector<std::uint32_t> position(graph.blocks.size(), no_block);
    for (std::uint32_t i = 0; i < plan.order.size(); ++i) position[plan.order[i]] = i;
    require(plan.order.size() == plan.region.blocks.size(), plan.region.entry, "order does not hold all blocks");
    auto dominates = [&](BlockId a, BlockId b) {
        while (b != no_block && b != a) b = plan.immediate_dominator[b];
        return b == a;
    };
    for (const LoopInfo& loop : plan.loops) {
        std::uint32_t low = no_block, high = 0;
        for (BlockId b : loop.blocks) {
            low = std::min(low, position[b]);
            high = std::max(high, position[b]);
        }
        require(high - low + 1 == loop.blocks.size(), loop.header, "loop is not contiguous");
        require(position[loop.header] == low && position[loop.latch] == high, loop.header,
                "header or latch out of place");
    }
    for (BlockId id : plan.order) {
        const BlockPlan& block = plan.blocks[id];
        if (!plan.region.cut_after[id]) {
            require(block.jump_to.size() == graph.blocks[id].successors.size(), id,
                    "jumps and successors differ in number");
            for (std::size_t k = 0; k < block.jump_to.size(); ++k) {
                bool back = position[graph.blocks[id].successors[k]] <= position[id];
                bool right = back ? block.jump_to[k] == graph.blocks[id].successors[k]
                                  : position[block.jump_to[k]] > position[id] &&
                                        position[block.jump_to[k]] <= position[graph.blocks[id].successors[k]];
                require(right, id, "jump leads past a block that may have lanes");
            }
        }
        require(block.skip_to == no_block || position[block.skip_to] > position[id], id, "skip leads back");
        if (block.mask.kind == MaskSource::Kind::same_as)
            require(block.mask.block != id && dominates(block.mask.block, id), id,
                    "mask of a block that does not dominate");
        require(block.blend.size() == graph.blocks[id].phis.size(), id, "blend flags and phis differ in number");
    }
}

} // namespace ptarmigan::translator
