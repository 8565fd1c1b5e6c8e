// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/neighbour_access.h"

#include "translator/lower/chunked_access.h"

namespace ptarmigan::translator::lower {

using llvm::Value;
using ptx::StateSpace;

namespace {

using Planner = std::optional<AccessPlan>(const AccessPattern&);

/// Strides through shared memory spare its banks, local memory has one of its own. But what is computed lane by lane (a
/// butterfly's 2 * t - t % stride) often runs along shared memory, too.
bool is_candidate(WarpEmitter& e, const MemoryAccess& access) {
    const StateSpace space = access.address.space;
    return e.width() > 1 && access.strength == Strength::weak && !access.address.interleaved &&
           (space == StateSpace::global || space == StateSpace::generic ||
            (space == StateSpace::shared && access.address.address.shape.is_varying()));
}

/// i1: all lanes are active; null if that is known.
Value* all_lanes_active(WarpEmitter& e) {
    if (e.all_active()) return nullptr;
    return e.ir().CreateICmpEQ(e.active_bits(), e.ir().getInt64(e.width() == 64 ? ~0ull : (1ull << e.width()) - 1));
}

/// `b` counts only where `a` holds: it may be computed from lanes that are not active, which hold anything, poison too.
Value* both(Ir& ir, Value* a, Value* b) {
    return a && b ? ir.CreateLogicalAnd(a, b) : a ? a : b;
}

/// Bytes that a lane accesses, times its number.
LaneOffsets side_by_side(WarpEmitter& e, std::int64_t lane_bytes) {
    LaneOffsets offsets(e.width());
    for (unsigned lane = 0; lane < e.width(); ++lane) offsets[lane] = lane * lane_bytes;
    return offsets;
}

/// i1: every lane's address is `lane_bytes` behind that of the lane before it.
Value* are_neighbours(WarpEmitter& e, Value* addresses, std::int64_t lane_bytes) {
    Ir& ir = e.ir();
    llvm::SmallVector<llvm::Constant*, 32> distances;
    for (std::int64_t distance : side_by_side(e, lane_bytes)) distances.push_back(ir.getInt64(std::uint64_t(distance)));
    Value* first = e.splat(ir.CreateExtractElement(addresses, std::uint64_t(0)));
    Value* expected = ir.CreateAdd(first, llvm::ConstantVector::get(distances));
    return ir.CreateICmpEQ(ir.CreateOrReduce(ir.CreateXor(addresses, expected)), ir.getInt64(0));
}

std::optional<NeighbourAccess> neighbours(WarpEmitter& e, const MemoryAccess& access, Planner& planner) {
    if (!is_candidate(e, access)) return std::nullopt;
    Ir& ir = e.ir();
    const LaneValue& address = access.address.address;
    const std::int64_t lane_bytes = std::int64_t(access.bytes) * access.count;
    AccessPattern pattern = pattern_of(e, access);
    LaneOffsets offsets;
    if (address.is_affine()) {
        if (!pattern.steps) return std::nullopt;
        offsets = *pattern.offsets;
        for (unsigned lane = 0; lane < e.width(); ++lane) offsets[lane] += lane_bytes * (*pattern.steps)[lane];
    } else {
        // Lanes that are not active have no address, so all must be.
        if (e.options().target.has_slow_gathers() && !e.all_active() && access.address.space == StateSpace::shared)
            return std::nullopt;
        if (!e.may_be_neighbours(e.current()[ptx::Role::a])) return std::nullopt;
        offsets = side_by_side(e, lane_bytes);
    }
    pattern.offsets = &offsets;
    pattern.steps = nullptr;
    std::optional<AccessPlan> plan = planner(pattern);
    // Lanes that are computed one by one are hardly ever further apart than their elements are wide.
    const bool leaves_gaps_out = pattern.masks_gaps && address.is_affine();
    if (!plan || (&planner == &plan_store && !plan->gapless && !leaves_gaps_out)) return std::nullopt;
    NeighbourAccess result{access, std::move(*plan), nullptr};
    const bool maskable = address.is_affine() && result.plan.gapless && takes_mask(e, access, result.plan);
    Value* condition = maskable ? nullptr : all_lanes_active(e);
    if (address.is_affine()) {
        condition = both(ir, condition, access.address.guard);
        condition = both(ir, condition, ir.CreateICmpEQ(address.stride, ir.getInt64(std::uint64_t(lane_bytes))));
    } else {
        condition = both(ir, condition, are_neighbours(e, address.base, lane_bytes));
        result.access.address.address.base = ir.CreateExtractElement(address.base, std::uint64_t(0));
    }
    result.condition = condition;
    return result;
}

} // namespace

std::optional<NeighbourAccess> load_of_neighbours(WarpEmitter& e, const MemoryAccess& access) {
    return neighbours(e, access, plan_load);
}

std::optional<NeighbourAccess> store_of_neighbours(WarpEmitter& e, const MemoryAccess& access) {
    return neighbours(e, access, plan_store);
}

} // namespace ptarmigan::translator::lower
