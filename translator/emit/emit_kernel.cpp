// SPDX-License-Identifier: Apache-2.0
// One kernel, whole: the region functions and the CTA driver (region form) or the step function (fiber form), and the
// functions that are called for real.
#include "translator/emit/emit_kernel.h"

#include "translator/analysis/arithmetic/unknown_operands.h"
#include "translator/analysis/build/build_graph.h"
#include "translator/analysis/build/call_frames.h"
#include "translator/analysis/build/callee_graph.h"
#include "translator/analysis/loops/count_rounds.h"
#include "translator/analysis/loops/plan_streaming.h"
#include "translator/analysis/memory/alignment.h"
#include "translator/analysis/memory/cta_order.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/shapes/shapes.h"
#include "translator/analysis/waits/spin_loops.h"
#include "translator/builtins/builtins.h"
#include "translator/emit/callees.h"
#include "translator/emit/choose_forms.h"
#include "translator/emit/graph_emitter.h"
#include "translator/emit/region_form.h"
#include "translator/jit/image.h"
#include "translator/late_call.h"
#include "translator/llvm/table_look_ups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

namespace ptarmigan::translator {

namespace {

/// The frames of functions that are called late are not known: of each byte of the context's stack limit (1,024 if
/// nobody set it) they get that many.
constexpr std::uint32_t late_stack_scale = 16;

class KernelEmitter {
public:
    KernelEmitter(llvm::LLVMContext& context, ptx::ModuleLoader& loader, ptx::FunctionId kernel,
                  const BlockShape& shape, const CompileOptions& options, CompileProgress* progress)
        : unit_(context, loader, kernel, shape, options), graph_options_{shape, kernel, options.late_copies,
                                                                         options.optimization == Optimization::full},
          layout_(shared_layout(loader, kernel)), graph_(build_callee_graph(loader, kernel, graph_options_, layout_)),
          progress_(progress) {
        unit_.shared = layout_;
    }

    /// The kernel, or `late_function`, which its code calls late: in the same forms.
    std::unique_ptr<llvm::Module> run(KernelProperties& properties, std::optional<ptx::FunctionId> late_function) {
        if (unit_.options.optimization == Optimization::least) properties.work = count_rounds(graph_);
        forms_ = choose_forms(unit_, graph_, graph_options_, progress_);
        if (progress_) progress_->stage = CompileProgress::Stage::emission;
        if (!unit_.fiber_form && !unit_.gives_turns)
            properties.streamed_bytes = forms_.streamed_bytes ? *forms_.streamed_bytes : plan_streaming(graph_);
        note_frame(unit_.kernel, graph_);
        if (late_function)
            begin_late_function(*late_function);
        else if (unit_.fiber_form)
            emit_fiber_form();
        else
            properties.frame_size = emit_region_form(unit_, graph_, forms_.barriers);
        while (!unit_.callee_queue.empty()) {
            ptx::FunctionId callee = unit_.callee_queue.back();
            unit_.callee_queue.pop_back();
            emit_callee(callee);
        }
        unit_.finish_debug_info();
        link_builtins(*unit_.module, unit_.options.target);
        properties.uses_fibers = unit_.fiber_form;
        properties.gives_turns = unit_.gives_turns;
        properties.lane_width = unit_.width;
        properties.step_count = unit_.step_count();
        properties.static_shared = std::max(unit_.shared.static_size, unit_.shared.dynamic_offset); // with padding
        if (!late_function) note_shared_bytes(*unit_.module, properties.static_shared);
        if (unit_.reserved_shared) properties.reserved_shared = reserved_shared_bytes;
        properties.interleaved_bytes = graph_.interleaved_bytes;
        size_stack(properties);
        properties.spins = forms_.spins;
        properties.could_spin = forms_.could_spin;
        properties.continues_in_y = continues_in_y(graph_);
        properties.ctas_in_row = forms_.ctas_in_row;
        properties.addresses = std::move(forms_.addresses);
        properties.alignment_demands = std::move(forms_.alignment_demands);
        properties.accesses = unit_.access_forms();
        return std::move(unit_.module);
    }

private:
    void note_frame(ptx::FunctionId id, const FunctionGraph& graph) {
        CallFrame& frame = frames_[id];
        frame.bytes = frame_bytes(graph);
        for (const ptx::Variable& variable : unit_.loader.body(graph.function).variables)
            if (variable.space == ptx::StateSpace::local) frame.own_bytes += variable.size;
        frame.callees = possible_callees(graph, &calls_late_);
        uses_stack_ = uses_stack_ || graph.uses_stack;
    }

    /// What callee_queue then begins with is entered from outside.
    void begin_late_function(ptx::FunctionId id) {
        if (!unit_.fiber_form) throw std::logic_error("a function is called late by a kernel without fibers");
        llvm::Function* function = unit_.callee(id);
        function->setLinkage(llvm::Function::ExternalLinkage);
        function->setName(entry_symbol);
    }

