// SPDX-License-Identifier: Apache-2.0
// Choosing how a step loads and stores, see memory_access.h. The chunked forms are in chunked_access.cpp.
#include "translator/lower/memory_access.h"

#include "translator/kernel_abi.h"
#include "translator/llvm/access_places.h"
#include "translator/llvm/long_code.h"
#include "translator/lower/access_mark.h"
#include "translator/lower/chunked_access.h"
#include "translator/lower/lane_access.h"
#include "translator/lower/neighbour_access.h"
#include "translator/lower/place_pairs.h"
#include "translator/lower/prefetch.h"
#include "translator/lower/row_access.h"
#include "translator/lower/window_access.h"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <limits>

namespace ptarmigan::translator::lower {

using llvm::Value;
using ptx::StateSpace;

namespace {

llvm::AtomicOrdering ordering(Strength strength) {
    switch (strength) {
    case Strength::acquire: return llvm::AtomicOrdering::Acquire;
    case Strength::release: return llvm::AtomicOrdering::Release;
    default: return llvm::AtomicOrdering::Monotonic;
    }
}

/// One load for the whole step. Without an active lane it reads the CTA's context instead, which is always there:
/// cheaper than a branch.
ValueList load_uniform(WarpEmitter& e, const MemoryAccess& access) {
    Ir& ir = e.ir();
    std::optional<AccessMark> mark;
    if (e.all_active()) mark.emplace(e, of_all_lanes(e));
    Value* at = pointer(e, access.address.address.base);
    bool always_there = e.all_active() || (access.invariant && access.address.space == StateSpace::param);
    if (!always_there) at = ir.CreateSelect(e.any(e.active()), at, e.cta_context());
    // The context is aligned to 8 bytes only.
    unsigned alignment = always_there ? access.bytes * access.count : std::min(8u, access.bytes * access.count);
    ValueList result;
    if (access.strength == Strength::weak) {
        llvm::Type* type =
            access.count == 1 ? access.element : llvm::FixedVectorType::get(access.element, access.count);
        llvm::LoadInst* load = ir.CreateAlignedLoad(type, at, llvm::Align(alignment));
        tag_space(e, load, access.address.space);
        if (access.invariant)
            load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(e.context(), {}));
        for (unsigned k = 0; k < access.count; ++k)
            result.push_back(access.count == 1 ? load : ir.CreateExtractElement(load, k));
        return result;
    }
    for (unsigned k = 0; k < access.count; ++k) {
        Value* element = ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), at, k * access.bytes);
        llvm::LoadInst* load = ir.CreateAlignedLoad(ir.getIntNTy(access.bytes * 8), element, llvm::Align(access.bytes),
                                                    /*isVolatile=*/true);
        load->setAtomic(ordering(access.strength));
        result.push_back(to_element(e, load, access.element));
    }
    return result;
}

/// The value that the highest active lane holds; some lane must be active.
Value* of_last_lane(WarpEmitter& e, const LaneValue& value) {
    if (value.is_uniform()) return value.base;
    Ir& ir = e.ir();
    if (e.all_active()) return ir.CreateExtractElement(e.broadcast(value), std::uint64_t(e.width() - 1));
    Value* zeros = ir.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, e.active_bits(), ir.getFalse());
    Value* lane = ir.CreateSub(ir.getInt64(63), zeros);
    lane = ir.CreateAnd(lane, ir.getInt64(e.width() - 1));
    return ir.CreateExtractElement(e.broadcast(value), lane);
}

void store_uniform(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<LaneValue> values) {
    Ir& ir = e.ir();
    std::optional<AccessMark> mark;
    if (e.all_active()) mark.emplace(e, of_all_lanes(e));
    auto store = [&] {
        for (unsigned k = 0; k < access.count; ++k) {
            Value* at = ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), pointer(e, access.address.address.base),
                                                      k * access.bytes);
            Value* value = of_last_lane(e, values[k]);
            if (access.strength == Strength::weak) {
                tag_space(e, ir.CreateAlignedStore(value, at, llvm::Align(access.bytes)), access.address.space);
            } else {
                llvm::StoreInst* strong = ir.CreateAlignedStore(to_integer(e, value), at, llvm::Align(access.bytes),
                                                                /*isVolatile=*/true);
                strong->setAtomic(ordering(access.strength));
            }
        }
    };
    if (e.all_active())
        store();
    else
        e.if_then(e.any(e.active()), store);
}

Value* both(WarpEmitter& e, Value* a, Value* b) {
    return a && b ? e.ir().CreateAnd(a, b) : a ? a : b;
}

