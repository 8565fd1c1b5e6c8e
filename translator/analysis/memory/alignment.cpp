// SPDX-License-Identifier: Apache-2.0
// One residue analysis for each access size that occurs, then a walk over the dominator tree: an address whose root was
// checked on the way needs no second check, because the lanes that come here have come by there.
#include "translator/analysis/memory/alignment.h"

#include "translator/analysis/arithmetic/residues.h"
#include "translator/analysis/graph/form_queries.h"

#include <map>
#include <memory>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;
using ptx::Role;
using Root = Residue::Root;

bool is_async_copy(const ptx::Instruction& inst) {
    return inst.form == FormId::cp_async_ca || inst.form == FormId::cp_async_ca_hint ||
           inst.form == FormId::cp_async_cg || inst.form == FormId::cp_async_cg_hint;
}

/// ldmatrix and stmatrix: a lane's address is one of 16 bytes. wmma's are of a whole matrix: its handler sees to them.
unsigned matrix_row_bytes(const ptx::Instruction& inst) {
    return opcode(inst) == "wmma" ? 0 : 16;
}

bool names_memory(const Operand& operand) {
    return operand.kind == Operand::Kind::address || operand.kind == Operand::Kind::variable;
}

class AlignmentPlanner {
public:
    AlignmentPlanner(FunctionGraph& graph, bool parameters_aligned)
        : graph_(graph), parameters_aligned_(parameters_aligned), successors_(successor_edges(graph)),
          predecessors_(reverse_edges(successors_)), tree_(successors_, predecessors_, 0),
          checked_(graph.blocks.size()) {}

    std::vector<AlignmentDemand> run() {
        for (BlockId block : tree_.order()) {
            if (tree_.parent(block) != no_block) checked_[block] = checked_[tree_.parent(block)];
            for (GraphInstruction& instruction : graph_.blocks[block].instructions) plan(block, instruction);
        }
        return std::move(demands_);
    }

private:
    struct Checked {
        Residue residue;
        unsigned size;
    };

    const ResidueAnalysis& residues(unsigned size) {
        std::unique_ptr<ResidueAnalysis>& analysis = analyses_[size];
        if (!analysis) analysis = std::make_unique<ResidueAnalysis>(graph_, tree_, size);
        return *analysis;
    }

    void plan(BlockId block, GraphInstruction& instruction) {
        instruction.check_alignment = 0;
        const ptx::Instruction& inst = instruction.inst;
        const unsigned size = access_bytes(inst);
        if (size <= 1) return;
        for (unsigned i = 0; i < inst.operand_count; ++i) {
            if (!names_memory(inst.operands[i])) continue;
            // The H200 does not fault on a misaligned source of a padded copy.
            bool padded = is_async_copy(inst) && inst[Role::src_size].kind != Operand::Kind::none;
            if (padded && ptx::form_info(inst.form).operands[i].role == Role::a) continue;
            if (!settled(block, inst, inst.operands[i], size)) instruction.check_alignment |= std::uint16_t(1u << i);
        }
    }

    /// True if nothing is left to do at run time; notes what is demanded or will have been checked.
    bool settled(BlockId block, const ptx::Instruction& inst, const Operand& operand, unsigned size) {
        const Residue residue = residues(size).of(operand);
        if (residue.root == Root::none) return residue.offset == 0;
        if (residue.root == Root::parameter && parameters_aligned_) {
            demand({residue.id, std::uint8_t(size - 1), std::uint8_t(residue.offset)});
            return true;
        }
        if (residue.root == Root::pending || (residue.root == Root::value && residue.id == no_value)) return false;
        for (const Checked& earlier : checked_[block])
            if (earlier.size >= size && earlier.residue.root == residue.root && earlier.residue.id == residue.id &&
                (earlier.residue.offset - residue.offset) % size == 0)
                return true;
        if (inst.guard == ptx::no_id) checked_[block].push_back({residue, size});
        return false;
    }

    void demand(const AlignmentDemand& wanted) {
        for (AlignmentDemand& known : demands_) {
            unsigned common = std::min(known.mask, wanted.mask);
            if (known.offset != wanted.offset || ((known.residue ^ wanted.residue) & common) != 0) continue;
            if (wanted.mask > known.mask) known = wanted;
            return;
        }
        demands_.push_back(wanted);
    }

    FunctionGraph& graph_;
    const bool parameters_aligned_;
    const Edges successors_, predecessors_;
    const DominatorTree tree_;
    std::map<unsigned, std::unique_ptr<ResidueAnalysis>> analyses_;
    std::vector<std::vector<Checked>> checked_; ///< by block: on every way to its end
    std::vector<AlignmentDemand> demands_;
};

} // namespace

unsigned access_bytes(const ptx::Instruction& inst) {
    const ptx::FormInfo& form = ptx::form_info(inst.form);
    if (!form.lowered || !ptx::any(form.effects, ptx::Effects::load | ptx::Effects::store | ptx::Effects::atomic))
        return 0;
    if (is_async_copy(inst)) return unsigned(inst[Role::size].value);
    if (inst[Role::mbar].kind != Operand::Kind::none) return 0; // the service checks, each address by its own measure
    if (form.chapter == "texture" || form.chapter == "surface") return 0; // handles, not addresses
    if (form.chapter == "tensor_memory") return 0; // no addresses of memory but those that the runtime checks
    if (form.chapter == "matrix") return matrix_row_bytes(inst);
    return ptx::byte_size(inst.type()) * inst.vector_size;
}

std::vector<AlignmentDemand> plan_alignment(FunctionGraph& graph, bool parameters_aligned) {
    return AlignmentPlanner(graph, parameters_aligned).run();
}

} // namespace ptarmigan::translator
