// SPDX-License-Identifier: Apache-2.0
// Four gathers of 8 lanes take 32 element accesses; 8 loads of 16 bytes and a transposition within 16 bytes (8 unpack
// instructions) give the same values.
#include "translator/lower/row_access.h"

#include "translator/lower/access_mark.h"

namespace ptarmigan::translator::lower {

using llvm::Value;

namespace {

constexpr unsigned row_bytes = 16;

Value* side_by_side(Ir& ir, Value* a, Value* b) {
    unsigned length = llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements();
    llvm::SmallVector<int, 64> mask;
    for (unsigned i = 0; i < 2 * length; ++i) mask.push_back(int(i));
    return ir.CreateShuffleVector(a, b, mask);
}

unsigned length_of(Value* vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

/// Element by element from two vectors within each 16 bytes, runs of `run` elements at a time: what unpcklps and
/// unpckhps do for runs of one, unpcklpd and unpckhpd for runs of two.
Value* interleave(Ir& ir, Value* a, Value* b, unsigned per_row, unsigned run, bool high) {
    unsigned length = length_of(a);
    llvm::SmallVector<int, 64> mask;
    for (unsigned row = 0; row < length; row += per_row)
        for (unsigned i = 0; i < per_row; ++i) {
            unsigned pair = i / run, offset = i % run;
            unsigned element = row + (high ? per_row / 2 : 0) + pair / 2 * run + offset;
            mask.push_back(int(pair % 2 ? length + element : element));
        }
    return ir.CreateShuffleVector(a, b, mask);
}

/// rows[l] holds the elements of lane l; the result's k-th vector holds element k of all lanes. Rows that are `count`
/// lanes apart share a register, so that the transposition stays within 16 bytes.
llvm::SmallVector<Value*, 8> transpose(Ir& ir, llvm::ArrayRef<Value*> rows, llvm::Type* element, unsigned count) {
    llvm::SmallVector<Value*, 4> packed;
    for (unsigned first = 0; first < count; ++first) {
        llvm::SmallVector<Value*, 32> parts;
        for (unsigned lane = first; lane < rows.size(); lane += count) parts.push_back(rows[lane]);
        while (parts.size() > 1) {
            for (unsigned i = 0; i < parts.size() / 2; ++i) parts[i] = side_by_side(ir, parts[2 * i], parts[2 * i + 1]);
            parts.resize(parts.size() / 2);
        }
        packed.push_back(ir.CreateBitCast(parts[0], llvm::FixedVectorType::get(element, unsigned(rows.size()))));
    }
    auto mix = [&](Value* a, Value* b, unsigned run, bool high) { return interleave(ir, a, b, count, run, high); };
    if (count == 2) return {mix(packed[0], packed[1], 1, false), mix(packed[0], packed[1], 1, true)};
    Value *low01 = mix(packed[0], packed[1], 1, false), *high01 = mix(packed[0], packed[1], 1, true);
    Value *low23 = mix(packed[2], packed[3], 1, false), *high23 = mix(packed[2], packed[3], 1, true);
    return {mix(low01, low23, 2, false), mix(low01, low23, 2, true), mix(high01, high23, 2, false),
            mix(high01, high23, 2, true)};
}

} // namespace

bool wants_rows(WarpEmitter& e, const MemoryAccess& access) {
    if (e.width() < access.count) return false;
    // Pairs of words: half the time of gathers of 8 bytes, if all lanes want them (Zen 5, 16 pairs: 3.2 ns for 7.7).
    if (access.count == 2 && access.bytes == 4) return e.options().target.avx512 && e.all_active();
    return (access.count == 2 || access.count == 4) && access.bytes * access.count == row_bytes;
}

llvm::SmallVector<Value*, 8> load_rows(WarpEmitter& e, const MemoryAccess& access) {
    Ir& ir = e.ir();
    Value* addresses = e.broadcast(access.address.address);
    // Lanes that are not active read the CTA's context: it is always there, and nobody looks at what they get.
    if (!e.all_active()) {
        Value* safe = ir.CreatePtrToInt(e.cta_context(), ir.getInt64Ty());
        addresses = ir.CreateSelect(e.active(), addresses, e.splat(safe));
    }
    llvm::Type* type = llvm::FixedVectorType::get(access.element, access.count);
    // Of a load of half a vector register LLVM makes another one, which forgets whose it is.
    llvm::Type* pair = ir.getInt64Ty();
    auto* one_pair = llvm::FixedVectorType::get(pair, 1);
    const bool is_pair = access.bytes * access.count < row_bytes;
    llvm::SmallVector<Value*, 32> rows;
    for (unsigned lane = 0; lane < e.width(); ++lane) {
        const AccessMark mark(e, of_lane(lane, access.bytes * access.count));
        Value* at = pointer(e, ir.CreateExtractElement(addresses, std::uint64_t(lane)));
        llvm::LoadInst* load = ir.CreateAlignedLoad(is_pair ? pair : type, at, llvm::Align(std::min(4u, access.bytes)));
        tag_space(e, load, access.address.space);
        rows.push_back(is_pair ? e.ir().CreateInsertElement(llvm::PoisonValue::get(one_pair), load, std::uint64_t(0))
                               : load);
    }
    return transpose(ir, rows, access.element, access.count);
}

} // namespace ptarmigan::translator::lower
