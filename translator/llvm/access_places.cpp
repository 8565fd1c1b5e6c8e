// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/access_places.h"

#include <llvm/CodeGen/MachineFunction.h>
#include <llvm/CodeGen/MachineFunctionPass.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Instruction.h>
#include <llvm/IR/MDBuilder.h>

namespace ptarmigan::translator {
namespace {

/// Of all scopes made here, so that no others are taken for places.
constexpr const char* domain_name = "ptx places";

struct Place {
    unsigned line = 0, column = 0;
};

/// The place in a list of alias scopes; line 0 if there is none, or more than one (merged accesses).
Place place_in(const llvm::MDNode* scopes) {
    Place place;
    if (!scopes || scopes->getNumOperands() != 1) return place;
    const auto* scope = llvm::dyn_cast<llvm::MDNode>(scopes->getOperand(0));
    if (!scope || scope->getNumOperands() != 2) return place;
    const auto* name = llvm::dyn_cast<llvm::MDString>(scope->getOperand(0));
    const auto* domain = llvm::dyn_cast<llvm::MDNode>(scope->getOperand(1));
    const auto* domain_text =
        domain && domain->getNumOperands() ? llvm::dyn_cast<llvm::MDString>(domain->getOperand(0)) : nullptr;
    if (!name || !domain_text || domain_text->getString() != domain_name) return place;
    const auto [line, column] = name->getString().split(':');
    if (line.getAsInteger(10, place.line) || column.getAsInteger(10, place.column)) return {};
    return place;
}

class PlaceRestorer : public llvm::MachineFunctionPass {
public:
    static char ID;
    PlaceRestorer() : MachineFunctionPass(ID) {}

    bool runOnMachineFunction(llvm::MachineFunction& function) override {
        llvm::DISubprogram* scope = function.getFunction().getSubprogram();
        for (llvm::MachineBasicBlock& block : function)
            for (llvm::MachineInstr& instruction : block) {
                if (!scope || !instruction.hasOneMemOperand()) continue;
                const Place place = place_in((*instruction.memoperands_begin())->getAAInfo().Scope);
                if (place.line == 0) continue;
                instruction.setDebugLoc(
                    llvm::DILocation::get(function.getFunction().getContext(), place.line, place.column, scope));
            }
        return scope != nullptr;
    }
    void getAnalysisUsage(llvm::AnalysisUsage& usage) const override {
        usage.setPreservesAll();
        MachineFunctionPass::getAnalysisUsage(usage);
    }
};
char PlaceRestorer::ID = 0;

} // namespace

void keep_place(llvm::Instruction& access) {
    const llvm::DebugLoc& place = access.getDebugLoc();
    if (!place) return;
    llvm::LLVMContext& context = access.getContext();
    llvm::MDBuilder builder(context);
    const std::string name = std::to_string(place.getLine()) + ":" + std::to_string(place.getCol());
    llvm::MDNode* scope = builder.createAliasScope(name, builder.createAliasScopeDomain(domain_name));
    access.setMetadata(llvm::LLVMContext::MD_alias_scope, llvm::MDNode::get(context, {scope}));
}

llvm::MachineFunctionPass* create_place_restorer() {
    return new PlaceRestorer;
}

} // namespace ptarmigan::translator
