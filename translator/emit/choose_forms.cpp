// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/choose_forms.h"

#include "translator/analysis/arithmetic/unknown_operands.h"
#include "translator/analysis/build/thread_branches.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/split_block.h"
#include "translator/analysis/graph/verify_graph.h"
#include "translator/analysis/loops/hoist_steady_loads.h"
#include "translator/analysis/loops/launch_version.h"
#include "translator/analysis/loops/plan_prefetch.h"
#include "translator/analysis/loops/plan_streaming.h"
#include "translator/analysis/loops/plan_turns.h"
#include "translator/analysis/loops/reroll_loops.h"
#include "translator/analysis/loops/trace_addresses.h"
#include "translator/analysis/memory/alignment.h"
#include "translator/analysis/memory/cta_order.h"
#include "translator/analysis/memory/shared_edges.h"
#include "translator/analysis/plans/barrier_regions.h"
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
#include "translator/analysis/waits/single_step.h"
#include "translator/analysis/waits/spin_loops.h"
#include "translator/analysis/waits/step_order.h"
#include "translator/analysis/waits/thread_walks.h"
#include "translator/analysis/waits/warp_talk.h"
#include "translator/emit/callees.h"
#include "translator/emit/choose_width.h"
#include "translator/emit/graph_shapes.h"
#include "translator/kernel_abi.h"
#include "translator/llvm/long_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace ptarmigan::translator {

namespace {

/// With more statements than this a kernel that would have program counters is compiled lane by lane instead: each
/// block gets masks and a way back to a dispatcher that knows all blocks, which took 1.4 ms a statement for 12,149 of
/// them.
constexpr unsigned most_with_counters = 3000;

/// Kernels with more statements than this have no version of their own for the launches that most are.
constexpr unsigned most_in_launch_version = 300;

/// With more statements than this quick code of a kernel whose lanes count on their warp being one step is made lane by
/// lane, with a hand-over at each place where they do: it takes a quarter of the time to make, and ten times as long to
/// run.
constexpr unsigned longest_of_quick_warps = 4000;

/// A step waits in some instruction for what only another one may do. Who sleeps does not.
bool suspends_steps(const FunctionGraph& graph) {
    return std::any_of(graph.blocks.begin(), graph.blocks.end(), [](const Block& block) {
        return std::any_of(block.instructions.begin(), block.instructions.end(), [](const GraphInstruction& i) {
            return i.inst.form != ptx::FormId::nanosleep &&
                   ptx::any(ptx::form_info(i.inst.form).effects, ptx::Effects::waits);
        });
    });
}

class FormChooser {
public:
    FormChooser(KernelUnit& unit, FunctionGraph& graph, const GraphOptions& graph_options, CompileProgress* progress)
        : unit_(unit), graph_options_(graph_options), graph_(graph), shapes_(unit, graph), progress_(progress) {}

