// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/sink_nan_canonicalization.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>

namespace ptarmigan::translator {

using namespace llvm;

namespace {
constexpr std::uint32_t canonical_bits = 0x7fffffff;
} // namespace

Value* canonicalized(const Value* value) {
    const auto* select = dyn_cast<SelectInst>(value);
    if (!select || !select->getType()->getScalarType()->isFloatTy()) return nullptr;
    const auto* test = dyn_cast<FCmpInst>(select->getCondition());
    if (!test) return nullptr;
    Value* nan = const_cast<Value*>(select->getTrueValue());
    Value* number = const_cast<Value*>(select->getFalseValue());
    if (test->getPredicate() == FCmpInst::FCMP_ORD)
        std::swap(nan, number);
    else if (test->getPredicate() != FCmpInst::FCMP_UNO)
        return nullptr;
    const auto* constant = dyn_cast<Constant>(nan);
    const auto* splat = constant && constant->getType()->isVectorTy()
                            ? dyn_cast_or_null<ConstantFP>(constant->getSplatValue())
                            : dyn_cast_or_null<ConstantFP>(constant);
    if (!splat || splat->getValueAPF().bitcastToAPInt().getZExtValue() != canonical_bits) return nullptr;
    // Either compared with itself or with a constant that is no NaN.
    const auto is_number = [](Value* operand) { return PatternMatch::match(operand, PatternMatch::m_NonNaN()); };
    if (test->getOperand(0) != number) return nullptr;
    if (test->getOperand(1) != number && !is_number(test->getOperand(1))) return nullptr;
    return number;
}

namespace {

/// float, or 32-bit integers that may be a float's bits; vectors of them.
bool is_float_like(const Type* type) {
    const Type* scalar = type->getScalarType();
    return scalar->isFloatTy() || scalar->isIntegerTy(32);
}

bool is_float_bitcast(const Instruction& instruction) {
    return isa<BitCastInst>(instruction) && is_float_like(instruction.getType()) &&
           is_float_like(instruction.getOperand(0)->getType()) &&
           instruction.getType()->isVectorTy() == instruction.getOperand(0)->getType()->isVectorTy();
}

bool is_nan_bits(std::uint64_t bits) {
    return (bits & 0x7fffffff) > 0x7f800000;
}

/// True if no element is a NaN other than the canonical one.
bool is_canonical_constant(const Constant& constant) {
    if (isa<UndefValue>(constant)) return true;
    if (const auto* number = dyn_cast<ConstantFP>(&constant)) {
        const std::uint64_t bits = number->getValueAPF().bitcastToAPInt().getZExtValue();
        return !is_nan_bits(bits) || bits == canonical_bits;
    }
    if (const auto* number = dyn_cast<ConstantInt>(&constant))
        return !is_nan_bits(number->getZExtValue()) || number->getZExtValue() == canonical_bits;
    const auto* type = dyn_cast<FixedVectorType>(constant.getType());
    if (!type) return false;
    for (unsigned i = 0; i < type->getNumElements(); ++i) {
        const Constant* element = constant.getAggregateElement(i);
        if (!element || !is_canonical_constant(*element)) return false;
    }
    return true;
}

/// Instructions that hand on the lanes of their operands unchanged.
bool is_transparent(const Instruction& instruction) {
    if (!is_float_like(instruction.getType())) return false;
    // Not freeze: a copy of one could choose other bits.
    return isa<PHINode, SelectInst, ShuffleVectorInst, InsertElementInst, ExtractElementInst>(instruction) ||
           is_float_bitcast(instruction);
}

/// Instructions whose result is, lane by lane, either a NaN or independent of the bits of operands that are NaNs.
bool is_arithmetic(const Instruction& instruction) {
    switch (instruction.getOpcode()) {
    case Instruction::FAdd:
    case Instruction::FSub:
    case Instruction::FMul:
    case Instruction::FDiv:
    case Instruction::FRem:
    case Instruction::FNeg:
    case Instruction::FPExt:
    case Instruction::FPTrunc: return true;
    default: break;
    }
    const auto* call = dyn_cast<IntrinsicInst>(&instruction);
    if (!call) return false;
    switch (call->getIntrinsicID()) {
    case Intrinsic::fma:
    case Intrinsic::sqrt:
    case Intrinsic::fabs:
    case Intrinsic::floor:
    case Intrinsic::ceil:
    case Intrinsic::trunc:
    case Intrinsic::roundeven:
    case Intrinsic::minimum:
    case Intrinsic::maximum:
    case Intrinsic::x86_avx512_vfmadd_ps_512:
    case Intrinsic::x86_avx512_rsqrt14_ps_128:
    case Intrinsic::x86_avx512_rsqrt14_ps_256:
    case Intrinsic::x86_avx512_rsqrt14_ps_512: return true;
    default: return false;
    }
}

/// Instructions whose result says nothing about the bits of an operand that is a NaN.
bool is_blind(const Instruction& instruction) {
    if (isa<FCmpInst, FPToSIInst, FPToUIInst>(instruction)) return true;
    if (isa<StoreInst, FreezeInst>(instruction)) return instruction.getMetadata(any_nan_metadata) != nullptr;
    const auto* call = dyn_cast<IntrinsicInst>(&instruction);
    if (!call) return false;
    switch (call->getIntrinsicID()) {
    case Intrinsic::fptosi_sat:
    case Intrinsic::fptoui_sat:
    case Intrinsic::x86_avx_cvt_ps2dq_256:
    case Intrinsic::x86_avx_cvtt_ps2dq_256:
    case Intrinsic::x86_avx512_mask_cvtps2dq_512:
    case Intrinsic::x86_avx512_mask_cvttps2dq_512:
    case Intrinsic::x86_avx512_mask_cvtps2udq_512:
    case Intrinsic::x86_avx512_mask_cvttps2udq_512: return true;
    // As the conversions to integers use it: no NaN comes out.
    case Intrinsic::x86_avx512_mask_fixupimm_ps_512: {
        const auto* table = dyn_cast<Constant>(call->getArgOperand(2));
        const auto* answers = table ? dyn_cast_or_null<ConstantInt>(table->getSplatValue()) : nullptr;
        return answers && answers->getZExtValue() == nan_as_zero_table;
    }
    default: return false;
    }
}

class Rewriter {
public:
    Rewriter(Function& function, LoopInfo& loops) : function_(function), loops_(loops) {}

