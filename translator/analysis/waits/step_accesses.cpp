// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/step_accesses.h"

#include "translator/analysis/arithmetic/thread_sums.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/memory/alignment.h"

#include <utility>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::FormId;
using ptx::Operand;
using ptx::StateSpace;

/// Threads times instructions whose numbers are computed.
constexpr std::size_t evaluation_budget = 1 << 19;
/// Steps of arithmetic behind an address.
constexpr unsigned most_of_address = 64;

class AccessFinder {
public:
    AccessFinder(const FunctionGraph& graph, const BlockShape& block)
        : graph_(graph), sums_(graph, block), bits_(graph, block, evaluation_budget) {}

    StepAccesses find() {
        found_.by_block.resize(graph_.blocks.size());
        found_.is_opaque.resize(graph_.blocks.size(), false);
        for (BlockId id = 0; id < graph_.blocks.size(); ++id) list_accesses(id);
        return std::move(found_);
    }

private:
    void list_accesses(BlockId id) {
        const Block& block = graph_.blocks[id];
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            if (block.ends_with_barrier && &instruction == &block.instructions.back()) continue;
            const bool accesses = has_effect(inst, Effects::load | Effects::store);
            const bool plain = !has_effect(inst, Effects::atomic | Effects::convergent | Effects::barrier |
                                                     Effects::fence | Effects::async | Effects::may_trap |
                                                     Effects::call | Effects::volatile_read | Effects::waits);
            const Operand& place = accessed_memory(inst);
            if (!plain || is_strong(inst) || (accesses && place.kind != Operand::Kind::address)) {
                found_.is_opaque[id] = true;
                continue;
            }
            if (!accesses || inst.space == StateSpace::param || inst.space == StateSpace::local ||
                inst.space == StateSpace::constant)
                continue;
            StepAccess access{.block = id, .writes = has_effect(inst, Effects::store), .space = inst.space};
            access.bytes = access_bytes(inst);
            if (inst.space == StateSpace::shared) {
                access.address = address_of(place);
                access.threads = sums_.executing(id, inst).threads;
            }
            found_.by_block[id].push_back(found_.all.size());
            found_.all.push_back(std::move(access));
        }
    }

    std::optional<ThreadAddress> address_of(const Operand& operand) {
        ThreadAddress result{std::vector<std::uint32_t>(sums_.threads(), std::uint32_t(operand.value)), {}};
        unsigned left = most_of_address;
        if (operand.base == Operand::Base::variable && operand.scope == ptx::VariableScope::shared) {
            for (std::uint32_t& number : result.numbers) number += std::uint32_t(graph_.shared[operand.index].offset);
            return result;
        }
        if (operand.base != Operand::Base::reg || !add(result, operand.index, 1, left)) return std::nullopt;
        return result;
    }

    bool add(ThreadAddress& sum, const Operand& operand, std::uint32_t factor, unsigned& left) {
        if (operand.kind == Operand::Kind::reg) return !operand.negated && add(sum, operand.index, factor, left);
        if (operand.kind == Operand::Kind::imm) {
            for (std::uint32_t& number : sum.numbers) number += factor * std::uint32_t(operand.value);
            return true;
        }
        if (operand.kind != Operand::Kind::special) return false;
        const std::optional<ThreadBits> known = bits_.of_special(operand);
        if (!known || known->low != 32 || !known->assumed.empty()) return false;
        for (std::size_t t = 0; t < sum.numbers.size(); ++t) sum.numbers[t] += factor * std::uint32_t(known->of(t));
        return true;
    }

    /// Only arithmetic that is exact modulo 2^32: wherever it wraps, the address is the same.
    bool add(ThreadAddress& sum, ValueId value, std::uint32_t factor, unsigned& left) {
        const SsaValue& info = graph_.values[value];
        if (ptx::bit_size(info.type) != 32 || left == 0) return false;
        --left;
        const auto add_number = [&](std::uint64_t number) {
            for (std::uint32_t& each : sum.numbers) each += factor * std::uint32_t(number);
            return true;
        };
        if (info.is_constant) return add_number(info.constant);
        if (const auto variable = sums_.shared_variable(value)) {
            const Operand& source = sums_.sums().definition(value).instruction->inst.operands[1];
            return add_number(graph_.shared[*variable].offset + std::uint64_t(source.value));
        }
        const LinearSums::Definition& definition = sums_.sums().definition(value);
        if (definition.phi && definition.phi->incoming.size() == 1)
            return add(sum, definition.phi->incoming[0], factor, left);
        if (definition.instruction && definition.instruction->previous.empty()) {
            const ptx::Instruction& inst = definition.instruction->inst;
            const ThreadBits* known = bits_.of_result(inst);
            if (known && known->low == 32 && known->assumed.empty()) {
                for (std::size_t t = 0; t < sum.numbers.size(); ++t)
                    sum.numbers[t] += factor * std::uint32_t(known->of(t));
                return true;
            }
            const auto constant = [&](unsigned index) -> std::optional<std::uint32_t> {
                const Operand& operand = inst.operands[index];
                if (operand.kind == Operand::Kind::imm) return std::uint32_t(operand.value);
                if (operand.kind == Operand::Kind::reg && !operand.negated && graph_.values[operand.index].is_constant)
                    return std::uint32_t(graph_.values[operand.index].constant);
                return std::nullopt;
            };
            const auto product = [&](unsigned a, unsigned b) {
                if (const auto by = constant(b)) return add(sum, inst.operands[a], factor * *by, left);
                const auto by = constant(a);
                return by && add(sum, inst.operands[b], factor * *by, left);
            };
            const ThreadAddress before = sum;
            bool is_sum = false;
            switch (inst.form) {
            case FormId::mov:
            case FormId::cvt_same_32: is_sum = add(sum, inst.operands[1], factor, left); break;
            case FormId::add_int:
                is_sum = add(sum, inst.operands[1], factor, left) && add(sum, inst.operands[2], factor, left);
                break;
            case FormId::sub_int:
                is_sum = add(sum, inst.operands[1], factor, left) && add(sum, inst.operands[2], 0 - factor, left);
                break;
            case FormId::mul_lo: is_sum = product(1, 2); break;
            case FormId::mad_lo: is_sum = product(1, 2) && add(sum, inst.operands[3], factor, left); break;
            case FormId::shl: {
                const auto by = constant(2);
                is_sum = by && *by < 32 && add(sum, inst.operands[1], factor << *by, left);
                break;
            }
            default: break;
            }
            if (is_sum) return true;
            sum = before;
        }
        if (info.shape.level != Shape::Level::cta_uniform) return false;
        if ((sum.in_common[value] += factor) == 0) sum.in_common.erase(value);
        return true;
    }

    const FunctionGraph& graph_;
    ThreadSums sums_;
    ThreadBitsTable bits_;
    StepAccesses found_;
};

} // namespace

StepAccesses find_step_accesses(const FunctionGraph& graph, const BlockShape& block) {
    return AccessFinder(graph, block).find();
}

} // namespace ptarmigan::translator
