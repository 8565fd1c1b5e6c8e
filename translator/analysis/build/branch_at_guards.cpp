// SPDX-License-Identifier: Apache-2.0
// Loads and stores under one predicate, and what is computed between them, become a branch around them again. ptxas
// makes predicates of short branches (`if (t < s) a[t] += a[t + s]`), but here a step none of whose lanes have a share
// would do all of it for nothing, where it jumps over a block.
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/build/canonical_cfg.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::FormId;
using ptx::Operand;

/// Accesses that are worth a branch, one of which is a store.
constexpr unsigned fewest_accesses = 3;

class GuardBranches {
public:
    explicit GuardBranches(FunctionGraph& graph)
        : graph_(graph), definitions_(graph.values.size()), needs_(graph.values.size()) {}

    bool run() {
        if (!find_definitions()) return false;
        find_needs();
        const auto count = BlockId(graph_.blocks.size());
        for (BlockId block = 0; block < count; ++block) look_at(block);
        if (changed_) renumber_blocks(graph_);
        return changed_;
    }

private:
    /// A predicate without inversions, and whether it must be false.
    struct Guard {
        ValueId predicate = no_value;
        bool negated = false;
        bool operator==(const Guard&) const = default;
    };
    struct Need {
        enum class Kind : std::uint8_t { none, under_guard, always } kind = Kind::none;
        Guard guard;
        bool operator==(const Need&) const = default;
    };
    struct Group {
        Guard guard;
        std::vector<GraphInstruction> code;
        unsigned accesses = 0;
        bool stores = false;
    };

    /// A weak one.
    static bool is_access(const ptx::Instruction& inst) {
        return inst.form == FormId::ld || inst.form == FormId::ld_global_nc || inst.form == FormId::st;
    }
    /// What may change places with what has nothing to do with it.
    static bool is_computed(const ptx::Instruction& inst) {
        return is_removable(inst) && !has_effect(inst, Effects::load);
    }

