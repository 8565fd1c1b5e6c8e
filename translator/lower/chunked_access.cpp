// SPDX-License-Identifier: Apache-2.0
// Chunked loads and stores, see chunked_access.h.
#include "translator/lower/chunked_access.h"

#include "translator/lower/access_mark.h"
#include "translator/lower/lane_pointers.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <array>
#include <bit>
#include <optional>

namespace ptarmigan::translator::lower {

using llvm::Value;

namespace {

/// A line of the caches.
constexpr std::int64_t line_bytes = 64;

/// Selects elements out of any number of vectors: result[i] = sources[pick[i].source][pick[i].element].
struct Pick {
    int source = -1; ///< -1: any value
    int element = 0;
};

Value* widen(Ir& ir, Value* vector, unsigned length) {
    unsigned have = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
    if (have == length) return vector;
    llvm::SmallVector<int, 64> mask(length, -1);
    for (unsigned i = 0; i < have; ++i) mask[i] = int(i);
    return ir.CreateShuffleVector(vector, mask);
}

unsigned length_of(Value* vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

/// shufflevector takes two sources: take them in pairs and merge the partial results.
Value* permute(Ir& ir, llvm::ArrayRef<Value*> sources, llvm::ArrayRef<Pick> picks) {
    llvm::SmallVector<int, 16> used;
    for (const Pick& pick : picks)
        if (pick.source >= 0 && std::find(used.begin(), used.end(), pick.source) == used.end())
            used.push_back(pick.source);
    Value* result = nullptr;
    llvm::SmallVector<bool, 64> filled(picks.size(), false);
    for (unsigned pair = 0; pair < used.size(); pair += 2) {
        int first = used[pair], second = pair + 1 < used.size() ? used[pair + 1] : -1;
        Value* a = sources[unsigned(first)];
        Value* b = second >= 0 ? sources[unsigned(second)] : a;
        unsigned length = std::max(length_of(a), length_of(b));
        a = widen(ir, a, length);
        b = second >= 0 ? widen(ir, b, length) : llvm::PoisonValue::get(a->getType());
        llvm::SmallVector<int, 64> mask(picks.size(), -1), merge(picks.size(), -1);
        for (unsigned i = 0; i < picks.size(); ++i) {
            if (filled[i]) merge[i] = int(i);
            if (picks[i].source < 0 || (picks[i].source != first && picks[i].source != second)) continue;
            mask[i] = picks[i].element + (picks[i].source == first ? 0 : int(length));
            merge[i] = int(picks.size() + i);
            filled[i] = true;
        }
        Value* part = ir.CreateShuffleVector(a, b, mask);
        result = result ? ir.CreateShuffleVector(result, part, merge) : part;
    }
    return result;
}

/// Words of 32 bits in a vector register.
unsigned words_of_register(WarpEmitter& e) {
    const TargetCpu& target = e.options().target;
    return target.avx512 ? 16 : target.architecture == TargetCpu::Architecture::x86_64 ? 8 : 4;
}

/// Rows of four words, of which each lane wants one word of its own: lanes that many apart share a register, so that
/// the transposition stays within 16 bytes and serves all four columns.
constexpr unsigned row_words = 4;

/// Whether each four lanes have a row each, and all want the same column.
bool is_column(llvm::ArrayRef<Value*> sources, llvm::ArrayRef<Pick> picks) {
    for (unsigned i = 0; i < picks.size(); ++i) {
        if (picks[i].source < 0 || picks[i].element != picks[0].element) return false;
        auto* row = llvm::cast<llvm::FixedVectorType>(sources[unsigned(picks[i].source)]->getType());
        if (row->getNumElements() != row_words || row->getScalarSizeInBits() != 32) return false;
        for (unsigned before = i - i % row_words; before < i; ++before)
            if (picks[before].source == picks[i].source) return false;
    }
    return true;
}

Value* column(Ir& ir, llvm::ArrayRef<Value*> sources, llvm::ArrayRef<Pick> picks) {
    const unsigned length = unsigned(picks.size()), element = unsigned(picks[0].element);
    const auto shuffled = [&](Value* a, Value* b, std::array<unsigned, row_words> of_both) { // of each 16 bytes
        llvm::SmallVector<int, 64> mask;
        for (unsigned first = 0; first < length; first += row_words)
            for (unsigned each : of_both)
                mask.push_back(int(first + (each < row_words ? each : length + each - row_words)));
        return ir.CreateShuffleVector(a, b, mask);
    };
    llvm::SmallVector<Value*, row_words> rows;
    for (unsigned i = 0; i < row_words; ++i) {
        llvm::SmallVector<Value*, 8> parts;
        for (unsigned lane = i; lane < length; lane += row_words)
            parts.push_back(sources[unsigned(picks[lane].source)]);
        rows.push_back(join_lanes(ir, std::move(parts)));
    }
    const unsigned pair = element / 2 * 2; // both columns of a pair come from the same two vectors
    Value* first = shuffled(rows[0], rows[1], {pair, pair + 4, pair + 1, pair + 5});
    Value* second = shuffled(rows[2], rows[3], {pair, pair + 4, pair + 1, pair + 5});
    return element % 2 == 0 ? shuffled(first, second, {0, 1, 4, 5}) : shuffled(first, second, {2, 3, 6, 7});
}

Value* chunk_pointer(WarpEmitter& e, const MemoryAccess& access, const AccessPlan::Chunk& chunk) {
    Ir& ir = e.ir();
    Value* base = access.address.address.base;
    if (chunk.step)
        base = ir.CreateAdd(base, ir.CreateMul(access.address.address.stride, ir.getInt64(std::uint64_t(chunk.step))));
    Value* at = pointer(e, base);
    return chunk.offset ? ir.CreateConstGEP1_64(ir.getInt8Ty(), at, std::uint64_t(chunk.offset)) : at;
}

/// Lanes are mostly aligned to their whole access, so chunks that start with a lane are too.
llvm::Align chunk_alignment(const MemoryAccess& access, const AccessPlan& plan, unsigned chunk) {
    unsigned owner = plan.owners[chunk].front();
    bool starts_lane = owner != AccessPlan::no_lane && owner % access.count == 0;
    return llvm::Align(starts_lane && !access.element_aligned ? access.bytes * access.count : access.bytes);
}

/// The active mask as a mask over the elements of a chunk of an exclusive plan with one element per lane.
Value* cut_mask(WarpEmitter& e, const AccessPlan& plan, unsigned chunk) {
    llvm::SmallVector<int, 64> lanes;
    bool identity = plan.owners[chunk].size() == e.width();
    for (unsigned i = 0; i < plan.owners[chunk].size(); ++i) {
        lanes.push_back(int(plan.owners[chunk][i]));
        identity &= plan.owners[chunk][i] == i;
    }
    return identity ? e.active() : e.ir().CreateShuffleVector(e.active(), lanes);
}

/// Whose elements of a chunk they are, as bits: each lane that has some has all of its `count` there, one behind the
/// other, and lanes are in order.
struct LaneRuns {
    std::uint64_t lanes = 0, firsts = 0; ///< the lanes; the first element of each
};

std::optional<LaneRuns> lane_runs(const MemoryAccess& access, llvm::ArrayRef<unsigned> owners) {
    LaneRuns runs;
    unsigned next_lane = 0;
    for (unsigned i = 0; i < owners.size();) {
        if (owners[i] == AccessPlan::no_lane) {
            ++i;
            continue;
        }
        const unsigned lane = owners[i] / access.count;
        if (lane < next_lane || i + access.count > owners.size()) return std::nullopt;
        for (unsigned k = 0; k < access.count; ++k)
            if (owners[i + k] != lane * access.count + k) return std::nullopt;
        runs.lanes |= std::uint64_t(1) << lane;
        runs.firsts |= std::uint64_t(1) << i;
        next_lane = lane + 1;
        i += access.count;
    }
    return runs;
}

/// The active lanes as a mask over the elements of a chunk.
Value* element_mask(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan, unsigned chunk) {
    Ir& ir = e.ir();
    const LaneRuns runs = *lane_runs(access, plan.owners[chunk]);
    const unsigned length = plan.chunks[chunk].length;
    Value* bits = e.active_bits();
    const unsigned first = unsigned(std::countr_zero(runs.lanes));
    if (const std::uint64_t run = runs.lanes >> first; (run & (run + 1)) == 0)
        bits = ir.CreateLShr(bits, std::uint64_t(first));
    else
        bits = ir.CreateIntrinsic(llvm::Intrinsic::x86_bmi_pext_64, {}, {bits, ir.getInt64(runs.lanes)});
    bits = ir.CreateIntrinsic(llvm::Intrinsic::x86_bmi_pdep_64, {}, {bits, ir.getInt64(runs.firsts)});
    if (access.count > 1) bits = ir.CreateMul(bits, ir.getInt64((std::uint64_t(1) << access.count) - 1));
    return ir.CreateBitCast(ir.CreateTrunc(bits, ir.getIntNTy(length)),
                            llvm::FixedVectorType::get(ir.getInt1Ty(), length));
}

/// The elements of a chunk that lanes have; null: all of them.
llvm::Value* gap_mask(WarpEmitter& e, const AccessPlan& plan, unsigned chunk) {
    llvm::SmallVector<llvm::Constant*, 64> elements;
    bool has_gap = false;
    for (unsigned owner : plan.owners[chunk]) {
        elements.push_back(e.ir().getInt1(owner != AccessPlan::no_lane));
        has_gap |= owner == AccessPlan::no_lane;
    }
    return has_gap ? llvm::ConstantVector::get(elements) : nullptr;
}

/// Whose elements a chunk holds.
AccessForm form_of(const MemoryAccess& access, const AccessPlan& plan, unsigned chunk) {
    AccessForm form{AccessForm::Kind::elements, std::uint8_t(access.bytes), {}};
    for (unsigned owner : plan.owners[chunk])
        form.lanes.push_back(owner == AccessPlan::no_lane ? AccessForm::no_lane : std::uint8_t(owner / access.count));
    return form;
}

/// Lanes that are permuted at a time: what one register holds.
unsigned group_size(WarpEmitter& e, const AccessPlan& plan) {
    unsigned longest = 1;
    for (const AccessPlan::Chunk& chunk : plan.chunks) longest = std::max(longest, chunk.length);
    return std::min(e.width(), longest);
}

/// Runs of elements as vectors of equal length, one behind the other.
using Pieces = llvm::SmallVector<Value*, 16>;

/// The elements of a and b by turns: a register's worth from two at a time.
Pieces interleave(Ir& ir, const Pieces& a, const Pieces& b) {
    const int length = int(length_of(a.front()));
    llvm::SmallVector<int, 64> low, high;
    for (int i = 0; i < length; ++i) {
        low.push_back(i / 2 + (i % 2) * length);
        high.push_back((length + i) / 2 + (i % 2) * length);
    }
    Pieces result;
    for (unsigned i = 0; i < a.size(); ++i) {
        result.push_back(ir.CreateShuffleVector(a[i], b[i], low));
        result.push_back(ir.CreateShuffleVector(a[i], b[i], high));
    }
    return result;
}

/// Every second element, from `first` on.
Pieces every_second(Ir& ir, const Pieces& all, int first) {
    llvm::SmallVector<int, 64> mask;
    for (int i = 0; i < int(length_of(all.front())); ++i) mask.push_back(2 * i + first);
    Pieces result;
    for (unsigned i = 0; i < all.size(); i += 2) result.push_back(ir.CreateShuffleVector(all[i], all[i + 1], mask));
    return result;
}

/// Element k of every lane, for each k, to all elements of lane 0, of lane 1 and so on. Their number is a power of two.
Pieces to_lane_order(Ir& ir, llvm::ArrayRef<Pieces> elements) {
    if (elements.size() == 1) return elements.front();
    llvm::SmallVector<Pieces, 4> even, odd;
    for (unsigned k = 0; k < elements.size(); ++k) (k % 2 ? odd : even).push_back(elements[k]);
    return interleave(ir, to_lane_order(ir, even), to_lane_order(ir, odd));
}

/// And back.
llvm::SmallVector<Pieces, 8> from_lane_order(Ir& ir, const Pieces& all, unsigned count) {
    if (count == 1) return {all};
    const llvm::SmallVector<Pieces, 8> even = from_lane_order(ir, every_second(ir, all, 0), count / 2),
                                       odd = from_lane_order(ir, every_second(ir, all, 1), count / 2);
    llvm::SmallVector<Pieces, 8> result;
    for (unsigned k = 0; k < count; ++k) result.push_back((k % 2 ? odd : even)[k / 2]);
    return result;
}

/// Elements that a register and a lane's vector of them have.
unsigned piece_length(WarpEmitter& e, const MemoryAccess& access) {
    return std::min(e.width(), std::max(1u, pattern_of(e, access).native_bytes / access.bytes));
}

/// Several elements of each lane go by way of the lanes' order, in which they lie in memory: half as many permutes as
/// by picking each chunk's elements from their vectors. Not where lanes share elements, which are spread from their
/// chunk.
bool goes_by_lane_order(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan) {
    return plan.exclusive && access.count > 1 && std::has_single_bit(access.count) && e.width() > 1 &&
           access.bytes >= 4;
}

/// What `picks` want of sources of equal length; a source itself where that is it.
Value* pick(Ir& ir, llvm::ArrayRef<Value*> sources, llvm::ArrayRef<Pick> picks) {
    const int source = picks.front().source;
    bool whole = source >= 0 && length_of(sources[unsigned(source)]) == picks.size();
    for (int i = 0; i < int(picks.size()); ++i)
        whole = whole && picks[unsigned(i)].source == source && picks[unsigned(i)].element == i;
    return whole ? sources[unsigned(source)] : permute(ir, sources, picks);
}

} // namespace

AccessPattern pattern_of(WarpEmitter& e, const MemoryAccess& access) {
    const TargetCpu& target = e.options().target;
    AccessPattern pattern;
    pattern.offsets = access.address.address.shape.offsets;
    pattern.steps = access.address.address.stride ? access.address.address.shape.steps : nullptr;
    pattern.element_bytes = access.bytes;
    pattern.count = access.count;
    pattern.native_bytes = target.architecture == TargetCpu::Architecture::aarch64 ? 16 : target.avx512 ? 64 : 32;
    pattern.masks_gaps = target.avx512 && access.bytes >= 4;
    return pattern;
}

bool takes_mask(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan) {
    const TargetCpu& target = e.options().target;
    const bool has_small = target.avx512 || target.architecture == TargetCpu::Architecture::aarch64;
    return plan.gapless && plan.exclusive && access.count == 1 && (access.bytes >= 4 || has_small);
}

bool deals_mask_out(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan) {
    if (!e.options().target.avx512 || e.options().optimization == Optimization::least || !plan.exclusive ||
        access.bytes < 4)
        return false;
    return std::all_of(plan.owners.begin(), plan.owners.end(),
                       [&](const auto& owners) { return lane_runs(access, owners).has_value(); });
}

llvm::SmallVector<Value*, 8> load_chunks(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan,
                                         bool deals_out) {
    Ir& ir = e.ir();
    const bool masked = deals_out || (!e.all_active() && takes_mask(e, access, plan));
    unsigned group = group_size(e, plan);
    llvm::SmallVector<Value*, 8> chunks;
    for (unsigned c = 0; c < plan.chunks.size(); ++c) {
        const AccessPlan::Chunk& chunk = plan.chunks[c];
        Value* at = chunk_pointer(e, access, chunk);
        auto* type = llvm::FixedVectorType::get(access.element, chunk.length);
        llvm::Align alignment = chunk_alignment(access, plan, c);
        llvm::Instruction* load;
        const AccessMark mark(e, form_of(access, plan, c));
        if (masked)
            load = ir.CreateMaskedLoad(type, at, alignment,
                                       deals_out ? element_mask(e, access, plan, c) : cut_mask(e, plan, c),
                                       llvm::Constant::getNullValue(type));
        else if (chunk.length == 1)
            load = ir.CreateAlignedLoad(access.element, at, alignment);
        else
            load = ir.CreateAlignedLoad(type, at, alignment);
        tag_space(e, load, access.address.space);
        if (access.invariant && !masked)
            load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(e.context(), {}));
        // A single element is usually wanted by many lanes.
        chunks.push_back(chunk.length == 1 && !masked ? ir.CreateVectorSplat(group, load) : load);
    }
    llvm::SmallVector<Value*, 8> result;
    if (goes_by_lane_order(e, access, plan)) {
        const unsigned length = piece_length(e, access);
        Pieces pieces;
        for (unsigned first = 0; first < e.width() * access.count; first += length) {
            llvm::SmallVector<Pick, 64> picks;
            for (unsigned i = 0; i < length; ++i) {
                const AccessPlan::Place& place = plan.places[first + i];
                picks.push_back({int(place.chunk), int(place.element)});
            }
            pieces.push_back(pick(ir, chunks, picks));
        }
        for (const Pieces& element : from_lane_order(ir, pieces, access.count))
            result.push_back(join_lanes(ir, llvm::SmallVector<Value*, 8>(element.begin(), element.end())));
        return result;
    }
    const unsigned register_words = std::min(e.width(), words_of_register(e));
    for (unsigned k = 0; k < access.count; ++k) {
        llvm::SmallVector<Value*, 8> groups;
        const auto picks_of = [&](unsigned first, unsigned count) {
            llvm::SmallVector<Pick, 64> picks;
            for (unsigned lane = first; lane < first + count; ++lane) {
                const AccessPlan::Place& place = plan.places[lane * access.count + k];
                bool splat = plan.chunks[place.chunk].length == 1 && !masked;
                picks.push_back({int(place.chunk), splat ? int(lane - first) : int(place.element)});
            }
            return picks;
        };
        bool columns = register_words >= row_words;
        for (unsigned first = 0; columns && first < e.width(); first += register_words)
            columns = is_column(chunks, picks_of(first, register_words));
        const unsigned step = columns ? register_words : group;
        for (unsigned first = 0; first < e.width(); first += step) {
            const llvm::SmallVector<Pick, 64> picks = picks_of(first, step);
            groups.push_back(columns ? column(ir, chunks, picks) : permute(ir, chunks, picks));
        }
        result.push_back(join_lanes(ir, std::move(groups)));
    }
    return result;
}

Value* fills_lines(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan) {
    Ir& ir = e.ir();
    if (!plan.gapless) return nullptr;
    Value* starts = nullptr;
    for (std::size_t first = 0; first < plan.chunks.size();) {
        // A run of adjacent chunks.
        std::int64_t bytes = 0;
        std::size_t end = first;
        do bytes += std::int64_t(plan.chunks[end++].length) * access.bytes;
        while (end < plan.chunks.size() && plan.chunks[end].step == plan.chunks[first].step &&
               plan.chunks[end].offset == plan.chunks[first].offset + bytes);
        if (bytes % line_bytes != 0) return nullptr;
        Value* start = ir.CreatePtrToInt(chunk_pointer(e, access, plan.chunks[first]), ir.getInt64Ty());
        starts = starts ? ir.CreateOr(starts, start) : start;
        first = end;
    }
    return starts ? ir.CreateICmpEQ(ir.CreateAnd(starts, ir.getInt64(line_bytes - 1)), ir.getInt64(0)) : nullptr;
}

void store_chunks(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan, llvm::ArrayRef<Value*> values,
                  StoreForm form) {
    Ir& ir = e.ir();
    const bool past_caches = form == StoreForm::past_caches, deals_out = form == StoreForm::deals_mask_out;
    const bool masked = !e.all_active() && takes_mask(e, access, plan);
    Pieces sources(values.begin(), values.end());
    const bool lane_order = goes_by_lane_order(e, access, plan);
    const unsigned length = lane_order ? piece_length(e, access) : e.width();
    if (lane_order) {
        llvm::SmallVector<Pieces, 8> elements(access.count);
        for (unsigned k = 0; k < access.count; ++k)
            for (unsigned first = 0; first < e.width(); first += length)
                elements[k].push_back(cut_lanes(ir, values[k], first, length));
        sources = to_lane_order(ir, elements);
    }
    for (unsigned c = 0; c < plan.chunks.size(); ++c) {
        Value* at = chunk_pointer(e, access, plan.chunks[c]);
        llvm::SmallVector<Pick, 64> picks;
        for (unsigned owner : plan.owners[c])
            picks.push_back(owner == AccessPlan::no_lane ? Pick()
                            : lane_order                 ? Pick{int(owner / length), int(owner % length)}
                                                         : Pick{int(owner % access.count), int(owner / access.count)});
        Value* contents = pick(ir, sources, picks);
        Value* mask = deals_out ? element_mask(e, access, plan, c)
                      : masked  ? cut_mask(e, plan, c)
                                : gap_mask(e, plan, c);
        llvm::Align alignment = chunk_alignment(access, plan, c);
        if (past_caches)
            alignment =
                llvm::Align(std::bit_floor(std::min<std::uint64_t>(line_bytes, plan.chunks[c].length * access.bytes)));
        llvm::Instruction* store;
        const AccessMark mark(e, form_of(access, plan, c));
        if (mask)
            store = ir.CreateMaskedStore(contents, at, alignment, mask);
        else
            store = ir.CreateAlignedStore(contents, at, alignment);
        if (past_caches)
            store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                               llvm::MDNode::get(e.context(), llvm::ConstantAsMetadata::get(ir.getInt32(1))));
        tag_space(e, store, access.address.space);
    }
}

} // namespace ptarmigan::translator::lower
