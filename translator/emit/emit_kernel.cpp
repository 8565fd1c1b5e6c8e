// SPDX-License-Identifier: Apache-2.0
// One kernel, whole: decides lane width and forms, emits the region functions and the CTA driver (region form) or the
// step function (fiber form), and the functions that are called for real.
#include "translator/emit/emit_kernel.h"

#include "translator/analysis/arithmetic/unknown_operands.h"
#include "translator/analysis/build/build_graph.h"
#include "translator/analysis/build/call_frames.h"
#include "translator/analysis/build/callee_graph.h"
#include "translator/analysis/build/late_targets.h"
#include "translator/analysis/build/thread_branches.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/split_block.h"
#include "translator/analysis/graph/verify_graph.h"
#include "translator/analysis/loops/count_rounds.h"
#include "translator/analysis/loops/plan_prefetch.h"
#include "translator/analysis/loops/plan_streaming.h"
#include "translator/analysis/loops/plan_turns.h"
#include "translator/analysis/loops/reroll_loops.h"
#include "translator/analysis/memory/alignment.h"
#include "translator/analysis/memory/cta_order.h"
#include "translator/analysis/memory/shared_edges.h"
#include "translator/analysis/plans/barrier_regions.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/shapes/lane_agreement.h"
#include "translator/analysis/shapes/segment_versions.h"
#include "translator/analysis/shapes/shapes.h"
#include "translator/analysis/waits/converged_waits.h"
#include "translator/analysis/waits/counter_goals.h"
#include "translator/analysis/waits/hand_over_points.h"
#include "translator/analysis/waits/joined_votes.h"
#include "translator/analysis/waits/meeting_places.h"
#include "translator/analysis/waits/region_waits.h"
#include "translator/analysis/waits/settle_races.h"
#include "translator/analysis/waits/spin_loops.h"
#include "translator/analysis/waits/step_order.h"
#include "translator/analysis/waits/thread_walks.h"
#include "translator/analysis/waits/warp_talk.h"
#include "translator/builtins/builtins.h"
#include "translator/emit/choose_width.h"
#include "translator/emit/graph_emitter.h"
#include "translator/emit/region_driver.h"
#include "translator/jit/image.h"
#include "translator/kernel_abi.h"
#include "translator/late_call.h"
#include "translator/llvm/long_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace ptarmigan::translator {

namespace {

/// Every function that a graph may call for real, of code that is made with it.
std::vector<ptx::FunctionId> possible_callees(const FunctionGraph& graph, bool* calls_late = nullptr) {
    std::vector<ptx::FunctionId> callees = graph.real_calls;
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            if (!ptx::any(ptx::form_info(inst.form).effects, ptx::Effects::call) ||
                inst[ptx::Role::f].kind == ptx::Operand::Kind::function)
                continue;
            std::vector<ptx::FunctionId> targets = indirect_targets(graph, instruction);
            if (is_late_call(*graph.module, targets)) {
                if (calls_late) *calls_late = true;
                continue;
            }
            callees.insert(callees.end(), targets.begin(), targets.end());
        }
    return callees;
}

/// With more statements than this a kernel that would have program counters is compiled lane by lane instead: each
/// block gets masks and a way back to a dispatcher that knows all blocks, which took 1.4 ms a statement for 12,149 of
/// them.
constexpr unsigned most_with_counters = 3000;

/// With more statements than this quick code of a kernel whose lanes count on their warp being one step is made lane by
/// lane, with a hand-over at each place where they do: it takes a quarter of the time to make, and ten times as long to
/// run.
constexpr unsigned longest_of_quick_warps = 4000;

unsigned count_statements(const FunctionGraph& graph) {
    std::size_t statements = 0;
    for (const Block& block : graph.blocks) statements += block.instructions.size();
    return unsigned(statements);
}

/// What all instructions together do.
ptx::Effects effects_of(const FunctionGraph& graph) {
    ptx::Effects effects = ptx::Effects::pure;
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions)
            effects = effects | ptx::form_info(instruction.inst.form).effects;
    return effects;
}

/// A copy of the async proxy reads global memory: a load, or a reduction. Loads complete at an mbarrier, stores do not.
bool reads_global_in_bulk(const FunctionGraph& graph) {
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            const ptx::Effects effects = ptx::form_info(inst.form).effects;
            if (!ptx::any(effects, ptx::Effects::async) || !ptx::any(effects, ptx::Effects::load)) continue;
            if (ptx::any(effects, ptx::Effects::atomic) || inst[ptx::Role::mbar].kind != ptx::Operand::Kind::none)
                return true;
        }
    return false;
}