    bool find_definitions() {
        bool any = false;
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions) {
                any = any || (instruction.inst.guard != ptx::no_id && instruction.inst.form == FormId::st);
                if (instruction.inst.form != FormId::not_bits || instruction.inst.guard != ptx::no_id) continue;
                const Operand &d = instruction.inst.operands[0], &a = instruction.inst.operands[1];
                if (d.kind == Operand::Kind::reg && a.kind == Operand::Kind::reg)
                    definitions_[d.index] = {a.index, !a.negated};
            }
        return any;
    }
    Guard guard_of(const ptx::Instruction& inst) const {
        Guard guard{inst.guard, inst.guard_negated};
        for (unsigned step = 0; step < 8 && definitions_[guard.predicate]; ++step)
            guard = {definitions_[guard.predicate]->predicate, guard.negated != definitions_[guard.predicate]->negated};
        return guard;
    }

    /// Which values are read under one guard only, and in the block that computes them.
    void find_needs() {
        const Need always{Need::Kind::always, {}};
        std::vector<BlockId> made_in(graph_.values.size(), no_block);
        for (BlockId id = 0; id < graph_.blocks.size(); ++id)
            for (const GraphInstruction& instruction : graph_.blocks[id].instructions)
                for (const ValueId value : definitions(graph_, instruction)) made_in[value] = id;
        for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
            const Block& block = graph_.blocks[id];
            for (const Phi& phi : block.phis)
                for (const ValueId value : phi.incoming) needs_[value] = always;
            if (block.terminator.condition != no_value) needs_[block.terminator.condition] = always;
            for (const GraphInstruction& instruction : block.instructions)
                for (const ValueId value : uses(graph_, instruction))
                    if (made_in[value] != id) needs_[value] = always;
        }
        const auto need = [&](ValueId value, const Need& how) {
            Need& known = needs_[value];
            if (known != how) known = known.kind == Need::Kind::none ? how : Need{Need::Kind::always, {}};
        };
        for (const Block& block : graph_.blocks)
            for (auto at = block.instructions.rbegin(); at != block.instructions.rend(); ++at) {
                Need how = always;
                if (at->inst.guard != ptx::no_id) {
                    how = {Need::Kind::under_guard, guard_of(at->inst)};
                    need(at->inst.guard, always);
                    for (const ValueId value : at->previous) need(value, always);
                } else if (is_computed(at->inst)) {
                    how = {};
                    for (const ValueId value : definitions(graph_, *at)) {
                        if (needs_[value].kind == Need::Kind::none) continue;
                        how = how.kind == Need::Kind::none || how == needs_[value] ? needs_[value] : always;
                    }
                }
                if (how.kind == Need::Kind::none) how = always;
                for_each_register(graph_, *at, [&](const Operand& operand, bool is_definition) {
                    if (!is_definition) need(operand.index, how);
                });
            }
    }

    // --- a block ---
    void look_at(BlockId id) {
        Block& block = graph_.blocks[id];
        std::map<std::pair<ValueId, bool>, std::pair<unsigned, bool>> accesses; // and whether one is a store
        for (const GraphInstruction& instruction : block.instructions)
            if (instruction.inst.guard != ptx::no_id && is_access(instruction.inst)) {
                const Guard guard = guard_of(instruction.inst);
                auto& [count, stores] = accesses[{guard.predicate, guard.negated}];
                ++count;
                stores = stores || instruction.inst.form == FormId::st;
            }
        if (std::none_of(accesses.begin(), accesses.end(), [](const auto& entry) {
                return entry.second.first >= fewest_accesses && entry.second.second;
            }))
            return;
        std::vector<GraphInstruction> code = std::move(block.instructions);
        block.instructions.clear();
        current_ = id;
        group_of_.clear();
        for (GraphInstruction& instruction : code) add(std::move(instruction));
        flush();
    }

    /// The open group that makes a value that the instruction reads; its predicate's and old values' maker, too.
    std::optional<std::size_t> latest_group(const GraphInstruction& instruction) const {
        std::optional<std::size_t> latest;
        for (const ValueId value : uses(graph_, instruction))
            if (const auto found = group_of_.find(value); found != group_of_.end())
                latest = std::max(latest.value_or(0), found->second);
        return latest;
    }
    std::optional<std::size_t> open_group(const Guard& guard) const {
        for (std::size_t i = 0; i < groups_.size(); ++i)
            if (groups_[i].guard == guard) return i;
        return std::nullopt;
    }
    bool any_stores() const {
        return std::any_of(groups_.begin(), groups_.end(), [](const Group& group) { return group.stores; });
    }

    void add(GraphInstruction&& instruction) {
        const ptx::Instruction& inst = instruction.inst;
        const bool is_guarded = inst.guard != ptx::no_id, is_free = is_computed(inst);
        if (!is_free && !is_access(inst)) {
            flush();
            put(std::move(instruction));
            return;
        }
        std::optional<Guard> wanted;
        if (is_guarded) {
            wanted = guard_of(inst);
        } else if (is_free) {
            const FewValues results = definitions(graph_, instruction);
            if (!results.empty() && needs_[results[0]].kind == Need::Kind::under_guard &&
                std::all_of(results.begin(), results.end(),
                            [&](ValueId value) { return needs_[value] == needs_[results[0]]; }))
                wanted = needs_[results[0]].guard;
        }
        // Nothing that a group makes may be read by what comes before it.
        const auto fits = [&] {
            const std::optional<std::size_t> latest = latest_group(instruction);
            const std::optional<std::size_t> own = wanted ? open_group(*wanted) : std::nullopt;
            if (is_access(inst)) {
                // Loads change places with loads; a store stays behind what was before it.
                if (any_stores() && !(own && *own + 1 == groups_.size())) return false;
                if (inst.form == FormId::st && !groups_.empty() && !(own && *own + 1 == groups_.size())) return false;
            }
            if (!latest) return true;
            if (!wanted) return false;
            if (own) return *latest <= *own && !(is_guarded && makes_guard(*own, inst.guard));
            return is_guarded; // a new group stands behind all others
        };
        if (!fits()) flush();
        // What is computed for a group alone stands before it unless it needs what the group makes.
        const bool joins = is_guarded || latest_group(instruction).has_value();
        if (!wanted || !joins) {
            if (!is_free && any_stores()) flush();
            put(std::move(instruction));
            return;
        }
        std::optional<std::size_t> own = open_group(*wanted);
        if (!own) {
            if (!is_guarded) {
                put(std::move(instruction));
                return;
            }
            own = groups_.size();
            groups_.push_back({*wanted, {}, 0, false});
        }
        Group& group = groups_[*own];
        group.accesses += is_access(inst);
        group.stores = group.stores || inst.form == FormId::st;
        for (const ValueId value : definitions(graph_, instruction)) group_of_[value] = *own;
        group.code.push_back(std::move(instruction));
    }
    /// Then it is no branch around the group.
    bool makes_guard(std::size_t own, ValueId guard) const {
        const auto found = group_of_.find(guard);
        return found != group_of_.end() && found->second >= own;
    }

    void put(GraphInstruction&& instruction) {
        for (const ValueId value : definitions(graph_, instruction)) graph_.values[value].block = current_;
        graph_.blocks[current_].instructions.push_back(std::move(instruction));
    }

    void flush() {
        std::vector<Group> groups = std::move(groups_);
        groups_.clear();
        group_of_.clear();
        for (Group& group : groups) {
            if (group.accesses >= fewest_accesses && group.stores)
                branch_around(group);
            else
                for (GraphInstruction& instruction : group.code) put(std::move(instruction));
        }
    }

    BlockId new_block() {
        graph_.blocks.emplace_back();
        return BlockId(graph_.blocks.size() - 1);
    }
    /// current -> executed or passed over -> the rest, which becomes the current block.
    void branch_around(Group& group) {
        const BlockId executed = new_block(), passed = new_block(), rest = new_block();
        Block &before = graph_.blocks[current_], &behind = graph_.blocks[rest];
        behind.terminator = before.terminator;
        behind.successors = std::move(before.successors);
        behind.ends_with_barrier = before.ends_with_barrier;
        behind.predecessors = {executed, passed};
        for (const BlockId successor : behind.successors)
            std::replace(graph_.blocks[successor].predecessors.begin(), graph_.blocks[successor].predecessors.end(),
                         current_, rest);
        before.terminator.kind = Terminator::Kind::branch;
        before.terminator.condition = group.guard.predicate;
        before.terminator.negated = group.guard.negated;
        before.successors = {executed, passed};
        before.ends_with_barrier = false;
        for (const BlockId arm : {executed, passed}) {
            graph_.blocks[arm].predecessors = {current_};
            graph_.blocks[arm].successors = {rest};
            graph_.blocks[arm].terminator.kind = Terminator::Kind::jump;
            graph_.blocks[arm].terminator.location = before.terminator.location;
        }
        if (graph_.exit_block == current_) graph_.exit_block = rest;
        current_ = executed;
        std::map<ValueId, ValueId> names, passed_over; // of what the group makes, on either way
        std::vector<Phi> phis;
        for (GraphInstruction& instruction : group.code) {
            for_each_register(graph_, instruction, [&](Operand& operand, bool is_definition) {
                if (is_definition) return;
                if (const auto found = names.find(operand.index); found != names.end()) operand.index = found->second;
            });
            const bool is_guarded = instruction.inst.guard != ptx::no_id;
            instruction.inst.guard = ptx::no_id;
            instruction.inst.guard_negated = false;
            std::size_t place = 0;
            const std::vector<ValueId> previous = std::move(instruction.previous);
            instruction.previous.clear();
            for_each_register(graph_, instruction, [&](Operand& operand, bool is_definition) {
                if (!is_definition) return;
                const ValueId result = operand.index;
                const ptx::ScalarType type = graph_.values[result].type;
                operand.index = names[result] = new_value(graph_, type, executed);
                Phi phi;
                phi.result = result;
                ValueId other = is_guarded && place < previous.size() ? previous[place] : no_value;
                ++place;
                if (other == no_value) { // computed between, and read there only
                    other = new_value(graph_, type, no_block);
                    graph_.values[other].is_undefined = true;
                }
                if (const auto found = passed_over.find(other); found != passed_over.end()) other = found->second;
                passed_over[result] = other;
                phi.incoming = {operand.index, other};
                graph_.values[result].block = rest;
                graph_.values[result].is_phi = true;
                phis.push_back(std::move(phi));
            });
            graph_.blocks[executed].instructions.push_back(std::move(instruction));
        }
        graph_.blocks[rest].phis = std::move(phis);
        current_ = rest;
        changed_ = true;
    }

    FunctionGraph& graph_;
    std::vector<std::optional<Guard>> definitions_; ///< of predicates that `not` makes
    std::vector<Need> needs_;                       ///< by value
    BlockId current_ = no_block;
    std::vector<Group> groups_; ///< open ones, in the order in which they will stand
    std::map<ValueId, std::size_t> group_of_;
    bool changed_ = false;
};

} // namespace

bool branch_at_guards(FunctionGraph& graph) {
    return GuardBranches(graph).run();
}

} // namespace ptarmigan::translator
