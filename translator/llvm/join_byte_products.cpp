// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/join_byte_products.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

using Elements = std::vector<int>;

bool is_contiguous(ArrayRef<int> mask) {
    for (std::size_t i = 0; i < mask.size(); ++i)
        if (mask[i] != PoisonMaskElem && mask[i] != mask[0] + int(i)) return false;
    return mask[0] >= 0;
}

/// Of signed bytes, without sign: 128 higher.
constexpr std::uint64_t moved_bytes = 0x80808080;

bool is_splat_of(const Value* value, std::uint64_t word) {
    const auto* constant = dyn_cast<Constant>(value);
    const auto* element = constant ? dyn_cast_or_null<ConstantInt>(constant->getSplatValue()) : nullptr;
    return element && element->getZExtValue() == word;
}

/// A product of signed bytes, `moved` with 128 more, and what puts the sum right.
struct Link {
    CallInst* products;
    Value *moved, *other;
    BinaryOperator* corrected;
};

class BlockOfProducts {
public:
    explicit BlockOfProducts(BasicBlock& block) : block_(block), ir_(block.getContext()) {}

    bool run() {
        for (Instruction& instruction : make_early_inc_range(block_))
            if (auto* call = dyn_cast<CallInst>(&instruction); call && is_like_products(*call)) {
                ir_.SetInsertPoint(call);
                for (unsigned factor : {1u, 2u}) take_part(call->getArgOperandUse(factor));
            }
        move_other_factors();
        for (Instruction& instruction : make_early_inc_range(block_))
            if (is_correction(instruction)) correct_later(cast<BinaryOperator>(instruction));
        return changed_;
    }

private:
    static bool is_like_products(const CallInst& call) {
        switch (call.getIntrinsicID()) {
        case Intrinsic::x86_avx512_vpdpbusd_128:
        case Intrinsic::x86_avx512_vpdpbusd_256:
        case Intrinsic::x86_avx512_vpdpbusd_512: return true;
        default: return false;
        }
    }

    /// Of products, with nobody else to see them.
    static bool is_correction(const Instruction& instruction) {
        if (instruction.getOpcode() != Instruction::Sub && instruction.getOpcode() != Instruction::Add) return false;
        const auto* products = dyn_cast<Instruction>(instruction.getOperand(0));
        return products && products->hasOneUse() && sum_before_byte_products(*products) &&
               products->getParent() == instruction.getParent();
    }

    // ---- which factor is moved

    static std::optional<Link> link_of(Instruction& instruction) {
        auto* products = dyn_cast<CallInst>(&instruction);
        if (!products || !sum_before_byte_products(*products) || !is_like_products(*products)) return std::nullopt;
        auto* moved = dyn_cast<BinaryOperator>(products->getArgOperand(1));
        if (!moved || moved->getOpcode() != Instruction::Xor || !is_splat_of(moved->getOperand(1), moved_bytes))
            return std::nullopt;
        auto* corrected = products->hasOneUse() ? dyn_cast<BinaryOperator>(products->user_back()) : nullptr;
        if (!corrected || corrected->getOpcode() != Instruction::Sub || corrected->getOperand(0) != products ||
            !is_correction(*corrected))
            return std::nullopt;
        const auto* lacking = dyn_cast<CallInst>(corrected->getOperand(1));
        if (!lacking || lacking->getIntrinsicID() != products->getIntrinsicID() ||
            !is_splat_of(lacking->getArgOperand(0), 0) || !is_splat_of(lacking->getArgOperand(1), moved_bytes) ||
            lacking->getArgOperand(2) != products->getArgOperand(2))
            return std::nullopt;
        return Link{products, moved->getOperand(0), products->getArgOperand(2), corrected};
    }

    void move_other_factors() {
        std::vector<std::vector<Link>> chains;
        DenseMap<const Value*, std::size_t> chain_of; // by its last sum
        for (Instruction& instruction : block_) {
            const std::optional<Link> link = link_of(instruction);
            if (!link) continue;
            const auto before = chain_of.find(link->products->getArgOperand(0));
            const bool continues = before != chain_of.end() && before->first->hasOneUse();
            const std::size_t chain = continues ? before->second : chains.size();
            if (!continues) chains.emplace_back();
            chains[chain].push_back(*link);
            chain_of[link->corrected] = chain;
        }
        for (const std::vector<Link>& chain : chains)
            if (const auto words = whole_vectors_of(chain)) move_other_factor(chain, *words);
    }

    /// The vectors whose elements are the moved factors, each for one link; none if some are not.
    static std::optional<SetVector<Value*>> whole_vectors_of(const std::vector<Link>& chain) {
        SetVector<Value*> vectors;
        std::map<std::pair<Value*, int>, unsigned> elements;
        for (const Link& link : chain) {
            const auto* spread = dyn_cast<ShuffleVectorInst>(link.moved);
            if (!spread || !all_equal(spread->getShuffleMask()) || isa<Constant>(link.other)) return std::nullopt;
            const int element = spread->getShuffleMask().front();
            const auto* type = cast<FixedVectorType>(spread->getOperand(0)->getType());
            if (element < 0 || element > 3 || type->getNumElements() != 4) return std::nullopt;
            vectors.insert(spread->getOperand(0));
            if (++elements[{spread->getOperand(0), element}] > 1) return std::nullopt;
        }
        return elements.size() == vectors.size() * 4 ? std::optional(vectors) : std::nullopt;
    }