/// When the chunked form applies, null if always: the affine form must hold, and all lanes must be active unless
/// masks can be cut along with the chunks.
Value* chunk_condition(WarpEmitter& e, const MemoryAccess& access, bool maskable) {
    Ir& ir = e.ir();
    Value* condition = access.address.guard;
    if (maskable || e.all_active()) return condition;
    Value* bits = e.active_bits();
    Value* full = ir.CreateICmpEQ(bits, ir.getInt64(e.width() == 64 ? ~0ull : (1ull << e.width()) - 1));
    return condition ? ir.CreateAnd(condition, full) : full;
}

/// i1: no part of a masked access lies beyond shared memory (shared_edges.h); null if that can't be.
Value* lies_in_shared_memory(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan) {
    const bool is_x86 = e.options().target.architecture == TargetCpu::Architecture::x86_64;
    const SharedEdges edges = e.shared_edges();
    if (e.all_active() || access.address.space != StateSpace::shared || !(edges.below || edges.beyond) || !is_x86 ||
        is_long_code(e.module()))
        return nullptr;
    std::int64_t first = std::numeric_limits<std::int64_t>::max(), end = std::numeric_limits<std::int64_t>::min();
    for (const AccessPlan::Chunk& chunk : plan.chunks) {
        if (chunk.step) return nullptr;
        first = std::min(first, chunk.offset);
        end = std::max(end, chunk.offset + std::int64_t(chunk.length) * access.bytes);
    }
    Ir& ir = e.ir();
    const auto behind = [&](Value* address, std::int64_t bytes) {
        return ir.CreateAdd(address, ir.getInt64(std::uint64_t(bytes)));
    };
    Value* base = access.address.address.base;
    Value* window = e.context_field(ir.getInt64Ty(), offsetof(abi::CtaContext, shared), "shared");
    Value* result = nullptr;
    if (edges.below) result = ir.CreateICmpUGE(behind(base, first), window);
    if (edges.beyond) {
        constexpr std::int64_t page = 4096; // or a multiple of it
        Value* size = e.context_field(ir.getInt32Ty(), offsetof(abi::CtaContext, shared_size), "shared.size");
        size = ir.CreateAnd(behind(ir.CreateZExt(size, ir.getInt64Ty()), page - 1), ir.getInt64(std::uint64_t(-page)));
        result = both(e, result, ir.CreateICmpULE(behind(base, end), ir.CreateAdd(window, size)));
    }
    return result;
}

/// Neighbours at run time are likely to be so, but not by far.
constexpr unsigned neighbour_odds = 8;

/// Where the affine form holds, an access without a guard.
MemoryAccess unguarded(MemoryAccess access) {
    access.address.guard = nullptr;
    access.address.address.shape.guard = no_value;
    return access;
}

/// Every lane on its own.
ValueList load_each_lane(WarpEmitter& e, const MemoryAccess& access) {
    return wants_rows(e, access) && !goes_in_loops(e) ? load_rows(e, access) : gather(e, access);
}

ValueList load_by_lane(WarpEmitter& e, const MemoryAccess& access) {
    if (!access.address.guard || !is_at_distances(e, unguarded(access))) return load_each_lane(e, access);
    return e.if_else_list(
        access.address.guard, [&] { return load_each_lane(e, unguarded(access)); },
        [&] { return gather_in_loop(e, access); });
}

/// Likewise, where lanes may lie close together.
ValueList load_near(WarpEmitter& e, const MemoryAccess& access) {
    const std::optional<WindowAccess> near = window_access(e, access);
    if (!near) return load_by_lane(e, access);
    return e.if_else_list(
        near->condition, [&] { return load_windows(e, access, *near); }, [&] { return load_by_lane(e, access); },
        neighbour_odds);
}

/// Lanes a stride apart that only the launch knows: a broadcast has 0. Not in loops, where a test for each element of a
/// column costs (SYRK of bench/kernels a twentieth).
ValueList load_by_stride(WarpEmitter& e, const MemoryAccess& access) {
    const LaneValue& address = access.address.address;
    if (e.neighbours_ahead() == 0 || !address.is_affine() || !address.stride ||
        std::any_of(address.shape.offsets->begin(), address.shape.offsets->end(), [](auto offset) { return offset; }))
        return load_near(e, access);
    Ir& ir = e.ir();
    MemoryAccess one = unguarded(access);
    one.address.address = LaneValue::uniform(address.base);
    return e.if_else_list(
        both(e, access.address.guard, ir.CreateICmpEQ(address.stride, ir.getInt64(0))),
        [&] {
            ValueList values = load_uniform(e, one);
            for (Value*& value : values) value = e.splat(value);
            return values;
        },
        [&] { return load_near(e, access); }, 1);
}

