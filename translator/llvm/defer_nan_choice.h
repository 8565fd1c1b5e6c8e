// SPDX-License-Identifier: Apache-2.0
// Chooses among NaN operands of double arithmetic off the path where there are no NaNs.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Of several NaN operands the hardware keeps b, else c, else a; x86 keeps the first one, and LLVM may swap them. The
/// emitter therefore writes the result of a sum or product as (with another select for c within)
///     r = b is NaN ? quiet(b) : a op b
/// which would cost a comparison and a blend per operation. Which NaN it is matters only where its bits are seen, and
/// there one test for all results that are seen together tells whether there is a NaN at all. In each block the pass
/// takes the operations up to the next instruction with effects, lets the path go on with `a op b`, tests what leaves
/// them, and repeats them as written in a block of their own, which is entered only if there is a NaN. Loops are done
/// as a whole first where they can be (nan_free_loops.h).
class DeferNanChoice : public llvm::PassInfoMixin<DeferNanChoice> {
public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
