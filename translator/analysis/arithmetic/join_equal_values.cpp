// SPDX-License-Identifier: Apache-2.0
// What is computed again from the same operands is the value that was computed before, where that one dominates:
// machine code reads a parameter anew wherever it needs it, and computes in a loop again what it has before the loop,
// so that what belongs together (a division, an address and the next) seems to be of different numbers.
#include "frontend/isa/special_registers.h"
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;

class EqualValues {
public:
    explicit EqualValues(FunctionGraph& graph) : graph_(graph), replacement_(graph.values.size()) {
        std::iota(replacement_.begin(), replacement_.end(), 0);
    }

    bool run() {
        const Edges successors = successor_edges(graph_), predecessors = reverse_edges(successors);
        const DominatorTree tree(successors, predecessors, 0);
        std::vector<std::size_t> known; ///< what held above each block on the way down
        walk_down(
            tree,
            [&](BlockId block) {
                known.push_back(known_.size());
                look_at(graph_.blocks[block]);
            },
            [&](BlockId) {
                for (; known_.size() > known.back(); known_.pop_back()) seen_[known_.back()].pop_back();
                known.pop_back();
            });
        if (changed_) replace_uses();
        return changed_;
    }

private:
    /// Its value is told by its operands alone.
    bool is_function(const GraphInstruction& instruction) const {
        const ptx::Instruction& inst = instruction.inst;
        if (inst.guard != ptx::no_id || !is_removable(inst)) return false;
        for (unsigned i = 0; i < inst.operand_count; ++i) {
            const Operand& operand = inst.operands[i];
            if (operand.kind == Operand::Kind::special && !is_constant(ptx::SpecialRegister(operand.index)))
                return false;
        }
        return !has_effect(inst, ptx::Effects::load) || loads_kernel_parameter(graph_, inst);
    }
    static bool is_constant(ptx::SpecialRegister special) {
        using enum ptx::SpecialRegister;
        return special == tid || special == ntid || special == ctaid || special == nctaid;
    }

    using Key = std::vector<std::uint64_t>;
    void add(Key& key, const Operand& operand, bool is_destination) const {
        key.push_back(std::uint64_t(operand.kind) | std::uint64_t(operand.base) << 8 |
                      std::uint64_t(operand.scope) << 16 | std::uint64_t(operand.negated) << 24 |
                      std::uint64_t(operand.type) << 32 | std::uint64_t(operand.component) << 40);
        if (operand.has_elements()) {
            key.push_back(operand.count);
            for (std::uint32_t i = 0; i < operand.count; ++i) add(key, graph_.pool[operand.first + i], is_destination);
            return;
        }
        if (is_destination && operand.kind == Operand::Kind::reg) {
            key.push_back(ptx::bit_size(graph_.values[operand.index].type));
            return;
        }
        const bool is_register = operand.kind == Operand::Kind::reg ||
                                 (operand.kind == Operand::Kind::address && operand.base == Operand::Base::reg);
        // Constants by what they are.
        if (is_register && graph_.values[operand.index].is_constant) {
            key.push_back(~std::uint64_t(0));
            key.push_back(std::uint64_t(graph_.values[operand.index].type));
            key.push_back(graph_.values[operand.index].constant);
        } else {
            key.push_back(is_register ? replacement_[operand.index] : operand.index);
        }
        key.push_back(operand.value);
    }
    Key key_of(const ptx::Instruction& inst) const {
        const auto infos = ptx::form_info(inst.form).operands;
        Key key{std::uint64_t(inst.form) | std::uint64_t(inst.operand_count) << 16 |
                std::uint64_t(inst.modifier_count) << 24 | std::uint64_t(inst.vector_size) << 32 |
                std::uint64_t(inst.space) << 40};
        std::uint64_t types = 0;
        for (const ptx::ScalarType type : inst.types) types = types << 8 | std::uint64_t(type);
        key.push_back(types);
        for (unsigned i = 0; i < inst.modifier_count; ++i) key.push_back(std::uint64_t(inst.modifiers[i]));
        for (unsigned i = 0; i < inst.operand_count; ++i) add(key, inst.operands[i], infos[i].is_destination);
        return key;
    }
    static std::uint64_t hash(const Key& key) {
        std::uint64_t result = 0;
        for (const std::uint64_t part : key) result = (result ^ part) * 0x9e3779b97f4a7c15 ^ result >> 29;
        return result;
    }

    void look_at(Block& block) {
        for (std::size_t i = 0; i < block.phis.size(); ++i)
            for (std::size_t k = 0; k < i; ++k)
                if (are_equal(block.phis[i], block.phis[k])) {
                    join(block.phis[i].result, block.phis[k].result);
                    break;
                }
        for (const GraphInstruction& instruction : block.instructions) {
            if (!is_function(instruction)) continue;
            const FewValues results = definitions(graph_, instruction);
            if (results.empty()) continue;
            Key key = key_of(instruction.inst);
            const std::uint64_t number = hash(key);
            std::vector<Seen>& seen = seen_[number];
            const auto found = std::find_if(seen.begin(), seen.end(), [&](const Seen& one) { return one.key == key; });
            if (found == seen.end()) {
                seen.push_back({std::move(key), {results.begin(), results.end()}});
                known_.push_back(number);
                continue;
            }
            for (std::size_t i = 0; i < results.size(); ++i) join(results[i], found->results[i]);
        }
    }
    bool are_equal(const Phi& a, const Phi& b) const {
        if (graph_.values[a.result].type != graph_.values[b.result].type) return false;
        for (std::size_t i = 0; i < a.incoming.size(); ++i)
            if (replacement_[a.incoming[i]] != replacement_[b.incoming[i]]) return false;
        return true;
    }
    void join(ValueId value, ValueId with) {
        if (graph_.values[value].type != graph_.values[with].type) return;
        replacement_[value] = replacement_[with];
        changed_ = true;
    }

    void replace_uses() {
        const auto put = [&](ValueId& value) { value = replacement_[value]; };
        for (Block& block : graph_.blocks) {
            for (Phi& phi : block.phis)
                for (ValueId& value : phi.incoming) put(value);
            for (GraphInstruction& instruction : block.instructions) {
                if (instruction.inst.guard != ptx::no_id) put(instruction.inst.guard);
                for (ValueId& value : instruction.previous) put(value);
                for_each_register(graph_, instruction, [&](Operand& operand, bool is_definition) {
                    if (!is_definition) put(operand.index);
                });
            }
            if (block.terminator.condition != no_value) put(block.terminator.condition);
        }
    }

    struct Seen {
        Key key;
        std::vector<ValueId> results;
    };
    FunctionGraph& graph_;
    std::vector<ValueId> replacement_;
    std::unordered_map<std::uint64_t, std::vector<Seen>> seen_;
    std::vector<std::uint64_t> known_; ///< hashes, in the order of finding
    bool changed_ = false;
};

} // namespace

bool join_equal_values(FunctionGraph& graph) {
    return EqualValues(graph).run();
}

} // namespace ptarmigan::translator