    /// What the frames take is known, as ptxas knows it; the context's limit is for recursion and alloca only.
    void size_stack(KernelProperties& properties) {
        const FrameDepth depth = frame_depth(frames_, unit_.kernel);
        const std::uint64_t bytes = depth.bytes + (uses_stack_ ? FunctionGraph::behind_stack_bytes : 0);
        properties.local_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, UINT32_MAX));
        properties.unbounded_stack = depth.recursive || uses_stack_ || calls_late_;
        properties.stack_scale = calls_late_ ? std::max(depth.scale, late_stack_scale) : depth.scale;
    }

    void emit_body(GraphEmitter& emitter, const FunctionGraph& graph, RegionInterface& interface) {
        RegionView view = whole_graph(graph);
        if (unit_.width > 1 && unit_.divergence == DivergenceForm::program_counters) {
            emitter.emit_program_counters(view, interface);
            return;
        }
        const LinearPlan plan = plan_region(unit_, graph, view);
        const ProductGroups groups(graph);
        const LoopAccumulators accumulators = loop_accumulators(unit_, graph, groups, plan);
        interface.product_groups = &groups;
        interface.accumulators = &accumulators;
        emitter.emit_masks(plan, interface);
    }

    /// void step_main(CtaContext*, i32 step)
    void emit_fiber_form() {
        auto* type = llvm::FunctionType::get(
            llvm::Type::getVoidTy(unit_.context),
            {llvm::PointerType::get(unit_.context, 0), llvm::Type::getInt32Ty(unit_.context)}, false);
        llvm::Function* function = unit_.create_function(type, entry_symbol, llvm::Function::ExternalLinkage);
        GraphEmitter emitter(unit_, graph_, function, function->getArg(0), function->getArg(1));
        RegionInterface interface;
        interface.entry_mask_full = !unit_.partial_last_step();
        interface.exit = [&] { emitter.ir().CreateRetVoid(); };
        emit_body(emitter, graph_, interface);
    }

    void emit_callee(ptx::FunctionId id) {
        FunctionGraph graph = build_callee_graph(unit_.loader, id, graph_options_, unit_.shared);
        if (progress_) progress_->statements += count_statements(graph);
        DivergenceForm form = unit_.divergence;
        if (unit_.width > 1 && (!graph.forest.reducible || may_spin(graph, unit_.options.waiting_loops)))
            form = DivergenceForm::program_counters;
        if (forms_.hands_over) mark_hand_over_points_of(unit_, graph, forms_);
        compute_shapes(graph, unit_.shape, unit_.width, unit_.options, form);
        mark_unknown_operands(graph);
        plan_alignment(graph, unit_.options.aligned_parameters);
        note_frame(id, graph);
        llvm::Function* function = unit_.callees.at(id);
        GraphEmitter emitter(unit_, graph, function, function->getArg(0), function->getArg(1));
        RegionInterface interface;
        interface.frame_offset = function->getArg(3);
        interface.enter = [&] { emitter.check_stack(); };
        interface.exit = [&] { emitter.ir().CreateRetVoid(); };
        // A step of one lane calls only what its lane calls.
        if (unit_.width == 1)
            interface.entry_mask_full = true;
        else
            interface.entry_mask_bits = function->getArg(2);
        DivergenceForm kernel_form = unit_.divergence;
        unit_.divergence = form;
        emit_body(emitter, graph, interface);
        unit_.divergence = kernel_form;
    }

    KernelUnit unit_;
    GraphOptions graph_options_;
    const SharedLayout layout_;
    FunctionGraph graph_;
    KernelForms forms_;
    std::map<ptx::FunctionId, CallFrame> frames_; ///< of what has been emitted
    bool uses_stack_ = false, calls_late_ = false;
    CompileProgress* progress_;
};

} // namespace

std::unique_ptr<llvm::Module> emit_kernel(llvm::LLVMContext& context, ptx::ModuleLoader& loader,
                                          const std::string& name, const BlockShape& shape,
                                          const CompileOptions& options, KernelProperties& properties,
                                          CompileProgress* progress) {
    const auto [kernel, late] = split_late_name(name);
    const ptx::Module& module = loader.module();
    const std::optional<ptx::FunctionId> function = module.find_function(kernel);
    if (!function || !module.functions[*function].is_entry)
        throw std::invalid_argument(fmt::format("no kernel '{}' in the module", kernel));
    std::optional<ptx::FunctionId> late_function;
    if (!late.empty()) late_function = module.find_function(late);
    if (!late.empty() && (!late_function || module.functions[*late_function].is_entry ||
                          module.functions[*late_function].is_declaration))
        throw std::invalid_argument(fmt::format("no function '{}' in the module", late));
    return KernelEmitter(context, loader, *function, shape, options, progress).run(properties, late_function);
}

} // namespace ptarmigan::translator
