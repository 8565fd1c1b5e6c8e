// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters are cut to what one instruction takes, as LLVM would cut them: each then says whose it is.
#include "translator/lower/lane_access.h"

#include "translator/llvm/long_code.h"
#include "translator/lower/access_mark.h"
#include "translator/lower/few_lanes.h"
#include "translator/lower/lane_array.h"
#include "translator/lower/lane_pointers.h"

namespace ptarmigan::translator::lower {

using llvm::Value;

namespace {

/// To which a lane's words are aligned.
llvm::Align word_alignment(const MemoryAccess& access, unsigned word) {
    return llvm::Align(access.element_aligned ? access.bytes : word);
}

/// Where each lane accesses memory, `offset` bytes behind its address. `addresses`: of all lanes, null if
/// is_at_distances().
llvm::SmallVector<Value*, 32> lane_places(WarpEmitter& e, const MemoryAccess& access, Value* addresses,
                                          unsigned offset) {
    Ir& ir = e.ir();
    if (addresses) return single_pointers(e, addresses, offset);
    const LaneValue& address = access.address.address;
    llvm::SmallVector<Value*, 32> places;
    Value* at = address.base; // of an affine address: with the strides so far
    std::int64_t steps = 0;
    for (unsigned lane = 0; lane < e.width(); ++lane) {
        const std::int64_t distance = offset + (*address.shape.offsets)[lane];
        const std::int64_t more = address.stride ? (*address.shape.steps)[lane] - steps : 0;
        if (more) at = ir.CreateAdd(at, ir.CreateMul(address.stride, ir.getInt64(std::uint64_t(more))));
        steps += more;
        Value* place = pointer(e, at);
        places.push_back(distance ? ir.CreateConstGEP1_64(ir.getInt8Ty(), place, std::uint64_t(distance)) : place);
    }
    return places;
}

/// Words at `offset` bytes behind the lanes' addresses, by gather instructions. `access`: whose addresses they are,
/// null if they lie before.
Value* gather_words(WarpEmitter& e, const MemoryAccess* access, Value* addresses, unsigned offset, unsigned word,
                    llvm::Align alignment, ptx::StateSpace space) {
    Ir& ir = e.ir();
    const LanePointers pointers(e, addresses, offset);
    const unsigned count = pointers.lanes_at_a_time(word);
    const bool asks = access && asks_for_few_lanes(e);
    llvm::SmallVector<Value*, 8> parts;
    for (unsigned first = 0; first < e.width(); first += count) {
        const auto gather = [&]() -> Value* {
            const AccessMark mark(e, of_gather(first, count));
            auto* type = llvm::FixedVectorType::get(ir.getIntNTy(word * 8), count);
            llvm::CallInst* loaded =
                ir.CreateMaskedGather(type, pointers.part(first, count), alignment,
                                      cut_lanes(ir, e.active(), first, count), llvm::Constant::getNullValue(type));
            tag_space(e, loaded, space);
            return loaded;
        };
        parts.push_back(asks ? load_few_or(e, {*access, first, count, offset, word, alignment, space}, gather)
                             : gather());
    }
    return join_lanes(ir, parts);
}

/// Bytes and halfwords have no gather instruction: gather the aligned word around each and shift. The word lies in
/// the page that the lane accesses anyway.
Value* gather_small(WarpEmitter& e, Value* addresses, unsigned bytes) {
    Ir& ir = e.ir();
    Value* words = ir.CreateAnd(addresses, e.splat(ir.getInt64(~std::uint64_t(3))));
    // No space: the word holds other variables too.
    Value* gathered = gather_words(e, nullptr, words, 0, 4, llvm::Align(4), ptx::StateSpace::generic);
    Value* place = ir.CreateTrunc(addresses, e.lanes_type(ir.getInt32Ty()));
    Value* shift = ir.CreateShl(ir.CreateAnd(place, e.splat(ir.getInt32(3))), e.splat(ir.getInt32(3)));
    return ir.CreateTrunc(ir.CreateLShr(gathered, shift), e.lanes_type(ir.getIntNTy(bytes * 8)));
}

/// Lanes that are asked whether few of them are active where there are no gather instructions: a register of words.
constexpr unsigned part_lanes = 8;

/// Words at the places of lanes [first, first + places.size()), loaded one by one.
Value* load_places(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<Value*> places, unsigned first,
                   unsigned word, llvm::Align alignment) {
    Ir& ir = e.ir();
    llvm::Type* type = ir.getIntNTy(word * 8);
    Value* result = llvm::PoisonValue::get(llvm::FixedVectorType::get(type, unsigned(places.size())));
    for (unsigned lane = 0; lane < places.size(); ++lane) {
        llvm::LoadInst* load = nullptr;
        {
            const AccessMark mark(e, of_lane(first + lane, word));
            load = ir.CreateAlignedLoad(type, places[lane], alignment);
        }
        tag_space(e, load, access.address.space);
        // Not marked: LLVM makes one node of all inserts, with the last one's location, and folds loads into its parts.
        result = ir.CreateInsertElement(result, load, std::uint64_t(lane));
    }
    return result;
}

/// Lanes [first, first + count) of a step of which some are not active: these read the CTA's context, which is always
/// there; nobody looks at what they get, and a branch per lane costs more.
Value* load_active(WarpEmitter& e, const MemoryAccess& access, Value* addresses, unsigned first, unsigned count,
                   unsigned word, llvm::Align alignment) {
    Ir& ir = e.ir();
    Value* safe = ir.CreatePtrToInt(e.cta_context(), ir.getInt64Ty());
    Value* part = ir.CreateSelect(cut_lanes(ir, e.active(), first, count), cut_lanes(ir, addresses, first, count),
                                  ir.CreateVectorSplat(count, safe));
    return load_places(e, access, single_pointers(e, part, 0), first, word, alignment);
}

/// Without gather instructions: a load per lane.
Value* load_each(WarpEmitter& e, const MemoryAccess& access, Value* addresses, unsigned offset, unsigned word,
                 llvm::Align alignment) {
    if (e.all_active()) return load_places(e, access, lane_places(e, access, addresses, offset), 0, word, alignment);
    Ir& ir = e.ir();
    Value* behind = offset ? ir.CreateAdd(addresses, e.splat(ir.getInt64(offset))) : addresses;
    if (!asks_for_few_lanes(e)) return load_active(e, access, behind, 0, e.width(), word, alignment);
    llvm::SmallVector<Value*, 8> parts;
    for (unsigned first = 0; first < e.width(); first += part_lanes)
        parts.push_back(load_few_or(e, {access, first, part_lanes, offset, word, alignment, access.address.space}, [&] {
            return load_active(e, access, behind, first, part_lanes, word, alignment);
        }));
    return join_lanes(ir, parts);
}

/// Lanes whose accesses are spelled out in a loop over groups of them: what a vector register holds of words.
constexpr unsigned group_lanes = 8;

/// A loop over groups of lanes: `body` gets the first lane of each (i64).
void for_each_group(WarpEmitter& e, llvm::function_ref<void(Value* first)> body) {
    Ir& ir = e.ir();
    llvm::BasicBlock* before = ir.GetInsertBlock();
    llvm::BasicBlock* loop = e.new_block("group.loop");
    llvm::BasicBlock* done = e.new_block("group.done");
    ir.CreateBr(loop);
    ir.SetInsertPoint(loop);
    llvm::PHINode* first = ir.CreatePHI(ir.getInt64Ty(), 2);
    first->addIncoming(ir.getInt64(0), before);
    body(first);
    Value* next = ir.CreateNUWAdd(first, ir.getInt64(group_lanes));
    first->addIncoming(next, ir.GetInsertBlock());
    ir.CreateCondBr(ir.CreateICmpULT(next, ir.getInt64(e.width())), loop, done);
    ir.SetInsertPoint(done);
}

/// Whether wide steps go over their lanes in a loop over groups: the code of 32 lanes is a third as long then. The way
/// through memory makes it slower where accesses depend on each other, so short kernels are spelled out (README.md).
bool goes_by_groups(WarpEmitter& e) {
    return e.width() > group_lanes && is_long_code(e.module());
}

/// load_each() for all words of an access, by groups.
ValueList load_by_groups(WarpEmitter& e, const MemoryAccess& access, Value* addresses, unsigned word,
                         llvm::Align alignment) {
    Ir& ir = e.ir();
    const unsigned count = access.bytes * access.count / word;
    llvm::Type* type = ir.getIntNTy(word * 8);
    llvm::Type* part = llvm::FixedVectorType::get(type, group_lanes);
    if (!e.all_active()) {
        // Lanes that are not active read words that are there; the context has 8 bytes of each of them.
        Value* safe = ir.CreatePtrToInt(e.cta_context(), ir.getInt64Ty());
        addresses = ir.CreateSelect(e.active(), addresses, e.splat(safe));
    }
    const LaneArray address_array(e, addresses);
    llvm::SmallVector<LaneArray, 4> results;
    for (unsigned i = 0; i < count; ++i) results.emplace_back(e, llvm::PoisonValue::get(e.lanes_type(type)));
    for_each_group(e, [&](Value* first) {
        const AccessForm noted = note_lane(e, first);
        llvm::SmallVector<Value*, 4> loaded(count, llvm::PoisonValue::get(part));
        for (unsigned lane = 0; lane < group_lanes; ++lane) {
            Value* place = pointer(e, address_array.get(first, lane));
            for (unsigned i = 0; i < count; ++i) {
                llvm::LoadInst* load = nullptr;
                {
                    const AccessMark mark(e, behind_noted(noted, lane, word));
                    Value* at = ir.CreateConstGEP1_64(ir.getInt8Ty(), place, i * word);
                    load = ir.CreateAlignedLoad(type, at, alignment);
                }
                tag_space(e, load, access.address.space);
                loaded[i] = ir.CreateInsertElement(loaded[i], load, std::uint64_t(lane));
            }
        }
        for (unsigned i = 0; i < count; ++i) results[i].set(first, loaded[i]);
    });
    ValueList words;
    for (const LaneArray& result : results) words.push_back(result.vector());
    return words;
}

/// Without scatter instructions: spelled out by LLVM, a masked scatter would be a branch per lane.
void store_in_loop(WarpEmitter& e, const MemoryAccess& access, Value* addresses, const ValueList& words,
                   unsigned word) {
    Ir& ir = e.ir();
    LaneArray address_array(e, addresses);
    llvm::SmallVector<LaneArray, 4> word_arrays;
    for (Value* value : words) word_arrays.emplace_back(e, value);
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        const AccessMark mark(e, note_lane(e, lane));
        Value* address = address_array.get(lane);
        for (unsigned i = 0; i < words.size(); ++i) {
            Value* at = ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), pointer(e, address), i * word);
            tag_space(e, ir.CreateAlignedStore(word_arrays[i].get(lane), at, word_alignment(access, word)),
                      access.address.space);
        }
    });
}