    void move_other_factor(const std::vector<Link>& chain, const SetVector<Value*>& words) {
        for (const Link& link : chain) {
            Value*& moved = moved_[link.other];
            if (!moved) {
                auto* factor = dyn_cast<Instruction>(link.other);
                const bool is_here = factor && factor->getParent() == &block_ && !isa<PHINode>(factor);
                ir_.SetInsertPoint(is_here ? factor->getNextNode() : &*block_.getFirstInsertionPt());
                moved = ir_.CreateXor(link.other, ConstantInt::get(link.other->getType(), moved_bytes));
            }
            link.products->setArgOperand(1, moved);
            link.products->setArgOperand(2, link.moved);
        }
        BinaryOperator& last = *chain.back().corrected;
        ir_.SetInsertPoint(&last);
        Type* type = words.front()->getType();
        Value* lacking = Constant::getNullValue(type);
        for (Value* vector : words)
            lacking = ir_.CreateIntrinsic(Intrinsic::x86_avx512_vpdpbusd_128, {},
                                          {lacking, ConstantInt::get(type, moved_bytes), vector});
        for (int distance : {2, 1})
            lacking = ir_.CreateAdd(lacking, ir_.CreateShuffleVector(lacking, {distance, distance ^ 1, 0, 1}));
        const Elements all(cast<FixedVectorType>(last.getType())->getNumElements(), 0);
        last.setOperand(1, ir_.CreateShuffleVector(lacking, all));
        for (std::size_t i = 1; i < chain.size(); ++i) {
            chain[i].products->setArgOperand(0, chain[i - 1].products);
            chain[i - 1].corrected->eraseFromParent();
        }
        changed_ = true;
    }

    // ---- what each link lacks

    /// Behind the next products, if they add to the corrected sum, and together with what corrects theirs.
    void correct_later(BinaryOperator& correction) {
        auto* next = correction.hasOneUse() ? cast<Instruction>(correction.user_back()) : nullptr;
        if (!next || next->getParent() != &block_ || sum_before_byte_products(*next) != &correction) return;
        Value* lacking = correction.getOperand(1);
        next->setOperand(0, correction.getOperand(0));
        auto* own = next->hasOneUse() ? dyn_cast<BinaryOperator>(next->user_back()) : nullptr;
        if (own && own->getOpcode() == correction.getOpcode() && is_correction(*own) && own->getOperand(0) == next) {
            ir_.SetInsertPoint(own);
            own->setOperand(1, ir_.CreateAdd(lacking, own->getOperand(1)));
        } else {
            ir_.SetInsertPoint(next->getNextNode());
            Value* corrected = ir_.CreateBinOp(correction.getOpcode(), next, lacking);
            next->replaceUsesWithIf(corrected, [&](const Use& use) { return use.getUser() != corrected; });
        }
        correction.eraseFromParent();
        changed_ = true;
    }

    /// Instead of a part of a wider vector what the part is made of.
    void take_part(Use& use) {
        auto* part = dyn_cast<ShuffleVectorInst>(use.get());
        if (!part) return;
        Value* simpler = shuffled(part->getOperand(0), part->getOperand(1), part->getShuffleMask());
        if (simpler == part) return;
        use.set(simpler);
        changed_ = true;
    }

    /// The same shuffle for the same elements.
    Value* shuffled(Value* first, Value* second, ArrayRef<int> mask) {
        const auto* type = cast<FixedVectorType>(first->getType());
        if (is_contiguous(mask) && mask.front() + mask.size() <= type->getNumElements())
            if (Value* simpler = elements(first, unsigned(mask.front()), unsigned(mask.size()))) return simpler;
        Value*& known = known_[{first, second, Elements(mask.begin(), mask.end())}];
        if (!known) known = ir_.CreateShuffleVector(first, second, mask);
        return known;
    }

    /// `count` elements of `vector` from `begin` on, or null if they are best taken from it as it is.
    Value* elements(Value* vector, unsigned begin, unsigned count) {
        if (begin == 0 && cast<FixedVectorType>(vector->getType())->getNumElements() == count) return vector;
        if (auto* parts = dyn_cast<ShuffleVectorInst>(vector)) {
            const ArrayRef<int> mask = parts->getShuffleMask().slice(begin, count);
            const int width = int(cast<FixedVectorType>(parts->getOperand(0)->getType())->getNumElements());
            if (all_of(mask, [&](int element) { return element >= width; })) {
                Elements of_second(mask.begin(), mask.end());
                for (int& element : of_second) element -= width;
                return shuffled(parts->getOperand(1), PoisonValue::get(parts->getOperand(1)->getType()), of_second);
            }
            return shuffled(parts->getOperand(0), parts->getOperand(1), mask);
        }
        if (auto* moved = dyn_cast<BinaryOperator>(vector); moved && isa<Constant>(moved->getOperand(1))) {
            Value*& known = parts_[{vector, begin, count}];
            if (known) return known;
            Value* of = elements(moved->getOperand(0), begin, count);
            if (!of) return nullptr;
            Elements mask(count);
            for (unsigned i = 0; i < count; ++i) mask[i] = int(begin + i);
            Value* by = ir_.CreateShuffleVector(moved->getOperand(1), mask);
            Value* made = ir_.CreateBinOp(moved->getOpcode(), of, by);
            return parts_[{vector, begin, count}] = made;
        }
        return nullptr;
    }

    BasicBlock& block_;
    IRBuilder<> ir_;
    bool changed_ = false;
    DenseMap<Value*, Value*> moved_;
    std::map<std::tuple<Value*, Value*, Elements>, Value*> known_;
    std::map<std::tuple<Value*, unsigned, unsigned>, Value*> parts_;
};

} // namespace

PreservedAnalyses JoinByteProducts::run(Function& function, FunctionAnalysisManager&) {
    bool changed = false;
    for (BasicBlock& block : function) {
        const auto is_product = [](const Instruction& instruction) { return sum_before_byte_products(instruction); };
        if (any_of(block, is_product)) changed |= BlockOfProducts(block).run();
    }
    return kept_blocks(changed);
}

} // namespace ptarmigan::translator
