// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/build/product_groups.h"

#include "frontend/ptx/matrix_fragments.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_set>

namespace ptarmigan::translator {
namespace {

using ptx::MatrixOperand;
using ptx::Operand;
using ptx::Role;

/// mma and wmma.mma of one product of dense matrices whose C and D have one type.
bool is_product(const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    const ptx::FormInfo& form = ptx::form_info(inst.form);
    if (form.chapter != "matrix" || !form.lowered || inst.guard != ptx::no_id || instruction.hand_over != 0)
        return false;
    if (has_effect(inst, ptx::Effects::load | ptx::Effects::store) || inst[Role::c].kind == Operand::Kind::none ||
        inst[Role::b].kind == Operand::Kind::none || inst.operand_count != 4)
        return false;
    const ptx::MatrixForm product = ptx::matrix_form(inst);
    const bool is_four_products =
        product.opcode == ptx::MatrixOpcode::mma && product.m == 8 && product.a == ptx::MatrixType::f16;
    return !ptx::is_sparse(product.opcode) && product.kind == ptx::MatrixKind::plain && product.c == product.d &&
           !is_four_products;
}

bool is_of_form(const ptx::Instruction& inst, const ptx::MatrixForm& form) {
    const ptx::MatrixForm own = ptx::matrix_form(inst);
    return std::memcmp(&own, &form, sizeof form) == 0;
}

/// Products may not be moved behind it: who is in step may be others there, or results are kept in other places.
bool parts_products(const GraphInstruction& instruction) {
    using enum ptx::Effects;
    return instruction.hand_over != 0 || has_effect(instruction.inst, barrier | call | waits | terminator);
}

/// Registers of an operand, as what tells it from others: a kind and a number for each.
using Key = std::vector<std::uint64_t>;

Key key_of(const FunctionGraph& graph, const Operand& operand) {
    Key key;
    const auto add = [&](const Operand& element) {
        key.push_back(std::uint64_t(element.kind));
        key.push_back(element.kind == Operand::Kind::imm ? element.value : element.index);
    };
    if (operand.kind != Operand::Kind::vector)
        add(operand);
    else
        for (std::uint32_t i = 0; i < operand.count; ++i) add(graph.pool[operand.first + i]);
    return key;
}

/// How often each value is read.
std::vector<std::uint32_t> count_uses(const FunctionGraph& graph) {
    std::vector<std::uint32_t> counts(graph.values.size());
    const auto count = [&](ValueId value) {
        if (value < counts.size()) ++counts[value];
    };
    for (const Block& block : graph.blocks) {
        for (const Phi& phi : block.phis)
            for (ValueId value : phi.incoming) count(value);
        for (const GraphInstruction& instruction : block.instructions)
            for (ValueId value : uses(graph, instruction)) count(value);
        count(block.terminator.condition);
    }
    return counts;
}

/// Takes products one after the other for as long as they fit together.
class GroupBuilder {
public:
    GroupBuilder(const FunctionGraph& graph, const std::vector<std::uint32_t>& uses, const ptx::MatrixForm& form)
        : graph_(graph), uses_(uses), form_(form), group_(std::make_unique<ProductGroup>()) {
        const auto words = [&](MatrixOperand operand) {
            const ptx::MatrixFragment fragment(form, operand);
            return fragment.distinct_registers() * fragment.register_bits() / 32;
        };
        words_a_ = words(MatrixOperand::a);
        words_b_ = words(MatrixOperand::b);
        words_d_ = words(MatrixOperand::d);
    }

    bool add(const ptx::Instruction& inst) {
        using Group = abi::MatrixGroup;
        if (!is_of_form(inst, form_) || reads_results(inst[Role::a]) || reads_results(inst[Role::b])) return false;
        const Key c = key_of(graph_, inst[Role::c]);
        const auto producer = produced_.find(c);
        if (producer == produced_.end() && reads_results(inst[Role::c])) return false;
        // The limits are asked before anything is changed.
        const bool new_a = numbers_a_.count(key_of(graph_, inst[Role::a])) == 0,
                   new_b = numbers_b_.count(key_of(graph_, inst[Role::b])) == 0,
                   new_d = producer == produced_.end() || !producer->second.read_once;
        if (group_->products.size() >= Group::most_steps || group_->a.size() + new_a > Group::most_a ||
            group_->b.size() + new_b > Group::most_b || group_->accumulators + new_d > Group::most_accumulators ||
            words_ + new_a * words_a_ + new_b * words_b_ + new_d * words_d_ > Group::most_words)
            return false;

        group_->products.push_back(&inst);
        const abi::MatrixStep step{number(inst[Role::a], numbers_a_, group_->a, words_a_),
                                   number(inst[Role::b], numbers_b_, group_->b, words_b_)};
        if (producer != produced_.end() && producer->second.read_once)
            extend(producer->second.chain, step);
        else
            begin(inst, producer == produced_.end() ? nullptr : &producer->second, step);
        const std::uint32_t chain = producer != produced_.end() && producer->second.read_once
                                        ? producer->second.chain
                                        : std::uint32_t(chains_.size() - 1);
        chains_[chain].result = &inst[Role::d];
        produced_[key_of(graph_, inst[Role::d])] = {chain, chains_[chain].d, is_read_once(inst[Role::d])};
        for_each_result(inst[Role::d], [&](ValueId value) { results_.insert(value); });
        return true;
    }

