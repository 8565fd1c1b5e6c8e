// SPDX-License-Identifier: Apache-2.0
// Inlining works on bound bodies: each call of a function with a body is replaced by an instance of it with registers,
// blocks and variables of its own. Formal .param variables are the caller's actual ones: the convention passes by value
// and a caller can't read an argument back, so sharing the storage is exact.
#include "translator/analysis/build/flatten.h"

#include "frontend/ptx/provided_functions.h"
#include "translator/analysis/build/late_targets.h"
#include "translator/analysis/graph/form_queries.h"

#include <algorithm>
#include <map>

namespace ptarmigan::translator {

using ptx::FunctionId;
using ptx::Operand;
using ptx::StateSpace;
using ptx::VariableId;
using ptx::VariableScope;

std::string message_at(const FunctionGraph& graph, const SourceLocation& location, std::string_view text) {
    return graph.module->name + ":" + std::to_string(location.line) + ":" + std::to_string(location.column) +
           ": error: " + std::string(text);
}

FunctionId resolve_alias(const ptx::Module& module, FunctionId function) {
    for (unsigned hops = 0; hops < 16 && !module.functions[function].alias_of.empty(); ++hops) {
        auto target = module.find_function(module.functions[function].alias_of);
        if (!target || *target == function) break;
        function = *target;
    }
    return function;
}

namespace {

/// Calls nest in instances; deeper ones stay real calls so that hostile modules can't exhaust the stack.
constexpr unsigned max_inline_depth = 64;

/// Of a call through a pointer: functions that are inlined behind tests of the pointer, their statements together, and
/// all such statements of a graph. Each place of a call has its own copies.
constexpr std::size_t most_targets = 8, most_target_statements = 1000, most_statements_by_pointer = 4000;

/// One inlined body.
struct Instance {
    FunctionId function = 0;
    const ptx::Body* body = nullptr;
    std::uint32_t first_register = 0;
    std::vector<std::uint32_t> storage; ///< by body variable: index into storages, or no_id
    std::vector<BlockId> label_block;   ///< by label
    BlockId return_block = no_block;
    unsigned depth = 0;
};

class Flattener {
public:
    Flattener(ptx::ModuleLoader& loader, const GraphOptions& options, const SharedLayout& layout)
        : loader_(loader), options_(options), layout_(layout), graph_(flat_.graph) {}

    FlatFunction run(FunctionId function);

private:
    BlockId new_block() {
        graph_.blocks.emplace_back();
        return BlockId(graph_.blocks.size() - 1);
    }
    void jump(BlockId from, BlockId to) {
        Block& block = graph_.blocks[from];
        block.terminator.kind = Terminator::Kind::jump;
        block.successors = {to};
    }
    void branch(BlockId from, const ptx::Instruction& inst, const Instance& instance, BlockId taken, BlockId other);
    BlockId guard_block(BlockId from, ptx::Instruction& inst, const Instance& instance, BlockId after);

    std::uint32_t new_storage(const ptx::Variable& variable, bool is_parameter);
    void declare_variables(Instance& instance, FunctionId function);
    void run_body(Instance& instance, BlockId entry);
    BlockId emit_terminator(Instance& instance, ptx::Instruction inst, BlockId current, BlockId next,
                            bool after_noreturn);
    BlockId emit_call(Instance& instance, ptx::Instruction inst, BlockId current, BlockId next);
    bool should_inline(const Instance& instance, FunctionId callee) const;
    std::vector<FunctionId> targets_to_inline(const Instance& instance, const std::vector<FunctionId>& targets) const;
    bool inline_targets(Instance& caller, const ptx::Instruction& inst, BlockId current, BlockId next);
    BlockId test_target(const Instance& caller, const ptx::Instruction& inst, FunctionId target, BlockId from,
                        BlockId taken);
    void inline_call(Instance& caller, const ptx::Instruction& inst, FunctionId callee, BlockId current, BlockId next);
    std::uint32_t bind_actual(Instance& caller, const Operand& actual, const ptx::Variable& formal, BlockId current,
                              const ptx::Instruction& call);
    void copy_out(const Operand& actual, const ptx::Variable& formal, std::uint32_t storage, BlockId block,
                  const ptx::Instruction& call, const Instance& caller);