void store_each(WarpEmitter& e, const MemoryAccess& access, Value* addresses, const ValueList& words, unsigned word) {
    Ir& ir = e.ir();
    for (unsigned i = 0; i < words.size(); ++i) {
        const llvm::SmallVector<Value*, 32> places = lane_places(e, access, addresses, i * word);
        for (unsigned lane = 0; lane < e.width(); ++lane) {
            const AccessMark mark(e, of_lane(lane, word));
            Value* value = ir.CreateExtractElement(words[i], std::uint64_t(lane));
            tag_space(e, ir.CreateAlignedStore(value, places[lane], word_alignment(access, word)),
                      access.address.space);
        }
    }
}

/// store_each() by groups.
void store_by_groups(WarpEmitter& e, const MemoryAccess& access, Value* addresses, const ValueList& words,
                     unsigned word) {
    Ir& ir = e.ir();
    const LaneArray address_array(e, addresses);
    llvm::SmallVector<LaneArray, 4> word_arrays;
    for (Value* value : words) word_arrays.emplace_back(e, value);
    for_each_group(e, [&](Value* first) {
        const AccessForm noted = note_lane(e, first);
        for (unsigned lane = 0; lane < group_lanes; ++lane) {
            Value* place = pointer(e, address_array.get(first, lane));
            for (unsigned i = 0; i < words.size(); ++i) {
                Value* value = word_arrays[i].get(first, lane);
                const AccessMark mark(e, behind_noted(noted, lane, word));
                Value* at = ir.CreateConstGEP1_64(ir.getInt8Ty(), place, i * word);
                tag_space(e, ir.CreateAlignedStore(value, at, word_alignment(access, word)), access.address.space);
            }
        }
    });
}

