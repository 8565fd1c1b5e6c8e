// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/analysis/interpreters.h"

#include "frontend/isa/special_registers.h"
#include "frontend/ptx/queries.h"
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/plans/plan_linearization.h"

#include <algorithm>
#include <functional>
#include <map>

namespace ptarmigan::test {

using namespace translator;
using ptx::Operand;

namespace {

constexpr unsigned step_limit = 200000;

std::uint64_t truncated(std::uint64_t bits, ptx::ScalarType type) {
    unsigned size = ptx::bit_size(type);
    return size >= 64 ? bits : bits & ((std::uint64_t(1) << size) - 1);
}

std::uint64_t special(const Operand& operand, const Launch& launch, std::uint32_t thread) {
    const auto& n = launch.ntid;
    switch (ptx::SpecialRegister(operand.index)) {
    case ptx::SpecialRegister::tid:
        return operand.component == 0 ? thread % n[0] : operand.component == 1 ? thread / n[0] % n[1] : thread / (n[0] * n[1]);
    case ptx::SpecialRegister::ntid: return n[operand.component];
    case ptx::SpecialRegister::laneid: return thread % 32;
    case ptx::SpecialRegister::ctaid: return 3;
    default: throw std::logic_error("special register without a model");
    }
}

/// Result of a pure instruction or a parameter load for one thread; `reg` reads a register or value.
std::uint64_t evaluate(const ptx::Instruction& inst, const Launch& launch, std::uint32_t thread,
                       const std::function<std::uint64_t(std::uint32_t)>& reg) {
    auto read = [&](const Operand& operand) -> std::uint64_t {
        if (operand.kind == Operand::Kind::imm) return operand.value;
        if (operand.kind == Operand::Kind::special) return special(operand, launch, thread);
        std::uint64_t bits = truncated(reg(operand.index), operand.type);
        return operand.negated ? bits ^ 1 : bits;
    };
    if (inst.form == ptx::FormId::ld) return launch.parameters.at(inst[ptx::Role::a].index);
    std::vector<std::uint64_t> sources;
    auto infos = ptx::form_info(inst.form).operands;
    for (unsigned i = 0; i < inst.operand_count; ++i)
        if (!infos[i].is_destination && inst.operands[i].kind != Operand::Kind::none) sources.push_back(read(inst.operands[i]));
    auto result = fold_constant(inst, sources);
    if (!result) throw std::logic_error("form without a model: " + std::string(ptx::form_info(inst.form).name));
    return *result;
}

/// One step: what generated code would hold in registers and slots.
class Step {
public:
    Step(const FunctionGraph& graph, const Launch& launch, unsigned width, std::uint32_t first_thread, std::vector<StoreLog>& logs)
        : graph_(graph), launch_(launch), width_(width), first_(first_thread), logs_(logs),
          values_(graph.values.size(), std::vector<std::uint64_t>(width, 0xdeadbeefcafe)), alive_(width) {
        for (unsigned l = 0; l < width; ++l) alive_[l] = first_thread + l < launch.threads();
    }

    /// Runs a region; returns the barrier block it ended at, or no_block at the end of the program.
    BlockId run(const LinearPlan& plan, unsigned& fuel);
    void keep_only(const std::vector<ValueId>& live) {
        for (ValueId v = 0; v < values_.size(); ++v)
            if (!std::binary_search(live.begin(), live.end(), v)) values_[v].assign(width_, 0x5a5a5a5a5a5a + v);
    }
    bool any_alive() const { return std::find(alive_.begin(), alive_.end(), true) != alive_.end(); }
    std::uint64_t live_value(ValueId value) const {
        return values_[value][std::find(alive_.begin(), alive_.end(), true) - alive_.begin()];
    }

private:
    using Mask = std::vector<bool>;
    using Lanes = std::vector<std::uint64_t>;
    bool any(const Mask& mask) const { return std::find(mask.begin(), mask.end(), true) != mask.end(); }
    unsigned first_lane(const Mask& mask) const { return unsigned(std::find(mask.begin(), mask.end(), true) - mask.begin()); }
    const Mask& mask_of(BlockId block) const {
        while (plan_->blocks[block].mask.kind == MaskSource::Kind::same_as) block = plan_->blocks[block].mask.block;
        return plan_->blocks[block].mask.kind == MaskSource::Kind::entry ? entry_ : current_.at(block);
    }
    const Lanes& read(BlockId block, ValueId value);
    void define(BlockId block, ValueId value, Lanes lanes, const Mask& mask);
    void check_affine(const SsaValue& info, const Lanes& lanes, const Mask& mask) const;
    void execute(BlockId block, const GraphInstruction& instruction, const Mask& mask);
    void edge(BlockId from, unsigned successor, const Mask& mask);
    BlockId terminate(BlockId block, const Mask& mask);