/// A step waits in some instruction for what only another one may do. Who sleeps does not.
bool suspends_steps(const FunctionGraph& graph) {
    return std::any_of(graph.blocks.begin(), graph.blocks.end(), [](const Block& block) {
        return std::any_of(block.instructions.begin(), block.instructions.end(), [](const GraphInstruction& i) {
            return i.inst.form != ptx::FormId::nanosleep &&
                   ptx::any(ptx::form_info(i.inst.form).effects, ptx::Effects::waits);
        });
    });
}

bool touches_shared(const FunctionGraph& graph) {
    return std::any_of(graph.blocks.begin(), graph.blocks.end(), [](const Block& block) {
        return std::any_of(block.instructions.begin(), block.instructions.end(),
                           [](const GraphInstruction& i) { return i.inst.space == ptx::StateSpace::shared; });
    });
}

/// What all functions together do that are called for real.
struct Callees {
    ptx::Effects effects = ptx::Effects::pure;
    bool spin = false;         ///< some wait for memory
    bool could_spin = false;   ///< some would with WaitingLoops::all
    bool exit_threads = false; ///< threads exit in some
    bool talk = false;         ///< lanes of a warp talk through volatile shared memory
    bool read_in_bulk = false; ///< reads_global_in_bulk()
    CalledFunctions called;
    bool late = false; ///< some are called late
    /// Lanes wait in them, or leave them, each by itself.
    bool need_single_lanes() const {
        return spin || exit_threads || ptx::any(effects, ptx::Effects::barrier | ptx::Effects::convergent);
    }
    /// Functions that nobody has looked at may do everything.
    void add_late() {
        late = true;
        effects = effects | ptx::Effects::barrier | ptx::Effects::convergent | ptx::Effects::waits;
        spin = could_spin = exit_threads = talk = read_in_bulk = called.share = called.meet = true;
    }
};

