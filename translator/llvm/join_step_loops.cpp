// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/join_step_loops.h"

#include "translator/kernel_abi.h"
#include "translator/llvm/cta_places.h"
#include "translator/llvm/known_words.h"
#include "translator/llvm/long_code.h"
#include "translator/llvm/step_loops.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/DepthFirstIterator.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/InstructionSimplify.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

namespace ptarmigan::translator {
namespace {

/// Statements of a kernel's lines, at most, and those that are looked at for one.
constexpr std::size_t most_written = 6000, most_visited = 60000;
/// A load whose words would come out of more registers stays one.
constexpr unsigned most_sources = 4;

class StepLine {
public:
    /// `room`: for so many statements.
    StepLine(llvm::Function& function, llvm::LoopInfo& loops, const llvm::DominatorTree& dominators,
             unsigned register_bits, std::size_t room)
        : function_(function), loops_(loops), dominators_(dominators), layout_(function.getParent()->getDataLayout()),
          simplify_(layout_), places_(layout_), register_bits_(register_bits), room_(room),
          builder_(function.getContext()), words_(builder_, register_bits) {}

    /// Writes out as many loops from `first` on as can be, `most` at most. How many these are.
    unsigned write(llvm::Loop& first, unsigned most) {
        before_ = first.getLoopPredecessor();
        if (!before_) return 0;
        line_ = llvm::BasicBlock::Create(function_.getContext(), "step.line", &function_, first.getHeader());
        builder_.SetInsertPoint(line_);
        from_ = before_;
        first_ = block_ = first.getHeader();
        for (unsigned count = 0;; ++count) {
            if (count == most) return count;
            visited_.clear();
            const llvm::Loop* loop = nullptr;
            while (!(loop = loop_that_begins_here()))
                if (!walk_block()) return count;
            if (joined_.contains(block_)) return count; // around a loop of the kernel's own
            while (loop->contains(block_))
                if (!walk_block()) return count;
            joined_.insert(visited_.begin(), visited_.end());
        }
    }

    bool is_worth_it() const { return handed_on_ * 2 >= loaded_ && handed_on_ != 0; }

    void discard() {
        if (!line_) return;
        for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::reverse(*line_))) {
            if (!instruction.use_empty()) instruction.replaceAllUsesWith(llvm::PoisonValue::get(instruction.getType()));
            instruction.eraseFromParent();
        }
        line_->eraseFromParent();
    }

    /// Behind a write() that ended where it was told to: the line takes the loops' place. How many statements it has.
    std::size_t finish() {
        for (auto& [field, store] : context_stores_) {
            llvm::Instruction* copy = store.first->clone();
            copy->setOperand(0, store.second);
            copy->setOperand(1, builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), function_.getArg(0), field));
            builder_.Insert(copy);
        }
        for (llvm::PHINode& phi : block_->phis()) {
            llvm::Value* incoming = value(phi.getIncomingValueForBlock(from_));
            phi.addIncoming(incoming, line_);
        }
        builder_.SetInsertPoint(builder_.CreateBr(block_));
        before_->getTerminator()->replaceSuccessorWith(first_, line_);
        for (llvm::PHINode& phi : first_->phis())
            while (phi.getBasicBlockIndex(before_) >= 0) phi.removeIncomingValue(before_, false);
        hand_on_last_values();
        store_what_lasts();
        return line_->size();
    }

    llvm::ArrayRef<llvm::BasicBlock*> joined() const { return joined_.getArrayRef(); }

