// SPDX-License-Identifier: Apache-2.0
// Two reasons to leave the natural width, both measured in bench/kernels (2026-11-21, Zen 4, CPU time):
//   * registers: register-tiled SGEMM keeps 16 varying accumulators over its loop: 45 ms at W = 32, 42 at 16. On AVX2
//   (2026-11-22, 2 Zen 3
//     cores, W = 8, 16, 32): 35, 50 and 58 ms; tiled SGEMM, with one, 60, 39 and 32; n-body, with six, 16, 16 and 20;
//   * loops in which each lane walks its own memory (sparse rows): gathers lose to scalar loads where the CPU's gathers
//     are slow. 16.4 ms at W = 32, 9.6 at 16, 7.0 at 8 (rows, access_groups.h), 5.7 at 1 with prefetches
//     (plan_prefetch.h); as a loop that is not unrolled, 20 at W = 4 to 16 and 6.9 at 1. (From W = 8 on down: twice the
//     time of two threads.) Where gathers are fast, narrow steps still wait for fewer lanes: PoCL's time over ours on
//     an Emerald Rapids (2026-11-22, 2 cores) is 0.92 to 0.95 at W = 32, 0.96 at 16, 1.14 at 8, 0.86 at 1. Not where
//     lanes leave together (grid-stride loops): CuPy's take of 4M elements 366 ms at W = 1, 93 at 16 (Zen 3).
#include "translator/emit/choose_width.h"

#include "frontend/isa/instruction_form.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/liveness.h"
#include "translator/analysis/loops/lane_walks.h"
#include "translator/analysis/loops/round_chains.h"
#include "translator/analysis/loops/row_walks.h"
#include "translator/analysis/plans/barrier_regions.h"
#include "translator/llvm/sve.h"

#include <algorithm>

