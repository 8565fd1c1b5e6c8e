// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/lane_pointers.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <numeric>
#include <optional>

namespace ptarmigan::translator::lower {

using llvm::Value;

namespace {

/// base + offset + index * 2^shift
struct Indexed {
    Value* base = nullptr;
    std::uint64_t offset = 0;
    Value* index = nullptr; ///< <W x i32>, signed
    unsigned shift = 0;
};

std::optional<std::uint64_t> splat_constant(Value* value) {
    auto* constant = llvm::dyn_cast<llvm::Constant>(value);
    auto* number = constant ? llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getSplatValue()) : nullptr;
    return number ? std::optional(number->getZExtValue()) : std::nullopt;
}

/// Constant distances as 32-bit indices; null if they are none or do not fit.
Value* constant_index(Value* value) {
    auto* numbers = llvm::dyn_cast<llvm::ConstantDataVector>(value);
    if (!numbers || !numbers->getElementType()->isIntegerTy(64)) return nullptr;
    llvm::SmallVector<std::uint32_t, 32> index;
    for (unsigned lane = 0; lane < numbers->getNumElements(); ++lane) {
        const auto distance = std::int64_t(numbers->getElementAsInteger(lane));
        if (distance != std::int32_t(distance)) return nullptr;
        index.push_back(std::uint32_t(distance));
    }
    return llvm::ConstantDataVector::get(value->getContext(), index);
}

/// index * 2^shift with a sign-extended index.
bool match_index(Value* value, Indexed& result) {
    using namespace llvm::PatternMatch;
    if (Value* constant = constant_index(value)) {
        result.index = constant;
        return true;
    }
    Value *narrow = nullptr, *factor = nullptr;
    if (match(value, m_SExt(m_Value(narrow))))
        result.shift = 0;
    else if (match(value, m_Mul(m_SExt(m_Value(narrow)), m_Value(factor))) ||
             match(value, m_Mul(m_Value(factor), m_SExt(m_Value(narrow))))) {
        std::optional<std::uint64_t> number = splat_constant(factor);
        if (!number || (*number != 1 && *number != 2 && *number != 4 && *number != 8)) return false;
        result.shift = unsigned(std::countr_zero(*number));
    } else if (match(value, m_Shl(m_SExt(m_Value(narrow)), m_Value(factor)))) {
        std::optional<std::uint64_t> number = splat_constant(factor);
        if (!number || *number > 3) return false;
        result.shift = unsigned(*number);
    } else
        return false;
    if (!narrow->getType()->getScalarType()->isIntegerTy(32)) return false;
    result.index = narrow;
    return true;
}

std::optional<Indexed> indexed(Value* addresses) {
    using namespace llvm::PatternMatch;
    Indexed result;
    Value *a = nullptr, *b = nullptr;
    while (match(addresses, m_Add(m_Value(a), m_Value(b)))) {
        std::optional<std::uint64_t> offset = splat_constant(b);
        if (!offset) break;
        result.offset += *offset;
        addresses = a;
    }
    if (!match(addresses, m_Add(m_Value(a), m_Value(b)))) return std::nullopt;
    if (!llvm::getSplatValue(a)) std::swap(a, b);
    result.base = llvm::getSplatValue(a);
    if (!result.base || !match_index(b, result)) return std::nullopt;
    return result;
}

} // namespace

LanePointers::LanePointers(WarpEmitter& e, Value* addresses, unsigned offset) : e_(e) {
    Ir& ir = e.ir();
    if (std::optional<Indexed> parts = indexed(addresses)) {
        base_ = ir.CreateIntToPtr(ir.CreateAdd(parts->base, ir.getInt64(parts->offset + offset)), ir.getPtrTy());
        unit_ = ir.getIntNTy(8u << parts->shift);
        lanes_ = parts->index;
        return;
    }
    if (offset) addresses = ir.CreateAdd(addresses, e.splat(ir.getInt64(offset)));
    lanes_ = ir.CreateIntToPtr(addresses, e.lanes_type(ir.getPtrTy()));
}

unsigned LanePointers::lanes_at_a_time(unsigned bytes) const {
    constexpr unsigned register_bytes = 64;
    return std::min(e_.width(), register_bytes / std::max(base_ ? 4u : 8u, bytes));
}

Value* LanePointers::part(unsigned first, unsigned count) const {
    Value* lanes = cut_lanes(e_.ir(), lanes_, first, count);
    return base_ ? e_.ir().CreateGEP(unit_, base_, lanes) : lanes;
}

llvm::SmallVector<Value*, 32> single_pointers(WarpEmitter& e, Value* addresses, unsigned offset) {
    Ir& ir = e.ir();
    llvm::SmallVector<Value*, 32> pointers;
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(addresses->getType())->getNumElements();
    const std::optional<Indexed> parts = lanes % 2 == 0 ? indexed(addresses) : std::nullopt;
    if (!parts) {
        for (unsigned lane = 0; lane < lanes; ++lane) {
            Value* place = ir.CreateIntToPtr(ir.CreateExtractElement(addresses, std::uint64_t(lane)), ir.getPtrTy());
            pointers.push_back(offset ? ir.CreateConstGEP1_64(ir.getInt8Ty(), place, offset) : place);
        }
        return pointers;
    }
    Value* base = ir.CreateIntToPtr(ir.CreateAdd(parts->base, ir.getInt64(parts->offset + offset)), ir.getPtrTy());
    Value* pairs = ir.CreateBitCast(parts->index, llvm::FixedVectorType::get(ir.getInt64Ty(), lanes / 2));
    for (unsigned pair = 0; pair < lanes / 2; ++pair) {
        Value* both = ir.CreateExtractElement(pairs, std::uint64_t(pair));
        Value* low = ir.CreateSExt(ir.CreateTrunc(both, ir.getInt32Ty()), ir.getInt64Ty());
        for (Value* index : {low, ir.CreateAShr(both, 32)})
            pointers.push_back(ir.CreateGEP(ir.getIntNTy(8u << parts->shift), base, index));
    }
    return pointers;
}

Value* cut_lanes(Ir& ir, Value* vector, unsigned first, unsigned count) {
    if (llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements() == count) return vector;
    llvm::SmallVector<int, 32> lanes(count);
    std::iota(lanes.begin(), lanes.end(), int(first));
    return ir.CreateShuffleVector(vector, lanes);
}

Value* join_lanes(Ir& ir, llvm::SmallVector<Value*, 8> parts) {
    while (parts.size() > 1) {
        llvm::SmallVector<Value*, 8> next;
        for (unsigned i = 0; i < parts.size(); i += 2) {
            const unsigned length = llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements();
            llvm::SmallVector<int, 64> mask(2 * length);
            std::iota(mask.begin(), mask.end(), 0);
            next.push_back(ir.CreateShuffleVector(parts[i], parts[i + 1], mask));
        }
        parts = std::move(next);
    }
    return parts.front();
}

} // namespace ptarmigan::translator::lower