private:
    /// A value of the line that stands for one of the loops: made already, or words of which it can be.
    struct Known {
        llvm::Value* value = nullptr;
        Words words;
    };
    /// A load or store that the line has.
    struct Written {
        llvm::Instruction* instruction;
        bool is_store;
        bool is_certain; ///< its mask is known
        unsigned bytes;  ///< of an element
        llvm::SmallVector<WordMemory::Place, 16> places;
        Words words; ///< what is stored
        unsigned value_operand = 0;
        llvm::Type* type = nullptr;
    };

    /// What blocks behind the line use, which may be among the loops, too: these may be entered from elsewhere, or in a
    /// later round of a loop around them.
    void hand_on_last_values() {
        llvm::df_iterator_default_set<llvm::BasicBlock*> reached;
        for (llvm::BasicBlock* block : llvm::depth_first_ext(&function_, reached)) static_cast<void>(block);
        for (llvm::BasicBlock* block : joined_)
            for (llvm::Instruction& old : *block) {
                llvm::SmallVector<llvm::Use*, 8> uses;
                for (llvm::Use& use : old.uses()) {
                    auto* user = llvm::cast<llvm::Instruction>(use.getUser());
                    auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
                    llvm::BasicBlock* where = phi ? phi->getIncomingBlock(use) : user->getParent();
                    if (where != block && where != line_ && reached.contains(where)) uses.push_back(&use);
                }
                if (uses.empty()) continue;
                llvm::SSAUpdater updater;
                updater.Initialize(old.getType(), old.getName());
                if (reached.contains(block)) updater.AddAvailableValue(block, &old);
                updater.AddAvailableValue(line_, value(&old));
                for (llvm::Use* use : uses) updater.RewriteUse(*use);
            }
    }

    const llvm::Loop* loop_that_begins_here() const {
        const llvm::Loop* loop = loops_.getLoopFor(block_);
        return loop && loop->getHeader() == block_ && is_step_loop(*loop) ? loop : nullptr;
    }

    /// Copies the block where control is, as far as its statements are not known, and goes on to where it leads.
    bool walk_block() {
        if (dominators_.dominates(block_, before_)) return false; // its values are another round's to the line's begin
        llvm::SmallVector<std::pair<llvm::PHINode*, Known>, 8> arrivals;
        for (llvm::PHINode& phi : block_->phis())
            arrivals.push_back({&phi, known(phi.getIncomingValueForBlock(from_))});
        for (auto& [phi, arrival] : arrivals) known_[phi] = std::move(arrival);
        for (llvm::Instruction& instruction : *block_) {
            if (llvm::isa<llvm::PHINode>(instruction) || instruction.isTerminator()) continue;
            if (++walked_ > most_visited || !walk(instruction)) return false;
            if (walked_ % 256 == 0 && line_->size() > room_) return false;
        }
        visited_.insert(block_);
        llvm::BasicBlock* next = where_to(*block_->getTerminator());
        if (!next) return false;
        from_ = block_;
        block_ = next;
        return true;
    }

    /// Where control goes, or null if that is not known.
    llvm::BasicBlock* where_to(llvm::Instruction& terminator) {
        if (auto* branch = llvm::dyn_cast<llvm::BranchInst>(&terminator)) {
            if (branch->isUnconditional()) return branch->getSuccessor(0);
            const auto* condition = llvm::dyn_cast<llvm::ConstantInt>(value(branch->getCondition()));
            return condition ? branch->getSuccessor(condition->isZero() ? 1 : 0) : nullptr;
        }
        auto* choice = llvm::dyn_cast<llvm::SwitchInst>(&terminator);
        const auto* number = choice ? llvm::dyn_cast<llvm::ConstantInt>(value(choice->getCondition())) : nullptr;
        return number ? choice->findCaseValue(number)->getCaseSuccessor() : nullptr;
    }

    bool walk(llvm::Instruction& instruction) {
        if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) switch (call->getIntrinsicID()) {
            case llvm::Intrinsic::lifetime_start:
            case llvm::Intrinsic::lifetime_end: return copy(instruction); // other variables may have the same place
            case llvm::Intrinsic::experimental_noalias_scope_decl:
            case llvm::Intrinsic::assume: return true;
            default: break;
            }
        if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
            if (const auto field = context_field(store->getPointerOperand(), layout_)) {
                if (*field != offsetof(abi::CtaContext, step) && *field != offsetof(abi::CtaContext, noted_lane) &&
                    *field != offsetof(abi::CtaContext, worked))
                    return false;
                context_stores_[*field] = {store, value(store->getValueOperand())};
                return true;
            }
        if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
            const auto field = context_field(load->getPointerOperand(), layout_);
            const bool stays = load->isSimple() && (load->getMetadata(llvm::LLVMContext::MD_invariant_load) ||
                                                    field == offsetof(abi::CtaContext, frames));
            if (stays) return copy(instruction);
            if (llvm::isa<llvm::Constant>(value(load->getPointerOperand()))) // of a table
                return copy(instruction) && llvm::isa<llvm::Constant>(value(load));
            if (field) return false;
        }
        if (const auto access = access_of(instruction)) return walk_access(instruction, *access);
        if (instruction.mayReadOrWriteMemory() || instruction.mayHaveSideEffects()) return false;
        return walk_elements(instruction) || copy(instruction);
    }

    bool copy(llvm::Instruction& instruction) {
        llvm::Instruction* copy = instruction.clone();
        for (llvm::Use& operand : copy->operands()) operand.set(value(operand.get()));
        builder_.Insert(copy);
        llvm::Value* result = llvm::simplifyInstruction(copy, simplify_);
        if (auto* comparison = llvm::dyn_cast<llvm::ICmpInst>(copy); comparison && !result)
            if (const std::optional<bool> known = places_.compare(*comparison)) result = builder_.getInt1(*known);
        if (result) copy->eraseFromParent();
        known_[&instruction] = Known{result ? result : copy, {}};
        return true;
    }

    /// Vectors that are put together of elements are known by these.
    bool walk_elements(llvm::Instruction& instruction) {
        const auto element_type = instruction.getType()->getScalarType();
        if (!element_type->isIntegerTy() && !element_type->isFloatingPointTy()) return false;
        if (element_type->getScalarSizeInBits() < 8) return false;
        const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
        if (vector && !llvm::isPowerOf2_32(vector->getNumElements())) return false; // WordBuilder
        Words words;
        if (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction)) {
            const Words a = words_of_known(shuffle->getOperand(0)), b = words_of_known(shuffle->getOperand(1));
            llvm::Value* none = llvm::PoisonValue::get(element_type);
            for (const int lane : shuffle->getShuffleMask())
                words.push_back(lane < 0                       ? Word{none, 0}
                                : std::size_t(lane) < a.size() ? a[std::size_t(lane)]
                                                               : b[std::size_t(lane) - a.size()]);
        } else if (auto* insertion = llvm::dyn_cast<llvm::InsertElementInst>(&instruction)) {
            const auto* lane = llvm::dyn_cast<llvm::ConstantInt>(value(insertion->getOperand(2)));
            if (!lane) return false;
            words = words_of_known(insertion->getOperand(0));
            if (lane->getZExtValue() >= words.size()) return false;
            words[lane->getZExtValue()] = words_of_known(insertion->getOperand(1)).front();
        } else if (auto* extraction = llvm::dyn_cast<llvm::ExtractElementInst>(&instruction)) {
            const auto* lane = llvm::dyn_cast<llvm::ConstantInt>(value(extraction->getOperand(1)));
            const Words all = words_of_known(extraction->getOperand(0));
            if (!lane || lane->getZExtValue() >= all.size()) return false;
            words = {all[lane->getZExtValue()]};
        } else {
            return false;
        }
        known_[&instruction] = Known{nullptr, std::move(words)};
        return true;
    }

    static bool may_be_known(const llvm::Type& type) {
        const llvm::Type& element = *type.getScalarType();
        const unsigned bits = type.getScalarSizeInBits();
        return (element.isIntegerTy() || element.isFloatTy() || element.isDoubleTy() || element.isHalfTy()) &&
               (bits == 8 || bits == 16 || bits == 32 || bits == 64);
    }

    /// Loaded for words of it, which others come between.
    static bool is_taken_apart(const llvm::Instruction& load) {
        return llvm::all_of(load.users(), [](const llvm::User* user) {
            return llvm::isa<llvm::ShuffleVectorInst, llvm::ExtractElementInst>(user);
        });
    }

    bool walk_access(llvm::Instruction& instruction, const Access& access) {
        if (!may_be_known(*access.type)) return false;
        const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(access.type);
        const unsigned count = vector ? vector->getNumElements() : 1, bytes = access.type->getScalarSizeInBits() / 8;
        if (!llvm::isPowerOf2_32(count)) return false; // WordBuilder
        llvm::Value* pointer = value(access.pointer);
        llvm::Value* mask = access.mask ? value(access.mask) : nullptr;
        auto* known_mask = llvm::dyn_cast_or_null<llvm::Constant>(mask);
        std::vector<bool> active(count, true);
        for (unsigned lane = 0; known_mask && lane < count; ++lane) {
            const auto* bit = llvm::dyn_cast_or_null<llvm::ConstantInt>(known_mask->getAggregateElement(lane));
            if (!bit) return false;
            active[lane] = !bit->isZero();
        }
        Written written{nullptr, access.stored != nullptr, !mask || known_mask, bytes, {}, {}, 0, access.type};
        std::vector<WordMemory::Place> places(count);
        const std::optional<WordMemory::Place> first =
            pointer->getType()->isVectorTy() ? std::nullopt : places_.of(pointer, 0);
        for (unsigned lane = 0; lane < count; ++lane) {
            if (!active[lane]) continue;
            const auto place = pointer->getType()->isVectorTy() ? places_.of(pointer, lane) : first;
            if (!place || !place->base) return false;
            places[lane] = *place;
            if (!pointer->getType()->isVectorTy()) places[lane].offset += std::int64_t(lane) * bytes;
            written.places.push_back(places[lane]);
        }
        if (written.places.empty()) { // nobody does it
            if (!access.stored) known_[&instruction] = known(access.otherwise);
            return true;
        }
        if (access.stored) {
            written.words = words_of_known(access.stored);
            for (unsigned lane = 0; lane < count; ++lane)
                if (active[lane])
                    memory_.write(places[lane], bytes,
                                  written.is_certain ? std::optional(written.words[lane]) : std::nullopt);
        } else {
            std::optional<Words> words = read(access, places, active, written.is_certain, bytes);
            loaded_ += written.places.size();
            if (words && (is_taken_apart(instruction) || words_.most_sources(*words, access.type) <= most_sources)) {
                handed_on_ += written.places.size();
                known_[&instruction] = Known{nullptr, std::move(*words)};
                return true;
            }
        }
        llvm::Instruction* copy = instruction.clone();
        for (llvm::Use& operand : copy->operands())
            if (access.stored && operand.get() == access.stored) {
                operand.set(llvm::PoisonValue::get(access.type)); // until it is known whether it lasts
                written.value_operand = operand.getOperandNo();
            } else if (operand.get() == access.pointer && first) {
                operand.set(address(*first));
            } else {
                operand.set(value(operand.get()));
            }
        copy->setMetadata(llvm::LLVMContext::MD_alias_scope, nullptr); // of one step
        copy->setMetadata(llvm::LLVMContext::MD_noalias, nullptr);
        builder_.Insert(copy);
        written.instruction = copy;
        written_.push_back(std::move(written));
        if (access.stored) return true;
        known_[&instruction] = Known{copy, {}};
        for (unsigned lane = 0; lane < count; ++lane)
            if (active[lane] && written_.back().is_certain && !memory_.read(places[lane], bytes))
                memory_.write(places[lane], bytes, Word{copy, lane});
        return true;
    }

    std::optional<Words> read(const Access& access, const std::vector<WordMemory::Place>& places,
                              const std::vector<bool>& active, bool is_certain, unsigned bytes) {
        if (!is_certain) return std::nullopt;
        Words words;
        const Words otherwise = access.otherwise ? words_of_known(access.otherwise) : Words();
        for (std::size_t lane = 0; lane < places.size(); ++lane) {
            const std::optional<Word> word =
                active[lane] ? memory_.read(places[lane], bytes) : std::optional(otherwise[lane]);
            if (!word) return std::nullopt;
            words.push_back(*word);
        }
        return words;
    }

    llvm::Value* address(const WordMemory::Place& place) {
        llvm::Value*& base = bases_[place.base];
        if (!base)
            base = place.base->getType()->isPointerTy() ? place.base
                                                        : builder_.CreateIntToPtr(place.base, builder_.getPtrTy());
        return place.offset == 0
                   ? base
                   : builder_.CreateGEP(builder_.getInt8Ty(), base, builder_.getInt64(std::uint64_t(place.offset)));
    }

    Known known(llvm::Value* old) const {
        const auto found = known_.find(old);
        return found == known_.end() ? Known{old, {}} : found->second;
    }
    llvm::Value* value(llvm::Value* old) {
        const auto found = known_.find(old);
        if (found == known_.end()) return old;
        Known& known = found->second;
        if (!known.value) known.value = words_.make(known.words, old->getType());
        return known.value;
    }
    Words words_of_known(llvm::Value* old) {
        const auto found = known_.find(old);
        if (found == known_.end()) return words_of(old);
        return found->second.words.empty() ? words_of(found->second.value) : found->second.words;
    }

    /// Takes stores away whose words are all written again before they are read, and makes what the others store.
    void store_what_lasts() {
        llvm::DenseSet<std::pair<llvm::Value*, std::int64_t>> covered;
        for (Written& access : llvm::reverse(written_)) {
            bool lasts = !access.is_store;
            const auto each = [&](const auto& visit) {
                for (const WordMemory::Place& place : access.places)
                    for (unsigned byte = 0; byte < access.bytes; ++byte)
                        visit(std::pair(place.base, place.offset + byte));
            };
            if (access.is_store) each([&](const auto& byte) { lasts = lasts || !covered.contains(byte); });
            if (!access.is_store)
                each([&](const auto& byte) { covered.erase(byte); });
            else if (access.is_certain)
                each([&](const auto& byte) { covered.insert(byte); });
            if (!lasts) {
                access.instruction->eraseFromParent();
            } else if (access.is_store) {
                builder_.SetInsertPoint(access.instruction);
                WordBuilder words(builder_, register_bits_);
                access.instruction->setOperand(access.value_operand, words.make(access.words, access.type));
            }
        }
        for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::reverse(*line_)))
            if (llvm::isInstructionTriviallyDead(&instruction)) instruction.eraseFromParent();
    }

    llvm::Function& function_;
    llvm::LoopInfo& loops_;
    const llvm::DominatorTree& dominators_;
    const llvm::DataLayout& layout_;
    llvm::SimplifyQuery simplify_;
    CtaPlaces places_;
    unsigned register_bits_;
    std::size_t room_;
    llvm::IRBuilder<> builder_;
    WordBuilder words_;
    llvm::BasicBlock *before_ = nullptr, *first_ = nullptr, *line_ = nullptr;
    llvm::BasicBlock *from_ = nullptr, *block_ = nullptr; ///< where control is, and where it has come from
    llvm::SmallSetVector<llvm::BasicBlock*, 32> joined_, visited_;
    llvm::DenseMap<llvm::Value*, Known> known_;
    std::map<std::uint64_t, std::pair<llvm::StoreInst*, llvm::Value*>> context_stores_; ///< by field: the last one
    llvm::DenseMap<llvm::Value*, llvm::Value*> bases_;
    WordMemory memory_;
    std::vector<Written> written_;
    std::size_t walked_ = 0, loaded_ = 0, handed_on_ = 0;
};

