// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/hoist_from_steps.h"

#include "translator/kernel_abi.h"
#include "translator/llvm/step_loops.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/IR/ValueHandle.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace ptarmigan::translator {
namespace {

/// Of the vector registers, what is hoisted may take this share: a step has its own values.
constexpr unsigned share_of_registers = 2;
/// Of a loop with more that writes, nothing is looked at: it is long, and asks each load about each of them.
constexpr std::size_t most_writes = 200;
/// A load and what its address is computed from.
constexpr unsigned most_of_address = 12;
/// Fields and parameters that steps of one lane may keep in registers, or spilled, which is still a load instead of
/// two.
constexpr unsigned most_scalar_loads = 12;
/// Vectors of words loaded one by one: what there must be to gain, and a vector with what it is made of.
constexpr unsigned least_loads_a_register = 4, most_of_gathered = 400;
/// Scalars, and the statements that make one worth a register for all steps.
constexpr unsigned most_numbers = 6, least_of_number = 5;
/// In a block of fewer nothing is looked for that a step loads twice.
constexpr unsigned least_loads_to_join = 16;
/// Of a loop, in search of these.
constexpr unsigned most_looked_at = 10000;
/// A division and what it is computed from; a question that each step begins with.
constexpr unsigned most_of_division = 32, most_of_question = 160;
/// Such questions, one behind the other.
constexpr unsigned most_questions = 3;

bool is_in_context(const llvm::Value& pointer) {
    return pointer.getType()->isPointerTy() && llvm::isa<llvm::Argument>(pointer.stripInBoundsConstantOffsets());
}

/// Where in the context a pointer into it leads.
std::optional<std::int64_t> offset_in_context(const llvm::Value& pointer, const llvm::DataLayout& layout) {
    if (!is_in_context(pointer)) return std::nullopt;
    llvm::APInt offset(layout.getIndexTypeSizeInBits(pointer.getType()), 0);
    pointer.stripAndAccumulateInBoundsConstantOffsets(layout, offset);
    return offset.getSExtValue();
}

/// The kernel's parameters, to which a field of the context leads.
bool is_in_parameters(const llvm::Value& pointer, const llvm::DataLayout& layout) {
    using namespace llvm::PatternMatch;
    llvm::Value* block = nullptr;
    if (!match(&pointer, m_IntToPtr(m_CombineOr(m_c_Add(m_Value(block), m_ConstantInt()), m_Value(block)))))
        return false;
    const auto* field = llvm::dyn_cast<llvm::LoadInst>(block);
    return field && field->getMetadata(llvm::LLVMContext::MD_invariant_load) &&
           offset_in_context(*field->getPointerOperand(), layout) == offsetof(abi::CtaContext, params);
}

using Instructions = llvm::SmallSetVector<llvm::Instruction*, 16>;

bool is_arithmetic(const llvm::Instruction& instruction) {
    return llvm::isa<llvm::BinaryOperator, llvm::CastInst, llvm::GetElementPtrInst, llvm::CmpInst>(instruction) &&
           !instruction.isIntDivRem();
}

/// Bits counted, the lesser of two.
bool is_pure_intrinsic(const llvm::Instruction& instruction) {
    return llvm::isa<llvm::IntrinsicInst>(instruction) && !instruction.mayReadOrWriteMemory() &&
           !instruction.mayHaveSideEffects();
}

class StepLoop {
public:
    StepLoop(llvm::Loop& loop, const llvm::DominatorTree& tree, llvm::AAResults& aliases, unsigned bits, unsigned count)
        : loop_(loop), tree_(tree), aliases_(aliases), register_bits_(bits), left_(count / share_of_registers) {
        loop.getExitingBlocks(exiting_);
        if (llvm::BasicBlock* latch = loop.getLoopLatch()) exiting_.push_back(latch);
    }

