// SPDX-License-Identifier: Apache-2.0
// 64-bit numbers whose lower half is zero and of which only the upper half is looked at, sign- or zero-extended, become
// 32-bit numbers. nvcc writes an index that the source narrows to int (CuPy's strides) so, around loops too: i << 32,
// additions of step << 32, and i >> 32 where the index is used. Shapes know what becomes of a widened number, but
// nothing of what a shift to the right leaves.
#include "translator/analysis/arithmetic/half_narrowing.h"
#include "translator/analysis/build/build_ssa.h"

#include <algorithm>

namespace ptarmigan::translator {

namespace {

constexpr std::uint64_t half_bits = 32, lower_half = 0xffffffff;

class UpperHalves : HalfNarrowing {
public:
    explicit UpperHalves(FunctionGraph& graph) : HalfNarrowing(graph) {}

    void run() {
        for (Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions)
                if (makes_half(instruction.inst)) is_half_[instruction.inst.operands[0].index] = true;
        if (std::find(is_half_.begin(), is_half_.end(), true) == is_half_.end()) return;
        // All that may be one; then those go that something else is made of or used for.
        for (Block& block : graph_.blocks) {
            for (const Phi& phi : block.phis) is_half_[phi.result] = is_wide(phi.result);
            for (const GraphInstruction& instruction : block.instructions)
                if (keeps_half(instruction.inst)) is_half_[instruction.inst.operands[0].index] = true;
        }
        while (remove_others()) {
        }
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) rewrite(block);
    }

private:
    /// A shift to the left that leaves nothing of the lower half.
    bool makes_half(const ptx::Instruction& inst) const {
        if (!is_plain(inst, FormId::shl) || !is_wide_register(inst.operands[0]) || !is_wide_register(inst.operands[1]))
            return false;
        const std::optional<std::uint64_t> amount = constant(inst.operands[2]);
        return amount && *amount >= half_bits && *amount < 64;
    }
    /// Its lower half is zero if its operands' are.
    bool keeps_half(const ptx::Instruction& inst) const {
        return (is_plain(inst, FormId::add_int) || is_plain(inst, FormId::sub_int)) &&
               is_wide_register(inst.operands[0]);
    }
    /// A shift to the right that only moves the upper half.
    bool shows_half(const ptx::Instruction& inst) const {
        if (!is_plain(inst, FormId::shr) || !is_wide_register(inst.operands[0]) || !is_wide_register(inst.operands[1]))
            return false;
        const std::optional<std::uint64_t> amount = constant(inst.operands[2]);
        return amount && *amount > 0 && *amount <= half_bits;
    }
    bool has_half(ValueId value) const {
        const SsaValue& info = graph_.values[value];
        return is_half_[value] || (info.is_constant && is_wide(value) && (info.constant & lower_half) == 0);
    }
    bool has_half(const Operand& operand) const {
        if (operand.kind == Operand::Kind::imm) return (operand.value & lower_half) == 0;
        return is_wide_register(operand) && has_half(operand.index);
    }

    bool remove_others() {
        const bool made = remove_made_of_others();
        const bool used = remove_used_for_others();
        return made || used;
    }
    bool remove_made_of_others() {
        bool changed = false;
        for (const Block& block : graph_.blocks) {
            for (const Phi& phi : block.phis)
                if (!std::all_of(phi.incoming.begin(), phi.incoming.end(), [&](ValueId v) { return has_half(v); }))
                    changed |= remove(phi.result);
            for (const GraphInstruction& instruction : block.instructions) {
                const ptx::Instruction& inst = instruction.inst;
                if (keeps_half(inst) && (!has_half(inst.operands[1]) || !has_half(inst.operands[2])))
                    changed |= remove(inst.operands[0].index);
            }
        }
        return changed;
    }
    /// Backwards, so that chains go at once.
    bool remove_used_for_others() {
        bool changed = false;
        for (auto block = graph_.blocks.rbegin(); block != graph_.blocks.rend(); ++block) {
            if (block->terminator.condition != no_value) changed |= remove(block->terminator.condition);
            for (auto at = block->instructions.rbegin(); at != block->instructions.rend(); ++at) {
                const bool keeps = keeps_half(at->inst) && is_half_[at->inst.operands[0].index];
                if (keeps || (shows_half(at->inst) && at->previous.empty())) continue;
                for (ValueId value : uses(graph_, *at)) changed |= remove(value);
            }
            for (const Phi& phi : block->phis)
                if (!is_half_[phi.result])
                    for (ValueId value : phi.incoming) changed |= remove(value);
        }
        return changed;
    }

