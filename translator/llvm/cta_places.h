// SPDX-License-Identifier: Apache-2.0
// Accesses of memory that a CTA has alone, and the places they go to as far as constants tell.
#pragma once

#include "translator/llvm/known_words.h"

#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <map>
#include <optional>

namespace ptarmigan::translator {

/// The distance of a field of the context that `pointer` is, or none.
std::optional<std::uint64_t> context_field(const llvm::Value* pointer, const llvm::DataLayout& layout);

/// A load or store of one element or of several, some under a mask.
struct Access {
    llvm::Value* pointer = nullptr; ///< one for all elements, or a vector
    llvm::Type* type = nullptr;
    llvm::Value* stored = nullptr;
    llvm::Value* mask = nullptr;
    llvm::Value* otherwise = nullptr;
};

/// None for what is volatile, atomic, or no access.
std::optional<Access> access_of(llvm::Instruction& instruction);

/// Shared memory, frames and variables of the function: what nobody writes but the statements that are looked at.
class CtaPlaces {
public:
    explicit CtaPlaces(const llvm::DataLayout& layout) : layout_(layout) {}
    /// Where a value, or an element of it, points to; no base: it is a number. None if it is not known.
    std::optional<WordMemory::Place> of(llvm::Value* pointer, unsigned lane);
    /// Whether an address wraps: those of one variable are as far apart as they say. None if it is not known.
    std::optional<bool> compare(const llvm::ICmpInst& comparison);

private:
    const llvm::DataLayout& layout_;
    std::map<std::uint64_t, llvm::Value*> fields_; ///< of the context: the load that stands for all of them
};

} // namespace ptarmigan::translator
