// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/reference/block.h"

#include "frontend/isa/special_registers.h"

namespace fuzz::reference {

using namespace ptarmigan::ptx;
using F = FormId;

namespace {

std::uint64_t aligned(std::uint64_t value, std::uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

} // namespace

bool waits(const Instruction& inst) {
    switch (inst.form) {
    case F::barrier_sync:
    case F::barrier_red_popc:
    case F::barrier_red_pred:
    case F::bar_sync:
    case F::bar_red_popc:
    case F::bar_red_pred:
    case F::barrier_arrive:
    case F::bar_arrive:
    case F::barrier_cluster_wait:
    case F::bar_warp_sync:
    case F::shfl_sync:
    case F::vote_sync:
    case F::vote_sync_ballot:
    case F::match_any:
    case F::match_all:
    case F::redux_int:
    case F::redux_bits:
    case F::elect_sync: return true;
    default: return false;
    }
}

Block::Block(Launch& launch, unsigned number) : launch_(launch), number_(number), shared_(window_bytes / 64) {
    for (unsigned i = 0; i < launch.program.block_x * launch.program.block_y; ++i) {
        threads_.push_back(std::make_unique<Thread>());
        threads_.back()->number = i;
        threads_.back()->local.resize(1 << 16);
        threads_.back()->call_memory.resize(1 << 16);
        enter(*threads_.back(), launch.kernel, nullptr);
    }
}

void Block::run() {
    for (bool goes_on = true; goes_on;) {
        for (auto& thread : threads_) run_thread(*thread);
        goes_on = meet();
    }
    for (const auto& thread : threads_)
        if (!thread->is_done()) throw std::runtime_error("threads wait for ever");
}

void Block::run_thread(Thread& thread) {
    std::uint64_t steps = 0;
    while (!thread.is_done() && !thread.waits_at) {
        Frame& frame = thread.frames.back();
        if (frame.next >= frame.body->instructions.size()) {
            leave(thread);
            continue;
        }
        if (++steps > 10'000'000) throw std::runtime_error("no end");
        const Instruction& inst = frame.body->instructions[frame.next++];
        if (inst.guard != no_id && bool(frame.registers[inst.guard]) == inst.guard_negated) continue;
        step(thread, inst);
    }
}

/// Variables of the body get memory; arguments are copied into the callee's.
void Block::enter(Thread& thread, FunctionId function, const Instruction* call) {
    const Body& body = launch_.loader.body(function);
    const Function& info = launch_.loader.module().functions[function];
    Frame frame;
    frame.body = &body;
    frame.call = call;
    frame.registers.resize(body.registers.size());
    if (!thread.frames.empty()) {
        frame.local_end = aligned(thread.frames.back().stack_end, 16);
        frame.call_end = thread.frames.back().call_end;
    }
    const std::size_t formal = info.returns.size() + info.parameters.size();
    for (std::size_t i = 0; i < body.variables.size(); ++i) {
        const Variable& variable = body.variables[i];
        std::uint64_t place = 0;
        if (info.is_entry && i < formal) {
            place = parameter_address + parameter_layout(info).offsets[i];
        } else if (variable.space == StateSpace::shared) {
            const auto [found, is_new] = shared_places_.try_emplace(&variable, 0);
            if (is_new) {
                std::uint64_t end = 1024;
                for (const auto& [other, begin] : shared_places_)
                    if (other != &variable) end = std::max(end, begin + static_cast<const Variable*>(other)->size);
                found->second = aligned(end, 128);
            }
            place = found->second; // an address of the shared window
        } else {
            std::uint64_t& end = variable.space == StateSpace::local ? frame.local_end : frame.call_end;
            end = aligned(end, std::max<std::uint64_t>(variable.alignment, 16));
            place = (variable.space == StateSpace::local ? local_window : call_window) + end;
            end += variable.size;
        }
        frame.variables.push_back(place);
    }
    frame.stack_end = aligned(frame.local_end, 16);
    if (call) {
        const Frame& caller = thread.frames.back();
        const Operand& arguments = (*call)[Role::a];
        for (unsigned i = 0; i < arguments.count; ++i) {
            const Operand& argument = caller.body->operand_pool[arguments.first + i];
            const std::size_t target = info.returns.size() + i;
            std::memcpy(bytes_at(thread, frame.variables[target], body.variables[target].size), bytes_at(thread, variable_address(thread, argument), body.variables[target].size), body.variables[target].size);
        }
    }
    thread.frames.push_back(std::move(frame));
}

void Block::leave(Thread& thread) {
    const Frame left = std::move(thread.frames.back());
    thread.frames.pop_back();
    if (!left.call || thread.is_done()) return;
    const Operand& results = (*left.call)[Role::d];
    for (unsigned i = 0; i < results.count; ++i) {
        const Operand& result = thread.frames.back().body->operand_pool[results.first + i];
        const std::uint64_t size = left.body->variables[i].size;
        std::memcpy(bytes_at(thread, variable_address(thread, result), size), bytes_at(thread, left.variables[i], size), size);
    }
}

void Block::call(Thread& thread, const Instruction& inst) {
    const Operand& callee = inst[Role::f];
    FunctionId function = callee.index;
    if (callee.kind == Operand::Kind::reg) function = FunctionId(std::uint64_t(read(thread, callee)) - function_address) / 16;
    enter(thread, function, &inst);
}

void Block::control(Thread& thread, const Instruction& inst) {
    Frame& frame = thread.frames.back();
    const auto go_to = [&](LabelId label) { frame.next = frame.body->labels[label].instruction; };
    switch (inst.form) {
    case F::bra: return go_to(inst[Role::t].index);
    case F::brx_idx: return go_to(frame.body->branch_targets[inst[Role::t].index].at(std::size_t(read(thread, inst[Role::a]))));
    case F::call: return call(thread, inst);
    case F::ret: return leave(thread);
    default: thread.frames.clear(); return; // exit
    }
}

/// mov between a register and the parts of one, or between vectors.
void Block::move_parts(Thread& thread, const Instruction& inst) {
    const auto& pool = thread.frames.back().body->operand_pool;
    const Operand &d = inst[Role::d], &a = inst[Role::a];
    if (inst.form == F::mov_pack) {
        const unsigned bits = bit_size(inst.types[0]) / a.count;
        Bits whole = 0;
        for (unsigned i = 0; i < a.count; ++i) whole |= (read(thread, pool[a.first + i]) & ((Bits(1) << bits) - 1)) << i * bits;
        return write(thread, d, whole);
    }
    std::vector<Bits> parts;
    if (inst.form == F::mov_vector) {
        for (unsigned i = 0; i < a.count; ++i) parts.push_back(read(thread, pool[a.first + i]));
    } else {
        const Bits whole = read(thread, a);
        const unsigned bits = bit_size(inst.types[0]) / d.count;
        for (unsigned i = 0; i < d.count; ++i) parts.push_back(whole >> i * bits & ((Bits(1) << bits) - 1));
    }
    for (unsigned i = 0; i < d.count; ++i) write(thread, pool[d.first + i], parts[i]);
}

void Block::step(Thread& thread, const Instruction& inst) {
    const FormInfo& info = form_info(inst.form);
    if (!knows(inst.form)) throw UnknownForm{std::string(info.name)};
    if (waits(inst)) {
        thread.waits_at = &inst;
        return;
    }
    if (any(info.effects, Effects::terminator | Effects::call) || inst.form == F::exit) return control(thread, inst);
    if (inst.form == F::mov_pack || inst.form == F::mov_unpack || inst.form == F::mov_vector) return move_parts(thread, inst);
    if (computes(inst.form)) {
        const Results results = compute(inst, [&](Role role) { return read(thread, inst[role]); }, thread.carry);
        write(thread, inst[Role::d], results.d);
        write(thread, inst[Role::p], results.p);
        write(thread, inst[Role::q], results.q);
        return;
    }
    if (info.chapter == "stack") return stack(thread, inst);
    if (info.opcode == "cvta" || info.opcode == "isspacep" || info.opcode == "mapa" || info.opcode == "getctarank") return address_statement(thread, inst);
    if (any(info.effects, Effects::atomic)) return atomic(thread, inst);
    if (info.opcode == "cp") return copy(thread, inst);
    if (any(info.effects, Effects::load | Effects::store)) return load_or_store(thread, inst, any(info.effects, Effects::load));
    if (info.opcode == "createpolicy") write(thread, inst[Role::d], 0);
    // Fences and hints: this memory has one order.
}

std::uint64_t Block::variable_address(const Thread& thread, const Operand& operand) const {
    const std::uint64_t begin = operand.scope == VariableScope::module ? launch_.variables[operand.index] : thread.frames.back().variables[operand.index];
    return begin + operand.value;
}

Bits Block::read(Thread& thread, const Operand& operand) const {
    Bits value = 0;
    switch (operand.kind) {
    case Operand::Kind::reg: value = thread.frames.back().registers[operand.index]; break;
    case Operand::Kind::imm: value = operand.value; break;
    case Operand::Kind::special: value = special(thread, operand); break;
    case Operand::Kind::variable: value = variable_address(thread, operand); break;
    case Operand::Kind::function: value = function_address + 16 * operand.index; break;
    default: return 0;
    }
    if (operand.type == ScalarType::pred) return bool(value) != operand.negated;
    const unsigned bits = bit_size(operand.type);
    return bits == 0 || bits >= 128 ? value : value & ((Bits(1) << bits) - 1);
}

/// Into a register that is wider than the type: extended by the type's sign.
void Block::write(Thread& thread, const Operand& operand, Bits value) const {
    if (operand.kind != Operand::Kind::reg) return;
    Frame& frame = thread.frames.back();
    const unsigned width = bit_size(frame.body->registers[operand.index].type);
    if (operand.type == ScalarType::pred || width == 1) {
        frame.registers[operand.index] = bool(value);
        return;
    }
    value = bit_size(operand.type) == 0 ? value : extended(value, operand.type);
    frame.registers[operand.index] = width >= 128 ? value : value & ((Bits(1) << width) - 1);
}

Bits Block::special(const Thread& thread, const Operand& operand) const {
    using S = SpecialRegister;
    const Program& program = launch_.program;
    const unsigned x = operand.component == 0, y = operand.component == 1;
    const unsigned lane = thread.number % 32;
    const std::uint64_t bit = 1ull << lane;
    switch (S(operand.index)) {
    case S::tid: return x ? thread.number % program.block_x : y ? thread.number / program.block_x : 0;
    case S::ntid: return x ? program.block_x : y ? program.block_y : 1;
    case S::ctaid:
    case S::clusterid: return x ? number_ : 0;
    case S::nctaid:
    case S::nclusterid: return x ? program.grid : 1;
    case S::laneid: return lane;
    case S::lanemask_eq: return bit;
    case S::lanemask_lt: return bit - 1;
    case S::lanemask_le: return 2 * bit - 1;
    case S::lanemask_ge: return std::uint32_t(~(bit - 1));
    case S::lanemask_gt: return std::uint32_t(~(2 * bit - 1));
    case S::cluster_nctarank: return 1;
    default: throw UnknownForm{special_register_text(S(operand.index), operand.component)};
    }
}

} // namespace fuzz::reference