/// A lane's vector of bytes or halfwords as one element. LLVM 19 and older join shuffles of such small elements wrongly
/// for AVX-512 (a step of 32 lanes that loads the v4.u8 it has just stored), and shifts are cheaper anyway.
bool moves_as_word(const MemoryAccess& access) {
    return access.count > 1 && access.bytes < 4 && access.bytes * access.count <= 8 && !access.element_aligned;
}

MemoryAccess as_word(WarpEmitter& e, const MemoryAccess& access) {
    MemoryAccess word = access;
    word.bytes = access.bytes * access.count;
    word.element = e.ir().getIntNTy(word.bytes * 8);
    word.count = 1;
    return word;
}

/// Of lanes that turned out to be neighbours: what later CTAs read.
void ask_ahead(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan) {
    const LaneValue& address = access.address.address;
    if (e.neighbours_ahead() == 0) return;
    for (const AccessPlan::Chunk& chunk : plan.chunks) {
        LaneAddress piece = access.address;
        piece.address = LaneValue::uniform(address.base);
        prefetch_ahead(e, piece, access.bytes, e.ir().getInt64(std::uint64_t(chunk.offset + e.neighbours_ahead())),
                       CacheLevel::first);
    }
}

ValueList load_varying(WarpEmitter& e, const MemoryAccess& access) {
    if (moves_as_word(access)) return from_words(e, access, load_varying(e, as_word(e, access)));
    if (std::optional<PlacePair> places = place_pair(e, access)) return load_pair(e, access, *places);
    if (access.address.address.is_affine()) {
        if (std::optional<AccessPlan> plan = plan_load(pattern_of(e, access))) {
            bool maskable = plan->gapless && takes_mask(e, access, *plan);
            auto fast = [&] { return load_chunks(e, access, *plan); };
            Value* condition = chunk_condition(e, access, maskable);
            if (maskable) condition = both(e, condition, lies_in_shared_memory(e, access, *plan));
            if (!condition) return fast();
            if (!maskable && !access.address.guard && deals_mask_out(e, access, *plan)) {
                auto masked = [&] { return load_chunks(e, access, *plan, true); };
                auto each = [&] { return gather(e, access); };
                return e.if_else_list(
                    condition, fast,
                    [&] {
                        Value* inside = lies_in_shared_memory(e, access, *plan);
                        return inside ? e.if_else_list(inside, masked, each) : masked();
                    },
                    neighbour_odds);
            }
            // Where only the guard decides, lanes wrap: that hardly ever happens.
            const bool rare = (condition == access.address.guard && e.width() > 1) || goes_in_loops(e);
            return e.if_else_list(condition, fast,
                                  [&] { return rare ? gather_in_loop(e, access) : gather(e, access); });
        }
    }
    if (goes_in_loops(e, access)) return gather_in_loop(e, access);
    if (std::optional<NeighbourAccess> near = load_of_neighbours(e, access))
        return e.if_else_list(
            near->condition,
            [&] {
                ask_ahead(e, near->access, near->plan);
                return load_chunks(e, near->access, near->plan);
            },
            [&] { return load_by_stride(e, access); }, neighbour_odds);
    return load_near(e, access);
}

/// i1: the grid streams and whole lines are written; null if the latter is never so.
Value* streaming_condition(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan) {
    if (!e.may_stream() || !e.all_active()) return nullptr;
    Value* whole = fills_lines(e, access, plan);
    if (!whole) return nullptr;
    Ir& ir = e.ir();
    Value* streams = e.context_field(ir.getInt32Ty(), offsetof(abi::CtaContext, streams), "streams");
    return ir.CreateAnd(ir.CreateICmpNE(streams, ir.getInt32(0)), whole);
}

void store_planned(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan, llvm::ArrayRef<Value*> values) {
    Value* streams = streaming_condition(e, access, plan);
    auto store = [&](bool past_caches) -> Value* {
        store_chunks(e, access, plan, values, past_caches ? StoreForm::past_caches : StoreForm::plain);
        return nullptr;
    };
    if (streams)
        e.if_else(
            streams, [&] { return store(true); }, [&] { return store(false); });
    else
        store(false);
}

void store_by_lane(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<Value*> values) {
    if (!access.address.guard || !is_at_distances(e, unguarded(access))) return scatter(e, access, values);
    e.if_else(
        access.address.guard, [&]() -> Value* { return scatter(e, unguarded(access), values), nullptr; },
        [&]() -> Value* { return scatter_in_loop(e, access, values), nullptr; });
}

void store_near(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<Value*> values) {
    const std::optional<WindowAccess> near = window_access(e, access);
    if (!near) return store_by_lane(e, access, values);
    e.if_else_list(
        near->condition, [&]() -> ValueList { return store_windows(e, access, *near, values.front()), ValueList(); },
        [&]() -> ValueList { return store_by_lane(e, access, values), ValueList(); }, neighbour_odds);
}

