// SPDX-License-Identifier: Apache-2.0
// The arithmetic that random programs are made of.
#pragma once

#include <string>
#include <vector>

namespace random_programs {

/// An arithmetic form: types of the result and of the sources (immN: a constant), the statement without operands.
struct Form {
    std::string result;
    std::vector<std::string> sources;
    std::string statement;

    std::string opcode() const { return statement.substr(0, statement.find('.')); }
    /// A hundred instructions and more on a CPU.
    bool is_long() const;
    /// Which NaN results depends on the order of the operands, which ptxas changes, or on whether it makes a modifier of a move
    /// out of neg and abs. What single instructions give is recorded in arithmetic_forms.
    bool may_choose_a_nan() const;
    /// ptxas makes a move of the minimum of a value and itself, NaN or not.
    bool needs_different_operands() const { return opcode() == "min" || opcode() == "max"; }
};

/// Forms of the first `count` lines of arithmetic_forms_h200.txt. Left out are sums and products without a rounding, which
/// ptxas may contract, and what it gets wrong under a condition.
std::vector<Form> read_forms(const char* path, unsigned count);

} // namespace random_programs