    /// True if something was moved, to the end of `before`.
    bool hoist_to(llvm::BasicBlock& before) {
        const bool is_scalar = has_one_lane();
        bool changed = (is_scalar || stores_lane_by_lane()) && hoist_scalars(before, is_scalar);
        changed |= hoist_divisions(before);
        changed |= hoist_questions(before);
        if (!find_writes()) return changed;
        for (llvm::BasicBlock* block : loop_.blocks()) {
            if (!runs_in_each_round(*block)) continue;
            for (llvm::Instruction& instruction : llvm::make_early_inc_range(*block)) {
                auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
                if (load && left_ != 0) changed |= hoist(*load, before);
            }
        }
        return changed;
    }

    /// Vectors of words that are loaded one by one, each of which would be a register.
    bool hoist_gathered_to(llvm::BasicBlock& before) {
        if (!find_writes()) return false;
        left_ -= std::min(left_, registers_from_outside());
        std::vector<llvm::WeakVH> gathered;
        for (llvm::BasicBlock* block : loop_.blocks())
            if (runs_in_each_round(*block))
                for (llvm::Instruction& instruction : *block)
                    if (is_put_together(instruction) && stays(instruction) && is_taken(instruction))
                        gathered.push_back(&instruction);
        bool changed = false;
        for (const llvm::WeakVH& each : gathered) {
            auto* vector = llvm::dyn_cast_or_null<llvm::Instruction>(static_cast<llvm::Value*>(each));
            if (!vector || !loop_.contains(vector)) continue;
            const unsigned registers = registers_of(*vector->getType());
            Instructions moved;
            if (registers > left_ || !collect_gathered(*vector, moved)) continue;
            const auto loads = std::size_t(
                llvm::count_if(moved, [](const llvm::Instruction* each) { return llvm::isa<llvm::LoadInst>(each); }));
            if (loads < std::size_t(least_loads_a_register) * registers) continue;
            bool is_new = false;
            for (llvm::Instruction* instruction : moved) {
                is_new = !is_joined(*instruction, moved_);
                if (is_new) instruction->moveBefore(before.getTerminator());
            }
            if (is_new) left_ -= registers;
            changed = true;
        }
        stays_.clear();
        changed |= hoist_numbers(before);
        stays_.clear();
        for (llvm::BasicBlock* block : loop_.blocks()) changed |= join_equal(*block);
        return changed;
    }

private:
    /// Scalars that take long to compute: of the round of a loop around barriers, say.
    bool hoist_numbers(llvm::BasicBlock& before) {
        std::vector<llvm::Instruction*> numbers;
        for (llvm::BasicBlock* block : loop_.blocks())
            if (loops_here(*block))
                for (llvm::Instruction& instruction : *block)
                    if (instruction.getType()->isIntegerTy() && stays(instruction) && is_taken(instruction))
                        numbers.push_back(&instruction);
        unsigned hoisted = 0;
        for (llvm::Instruction* number : numbers) {
            Instructions moved;
            if (hoisted == most_numbers || !collect_gathered(*number, moved) || moved.size() < least_of_number)
                continue;
            for (llvm::Instruction* instruction : moved) instruction->moveBefore(before.getTerminator());
            ++hoisted;
        }
        return hoisted != 0;
    }

    /// As columns of a tile are stored (join_column_stores.h).
    bool stores_lane_by_lane() const {
        unsigned count = 0;
        for (const llvm::BasicBlock* block : loop_.blocks())
            for (const llvm::Instruction& instruction : *block)
                if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
                    count += llvm::isa<llvm::ExtractElementInst>(store->getValueOperand());
        return count >= 8;
    }

    /// A loop over rows of a matrix is short then, and after each wrong guess of its end the next begins with what is
    /// loaded here.
    bool has_one_lane() const {
        return llvm::none_of(loop_.blocks(), [](const llvm::BasicBlock* block) {
            return llvm::any_of(*block, [](const llvm::Instruction& each) {
                return each.getType()->isVectorTy() ||
                       (llvm::isa<llvm::StoreInst>(each) && each.getOperand(0)->getType()->isVectorTy());
            });
        });
    }