    ValueId upper_constant(ValueId wide) { return new_constant(graph_.values[wide].constant >> half_bits); }
    Operand upper_half(Operand operand, ScalarType type) {
        if (operand.kind == Operand::Kind::imm)
            operand.value >>= half_bits;
        else if (graph_.values[operand.index].is_constant)
            operand.index = upper_constant(operand.index);
        operand.type = type;
        return operand;
    }

    void rewrite(BlockId id) {
        Block& block = graph_.blocks[id];
        for (Phi& phi : block.phis) {
            if (!is_half_[phi.result]) continue;
            graph_.values[phi.result].type = ScalarType::b32;
            for (ValueId& value : phi.incoming)
                if (graph_.values[value].is_constant) value = upper_constant(value);
        }
        std::vector<GraphInstruction> code;
        code.reserve(block.instructions.size());
        for (GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            const Operand &d = inst.operands[0], &a = inst.operands[1];
            const bool is_reg = d.kind == Operand::Kind::reg;
            // What is left was told apart when all of it had 64 bits.
            if (is_reg && is_plain(inst, FormId::shl) && is_half_[d.index]) {
                const std::uint64_t more = *constant(inst.operands[2]) - half_bits;
                const ValueId narrow = more ? new_value(id, ScalarType::b32) : d.index;
                graph_.values[d.index].type = ScalarType::b32;
                code.push_back(
                    made(instruction, FormId::cvt_narrow_32, {ScalarType::u32, ScalarType::u64},
                         {register_operand(narrow, ScalarType::u32), register_operand(a.index, ScalarType::u64)}));
                if (more)
                    code.push_back(
                        made(instruction, FormId::shl, {ScalarType::b32},
                             {register_operand(d.index, ScalarType::b32), register_operand(narrow, ScalarType::b32),
                              constant_operand(more, ScalarType::u32)}));
            } else if (is_reg && is_half_[d.index]) {
                graph_.values[d.index].type = ScalarType::b32;
                code.push_back(made(instruction, inst.form, {ScalarType::u32},
                                    {register_operand(d.index, ScalarType::u32), upper_half(a, ScalarType::u32),
                                     upper_half(inst.operands[2], ScalarType::u32)}));
            } else if (is_plain(inst, FormId::shr) && a.kind == Operand::Kind::reg && is_half_[a.index]) {
                const bool sign = ptx::is_signed(inst.type());
                const ScalarType wide = sign ? ScalarType::s64 : ScalarType::u64;
                const ScalarType narrow = sign ? ScalarType::s32 : ScalarType::u32;
                const std::uint64_t less = half_bits - *constant(inst.operands[2]);
                const ValueId widened = less ? new_value(id, ScalarType::b64) : d.index;
                code.push_back(made(instruction, FormId::cvt_widen_64, {wide, narrow},
                                    {register_operand(widened, wide), register_operand(a.index, narrow)}));
                if (less)
                    code.push_back(
                        made(instruction, FormId::shl, {ScalarType::b64},
                             {register_operand(d.index, ScalarType::b64), register_operand(widened, ScalarType::b64),
                              constant_operand(less, ScalarType::u32)}));
            } else {
                code.push_back(std::move(instruction));
            }
        }
        block.instructions = std::move(code);
    }
};

} // namespace

void narrow_upper_halves(FunctionGraph& graph) {
    UpperHalves(graph).run();
}

} // namespace ptarmigan::translator
