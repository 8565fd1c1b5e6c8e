// SPDX-License-Identifier: Apache-2.0
// Runs one PTX statement over arrays of operands: compiled by the real translator, called in this process.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ptarmigan::test {

/// Operand bits of one thread: a, b and c.
using Operands = std::array<std::uint64_t, 3>;

/// `text` computes %d from %a, %b and %c, which are .b registers of the widths given (0 = not there). %p and %q (pred),
/// %w0..%w3 (b32), %h0..%h3 (b16) and %l0..%l3 (b64) are there for more.
struct Statement {
    std::string text;
    unsigned d = 32, a = 32, b = 0, c = 0;
    const char* module_head = ".version 9.0\n.target sm_90\n.address_size 64\n";
};

/// How the kernel is compiled.
struct Variant {
    const char* target = "host";
    unsigned lane_width = 0;
    bool fast = false; ///< PTARMIGAN_APPROX=fast
};

/// %d of every thread. Statements that don't compile raise the translator's exception.
std::vector<std::uint64_t> run_statement(const Statement& statement, const std::vector<Operands>& inputs,
                                         const Variant& variant = {});

/// Runs the statement in several variants (lane widths, targets that this CPU can run) and checks every result against
/// `reference`; at most a few mismatches are reported.
void check_statement(const Statement& statement, const std::vector<Operands>& inputs,
                     const std::function<std::uint64_t(const Operands&)>& reference);

/// Edge values of a type crossed, then random ones of mixed magnitude. Same for every run.
enum class Kind { bits16, bits32, bits64, f16, bf16, f32, f64, shift };
std::vector<Operands> operands(Kind a);
std::vector<Operands> operands(Kind a, Kind b);
std::vector<Operands> operands(Kind a, Kind b, Kind c);

} // namespace ptarmigan::test