    /// Fields of the CTA's context and parameters, which do not change while it runs, and what follows from them: so
    /// that branches by them, and addresses, are seen to be the same for all steps. Elsewhere it is not worth
    /// registers.
    bool hoist_scalars(llvm::BasicBlock& before, bool is_scalar) {
        const llvm::DataLayout& layout = before.getModule()->getDataLayout();
        const std::set<std::int64_t> written = written_fields(layout);
        bool changed = false;
        unsigned loads = 0;
        for (llvm::BasicBlock* block : loop_.blocks()) {
            const bool runs = runs_in_each_round(*block);
            for (llvm::Instruction& instruction : llvm::make_early_inc_range(*block)) {
                if (instruction.getType()->isVectorTy() || !loop_.hasLoopInvariantOperands(&instruction)) continue;
                if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
                    if (!stays_the_same(*load, runs, is_scalar, written, layout)) continue;
                    if (is_scalar && ++loads > most_scalar_loads) continue;
                } else if (!is_arithmetic(instruction)) {
                    continue;
                }
                instruction.moveBefore(before.getTerminator());
                changed = true;
            }
        }
        return changed;
    }

    /// What CTAs divide in order to see whether their threads agree (analysis/shapes/lane_agreement.h): behind LLVM's
    /// IR divisions stay where they are. Only of what each round begins with, since others may count on what was asked
    /// before.
    bool hoist_divisions(llvm::BasicBlock& before) {
        bool changed = false;
        const std::set<std::int64_t> written = written_fields(before.getModule()->getDataLayout());
        for (llvm::BasicBlock* block = loop_.getHeader(); block && loop_.contains(block) && begins_.insert(block);
             block = block->getSingleSuccessor())
            for (llvm::Instruction& instruction : llvm::make_early_inc_range(*block)) {
                Instructions moved;
                if (!instruction.isIntDivRem() || instruction.getType()->isVectorTy() ||
                    !collect_scalars(instruction, written, most_of_division, moved))
                    continue;
                for (llvm::Instruction* each : moved) each->moveBefore(before.getTerminator());
                changed = true;
            }
        return changed;
    }

    /// Which version of the kernel a CTA's steps run, where that is the same for all of them. What the first version
    /// computes of the CTA is computed once then, too: it is short, and steps that run it do little else.
    bool hoist_questions(llvm::BasicBlock& before) {
        const std::set<std::int64_t> written = written_fields(before.getModule()->getDataLayout());
        llvm::BasicBlock* block = loop_.getHeader();
        while (block->getSingleSuccessor() && begins_.contains(block->getSingleSuccessor()))
            block = block->getSingleSuccessor();
        llvm::BasicBlock* first_version = nullptr;
        for (unsigned i = 0; i < most_questions && loop_.contains(block); ++i) {
            auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
            auto* question =
                branch && branch->isConditional() ? llvm::dyn_cast<llvm::Instruction>(branch->getCondition()) : nullptr;
            if (i != 0) asked_.insert(block);
            Instructions moved;
            if (!question || !loop_.contains(question) || question->getType()->isVectorTy() ||
                !collect_scalars(*question, written, most_of_question, moved))
                break;
            for (llvm::Instruction* each : moved) each->moveBefore(before.getTerminator());
            if (i == 0) first_version = branch->getSuccessor(0);
            block = branch->getSuccessor(1);
            if (!block->getSinglePredecessor()) break;
        }
        if (first_version && first_version->getSinglePredecessor()) hoist_version(*first_version, written, before);
        return first_version != nullptr;
    }

