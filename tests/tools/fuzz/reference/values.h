// SPDX-License-Identifier: Apache-2.0
// What statements that only compute give: the manual in plain C++, for one thread. Shares nothing with the translator.
#pragma once

#include "frontend/ptx/module.h"

#include <functional>

namespace fuzz::reference {

using Bits = unsigned __int128;

/// Bits of an operand that the instruction reads, as wide as its type.
using Read = std::function<Bits(ptarmigan::ptx::Role)>;

struct Results {
    Bits d = 0;
    bool p = false, q = false;
};

/// Is the form one that compute() knows?
bool computes(ptarmigan::ptx::FormId form);

/// `carry` is the condition code, which sums of several words read and write.
Results compute(const ptarmigan::ptx::Instruction& inst, const Read& read, bool& carry);

/// The value of `type` with sign or zeros in the bits above, 128 of them.
Bits extended(Bits value, ptarmigan::ptx::ScalarType type);

/// The sum that an atomic operation leaves.
Bits sum_of(ptarmigan::ptx::ScalarType type, Bits a, Bits b);

} // namespace fuzz::reference