    void append(Instance& instance, BlockId block, ptx::Instruction inst);
    Operand rename(const Instance& instance, Operand operand, const ptx::Instruction& inst);
    std::uint32_t shared_variable(FunctionId function, VariableId id, const ptx::Variable& variable);
    ptx::Instruction access(ptx::FormId form, const ptx::Variable& formal, std::uint32_t storage,
                            const ptx::Instruction& call) const;
    std::vector<Operand> elements(const Instance& instance, const Operand& list) const;
    [[noreturn]] void unsupported(const SourceLocation& location, std::string_view text) const {
        throw UnsupportedError(message_at(graph_, location, text));
    }

    [[noreturn]] void unresolved(const SourceLocation& location, const std::string& function) const {
        throw ptx::DiagnosticError(
            message_at(graph_, location, "unresolved extern function '" + function + "': nothing defines it"));
    }

    ptx::ModuleLoader& loader_;
    const GraphOptions& options_;
    const SharedLayout& layout_;
    FlatFunction flat_;
    FunctionGraph& graph_;
    FunctionId root_ = 0;
    std::vector<FunctionId> stack_; ///< functions being inlined
    std::map<std::pair<FunctionId, VariableId>, std::uint32_t> shared_ids_;
    std::uint32_t instruction_count_ = 0;
};

std::uint32_t Flattener::new_storage(const ptx::Variable& variable, bool is_parameter) {
    Storage storage;
    storage.name = variable.name;
    storage.size = variable.size;
    storage.alignment = std::max(1u, variable.alignment);
    storage.type = variable.type;
    storage.scalar = variable.dimensions.empty() && variable.vector_size == 1;
    storage.is_parameter = is_parameter;
    flat_.storages.push_back(std::move(storage));
    return std::uint32_t(flat_.storages.size() - 1);
}

std::uint32_t Flattener::shared_variable(FunctionId function, VariableId id, const ptx::Variable& variable) {
    auto [found, is_new] = shared_ids_.try_emplace({function, id}, std::uint32_t(graph_.shared.size()));
    if (is_new) {
        auto offset = layout_.offset_of(function, id);
        if (!offset) throw std::logic_error("shared variable without a place: " + variable.name);
        graph_.shared.push_back({variable.name, variable.size, std::max(1u, variable.alignment), *offset});
    }
    return found->second;
}

void Flattener::declare_variables(Instance& instance, FunctionId function) {
    const ptx::Function& declaration = loader_.module().functions[function];
    if (!declaration.is_entry && !(instance.body->thread_registers.empty() && instance.body->thread_locals.empty()))
        unsupported(
            declaration.location,
            "function '" + declaration.name +
                "' uses .reg or .local variables of module scope, which it would share with its callers: unsupported");
    std::size_t formals = declaration.returns.size() + declaration.parameters.size();
    instance.storage.resize(instance.body->variables.size(), ptx::no_id);
    for (std::size_t i = 0; i < instance.body->variables.size(); ++i) {
        const ptx::Variable& variable = instance.body->variables[i];
        if (i < formals || instance.storage[i] != ptx::no_id) continue;
        if (variable.space == StateSpace::local || variable.space == StateSpace::param)
            instance.storage[i] = new_storage(variable, variable.space == StateSpace::param);
    }
}

FlatFunction Flattener::run(FunctionId function) {
    root_ = function;
    graph_.module = &loader_.module();
    graph_.function = function;
    const ptx::Function& declaration = graph_.module->functions[function];
    graph_.is_entry = declaration.is_entry;
    graph_.static_shared = layout_.dynamic_offset; // with the padding in front of the dynamic part
    if (declaration.is_declaration) unresolved(declaration.location, declaration.name);
    if (!declaration.is_entry) {
        auto place = [&](const std::vector<ptx::Variable>& variables, std::vector<std::uint32_t>& offsets) {
            for (const ptx::Variable& variable : variables) {
                std::uint32_t alignment = std::max(1u, variable.alignment);
                graph_.argument_bytes = (graph_.argument_bytes + alignment - 1) / alignment * alignment;
                offsets.push_back(graph_.argument_bytes);
                graph_.argument_bytes += std::uint32_t(variable.size);
            }
        };
        place(declaration.returns, graph_.return_offsets);
        place(declaration.parameters, graph_.parameter_offsets);
    }
    BlockId entry = new_block();
    graph_.exit_block = new_block();
    Instance instance;
    instance.function = function;
    instance.body = &loader_.body(function);
    instance.return_block = graph_.exit_block;
    declare_variables(instance, function);
    stack_.push_back(function);
    run_body(instance, entry);
    return std::move(flat_);
}

std::vector<Operand> Flattener::elements(const Instance& instance, const Operand& list) const {
    if (list.kind == Operand::Kind::none) return {};
    if (!list.has_elements()) return {list};
    auto first = instance.body->operand_pool.begin() + list.first;
    return {first, first + list.count};
}

Operand Flattener::rename(const Instance& instance, Operand operand, const ptx::Instruction& inst) {
    bool address_of_variable = operand.kind == Operand::Kind::variable ||
                               (operand.kind == Operand::Kind::address && operand.base == Operand::Base::variable);
    if (operand.kind == Operand::Kind::reg ||
        (operand.kind == Operand::Kind::address && operand.base == Operand::Base::reg))
        operand.index += instance.first_register;
    else if (address_of_variable && operand.scope == VariableScope::module) {
        const ptx::Variable& variable = graph_.module->variables[operand.index];
        if (variable.space == StateSpace::shared) {
            operand.index = shared_variable(ptx::no_id, operand.index, variable);
            operand.scope = VariableScope::shared;
        }
    } else if (address_of_variable && operand.scope == VariableScope::body) {
        const ptx::Variable& variable = instance.body->variables[operand.index];
        if (instance.storage[operand.index] != ptx::no_id) {
            operand.index = instance.storage[operand.index];
            operand.scope = VariableScope::frame;
        } else if (variable.space == StateSpace::shared) {
            operand.index = shared_variable(instance.function, operand.index, variable);
            operand.scope = VariableScope::shared;
        } else if (variable.space == StateSpace::param) {
            operand.scope = VariableScope::parameter;
        } else {
            unsupported(inst.location, "variable '" + variable.name + "' of a function body in this state space");
        }
    } else if (operand.has_elements()) {
        std::vector<Operand> renamed;
        for (const Operand& element : elements(instance, operand)) renamed.push_back(rename(instance, element, inst));
        operand.first = std::uint32_t(graph_.pool.size());
        graph_.pool.insert(graph_.pool.end(), renamed.begin(), renamed.end());
    }
    return operand;
}

void Flattener::append(Instance& instance, BlockId block, ptx::Instruction inst) {
    for (unsigned i = 0; i < inst.operand_count; ++i) inst.operands[i] = rename(instance, inst.operands[i], inst);
    if (inst.guard != ptx::no_id) inst.guard += instance.first_register;
    GraphInstruction result;
    result.inst = inst;
    result.body = instance.body;
    result.function = instance.function;
    graph_.blocks[block].instructions.push_back(std::move(result));
}

void Flattener::branch(BlockId from, const ptx::Instruction& inst, const Instance& instance, BlockId taken,
                       BlockId other) {
    Block& block = graph_.blocks[from];
    block.terminator.kind = Terminator::Kind::branch;
    block.terminator.condition = inst.guard + instance.first_register;
    block.terminator.negated = inst.guard_negated;
    block.terminator.location = inst.location;
    block.successors = {taken, other};
}

/// For an instruction that may not carry a guard: a block of its own, entered only where the guard holds.
BlockId Flattener::guard_block(BlockId from, ptx::Instruction& inst, const Instance& instance, BlockId after) {
    if (inst.guard == ptx::no_id) return from;
    BlockId block = new_block();
    branch(from, inst, instance, block, after);
    inst.guard = ptx::no_id;
    return block;
}

void Flattener::run_body(Instance& instance, BlockId entry) {
    const ptx::Body& body = *instance.body;
    instance.first_register = std::uint32_t(flat_.registers.size());
    flat_.registers.insert(flat_.registers.end(), body.registers.begin(), body.registers.end());
    std::vector<BlockId> block_at(body.instructions.size() + 1, no_block);
    instance.label_block.resize(body.labels.size());
    for (std::size_t i = 0; i < body.labels.size(); ++i) {
        BlockId& block = block_at[std::min<std::size_t>(body.labels[i].instruction, body.instructions.size())];
        if (block == no_block) block = new_block();
        instance.label_block[i] = block;
    }
    BlockId current = entry;
    bool after_noreturn = false;
    for (std::size_t i = 0; i < body.instructions.size(); ++i) {
        if (block_at[i] != no_block && block_at[i] != current) {
            jump(current, block_at[i]);
            current = block_at[i];
            after_noreturn = false;
        }
        ptx::Instruction inst = body.instructions[i];
        ++instruction_count_;
        bool ends = is_terminator(inst) || is_call(inst) || is_cta_barrier(inst);
        if (!ends) {
            after_noreturn = inst.form == ptx::FormId::trap && inst.guard == ptx::no_id;
            append(instance, current, inst);
            continue;
        }
        if (block_at[i + 1] == no_block) block_at[i + 1] = new_block();
        BlockId next = block_at[i + 1];
        if (is_terminator(inst)) {
            emit_terminator(instance, inst, current, next, after_noreturn);
        } else if (is_call(inst)) {
            const Operand& callee = inst[ptx::Role::f];
            after_noreturn = callee.kind == Operand::Kind::function && graph_.module->functions[callee.index].noreturn;
            emit_call(instance, inst, current, next);
            current = next;
            continue; // an `exit` behind a call that does not return is dead: see emit_terminator
        } else {
            current = guard_block(current, inst, instance, next);
            append(instance, current, inst);
            graph_.blocks[current].ends_with_barrier = true;
            jump(current, next);
        }
        current = next;
        after_noreturn = false;
    }
    if (block_at.back() != no_block && block_at.back() != current) {
        jump(current, block_at.back());
        current = block_at.back();
    }
    jump(current, instance.return_block); // end of body: an implicit ret
}

BlockId Flattener::emit_terminator(Instance& instance, ptx::Instruction inst, BlockId current, BlockId next,
                                   bool after_noreturn) {
    BlockId target = no_block;
    if (opcode(inst) == "brx") {
        current = guard_block(current, inst, instance, next);
        const Operand& index = inst[ptx::Role::a];
        const auto& targets = instance.body->branch_targets[inst[ptx::Role::t].index];
        Block& block = graph_.blocks[current];
        block.terminator.location = inst.location;
        std::vector<BlockId> successors;
        for (ptx::LabelId label : targets) successors.push_back(instance.label_block[label]);
        if (index.kind == Operand::Kind::imm) {
            jump(current, successors[std::min<std::size_t>(index.value, successors.size() - 1)]);
        } else {
            block.terminator.kind = Terminator::Kind::indexed;
            block.terminator.condition = index.index + instance.first_register;
            block.successors = std::move(successors);
        }
        return current;
    }
    if (opcode(inst) == "bra") {
        target = instance.label_block[inst[ptx::Role::t].index];
    } else if (opcode(inst) == "ret") {
        target = instance.return_block;
    } else {
        target = graph_.exit_block;
        // The graph of a function that is called for real ends with its return: the thread leaves by itself.
        if (!graph_.is_entry && !after_noreturn) {
            current = guard_block(current, inst, instance, next);
            append(instance, current, inst);
            graph_.has_thread_exit = true;
        }
    }
    if (inst.guard != ptx::no_id && target != next)
        branch(current, inst, instance, target, next);
    else
        jump(current, target);
    return current;
}

bool Flattener::should_inline(const Instance& instance, FunctionId callee) const {
    return !loader_.module().functions[callee].is_declaration && instance.depth + 1 < max_inline_depth &&
           instruction_count_ < options_.inline_limit &&
           std::find(stack_.begin(), stack_.end(), callee) == stack_.end();
}

BlockId Flattener::emit_call(Instance& instance, ptx::Instruction inst, BlockId current, BlockId next) {
    current = guard_block(current, inst, instance, next);
    Operand& callee = inst[ptx::Role::f];
    if (callee.kind != Operand::Kind::function) {
        if (inline_targets(instance, inst, current, next)) return next;
        graph_.has_indirect_call = true;
    } else {
        callee.index = resolve_alias(*graph_.module, callee.index);
        const ptx::Function& function = graph_.module->functions[callee.index];
        if (function.is_declaration && !ptx::is_provided_function(function.name))
            unresolved(inst.location, function.name);
        if (should_inline(instance, callee.index)) {
            inline_call(instance, inst, callee.index, current, next);
            return next;
        }
        auto& calls = graph_.real_calls;
        if (!function.is_declaration && std::find(calls.begin(), calls.end(), callee.index) == calls.end())
            calls.push_back(callee.index);
    }
    append(instance, current, inst);
    jump(current, next);
    return next;
}

/// The targets of a call through a pointer that are inlined there: not those that call themselves, which stay calls.
std::vector<FunctionId> Flattener::targets_to_inline(const Instance& instance,
                                                     const std::vector<FunctionId>& targets) const {
    std::vector<FunctionId> result;
    if (targets.empty() || targets.size() > most_targets) return result;
    std::size_t statements = 0;
    for (FunctionId target : targets) {
        const FunctionId callee = resolve_alias(loader_.module(), target);
        if (!should_inline(instance, callee)) continue;
        statements += loader_.body(callee).instructions.size();
        result.push_back(target);
    }
    if (statements > most_target_statements || graph_.statements_by_pointer + statements > most_statements_by_pointer)
        result.clear();
    return result;
}

/// At the end of `from`: to `taken` if the call's pointer is one to `target`. The block for all others.
BlockId Flattener::test_target(const Instance& caller, const ptx::Instruction& inst, FunctionId target, BlockId from,
                               BlockId taken) {
    const auto new_register = [&](ptx::ScalarType type) {
        flat_.registers.push_back({"", type});
        Operand operand;
        operand.kind = Operand::Kind::reg;
        operand.index = std::uint32_t(flat_.registers.size() - 1);
        operand.type = type;
        return operand;
    };
    const auto add = [&](ptx::FormId form, ptx::ScalarType type) -> ptx::Instruction& {
        GraphInstruction added;
        added.body = caller.body;
        added.function = caller.function;
        added.inst.form = form;
        added.inst.operand_count = std::uint8_t(ptx::form_info(form).operands.size());
        added.inst.types[0] = type;
        added.inst.location = inst.location;
        graph_.blocks[from].instructions.push_back(std::move(added));
        return graph_.blocks[from].instructions.back().inst;
    };
    const Operand pointer = new_register(ptx::ScalarType::u64), is_target = new_register(ptx::ScalarType::pred);
    ptx::Instruction& move = add(ptx::FormId::mov, ptx::ScalarType::u64);
    move[ptx::Role::d] = pointer;
    move[ptx::Role::a].kind = Operand::Kind::function;
    move[ptx::Role::a].index = target;
    move[ptx::Role::a].type = ptx::ScalarType::u64;
    ptx::Instruction& compare = add(ptx::FormId::setp_unsigned, ptx::ScalarType::u64);
    compare.modifiers[compare.modifier_count++] = ptx::Modifier::eq;
    compare[ptx::Role::p] = is_target;
    compare[ptx::Role::a] = rename(caller, inst[ptx::Role::f], inst);
    compare[ptx::Role::a].type = ptx::ScalarType::u64;
    compare[ptx::Role::b] = pointer;
    const BlockId other = new_block();
    Block& block = graph_.blocks[from];
    block.terminator.kind = Terminator::Kind::branch;
    block.terminator.condition = is_target.index;
    block.terminator.location = inst.location;
    block.successors = {taken, other};
    return other;
}

/// A call through a pointer as a choice among its targets: steps run each for the lanes that want it, with values in
/// registers, and one target alone where all want the same. False if it stays a call.
bool Flattener::inline_targets(Instance& caller, const ptx::Instruction& inst, BlockId current, BlockId next) {
    if (inst[ptx::Role::f].kind != Operand::Kind::reg) return false;
    std::vector<FunctionId> targets = call_candidates(loader_.module(), *caller.body, inst);
    const std::vector<FunctionId> inlined = targets_to_inline(caller, targets);
    if (inlined.empty()) return false;
    for (FunctionId target : inlined) {
        const FunctionId callee = resolve_alias(loader_.module(), target);
        const BlockId arm = new_block();
        const BlockId other = test_target(caller, inst, target, current, arm);
        graph_.statements_by_pointer += loader_.body(callee).instructions.size();
        inline_call(caller, inst, callee, arm, next);
        current = other;
        std::erase(targets, target);
    }
    if (targets.empty()) {
        GraphInstruction trap;
        trap.body = caller.body;
        trap.function = caller.function;
        trap.inst.form = ptx::FormId::trap;
        trap.inst.location = inst.location;
        trap.is_wrong_target = true;
        graph_.blocks[current].instructions.push_back(std::move(trap));
    } else {
        append(caller, current, inst);
        graph_.blocks[current].instructions.back().narrowed = std::uint32_t(graph_.narrowed_targets.size());
        graph_.narrowed_targets.push_back(std::move(targets));
    }
    jump(current, next);
    return true;
}

/// A load or store of the whole scalar variable `formal` that `storage` holds; the value operand is left to the caller.
ptx::Instruction Flattener::access(ptx::FormId form, const ptx::Variable& formal, std::uint32_t storage,
                                   const ptx::Instruction& call) const {
    ptx::Instruction inst;
    inst.form = form;
    inst.operand_count = std::uint8_t(ptx::form_info(form).operands.size());
    inst.space = StateSpace::param;
    inst.types[0] = formal.type;
    inst.location = call.location;
    Operand& address = inst[ptx::Role::a];
    address.kind = Operand::Kind::address;
    address.base = Operand::Base::variable;
    address.scope = VariableScope::frame;
    address.index = storage;
    return inst;
}

/// The storage that a formal parameter shares; registers and immediates are stored into a new one first.
std::uint32_t Flattener::bind_actual(Instance& caller, const Operand& actual, const ptx::Variable& formal,
                                     BlockId current, const ptx::Instruction& call) {
    if (actual.kind == Operand::Kind::variable && actual.scope == VariableScope::body &&
        caller.storage[actual.index] != ptx::no_id) {
        Storage& storage = flat_.storages[caller.storage[actual.index]];
        storage.size = std::max(storage.size, formal.size);
        storage.alignment = std::max(storage.alignment, formal.alignment);
        return caller.storage[actual.index];
    }
    std::uint32_t storage = new_storage(formal, true);
    if (actual.kind != Operand::Kind::reg && actual.kind != Operand::Kind::imm &&
        actual.kind != Operand::Kind::variable && actual.kind != Operand::Kind::function)
        return storage;
    if (actual.kind == Operand::Kind::variable && actual.scope == VariableScope::body &&
        caller.body->variables[actual.index].space == StateSpace::param)
        unsupported(call.location, "a formal parameter passed on by name");
    GraphInstruction store;
    store.inst = access(ptx::FormId::st, formal, storage, call);
    Operand value = rename(caller, actual, call);
    value.type = formal.type;
    store.inst[ptx::Role::b] = value;
    store.body = caller.body;
    store.function = caller.function;
    graph_.blocks[current].instructions.push_back(std::move(store));
    return storage;
}

/// After the call: a register in the return list gets the value from the storage of the formal.
void Flattener::copy_out(const Operand& actual, const ptx::Variable& formal, std::uint32_t storage, BlockId block,
                         const ptx::Instruction& call, const Instance& caller) {
    if (actual.kind != Operand::Kind::reg) return;
    GraphInstruction load;
    load.inst = access(ptx::FormId::ld, formal, storage, call);
    Operand destination = actual;
    destination.index += caller.first_register;
    destination.type = formal.type;
    load.inst[ptx::Role::d] = destination;
    load.body = caller.body;
    load.function = caller.function;
    graph_.blocks[block].instructions.push_back(std::move(load));
}

void Flattener::inline_call(Instance& caller, const ptx::Instruction& inst, FunctionId callee, BlockId current,
                            BlockId next) {
    const ptx::Function& declaration = graph_.module->functions[callee];
    Instance instance;
    instance.function = callee;
    instance.body = &loader_.body(callee);
    instance.depth = caller.depth + 1;
    instance.storage.resize(instance.body->variables.size(), ptx::no_id);
    std::vector<Operand> returns = elements(caller, inst[ptx::Role::d]);
    std::vector<Operand> arguments = elements(caller, inst[ptx::Role::a]);
    if (returns.size() != declaration.returns.size() || arguments.size() != declaration.parameters.size())
        unsupported(inst.location, "call of '" + declaration.name + "' with another number of parameters than it has");
    BlockId after = new_block();
    for (std::size_t i = 0; i < returns.size(); ++i) {
        // A register in the return list is filled behind the call; nothing flows in.
        Operand actual = returns[i].kind == Operand::Kind::variable ? returns[i] : Operand{};
        instance.storage[i] = bind_actual(caller, actual, declaration.returns[i], current, inst);
        copy_out(returns[i], declaration.returns[i], instance.storage[i], after, inst, caller);
    }
    for (std::size_t i = 0; i < arguments.size(); ++i)
        instance.storage[returns.size() + i] =
            bind_actual(caller, arguments[i], declaration.parameters[i], current, inst);
    declare_variables(instance, callee);
    jump(after, next);
    instance.return_block = after;
    BlockId entry = new_block();
    jump(current, entry);
    auto takes = [](const ptx::Instruction& i) {
        return i.form == ptx::FormId::alloca || i.form == ptx::FormId::stackrestore;
    };
    if (std::any_of(instance.body->instructions.begin(), instance.body->instructions.end(), takes))
        flat_.stack_scopes.emplace_back(entry, after);
    stack_.push_back(callee);
    run_body(instance, entry);
    stack_.pop_back();
}

} // namespace

FlatFunction flatten(ptx::ModuleLoader& loader, FunctionId function, const GraphOptions& options,
                     const SharedLayout& layout) {
    return Flattener(loader, options, layout).run(function);
}

} // namespace ptarmigan::translator