void scatter_words(WarpEmitter& e, const MemoryAccess& access, Value* addresses, Value* words, unsigned offset,
                   unsigned word) {
    Ir& ir = e.ir();
    const LanePointers pointers(e, addresses, offset);
    const unsigned count = pointers.lanes_at_a_time(word);
    const bool asks = asks_for_few_lanes(e);
    for (unsigned first = 0; first < e.width(); first += count) {
        Value* part = cut_lanes(ir, words, first, count);
        const auto scatter = [&] {
            const AccessMark mark(e, of_gather(first, count));
            llvm::CallInst* stored =
                ir.CreateMaskedScatter(part, pointers.part(first, count), word_alignment(access, word),
                                       cut_lanes(ir, e.active(), first, count));
            tag_space(e, stored, access.address.space);
        };
        if (asks)
            store_few_or(e, {access, first, count, offset, word, word_alignment(access, word), access.address.space},
                         part, scatter);
        else
            scatter();
    }
}

/// Lanes that are not active get any value.
ValueList load_in_loop(WarpEmitter& e, const MemoryAccess& access, unsigned word) {
    Ir& ir = e.ir();
    const unsigned count = access.bytes * access.count / word;
    llvm::Type* type = ir.getIntNTy(word * 8);
    const LaneArray addresses(e, e.broadcast(access.address.address));
    llvm::SmallVector<LaneArray, 4> results;
    for (unsigned i = 0; i < count; ++i) results.emplace_back(e, llvm::PoisonValue::get(e.lanes_type(type)));
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        const AccessMark mark(e, note_lane(e, lane));
        Value* address = addresses.get(lane);
        for (unsigned i = 0; i < count; ++i) {
            Value* at = ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), pointer(e, address), i * word);
            llvm::LoadInst* load = ir.CreateAlignedLoad(type, at, word_alignment(access, word));
            tag_space(e, load, access.address.space);
            results[i].set(lane, load);
        }
    });
    ValueList words;
    for (const LaneArray& result : results) words.push_back(result.vector());
    return words;
}

} // namespace