    KernelForms choose() {
        const WaitingLoops waiting = unit_.options.waiting_loops;
        const Callees callees = find_callees(unit_.loader, graph_, graph_options_, unit_.shared, waiting);
        const bool uses_shared = !graph_.shared.empty(), collectives = has_collectives(graph_);
        const bool talks = talks_through_volatile(graph_, uses_shared) || (callees.talk && uses_shared) ||
                           (talks_without_barrier(graph_) && !lanes_walk_apart()) ||
                           (!is_quick() && hands_over_through_global());
        const bool whole_warp = collectives || talks;
        if (walks_ && !is_quick()) hoist_steady_loads(graph_, *walks_);
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
        forms_.spins = own_spins || callees.spin;
        unit_.notes_writes = unit_.options.late_copies && (callees.read_in_bulk || reads_global_in_bulk(graph_));
        forms_.could_spin = !forms_.spins && (callees.could_spin || may_spin(graph_, WaitingLoops::all));
        // Waits for mbarriers that the step makes as a whole suspend it, whatever the form.
        const bool needs_counters =
            own_spins && may_spin_on_memory(graph_, waiting) && !masks_may_wait(callees, collectives);
        const bool waits_in_regions = own_spins && choose_waiting_regions(callees, collectives, whole_warp);
        if (!waits_in_regions) choose_lanes(callees, needs_counters, collectives, whole_warp);
        note_progress(whole_warp);
        if (count_statements(graph_) >= long_kernel_statements) note_long_code(*unit_.module);
        if (!waits_in_regions) // which have none
            settle_races(forms_.spins || callees.need_single_lanes() ||
                             ptx::any(effects_of(graph_) | callees.effects, ptx::Effects::waits),
                         callees.called);
        bool has_points = forms_.hands_over && marks_hand_over_points();
        has_points = has_points || (forms_.hands_over && (callees.are_here || callees.late)); // perhaps in a function
        if (unit_.width == 1 && !is_quick() && !forms_.spins) reroll_loops(graph_);
        shapes_.set(unit_.divergence);
        if (is_plain(callees) && !unit_.options.cooperative) forms_.addresses = trace_addresses(graph_);
        if (may_have_versions(callees)) make_versions();
        if (may_have_segments(callees) && version_segments(graph_)) reshape();
        verify_graph(graph_);
        mark_unknown_operands(graph_);
        forms_.alignment_demands = plan_alignment(graph_, unit_.options.aligned_parameters);
        if (!is_quick() && unit_.width > 1) plan_shared_edges(graph_, unit_.shape, unit_.width);
        unit_.spins = forms_.spins;
        unit_.fiber_form = has_points || needs_fibers(callees, collectives, waits_in_regions);
        if (!unit_.fiber_form) forms_.barriers = plan_barriers(graph_, unit_.shape);
        unit_.fiber_form = unit_.fiber_form || !forms_.barriers.splittable;
        order_steps();
        unit_.fiber_form = unit_.fiber_form || (!forms_.spins && !waits_in_regions && is_repetitive(forms_.barriers));
        unit_.gives_turns =
            !unit_.fiber_form && (forms_.spins || (unit_.options.cooperative && forms_.barriers.has_barriers));
        if (may_take_turns()) choose_turn_loops(graph_, unit_.shape, unit_.options.barriers == BarrierForm::turns);
        if (unit_.gives_turns) choose_waiting_turns(graph_, loops_that_wait(graph_, waiting));
        if (may_have_versions(callees) && !unit_.gives_turns) forms_.ctas_in_row = ctas_in_row(graph_, unit_.shape);
        unit_.runs_in_rows = forms_.ctas_in_row > 1;
        if (unit_.fiber_form || unit_.gives_turns || unit_.runs_in_rows) forms_.addresses = {};
        plan_prefetch(graph_, unit_.shape, unit_.width, unit_.runs_in_rows);
        if (unit_.width == 1 && unit_.fiber_form && !unit_.options.random_schedule) gather_votes(graph_);
        return std::move(forms_);
    }

private:
    /// Code from each barrier to the next ones would be many times the kernel: where a chain of branches may come to
    /// any of many barriers, every region has all of the chain that is left.
    bool is_repetitive(const BarrierPlan& plan) const {
        constexpr std::size_t most_repetitions = 8, least_statements = 16'000;
        if (unit_.options.barriers != BarrierForm::automatic || ptx::any(effects_of(graph_), ptx::Effects::waits))
            return false;
        std::size_t statements = 0;
        for (const RegionView& region : plan.regions)
            for (const BlockId block : region.blocks) statements += graph_.blocks[block].instructions.size();
        return statements > std::max<std::size_t>(least_statements, most_repetitions * count_statements(graph_));
    }

