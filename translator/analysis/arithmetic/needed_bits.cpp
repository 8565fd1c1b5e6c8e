// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/arithmetic/needed_bits.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;

constexpr std::uint64_t all_bits = ~std::uint64_t(0), word = 0xffffffff;

class NeededBits {
public:
    explicit NeededBits(FunctionGraph& graph)
        : graph_(graph), needed_(graph.values.size(), 0), made_(graph.values.size()), phis_(graph.values.size()) {}

    bool run() {
        if (!find_definitions()) return false;
        find_needs();
        bool changed = false;
        for (Block& block : graph_.blocks)
            for (GraphInstruction& instruction : block.instructions) changed |= resolve(instruction);
        return changed;
    }

private:
    static bool is_permutation(const ptx::Instruction& inst) { return inst.form == FormId::prmt; }

    /// Whether there is anything to do.
    bool find_definitions() {
        bool any = false;
        for (const Block& block : graph_.blocks) {
            for (const Phi& phi : block.phis) phis_[phi.result] = &phi;
            for (const GraphInstruction& instruction : block.instructions) {
                any = any || is_permutation(instruction.inst) || table_of(instruction.inst);
                for (ValueId result : definitions(graph_, instruction)) made_[result] = &instruction;
            }
        }
        return any;
    }

    std::optional<std::uint64_t> constant(const Operand& operand) const { return constant_of(graph_, operand); }

    void need(ValueId value, std::uint64_t bits) {
        if ((needed_[value] | bits) == needed_[value]) return;
        needed_[value] |= bits;
        work_.push_back(value);
    }
    void need(const Operand& operand, std::uint64_t bits) {
        if (operand.kind == Operand::Kind::reg) need(operand.index, bits);
    }

    void find_needs() {
        for (const Block& block : graph_.blocks) {
            if (block.terminator.condition != no_value) need(block.terminator.condition, all_bits);
            for (const GraphInstruction& instruction : block.instructions)
                if (!is_removable(instruction.inst)) need_all(instruction);
        }
        while (!work_.empty()) {
            const ValueId value = work_.back();
            work_.pop_back();
            if (const Phi* phi = phis_[value])
                for (const ValueId incoming : phi->incoming) need(incoming, needed_[value]);
            if (made_[value] != nullptr) pass_on(*made_[value], needed_[value]);
        }
    }

    void need_all(const GraphInstruction& instruction) {
        for (ValueId value : uses(graph_, instruction)) need(value, all_bits);
    }

    /// A bitwise operation as lop3's table; sources beyond its own count for nothing.
    static std::optional<std::uint8_t> table_of(const ptx::Instruction& inst) {
        switch (inst.form) {
        case FormId::and_bits: return 0xc0;
        case FormId::or_bits: return 0xfc;
        case FormId::xor_bits: return 0x3c;
        case FormId::lop3: return std::uint8_t(inst.operands[4].value);
        default: return std::nullopt;
        }
    }
    static unsigned count_sources(const ptx::Instruction& inst) { return inst.form == FormId::lop3 ? 3 : 2; }
    static constexpr unsigned table_bit(unsigned source) { return 4u >> (source - 1); }

    /// The bits of the result that source number `source` decides, given the sources that are constant.
    std::uint64_t decided_bits(const ptx::Instruction& inst, std::uint8_t table, unsigned source) const {
        std::uint64_t decided = 0;
        for (unsigned at = 0; at < 8; ++at) { // each pair of entries that this source alone tells apart
            if (at & table_bit(source)) continue;
            if (((table >> at) & 1) == ((table >> (at | table_bit(source))) & 1)) continue;
            std::uint64_t bits = all_bits;
            for (unsigned other = 1; other <= count_sources(inst); ++other)
                if (const auto known = constant(inst.operands[other]); known && other != source)
                    bits &= at & table_bit(other) ? *known : ~*known;
            decided |= bits;
        }
        return decided;
    }

    /// The result where source number `source` is `bits` (0: none of them), others are constants or 0.
    std::uint64_t result_with(const ptx::Instruction& inst, std::uint8_t table, unsigned source,
                              std::uint64_t bits) const {
        std::array<std::uint64_t, 4> sources{};
        for (unsigned i = 1; i <= count_sources(inst); ++i)
            sources[i] = i == source ? bits : constant(inst.operands[i]).value_or(0);
        std::uint64_t result = 0;
        for (unsigned at = 0; at < 8; ++at) {
            if (((table >> at) & 1) == 0) continue;
            std::uint64_t here = all_bits;
            for (unsigned i = 1; i <= 3; ++i) here &= at & table_bit(i) ? sources[i] : ~sources[i];
            result |= here;
        }
        return result;
    }

