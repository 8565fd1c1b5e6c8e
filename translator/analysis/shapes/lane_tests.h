// SPDX-License-Identifier: Apache-2.0
// Questions whose answers lanes nearly always share, and code that asks whether they do: what lane_agreement and
// segment_versions are made of.
#pragma once

#include "translator/analysis/graph/copies.h"
#include "translator/analysis/graph/graph_queries.h"

#include <initializer_list>
#include <optional>
#include <vector>

namespace ptarmigan::translator {

bool is_pure(const ptx::Instruction& inst);
/// A value of 32 or 64 bits whose lanes are known distances apart.
bool is_line(const FunctionGraph& graph, const ptx::Operand& operand, unsigned bits);
/// A quotient or remainder: its lanes' dividends are known distances apart, its divisor is one number, and its result
/// is varying so far.
bool is_tested_quotient(const FunctionGraph& graph, const GraphInstruction& instruction);
/// Likewise a shift to the right by a constant.
bool is_tested_shift(const FunctionGraph& graph, const GraphInstruction& instruction);
/// Likewise by a number that only the launch knows, as compilers divide by what may be a power of two.
bool is_shift_by_number(const FunctionGraph& graph, const GraphInstruction& instruction);
/// What such a quotient leaves: the lower bits of a line by a mask that only the launch knows, varying so far. Returns
/// the number of the operand that is a line.
std::optional<unsigned> line_of_mask(const FunctionGraph& graph, const ptx::Instruction& inst);
/// A quotient by a number that only the launch knows, computed of its reciprocal: the upper half of line * factor, plus
/// the line, shifted to the right. Such are PyTorch's and others' offsets of tensors. It grows with the line below
/// 2^31.
struct ReciprocalQuotient {
    ptx::Operand line, factor, shift;
};
/// `definitions`: by value, null for phis. None: `instruction` computes something else, or lanes are known to share it.
std::optional<ReciprocalQuotient> reciprocal_quotient(const FunctionGraph& graph,
                                                      const std::vector<const GraphInstruction*>& definitions,
                                                      const GraphInstruction& instruction);
/// A comparison whose answer changes once as the number grows; lanes seldom share that of another. Else none.
ptx::Modifier order_of(const ptx::Instruction& inst);
/// One side's lanes are known distances apart, the other one's are the same, and the answer is varying so far. Returns
/// the number of the operand that is a line; none: no such comparison.
std::optional<unsigned> line_of_comparison(const FunctionGraph& graph, const ptx::Instruction& inst);
/// A 32-bit line that is made wider and has a guard, for lanes that wrap. Returns the number of the operand.
std::optional<unsigned> line_of_widening(const FunctionGraph& graph, const ptx::Instruction& inst);

/// A value in all threads of a CTA.
struct CtaSpan {
    bool is_uniform = false;
    bool is_line = false;           ///< thread t holds what thread 0 holds and a known distance, of 32 or 64 bits
    std::int64_t low = 0, high = 0; ///< the least and the greatest of these
};
using CtaSpans = std::vector<CtaSpan>; ///< by value
/// Needs the shapes of the whole CTA as one step.
CtaSpans cta_spans(const FunctionGraph& graph);

/// What `block` computes to see whether lanes share quotients and answers, and whether none wraps. With `spans` of all
/// threads of a CTA, by the values that thread 0 has.
class LaneTest {
public:
    LaneTest(FunctionGraph& graph, BlockId block, std::vector<GraphInstruction>& code, const CtaSpans* spans = nullptr)
        : graph_(graph), block_(block), code_(code), spans_(spans) {}

