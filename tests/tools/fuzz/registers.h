// SPDX-License-Identifier: Apache-2.0
// The registers of a random program: what its statements read and write, and what a thread leaves behind at its end.
#pragma once

#include "frontend/ptx/types.h"

#include <string>
#include <vector>

namespace fuzz {

using ptarmigan::ptx::ScalarType;

/// `%<prefix>0` to `%<prefix><count - 1>`.
struct RegisterClass {
    const char* prefix;
    ScalarType type;
    unsigned count;
};

/// Registers of one kind of function. Untyped ones are most: they go everywhere.
class Registers {
public:
    static const Registers& of_kernel();
    static const Registers& of_function(); ///< fewer, so that calls compile in less time

    const std::vector<RegisterClass>& classes() const { return classes_; }
    /// Names of those that may stand where `type` is asked for; see register_fits().
    std::vector<std::string> that_fit(ScalarType type, bool wider, bool untyped) const;
    std::string declarations() const;

private:
    explicit Registers(std::vector<RegisterClass> classes) : classes_(std::move(classes)) {}
    std::vector<RegisterClass> classes_;
};

/// Where a thread leaves a register: bytes [offset, offset + bytes) of its part of the output.
struct Place {
    std::string name;
    unsigned offset, bytes;
};
inline constexpr unsigned output_bytes = 512; ///< of a thread
std::vector<Place> output_places(const Registers& registers);

} // namespace fuzz
