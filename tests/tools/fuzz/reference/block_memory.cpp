// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/reference/block.h"
#include "tests/tools/fuzz/reference/numbers.h"

namespace fuzz::reference {

using namespace ptarmigan::ptx;
using F = FormId;
using M = Modifier;

namespace {

Bits load_bits(const unsigned char* bytes, unsigned size) {
    Bits value = 0;
    std::memcpy(&value, bytes, size);
    return value;
}

bool is_in(std::uint64_t address, std::uint64_t window) { return address >= window && address - window < window_bytes; }

} // namespace

/// The generic address of an operand `[a]`. Shared addresses are places in the block's window; others are generic ones already.
std::uint64_t Block::address_of(Thread& thread, const Operand& operand, StateSpace space) {
    std::uint64_t address = operand.value;
    if (operand.base == Operand::Base::variable) {
        address = variable_address(thread, operand);
        if (space == StateSpace::generic || space == StateSpace::none) throw UnknownForm{"a variable by its generic address"};
    } else if (operand.base == Operand::Base::reg) {
        const Bits base = thread.frames.back().registers[operand.index];
        address += std::uint64_t(base);
        if (bit_size(thread.frames.back().body->registers[operand.index].type) == 32) address &= 0xffffffff;
    }
    return space == StateSpace::shared ? shared_window + address : address;
}

unsigned char* Block::bytes_at(Thread& thread, std::uint64_t address, std::uint64_t size) {
    const auto within = [&](std::vector<unsigned char>& bytes, std::uint64_t window) {
        if (address - window + size > bytes.size()) throw std::runtime_error("an access outside of a window");
        return bytes.data() + (address - window);
    };
    if (is_in(address, shared_window)) return within(shared_, shared_window);
    if (is_in(address, local_window)) return within(thread.local, local_window);
    if (is_in(address, call_window)) return within(thread.call_memory, call_window);
    return launch_.global.at(address, size);
}

void Block::load_or_store(Thread& thread, const Instruction& inst, bool loads) {
    const Operand& value = inst[loads ? Role::d : Role::b];
    const unsigned size = byte_size(inst.types[0]);
    unsigned char* bytes = bytes_at(thread, address_of(thread, inst[Role::a], inst.space), std::uint64_t(size) * inst.vector_size);
    const bool is_vector = value.kind == Operand::Kind::vector;
    for (unsigned i = 0; i < inst.vector_size; ++i, bytes += size) {
        Operand element = is_vector ? thread.frames.back().body->operand_pool[value.first + i] : value;
        element.type = inst.types[0];
        if (loads) {
            write(thread, element, load_bits(bytes, size));
        } else {
            const Bits stored = read(thread, element);
            std::memcpy(bytes, &stored, size);
        }
    }
}

void Block::atomic(Thread& thread, const Instruction& inst) {
    const ScalarType type = inst.types[0];
    const unsigned size = byte_size(type);
    unsigned char* bytes = bytes_at(thread, address_of(thread, inst[Role::a], inst.space), size);
    const Bits old = load_bits(bytes, size), b = read(thread, inst[Role::b]);
    const __int128 x = __int128(extended(old, type)), y = __int128(extended(b, type));
    Bits result = b; // exch
    if (inst.has(M::add)) result = old + b;
    if (inst.has(M::and_)) result = old & b;
    if (inst.has(M::or_)) result = old | b;
    if (inst.has(M::xor_)) result = old ^ b;
    if (inst.has(M::min)) result = Bits(std::min(x, y));
    if (inst.has(M::max)) result = Bits(std::max(x, y));
    if (inst.has(M::inc)) result = old >= b ? 0 : old + 1;
    if (inst.has(M::dec)) result = old == 0 || old > b ? b : old - 1;
    if (inst.has(M::cas)) result = old == b ? read(thread, inst[Role::c]) : old;
    std::memcpy(bytes, &result, size);
    if (form_info(inst.form).opcode == "atom") write(thread, inst[Role::d], old);
}

/// cp.async: done at once. What the source has not is zeros.
void Block::copy(Thread& thread, const Instruction& inst) {
    if (inst[Role::a].kind != Operand::Kind::address) return; // commits and waits
    const unsigned size = unsigned(inst[Role::size].value);
    const Operand& given = inst[Role::src_size];
    unsigned read_bytes = size;
    if (given.kind != Operand::Kind::none) {
        const bool is_predicate = given.type == ScalarType::pred;
        const Bits value = read(thread, given);
        read_bytes = is_predicate ? (value ? 0 : size) : unsigned(std::min<Bits>(value, size));
    }
    unsigned char* target = bytes_at(thread, address_of(thread, inst[Role::d], StateSpace::shared), size);
    std::memset(target, 0, size);
    if (read_bytes != 0) std::memcpy(target, bytes_at(thread, address_of(thread, inst[Role::a], StateSpace::global), read_bytes), read_bytes);
}

void Block::address_statement(Thread& thread, const Instruction& inst) {
    const std::string_view name = form_info(inst.form).opcode;
    const Operand& source = inst[Role::a];
    std::uint64_t address = std::uint64_t(read(thread, source));
    const bool is_shared = inst.space == StateSpace::shared;
    if (name == "getctarank") return write(thread, inst[Role::d], 0);
    if (name == "mapa") return write(thread, inst[Role::d], address);
    if (name == "cvta") {
        if (is_shared) address += inst.form == F::cvta ? shared_window : -shared_window;
        return write(thread, inst[Role::d], address);
    }
    const bool is_constant = address >= constant_address && address < launch_.constants_end;
    bool is_there = false;
    switch (inst.space) {
    case StateSpace::shared: is_there = is_in(address, shared_window); break;
    case StateSpace::local: is_there = is_in(address, local_window); break;
    case StateSpace::constant: is_there = is_constant; break;
    case StateSpace::param: is_there = address >= parameter_address && address < parameter_address + launch_.parameters.size(); break;
    // The window of kernel parameters is a part of the global one.
    default: is_there = !is_in(address, shared_window) && !is_in(address, local_window) && !is_constant; break;
    }
    write(thread, inst[Role::p], is_there);
}

void Block::stack(Thread& thread, const Instruction& inst) {
    Frame& frame = thread.frames.back();
    if (inst.form == F::stacksave) return write(thread, inst[Role::d], local_window + frame.stack_end);
    if (inst.form == F::stackrestore) {
        frame.stack_end = std::uint64_t(read(thread, inst[Role::a])) - local_window;
        return;
    }
    frame.stack_end = (frame.stack_end + 1023) / 1024 * 1024;
    write(thread, inst[Role::d], local_window + frame.stack_end);
    frame.stack_end += std::uint64_t(read(thread, inst[Role::size]));
}

} // namespace fuzz::reference