    void hoist_version(const llvm::BasicBlock& version, const std::set<std::int64_t>& written,
                       llvm::BasicBlock& before) {
        const llvm::DataLayout& layout = before.getModule()->getDataLayout();
        unsigned loads = 0;
        for (llvm::BasicBlock* block : loop_.blocks()) {
            if (!tree_.dominates(&version, block)) continue;
            for (llvm::Instruction& instruction : llvm::make_early_inc_range(*block)) {
                if (instruction.getType()->isVectorTy() || !loop_.hasLoopInvariantOperands(&instruction)) continue;
                if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
                    if (loads == most_scalar_loads || !stays_the_same(*load, false, true, written, layout)) continue;
                    ++loads;
                } else if (!is_arithmetic(instruction) && !llvm::isa<llvm::SelectInst>(instruction)) {
                    continue;
                }
                instruction.moveBefore(before.getTerminator());
            }
        }
    }

    /// As collect(), of numbers that each round begins with, and of what is asked next, but for divisions.
    bool collect_scalars(llvm::Instruction& instruction, const std::set<std::int64_t>& written, unsigned most,
                         Instructions& moved) {
        if (!loop_.contains(&instruction) || moved.contains(&instruction)) return true;
        const bool runs = begins_.contains(instruction.getParent());
        if (moved.size() >= most || !(runs || asked_.contains(instruction.getParent()))) return false;
        if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
            if (!stays_the_same(*load, runs, true, written, instruction.getModule()->getDataLayout())) return false;
        } else if (!is_arithmetic(instruction) && !(runs && instruction.isIntDivRem()) &&
                   !llvm::isa<llvm::SelectInst, llvm::FreezeInst>(instruction) && !is_pure_intrinsic(instruction)) {
            return false;
        }
        for (llvm::Value* operand : instruction.operands())
            if (auto* source = llvm::dyn_cast<llvm::Instruction>(operand))
                if (!collect_scalars(*source, written, most, moved)) return false;
        return moved.insert(&instruction);
    }

    bool stays_the_same(const llvm::LoadInst& load, bool runs, bool is_scalar, const std::set<std::int64_t>& written,
                        const llvm::DataLayout& layout) const {
        const llvm::Value& place = *load.getPointerOperand();
        if (const std::optional<std::int64_t> field = offset_in_context(place, layout); field && written.count(*field))
            return false;
        if (is_scalar && load.isSimple() && is_in_parameters(place, layout)) return true;
        return load.getMetadata(llvm::LLVMContext::MD_invariant_load) && (runs || is_in_context(place));
    }

    /// Of the context: the CTA's number, where several in a row are run by one call.
    std::set<std::int64_t> written_fields(const llvm::DataLayout& layout) const {
        std::set<std::int64_t> fields;
        for (const llvm::BasicBlock* block : loop_.blocks())
            for (const llvm::Instruction& each : *block)
                if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&each))
                    if (const auto field = offset_in_context(*store->getPointerOperand(), layout))
                        fields.insert(*field);
        return fields;
    }

    bool find_writes() {
        for (llvm::BasicBlock* block : loop_.blocks())
            for (llvm::Instruction& instruction : *block) {
                if (!instruction.mayWriteToMemory()) continue;
                if (llvm::isa<llvm::FenceInst>(instruction)) return false; // what is loaded behind it stays behind it
                if (writes_.size() == most_writes) return false;
                writes_.push_back(&instruction);
            }
        return true;
    }

    /// In those, too, that end in front of the latch: where an access finds its address misaligned, or a kernel traps,
    /// what stands behind the question is not done.
    bool runs_in_each_round(const llvm::BasicBlock& block) const {
        if (!loop_.getLoopLatch() || !loops_here(block)) return false;
        return llvm::all_of(exiting_, [&](const llvm::BasicBlock* each) { return tree_.dominates(&block, each); });
    }

    /// Not in a loop of the kernel's own.
    bool loops_here(const llvm::BasicBlock& block) const {
        return llvm::none_of(loop_.getSubLoops(), [&](const llvm::Loop* inner) { return inner->contains(&block); });
    }

    bool hoist(llvm::LoadInst& load, llvm::BasicBlock& before) {
        const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(load.getType());
        if (!type || !load.isSimple() || type->getElementType()->isIntegerTy(1)) return false;
        const unsigned registers = registers_of(*load.getType());
        Instructions moved;
        if (registers > left_ || !collect(&load, moved)) return false;
        for (llvm::Instruction* instruction : moved) instruction->moveBefore(before.getTerminator());
        left_ -= registers;
        return true;
    }

    /// What has to be moved with `value` for it to be known in front of the loop; false if it can't be.
    bool collect(llvm::Value* value, Instructions& moved) {
        auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
        if (!instruction || !loop_.contains(instruction) || moved.contains(instruction)) return true;
        if (moved.size() >= most_of_address) return false;
        if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(instruction)) {
            if (!load->isSimple() || !runs_in_each_round(*load->getParent())) return false;
            if (is_written(*load)) return false;
        } else if (!is_arithmetic(*instruction)) {
            return false;
        }
        for (llvm::Value* operand : instruction->operands())
            if (!collect(operand, moved)) return false;
        return moved.insert(instruction);
    }

    /// Words that a step loads again from where it has loaded them, what is computed of equal ones, and so on.
    bool join_equal(llvm::BasicBlock& block) {
        if (llvm::count_if(block, [](const llvm::Instruction& each) { return llvm::isa<llvm::LoadInst>(each); }) <
            std::ptrdiff_t(least_loads_to_join))
            return false;
        AlikeInstructions alike;
        bool changed = false;
        for (llvm::Instruction& instruction : llvm::make_early_inc_range(block)) {
            auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
            if (load ? load->isSimple() && !is_written(*load)
                     : is_arithmetic(instruction) || is_put_together(instruction) ||
                           llvm::isa<llvm::ExtractElementInst>(instruction))
                changed |= is_joined(instruction, alike);
        }
        return changed;
    }

    using AlikeInstructions = std::map<std::pair<unsigned, llvm::Value*>, std::vector<llvm::Instruction*>>;

    /// With one that is the same; else it is among them from now on.
    static bool is_joined(llvm::Instruction& instruction, AlikeInstructions& known) {
        llvm::Value* first = instruction.getNumOperands() == 0 ? nullptr : instruction.getOperand(0);
        std::vector<llvm::Instruction*>& alike = known[{instruction.getOpcode(), first}];
        for (llvm::Instruction* other : alike) {
            if (!other->isIdenticalTo(&instruction)) continue;
            instruction.replaceAllUsesWith(other);
            instruction.eraseFromParent();
            return true;
        }
        alike.push_back(&instruction);
        return false;
    }

    /// Of the vectors that the loop takes as they are.
    unsigned registers_from_outside() const {
        llvm::SmallPtrSet<llvm::Value*, 16> values;
        unsigned registers = 0;
        for (llvm::BasicBlock* block : loop_.blocks())
            for (llvm::Instruction& instruction : *block)
                for (llvm::Value* operand : instruction.operands()) {
                    auto* source = llvm::dyn_cast<llvm::Instruction>(operand);
                    if (source && llvm::isa<llvm::FixedVectorType>(source->getType()) && !loop_.contains(source) &&
                        values.insert(source).second)
                        registers += registers_of(*source->getType());
                }
        return registers;
    }

    static bool is_put_together(const llvm::Instruction& instruction) {
        return llvm::isa<llvm::FixedVectorType>(instruction.getType()) &&
               llvm::isa<llvm::ShuffleVectorInst, llvm::InsertElementInst, llvm::BitCastInst>(instruction);
    }

    /// Something that does not stay the same from step to step takes it as it is.
    bool is_taken(llvm::Instruction& instruction) {
        return llvm::any_of(instruction.users(), [&](llvm::User* user) {
            auto* taker = llvm::dyn_cast<llvm::Instruction>(user);
            return taker && loop_.contains(taker) && !stays(*taker);
        });
    }

    /// Arithmetic, vectors put together and taken apart, and loads that nothing in the loop writes over.
    bool stays(llvm::Instruction& instruction) {
        if (!loop_.contains(&instruction)) return true;
        const auto [known, is_new] = stays_.try_emplace(&instruction, false);
        if (!is_new) return known->second;
        if (stays_.size() > most_looked_at) return false;
        if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
            if (!load->isSimple() || !runs_in_each_round(*load->getParent()) || is_written(*load)) return false;
        } else if (!is_arithmetic(instruction) &&
                   !llvm::isa<llvm::ShuffleVectorInst, llvm::InsertElementInst, llvm::ExtractElementInst>(
                       instruction)) {
            return false;
        }
        for (llvm::Value* operand : instruction.operands())
            if (auto* source = llvm::dyn_cast<llvm::Instruction>(operand); source && !stays(*source)) return false;
        return stays_[&instruction] = true;
    }

    bool is_written(const llvm::LoadInst& load) {
        const llvm::MemoryLocation place = llvm::MemoryLocation::get(&load);
        return llvm::any_of(
            writes_, [&](llvm::Instruction* write) { return llvm::isModSet(aliases_.getModRefInfo(write, place)); });
    }

    unsigned registers_of(llvm::Type& type) const {
        return (unsigned(type.getPrimitiveSizeInBits().getFixedValue()) + register_bits_ - 1) / register_bits_;
    }

    bool collect_gathered(llvm::Instruction& instruction, Instructions& moved) {
        if (!loop_.contains(&instruction) || moved.contains(&instruction)) return true;
        if (moved.size() >= most_of_gathered) return false;
        for (llvm::Value* operand : instruction.operands())
            if (auto* source = llvm::dyn_cast<llvm::Instruction>(operand))
                if (!collect_gathered(*source, moved)) return false;
        return moved.insert(&instruction);
    }

    llvm::Loop& loop_;
    const llvm::DominatorTree& tree_;
    llvm::AAResults& aliases_;
    unsigned register_bits_, left_;
    llvm::SmallVector<llvm::Instruction*, 32> writes_;
    llvm::DenseMap<llvm::Instruction*, bool> stays_; ///< of those that were looked at
    /// By operation and first operand.
    AlikeInstructions moved_;
    llvm::SmallVector<llvm::BasicBlock*, 8> exiting_;   ///< and the latch
    llvm::SmallSetVector<llvm::BasicBlock*, 8> begins_; ///< blocks that each round runs through first
    llvm::SmallSetVector<llvm::BasicBlock*, 8> asked_;  ///< blocks behind those, by what is known in front of the loop
};

} // namespace