void store_varying(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<Value*> values) {
    if (moves_as_word(access)) return store_varying(e, as_word(e, access), to_words(e, access, values));
    if (access.address.address.is_affine()) {
        const AccessPattern pattern = pattern_of(e, access);
        if (std::optional<AccessPlan> plan = plan_store(pattern); plan && (plan->gapless || pattern.masks_gaps)) {
            auto fast = [&]() -> ValueList { return store_planned(e, access, *plan, values), ValueList(); };
            // Masks of lanes and gaps together cost more than a branch.
            const bool maskable = plan->gapless && takes_mask(e, access, *plan);
            Value* condition = chunk_condition(e, access, maskable);
            if (maskable) condition = both(e, condition, lies_in_shared_memory(e, access, *plan));
            auto slow = [&]() -> ValueList {
                const bool rare = (condition == access.address.guard && e.width() > 1) || goes_in_loops(e);
                if (rare)
                    scatter_in_loop(e, access, values);
                else
                    scatter(e, access, values);
                return {};
            };
            if (condition && !maskable && !access.address.guard && deals_mask_out(e, access, *plan)) {
                auto masked = [&]() -> ValueList {
                    return store_chunks(e, access, *plan, values, StoreForm::deals_mask_out), ValueList();
                };
                e.if_else_list(
                    condition, fast,
                    [&] {
                        Value* inside = lies_in_shared_memory(e, access, *plan);
                        return inside ? e.if_else_list(inside, masked, slow) : masked();
                    },
                    neighbour_odds);
            } else if (condition)
                e.if_else_list(condition, fast, slow);
            else
                fast();
            return;
        }
    }
    if (goes_in_loops(e, access)) return scatter_in_loop(e, access, values);
    if (std::optional<NeighbourAccess> near = store_of_neighbours(e, access))
        e.if_else_list(
            near->condition,
            [&]() -> ValueList { return store_planned(e, near->access, near->plan, values), ValueList(); },
            [&]() -> ValueList { return store_near(e, access, values), ValueList(); }, neighbour_odds);
    else
        store_near(e, access, values);
}

} // namespace

bool loads_lane_by_lane(WarpEmitter& e, const MemoryAccess& access) {
    if (access.address.address.is_uniform()) return false;
    if (!access.address.address.is_affine()) return !place_pair(e, access);
    std::optional<AccessPlan> plan = plan_load(pattern_of(e, access));
    return !plan || !plan->exclusive || !plan->gapless;
}

llvm::SmallVector<LaneValue, 8> load_lanes(WarpEmitter& e, const MemoryAccess& access) {
    llvm::SmallVector<LaneValue, 8> result;
    if (access.address.address.is_uniform()) {
        for (Value* value : load_uniform(e, access)) result.push_back(LaneValue::uniform(value));
        return result;
    }
    // LLVM has no atomic vector accesses. CPUs do not tear aligned elements, so it is enough to pin the access.
    if (access.strength != Strength::weak) compiler_fence(e);
    for (Value* value : load_varying(e, access)) result.push_back(LaneValue::varying(value));
    if (access.strength == Strength::acquire)
        e.ir().CreateFence(llvm::AtomicOrdering::Acquire);
    else if (access.strength != Strength::weak)
        compiler_fence(e);
    return result;
}

void store_lanes(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<LaneValue> values) {
    if (access.address.address.is_uniform()) {
        store_uniform(e, access, values);
        return;
    }
    if (access.strength == Strength::release)
        e.ir().CreateFence(llvm::AtomicOrdering::Release);
    else if (access.strength != Strength::weak)
        compiler_fence(e);
    ValueList vectors;
    for (const LaneValue& value : values) vectors.push_back(e.broadcast(value));
    store_varying(e, access, vectors);
    if (access.strength != Strength::weak) compiler_fence(e);
}

void tag_space(WarpEmitter& e, llvm::Instruction* access, StateSpace space) {
    const char* name = nullptr;
    switch (space) {
    case StateSpace::global: name = "global"; break;
    case StateSpace::shared: name = "shared"; break;
    case StateSpace::local: name = "local"; break;
    default: break;
    }
    llvm::MDBuilder builder(e.context());
    llvm::MDNode* type = builder.createTBAAScalarTypeNode("ptx memory", builder.createTBAARoot("ptarmigan"));
    if (name) type = builder.createTBAAScalarTypeNode(name, type);
    access->setMetadata(llvm::LLVMContext::MD_tbaa, builder.createTBAAStructTagNode(type, type, 0));
    keep_place(*access);
}

Value* pointer(WarpEmitter& e, Value* address) {
    return e.ir().CreateIntToPtr(address, e.ir().getPtrTy());
}

void compiler_fence(WarpEmitter& e) {
    e.ir().CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
}

} // namespace ptarmigan::translator::lower
