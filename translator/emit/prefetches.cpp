// SPDX-License-Identifier: Apache-2.0
// Words that later rounds, steps or CTAs want, asked for behind an access (analysis/loops/plan_prefetch.h).
#include "frontend/isa/instruction_form.h"
#include "translator/analysis/memory/alignment.h"
#include "translator/emit/graph_emitter.h"
#include "translator/lower/prefetch.h"

#include <algorithm>

namespace ptarmigan::translator {

/// `constant` + `factor` * the stride.
llvm::Value* GraphEmitter::distance_ahead(const Prefetch& wanted, std::int64_t constant, std::int64_t factor) {
    llvm::Value* distance = ir_.getInt64(std::uint64_t(constant));
    if (factor == 0) return distance;
    llvm::Value* stride = ir_.CreateSExt(value_at(current_block_, wanted.stride).base, ir_.getInt64Ty());
    return ir_.CreateAdd(distance, ir_.CreateMul(stride, ir_.getInt64(std::uint64_t(factor))));
}

/// What a step reads in a turn and in its next one may all lie in one set of the first cache. On a Zen 5 (12 ways),
/// into the first and the second cache, CPU ms: gemv_half, 16 rows a turn, 2.2 and 1.7; reduce, 8, with 128 CTAs 2.9
/// and 3.6, with 1,024 3.9 and 3.7.
bool GraphEmitter::turns_overfill_set(BlockId id) const {
    constexpr std::ptrdiff_t most_rows = 8;
    const std::uint32_t loop = graph_.forest.loop_of[id];
    if (loop == no_loop) return false;
    const auto& instructions = graph_.blocks[id].instructions;
    const auto rows = std::count_if(instructions.begin(), instructions.end(),
                                    [](const GraphInstruction& each) { return each.prefetch.counter != no_value; });
    return rows * std::ptrdiff_t(graph_.forest.loops[loop].turn_rounds) > most_rows;
}

void GraphEmitter::emit_prefetch(const ptx::Instruction& inst, const Prefetch& wanted) {
    const LaneAddress place = address(inst[ptx::Role::a], inst.space);
    llvm::Value* ahead = distance_ahead(wanted, wanted.ahead, wanted.factor);
    if (wanted.counter != no_value) {
        const auto wide = [&](ValueId value) {
            return ir_.CreateSExt(value_at(current_block_, value).base, ir_.getInt64Ty());
        };
        const bool down = wanted.counter_factor < 0 || (wanted.counter_factor == 0 && wanted.counter_ahead < 0);
        llvm::Value* later =
            ir_.CreateAdd(wide(wanted.counter), distance_ahead(wanted, wanted.counter_ahead, wanted.counter_factor));
        llvm::Value* bound =
            wanted.bound == no_value ? ir_.getInt64(std::uint64_t(wanted.bound_constant)) : wide(wanted.bound);
        llvm::Value* goes_on = down ? ir_.CreateICmpSGT(later, bound) : ir_.CreateICmpSLT(later, bound);
        ahead = ir_.CreateSelect(goes_on, ahead, ir_.getInt64(0)); // its own line, which it has
    }
    // A piece of a row that several lanes read is the next warp's; other places are this warp's own. Where CTAs run in
    // rows all are the next steps'.
    const bool is_own = (place.address.is_uniform() || wanted.factor != 0) &&
                        !(wanted.counter != no_value && turns_overfill_set(current_block_));
    auto level = is_own || unit_.runs_in_rows ? lower::CacheLevel::first : lower::CacheLevel::second;
    lower::prefetch_ahead(*this, place, access_bytes(inst), ahead, level,
                          /*for_write=*/!ptx::any(ptx::form_info(inst.form).effects, ptx::Effects::load));
}

} // namespace ptarmigan::translator
