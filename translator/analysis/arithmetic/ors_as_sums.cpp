// SPDX-License-Identifier: Apache-2.0
// `or` with a constant whose bits are all zero in the other operand is a sum: LLVM writes (i * 4096) | 16 for
// i * 4096 + 16, which nothing that looks for sums would see. Sums keep affine shapes. Likewise ~i, which compilers
// make of -1 - i.
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace ptarmigan::translator {

namespace {

using ptx::FormId;
using ptx::Operand;
using ptx::ScalarType;

constexpr unsigned deepest = 8; ///< definitions that are looked through

class Ors {
public:
    explicit Ors(FunctionGraph& graph) : graph_(graph), definitions_(graph.values.size(), nullptr) {}

    void run() {
        std::vector<ptx::Instruction*> ors;
        for (Block& block : graph_.blocks)
            for (GraphInstruction& instruction : block.instructions) {
                ptx::Instruction& inst = instruction.inst;
                if (inst.guard != ptx::no_id || inst.operand_count < 2) continue;
                const Operand& d = inst.operands[0];
                if (d.kind != Operand::Kind::reg) continue;
                if (inst.form == FormId::not_bits && ptx::bit_size(inst.type()) >= 32) write_complement(inst);
                if (inst.form == FormId::or_bits && inst.type() != ScalarType::pred) ors.push_back(&inst);
                if (ptx::bit_size(graph_.values[d.index].type) == ptx::bit_size(d.type)) definitions_[d.index] = &inst;
            }
        for (ptx::Instruction* inst : ors) rewrite(*inst);
    }

private:
    std::optional<std::uint64_t> constant(const Operand& operand) const {
        if (operand.kind == Operand::Kind::imm) return operand.value;
        if (operand.kind == Operand::Kind::reg && !operand.negated && graph_.values[operand.index].is_constant)
            return graph_.values[operand.index].constant;
        return std::nullopt;
    }
    /// Low bits that are zero whatever the thread; of a register that is read as a whole.
    unsigned zeros(const Operand& operand, unsigned depth) const {
        const unsigned bits = ptx::bit_size(operand.type);
        if (const auto number = constant(operand)) return std::min(bits, unsigned(std::countr_zero(*number)));
        if (operand.kind != Operand::Kind::reg || operand.negated || depth == 0) return 0;
        const ptx::Instruction* made = definitions_[operand.index];
        if (!made || ptx::bit_size(graph_.values[operand.index].type) != bits) return 0;
        auto of = [&](unsigned index) { return zeros(made->operands[index], depth - 1); };
        switch (made->form) {
        case FormId::shl: {
            const auto amount = constant(made->operands[2]);
            return amount ? unsigned(std::min<std::uint64_t>(bits, of(1) + std::min<std::uint64_t>(*amount, bits))) : 0;
        }
        case FormId::mul_lo:
        case FormId::mul_wide: return std::min(bits, of(1) + of(2));
        case FormId::add_int:
        case FormId::sub_int: return std::min(of(1), of(2));
        case FormId::cvt_widen_64: return of(1);
        default: return 0;
        }
    }
    void rewrite(ptx::Instruction& inst) const {
        for (unsigned number : {2u, 1u}) {
            const auto bits = constant(inst.operands[number]);
            if (!bits || std::bit_width(*bits) > zeros(inst.operands[3 - number], deepest)) continue;
            const unsigned size = ptx::bit_size(inst.type());
            const ScalarType type = size == 64 ? ScalarType::u64 : size == 32 ? ScalarType::u32 : ScalarType::u16;
            inst.form = FormId::add_int;
            inst.types[0] = type;
            for (unsigned i = 0; i < 3; ++i) inst.operands[i].type = type;
            return;
        }
    }

    static void write_complement(ptx::Instruction& inst) {
        const ScalarType type = inst.type() == ScalarType::b64 ? ScalarType::s64 : ScalarType::s32;
        inst.form = FormId::sub_int;
        inst.types[0] = type;
        inst.operand_count = 3;
        inst.operands[2] = inst.operands[1];
        inst.operands[1] = {};
        inst.operands[1].kind = Operand::Kind::imm;
        inst.operands[1].value = type == ScalarType::s64 ? ~std::uint64_t(0) : 0xffffffffu;
        for (unsigned i = 0; i < 3; ++i) inst.operands[i].type = type;
    }

    FunctionGraph& graph_;
    std::vector<const ptx::Instruction*> definitions_;
};

} // namespace

void write_ors_as_sums(FunctionGraph& graph) {
    Ors(graph).run();
}

} // namespace ptarmigan::translator
