// SPDX-License-Identifier: Apache-2.0
// mul and add without a rounding modifier, fused as ptxas 13.0 does for sm_90 (found by experiments, see README.md):
//   * both round to nearest without saying so and agree in .ftz; the product has no .sat and no guard,
//   * every use of the product, through neg as well, is one operand of such an add or sub in the same straight line of
//     code: branches and labels that are branched to end one, and so do calls and what ptxas makes branches of
//     (straight_lines.h); or anywhere in the function, if one multiplicand is known to the kernel's launch: a constant,
//     or what stands in its parameters or in .const at a constant address,
//   * products of one use come first, then those of several, each in the order of the sums in the text. Of two products
//     in one sum that of fewer uses is fused, of equals the first one; the other one is there then, and goes into no
//     sum that comes later.
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"
#include "translator/analysis/graph/straight_lines.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace ptarmigan::translator {

namespace {

using ptx::FormId;
using ptx::Modifier;
using ptx::Operand;
using ptx::Role;

enum class Kind : std::uint8_t { other, product, negation, sum, difference };

/// What belongs together: products of one chapter's form with its sums.
struct Family {
    FormId add, sub, mul, neg, fma;
};
constexpr Family families[] = {
    {FormId::add_f32, FormId::sub_f32, FormId::mul_f32, FormId::neg_f32, FormId::fma_f32},
    {FormId::add_f64, FormId::sub_f64, FormId::mul_f64, FormId::neg_f64, FormId::fma_f64},
    {FormId::add_f16, FormId::sub_f16, FormId::mul_f16, FormId::neg_f16, FormId::fma_f16},
    {FormId::add_bf16, FormId::sub_bf16, FormId::mul_bf16, FormId::neg_bf16, FormId::fma_bf16},
};

struct Site {
    Kind kind = Kind::other;
    const Family* family = nullptr;
    bool ftz = false;
    ptx::ScalarType type = ptx::ScalarType::none;
    BlockId block = 0;
    std::size_t index = 0;
    unsigned line = 0;     ///< of straight code
    bool anywhere = false; ///< a product that fuses in other lines too

    bool fits(const Site& o) const { return family == o.family && ftz == o.ftz && type == o.type; }
};

class Contraction {
public:
    explicit Contraction(FunctionGraph& graph) : graph_(graph) {}

    void run() {
        find_lines();
        find_sites();
        if (products_.empty()) return;
        find_launch_constants();
        find_uses();
        for (ValueId product : products_) eligible_[product] = is_eligible(product);
        order_sums();
        for (const bool of_one_use : {true, false})
            for (ValueId sum : sums_) fuse(sum, of_one_use);
        insert_negations();
    }

private:
    struct Use {
        ValueId result = no_value; ///< no_value: something that is not a single operand of a sum or negation
    };

    static bool rounds_unasked(const ptx::Instruction& inst) {
        return inst.one_of({Modifier::rn, Modifier::rz, Modifier::rm, Modifier::rp}) == Modifier::none;
    }

    static Site classify(const ptx::Instruction& inst, bool guarded) {
        Site site;
        for (const Family& family : families) {
            Kind kind = inst.form == family.mul   ? Kind::product
                        : inst.form == family.add ? Kind::sum
                        : inst.form == family.sub ? Kind::difference
                        : inst.form == family.neg ? Kind::negation
                                                  : Kind::other;
            if (kind == Kind::other || !rounds_unasked(inst)) continue;
            if ((kind == Kind::product || kind == Kind::negation) && (guarded || inst.has(Modifier::sat))) continue;
            if (kind == Kind::negation && inst.type() == ptx::ScalarType::bf16x2) continue; // a fused one to ptxas
            site = {kind, &family, inst.has(Modifier::ftz), inst.type()};
        }
        return site;
    }

    /// Numbers the straight lines of blocks: one follows the other if nothing else comes between.
    void find_lines() {
        std::vector<unsigned> predecessors(graph_.blocks.size(), 0);
        for (const Block& block : graph_.blocks)
            for (BlockId successor : block.successors) ++predecessors[successor];
        line_.resize(graph_.blocks.size(), no_block);
        next_.resize(graph_.blocks.size(), no_block);
        std::vector<bool> follows(graph_.blocks.size(), false);
        const auto next = [&](BlockId block) {
            const Block& b = graph_.blocks[block];
            const bool only = b.terminator.kind == Terminator::Kind::jump && b.successors.size() == 1;
            return only && predecessors[b.successors[0]] == 1 && b.successors[0] != 0 ? b.successors[0] : no_block;
        };
        for (BlockId block = 0; block < graph_.blocks.size(); ++block)
            if (BlockId after = next(block); after != no_block) follows[after] = true;
        for (BlockId block = 0; block < graph_.blocks.size(); ++block)
            for (BlockId at = follows[block] ? no_block : block; at != no_block; at = next_[at] = next(at))
                line_[at] = block;
    }

