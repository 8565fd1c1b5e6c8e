// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/table_look_ups.h"

#include "translator/kernel_abi.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace ptarmigan::translator {

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {

constexpr unsigned lanes = 16, look_ups_at_once = 4, fewest_look_ups = 3;
constexpr unsigned table_words = 256, word_bytes = 4, quarters = 4;
constexpr std::int64_t table_bytes = table_words * word_bytes;

/// A gather of words from a table by indices that are multiples of four below 1,024.
struct LookUp {
    IntrinsicInst* gather;
    Value* base;
    std::int64_t offset;       ///< of the table behind the CTA's shared memory
    Value* index;              ///< integers of 32 bits,
    SmallVector<int, 16> part; ///< of which these are meant; empty: all
};

class Tables {
public:
    Tables(Function& function, FunctionAnalysisManager& analyses)
        : function_(function), layout_(function.getParent()->getDataLayout()),
          shared_bytes_(noted_shared_bytes(*function.getParent())), loops_(analyses.getResult<LoopAnalysis>(function)),
          aliases_(analyses.getResult<AAManager>(function)), tree_(analyses.getResult<DominatorTreeAnalysis>(function)),
          ir_(function.getContext()) {}

    bool run() {
        bool changed = false;
        for (BasicBlock& block : function_) {
            std::map<std::int64_t, std::vector<LookUp>> by_table;
            for (Instruction& instruction : block)
                if (const std::optional<LookUp> found = look_up(instruction)) by_table[found->offset].push_back(*found);
            for (const auto& [offset, look_ups] : by_table)
                if (look_ups.size() >= fewest_look_ups) changed |= replace(block, look_ups);
        }
        return changed;
    }

private:
    // ---- what is a look-up

    std::optional<LookUp> look_up(Instruction& instruction) const {
        auto* gather = dyn_cast<IntrinsicInst>(&instruction);
        if (!gather || gather->getIntrinsicID() != Intrinsic::masked_gather || gather->use_empty()) return std::nullopt;
        const auto* type = dyn_cast<FixedVectorType>(gather->getType());
        if (!type->getElementType()->isIntegerTy(32) || type->getNumElements() != lanes) return std::nullopt;
        auto* places = dyn_cast<GetElementPtrInst>(gather->getArgOperand(0));
        if (!places || places->getNumIndices() != 1 || !places->getSourceElementType()->isIntegerTy(8) ||
            places->getPointerOperand()->getType()->isVectorTy())
            return std::nullopt;
        const std::optional<std::int64_t> base = shared_offset(places->getPointerOperand());
        Value* index = places->getOperand(1);
        match(index, m_CombineOr(m_NNegZExt(m_Value(index)), m_SExt(m_Value(index))));
        if (!base || !index->getType()->getScalarType()->isIntegerTy(32)) return std::nullopt;
        LookUp found{gather, places->getPointerOperand(), *base, index, {}};
        if (auto* part = dyn_cast<ShuffleVectorInst>(index); part && isa<PoisonValue>(part->getOperand(1))) {
            found.index = part->getOperand(0);
            found.part.assign(part->getShuffleMask().begin(), part->getShuffleMask().end());
        }
        // A variable's place may be a part of the index.
        Value* rest = nullptr;
        const APInt* number = nullptr;
        if (match(found.index, m_Add(m_Value(rest), m_APInt(number)))) {
            found.offset += number->getSExtValue();
            found.index = rest;
        }
        const KnownBits known = computeKnownBits(found.index, layout_);
        if (known.getMaxValue().uge(table_bytes) || known.countMinTrailingZeros() < 2) return std::nullopt;
        const bool is_own = found.offset >= 0 && found.offset + table_bytes <= std::int64_t(shared_bytes_);
        return is_own && found.offset % word_bytes == 0 ? std::optional(found) : std::nullopt;
    }

    /// How far `pointer` is behind the CTA's shared memory, if that is known.
    std::optional<std::int64_t> shared_offset(Value* pointer) const {
        Value* address = nullptr;
        if (!match(pointer, m_IntToPtr(m_Value(address)))) return std::nullopt;
        const APInt* number = nullptr;
        std::int64_t offset = 0;
        Value* start = nullptr;
        if (match(address, m_Add(m_Value(start), m_APInt(number)))) {
            offset = number->getSExtValue();
            address = start;
        }
        const auto* load = dyn_cast<LoadInst>(address);
        if (!load || !load->getMetadata(LLVMContext::MD_invariant_load)) return std::nullopt;
        APInt field(layout_.getIndexTypeSizeInBits(load->getPointerOperandType()), 0);
        const auto* context =
            dyn_cast<Argument>(load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, field, false));
        if (!context || context->getArgNo() != 0 || field != offsetof(abi::CtaContext, shared)) return std::nullopt;
        return offset;
    }

    // ---- where the table stays as it is

    bool replace(BasicBlock& block, const std::vector<LookUp>& look_ups) {
        Loop* unchanged = nullptr;
        for (Loop* loop = loops_.getLoopFor(&block); loop; loop = loop->getParentLoop()) {
            if (may_write(*loop, look_ups)) break;
            unchanged = loop;
        }
        if (!unchanged) return false;
        if (!unchanged->getLoopPreheader() && !InsertPreheaderForLoop(unchanged, &tree_, &loops_, nullptr, false))
            return false;
        parts_.clear();
        bool changed = false;
        std::vector<LookUp> group;
        for (std::size_t i = 0; i <= look_ups.size(); ++i) {
            const bool joins = i < look_ups.size() && group.size() < look_ups_at_once &&
                               (group.empty() || is_known_at(look_ups[i], *group.front().gather));
            if (!joins && group.size() >= fewest_look_ups) {
                write(*unchanged, group);
                changed = true;
            }
            if (!joins) group.clear();
            if (i < look_ups.size()) group.push_back(look_ups[i]);
        }
        return changed;
    }

    /// What was said of one step's accesses among each other says nothing about two steps.
    static AAMDNodes space_of(const IntrinsicInst& gather) {
        AAMDNodes space;
        space.TBAA = gather.getMetadata(LLVMContext::MD_tbaa);
        return space;
    }

    bool may_write(const Loop& loop, const std::vector<LookUp>& look_ups) {
        const IntrinsicInst& gather = *look_ups.front().gather;
        MemoryLocation table(look_ups.front().base, LocationSize::beforeOrAfterPointer(), space_of(gather));
        for (const BasicBlock* block : loop.blocks())
            for (const Instruction& instruction : *block)
                if (instruction.mayWriteToMemory() && isModSet(aliases_.getModRefInfo(&instruction, table)))
                    return true;
        return false;
    }

    // ---- where the indices are known

    /// Whether `value` is there in front of `place`, or can be computed there from what is.
    bool is_known_at(Value* value, Instruction& place) const {
        auto* instruction = dyn_cast<Instruction>(value);
        if (!instruction || tree_.dominates(instruction, &place)) return true;
        if (instruction->getParent() != place.getParent() || isa<PHINode>(instruction) ||
            instruction->mayReadOrWriteMemory() || !isSafeToSpeculativelyExecute(instruction))
            return false;
        return all_of(instruction->operands(), [&](const Use& use) { return is_known_at(use.get(), place); });
    }
    bool is_known_at(const LookUp& each, Instruction& place) const {
        return is_known_at(each.index, place) && is_known_at(each.gather->getArgOperand(2), place) &&
               is_known_at(each.gather->getArgOperand(3), place);
    }
    void make_known_at(Value* value, Instruction& place) {
        auto* instruction = dyn_cast<Instruction>(value);
        if (!instruction || tree_.dominates(instruction, &place)) return;
        for (Use& use : instruction->operands()) make_known_at(use.get(), place);
        instruction->moveBefore(&place);
    }

    // ---- the bytes of the words

    using Bytes = std::array<Value*, quarters>; ///< <64 x i8> each

    Value* shuffled(Value* first, Value* second, ArrayRef<int> mask) {
        return ir_.CreateShuffleVector(first, second, mask);
    }

    /// The four bytes' tables.
    const std::array<Bytes, word_bytes>& bytes_of(Loop& loop, const LookUp& any) {
        const auto key = std::pair(&loop, any.offset);
        if (const auto known = tables_.find(key); known != tables_.end()) return known->second;
        std::array<Bytes, word_bytes>& tables = tables_[key];
        ir_.SetInsertPoint(loop.getLoopPreheader()->getTerminator());
        Value* base = table_address(any);
        auto* type = FixedVectorType::get(ir_.getInt8Ty(), 64);
        auto* halves = FixedVectorType::get(ir_.getInt64Ty(), 8);
        SmallVector<int, 64> by_byte;
        for (int i = 0; i < 64; ++i) by_byte.push_back(i % 16 * 4 + i / 16);
        for (unsigned quarter = 0; quarter < quarters; ++quarter) {
            // 16 words each, then 16 of each byte.
            SmallVector<Value*, 4> words;
            for (unsigned i = 0; i < 4; ++i) {
                Value* at = ir_.CreateConstGEP1_64(ir_.getInt8Ty(), base, (quarter * 4 + i) * 64);
                LoadInst* load = ir_.CreateAlignedLoad(type, at, Align(4));
                load->setAAMetadata(space_of(*any.gather));
                words.push_back(ir_.CreateBitCast(shuffled(load, load, by_byte), halves));
            }
            for (int half : {0, 4}) {
                const int h = half;
                Value* first = shuffled(words[0], words[1], {h, h + 1, h + 2, h + 3, h + 8, h + 9, h + 10, h + 11});
                Value* second = shuffled(words[2], words[3], {h, h + 1, h + 2, h + 3, h + 8, h + 9, h + 10, h + 11});
                for (int i : {0, 2})
                    tables[unsigned(half + i) / 2][quarter] = ir_.CreateBitCast(
                        shuffled(first, second, {i, i + 1, i + 4, i + 5, i + 8, i + 9, i + 12, i + 13}), type);
            }
        }
        return tables;
    }

    Value* table_address(const LookUp& any) {
        Value* field =
            ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), function_.getArg(0), offsetof(abi::CtaContext, shared));
        LoadInst* shared = ir_.CreateAlignedLoad(ir_.getInt64Ty(), field, Align(4));
        shared->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(function_.getContext(), {}));
        return ir_.CreateIntToPtr(ir_.CreateAdd(shared, ir_.getInt64(std::uint64_t(any.offset))), ir_.getPtrTy());
    }
    // ---- the look-ups

    /// A word whose byte `place` is index / 4, with anything around it.
    Value* byte_at(const LookUp& each, unsigned place) {
        int shift = int(place * 8) - 2; // to the left
        // What is cut off behind a shift need not be.
        Value *word = each.index, *source = nullptr;
        const APInt *mask = nullptr, *distance = nullptr;
        if (match(word, m_And(m_Value(source), m_APInt(mask))) && *mask == table_bytes - word_bytes) word = source;
        if (match(word, m_LShr(m_Value(source), m_APInt(distance)))) {
            shift -= int(distance->getZExtValue());
            word = source;
        } else if (match(word, m_Shl(m_Value(source), m_APInt(distance)))) {
            shift += int(distance->getZExtValue());
            word = source;
        }
        if (!each.part.empty()) {
            Value*& known = parts_[{word, std::vector<int>(each.part.begin(), each.part.end())}];
            if (!known) known = ir_.CreateShuffleVector(word, each.part);
            word = known;
        }
        if (shift == 0) return word;
        Value* by = ConstantInt::get(word->getType(), std::uint64_t(std::abs(shift)));
        return shift > 0 ? ir_.CreateShl(word, by) : ir_.CreateLShr(word, by);
    }

    void write(Loop& loop, const std::vector<LookUp>& group) {
        Instruction& place = *group.front().gather;
        for (const LookUp& each : group)
            for (Value* needed : {each.index, each.gather->getArgOperand(2), each.gather->getArgOperand(3)})
                make_known_at(needed, place);
        const std::array<Bytes, word_bytes>& tables = bytes_of(loop, group.front());
        ir_.SetInsertPoint(&place);
        ir_.SetCurrentDebugLocation(place.getDebugLoc());
        auto* words = cast<FixedVectorType>(place.getType());
        auto* bytes = FixedVectorType::get(ir_.getInt8Ty(), 64);
        Value* packed = byte_at(group[0], 0);
        for (unsigned i = 1; i < group.size(); ++i)
            packed =
                ir_.CreateIntrinsic(Intrinsic::x86_avx512_pternlog_d_512, {},
                                    {packed, byte_at(group[i], i),
                                     ConstantInt::get(words, (std::uint64_t(1) << 8 * i) - 1), ir_.getInt32(0xe4)});
        Value* index = ir_.CreateBitCast(packed, bytes);
        Value* is_upper = ir_.CreateICmpSLT(index, Constant::getNullValue(bytes));
        std::array<Value*, word_bytes> found;
        for (unsigned i = 0; i < word_bytes; ++i) {
            const auto among = [&](unsigned quarter) {
                return ir_.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_qi_512, {},
                                           {tables[i][quarter], index, tables[i][quarter + 1]});
            };
            found[i] = ir_.CreateSelect(is_upper, among(2), among(0));
        }
        // Bytes of each look-up next to each other: pairs of bytes, then pairs of pairs.
        auto* pairs = FixedVectorType::get(ir_.getInt16Ty(), 32);
        const auto interleaved = [&](Value* low, Value* high, unsigned odd, unsigned count) {
            SmallVector<int, 64> mask;
            for (unsigned i = 0; i < count; i += 2) {
                mask.push_back(int(i + odd));
                mask.push_back(int(count + i + odd));
            }
            return shuffled(low, high, mask);
        };
        std::array<std::array<Value*, 2>, 2> paired; // by which look-ups, by which bytes
        for (unsigned odd : {0u, 1u})
            for (unsigned half : {0u, 1u})
                paired[odd][half] =
                    ir_.CreateBitCast(interleaved(found[2 * half], found[2 * half + 1], odd, 64), pairs);
        for (unsigned i = 0; i < group.size(); ++i) {
            Value* result = interleaved(paired[i % 2][0], paired[i % 2][1], i / 2, 32);
            // Others may count on what lanes get that do not gather.
            IntrinsicInst& gather = *group[i].gather;
            gather.replaceAllUsesWith(
                ir_.CreateSelect(gather.getArgOperand(2), ir_.CreateBitCast(result, words), gather.getArgOperand(3)));
        }
        for (const LookUp& each : group) each.gather->eraseFromParent();
    }

    Function& function_;
    const DataLayout& layout_;
    const std::uint32_t shared_bytes_;
    LoopInfo& loops_;
    AAResults& aliases_;
    DominatorTree& tree_;
    IRBuilder<> ir_;
    std::map<std::pair<Loop*, std::int64_t>, std::array<Bytes, word_bytes>> tables_;
    std::map<std::pair<Value*, std::vector<int>>, Value*> parts_; ///< of one block
};

} // namespace

PreservedAnalyses TableLookUps::run(Function& function, FunctionAnalysisManager& analyses) {
    const bool pays =
        machine_->getTargetCPU().starts_with("znver") && machine_->getTargetFeatureString().contains("+avx512vbmi,");
    if (!pays || noted_shared_bytes(*function.getParent()) < table_bytes) return PreservedAnalyses::all();
    return Tables(function, analyses).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace ptarmigan::translator
