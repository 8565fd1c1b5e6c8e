// SPDX-License-Identifier: Apache-2.0
// Text of graphs and plans. Instructions are written by form, with values as %number.
#include "translator/analysis/graph/dump_graph.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/graph/branch_levels.h"

namespace ptarmigan::translator {
namespace {

using ptx::Operand;

std::string number(std::uint64_t n) {
    return std::to_string(n);
}
std::string block_name(BlockId block) {
    return block == no_block ? "end" : "bb" + number(block);
}

std::string hex(std::uint64_t n) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(n));
    return text;
}

std::string value_name(const FunctionGraph& graph, ValueId value) {
    if (value == no_value) return "?";
    const SsaValue& info = graph.values[value];
    if (info.is_constant) return info.constant < 4096 ? number(info.constant) : hex(info.constant);
    if (info.is_undefined) return "undef";
    return "%" + number(value);
}

std::string variable_name(const FunctionGraph& graph, const Operand& operand) {
    switch (operand.scope) {
    case ptx::VariableScope::module: return graph.module->variables[operand.index].name;
    case ptx::VariableScope::shared: return graph.shared[operand.index].name;
    case ptx::VariableScope::frame: return graph.locals[operand.index].name;
    case ptx::VariableScope::parameter: {
        const ptx::Function& function = graph.module->functions[graph.function];
        std::size_t returns = function.returns.size();
        return operand.index < returns ? function.returns[operand.index].name
                                       : function.parameters[operand.index - returns].name;
    }
    case ptx::VariableScope::body: return "body." + number(operand.index);
    }
    return {};
}

std::string offset_text(std::uint64_t value) {
    auto offset = static_cast<std::int64_t>(value);
    return offset == 0 ? "" : offset > 0 ? "+" + std::to_string(offset) : std::to_string(offset);
}

std::string operand_text(const FunctionGraph& graph, const Operand& operand) {
    std::string sign = operand.negated ? "!" : "";
    switch (operand.kind) {
    case Operand::Kind::none: return {};
    case Operand::Kind::reg: return sign + value_name(graph, operand.index);
    case Operand::Kind::imm: return operand.value < 4096 ? number(operand.value) : hex(operand.value);
    case Operand::Kind::special:
        return ptx::special_register_text(ptx::SpecialRegister(operand.index), operand.component);
    case Operand::Kind::variable: return variable_name(graph, operand) + offset_text(operand.value);
    case Operand::Kind::function: return graph.module->functions[operand.index].name;
    case Operand::Kind::sink: return "_";
    case Operand::Kind::address:
        if (operand.base == Operand::Base::none) return "[" + hex(operand.value) + "]";
        if (operand.base == Operand::Base::reg)
            return "[" + value_name(graph, operand.index) + offset_text(operand.value) + "]";
        return "[" + variable_name(graph, operand) + offset_text(operand.value) + "]";
    case Operand::Kind::vector:
    case Operand::Kind::list: {
        std::string text = "{";
        for (std::uint32_t e = 0; e < operand.count; ++e)
            text += (e ? ", " : "") + operand_text(graph, graph.pool[operand.first + e]);
        return text + "}";
    }
    default: return "#" + number(operand.index);
    }
}

std::string instruction_text(const FunctionGraph& graph, const GraphInstruction& instruction, bool with_shapes) {
    const ptx::Instruction& inst = instruction.inst;
    const ptx::FormInfo& form = ptx::form_info(inst.form);
    std::string text, shapes;
    if (inst.guard != ptx::no_id)
        text += std::string("@") + (inst.guard_negated ? "!" : "") + value_name(graph, inst.guard) + " ";
    text += form.name;
    for (ptx::ScalarType type : inst.types)
        if (type != ptx::ScalarType::none) text += "." + std::string(ptx::spelling(type));
    if (inst.vector_size > 1) text += ".v" + number(inst.vector_size);
    bool first = true;
    for (unsigned i = 0; i < inst.operand_count; ++i) {
        if (inst.operands[i].kind == Operand::Kind::none) continue;
        text += (first ? " " : ", ") + operand_text(graph, inst.operands[i]);
        first = false;
        if (!form.operands[i].is_destination || !with_shapes) continue;
        auto add = [&](const Operand& o) {
            if (o.kind == Operand::Kind::reg) shapes += " " + to_string(graph, graph.values[o.index].shape);
        };
        add(inst.operands[i]);
        if (inst.operands[i].has_elements())
            for (std::uint32_t e = 0; e < inst.operands[i].count; ++e) add(graph.pool[inst.operands[i].first + e]);
    }
    if (!instruction.previous.empty()) {
        text += " else";
        for (ValueId value : instruction.previous) text += " " + value_name(graph, value);
    }
    if (!shapes.empty()) text += "   ;" + shapes;
    return text;
}

std::string terminator_text(const FunctionGraph& graph, BlockId id) {
    const Block& block = graph.blocks[id];
    std::string text;
    switch (block.terminator.kind) {
    case Terminator::Kind::exit: return "exit";
    case Terminator::Kind::jump: return "jump " + block_name(block.successors[0]);
    case Terminator::Kind::branch: text = "branch "; break;
    case Terminator::Kind::indexed: text = "indexed "; break;
    }
    text += std::string(block.terminator.negated ? "!" : "") + value_name(graph, block.terminator.condition);
    for (BlockId s : block.successors) text += " " + block_name(s);
    return text;
}