namespace {

/// `move(loop, preheader)`: of each loop over steps; true if it changed something.
template <typename Move>
llvm::PreservedAnalyses hoist_from_all(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                                       const Move& move) {
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    if (loops.empty()) return llvm::PreservedAnalyses::all();
    auto& tree = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
    auto& aliases = analyses.getResult<llvm::AAManager>(function);
    const auto& target = analyses.getResult<llvm::TargetIRAnalysis>(function);
    const unsigned bits = std::max<unsigned>(
        128, unsigned(target.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue()));
    const unsigned count = target.getNumberOfRegisters(target.getRegisterClassForType(/*Vector=*/true));
    bool changed = false;
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
        if (!is_step_loop(*loop)) continue;
        llvm::BasicBlock* before = loop->getLoopPreheader();
        if (!before) {
            before = llvm::InsertPreheaderForLoop(loop, &tree, &loops, nullptr, /*PreserveLCSSA=*/false);
            changed |= before != nullptr;
        }
        if (!before) continue;
        StepLoop steps(*loop, tree, aliases, bits, count);
        changed |= move(steps, *before);
    }
    return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

} // namespace

llvm::PreservedAnalyses HoistFromSteps::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    return hoist_from_all(function, analyses,
                          [](StepLoop& steps, llvm::BasicBlock& before) { return steps.hoist_to(before); });
}

llvm::PreservedAnalyses HoistGathered::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    return hoist_from_all(function, analyses,
                          [](StepLoop& steps, llvm::BasicBlock& before) { return steps.hoist_gathered_to(before); });
}

} // namespace ptarmigan::translator
