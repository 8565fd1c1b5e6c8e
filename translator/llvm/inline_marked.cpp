// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/inline_marked.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/InlineCost.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace ptarmigan::translator {

namespace {

void forget_aliases(llvm::Function& function, llvm::CallBase& call) {
    for (const llvm::Argument& argument : function.args()) {
        function.removeParamAttr(argument.getArgNo(), llvm::Attribute::NoAlias);
        call.removeParamAttr(argument.getArgNo(), llvm::Attribute::NoAlias);
    }
}

} // namespace

llvm::PreservedAnalyses InlineMarked::run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
    auto& functions = analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
    const auto assumptions = [&](llvm::Function& function) -> llvm::AssumptionCache& {
        return functions.getResult<llvm::AssumptionAnalysis>(function);
    };
    for (llvm::Function& function : llvm::make_early_inc_range(module)) {
        if (function.isDeclaration() || !function.hasFnAttribute(llvm::Attribute::AlwaysInline) ||
            !llvm::isInlineViable(function).isSuccess())
            continue;
        llvm::SmallSetVector<llvm::CallBase*, 16> calls;
        for (llvm::User* user : function.users())
            if (auto* call = llvm::dyn_cast<llvm::CallBase>(user); call && call->getCalledFunction() == &function)
                calls.insert(call);
        for (llvm::CallBase* call : calls) {
            llvm::InlineFunctionInfo info(assumptions);
            if (!notes_aliases_) forget_aliases(function, *call);
            llvm::InlineFunction(*call, info, /*MergeAttributes=*/true,
                                 &functions.getResult<llvm::AAManager>(function));
        }
        function.removeDeadConstantUsers();
        if (!function.isDefTriviallyDead()) continue;
        functions.clear(function, function.getName());
        function.eraseFromParent();
    }
    return llvm::PreservedAnalyses::none();
}

} // namespace ptarmigan::translator