namespace ptarmigan::translator {

namespace {

using ptx::Effects;

/// Vector registers that varying values may take over a loop: three of four.
constexpr unsigned loop_registers_avx512 = 24, loop_registers_avx2 = 12;
/// And all of them for what is alive at once, of which the tables and constants of a special function take some; not
/// where a round waits for its chain of results, of which wide steps have two: attention (70 words and ex2) 25 and 37,
/// with 4 to 64 numbers a head 0.59 to 0.77 of the time of 16 lanes.
/// Zen 5, 32 and 16 lanes, CPU ms: lbm (18 words) 4.4 and 3.4, bilateral (12 and ex2) 20.3 and 15.4, n-body (11 and
/// rsqrt) 24.9 and 27.9, soft-max (10 and ex2) the same, Black-Scholes (8) 9.4 and 12.
constexpr unsigned registers_avx512 = 32, unit_registers = 10;
/// Varying words that a thread computes from which a step is 8 lanes wide on AVX2: what is uniform
/// is a small part then, and time to compile grows with the width.
constexpr unsigned long_code = 160;
/// The same where a loop waits for its chain of results, which wide steps have more of.
constexpr unsigned longest_chained_code = 4 * long_code;
/// Varying words up to which a map is short: its addresses and tests are much of it. A convolution by columns has 36,
/// and takes 5.1 ms at 16 lanes and 5.5 to 6.0 at 32; stencil and fdtd_e have 15.
constexpr unsigned short_map = 24;
/// The share from which a loop does little but gather: where gathers are fast, 8 lanes are faster then.
constexpr double fast_gather_share = 0.2;

/// Statements inlined by pointers from which lanes go one by one: code of vectors for many copies of several functions
/// takes long to make and gains little, since lanes part at each. A path tracer of virtual functions, unrolled four
/// times (2,660), at 32, 16, 8 lanes and 1 on Zen 5: 14.6, 12.4, 12.3 and 14.3 ms of CPU for code made
/// in 15.7, 6.5, 5.2 and 0.9 s; one of 955 statements 7.3, 7.8, 10.7 and 25 ms.
constexpr std::size_t long_choices = 1500;

bool may_communicate(const FunctionGraph& graph) {
    // Old programs let the lanes of a warp talk through volatile memory without a barrier: keep them in step. Where it
    // is shared memory the whole warp is (talks_through_volatile()).
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            Effects effects = ptx::form_info(instruction.inst.form).effects;
            bool across_lanes = ptx::any(effects, Effects::convergent) && !ptx::any(effects, Effects::barrier);
            if (ptx::any(effects, Effects::volatile_read) || across_lanes) return true;
        }
    return false;
}

/// Most 32-bit varying values that are live over a loop.
unsigned varying_words_over_loops(const FunctionGraph& graph) {
    std::vector<bool> headers(graph.blocks.size(), false);
    for (const LoopInfo& loop : graph.forest.loops) headers[loop.header] = true;
    std::vector<std::vector<ValueId>> live = live_at_entry(graph, headers);
    unsigned most = 0;
    for (const LoopInfo& loop : graph.forest.loops) {
        unsigned words = 0;
        auto count = [&](ValueId value) {
            const SsaValue& info = graph.values[value];
            if (info.shape.is_varying()) words += std::max(1u, ptx::bit_size(info.type) / 32);
        };
        for (ValueId value : live[loop.header]) count(value);
        for (const Phi& phi : graph.blocks[loop.header].phis) count(phi.result);
        most = std::max(most, words);
    }
    return most;
}

/// Most 32-bit varying values that are live at once, as the statements stand.
unsigned varying_words_at_once(const FunctionGraph& graph) {
    const std::vector<std::vector<ValueId>> live = live_at_entry(graph, std::vector<bool>(graph.blocks.size(), true));
    unsigned most = 0;
    std::vector<bool> is_live(graph.values.size(), false);
    for (BlockId id = 0; id < graph.blocks.size(); ++id) {
        const Block& block = graph.blocks[id];
        std::vector<ValueId> now;
        unsigned words = 0;
        auto cost = [&](ValueId value) {
            const SsaValue& info = graph.values[value];
            if (info.is_constant || info.is_undefined || !info.shape.is_varying()) return 0u;
            return ptx::bit_size(info.type) / 32;
        };
        auto begin = [&](ValueId value) {
            if (value == no_value || is_live[value]) return;
            is_live[value] = true;
            now.push_back(value);
            words += cost(value);
        };
        for (BlockId next : block.successors) {
            for (ValueId value : live[next]) begin(value);
            const auto& from = graph.blocks[next].predecessors;
            for (const Phi& phi : graph.blocks[next].phis)
                for (std::size_t i = 0; i < from.size(); ++i)
                    if (from[i] == id) begin(phi.incoming[i]);
        }
        begin(block.terminator.condition);
        most = std::max(most, words);
        for (auto it = block.instructions.rbegin(); it != block.instructions.rend(); ++it) {
            for (ValueId value : definitions(graph, *it))
                if (is_live[value]) {
                    is_live[value] = false;
                    words -= cost(value);
                }
            for (ValueId value : uses(graph, *it)) begin(value);
            most = std::max(most, words);
        }
        for (ValueId value : now) is_live[value] = false;
    }
    return most;
}

/// Some innermost loop whose lanes leave at different times spends its instructions on gathers.
bool walks_memory_lane_by_lane(const FunctionGraph& graph, double limit) {
    const LaneWalks walks(graph);
    return std::any_of(graph.forest.loops.begin(), graph.forest.loops.end(), [&](const LoopInfo& loop) {
        return walks.is_innermost(loop) && walks.lanes_leave_apart(loop) && walks.loads_more_than(limit, loop);
    });
}

bool uses_shared_memory(const FunctionGraph& graph) {
    return !graph.shared.empty();
}

/// Calls of the texture unit take as long for 16 lanes as for 32 (runtime/texture/plane_fetch), longer than what a
/// narrow step keeps in registers.
bool fetches_from_textures(const FunctionGraph& graph) {
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::FormInfo& form = ptx::form_info(instruction.inst.form);
            const bool accesses = ptx::any(form.effects, Effects::load | Effects::store);
            if ((form.chapter == "texture" || form.chapter == "surface") && accesses) return true;
        }
    return false;
}

/// What a step computes lane by lane, in 32-bit words of one lane: the length of the code that
/// grows with the width.
unsigned varying_words(const FunctionGraph& graph) {
    unsigned words = 0;
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions)
            for (ValueId value : definitions(graph, instruction)) {
                const SsaValue& info = graph.values[value];
                if (info.shape.is_varying()) words += std::max(1u, ptx::bit_size(info.type) / 32);
            }
    return words;
}