/// Joins the loops from `first` on, if that is worth it: how many statements the line has, else 0. `tried`: the loops
/// that have been looked at.
std::size_t join_from(llvm::Function& function, llvm::LoopInfo& loops, const llvm::DominatorTree& dominators,
                      llvm::Loop& first, unsigned register_bits, std::size_t room,
                      llvm::SmallPtrSetImpl<const llvm::BasicBlock*>& tried) {
    StepLine attempt(function, loops, dominators, register_bits, room);
    const unsigned count = attempt.write(first, std::numeric_limits<unsigned>::max());
    const bool is_worth_it = count >= 2 && attempt.is_worth_it();
    attempt.discard();
    tried.insert(first.getHeader());
    if (!is_worth_it) {
        tried.insert(attempt.joined().begin(), attempt.joined().end());
        return 0;
    }
    StepLine line(function, loops, dominators, register_bits, room);
    line.write(first, count);
    return line.finish();
}

} // namespace

llvm::PreservedAnalyses JoinStepLoops::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    if (is_long_code(*function.getParent())) return llvm::PreservedAnalyses::all();
    const auto& target = analyses.getResult<llvm::TargetIRAnalysis>(function);
    const auto bits =
        unsigned(target.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue());
    if (bits < 256) return llvm::PreservedAnalyses::all();
    llvm::SmallPtrSet<const llvm::BasicBlock*, 32> tried;
    std::size_t room = most_written;
    bool changed = false;
    const auto loops_of_steps = [&] {
        return llvm::count_if(analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder(),
                              [](const llvm::Loop* loop) { return is_step_loop(*loop); });
    };
    if (loops_of_steps() < 2) return llvm::PreservedAnalyses::all();
    if (llvm::removeUnreachableBlocks(function)) {
        analyses.invalidate(function, llvm::PreservedAnalyses::none());
        changed = true;
    }
    for (bool again = true; again;) {
        again = false;
        auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
        const auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
        for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
            if (!is_step_loop(*loop) || tried.contains(loop->getHeader())) continue;
            const std::size_t written = join_from(function, loops, dominators, *loop, bits, room, tried);
            if (written == 0) continue;
            room -= std::min(room, written);
            llvm::removeUnreachableBlocks(function);
            analyses.invalidate(function, llvm::PreservedAnalyses::none());
            changed = again = true;
            break;
        }
    }
    if (!changed) return llvm::PreservedAnalyses::all();
    // Code generation crashes, or worse, on a use that its definition does not dominate.
    if (llvm::verifyFunction(function)) throw std::runtime_error("the line of steps made an invalid function");
    return llvm::PreservedAnalyses::none();
}

} // namespace ptarmigan::translator