    /// What the operands of an instruction are needed for whose result is needed in `bits`.
    void pass_on(const GraphInstruction& instruction, std::uint64_t bits) {
        const ptx::Instruction& inst = instruction.inst;
        if (!is_removable(inst)) return; // needs all
        for (ValueId value : instruction.previous) need(value, bits);
        if (inst.guard != ptx::no_id) need(inst.guard, all_bits);
        const auto &a = inst.operands[1], &b = inst.operands[2];
        switch (inst.form) {
        case FormId::mov: return need(a, bits);
        case FormId::selp:
            need(a, bits);
            need(b, bits);
            return need(inst.operands[3], all_bits);
        case FormId::and_bits:
        case FormId::or_bits:
        case FormId::xor_bits:
        case FormId::lop3:
            for (unsigned i = 1; i <= count_sources(inst); ++i)
                need(inst.operands[i], bits & decided_bits(inst, *table_of(inst), i));
            return;
        case FormId::not_bits: return need(a, bits);
        case FormId::prmt:
            if (const auto selector = constant(inst.operands[3]))
                for (unsigned source = 1; source <= 2; ++source)
                    need(inst.operands[source], selected_bits(*selector, source, bits));
            else
                need_all(instruction);
            return;
        case FormId::cvt_widen_16:
        case FormId::cvt_widen_32:
        case FormId::cvt_widen_64: return need(a, (std::uint64_t(1) << ptx::bit_size(inst.types[1])) - 1);
        case FormId::cvt_narrow_8: return need(a, 0xff);
        case FormId::cvt_narrow_16: return need(a, 0xffff);
        case FormId::cvt_narrow_32: return need(a, bits & word);
        default: return need_all(instruction);
        }
    }

    /// The bits of a source that stand in `bits` of the result.
    static std::uint64_t selected_bits(std::uint64_t selector, unsigned source, std::uint64_t bits) {
        std::uint64_t result = 0;
        for (unsigned byte = 0; byte < 4; ++byte) {
            if (((bits >> (8 * byte)) & 0xff) == 0) continue;
            const unsigned from = unsigned(selector >> (4 * byte)) & 7;
            const bool is_sign = (selector >> (4 * byte)) & 8;
            if ((from >= 4) == (source == 2))
                result |= (is_sign ? 0x80 : (bits >> (8 * byte)) & 0xff) << (8 * (from & 3));
        }
        return result;
    }

    /// True if the instruction reads less than before.
    bool resolve(GraphInstruction& instruction) {
        ptx::Instruction& inst = instruction.inst;
        const Operand& result = inst.operands[0];
        if (result.kind != Operand::Kind::reg || !instruction.previous.empty()) return false;
        const ptx::ScalarType type = graph_.values[result.index].type;
        const std::uint64_t width = ptx::bit_size(type);
        const std::uint64_t bits = needed_[result.index] & (width < 64 ? (std::uint64_t(1) << width) - 1 : all_bits);
        if (type == ptx::ScalarType::pred || bits == 0) return false;
        return is_permutation(inst) ? resolve_permutation(inst, bits) : resolve_bitwise(inst, bits);
    }

    bool resolve_bitwise(ptx::Instruction& inst, std::uint64_t bits) {
        const auto table = table_of(inst);
        if (!table) return false;
        unsigned deciding = 0;
        for (unsigned source = 1; source <= count_sources(inst); ++source) {
            if (constant(inst.operands[source]) || (bits & decided_bits(inst, *table, source)) == 0) continue;
            if (deciding != 0) return false;
            deciding = source;
        }
        const std::uint64_t without = result_with(inst, *table, deciding, 0) & bits;
        if (deciding == 0) {
            become_copy(inst, constant_operand(without, inst.type()));
            return true;
        }
        if (without != 0 || (result_with(inst, *table, deciding, all_bits) & bits) != bits) return false;
        become_copy(inst, inst.operands[deciding]);
        return true;
    }

    bool resolve_permutation(ptx::Instruction& inst, std::uint64_t bits) {
        const auto selector = constant(inst.operands[3]);
        if (!selector) return false;
        for (unsigned source = 1; source <= 2; ++source) {
            Operand& other = inst.operands[3 - source];
            if (selected_bits(*selector, 3 - source, bits) != 0) continue; // both are needed
            if (stays_in_place(*selector, source, bits)) {
                become_copy(inst, inst.operands[source]);
                return true;
            }
            if (other.kind != Operand::Kind::reg || graph_.values[other.index].is_constant) return false;
            // Bytes that nobody looks at may be any of the source's.
            std::uint64_t narrower = *selector;
            for (unsigned byte = 0; byte < 4; ++byte)
                if (((bits >> (8 * byte)) & 0xff) == 0)
                    narrower = (narrower & ~(std::uint64_t(0xf) << (4 * byte))) |
                               (std::uint64_t(source == 1 ? 0 : 4) << (4 * byte));
            inst.operands[3] = constant_operand(narrower, inst.operands[3].type);
            other = constant_operand(0, other.type);
            return true;
        }
        return false;
    }

    static bool stays_in_place(std::uint64_t selector, unsigned source, std::uint64_t bits) {
        for (unsigned byte = 0; byte < 4; ++byte)
            if (((bits >> (8 * byte)) & 0xff) != 0 &&
                ((selector >> (4 * byte)) & 0xf) != byte + (source == 2 ? 4u : 0u))
                return false;
        return true;
    }

    /// Of the same width as what it was.
    static void become_copy(ptx::Instruction& inst, const Operand from) {
        inst.types = {inst.form == FormId::prmt || inst.form == FormId::lop3 ? ptx::ScalarType::b32 : inst.type()};
        inst.form = FormId::mov;
        inst.modifier_count = 0;
        inst.operand_count = 2;
        inst.operands[1] = from;
        for (unsigned i = 2; i < inst.operands.size(); ++i) inst.operands[i] = {};
    }

    FunctionGraph& graph_;
    std::vector<std::uint64_t> needed_;         ///< by value: bits that somebody looks at
    std::vector<const GraphInstruction*> made_; ///< by value
    std::vector<const Phi*> phis_;              ///< by value
    std::vector<ValueId> work_;
};

} // namespace

bool resolve_needed_bits(FunctionGraph& graph) {
    return NeededBits(graph).run();
}

} // namespace ptarmigan::translator