/// No gather or scatter instruction where those are slow (Zen 4, 16 lanes: 3.3 ns for 5.9, 4.4 for 6.7).
bool is_at_distances(WarpEmitter& e, const MemoryAccess& access) {
    return e.width() > 1 && e.options().target.has_slow_gathers() && e.all_active() &&
           access.address.address.is_affine() && !access.address.guard;
}

bool goes_in_loops(WarpEmitter& e) {
    return e.width() > 1 && e.options().optimization == Optimization::least;
}

bool goes_in_loops(WarpEmitter& e, const MemoryAccess& access) {
    return goes_in_loops(e) && access.bytes * access.count > word_bytes(access);
}

Value* to_element(WarpEmitter& e, Value* bits, llvm::Type* element) {
    return e.ir().CreateBitCast(bits, e.like(element, bits));
}

Value* to_integer(WarpEmitter& e, Value* value) {
    unsigned bits = value->getType()->getScalarSizeInBits();
    return e.ir().CreateBitCast(value, e.like(e.ir().getIntNTy(bits), value));
}

unsigned word_bytes(const MemoryAccess& access) {
    const unsigned bytes = access.bytes * access.count;
    return access.count == 1 ? access.bytes : std::min(8u, bytes & -bytes);
}

llvm::SmallVector<Value*, 8> to_words(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<Value*> values) {
    Ir& ir = e.ir();
    unsigned word = word_bytes(access);
    llvm::SmallVector<Value*, 8> words(access.count * access.bytes / word, nullptr);
    for (unsigned k = 0; k < access.count; ++k) {
        Value* bits = ir.CreateZExt(to_integer(e, values[k]), e.lanes_type(ir.getIntNTy(word * 8)));
        unsigned shift = k * access.bytes % word * 8;
        if (shift) bits = ir.CreateShl(bits, e.constant_like(e.scalar_of(bits->getType()), shift, bits));
        Value*& target = words[k * access.bytes / word];
        target = target ? ir.CreateOr(target, bits) : bits;
    }
    return words;
}