    bool run() {
        find_canonical();
        if (canonicalizations_.empty()) return false;
        find_touched();
        find_demanded();
        SmallVector<Instruction*> sources;
        for (Instruction& instruction : instructions(function_))
            if (touched_.contains(&instruction)) sources.push_back(&instruction);
        for (Instruction* source : sources) rewrite_uses(*source);
        SmallVector<WeakTrackingVH> phis;
        for (Instruction* source : sources)
            if (isa<PHINode>(source)) phis.push_back(source);
        for (WeakTrackingVH& handle : phis)
            if (auto* phi = dyn_cast_or_null<PHINode>(static_cast<Value*>(handle))) RecursivelyDeleteDeadPHINode(phi);
        return true;
    }

private:
    /// The largest set of values that hold no NaN but the canonical one.
    void find_canonical() {
        for (Instruction& instruction : instructions(function_)) {
            const bool canonicalizes = canonicalized(&instruction) != nullptr;
            if (canonicalizes) canonicalizations_.push_back(&instruction);
            if (canonicalizes || is_transparent(instruction) ||
                (isa<SIToFPInst, UIToFPInst>(instruction) && is_float_like(instruction.getType())))
                canonical_.insert(&instruction);
        }
        if (canonicalizations_.empty()) return;
        SmallVector<Instruction*> pending;
        const auto check = [&](Instruction& instruction) {
            if (canonical_.contains(&instruction) && !inputs_canonical(instruction)) {
                canonical_.erase(&instruction);
                pending.push_back(&instruction);
            }
        };
        for (Instruction& instruction : instructions(function_)) check(instruction);
        while (!pending.empty())
            for (User* user : pending.pop_back_val()->users()) check(*cast<Instruction>(user));
    }

    /// Values that have a raw twin: what canonicalisations reach through transparent instructions.
    void find_touched() {
        SmallVector<Instruction*> pending(canonicalizations_.begin(), canonicalizations_.end());
        while (!pending.empty()) {
            Instruction* instruction = pending.pop_back_val();
            if (!touched_.insert(instruction).second) continue;
            for (const Use& use : instruction->uses()) {
                auto* user = cast<Instruction>(use.getUser());
                if (canonical_.contains(user) && is_transparent(*user) && carries_lanes(use)) pending.push_back(user);
            }
        }
    }

    bool inputs_canonical(const Instruction& instruction) const {
        if (!is_transparent(instruction) || canonicalized(&instruction)) return true;
        for (const Use& use : instruction.operands())
            if (carries_lanes(use) && !is_canonical(use.get())) return false;
        return true;
    }

    bool is_canonical(const Value* value) const {
        if (const auto* constant = dyn_cast<Constant>(value)) return is_canonical_constant(*constant);
        return canonical_.contains(value);
    }

    /// True for the operands of a transparent instruction that its result is made of.
    static bool carries_lanes(const Use& use) {
        const auto* user = cast<Instruction>(use.getUser());
        if (isa<SelectInst>(user)) return use.getOperandNo() != 0;
        if (isa<ExtractElementInst>(user)) return use.getOperandNo() == 0;
        if (isa<InsertElementInst>(user)) return use.getOperandNo() != 2;
        return true;
    }

