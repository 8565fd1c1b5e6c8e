// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/known_words.h"

#include <llvm/IR/Constants.h>

#include <algorithm>

namespace ptarmigan::translator {

Words words_of(llvm::Value* value) {
    Words words;
    const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    if (!type) return {Word{value, 0}};
    auto* constant = llvm::dyn_cast<llvm::Constant>(value);
    for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
        llvm::Constant* element = constant ? constant->getAggregateElement(lane) : nullptr;
        words.push_back(element ? Word{element, 0} : Word{value, lane});
    }
    return words;
}

void WordMemory::write(const Place& place, unsigned bytes, std::optional<Word> word) {
    // An element is at most eight bytes, so that what overlaps begins less than eight bytes before.
    for (std::int64_t offset = place.offset - 7; offset < place.offset + bytes; ++offset) {
        const auto found = entries_.find({place.base, offset});
        if (found != entries_.end() && offset + found->second.bytes > place.offset) entries_.erase(found);
    }
    if (word) entries_[{place.base, place.offset}] = Entry{*word, bytes};
}

std::optional<Word> WordMemory::read(const Place& place, unsigned bytes) const {
    const auto found = entries_.find({place.base, place.offset});
    if (found == entries_.end() || found->second.bytes != bytes) return std::nullopt;
    return found->second.word;
}

unsigned WordBuilder::part_lanes(const llvm::Value& source) const {
    return std::max(1u, register_bits_ / std::max(8u, source.getType()->getScalarSizeInBits()));
}

/// As a vector of the integers or floats that are wanted.
llvm::Value* WordBuilder::part(const Part& part, llvm::Type* element) {
    auto [source, number] = part;
    llvm::Value*& made = parts_[{part, element}];
    if (made) return made;
    const unsigned lanes = part_lanes(*source);
    llvm::Value* value = source;
    const auto* type = llvm::cast<llvm::FixedVectorType>(source->getType());
    if (type->getNumElements() != lanes) {
        llvm::SmallVector<int, 64> mask;
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const unsigned from = number * lanes + lane;
            mask.push_back(from < type->getNumElements() ? int(from) : -1);
        }
        value = builder_.CreateShuffleVector(source, mask);
    }
    if (value->getType()->getScalarType() != element)
        value = builder_.CreateBitCast(value, llvm::FixedVectorType::get(element, lanes));
    return made = value;
}

llvm::Value* WordBuilder::make_part(llvm::ArrayRef<Word> words, llvm::Type* element) {
    const unsigned count = unsigned(words.size());
    struct Piece {
        llvm::Value* value;               ///< of `count` elements, or of a whole register
        llvm::SmallVector<int, 64> lanes; ///< which of them each word is, or -1
    };
    llvm::SmallVector<Piece, 8> pieces;
    llvm::SmallVector<Part, 8> parts;
    llvm::SmallVector<llvm::Constant*, 64> constants(count, llvm::PoisonValue::get(element));
    bool has_constants = false;
    llvm::SmallVector<std::pair<unsigned, llvm::Value*>, 8> scalars;
    for (unsigned i = 0; i < count; ++i) {
        const Word& word = words[i];
        if (llvm::isa<llvm::PoisonValue>(word.source)) continue;
        if (!word.source->getType()->isVectorTy()) {
            llvm::Value* scalar = word.source;
            if (scalar->getType() != element) scalar = builder_.CreateBitCast(scalar, element);
            if (auto* constant = llvm::dyn_cast<llvm::Constant>(scalar)) {
                constants[i] = constant;
                has_constants = true;
            } else {
                scalars.push_back({i, scalar});
            }
            continue;
        }
        const unsigned lanes = part_lanes(*word.source);
        const Part key{word.source, word.lane / lanes};
        const auto found = std::find(parts.begin(), parts.end(), key);
        const auto index = std::size_t(found - parts.begin());
        if (found == parts.end()) {
            parts.push_back(key);
            pieces.push_back({part(key, element), llvm::SmallVector<int, 64>(count, -1)});
        }
        pieces[index].lanes[i] = int(word.lane % lanes);
    }
    if (has_constants) pieces.push_back({llvm::ConstantVector::get(constants), llvm::SmallVector<int, 64>(count, -1)});
    if (has_constants)
        for (unsigned i = 0; i < count; ++i)
            if (!llvm::isa<llvm::PoisonValue>(constants[i])) pieces.back().lanes[i] = int(i);
    const auto size_of = [](const Piece& piece) {
        return llvm::cast<llvm::FixedVectorType>(piece.value->getType())->getNumElements();
    };
    llvm::Value* result = llvm::PoisonValue::get(llvm::FixedVectorType::get(element, count));
    if (!pieces.empty()) {
        // In pairs, so that as few permutations as possible wait for each other.
        while (pieces.size() > 1) {
            llvm::SmallVector<Piece, 8> joined;
            for (std::size_t i = 0; i + 1 < pieces.size(); i += 2) {
                const Piece &a = pieces[i], &b = pieces[i + 1];
                // Both operands have one type: what is shorter (constants of a short vector) is filled up.
                const unsigned size = std::max(size_of(a), size_of(b));
                const auto filled = [&](const Piece& piece) {
                    if (size_of(piece) == size) return piece.value;
                    llvm::SmallVector<int, 64> mask(size, -1);
                    for (unsigned lane = 0; lane < size_of(piece); ++lane) mask[lane] = int(lane);
                    return builder_.CreateShuffleVector(piece.value, mask);
                };
                llvm::SmallVector<int, 64> mask(count, -1), lanes(count, -1);
                for (unsigned lane = 0; lane < count; ++lane) {
                    if (a.lanes[lane] >= 0) mask[lane] = a.lanes[lane];
                    if (b.lanes[lane] >= 0) mask[lane] = int(size) + b.lanes[lane];
                    if (mask[lane] >= 0) lanes[lane] = int(lane);
                }
                joined.push_back({builder_.CreateShuffleVector(filled(a), filled(b), mask), lanes});
            }
            if (pieces.size() % 2 != 0) joined.push_back(pieces.back());
            pieces = std::move(joined);
        }
        const Piece& last = pieces.front();
        bool is_same = size_of(last) == count;
        for (unsigned lane = 0; lane < count; ++lane)
            is_same = is_same && (last.lanes[lane] < 0 || last.lanes[lane] == int(lane));
        result = is_same ? last.value : builder_.CreateShuffleVector(last.value, last.lanes);
    }
    for (const auto& [lane, scalar] : scalars)
        result = builder_.CreateInsertElement(result, scalar, std::uint64_t(lane));
    return result;
}

