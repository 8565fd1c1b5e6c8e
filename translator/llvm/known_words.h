// SPDX-License-Identifier: Apache-2.0
// Which element of which value each word of memory, or of a vector that is put together, holds; and how a vector is
// made of such elements by as few permutations as their number of registers asks for.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace ptarmigan::translator {

/// Element `lane` of a vector, or a scalar (lane 0), a constant among these.
struct Word {
    llvm::Value* source = nullptr;
    unsigned lane = 0;
    auto operator<=>(const Word&) const = default;
};
using Words = llvm::SmallVector<Word, 16>;

/// Elements of `value`, or the scalar itself.
Words words_of(llvm::Value* value);

/// Memory by its base (a field of the context, or a variable on the stack) and the distance from it in bytes.
class WordMemory {
public:
    struct Place {
        llvm::Value* base = nullptr;
        std::int64_t offset = 0;
    };
    void write(const Place& place, unsigned bytes, std::optional<Word> word);
    /// None if it is not known, or was written in other pieces.
    std::optional<Word> read(const Place& place, unsigned bytes) const;

private:
    struct Entry {
        Word word;
        unsigned bytes = 0;
    };
    llvm::DenseMap<std::pair<llvm::Value*, std::int64_t>, Entry> entries_;
};

/// Makes values of words where the builder is.
class WordBuilder {
public:
    WordBuilder(llvm::IRBuilder<>& builder, unsigned register_bits)
        : builder_(builder), register_bits_(register_bits) {}
    /// `type`: of as many elements as there are words, or a scalar.
    llvm::Value* make(llvm::ArrayRef<Word> words, llvm::Type* type);
    /// How many registers the words of one register of the result lie in, at most.
    unsigned most_sources(llvm::ArrayRef<Word> words, llvm::Type* type) const;

private:
    using Part = std::pair<llvm::Value*, unsigned>; ///< a value, and which of the registers that hold it
    unsigned part_lanes(const llvm::Value& source) const;
    llvm::Value* part(const Part& part, llvm::Type* element);
    llvm::Value* make_vector(llvm::ArrayRef<Word> words, llvm::FixedVectorType& type);
    llvm::Value* make_part(llvm::ArrayRef<Word> words, llvm::Type* element);

    llvm::IRBuilder<>& builder_;
    unsigned register_bits_;
    llvm::DenseMap<std::pair<Part, llvm::Type*>, llvm::Value*> parts_;
    std::map<std::pair<llvm::Type*, std::vector<Word>>, llvm::Value*> vectors_;
};

} // namespace ptarmigan::translator
