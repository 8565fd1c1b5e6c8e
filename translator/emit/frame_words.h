// SPDX-License-Identifier: Apache-2.0
// How values lie in the frames of region_frames.h.
#pragma once

#include "translator/emit/step_numbers.h"
#include "translator/emit/warp_emitter.h"

#include <algorithm>
#include <bit>

namespace ptarmigan::translator {

/// CTA frame slots are whole 64-bit words, so that copying one never touches bits that were not written.
inline llvm::Value* to_word(Ir& ir, llvm::Value* scalar) {
    llvm::Type* type = scalar->getType();
    if (!type->isIntegerTy()) scalar = ir.CreateBitCast(scalar, ir.getIntNTy(type->getPrimitiveSizeInBits()));
    return ir.CreateZExt(scalar, ir.getInt64Ty());
}

inline llvm::Value* from_word(Ir& ir, llvm::Value* word, llvm::Type* type) {
    llvm::Value* narrow = ir.CreateTrunc(word, ir.getIntNTy(type->getPrimitiveSizeInBits()));
    return type->isIntegerTy() ? narrow : ir.CreateBitCast(narrow, type);
}

/// What layout_frames() gives a value of all lanes, as far as it matters.
inline llvm::Align lanes_alignment(llvm::Type* lanes) {
    std::uint64_t bytes = lanes->getPrimitiveSizeInBits() / 8;
    return llvm::Align(std::min<std::uint64_t>(16, std::bit_floor(bytes)));
}

/// Lane 0 of a value that the step's number tells of.
inline llvm::Value* in_step(Ir& ir, llvm::Type* type, llvm::Value* step, const StepNumber& number) {
    return ir.CreateAdd(ir.CreateMul(ir.CreateZExtOrTrunc(step, type), llvm::ConstantInt::get(type, number.per_step)),
                        llvm::ConstantInt::get(type, number.first));
}

} // namespace ptarmigan::translator