    /// Of a quotient, a remainder or a shift. `a`, `b`: the operands, by the values that they have in the block.
    /// Returns the quotient if the test holds.
    ptx::Operand add(const GraphInstruction& division, const ptx::Operand& a, const ptx::Operand& b);
    /// The lanes' quotient if the test holds, computed by `shift`; `named`: with the values that they have in the
    /// block.
    ptx::Operand add_reciprocal(const GraphInstruction& shift, const ReciprocalQuotient& quotient,
                                const ReciprocalQuotient& named);
    /// Of line_of_mask(), whose operands are `a` and `mask` here. Returns the bits that all lanes share if the test
    /// holds.
    ptx::Operand add_mask(const GraphInstruction& instruction, unsigned line, const ptx::Operand& a,
                          const ptx::Operand& mask);
    /// Of a comparison, whose operand number `line` is one; `a`, `b`: its operands.
    void add_comparison(const GraphInstruction& comparison, unsigned line, const ptx::Operand& a,
                        const ptx::Operand& b);
    /// Of a widening of `a`, its operand number `line`.
    void add_widening(const GraphInstruction& widening, unsigned line, const ptx::Operand& a);
    /// All lanes have the quotient `number`, as add().
    void add_quotient(const GraphInstruction& division, const ptx::Operand& a, const ptx::Operand& b,
                      std::uint64_t number);
    /// All lanes have `answer`, as add_comparison().
    void add_answer(const GraphInstruction& comparison, unsigned line, const ptx::Operand& a, const ptx::Operand& b,
                    bool answer);
    /// `value`, which is the same for all lanes, is `number`; `made` by this instruction.
    void add_number(const GraphInstruction& made, const ptx::Operand& value, std::uint64_t number);
    /// What another test has found out of the same lanes; behind something else.
    void add_result(ValueId holds);

    /// What is added until end_if() is asked only of those that go where `condition`, which is the same for all, is
    /// `taken`.
    void begin_if();
    void end_if(const ptx::Operand& condition, bool taken);

    ValueId result() const { return all_.index; }

private:
    struct Tested {
        ptx::FormId form;
        ptx::ScalarType type;
        ValueId a;
        ptx::Operand b;
        ptx::Operand quotient;
    };
    struct Ends {
        ValueId line;
        ptx::ScalarType type;
        std::pair<ptx::Operand, ptx::Operand> values;
    };

    std::pair<std::int64_t, std::int64_t> span_of(const ptx::Operand& line) const;
    std::pair<ptx::Operand, ptx::Operand> ends(const ptx::Operand& line, ptx::ScalarType type,
                                               std::pair<std::int64_t, std::int64_t> span);
    ptx::Operand emit(ptx::FormId form, ptx::ScalarType type, std::initializer_list<ptx::Operand> sources,
                      ptx::Modifier modifier = ptx::Modifier::none,
                      ptx::ScalarType result_type = ptx::ScalarType::none);
    ptx::Operand compare(ptx::FormId form, ptx::Modifier comparison, ptx::ScalarType type, const ptx::Operand& a,
                         const ptx::Operand& b);
    void require(const ptx::Operand& holds);
    void require(ptx::Modifier comparison, ptx::ScalarType type, const ptx::Operand& a, const ptx::Operand& b);

    FunctionGraph& graph_;
    const BlockId block_;
    std::vector<GraphInstruction>& code_;
    const CtaSpans* spans_;
    const GraphInstruction* model_ = nullptr;
    std::vector<Tested> tested_;
    std::vector<Ends> ends_;
    ptx::Operand all_; ///< predicate; none: nothing was tested
    ptx::Operand before_if_;
    std::size_t tested_before_if_ = 0, ends_before_if_ = 0;
};

/// What is tested as it is where the test holds; a remainder by the quotient.
void append_uniform(FunctionGraph& graph, BlockId block, GraphInstruction division,
                    std::vector<GraphInstruction>& code);
/// Likewise of line_of_mask(), by the bits that add_mask() has found.
void append_masked(GraphInstruction mask, unsigned line, const ptx::Operand& shared,
                   std::vector<GraphInstruction>& code);
/// The same with the quotient that the test has computed.
void append_known(FunctionGraph& graph, BlockId block, GraphInstruction division, const ptx::Operand& quotient,
                  std::vector<GraphInstruction>& code);

} // namespace ptarmigan::translator
