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

/// A call takes about as much code as so many instructions of its callee.
constexpr std::size_t call_size = 16;

/// Copies of the function in the place of its calls would be more code than the calls are.
bool is_shorter_once(const llvm::Function& function, std::size_t calls) {
    return (calls - 1) * function.getInstructionCount() > calls * call_size;
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
        if (for_short_code_ && !calls.empty() && is_shorter_once(function, calls.size())) {
            function.removeFnAttr(llvm::Attribute::AlwaysInline);
            function.addFnAttr(llvm::Attribute::NoInline);
            continue;
        }
        for (llvm::CallBase* call : calls) {
            llvm::InlineFunctionInfo info(assumptions);
            if (for_short_code_) forget_aliases(function, *call);
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