/// Some instruction goes to the model of the special function unit.
bool has_approximations(const FunctionGraph& graph) {
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            const std::string_view syntax = ptx::form_info(instruction.inst.form).syntax;
            const bool approximate =
                syntax.find(".approx") != std::string_view::npos || syntax.find(".full") != std::string_view::npos;
            const ptx::Operand& result = instruction.inst[ptx::Role::d];
            if (approximate && result.kind == ptx::Operand::Kind::reg && graph.values[result.index].shape.is_varying())
                return true;
        }
    return false;
}

/// Without loops, and mostly arithmetic of doubles: a chain of results of which eight lanes fill a register, so that
/// wide steps have four to wait for, for which some accesses of the stack are a low price. Zen 5, ns for 16 lanes of
/// CUDA's functions (bench/math_functions) at 16 and 32 lanes: log 24.2 and 18.3, pow 66 and 47, erf 33 and 21,
/// atan 20.6 and 17.8, tanh 35 and 32.
bool is_line_of_doubles(const FunctionGraph& graph) {
    if (!graph.forest.loops.empty()) return false;
    unsigned doubles = 0, results = 0;
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions)
            for (ValueId value : definitions(graph, instruction)) {
                if (!graph.values[value].shape.is_varying()) continue;
                ++results;
                doubles += graph.values[value].type == ptx::ScalarType::f64;
            }
    return doubles * 2 > results;
}

/// Lanes leave some loop at different times, and wait for each other the more the wider a step is.
bool lanes_leave_apart(const FunctionGraph& graph) {
    const LaneWalks walks(graph);
    return std::any_of(graph.forest.loops.begin(), graph.forest.loops.end(),
                       [&](const LoopInfo& loop) { return walks.lanes_leave_apart(loop); });
}

/// Neither loops nor shared memory: what there is to do is mostly loads and stores, so a step should lie in one row of
/// the block. In blocks of 16 x 16 on a Zen 5, AVX-512, us at 32 and 16 lanes: a convolution by columns 1,220 and 903,
/// stencil 220 and 203; but a loop (mandelbrot) 276 and 478.
bool is_map(const FunctionGraph& graph) {
    return graph.forest.loops.empty() && !uses_shared_memory(graph);
}

/// What loops keep fits registers, and without loops what is alive at once; wider where that does not matter: chains of
/// results, and the model of the special function unit, which takes 16 lanes at once. AVX2 code on a Zen 5, narrower ->
/// wider, CPU ms by turns: fdtd_e 2.2 -> 1.5, stencil 4.3 -> 3.7 (32 lanes, few values); bilateral 43 -> 31, soft-max
/// 9.9 -> 7.7 (16, ex2); attention 64 -> 36, nearest 7.3 -> 6.0 (32, chains).
unsigned width_by_registers_avx2(const FunctionGraph& graph, unsigned natural, unsigned row) {
    const unsigned code = varying_words(graph);
    if (code <= long_code && fetches_from_textures(graph)) return 32;
    const bool is_short =
        code <= short_map && varying_words_at_once(graph) * 32 / 8 <= loop_registers_avx2 && row % 32 == 0;
    const unsigned widest = code > long_code ? 8 : !is_map(graph) || is_short ? 32 : natural;
    const unsigned words = varying_words_over_loops(graph);
    unsigned width = 8;
    for (unsigned wider : {16u, 32u})
        if (words * wider / 8 <= loop_registers_avx2 && wider <= widest) width = wider;
    if (width == 8 && code <= long_code && has_approximations(graph)) width = 16;
    if (code > longest_chained_code || lanes_leave_apart(graph)) return width;
    while (width < 32 && waits_for_chains(graph, width / 8)) width *= 2;
    return width;
}