llvm::SmallVector<Value*, 8> from_words(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<Value*> words) {
    Ir& ir = e.ir();
    const unsigned word = word_bytes(access);
    llvm::SmallVector<Value*, 8> result;
    for (unsigned k = 0; k < access.count; ++k) {
        Value* bits = words[k * access.bytes / word];
        unsigned shift = k * access.bytes % word * 8;
        if (shift) bits = ir.CreateLShr(bits, e.constant_like(e.scalar_of(bits->getType()), shift, bits));
        bits = ir.CreateTrunc(bits, e.lanes_type(ir.getIntNTy(access.bytes * 8)));
        result.push_back(to_element(e, bits, access.element));
    }
    return result;
}

llvm::SmallVector<Value*, 8> gather(WarpEmitter& e, const MemoryAccess& access) {
    if (goes_in_loops(e, access)) return gather_in_loop(e, access);
    const bool one_by_one = !e.options().target.avx512 || is_at_distances(e, access);
    Value* addresses = is_at_distances(e, access) ? nullptr : e.broadcast(access.address.address);
    unsigned word = word_bytes(access);
    const llvm::Align alignment = word_alignment(access, word);
    if (one_by_one && addresses && goes_by_groups(e))
        return from_words(e, access, load_by_groups(e, access, addresses, word, alignment));
    ValueList words;
    for (unsigned offset = 0; offset < access.bytes * access.count; offset += word) {
        if (one_by_one)
            words.push_back(load_each(e, access, addresses, offset, word, alignment));
        else if (word < 4)
            words.push_back(gather_small(e, addresses, word));
        else
            words.push_back(gather_words(e, &access, addresses, offset, word, alignment, access.address.space));
    }
    return from_words(e, access, words);
}

llvm::SmallVector<Value*, 8> gather_in_loop(WarpEmitter& e, const MemoryAccess& access) {
    return from_words(e, access, load_in_loop(e, access, word_bytes(access)));
}

void scatter_in_loop(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<Value*> values) {
    store_in_loop(e, access, e.broadcast(access.address.address), to_words(e, access, values), word_bytes(access));
}

void scatter(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<Value*> values) {
    if (goes_in_loops(e, access)) return scatter_in_loop(e, access, values);
    const bool constant_distances = is_at_distances(e, access);
    Value* addresses = constant_distances ? nullptr : e.broadcast(access.address.address);
    const ValueList words = to_words(e, access, values);
    const unsigned word = word_bytes(access);
    const bool has_scatter = e.options().target.avx512 && word >= 4 && !constant_distances;
    if (!has_scatter && e.all_active() && addresses && goes_by_groups(e)) {
        store_by_groups(e, access, addresses, words, word);
    } else if (!has_scatter && e.all_active()) {
        store_each(e, access, addresses, words, word);
    } else if (!has_scatter && e.width() > 1) {
        store_in_loop(e, access, addresses, words, word);
    } else {
        for (unsigned i = 0; i < words.size(); ++i) scatter_words(e, access, addresses, words[i], i * word, word);
    }
}

} // namespace ptarmigan::translator::lower