    /// From the first block of each line on, which is cut where an instruction ends it and where another function
    /// begins.
    void find_sites() {
        unsigned line = 0;
        for (BlockId first = 0; first < graph_.blocks.size(); ++first) {
            if (line_[first] != first) continue;
            ++line;
            const GraphInstruction* before = nullptr;
            for (BlockId block = first; block != no_block; block = next_[block])
                for (std::size_t i = 0; i < graph_.blocks[block].instructions.size(); ++i) {
                    const GraphInstruction& instruction = graph_.blocks[block].instructions[i];
                    const bool is_cut = before && (before->function != instruction.function || ends_line(*before));
                    line += is_cut;
                    before = &instruction;
                    add_site(instruction, {block, i, line});
                }
        }
    }

    bool ends_line(const GraphInstruction& instruction) const {
        return ends_straight_line(instruction.inst) && !reads_constant_bank(instruction.inst, graph_.is_entry);
    }

    struct Place {
        BlockId block;
        std::size_t index;
        unsigned line;
    };
    void add_site(const GraphInstruction& instruction, const Place& place) {
        Site site = classify(instruction.inst, instruction.inst.guard != ptx::no_id);
        const Operand& d = instruction.inst.operands[0];
        if (site.kind == Kind::other || d.kind != Operand::Kind::reg) return;
        site.block = place.block;
        site.index = place.index;
        site.line = place.line;
        sites_[d.index] = site;
        if (site.kind == Kind::product) products_.push_back(d.index);
        if (site.kind == Kind::sum || site.kind == Kind::difference) sums_.push_back(d.index);
    }

    /// Values that are the same in the whole grid because they stand in the constant bank, their signs and parts. ptxas
    /// takes a product with one of these to where it is used.
    void find_launch_constants() {
        for (bool found = true; found;) {
            found = false;
            for (const Block& block : graph_.blocks)
                for (const GraphInstruction& instruction : block.instructions)
                    if (is_launch_constant(instruction.inst))
                        for (ValueId value : definitions(graph_, instruction))
                            found = launch_constants_.insert(value).second || found;
        }
        for (ValueId product : products_) {
            const ptx::Instruction& inst = at(sites_.at(product)).inst;
            sites_.at(product).anywhere = is_known(inst[Role::a]) || is_known(inst[Role::b]);
        }
    }

    bool is_launch_constant(const ptx::Instruction& inst) const {
        if (inst.guard != ptx::no_id) return false;
        if (reads_constant_bank(inst, graph_.is_entry)) return true;
        const bool keeps_place = inst.form == FormId::mov || inst.form == FormId::mov_unpack ||
                                 inst.form == FormId::neg_f32 || inst.form == FormId::neg_f64 ||
                                 inst.form == FormId::abs_f32 || inst.form == FormId::abs_f64;
        return keeps_place && is_known(inst[Role::a]);
    }

    bool is_known(const Operand& operand) const {
        if (operand.kind != Operand::Kind::reg) return operand.kind == Operand::Kind::imm;
        return graph_.values[operand.index].is_constant || launch_constants_.contains(operand.index);
    }

    void find_uses() {
        for (const Block& block : graph_.blocks) {
            for (const Phi& phi : block.phis)
                for (ValueId value : phi.incoming) uses_[value].push_back({});
            if (block.terminator.condition != no_value) uses_[block.terminator.condition].push_back({});
            for (const GraphInstruction& instruction : block.instructions) {
                const Operand& d = instruction.inst.operands[0];
                const auto found = d.kind == Operand::Kind::reg ? sites_.find(d.index) : sites_.end();
                const bool known =
                    found != sites_.end() && found->second.kind != Kind::product && &instruction == &at(found->second);
                const FewValues read = uses(graph_, instruction);
                for (ValueId value : read)
                    uses_[value].push_back(
                        {known && std::count(read.begin(), read.end(), value) == 1 ? d.index : no_value});
            }
        }
    }

    GraphInstruction& at(const Site& site) { return graph_.blocks[site.block].instructions[site.index]; }

    /// Every use ends in a sum or difference that the product may go into.
    bool is_eligible(ValueId value) {
        const Site& site = sites_.at(value);
        const std::vector<Use>& all = uses_[value];
        return !all.empty() && std::all_of(all.begin(), all.end(), [&](const Use& use) {
            if (use.result == no_value) return false;
            const Site& user = sites_.at(use.result);
            const bool keeps_bits = user.kind == Kind::negation && user.family == site.family && user.type == site.type;
            if (!user.fits(site) && !(keeps_bits && !user.ftz)) return false;
            if (!site.anywhere && user.line != site.line) return false;
            return user.kind != Kind::negation ||
                   (site.kind == Kind::product && is_negation_eligible(use.result, site));
        });
    }

    bool is_negation_eligible(ValueId value, const Site& product) {
        const std::vector<Use>& all = uses_[value];
        return !all.empty() && std::all_of(all.begin(), all.end(), [&](const Use& use) {
            if (use.result == no_value) return false;
            const Site& user = sites_.at(use.result);
            const bool meet = product.anywhere || user.line == product.line;
            return user.fits(product) && user.kind != Kind::negation && meet;
        });
    }

