// SPDX-License-Identifier: Apache-2.0
// The stages in a row: see README.md of the parent folder for the picture.
#include "translator/compile.h"

#include "frontend/module_loader.h"
#include "translator/analysis/build/build_graph.h"
#include "translator/analysis/graph/dump_graph.h"
#include "translator/analysis/plans/barrier_regions.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/shapes/shapes.h"
#include "translator/analysis/waits/meeting_places.h"
#include "translator/analysis/waits/settle_races.h"
#include "translator/analysis/waits/spin_loops.h"
#include "translator/builtins/builtins.h"
#include "translator/emit/emit_kernel.h"
#include "translator/jit/backend.h"
#include "translator/jit/enter_stage.h"
#include "translator/llvm/codegen.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <stdexcept>

namespace ptarmigan::translator {
namespace {

/// Runs a callable with a large stack and returns its result.
template <typename Work> auto on_large_stack(Work&& work) {
    decltype(work()) result;
    std::function<void()> call = [&] { result = work(); };
    run_with_large_stack([](void* argument) { (*static_cast<std::function<void()>*>(argument))(); }, &call);
    return result;
}

std::string dump_analysis(ptx::ModuleLoader& loader, const std::string& kernel, const BlockShape& shape,
                          const CompileOptions& options, const std::string& stage) {
    const auto function = loader.module().find_function(kernel);
    if (!function) throw std::invalid_argument("no kernel '" + kernel + "'");
    FunctionGraph graph =
        build_graph(loader, *function, {shape, *function, false, options.optimization == Optimization::full});
    if (stage == "cfg" || stage == "ssa") return dump_graph(graph);
    const unsigned width = options.lane_width ? options.lane_width : 32;
    compute_shapes(graph, shape, width, options);
    if (stage == "shapes") return dump_graph(graph, true);
    BarrierPlan barriers = plan_barriers(graph, shape);
    SettledRaces races;
    if (barriers.splittable && !may_spin(graph, options.waiting_loops) && !may_meet_elsewhere(graph))
        races = settle_races(graph, shape, width, Meeting::barrier);
    if (races.changed) {
        compute_shapes(graph, shape, width, options);
        barriers = plan_barriers(graph, shape);
    }
    std::string text = dump_barriers(graph, barriers);
    if (races.left) text += "on fibers, for races between warps\n";
    if (!barriers.splittable) {
        text += dump_plan(graph, plan_linearization(graph, whole_graph(graph)));
        return text;
    }
    for (const RegionView& region : barriers.regions) text += dump_plan(graph, plan_linearization(graph, region));
    return text;
}

/// The kernel's module, whole: what it calls of the builtins included.
std::unique_ptr<llvm::Module> emit_module(llvm::LLVMContext& context, ptx::ModuleLoader& loader,
                                          const std::string& kernel, const BlockShape& shape,
                                          const CompileOptions& options, KernelProperties& properties,
                                          CompileProgress* progress) {
    enter_stage(progress, CompileProgress::Stage::analysis);
    auto module = emit_kernel(context, loader, kernel, shape, options, properties, progress);
    enter_stage(progress, CompileProgress::Stage::emission); // its end: a test's fault finds all chosen
    link_builtins(*module, options.target);
    return module;
}

bool is_analysis_stage(const std::string& stage) {
    return stage == "cfg" || stage == "ssa" || stage == "shapes" || stage == "plan";
}

bool is_module_stage(const std::string& stage) {
    return stage == "llvm" || stage == "llvm-opt" || stage == "asm";
}

} // namespace

CompiledKernel compile_here(ptx::ModuleLoader& loader, const std::string& kernel, const BlockShape& shape,
                            const CompileOptions& options, CompileTimes* times, CompileProgress* progress) {
    prepare_llvm();
    CompiledKernel compiled;
    compiled.form = options;
    llvm::LLVMContext context;
    context.setDiscardValueNames(true); // only dumps show them
    const double start = thread_microseconds();
    const std::unique_ptr<llvm::Module> module =
        emit_module(context, loader, kernel, shape, options, compiled.properties, progress);
    if (times) times->emit += thread_microseconds() - start;
    compiled.image = build_image(*module, options.target, times, options.optimization, progress);
    return compiled;
}

CompiledKernel compile(ptx::ModuleLoader& loader, const std::string& kernel, const BlockShape& shape,
                       const CompileOptions& options, CompileTimes* times) {
    return on_large_stack([&] { return compile_here(loader, kernel, shape, options, times, nullptr); });
}

std::string dump_here(ptx::ModuleLoader& loader, const std::string& kernel, const BlockShape& shape,
                      const CompileOptions& options, const std::string& stage, CompileProgress* progress) {
    if (!is_analysis_stage(stage) && !is_module_stage(stage))
        throw std::invalid_argument("unknown stage '" + stage + "' (cfg, ssa, shapes, plan, llvm, llvm-opt, asm)");
    if (is_analysis_stage(stage)) {
        enter_stage(progress, CompileProgress::Stage::analysis);
        return dump_analysis(loader, kernel, shape, options, stage);
    }
    prepare_llvm();
    llvm::LLVMContext context;
    KernelProperties properties;
    const std::unique_ptr<llvm::Module> module =
        emit_module(context, loader, kernel, shape, options, properties, progress);
    return dump_module(*module, options.target, stage, options.optimization, progress);
}

std::string dump(ptx::ModuleLoader& loader, const std::string& kernel, const BlockShape& shape,
                 const CompileOptions& options, const std::string& stage) {
    return on_large_stack([&] { return dump_here(loader, kernel, shape, options, stage, nullptr); });
}

} // namespace ptarmigan::translator
