// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/place_pairs.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>

namespace ptarmigan::translator::lower {

using llvm::Value;

namespace {

/// A vector of addresses as uniform numbers and what differs between lanes.
struct Parts {
    llvm::SmallVector<Value*, 2> uniform;
    Value* lanes = nullptr;
};

Parts parts_of(Value* addresses) {
    using namespace llvm::PatternMatch;
    Parts parts;
    Value *a = nullptr, *b = nullptr;
    while (match(addresses, m_Add(m_Value(a), m_Value(b)))) {
        if (!llvm::getSplatValue(a)) std::swap(a, b);
        Value* number = llvm::getSplatValue(a);
        if (!number) break;
        parts.uniform.push_back(number);
        addresses = b;
    }
    parts.lanes = addresses;
    return parts;
}

} // namespace

std::optional<PlacePair> place_pair(WarpEmitter& e, const MemoryAccess& access) {
    const LaneValue& address = access.address.address;
    if (e.width() == 1 || access.strength != Strength::weak || access.address.interleaved ||
        !address.shape.is_varying())
        return std::nullopt;
    const Parts parts = parts_of(address.base);
    if (parts.uniform.empty()) return std::nullopt;
    const llvm::KnownBits known = llvm::computeKnownBits(parts.lanes, e.module().getDataLayout());
    const llvm::APInt differs = ~(known.Zero | known.One);
    if (!differs.isPowerOf2()) return std::nullopt;
    Ir& ir = e.ir();
    PlacePair places;
    places.distance = differs.getZExtValue();
    places.low = ir.getInt64(known.One.getZExtValue());
    for (Value* number : parts.uniform) places.low = ir.CreateAdd(places.low, number);
    Value* bit = ir.CreateAnd(parts.lanes, e.splat(ir.getInt64(places.distance)));
    places.is_high = ir.CreateICmpNE(bit, llvm::Constant::getNullValue(bit->getType()));
    return places;
}

llvm::SmallVector<Value*, 8> load_pair(WarpEmitter& e, const MemoryAccess& access, const PlacePair& places) {
    Ir& ir = e.ir();
    const auto wanted = [&](Value* lanes) {
        // Lanes that are not active may hold poison, of which this makes false.
        return e.all_active() ? lanes
                              : ir.CreateSelect(e.active(), lanes, llvm::Constant::getNullValue(lanes->getType()));
    };
    Value* high_lanes = wanted(places.is_high);
    Value* wants_low = e.any(wanted(ir.CreateNot(places.is_high)));
    Value* wants_high = e.any(high_lanes);
    Value* low = pointer(e, places.low);
    Value* high = pointer(e, ir.CreateAdd(places.low, ir.getInt64(places.distance)));
    // Without an active lane both are the CTA's context, which is aligned to 8 bytes only.
    Value* elsewhere = e.all_active() ? high : ir.CreateSelect(wants_high, high, e.cta_context());
    low = ir.CreateSelect(wants_low, low, elsewhere);
    high = ir.CreateSelect(wants_high, high, low);
    unsigned alignment = access.element_aligned ? access.bytes : access.bytes * access.count;
    if (!e.all_active()) alignment = std::min(8u, alignment);
    llvm::Type* type = access.count == 1 ? access.element : llvm::FixedVectorType::get(access.element, access.count);
    const auto load = [&](Value* at) {
        llvm::LoadInst* result = ir.CreateAlignedLoad(type, at, llvm::Align(alignment));
        tag_space(e, result, access.address.space);
        if (access.invariant)
            result->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(e.context(), {}));
        return result;
    };
    Value *from_low = load(low), *from_high = load(high);
    llvm::SmallVector<Value*, 8> result;
    for (unsigned k = 0; k < access.count; ++k) {
        const auto element = [&](Value* loaded) {
            return e.splat(access.count == 1 ? loaded : ir.CreateExtractElement(loaded, k));
        };
        result.push_back(ir.CreateSelect(high_lanes, element(from_high), element(from_low)));
    }
    return result;
}

} // namespace ptarmigan::translator::lower