    const FunctionGraph& graph_;
    const Launch& launch_;
    unsigned width_;
    std::uint32_t first_;
    std::vector<StoreLog>& logs_;
    std::vector<Lanes> values_;
    std::map<BlockId, Mask> accumulated_, current_;
    Mask alive_, entry_;
    const LinearPlan* plan_ = nullptr;
    Lanes constant_;
};

const Step::Lanes& Step::read(BlockId block, ValueId value) {
    const SsaValue& info = graph_.values[value];
    if (info.is_constant || info.is_undefined) {
        constant_.assign(width_, info.is_constant ? info.constant : 0);
        return constant_;
    }
    return values_[value];
}

void Step::check_affine(const SsaValue& info, const Lanes& lanes, const Mask& mask) const {
    const Shape& shape = info.shape;
    if (shape.guard != no_value) return; // holds only where the guard does
    auto rest = [&](unsigned l) { return lanes[l] - std::uint64_t((*shape.offsets)[l]); };
    unsigned a = first_lane(mask);
    std::uint64_t stride = 0;
    bool have_stride = !shape.steps;
    for (int pass = 0; pass < 2; ++pass) {
        for (unsigned l = 0; l < width_; ++l) {
            if (!mask[l]) continue;
            std::int64_t steps = shape.steps ? (*shape.steps)[l] - (*shape.steps)[a] : 0;
            if (!have_stride && (steps == 1 || steps == -1)) {
                stride = steps == 1 ? rest(l) - rest(a) : rest(a) - rest(l);
                have_stride = true;
            }
            if (pass == 0 || (!have_stride && steps != 0)) continue;
            if (truncated(rest(l) - rest(a) - stride * std::uint64_t(steps), info.type) != 0)
                throw Violation("affine value does not fit its shape: " + info.name);
        }
    }
}

void Step::define(BlockId, ValueId value, Lanes lanes, const Mask& mask) {
    const SsaValue& info = graph_.values[value];
    if (any(mask)) {
        if (info.shape.is_uniform()) {
            std::uint64_t one = lanes[first_lane(mask)];
            for (unsigned l = 0; l < width_; ++l)
                if (mask[l] && lanes[l] != one) throw Violation("value is not uniform: " + info.name);
            lanes.assign(width_, one);
        } else if (info.shape.is_affine()) {
            check_affine(info, lanes, mask);
        }
    }
    values_[value] = std::move(lanes);
}

void Step::execute(BlockId block, const GraphInstruction& instruction, const Mask& mask) {
    const ptx::Instruction& inst = instruction.inst;
    Mask active = mask;
    bool guarded = inst.guard != ptx::no_id;
    if (guarded) {
        Lanes guard = read(block, inst.guard);
        for (unsigned l = 0; l < width_; ++l) active[l] = mask[l] && ((guard[l] & 1) != 0) != inst.guard_negated;
    }
    if (inst.form == ptx::FormId::st) {
        Lanes base = read(block, inst[ptx::Role::a].index);
        const Operand& source = inst[ptx::Role::b];
        Lanes value = source.kind == Operand::Kind::imm ? Lanes(width_, source.value) : read(block, source.index);
        for (unsigned l = 0; l < width_; ++l)
            if (active[l]) logs_[first_ + l].emplace_back(base[l] + inst[ptx::Role::a].value, truncated(value[l], source.type));
        return;
    }
    if (is_cta_barrier(inst)) return;
    const auto results = definitions(graph_, instruction);
    if (results.empty()) return;
    Lanes lanes(width_);
    for (unsigned l = 0; l < width_; ++l)
        lanes[l] = evaluate(inst, launch_, first_ + l, [&](std::uint32_t v) { return read(block, v)[l]; });
    if (guarded && !graph_.values[instruction.previous[0]].is_undefined) {
        Lanes old = read(block, instruction.previous[0]);
        for (unsigned l = 0; l < width_; ++l)
            if (!active[l]) lanes[l] = old[l];
        define(block, results[0], lanes, mask);
    } else {
        define(block, results[0], lanes, active);
    }
}

void Step::edge(BlockId from, unsigned successor, const Mask& mask) {
    BlockId to = graph_.blocks[from].successors[successor];
    const Block& target = graph_.blocks[to];
    std::size_t index = std::find(target.predecessors.begin(), target.predecessors.end(), from) - target.predecessors.begin();
    std::vector<Lanes> incoming;
    for (const Phi& phi : target.phis) {
        incoming.push_back(read(from, phi.incoming[index]));
        // Any number will do for an undefined value, so it takes the shape that is expected, as the emitter has it.
        const Shape& shape = graph_.values[phi.result].shape;
        if (graph_.values[phi.incoming[index]].is_undefined && shape.is_affine())
            for (unsigned l = 0; l < width_; ++l) incoming.back()[l] = std::uint64_t((*shape.offsets)[l]);
    }
    for (std::size_t i = 0; i < target.phis.size(); ++i) {
        ValueId result = target.phis[i].result;
        if (plan_->blocks[to].blend[i])
            for (unsigned l = 0; l < width_; ++l)
                if (!mask[l]) incoming[i][l] = values_[result][l];
        define(to, result, incoming[i], mask);
    }
    if (plan_->blocks[to].mask.kind == MaskSource::Kind::accumulated) {
        Mask& waiting = accumulated_.try_emplace(to, Mask(width_, false)).first->second;
        for (unsigned l = 0; l < width_; ++l) waiting[l] = waiting[l] || mask[l];
    }
}

BlockId Step::terminate(BlockId id, const Mask& mask) {
    const Block& block = graph_.blocks[id];
    const BlockPlan& plan = plan_->blocks[id];
    if (block.terminator.kind == Terminator::Kind::jump) {
        edge(id, 0, mask);
        return plan.jump_to[0];
    }
    Lanes condition = read(id, block.terminator.condition);
    auto choice = [&](unsigned l) { return ((condition[l] & 1) != 0) != block.terminator.negated ? 0u : 1u; };
    if (plan.divergent_branch) {
        for (unsigned k = 0; k < 2; ++k) {
            Mask part(width_);
            for (unsigned l = 0; l < width_; ++l) part[l] = mask[l] && choice(l) == k;
            edge(id, k, part);
        }
        return plan.jump_to[0];
    }
    unsigned taken = choice(first_lane(mask));
    for (unsigned l = 0; l < width_; ++l)
        if (mask[l] && choice(l) != taken) throw Violation("lanes part at a uniform branch");
    edge(id, taken, mask);
    return plan.jump_to[taken];
}

BlockId Step::run(const LinearPlan& plan, unsigned& fuel) {
    plan_ = &plan;
    entry_ = alive_;
    accumulated_.clear();
    current_.clear();
    BlockId block = plan.region.entry;
    while (block != no_block) {
        if (++fuel > step_limit) throw Violation("does not end");
        const BlockPlan& here = plan.blocks[block];
        if (here.mask.kind == MaskSource::Kind::accumulated) {
            current_[block] = accumulated_.try_emplace(block, Mask(width_, false)).first->second;
            accumulated_[block].assign(width_, false);
            if (here.needs_skip_check && !any(current_[block])) {
                block = here.skip_to;
                continue;
            }
        }
        if (block == graph_.exit_block) break;
        Mask mask = mask_of(block);
        if (!any(mask)) throw Violation("block " + std::to_string(block) + " runs without lanes");
        for (const GraphInstruction& instruction : graph_.blocks[block].instructions) execute(block, instruction, mask);
        if (plan.region.cut_after[block]) {
            alive_ = mask;
            return block;
        }
        block = terminate(block, mask);
    }
    for (auto& [waiting, mask] : accumulated_)
        if (waiting != graph_.exit_block && any(mask)) throw Violation("lanes are left waiting at block " + std::to_string(waiting));
    alive_.assign(width_, false);
    return no_block;
}

} // namespace

std::vector<StoreLog> run_threads(const ptx::Module&, const ptx::Body& body, const Launch& launch) {
    std::vector<StoreLog> logs(launch.threads());
    for (std::uint32_t thread = 0; thread < launch.threads(); ++thread) {
        std::vector<std::uint64_t> registers(body.registers.size(), 0);
        unsigned fuel = 0;
        for (std::size_t pc = 0; pc < body.instructions.size();) {
            if (++fuel > step_limit) throw std::logic_error("random program does not end");
            const ptx::Instruction& inst = body.instructions[pc++];
            if (inst.guard != ptx::no_id && ((registers[inst.guard] & 1) != 0) == inst.guard_negated) continue;
            if (opcode(inst) == "ret") break;
            if (opcode(inst) == "bra") pc = body.labels[inst[ptx::Role::t].index].instruction;
            else if (inst.form == ptx::FormId::st) {
                const Operand& source = inst[ptx::Role::b];
                std::uint64_t value = source.kind == Operand::Kind::imm ? source.value : registers[source.index];
                logs[thread].emplace_back(registers[inst[ptx::Role::a].index] + inst[ptx::Role::a].value, truncated(value, source.type));
            } else if (!is_cta_barrier(inst)) {
                registers[inst.operands[0].index] = evaluate(inst, launch, thread, [&](std::uint32_t r) { return registers[r]; });
            }
        }
    }
    return logs;
}

std::vector<StoreLog> run_steps(const FunctionGraph& graph, const BarrierPlan& barriers, const Launch& launch, unsigned width) {
    std::vector<StoreLog> logs((launch.threads() + width - 1) / width * width);
    std::vector<LinearPlan> plans;
    for (const RegionView& view : barriers.regions) plans.push_back(plan_linearization(graph, view));
    std::vector<Step> steps;
    for (std::uint32_t first = 0; first < launch.threads(); first += width) steps.emplace_back(graph, launch, width, first, logs);
    std::size_t region = 0;
    for (unsigned fuel = 0;;) {
        BlockId reached = no_block;
        for (Step& step : steps) {
            if (!step.any_alive()) continue;
            BlockId barrier = step.run(plans[region], fuel);
            if (barrier == no_block) continue;
            if (reached != no_block && reached != barrier) throw Violation("steps reach different barriers");
            reached = barrier;
        }
        if (reached == no_block) break;
        region = std::find(barriers.resume_of.begin() + 1, barriers.resume_of.end(), reached) - barriers.resume_of.begin();
        for (Step& step : steps) step.keep_only(barriers.live_in[region]);
        for (ValueId value : barriers.live_in[region]) {
            if (graph.values[value].shape.level != Shape::Level::cta_uniform) continue;
            const Step* first = nullptr;
            for (const Step& step : steps) {
                if (!step.any_alive()) continue;
                if (first && first->live_value(value) != step.live_value(value)) throw Violation("value differs between steps: " + graph.values[value].name);
                first = first ? first : &step;
            }
        }
    }
    logs.resize(launch.threads());
    return logs;
}

} // namespace ptarmigan::test