/// The widest step whose loops keep their values in registers. Wide steps share what is uniform: addresses, tests,
/// loads for all lanes. Without loops and barriers there is little of that, and half the code is half the time to
/// compile.
unsigned width_by_registers(const FunctionGraph& graph, const TargetCpu& target, unsigned natural, unsigned row) {
    const unsigned words = varying_words_over_loops(graph);
    if (target.avx512) {
        if (fetches_from_textures(graph)) return natural;
        if (row == 16 && is_map(graph) && !has_approximations(graph)) return 16;
        const unsigned constants = has_approximations(graph) ? unit_registers : 0;
        const unsigned available = registers_avx512 * (is_line_of_doubles(graph) ? 2 : 1);
        const bool fits =
            words * 32 / 16 <= loop_registers_avx512 && varying_words_at_once(graph) * 32 / 16 + constants <= available;
        return fits || waits_for_chains(graph) ? natural : 16;
    }
    if (target.architecture != TargetCpu::Architecture::x86_64) return natural;
    return width_by_registers_avx2(graph, natural, row);
}

/// Whether lanes, each on rows of its own, find their lines in the first cache in the next round. On Zen 5 (12 ways,
/// 2026-11-27, CPU ms by turns at 32, 16 and 8 lanes) 16 lanes are faster on one row each, (gemv_rows of
/// 4,096) 4.9, 2.6 and 3.3, (syrk of 512) 32, 18 and 21, and slower on two (GESUMMV of 4,096 at 16, 8 and 4) 8.3, 5.3
/// and 6.8.
bool fits_cache(const RowWalks& walks, const TargetCpu& target, unsigned width) {
    if (target.cpu == "znver5" && width == 16 && walks.rows == 1) return true;
    constexpr unsigned ways = 8;
    return walks.lines_in_set <= ways && (width <= 8 || !target.has_slow_gathers());
}

/// The widest step whose lanes, each on a row of its own, find their lines in the first cache in the next round. Where
/// gathers are slow no more than 8 lanes anyway. Measured on a Zen 3 (2026-11-27, CPU ms, PolyBench's kernels), rows of
/// a power of two of bytes at 32, 16, 8, 4 and 1 lanes: one row a lane (ATAX) 39, 16, 4.5, 6.5 and 22, two rows
/// (GESUMMV) 93, 92, 47, 29 and 115, (SYR2K) 7,758, 4,308, 2,318, 1,692 and 1,160, three (ADI) 57, 54, 28, 25 and 9.6;
/// rows of other lengths: ATAX 6.3, 5.7, 3.9, 6.4 and 22, GESUMMV 15, 22, 16, 25 and 81, ADI 7.7, 4.7, 4.0, 4.3 and
/// 9.5.
unsigned width_by_rows(const FunctionGraph& graph, const TargetCpu& target, unsigned widest) {
    for (unsigned width : {32u, 16u, 8u, 4u}) {
        if (width > widest) continue;
        const RowWalks walks = find_row_walks(graph, width);
        if (!walks.any) return widest;
        if (fits_cache(walks, target, width)) return width;
    }
    return 1;
}

} // namespace

unsigned natural_width(const TargetCpu& target, bool whole_warp) {
    if (whole_warp || target.avx512) return 32; // collectives see the whole warp at once
    if (target.architecture != TargetCpu::Architecture::aarch64) return 16;
    return std::max(8u, sve_bits(target) / 16); // two registers of words
}

bool is_of_whole_warps(const FunctionGraph& graph) {
    return std::any_of(graph.blocks.begin(), graph.blocks.end(), [&](const Block& block) {
        return std::any_of(block.instructions.begin(), block.instructions.end(), [](const GraphInstruction& each) {
            return has_effect(each.inst, ptx::Effects::whole_warp);
        });
    });
}

unsigned quick_width(const FunctionGraph& graph, const TargetCpu& target, bool talks) {
    return talks || is_of_whole_warps(graph) ? natural_width(target, true) : 1;
}

unsigned choose_width(const FunctionGraph& graph, const TargetCpu& target, bool whole_warp, unsigned row) {
    unsigned natural = natural_width(target, whole_warp);
    if (whole_warp || may_communicate(graph)) return natural;
    if (graph.statements_by_pointer > long_choices) return 1;
    if (!uses_shared_memory(graph) && walks_memory_lane_by_lane(graph, LaneWalks::worthwhile_share)) {
        const bool gathers = !target.has_slow_gathers() && walks_memory_lane_by_lane(graph, fast_gather_share);
        return gathers ? std::min(natural, 8u) : 1;
    }
    const unsigned width = width_by_registers(graph, target, natural, row);
    return uses_shared_memory(graph) ? width : width_by_rows(graph, target, width);
}

} // namespace ptarmigan::translator