std::string list(const std::vector<BlockId>& blocks) {
    std::string text;
    for (BlockId block : blocks) text += " " + block_name(block);
    return text;
}

std::string lanes_text(const LaneOffsets& lanes) {
    bool steady = lanes.size() > 1;
    for (std::size_t l = 0; l < lanes.size(); ++l) steady = steady && lanes[l] == lanes[1] * std::int64_t(l);
    if (steady) return "0:" + std::to_string(lanes[1]); // an arithmetic progression by its step
    std::string text;
    for (std::size_t l = 0; l < lanes.size(); ++l) text += (l ? "," : "") + std::to_string(lanes[l]);
    return text;
}

} // namespace

std::string to_string(const FunctionGraph& graph, const Shape& shape) {
    switch (shape.level) {
    case Shape::Level::unknown: return "unknown";
    case Shape::Level::cta_uniform: return "cta";
    case Shape::Level::step_uniform: return "step";
    case Shape::Level::varying: return "varying";
    case Shape::Level::affine: break;
    }
    std::string text = "affine(" + lanes_text(*shape.offsets);
    if (shape.steps) text += " + stride*" + lanes_text(*shape.steps);
    if (shape.guard != no_value)
        text += " if " + value_name(graph, shape.guard) + "*" + std::to_string(shape.guard_scale);
    return text + ")";
}

std::string dump_graph(const FunctionGraph& graph, bool with_shapes) {
    std::string text = "function " + graph.module->functions[graph.function].name + "\n";
    for (const FrameVariable& local : graph.locals)
        text += "  local " + local.name + " " + number(local.size) + " bytes at " + number(local.local_offset) +
                (local.is_interleaved ? ", interleaved by lane\n" : "\n");
    for (const SharedVariable& shared : graph.shared)
        text += "  shared " + shared.name + " " + number(shared.size) + " bytes at " + number(shared.offset) + "\n";
    for (BlockId id = 0; id < graph.blocks.size(); ++id) {
        const Block& block = graph.blocks[id];
        text += block_name(id) + ":   ; from" + list(block.predecessors);
        std::uint32_t loop = graph.forest.loop_of.empty() ? no_loop : graph.forest.loop_of[id];
        if (loop != no_loop)
            text += ", loop " + number(loop) + (graph.forest.loops[loop].header == id ? " header" : "");
        text += "\n";
        for (const Phi& phi : block.phis) {
            text += "  " + value_name(graph, phi.result) + " = phi";
            for (ValueId value : phi.incoming) text += " " + value_name(graph, value);
            if (with_shapes) text += "   ; " + to_string(graph, graph.values[phi.result].shape);
            text += "\n";
        }
        for (const GraphInstruction& instruction : block.instructions)
            text += "  " + instruction_text(graph, instruction, with_shapes) + "\n";
        text += "  " + terminator_text(graph, id);
        if (with_shapes && block.terminator.condition != no_value)
            text += is_divergent_branch(graph, id)       ? "   ; divergent"
                    : is_cta_divergent_branch(graph, id) ? "   ; differs between steps"
                                                         : "";
        text += "\n";
    }
    return text;
}

std::string dump_plan(const FunctionGraph& graph, const LinearPlan& plan) {
    if (!plan.reducible) return "irreducible: no masks\n";
    std::string text = "order" + list(plan.order) + "\n";
    for (std::size_t l = 0; l < plan.loops.size(); ++l) {
        const LoopInfo& loop = plan.loops[l];
        text += "loop " + number(l) + ": header " + block_name(loop.header) + ", latch " + block_name(loop.latch) +
                (loop.divergent_exit ? ", divergent exit\n" : "\n");
    }
    for (BlockId id : plan.order) {
        const BlockPlan& block = plan.blocks[id];
        text += block_name(id) + ": mask ";
        switch (block.mask.kind) {
        case MaskSource::Kind::entry: text += "entry"; break;
        case MaskSource::Kind::same_as: text += "of " + block_name(block.mask.block); break;
        case MaskSource::Kind::accumulated: text += "accumulated"; break;
        }
        if (block.needs_skip_check) text += ", skip to " + block_name(block.skip_to);
        if (block.divergent_branch) text += ", divergent";
        if (!block.jump_to.empty()) text += ", then" + list(block.jump_to);
        for (bool blend : block.blend) text += blend ? ", blend" : ", move";
        if (plan.region.cut_after[id]) text += ", cut";
        text += "\n";
    }
    return text;
}

std::string dump_barriers(const FunctionGraph& graph, const BarrierPlan& plan) {
    if (!plan.has_barriers) return "no barriers\n";
    if (!plan.splittable) return "not split: " + plan.reason + "\n";
    std::string text;
    for (std::size_t r = 0; r < plan.regions.size(); ++r) {
        text += "region " + number(r) + ": enters " + block_name(plan.regions[r].entry);
        if (plan.resume_of[r] != no_block) text += " behind " + block_name(plan.resume_of[r]);
        text += ", blocks" + list(plan.regions[r].blocks) + ", live in";
        for (ValueId value : plan.live_in[r]) text += " " + value_name(graph, value);
        text += "\n";
    }
    return text;
}

} // namespace ptarmigan::translator