llvm::Value* WordBuilder::make(llvm::ArrayRef<Word> words, llvm::Type* type) {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    if (!vector) {
        const Word& word = words.front();
        llvm::Value* value = word.source;
        if (value->getType()->isVectorTy()) value = builder_.CreateExtractElement(value, std::uint64_t(word.lane));
        return value->getType() == type ? value : builder_.CreateBitCast(value, type);
    }
    const unsigned count = vector->getNumElements();
    llvm::Value* first = words.front().source;
    bool is_same = first->getType() == type;
    for (unsigned lane = 0; is_same && lane < count; ++lane) is_same = words[lane] == Word{first, lane};
    if (is_same) return first;
    llvm::Value*& made = vectors_[{type, std::vector<Word>(words.begin(), words.end())}];
    if (!made) made = make_vector(words, *vector);
    return made;
}

llvm::Value* WordBuilder::make_vector(llvm::ArrayRef<Word> words, llvm::FixedVectorType& type) {
    const unsigned count = type.getNumElements();
    llvm::Type* element = type.getElementType();
    const unsigned lanes = std::max(1u, register_bits_ / std::max(8u, element->getScalarSizeInBits()));
    if (count <= lanes) return make_part(words, element);
    llvm::SmallVector<llvm::Value*, 8> parts;
    for (unsigned begin = 0; begin < count; begin += lanes)
        parts.push_back(make_part(words.slice(begin, std::min(lanes, count - begin)), element));
    // Widths are powers of two.
    while (parts.size() > 1) {
        llvm::SmallVector<llvm::Value*, 8> joined;
        for (std::size_t i = 0; i < parts.size(); i += 2) {
            const unsigned size = 2 * llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements();
            llvm::SmallVector<int, 64> mask;
            for (unsigned lane = 0; lane < size; ++lane) mask.push_back(int(lane));
            joined.push_back(builder_.CreateShuffleVector(parts[i], parts[i + 1], mask));
        }
        parts = std::move(joined);
    }
    return parts.front();
}

unsigned WordBuilder::most_sources(llvm::ArrayRef<Word> words, llvm::Type* type) const {
    const unsigned lanes = std::max(1u, register_bits_ / std::max(8u, type->getScalarSizeInBits()));
    unsigned most = 0;
    for (std::size_t begin = 0; begin < words.size(); begin += lanes) {
        llvm::SmallVector<Part, 8> parts;
        for (const Word& word : words.slice(begin, std::min<std::size_t>(lanes, words.size() - begin))) {
            if (llvm::isa<llvm::Constant>(word.source)) continue;
            const unsigned size = word.source->getType()->isVectorTy() ? part_lanes(*word.source) : 1;
            const Part key{word.source, word.lane / size};
            if (std::find(parts.begin(), parts.end(), key) == parts.end()) parts.push_back(key);
        }
        most = std::max(most, unsigned(parts.size()));
    }
    return most;
}

} // namespace ptarmigan::translator
