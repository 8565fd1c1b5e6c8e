// SPDX-License-Identifier: Apache-2.0
// The addresses that a thread of a launch comes to, as far as they follow from the kernel's parameters, the grid and
// the thread's number: a launch may choose by them in which order CTAs run. Hints, never what a program computes.
// No LLVM: the runtime works them out.
#pragma once

#include "translator/launch_work.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace ptarmigan::translator {

/// The part of a kernel that its addresses follow from. Values are in places, unknown ones until a step writes them.
struct AddressProgram {
    struct Step {
        enum class Kind : std::uint8_t {
            number, ///< place `result` becomes `number`, whose sources are places
            move,   ///< place `result` becomes place number.a
            access, ///< of global memory, at the address in place number.a, number.value bytes
            branch, ///< to step `result` if place number.a is not 0; an unknown one ends the thread
            jump,   ///< to step `result`
            end,
        };
        Kind kind = Kind::end;
        std::uint32_t result = 0;
        LaunchNumber number;
    };
    std::uint32_t places = 0;
    std::vector<Step> steps; ///< empty: nothing is known
};

/// Steps and places that are named are there.
bool is_consistent(const AddressProgram& program);

/// Whose addresses are asked for.
struct ProgramThread {
    std::array<std::uint32_t, 3> extents{}, cta{}, thread{};
};

struct KnownAddress {
    std::uint32_t step = 0; ///< of the access: the same for all threads
    std::uint32_t bytes = 0;
    std::int64_t address = 0;
};

/// Works out a consistent program, again and again.
class AddressFinder {
public:
    AddressFinder(const AddressProgram& program, std::span<const std::uint8_t> parameters);
    /// The first accesses of a thread, each statement's first only. Valid until the next call.
    const std::vector<KnownAddress>& of(const ProgramThread& thread);

private:
    const AddressProgram& program_;
    std::span<const std::uint8_t> parameters_;
    std::vector<std::int64_t> values_;
    std::vector<std::uint8_t> known_; ///< 1 or 0
    std::vector<KnownAddress> found_;
};

} // namespace ptarmigan::translator