void add_callees(ptx::ModuleLoader& loader, const FunctionGraph& graph, const GraphOptions& options,
                 const SharedLayout& layout, WaitingLoops waiting, std::set<ptx::FunctionId>& seen, Callees& callees) {
    bool calls_late = false;
    const std::vector<ptx::FunctionId> possible = possible_callees(graph, &calls_late);
    if (calls_late) callees.add_late();
    for (ptx::FunctionId callee : possible) {
        if (!seen.insert(callee).second) continue;
        FunctionGraph body = build_callee_graph(loader, callee, options, layout);
        callees.effects = callees.effects | effects_of(body);
        callees.spin = callees.spin || may_spin(body, waiting);
        callees.could_spin = callees.could_spin || may_spin(body, WaitingLoops::all);
        callees.exit_threads = callees.exit_threads || body.has_thread_exit;
        callees.talk = callees.talk || talks_through_volatile(body, true);
        callees.called.share = callees.called.share || touches_shared(body);
        callees.called.meet = callees.called.meet || ptx::any(effects_of(body), ptx::Effects::barrier);
        callees.read_in_bulk = callees.read_in_bulk || reads_global_in_bulk(body);
        add_callees(loader, body, options, layout, waiting, seen, callees);
    }
}

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
        if (is_quick()) properties.work = count_rounds(graph_);
        choose_forms();
        if (progress_) progress_->stage = CompileProgress::Stage::emission;
        if (!unit_.fiber_form && !unit_.gives_turns)
            properties.streamed_bytes = streamed_bytes_ ? *streamed_bytes_ : plan_streaming(graph_);
        note_frame(unit_.kernel, graph_);
        if (late_function)
            begin_late_function(*late_function);
        else if (unit_.fiber_form)
            emit_fiber_form();
        else
            properties.frame_size = emit_region_form(unit_, graph_, barriers_);
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
        if (unit_.reserved_shared) properties.reserved_shared = reserved_shared_bytes;
        properties.interleaved_bytes = graph_.interleaved_bytes;
        size_stack(properties);
        properties.spins = spins_;
        properties.could_spin = could_spin_;
        properties.continues_in_y = continues_in_y(graph_);
        properties.ctas_in_row = ctas_in_row_;
        properties.alignment_demands = std::move(alignment_demands_);
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

    void choose_forms() {
        std::set<ptx::FunctionId> seen;
        Callees callees;
        const WaitingLoops waiting = unit_.options.waiting_loops;
        add_callees(unit_.loader, graph_, graph_options_, unit_.shared, waiting, seen, callees);
        const bool uses_shared = !graph_.shared.empty(), collectives = has_collectives(graph_);
        const bool talks = talks_through_volatile(graph_, uses_shared) || (callees.talk && uses_shared) ||
                           (talks_without_barrier(graph_) && !walk_threads(graph_, unit_.shape)) ||
                           (!is_quick() && hands_over_through_global());
        const bool whole_warp = collectives || talks;
        unit_.width = unit_.options.lane_width;
        if (!unit_.width)
            unit_.width = is_quick() ? width_of_quick_code(callees) : natural_width(unit_.options.target, whole_warp);
        // What is asked for may be slow, but not wrong; random schedules stand for all that the manual allows.
        else if (unit_.width < abi::warp_size && !unit_.options.random_schedule && counts_on_one_step(callees))
            unit_.width = abi::warp_size;
        if (!unit_.options.lane_width) fit_block(collectives);
        if (unit_.width != 1 && unit_.width != 4 && unit_.width != 8 && unit_.width != 16 && unit_.width != 32)
            throw std::invalid_argument(fmt::format("lane width {} is not 1, 4, 8, 16 or 32", unit_.width));
        note_progress(whole_warp);
        const bool own_spins = may_spin(graph_, waiting);
        spins_ = own_spins || callees.spin;
        unit_.notes_writes = unit_.options.late_copies && (callees.read_in_bulk || reads_global_in_bulk(graph_));
        could_spin_ = !spins_ && (callees.could_spin || may_spin(graph_, WaitingLoops::all));
        // Waits for mbarriers that the step makes as a whole suspend it, whatever the form.
        const bool needs_counters =
            own_spins && may_spin_on_memory(graph_, waiting) && !masks_may_wait(callees, collectives);
        const bool waits_in_regions = own_spins && choose_waiting_regions(callees, collectives, whole_warp);
        if (!waits_in_regions) choose_lanes(callees, needs_counters, collectives, whole_warp);
        note_progress(whole_warp);
        if (count_statements(graph_) >= long_kernel_statements) note_long_code(*unit_.module);
        if (!waits_in_regions) // which have none
            settle_races(spins_ || callees.need_single_lanes() ||
                             ptx::any(effects_of(graph_) | callees.effects, ptx::Effects::waits),
                         callees.called);
        bool has_points = hands_over_ && mark_hand_over_points_of(graph_);
        has_points = has_points || (hands_over_ && (!seen.empty() || callees.late)); // perhaps in a function
        if (unit_.width == 1 && !is_quick() && !spins_) reroll_loops(graph_);
        shape_for(unit_.divergence);
        if (may_have_versions(callees)) make_versions();
        if (may_have_segments(callees) && version_segments(graph_)) {
            forget_shapes();
            shape_for(unit_.divergence);
        }
        verify_graph(graph_);
        mark_unknown_operands(graph_);
        alignment_demands_ = plan_alignment(graph_, unit_.options.aligned_parameters);
        if (!is_quick() && unit_.width > 1) plan_shared_edges(graph_, unit_.shape, unit_.width);
        unit_.spins = spins_;
        unit_.fiber_form = has_points || needs_fibers(callees, collectives, waits_in_regions);
        if (!unit_.fiber_form) barriers_ = plan_barriers(graph_, unit_.shape);
        unit_.fiber_form = unit_.fiber_form || !barriers_.splittable;
        order_steps();
        unit_.gives_turns = !unit_.fiber_form && (spins_ || (unit_.options.cooperative && barriers_.has_barriers));
        if (may_take_turns()) choose_turn_loops(graph_, unit_.shape, unit_.options.barriers == BarrierForm::turns);
        if (unit_.gives_turns) choose_waiting_turns(graph_, loops_that_wait(graph_, waiting));
        if (may_have_versions(callees) && !unit_.gives_turns) ctas_in_row_ = ctas_in_row(graph_, unit_.shape);
        unit_.runs_in_rows = ctas_in_row_ > 1;
        plan_prefetch(graph_, unit_.shape, unit_.width, unit_.runs_in_rows);
        if (unit_.width == 1 && unit_.fiber_form && !unit_.options.random_schedule) gather_votes(graph_);
    }

    /// Takes out barriers that the order of the steps makes needless. Not where behind barriers others have their turn.
    void order_steps() {
        if (unit_.fiber_form || !barriers_.has_barriers || unit_.step_count() < 2 || is_quick() ||
            unit_.options.cooperative || unit_.options.barriers != BarrierForm::automatic ||
            is_long_code(*unit_.module))
            return;
        StepOrder order = drop_ordered_barriers(graph_, unit_.shape, unit_.width, barriers_);
        if (!order.changed) return;
        unit_.falling_steps = std::move(order.falling);
        barriers_ = plan_barriers(graph_, unit_.shape);
    }

    /// Masks, without anything that may wait or that is called.
    bool is_plain(const Callees& callees) const {
        return unit_.width > 1 && unit_.divergence == DivergenceForm::masks && graph_.forest.reducible && !is_quick() &&
               !spins_ && !hands_over_ && graph_.real_calls.empty() && !graph_.has_indirect_call && !callees.late &&
               unit_.cluster_size() == 1 && !unit_.options.random_schedule &&
               unit_.options.barriers != BarrierForm::fibers;
    }

    /// Nobody meets either: what is made twice is made of values and memory only.
    bool may_have_versions(const Callees& callees) const {
        using ptx::Effects;
        return is_plain(callees) && !touches_shared(graph_) &&
               !ptx::any(effects_but_of_assertions(graph_),
                         Effects::barrier | Effects::convergent | Effects::waits | Effects::async | Effects::call);
    }

    /// Where threads meet, what lies between may be made twice.
    bool may_have_segments(const Callees& callees) const {
        using ptx::Effects;
        return is_plain(callees) && ptx::any(effects_of(graph_), Effects::barrier | Effects::convergent) &&
               !ptx::any(effects_but_of_assertions(graph_), Effects::waits | Effects::async | Effects::call);
    }

    void make_versions() {
        // Bytes that a thread stores are counted once.
        const std::uint32_t streamed = plan_streaming(graph_);
        if (thread_branches(graph_)) {
            forget_shapes();
            shape_for(unit_.divergence);
        }
        const BlockId general = version_kernel(graph_);
        if (general) {
            forget_shapes();
            shape_for(unit_.divergence);
        }
        const bool in_loops = version_blocks(graph_, general + 1);
        if (in_loops) {
            forget_shapes();
            shape_for(unit_.divergence);
        }
        if (general || in_loops) streamed_bytes_ = streamed;
    }

    /// Width and divergence. `needs_counters`: lanes of a step may wait for each other. `waits_in_regions`: threads
    /// wait between barriers, if they can.
    void choose_lanes(const Callees& callees, bool needs_counters, bool collectives, bool whole_warp,
                      bool waits_in_regions = false) {
        hands_over_ = false;
        unit_.divergence = unit_.options.divergence;
        if (unit_.options.random_schedule && unit_.divergence == DivergenceForm::automatic)
            unit_.divergence = DivergenceForm::program_counters; // so that lanes can overtake each other
        // Lanes of one warp that wait for each other need program counters of their own.
        if (unit_.divergence == DivergenceForm::automatic)
            unit_.divergence =
                needs_counters || !graph_.forest.reducible ? DivergenceForm::program_counters : DivergenceForm::masks;
        if (unit_.divergence == DivergenceForm::masks && (needs_counters || !graph_.forest.reducible) &&
            unit_.width > 1)
            unit_.divergence = DivergenceForm::program_counters;
        if (unit_.width == 1) unit_.divergence = DivergenceForm::masks; // one lane: plain control flow
        shape_for(unit_.divergence);
        if (!unit_.options.lane_width && unit_.divergence == DivergenceForm::masks && !is_quick()) {
            unit_.width = choose_width(graph_, unit_.options.target, whole_warp, unit_.row_threads());
            fit_block(collectives);
        } else if (!unit_.options.lane_width && !whole_warp && count_statements(graph_) > most_with_counters) {
            unit_.width = 1;
        }
        if (collectives) {
            const unsigned width = std::exchange(unit_.width, abi::warp_size);
            shape_for(DivergenceForm::masks);
            if (std::exchange(meetings_marked_, needs_counters) != needs_counters)
                mark_whole_meetings(graph_, needs_counters);
            unit_.width = width;
        }
        // Asked of the width that it will be: lanes that part in a wide step are in different narrow ones.
        if (unit_.width > 1 &&
            (is_too_long_for_warps() || needs_single_lanes(callees) || (needs_counters && meets_in_part(graph_)))) {
            unit_.width = 1;
            hands_over_ = !unit_.options.random_schedule; // which stands for all that the manual allows
            called_ = callees.called;
        }
        if (unit_.width == 1) unit_.divergence = DivergenceForm::masks;
        if (needs_counters && unit_.width > 1 && split_before_gatherings(graph_)) forget_shapes();
        shape_for(unit_.divergence);
        if (unit_.divergence == DivergenceForm::masks && unit_.width > 1 &&
            (!mbarrier_waits_are_converged(graph_) || exits_come_late(callees, collectives, waits_in_regions))) {
            unit_.divergence = DivergenceForm::program_counters;
            if (split_before_gatherings(graph_)) forget_shapes();
            shape_for(unit_.divergence);
        }
        if (unit_.divergence == DivergenceForm::program_counters && unit_.width > 1 && split_at_queries(graph_)) {
            forget_shapes();
            shape_for(unit_.divergence);
        }
    }

    /// Whether its barriers can be split or not. The CTAs of a cluster take turns on one thread of the host; a callee
    /// that needs the whole warp or the CTA to meet can't run inside a region.
    bool needs_fibers(const Callees& callees, bool collectives, bool waits_in_regions) const {
        using ptx::Effects;
        return unit_.options.random_schedule || unit_.options.barriers == BarrierForm::fibers ||
               unit_.cluster_size() != 1 || callees.need_single_lanes() ||
               (!waits_in_regions && (spins_ || ptx::any(effects_of(graph_), Effects::waits))) ||
               ptx::any(callees.effects, Effects::waits) || (unit_.width < abi::warp_size && collectives);
    }

    /// Lanes that exit may be held back while others of their step pass a barrier, which is in the middle of the step:
    /// not where the kernel is split there.
    bool exits_come_late(const Callees& callees, bool collectives, bool waits_in_regions) {
        using ptx::Effects;
        if (!ptx::any(effects_of(graph_), Effects::barrier) || barriers_hold_nobody_back(graph_)) return false;
        return needs_fibers(callees, collectives, waits_in_regions) || !plan_barriers(graph_, unit_.shape).splittable;
    }

    /// Quick code of lanes that count on their warp being one step, for a kernel that it would not be quick for.
    bool is_too_long_for_warps() const {
        if (!is_quick() || unit_.options.lane_width) return false;
        return count_statements(graph_) > longest_of_quick_warps;
    }

    /// Tries to have the threads of a kernel that waits for memory wait between barriers, see region_waits.h. If that
    /// can't be, all is as it was.
    bool choose_waiting_regions(const Callees& callees, bool collectives, bool whole_warp) {
        const CompileOptions& options = unit_.options;
        if (options.random_schedule || options.barriers == BarrierForm::fibers ||
            options.divergence == DivergenceForm::program_counters || !graph_.forest.reducible ||
            unit_.cluster_size() != 1 || !graph_.real_calls.empty() || graph_.has_indirect_call ||
            callees.need_single_lanes() || ptx::any(callees.effects, ptx::Effects::waits) || suspends_steps(graph_))
            return false;
        const unsigned width = unit_.width;
        choose_lanes(callees, false, collectives, whole_warp, /*waits_in_regions=*/true);
        const bool fits = unit_.divergence == DivergenceForm::masks && (unit_.width == 32 || !collectives) &&
                          waits_fit_regions(callees.called) && !(hands_over_ && mark_hand_over_points_of(graph_));
        if (!fits) unit_.width = width;
        return fits;
    }

    /// Lanes of a step that wait for memory don't wait for each other, so masks do where the step has a stack of its
    /// own, whether or not the kernel splits at its barriers.
    bool masks_may_wait(const Callees& callees, bool collectives) {
        const CompileOptions& options = unit_.options;
        if (options.random_schedule || options.divergence == DivergenceForm::program_counters ||
            !graph_.forest.reducible || unit_.cluster_size() != 1 || !graph_.real_calls.empty() ||
            graph_.has_indirect_call || callees.need_single_lanes() || ptx::any(callees.effects, ptx::Effects::waits) ||
            suspends_steps(graph_))
            return false;
        const unsigned width = std::exchange(unit_.width, collectives ? abi::warp_size : unit_.width);
        shape_for(DivergenceForm::masks);
        const std::vector<bool> waits = loops_that_wait(graph_, options.waiting_loops);
        const bool are_apart =
            find_counter_goals(graph_, waits).comparisons.size() == 0 &&
            lanes_wait_apart(graph_, regions_between_barriers(graph_, unit_.shape), waits, unit_.width);
        unit_.width = width;
        return are_apart;
    }

    bool waits_fit_regions(const CalledFunctions& called) {
        const std::vector<bool> waits = loops_that_wait(graph_, unit_.options.waiting_loops);
        if (find_counter_goals(graph_, waits).comparisons.size() != 0) return false;
        const BarrierPlan barriers = plan_barriers(graph_, unit_.shape);
        if (!barriers.splittable || !lanes_wait_apart(graph_, barriers.regions, waits, unit_.width)) return false;
        return unit_.step_count() == 1 || !translator::has_races(graph_, unit_.shape, unit_.width, called);
    }

    /// Lanes that no thread of the block has would be compiled and computed all the same. Collectives want a whole
    /// warp.
    void fit_block(bool collectives) {
        if (collectives) return;
        for (unsigned narrower : {16u, 8u, 4u, 1u})
            if (unit_.width > narrower && unit_.thread_count() <= narrower) unit_.width = narrower;
    }

    bool is_quick() const { return unit_.options.optimization == Optimization::least; }

    unsigned width_of_quick_code(const Callees& callees) {
        return quick_width(graph_, unit_.options.target, counts_on_one_step(callees));
    }

    /// Whether lanes hand each other what they write to shared memory with nothing but their warp being one step.
    bool counts_on_one_step(const Callees& callees) {
        if (!graph_.shared.empty() && (callees.talk || callees.called.share)) return true;
        const unsigned width = std::exchange(unit_.width, 1u);
        shape_for(DivergenceForm::masks);
        unit_.width = width;
        // Walks see shared memory only.
        return talks_without_meeting(graph_, unit_.shape) &&
               (talks_through_global(graph_, unit_.shape) || !walk_threads(graph_, unit_.shape));
    }

    /// The same through global memory. Quick code's width asks for both.
    bool hands_over_through_global() {
        const unsigned width = std::exchange(unit_.width, 1u);
        shape_for(DivergenceForm::masks);
        unit_.width = width;
        return talks_through_global(graph_, unit_.shape);
    }

    void note_progress(bool whole_warp) {
        if (!progress_) return;
        progress_->statements = count_statements(graph_);
        progress_->whole_warp = whole_warp;
        progress_->lane_width = unit_.width;
    }

    /// Whether all threads meet at the barriers is asked of masked execution, where a word that all read is one value.
    /// `waiting`: threads may wait for others elsewhere, which another barrier might keep from coming there.
    void settle_races(bool waiting, const CalledFunctions& called) {
        if (unit_.step_count() == 1 || !graph_.forest.reducible) return;
        waiting = waiting || (has_collectives(graph_) && warps_may_meet_elsewhere());
        shape_for(DivergenceForm::masks);
        const bool by_barriers = !waiting && plan_barriers(graph_, unit_.shape).splittable;
        if (settle_races_with(by_barriers ? Meeting::barrier : Meeting::turn, called))
            settle_races_with(Meeting::turn_where_likely, called); // which makes the kernel run on fibers
        shape_for(unit_.divergence);
    }

    /// Lanes of a warp may wait at a collective for others that come to another one, behind what would be a barrier.
    bool warps_may_meet_elsewhere() {
        const unsigned width = std::exchange(unit_.width, 32u);
        shape_for(DivergenceForm::masks);
        unit_.width = width;
        return may_meet_elsewhere(graph_);
    }

    /// True if likely races are left.
    bool settle_races_with(Meeting meeting, const CalledFunctions& called) {
        const SettledRaces races = translator::settle_races(graph_, unit_.shape, unit_.width, meeting, called);
        if (races.changed && meeting == Meeting::barrier) { // turns are instructions without values
            forget_shapes();
            shape_for(DivergenceForm::masks);
        }
        return races.left;
    }

    /// A single step has nobody to wait for, and what a call leaves behind is not only in values. One lane per step is
    /// for what jumps about.
    bool may_take_turns() const {
        return !unit_.fiber_form && unit_.options.barriers != BarrierForm::regions && unit_.width > 1 &&
               unit_.step_count() > 1 && unit_.divergence == DivergenceForm::masks && graph_.real_calls.empty() &&
               !graph_.has_indirect_call;
    }

    /// Lanes of a warp meet from different places: each needs a stack of its own. What a function meets at that is
    /// called for real, lanes may come to from different calls; and where they wait in one, it may be for lanes that
    /// are not there.
    bool needs_single_lanes(const Callees& callees) {
        const ptx::Effects meetings = ptx::Effects::barrier | ptx::Effects::convergent;
        if (callees.need_single_lanes()) return true;
        if (!ptx::any(effects_of(graph_), meetings)) return false;
        shape_for(DivergenceForm::masks);
        return may_meet_elsewhere(graph_);
    }

    /// Lanes that run one by one come together where a GPU's are in step: true if there are such places. Leaves the
    /// shapes of a whole warp behind.
    bool mark_hand_over_points_of(FunctionGraph& graph) {
        const DivergenceForm form = graph.forest.reducible ? DivergenceForm::masks : DivergenceForm::program_counters;
        if (&graph == &graph_) forget_shapes();
        compute_shapes(graph, unit_.shape, abi::warp_size, unit_.options, form);
        return mark_hand_over_points(graph, unit_.shape, called_);
    }

    /// compute_shapes() for the width at hand, unless they are. Questions about a whole warp are asked of narrow steps'
    /// kernels again and again, so the shapes of other widths are kept until the graph changes.
    void shape_for(DivergenceForm form) {
        const std::pair wanted{unit_.width, form};
        if (shaped_for_ == wanted) return;
        if (shaped_for_) swap_shapes(other_shapes_[*shaped_for_]);
        if (const auto kept = other_shapes_.find(wanted); kept != other_shapes_.end()) {
            swap_shapes(kept->second);
            other_shapes_.erase(kept);
        } else {
            compute_shapes(graph_, unit_.shape, unit_.width, unit_.options, form);
        }
        shaped_for_ = wanted;
    }

    void forget_shapes() {
        meetings_marked_.reset();
        shaped_for_.reset();
        other_shapes_.clear();
    }

    /// What compute_shapes() finds out.
    struct Shapes {
        std::vector<std::pair<Shape, bool>> values; ///< and SsaValue::lane_zero
        std::vector<std::pair<bool, bool>> loops;   ///< exit flags
        std::vector<std::shared_ptr<LaneOffsets>> offsets;
    };

    void swap_shapes(Shapes& shapes) {
        shapes.values.resize(graph_.values.size());
        shapes.loops.resize(graph_.forest.loops.size());
        for (std::size_t i = 0; i < shapes.values.size(); ++i) {
            std::swap(graph_.values[i].shape, shapes.values[i].first);
            std::swap(graph_.values[i].lane_zero, shapes.values[i].second);
        }
        for (std::size_t i = 0; i < shapes.loops.size(); ++i) {
            std::swap(graph_.forest.loops[i].divergent_exit, shapes.loops[i].first);
            std::swap(graph_.forest.loops[i].cta_divergent_exit, shapes.loops[i].second);
        }
        shapes.offsets.swap(graph_.offset_storage);
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
        if (hands_over_) mark_hand_over_points_of(graph);
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
    BarrierPlan barriers_;
    std::map<ptx::FunctionId, CallFrame> frames_; ///< of what has been emitted
    bool spins_ = false, could_spin_ = false, uses_stack_ = false, calls_late_ = false;
    bool hands_over_ = false; ///< lanes run one by one, and are in step where a GPU's are
    CalledFunctions called_;  ///< if so
    using ShapedFor = std::pair<unsigned, DivergenceForm>;
    std::optional<ShapedFor> shaped_for_;      ///< width and form that the graph's shapes are for
    std::map<ShapedFor, Shapes> other_shapes_; ///< of the same graph
    std::optional<bool> meetings_marked_;      ///< of the same graph: mark_whole_meetings(), and its argument
    std::vector<AlignmentDemand> alignment_demands_;
    std::optional<std::uint32_t> streamed_bytes_; ///< of a kernel with versions
    std::uint32_t ctas_in_row_ = 1;
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
