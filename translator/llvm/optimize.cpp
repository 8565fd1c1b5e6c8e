// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/optimize.h"

#include "translator/llvm/add_masks_by_choice.h"
#include "translator/llvm/bfloats_as_integers.h"
#include "translator/llvm/chains_ahead.h"
#include "translator/llvm/choices_as_integers.h"
#include "translator/llvm/compare_halves_as_floats.h"
#include "translator/llvm/defer_nan_choice.h"
#include "translator/llvm/drop_idle_fences.h"
#include "translator/llvm/drop_unchanged_saves.h"
#include "translator/llvm/fast_selection_forms.h"
#include "translator/llvm/hide_bit_selectors.h"
#include "translator/llvm/hide_repeated_loads.h"
#include "translator/llvm/hide_sign_sources.h"
#include "translator/llvm/hide_truncations.h"
#include "translator/llvm/hoist_from_steps.h"
#include "translator/llvm/inline_marked.h"
#include "translator/llvm/jam_steps.h"
#include "translator/llvm/join_byte_products.h"
#include "translator/llvm/join_column_stores.h"
#include "translator/llvm/join_step_loops.h"
#include "translator/llvm/lock_fences.h"
#include "translator/llvm/masks_as_integers.h"
#include "translator/llvm/part_loads.h"
#include "translator/llvm/part_masks_and_integers.h"
#include "translator/llvm/promote_slots.h"
#include "translator/llvm/register_phases.h"
#include "translator/llvm/sink_nan_canonicalization.h"
#include "translator/llvm/table_look_ups.h"

#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

namespace ptarmigan::translator {

static bool lacks_mask_registers(const llvm::TargetMachine& machine) {
    const llvm::StringRef features = machine.getTargetFeatureString();
    return machine.getTargetTriple().isX86() && !features.contains("+avx512f") && machine.getTargetCPU() != "x86-64-v4";
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine, Optimization optimization) {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    // Generated code has no C library: no function of a module is what its name may suggest.
    llvm::TargetLibraryInfoImpl no_library;
    no_library.disableAllFunctions();
    functions.registerPass([&] { return llvm::TargetLibraryAnalysis(no_library); });
    llvm::PassBuilder builder(&machine);
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);

    // Before inlining: registers out of their allocas, so that what is inlined is small.
    llvm::FunctionPassManager early;
    early.addPass(PromoteSlots());
    const bool full = optimization == Optimization::full;
    if (full) {
        early.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
        early.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
        early.addPass(DropUnchangedSaves());
    }

    llvm::FunctionPassManager late;
    late.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    if (full) {
        late.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
        late.addPass(JoinStepLoops());
        late.addPass(DropIdleFences());          // before the passes that look through conversions
        late.addPass(SinkNanCanonicalization()); // before InstCombine, which takes the pattern apart
        late.addPass(DeferNanChoice());          // likewise
        late.addPass(HoistFromSteps());
        late.addPass(JoinColumnStores()); // before InstCombine makes one load of those from different memory
        late.addPass(llvm::InstCombinePass());
        late.addPass(llvm::SimplifyCFGPass());
        late.addPass(TableLookUps(machine));
        late.addPass(JoinByteProducts());
        late.addPass(HoistGathered()); // which has seen which addresses are the same in all steps
        late.addPass(JamSteps());
        late.addPass(RegisterPhases());
        late.addPass(ChainsAhead());
    }
    const bool is_aarch64 = machine.getTargetTriple().isAArch64();
    if (full && (lacks_mask_registers(machine) || is_aarch64))
        late.addPass(MasksAsIntegers(/*spread_bits=*/is_aarch64));
    late.addPass(BfloatsAsIntegers());
    if (full) late.addPass(CompareHalvesAsFloats());
    if (is_aarch64) late.addPass(ChoicesAsIntegers());
    if (lacks_mask_registers(machine)) {
        late.addPass(HideTruncations());
    } else if (machine.getTargetTriple().isX86()) {
        late.addPass(AddMasksByChoice());
        late.addPass(PartMasksAndIntegers());
        late.addPass(HideBitSelectors());
        late.addPass(HideSignSources());
    }
    if (!full && machine.getTargetTriple().isX86()) late.addPass(FastSelectionForms());
    if (!full) late.addPass(HideRepeatedLoads());
    if (full && machine.getTargetTriple().isX86()) late.addPass(PartLoads());
    if (machine.getTargetTriple().isX86()) late.addPass(LockFences());

    llvm::ModulePassManager passes;
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(early)));
    passes.addPass(InlineMarked(/*for_short_code=*/!full));
    passes.addPass(llvm::GlobalDCEPass()); // builtins, once inlined
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(late)));
    passes.run(module, modules);
}

} // namespace ptarmigan::translator
