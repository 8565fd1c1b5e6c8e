// SPDX-License-Identifier: Apache-2.0
// The threads of one CTA, and what they do together.
#pragma once

#include "frontend/module_loader.h"
#include "tests/tools/fuzz/generator.h"
#include "tests/tools/fuzz/reference/interpreter.h"
#include "tests/tools/fuzz/reference/memory.h"
#include "tests/tools/fuzz/reference/values.h"

#include <deque>
#include <map>
#include <memory>

namespace fuzz::reference {

/// Where things lie. Results of programs do not depend on it.
inline constexpr std::uint64_t input_address = 0x7000'0000'0000, memory_address = 0x7100'0000'0000, constant_address = 0x7200'0000'0000, variable_address = 0x7280'0000'0000, parameter_address = 0x7300'0000'0000,
                               shared_window = 0x7400'0000'0000, local_window = 0x7500'0000'0000, call_window = 0x7600'0000'0000, function_address = 0x7700'0000'0000;
inline constexpr std::uint64_t window_bytes = 1ull << 24;

/// What all blocks of the grid share.
struct Launch {
    ptarmigan::ptx::ModuleLoader& loader;
    ptarmigan::ptx::FunctionId kernel;
    const Program& program;
    Memory& global;
    std::vector<std::uint64_t> variables; ///< addresses of the module's
    std::vector<unsigned char> parameters;
    std::uint64_t constants_end; ///< of the module's constants, which begin at constant_address
};

/// A function that a thread is in.
struct Frame {
    const ptarmigan::ptx::Body* body = nullptr;
    std::vector<Bits> registers;
    std::vector<std::uint64_t> variables; ///< addresses of the body's
    std::uint32_t next = 0;               ///< statement
    std::uint64_t local_end = 0, call_end = 0, stack_end = 0;
    const ptarmigan::ptx::Instruction* call = nullptr; ///< of the caller, that is to have the results
};

struct Thread {
    unsigned number = 0; ///< in the block
    std::deque<Frame> frames;
    std::vector<unsigned char> local, call_memory;
    bool carry = false;
    const ptarmigan::ptx::Instruction* waits_at = nullptr;
    bool is_done() const { return frames.empty(); }
};

class Block {
public:
    Block(Launch& launch, unsigned number);
    void run();

private:
    // --- threads (block.cpp) --------------------------------------------------------------------------
    void enter(Thread& thread, ptarmigan::ptx::FunctionId function, const ptarmigan::ptx::Instruction* call);
    void leave(Thread& thread);
    void run_thread(Thread& thread);
    void step(Thread& thread, const ptarmigan::ptx::Instruction& inst);
    void control(Thread& thread, const ptarmigan::ptx::Instruction& inst);
    void call(Thread& thread, const ptarmigan::ptx::Instruction& inst);
    void move_parts(Thread& thread, const ptarmigan::ptx::Instruction& inst);

    // --- memory (block_memory.cpp) --------------------------------------------------------------------
    std::uint64_t address_of(Thread& thread, const ptarmigan::ptx::Operand& operand, ptarmigan::ptx::StateSpace space);
    unsigned char* bytes_at(Thread& thread, std::uint64_t address, std::uint64_t size);
    void load_or_store(Thread& thread, const ptarmigan::ptx::Instruction& inst, bool loads);
    void atomic(Thread& thread, const ptarmigan::ptx::Instruction& inst);
    void copy(Thread& thread, const ptarmigan::ptx::Instruction& inst);
    void address_statement(Thread& thread, const ptarmigan::ptx::Instruction& inst);
    void stack(Thread& thread, const ptarmigan::ptx::Instruction& inst);

    // --- together (block_collectives.cpp) -------------------------------------------------------------
    bool meet();
    bool meet_at_barrier();
    bool meet_in_warp(unsigned warp);
    void collective(const std::vector<Thread*>& lanes);

    // --- operands -------------------------------------------------------------------------------------
    Bits read(Thread& thread, const ptarmigan::ptx::Operand& operand) const;
    void write(Thread& thread, const ptarmigan::ptx::Operand& operand, Bits value) const;
    Bits special(const Thread& thread, const ptarmigan::ptx::Operand& operand) const;
    std::uint64_t variable_address(const Thread& thread, const ptarmigan::ptx::Operand& operand) const;

    Launch& launch_;
    unsigned number_;
    std::vector<unsigned char> shared_;
    std::map<const void*, std::uint64_t> shared_places_; ///< of variables, by body and number
    std::vector<std::unique_ptr<Thread>> threads_;
};

/// Statements that threads wait at for others.
bool waits(const ptarmigan::ptx::Instruction& inst);

} // namespace fuzz::reference