    std::unique_ptr<ProductGroup> take() {
        if (make_pairs()) return std::move(group_);
        for (const Chain& chain : chains_) {
            group_->chains.push_back(
                {std::uint16_t(group_->steps.size()), std::uint16_t(chain.steps.size()), chain.c, chain.d});
            group_->steps.insert(group_->steps.end(), chain.steps.begin(), chain.steps.end());
            group_->results.push_back({chain.d, chain.result});
        }
        return std::move(group_);
    }

private:
    struct Chain {
        std::uint8_t c, d;
        std::vector<abi::MatrixStep> steps;
        const Operand* result;
    };
    struct Produced {
        std::uint32_t chain;
        std::uint8_t accumulator;
        bool read_once; ///< each register, so that a product that takes all of them is the only reader
    };
    using Numbers = std::map<Key, std::uint8_t>;

    void for_each_result(const Operand& d, const std::function<void(ValueId)>& fn) const {
        if (d.kind == Operand::Kind::reg) fn(d.index);
        for (std::uint32_t i = 0; d.kind == Operand::Kind::vector && i < d.count; ++i)
            if (graph_.pool[d.first + i].kind == Operand::Kind::reg) fn(graph_.pool[d.first + i].index);
    }
    bool reads_results(const Operand& operand) const {
        bool found = false;
        for_each_result(operand, [&](ValueId value) { found |= results_.count(value) != 0; });
        return found;
    }
    bool is_read_once(const Operand& d) const {
        bool once = true;
        for_each_result(d, [&](ValueId value) { once &= uses_[value] == 1; });
        return once;
    }
    std::uint8_t number(const Operand& operand, Numbers& numbers, std::vector<const Operand*>& matrices,
                        unsigned words) {
        const auto [place, is_new] = numbers.try_emplace(key_of(graph_, operand), std::uint8_t(matrices.size()));
        if (is_new) {
            matrices.push_back(&operand);
            words_ += words;
        }
        return place->second;
    }
    std::uint8_t new_accumulator() {
        words_ += words_d_;
        return std::uint8_t(group_->accumulators++);
    }
    void extend(std::uint32_t chain, abi::MatrixStep step) { chains_[chain].steps.push_back(step); }
    void begin(const ptx::Instruction& inst, const Produced* producer, abi::MatrixStep step) {
        Chain chain{};
        if (producer) {
            chain.c = producer->accumulator;
            chain.d = new_accumulator();
        } else {
            chain.c = chain.d = new_accumulator();
            group_->given.push_back({chain.c, &inst[Role::c]});
        }
        chain.steps.push_back(step);
        chains_.push_back(std::move(chain));
    }

    /// Eight columns are half of what wide vectors hold.
    bool make_pairs() {
        const bool independent =
            std::all_of(chains_.begin(), chains_.end(), [](const Chain& chain) { return chain.c == chain.d; });
        const unsigned registers = ptx::MatrixFragment(form_, MatrixOperand::d).register_bits();
        if (form_.n != 8 || form_.m != 16 || registers != 32 || chains_.size() % 2 != 0 || !independent) return false;
        const auto is_partner = [](const Chain& x, const Chain& y) {
            return std::equal(x.steps.begin(), x.steps.end(), y.steps.begin(), y.steps.end(),
                              [](abi::MatrixStep p, abi::MatrixStep q) { return p.a == q.a; });
        };
        std::vector<std::pair<const Chain*, const Chain*>> pairs;
        std::vector<bool> taken(chains_.size());
        std::map<std::pair<std::uint8_t, std::uint8_t>, std::uint8_t> numbers;
        std::vector<const Operand*> b;
        for (std::size_t i = 0; i < chains_.size(); ++i) {
            if (taken[i]) continue;
            std::size_t j = i + 1;
            while (j < chains_.size() && (taken[j] || !is_partner(chains_[i], chains_[j]))) ++j;
            if (j == chains_.size()) return false;
            taken[j] = true;
            pairs.emplace_back(&chains_[i], &chains_[j]);
            for (std::size_t step = 0; step < chains_[i].steps.size(); ++step) {
                const std::pair<std::uint8_t, std::uint8_t> both{chains_[i].steps[step].b, chains_[j].steps[step].b};
                if (!numbers.try_emplace(both, std::uint8_t(numbers.size())).second) continue;
                b.push_back(group_->b[both.first]);
                b.push_back(group_->b[both.second]);
            }
        }
        // Not where many matrices would be there twice.
        if (b.size() > group_->b.size() + 2) return false;
        std::vector<ProductGroup::Accumulator> given;
        const auto given_to = [&](const Chain& chain) {
            return std::find_if(group_->given.begin(), group_->given.end(),
                                [&](const ProductGroup::Accumulator& c) { return c.number == chain.c; })
                ->registers;
        };
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            const auto [first, second] = pairs[i];
            group_->chains.push_back({std::uint16_t(group_->steps.size()), std::uint16_t(first->steps.size()),
                                      std::uint8_t(i), std::uint8_t(i)});
            for (std::size_t step = 0; step < first->steps.size(); ++step)
                group_->steps.push_back({first->steps[step].a, numbers[{first->steps[step].b, second->steps[step].b}]});
            unsigned half = 0;
            for (const Chain* chain : {first, second}) {
                const auto number = std::uint8_t(2 * i + half++);
                given.push_back({number, given_to(*chain)});
                group_->results.push_back({number, chain->result});
            }
        }
        group_->given = std::move(given);
        group_->b = std::move(b);
        group_->pairs = true;
        return true;
    }

