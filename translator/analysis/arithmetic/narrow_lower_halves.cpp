// SPDX-License-Identifier: Apache-2.0
// 64-bit numbers of which only the lower half is read become 32-bit numbers. C++ narrows what it has computed in 64
// bits (CuPy's offsets: a sum of indices times strides, cast to int), PTX reads the lower half of the register: nothing
// is left of an affine shape then, and products of 64 bits take vectors three times as many instructions.
#include "translator/analysis/arithmetic/half_narrowing.h"
#include "translator/analysis/build/build_ssa.h"

#include <algorithm>

namespace ptarmigan::translator {

namespace {

constexpr std::uint64_t half_bits = 32;

class LowerHalves : HalfNarrowing {
public:
    explicit LowerHalves(FunctionGraph& graph) : HalfNarrowing(graph) {}

    void run() {
        if (!find_reads()) return;
        for (Block& block : graph_.blocks) {
            for (const Phi& phi : block.phis) is_half_[phi.result] = is_wide(phi.result);
            for (const GraphInstruction& instruction : block.instructions)
                if (widens(instruction.inst) || sources(instruction.inst) != 0)
                    is_half_[instruction.inst.operands[0].index] = true;
        }
        while (remove_others()) {
        }
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) rewrite(block);
    }

private:
    /// Some instruction reads the lower half of a product or sum, so that there is something to gain.
    bool find_reads() {
        std::vector<bool> is_computed(graph_.values.size(), false);
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions)
                if (sources(instruction.inst) != 0) is_computed[instruction.inst.operands[0].index] = true;
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions)
                if (reads_half(instruction.inst) && is_computed[instruction.inst.operands[1].index]) return true;
        return false;
    }
    /// Its result's lower half needs those of so many operands only, from the first source on; 0: it is nothing like
    /// that.
    unsigned sources(const ptx::Instruction& inst) const {
        if (inst.operand_count != 3 || !is_wide_register(inst.operands[0]) || !is_number(inst.operands[1]) ||
            !is_number(inst.operands[2]))
            return 0;
        for (FormId form :
             {FormId::add_int, FormId::sub_int, FormId::mul_lo, FormId::and_bits, FormId::or_bits, FormId::xor_bits})
            if (is_plain(inst, form)) return 2;
        const auto amount = is_plain(inst, FormId::shl) ? constant(inst.operands[2]) : std::nullopt;
        return amount && *amount < half_bits ? 1 : 0;
    }
    static bool is_number(const Operand& operand) {
        return !operand.negated && (operand.kind == Operand::Kind::reg || operand.kind == Operand::Kind::imm);
    }
    static bool is_read(const Operand& operand, unsigned bits) {
        return operand.kind == Operand::Kind::reg && !operand.negated && ptx::bit_size(operand.type) == bits;
    }
    /// A number of 32 bits made one of 64.
    bool widens(const ptx::Instruction& inst) const {
        return inst.form == FormId::cvt_widen_64 && inst.guard == ptx::no_id && is_wide_register(inst.operands[0]) &&
               is_read(inst.operands[1], half_bits);
    }
    /// Reads the lower half of a 64-bit register.
    bool reads_half(const ptx::Instruction& inst) const {
        if (inst.guard != ptx::no_id || inst.operand_count != 2) return false;
        const Operand& a = inst.operands[1];
        if (a.kind != Operand::Kind::reg || !is_wide(a.index)) return false;
        return (inst.form == FormId::cvt_widen_64 && is_read(a, half_bits)) ||
               (inst.form == FormId::cvt_narrow_32 && is_read(a, 64) && inst.operands[0].kind == Operand::Kind::reg &&
                ptx::bit_size(graph_.values[inst.operands[0].index].type) == half_bits);
    }

    /// All uses of a half are those of other halves, or reads of it. Backwards, so that chains go at once.
    bool remove_others() {
        bool changed = false;
        for (auto block = graph_.blocks.rbegin(); block != graph_.blocks.rend(); ++block) {
            if (block->terminator.condition != no_value) changed |= remove(block->terminator.condition);
            for (auto at = block->instructions.rbegin(); at != block->instructions.rend(); ++at) {
                if (reads_half(at->inst) && at->previous.empty()) continue;
                if (sources(at->inst) != 0 && is_half_[at->inst.operands[0].index]) continue;
                for (ValueId value : uses(graph_, *at)) changed |= remove(value);
            }
            for (const Phi& phi : block->phis) {
                const bool all = std::all_of(phi.incoming.begin(), phi.incoming.end(), [&](ValueId value) {
                    return is_half_[value] || graph_.values[value].is_constant;
                });
                if (!all) changed |= remove(phi.result);
                if (!is_half_[phi.result])
                    for (ValueId value : phi.incoming) changed |= remove(value);
            }
        }
        return changed;
    }

    /// The lower half of a source, narrowed in front of `at` where it is computed with 64 bits.
    Operand lower_half(const Operand& source, ScalarType type, const GraphInstruction& at, BlockId block,
                       std::vector<GraphInstruction>& code) {
        if (const auto bits = constant(source)) return constant_operand(*bits & 0xffffffff, type);
        if (is_half_[source.index] || ptx::bit_size(graph_.values[source.index].type) == half_bits)
            return register_operand(source.index, type);
        const ValueId narrow = new_value(block, ScalarType::b32);
        code.push_back(
            made(at, FormId::cvt_narrow_32, {ScalarType::u32, ScalarType::u64},
                 {register_operand(narrow, ScalarType::u32), register_operand(source.index, ScalarType::u64)}));
        return register_operand(narrow, type);
    }

    void rewrite(BlockId id) {
        Block& block = graph_.blocks[id];
        for (Phi& phi : block.phis) {
            if (!is_half_[phi.result]) continue;
            graph_.values[phi.result].type = ScalarType::b32;
            for (ValueId& value : phi.incoming)
                if (graph_.values[value].is_constant) value = new_constant(graph_.values[value].constant);
        }
        std::vector<GraphInstruction> code;
        code.reserve(block.instructions.size());
        for (GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            const Operand &d = inst.operands[0], &a = inst.operands[1];
            if (d.kind == Operand::Kind::reg && is_half_[d.index]) {
                graph_.values[d.index].type = ScalarType::b32;
                make_half(id, instruction, code);
            } else if (inst.form == FormId::cvt_narrow_32 && a.kind == Operand::Kind::reg && is_half_[a.index]) {
                code.push_back(
                    made(instruction, FormId::mov, {ScalarType::b32},
                         {register_operand(d.index, ScalarType::b32), register_operand(a.index, ScalarType::b32)}));
            } else {
                code.push_back(std::move(instruction));
            }
        }
        block.instructions = std::move(code);
    }

    void make_half(BlockId id, const GraphInstruction& at, std::vector<GraphInstruction>& code) {
        const ptx::Instruction& inst = at.inst;
        const ValueId d = inst.operands[0].index;
        if (inst.form == FormId::cvt_widen_64) {
            const Operand source = lower_half(inst.operands[1], ScalarType::b32, at, id, code);
            code.push_back(made(at, FormId::mov, {ScalarType::b32}, {register_operand(d, ScalarType::b32), source}));
            return;
        }
        const bool logic = inst.form != FormId::add_int && inst.form != FormId::sub_int && inst.form != FormId::mul_lo;
        const ScalarType type = logic ? ScalarType::b32 : ScalarType::u32;
        const Operand first = lower_half(inst.operands[1], type, at, id, code);
        const Operand second = inst.form == FormId::shl ? constant_operand(*constant(inst.operands[2]), ScalarType::u32)
                                                        : lower_half(inst.operands[2], type, at, id, code);
        code.push_back(made(at, inst.form, {type}, {register_operand(d, type), first, second}));
    }
};

} // namespace

void narrow_lower_halves(FunctionGraph& graph) {
    LowerHalves(graph).run();
}

} // namespace ptarmigan::translator