    /// Takes out barriers that the order of the steps makes needless. Not where behind barriers others have their turn.
    void order_steps() {
        if (unit_.fiber_form || !forms_.barriers.has_barriers || unit_.options.cooperative ||
            unit_.options.barriers != BarrierForm::automatic)
            return;
        if (unit_.step_count() == 1) {
            using ptx::Effects;
            // Else regions are as good, and where lanes walk through memory by themselves better (lane_regions).
            const bool may_go = is_repetitive(forms_.barriers) && unit_.divergence == DivergenceForm::masks &&
                                !forms_.spins && !unit_.options.late_copies &&
                                !ptx::any(effects_of(graph_), Effects::waits | Effects::async);
            if (may_go && drop_barriers_of_single_step(graph_, forms_.barriers))
                forms_.barriers = plan_barriers(graph_, unit_.shape);
            return;
        }
        if (is_quick() || is_long_code(*unit_.module)) return;
        StepOrder order = drop_ordered_barriers(graph_, unit_.shape, unit_.width, forms_.barriers);
        if (!order.changed) return;
        unit_.falling_steps = std::move(order.falling);
        forms_.barriers = plan_barriers(graph_, unit_.shape);
    }

    /// Masks, without anything that may wait or that is called.
    bool is_plain(const Callees& callees) const {
        return unit_.width > 1 && unit_.divergence == DivergenceForm::masks && graph_.forest.reducible && !is_quick() &&
               !forms_.spins && !forms_.hands_over && graph_.real_calls.empty() && !graph_.has_indirect_call &&
               !callees.late && unit_.cluster_size() == 1 && !unit_.options.random_schedule &&
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

    /// Of kernels whose steps are many: the shapes of the CTA as a whole.
    CtaSpans spans_of_ctas() {
        if (unit_.step_count() < 2) return {};
        shapes_.set(unit_.thread_count(), DivergenceForm::masks);
        CtaSpans spans = cta_spans(graph_);
        shapes_.set(unit_.divergence);
        return spans;
    }

    void make_versions() {
        // Bytes that a thread stores are counted once.
        const std::uint32_t streamed = plan_streaming(graph_);
        if (thread_branches(graph_)) reshape();
        const bool is_short = count_statements(graph_) <= most_in_launch_version;
        const FunctionGraph kernel = is_short ? graph_ : FunctionGraph();
        CtaSpans spans;
        LaunchFacts facts;
        if (is_short) find_single_rounds(graph_, spans = spans_of_ctas(), facts);
        const BlockId general = version_kernel(graph_, [this] { return spans_of_ctas(); });
        if (general) reshape();
        const bool in_loops = version_blocks(graph_, general + 1);
        if (in_loops) reshape();
        const bool of_launch = is_short && add_launch_version(kernel, facts, spans);
        if (of_launch) reshape();
        if (general || in_loops || of_launch) forms_.streamed_bytes = streamed;
    }

    /// Where lanes agree it is seen which strides are parameters.
    bool add_launch_version(const FunctionGraph& kernel, LaunchFacts& facts, const CtaSpans& spans) {
        if (!facts && !multiplies_by_numbers_of_launch(kernel)) return false;
        FunctionGraph version = kernel;
        std::optional<ValueId> holds = make_version(version, facts);
        find_near_strides(version, facts);
        if (!facts) return false;
        if (!facts.strides.empty()) holds = make_version(version = kernel, facts);
        return holds && add_version(graph_, std::move(version), *holds, facts, spans);
    }

    /// Assumes `facts` and agreement; returns what tests that threads agree, none if it can't be asked.
    std::optional<ValueId> make_version(FunctionGraph& version, const LaunchFacts& facts) {
        assume_facts(version, facts, unit_.shape);
        const BlockId entry = put_block_in_front(version);
        version.blocks[0].terminator.kind = Terminator::Kind::jump;
        version.blocks[0].successors = {entry};
        version.blocks[entry].predecessors = {0};
        find_loops_again(version);
        ValueId holds = no_value;
        GraphShapes shapes(unit_, version);
        // What is asked of quotients that turn out to be shared is asked in the second round.
        for (unsigned round = 0; round < 2; ++round) {
            CtaSpans spans;
            if (unit_.step_count() > 1) {
                shapes.set(unit_.thread_count(), DivergenceForm::masks);
                spans = cta_spans(version);
            }
            shapes.set(unit_.divergence);
            if (!assume_agreement(version, spans, holds)) return std::nullopt;
            shapes.forget();
        }
        shapes.set(unit_.divergence);
        return holds;
    }

    /// Width and divergence. `needs_counters`: lanes of a step may wait for each other. `waits_in_regions`: threads
    /// wait between barriers, if they can.
    void choose_lanes(const Callees& callees, bool needs_counters, bool collectives, bool whole_warp,
                      bool waits_in_regions = false) {
        forms_.hands_over = false;
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
        shapes_.set(unit_.divergence);
        if (!unit_.options.lane_width && unit_.divergence == DivergenceForm::masks && !is_quick()) {
            unit_.width = choose_width(graph_, unit_.options.target, whole_warp, unit_.row_threads());
            fit_block(collectives);
        } else if (!unit_.options.lane_width && !whole_warp && count_statements(graph_) > most_with_counters) {
            unit_.width = 1;
        }
        if (collectives) {
            shapes_.set(abi::warp_size, DivergenceForm::masks);
            if (std::exchange(meetings_marked_, needs_counters) != needs_counters)
                mark_whole_meetings(graph_, needs_counters);
        }
        // Asked of the width that it will be: lanes that part in a wide step are in different narrow ones.
        if (unit_.width > 1 &&
            (is_too_long_for_warps() || needs_single_lanes(callees) || (needs_counters && meets_in_part(graph_)))) {
            unit_.width = 1;
            forms_.hands_over = !unit_.options.random_schedule; // which stands for all that the manual allows
            forms_.called = callees.called;
        }
        if (unit_.width == 1) unit_.divergence = DivergenceForm::masks;
        if (needs_counters && unit_.width > 1 && split_before_gatherings(graph_)) forget_shapes();
        shapes_.set(unit_.divergence);
        if (unit_.divergence == DivergenceForm::masks && unit_.width > 1 &&
            (!mbarrier_waits_are_converged(graph_) || exits_come_late(callees, collectives, waits_in_regions))) {
            unit_.divergence = DivergenceForm::program_counters;
            if (split_before_gatherings(graph_)) forget_shapes();
            shapes_.set(unit_.divergence);
        }
        if (unit_.divergence == DivergenceForm::program_counters && unit_.width > 1 && split_at_queries(graph_))
            reshape();
    }

    /// Whether its barriers can be split or not. The CTAs of a cluster take turns on one thread of the host; a callee
    /// that needs the whole warp or the CTA to meet can't run inside a region.
    bool needs_fibers(const Callees& callees, bool collectives, bool waits_in_regions) const {
        using ptx::Effects;
        return unit_.options.random_schedule || unit_.options.barriers == BarrierForm::fibers ||
               unit_.cluster_size() != 1 || callees.need_single_lanes() ||
               (!waits_in_regions && (forms_.spins || ptx::any(effects_of(graph_), Effects::waits))) ||
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
                          waits_fit_regions(callees.called) && !(forms_.hands_over && marks_hand_over_points());
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
        const unsigned width = collectives ? abi::warp_size : unit_.width;
        shapes_.set(width, DivergenceForm::masks);
        const std::vector<bool> waits = loops_that_wait(graph_, options.waiting_loops);
        return find_counter_goals(graph_, waits).comparisons.size() == 0 &&
               lanes_wait_apart(graph_, unit_.shape, regions_between_barriers(graph_, unit_.shape), waits, width);
    }

    bool waits_fit_regions(const CalledFunctions& called) {
        const std::vector<bool> waits = loops_that_wait(graph_, unit_.options.waiting_loops);
        if (find_counter_goals(graph_, waits).comparisons.size() != 0) return false;
        const BarrierPlan barriers = plan_barriers(graph_, unit_.shape);
        if (!barriers.splittable || !lanes_wait_apart(graph_, unit_.shape, barriers.regions, waits, unit_.width))
            return false;
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
        shapes_.set(1, DivergenceForm::masks);
        // Walks see shared memory only.
        return talks_without_meeting(graph_, unit_.shape) &&
               (talks_through_global(graph_, unit_.shape) || !lanes_walk_apart());
    }

    /// The same through global memory. Quick code's width asks for both.
    bool hands_over_through_global() {
        shapes_.set(1, DivergenceForm::masks);
        return talks_through_global(graph_, unit_.shape);
    }

    /// Lanes of a warp are known not to meet in shared memory: of the graph before anything here has changed it.
    bool lanes_walk_apart() {
        if (!has_walked_) walks_ = walk_threads(graph_, unit_.shape);
        has_walked_ = true;
        return walks_.has_value();
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
        shapes_.set(DivergenceForm::masks);
        const bool by_barriers = !waiting && plan_barriers(graph_, unit_.shape).splittable;
        if (settle_races_with(by_barriers ? Meeting::barrier : Meeting::turn, called))
            settle_races_with(Meeting::turn_where_likely, called); // which makes the kernel run on fibers
        shapes_.set(unit_.divergence);
    }

    /// Lanes of a warp may wait at a collective for others that come to another one, behind what would be a barrier.
    bool warps_may_meet_elsewhere() {
        shapes_.set(abi::warp_size, DivergenceForm::masks);
        return may_meet_elsewhere(graph_);
    }

    /// True if likely races are left.
    bool settle_races_with(Meeting meeting, const CalledFunctions& called) {
        const SettledRaces races = translator::settle_races(graph_, unit_.shape, unit_.width, meeting, called);
        if (races.changed && meeting == Meeting::barrier) { // turns are instructions without values
            forget_shapes();
            shapes_.set(DivergenceForm::masks);
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
        shapes_.set(DivergenceForm::masks);
        return may_meet_elsewhere(graph_);
    }

    /// True if there are places where lanes that run one by one come together.
    bool marks_hand_over_points() {
        forget_shapes();
        return mark_hand_over_points_of(unit_, graph_, forms_);
    }

    /// Behind a change of the graph.
    void reshape() {
        forget_shapes();
        shapes_.set(unit_.divergence);
    }

    void forget_shapes() {
        meetings_marked_.reset();
        shapes_.forget();
    }

    KernelUnit& unit_;
    const GraphOptions& graph_options_;
    FunctionGraph& graph_;
    GraphShapes shapes_;
    KernelForms forms_;
    std::optional<ThreadWalks> walks_; ///< once asked for
    bool has_walked_ = false;
    std::optional<bool> meetings_marked_; ///< of the same graph: mark_whole_meetings(), and its argument
    CompileProgress* progress_;
};

} // namespace

unsigned count_statements(const FunctionGraph& graph) {
    std::size_t statements = 0;
    for (const Block& block : graph.blocks) statements += block.instructions.size();
    return unsigned(statements);
}

bool mark_hand_over_points_of(const KernelUnit& unit, FunctionGraph& graph, const KernelForms& forms) {
    const DivergenceForm form = graph.forest.reducible ? DivergenceForm::masks : DivergenceForm::program_counters;
    compute_shapes(graph, unit.shape, abi::warp_size, unit.options, form);
    return mark_hand_over_points(graph, unit.shape, forms.called);
}

KernelForms choose_forms(KernelUnit& unit, FunctionGraph& graph, const GraphOptions& options,
                         CompileProgress* progress) {
    return FormChooser(unit, graph, options, progress).choose();
}

} // namespace ptarmigan::translator