    const FunctionGraph& graph_;
    const std::vector<std::uint32_t>& uses_;
    const ptx::MatrixForm form_;
    std::unique_ptr<ProductGroup> group_;
    std::vector<Chain> chains_;
    Numbers numbers_a_, numbers_b_;
    std::map<Key, Produced> produced_;
    std::unordered_set<ValueId> results_;
    unsigned words_a_, words_b_, words_d_, words_ = 0;
};

void gather_products(const FunctionGraph& graph, Block& block) {
    std::vector<GraphInstruction> ordered, waiting;
    ordered.reserve(block.instructions.size());
    std::unordered_set<ValueId> results;
    ptx::MatrixForm form;
    const auto flush = [&] {
        for (GraphInstruction& product : waiting) ordered.push_back(std::move(product));
        waiting.clear();
        results.clear();
    };
    const auto reads_results = [&](const GraphInstruction& instruction) {
        const auto values = uses(graph, instruction);
        return std::any_of(values.begin(), values.end(), [&](ValueId value) { return results.count(value) != 0; });
    };
    const auto operand_reads_results = [&](const Operand& operand) {
        for (std::uint32_t i = 0; operand.kind == Operand::Kind::vector && i < operand.count; ++i)
            if (results.count(graph.pool[operand.first + i].index) != 0) return true;
        return operand.kind == Operand::Kind::reg && results.count(operand.index) != 0;
    };
    for (GraphInstruction& instruction : block.instructions) {
        if (!is_product(instruction)) {
            if (!waiting.empty() && (parts_products(instruction) || reads_results(instruction))) flush();
            ordered.push_back(std::move(instruction));
            continue;
        }
        if (!waiting.empty() &&
            (!is_of_form(instruction.inst, form) || operand_reads_results(instruction.inst[Role::a]) ||
             operand_reads_results(instruction.inst[Role::b]) || waiting.size() >= abi::MatrixGroup::most_steps))
            flush();
        if (waiting.empty()) form = ptx::matrix_form(instruction.inst);
        for (ValueId value : definitions(graph, instruction)) results.insert(value);
        waiting.push_back(std::move(instruction));
    }
    flush();
    block.instructions = std::move(ordered);
}

} // namespace

void gather_products(FunctionGraph& graph) {
    for (Block& block : graph.blocks)
        if (std::count_if(block.instructions.begin(), block.instructions.end(), is_product) > 1)
            gather_products(graph, block);
}

ProductGroups::ProductGroups(const FunctionGraph& graph) {
    const auto has_products = [](const Block& block) {
        return std::any_of(block.instructions.begin(), block.instructions.end(), is_product);
    };
    if (std::none_of(graph.blocks.begin(), graph.blocks.end(), has_products)) return;
    const std::vector<std::uint32_t> uses = count_uses(graph);
    const auto keep = [&](GroupBuilder& builder) {
        std::unique_ptr<ProductGroup> group = builder.take();
        for (const ptx::Instruction* inst : group->products) group_of_[inst] = group.get();
        groups_.push_back(std::move(group));
    };
    for (const Block& block : graph.blocks) {
        std::unique_ptr<GroupBuilder> builder;
        for (const GraphInstruction& instruction : block.instructions) {
            if (!is_product(instruction)) {
                if (builder) keep(*builder);
                builder.reset();
                continue;
            }
            if (builder && builder->add(instruction.inst)) continue;
            if (builder) keep(*builder);
            builder = std::make_unique<GroupBuilder>(graph, uses, ptx::matrix_form(instruction.inst));
            builder->add(instruction.inst);
        }
        if (builder) keep(*builder);
    }
}

const ProductGroup* ProductGroups::with(const ptx::Instruction& inst) const {
    const auto found = group_of_.find(&inst);
    return found == group_of_.end() ? nullptr : found->second;
}

} // namespace ptarmigan::translator