    /// The product behind an operand of a sum, and whether it is negated on its way.
    struct Source {
        ValueId product = no_value;
        bool negated = false;
    };
    Source source(const Operand& operand) const {
        if (operand.kind != Operand::Kind::reg) return {};
        auto found = sites_.find(operand.index);
        if (found == sites_.end()) return {};
        if (found->second.kind == Kind::product) return {operand.index, false};
        if (found->second.kind != Kind::negation) return {};
        const Site& site = found->second;
        const Operand& a = graph_.blocks[site.block].instructions[site.index].inst[Role::a];
        auto product = a.kind == Operand::Kind::reg ? sites_.find(a.index) : sites_.end();
        return product != sites_.end() && product->second.kind == Kind::product ? Source{a.index, true} : Source{};
    }
    /// The sums in the order of the text, which blocks need not have. Those of inlined functions have none.
    void order_sums() {
        const auto function = [&](ValueId sum) { return at(sites_.at(sum)).function; };
        const auto place = [&](ValueId sum) {
            const SourceLocation location = at(sites_.at(sum)).inst.location;
            return std::pair(location.line, location.column);
        };
        const bool is_one = std::all_of(sums_.begin(), sums_.end(),
                                        [&](ValueId sum) { return function(sum) == function(sums_.front()); });
        if (is_one)
            std::stable_sort(sums_.begin(), sums_.end(), [&](ValueId x, ValueId y) { return place(x) < place(y); });
    }

    void fuse(ValueId sum, bool of_one_use) {
        const Site& site = sites_.at(sum);
        GraphInstruction& instruction = at(site);
        const ptx::Instruction old = instruction.inst;
        if (old.form == site.family->fma) return;
        const Source a = source(old[Role::a]), b = source(old[Role::b]);
        const auto goes_in = [&](const Source& source) {
            auto found = eligible_.find(source.product);
            return found != eligible_.end() && found->second && (uses_[source.product].size() == 1) == of_one_use;
        };
        const bool fits_a = goes_in(a), fits_b = goes_in(b);
        if ((!fits_a && !fits_b) || a.product == b.product) return;
        const bool first = fits_a && (!fits_b || uses_[a.product].size() <= uses_[b.product].size());
        const Source &chosen = first ? a : b, &other = first ? b : a;
        if (other.product != no_value) eligible_[other.product] = false;
        const ptx::Instruction& product = at(sites_.at(chosen.product)).inst;
        const bool minus = site.kind == Kind::difference;
        const bool negate_product = chosen.negated != (minus && !first), negate_addend = minus && first;
        ptx::Instruction& inst = instruction.inst;
        inst.form = site.family->fma;
        inst.operand_count = 4;
        inst.modifiers[inst.modifier_count++] = Modifier::rn;
        inst.operands[1] = signed_operand(site, product[Role::a], negate_product);
        inst.operands[2] = product[Role::b];
        inst.operands[3] = signed_operand(site, old[first ? Role::b : Role::a], negate_addend);
    }

    Operand signed_operand(const Site& site, const Operand& operand, bool negate) {
        if (!negate) return operand;
        GraphInstruction negation = at(site);
        negation.previous.clear();
        ptx::Instruction& inst = negation.inst;
        const ptx::Instruction original = inst;
        inst = {};
        inst.form = site.family->neg;
        inst.operand_count = 2;
        inst.types[0] = site.type;
        inst.location = original.location;
        const ptx::ScalarType type = graph_.values[original.operands[0].index].type;
        const Operand result = register_operand(new_value(graph_, type, site.block), operand.type);
        inst.operands[0] = result;
        inst.operands[1] = operand;
        negations_.push_back({site.block, site.index, std::move(negation)});
        return result;
    }

    struct Insertion {
        BlockId block;
        std::size_t index;
        GraphInstruction instruction;
    };

    /// From the back, so that the places stay right.
    void insert_negations() {
        std::stable_sort(negations_.begin(), negations_.end(),
                         [](const Insertion& x, const Insertion& y) { return x.index > y.index; });
        for (Insertion& insertion : negations_) {
            auto& list = graph_.blocks[insertion.block].instructions;
            list.insert(list.begin() + std::ptrdiff_t(insertion.index), std::move(insertion.instruction));
        }
    }

    FunctionGraph& graph_;
    std::vector<BlockId> line_; ///< by block: the first of its line of blocks
    std::vector<BlockId> next_; ///< by block: the one behind it in its line
    std::unordered_set<ValueId> launch_constants_;
    std::unordered_map<ValueId, Site> sites_;
    std::vector<ValueId> products_, sums_;
    std::unordered_map<ValueId, std::vector<Use>> uses_;
    std::unordered_map<ValueId, bool> eligible_;
    std::vector<Insertion> negations_;
};

} // namespace

void contract_products(FunctionGraph& graph) {
    Contraction(graph).run();
}

} // namespace ptarmigan::translator