    /// Marks every instruction whose NaN bits can be seen.
    void find_demanded() {
        SmallVector<const Instruction*> pending;
        const auto demand = [&](const Value* value) {
            const auto* instruction = dyn_cast<Instruction>(value);
            if (instruction && demanded_.insert(instruction).second) pending.push_back(instruction);
        };
        for (const Instruction& instruction : instructions(function_)) {
            if (is_transparent(instruction) || is_arithmetic(instruction) || is_blind(instruction)) continue;
            for (const Value* operand : instruction.operands()) demand(operand);
        }
        while (!pending.empty()) {
            const Instruction* instruction = pending.pop_back_val();
            // Its NaN is a constant: the operand's bits don't come through.
            if (canonicalized(instruction)) continue;
            if (is_transparent(*instruction) || is_arithmetic(*instruction))
                for (const Value* operand : instruction->operands()) demand(operand);
        }
    }

    /// The value before canonicalisation: equal except for the bits of NaNs. `value` itself if nothing was done to it.
    Value* raw(Value* value) {
        auto* instruction = dyn_cast<Instruction>(value);
        if (!instruction || !touched_.contains(instruction)) return value;
        const auto known = raw_.find(instruction);
        if (known != raw_.end()) return known->second;
        if (Value* number = canonicalized(instruction)) {
            number = raw(number);
            return raw_[instruction] = number;
        }
        Instruction* copy = instruction->clone();
        copy->insertAfter(instruction);
        copy->setName(instruction->getName());
        raw_[instruction] = copy; // before the operands: phis may lead back here
        for (Use& use : copy->operands())
            if (carries_lanes(use)) use.set(raw(use.get()));
        return copy;
    }

    void rewrite_uses(Instruction& source) {
        SmallVector<Use*> uses;
        for (Use& use : source.uses()) uses.push_back(&use);
        for (Use* use : uses) {
            auto* user = cast<Instruction>(use->getUser());
            const bool is_canonicalization = canonicalized(user) != nullptr;
            // Part of the same web: it has a raw twin of its own.
            if (touched_.contains(user) && !is_canonicalization && carries_lanes(*use)) continue;
            const bool hands_on = is_transparent(*user) || is_arithmetic(*user);
            if (is_blind(*user) || is_canonicalization || (hands_on && !demanded_.contains(user)))
                use->set(raw(&source));
            else
                canonicalize_at(*use, source);
        }
    }

    /// Lets a use that sees the bits read a canonicalisation of its own, unless that would be in a loop that the
    /// source is not in.
    void canonicalize_at(Use& use, Instruction& source) {
        auto* user = cast<Instruction>(use.getUser());
        auto* phi = dyn_cast<PHINode>(user);
        BasicBlock* block = phi ? phi->getIncomingBlock(use) : user->getParent();
        if (block == source.getParent() && !isa<PHINode>(source)) return;
        const Loop* loop = loops_.getLoopFor(block);
        if (loop && !loop->contains(source.getParent())) return;
        Value*& canonical = placed_[{&source, block}];
        if (!canonical) {
            Value* number = raw(&source);
            IRBuilder<> ir(block, block->getFirstInsertionPt());
            ir.SetCurrentDebugLocation(source.getDebugLoc());
            Type* type = number->getType();
            Type* real = type->getWithNewType(ir.getFloatTy());
            const bool is_integer = real != type;
            if (is_integer) number = ir.CreateBitCast(number, real);
            Value* nan = ConstantFP::get(real, APFloat(APFloat::IEEEsingle(), APInt(32, canonical_bits)));
            canonical = ir.CreateSelect(ir.CreateFCmpUNO(number, number), nan, number);
            if (is_integer) canonical = ir.CreateBitCast(canonical, type);
        }
        use.set(canonical);
    }

    Function& function_;
    LoopInfo& loops_;
    SmallVector<Instruction*> canonicalizations_;
    SmallPtrSet<const Value*, 32> canonical_;
    SmallPtrSet<const Instruction*, 32> demanded_;
    SmallPtrSet<const Instruction*, 32> touched_;
    DenseMap<Instruction*, Value*> raw_;
    DenseMap<std::pair<Instruction*, BasicBlock*>, Value*> placed_;
};

} // namespace

PreservedAnalyses SinkNanCanonicalization::run(Function& function, FunctionAnalysisManager& analyses) {
    Rewriter rewriter(function, analyses.getResult<LoopAnalysis>(function));
    return kept_blocks(rewriter.run());
}

} // namespace ptarmigan::translator
