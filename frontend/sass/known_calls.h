// SPDX-License-Identifier: Apache-2.0
// Calls of functions that ptxas itself puts behind a kernel for what has no instruction: the slow ways of `div.rn.f32`,
// `rcp.rn.f32` and `sqrt.rn.f32`. Such a call is that statement. Symbols name the functions; their registers are the
// kernel's affair, so what a function reads and writes is found in its code.
#pragma once

#include "frontend/sass/instruction.h"

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace ptarmigan::sass {

/// A function of the code by its name, in byte offsets.
struct NamedFunction {
    std::string_view name;
    std::uint32_t begin = 0, end = 0;
};

struct KnownCall {
    std::string_view statement; ///< of PTX, with the types
    /// What a division's operands are is told by the FCHK before the branch over the call, whose predicate this is.
    bool is_division = false;
    std::uint8_t predicate = true_predicate;
    std::uint32_t check = 0; ///< where that is
    std::uint8_t argument = zero_register;
    /// What the function writes: its result is in one of them, the others hold nothing that anybody reads.
    std::vector<std::uint8_t> results;
};

/// By the byte offset of the call. `targets`: where branches lead. A call that does not look as ptxas' do is left out.
std::map<std::uint32_t, KnownCall> find_known_calls(std::span<const Instruction> code,
                                                    const std::vector<NamedFunction>& functions,
                                                    const std::vector<std::uint32_t>& targets);

} // namespace ptarmigan::sass
