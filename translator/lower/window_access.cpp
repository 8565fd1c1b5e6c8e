// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/window_access.h"

#include "translator/llvm/long_code.h"
#include "translator/lower/access_mark.h"
#include "translator/lower/lane_access.h"
#include "translator/lower/lane_pointers.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

namespace ptarmigan::translator::lower {

using llvm::Value;

namespace {

constexpr unsigned lanes = 16, bytes_of_word = 4, most_words = 2 * lanes;

llvm::Type* vector_type(Ir& ir) {
    return llvm::FixedVectorType::get(ir.getInt32Ty(), lanes);
}

Value* numbers(Ir& ir) {
    llvm::SmallVector<llvm::Constant*, lanes> result;
    for (unsigned i = 0; i < lanes; ++i) result.push_back(ir.getInt32(i));
    return llvm::ConstantVector::get(result);
}

/// <W x i32>: the addresses but for something that all lanes have in common, modulo 2^32. Accesses that differ in that
/// only (the arrays of real and imaginary parts) have the same tests then.
Value* differences(WarpEmitter& e, Value* addresses) {
    using namespace llvm::PatternMatch;
    Value *a = nullptr, *b = nullptr;
    for (;;) {
        if (match(addresses, m_Add(m_Value(a), m_Value(b))) && (llvm::getSplatValue(a) || llvm::getSplatValue(b))) {
            addresses = llvm::getSplatValue(a) ? b : a;
        } else if (match(addresses, m_ZExtOrSExt(m_Value(a))) && a->getType()->getScalarSizeInBits() == 32) {
            addresses = a;
        } else {
            break;
        }
    }
    return e.ir().CreateTrunc(addresses, e.lanes_type(e.ir().getInt32Ty()));
}

} // namespace

std::optional<WindowAccess> window_access(WarpEmitter& e, const MemoryAccess& access) {
    if (!e.options().target.avx512 || !e.all_active() || e.width() % lanes != 0 ||
        e.options().optimization == Optimization::least || is_long_code(e.module()) || access.count != 1 ||
        access.bytes != bytes_of_word || access.strength != Strength::weak || access.address.interleaved ||
        access.address.space != ptx::StateSpace::shared || !access.address.address.shape.is_varying() ||
        !e.may_be_neighbours(e.current()[ptx::Role::a]))
        return std::nullopt;
    Ir& ir = e.ir();
    Value* addresses = access.address.address.base;
    Value* places = differences(e, addresses);
    WindowAccess result;
    for (unsigned first = 0; first < e.width(); first += lanes) {
        WordWindow window;
        Value* part = cut_lanes(ir, places, first, lanes);
        Value* bytes = ir.CreateSub(part, ir.CreateVectorSplat(lanes, ir.CreateExtractElement(part, std::uint64_t(0))));
        // In order: each lane is farther from the first than the one before it, the last one near enough.
        llvm::SmallVector<int, lanes> before(lanes);
        for (unsigned i = 0; i < lanes; ++i) before[i] = int(i) - 1;
        before[0] = 0;
        Value* in_order = ir.CreateICmpUGT(bytes, ir.CreateShuffleVector(bytes, before));
        in_order = ir.CreateOr(ir.CreateBitCast(in_order, ir.getIntNTy(lanes)), ir.getIntN(lanes, 1));
        Value* span = ir.CreateExtractElement(bytes, std::uint64_t(lanes - 1));
        Value* fits = ir.CreateAnd(ir.CreateICmpEQ(in_order, ir.getIntN(lanes, (1u << lanes) - 1)),
                                   ir.CreateICmpULT(span, ir.getInt32(most_words * bytes_of_word)));
        result.condition = result.condition ? ir.CreateAnd(result.condition, fits) : fits;
        window.words = ir.CreateLShr(bytes, std::uint64_t(2));
        window.behind = ir.CreateSub(ir.CreateLShr(span, std::uint64_t(2)), ir.getInt32(lanes - 1));
        window.first = pointer(e, ir.CreateExtractElement(addresses, std::uint64_t(first)));
        Value* last = pointer(e, ir.CreateExtractElement(addresses, std::uint64_t(first + lanes - 1)));
        window.last =
            ir.CreateConstGEP1_64(ir.getInt8Ty(), last, std::uint64_t(-std::int64_t((lanes - 1) * bytes_of_word)));
        result.windows.push_back(window);
    }
    return result;
}

llvm::SmallVector<Value*, 8> load_windows(WarpEmitter& e, const MemoryAccess& access, const WindowAccess& near) {
    Ir& ir = e.ir();
    llvm::SmallVector<Value*, 8> parts;
    const auto load = [&](Value* at) {
        llvm::LoadInst* result = ir.CreateAlignedLoad(vector_type(ir), at, llvm::Align(bytes_of_word));
        tag_space(e, result, access.address.space);
        return result;
    };
    for (unsigned i = 0; i < near.windows.size(); ++i) {
        const WordWindow& window = near.windows[i];
        const AccessMark mark(e, of_gather(i * lanes, lanes));
        // Words from the sixteenth on are counted from the second vector.
        Value* is_behind = ir.CreateICmpUGE(window.words, ir.CreateVectorSplat(lanes, ir.getInt32(lanes)));
        Value* moved =
            ir.CreateAdd(window.words, ir.CreateVectorSplat(lanes, ir.CreateSub(ir.getInt32(lanes), window.behind)));
        Value* picks = ir.CreateSelect(is_behind, moved, window.words);
        parts.push_back(ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_d_512, {},
                                           {load(window.first), picks, load(window.last)}));
    }
    return {to_element(e, join_lanes(ir, parts), access.element)};
}

void store_windows(WarpEmitter& e, const MemoryAccess& access, const WindowAccess& near, Value* values) {
    Ir& ir = e.ir();
    Value* bits = to_integer(e, values);
    llvm::Type* type = vector_type(ir);
    Value* nothing = llvm::Constant::getNullValue(type);
    const auto store = [&](Value* expanded_from, Value* mask_bits, Value* at) {
        Value* mask = ir.CreateBitCast(ir.CreateTrunc(mask_bits, ir.getIntNTy(lanes)),
                                       llvm::FixedVectorType::get(ir.getInt1Ty(), lanes));
        Value* expanded =
            ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_expand, {type}, {expanded_from, nothing, mask});
        tag_space(e, ir.CreateMaskedStore(expanded, at, llvm::Align(bytes_of_word), mask), access.address.space);
    };
    for (unsigned i = 0; i < near.windows.size(); ++i) {
        const WordWindow& window = near.windows[i];
        const AccessMark mark(e, of_gather(i * lanes, lanes));
        Value* part = cut_lanes(ir, bits, i * lanes, lanes);
        // A bit for each word that a lane has, from the first on.
        Value* taken = ir.CreateOrReduce(ir.CreateShl(ir.CreateVectorSplat(lanes, ir.getInt32(1)), window.words));
        store(part, taken, window.first);
        // Words that lie in both vectors are written twice, alike.
        Value* below = ir.CreateAnd(taken, ir.CreateNot(ir.CreateShl(ir.getInt32(~0u), window.behind)));
        Value* skipped = ir.CreateVectorSplat(lanes, ir.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, below));
        Value* rest = ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_si_512, {},
                                         {part, ir.CreateAdd(numbers(ir), skipped)});
        store(rest, ir.CreateLShr(taken, window.behind), window.last);
    }
}

} // namespace ptarmigan::translator::lower
