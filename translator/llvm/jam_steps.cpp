// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/jam_steps.h"

#include "translator/kernel_abi.h"
#include "translator/llvm/join_byte_products.h"
#include "translator/llvm/rare_steps.h"
#include "translator/llvm/step_loops.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/InstructionSimplify.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ptarmigan::translator {
namespace {

/// Of the vector registers, sums may take this share; the rest is for what they multiply. The second one where a step's
/// sums go through in groups: several factors of each side.
constexpr unsigned share_of_sums = 6, share_of_sums_in_parts = 4, all_shares = 8;
/// Fewer links are not worth it, more (of all steps together) would be long code.
constexpr std::size_t fewest_links = 8, most_links = 1280;
constexpr std::size_t shortest_chain = 4;
/// What a factor is made of, if it is made again for each link.
constexpr unsigned most_of_factor = 8;

using Instructions = std::vector<llvm::Instruction*>;

/// What `instruction` adds a product to, or null. Not integers of 32 bits: their products take as long as all else
/// together.
llvm::Value* sum_before(const llvm::Instruction& instruction) {
    if (llvm::Value* sum = sum_before_byte_products(instruction)) return sum;
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    const bool is_link = call && call->getIntrinsicID() == llvm::Intrinsic::fma && call->getType()->isVectorTy();
    return is_link ? call->getArgOperand(2) : nullptr;
}

/// Which no other thread of the host writes meanwhile, so that two loads of a place give the same.
bool is_in_shared_memory(const llvm::Instruction& access) {
    const llvm::MDNode* tag = access.getMetadata(llvm::LLVMContext::MD_tbaa);
    const auto* type = tag ? llvm::dyn_cast<llvm::MDNode>(tag->getOperand(1)) : nullptr;
    const auto* name = type ? llvm::dyn_cast<llvm::MDString>(type->getOperand(0)) : nullptr;
    return name && name->getString() == "shared";
}

/// Vector registers of the CPU, as far as sums may take them.
class Registers {
public:
    explicit Registers(const llvm::TargetTransformInfo& target)
        : number_(target.getNumberOfRegisters(target.getRegisterClassForType(/*Vector=*/true))),
          bits_(std::max<unsigned>(
              128,
              unsigned(target.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue()))) {}

    unsigned needed_by(const llvm::Type& type) const {
        const auto bits = unsigned(type.getPrimitiveSizeInBits().getFixedValue());
        return std::max(1u, (bits + bits_ - 1) / bits_);
    }
    unsigned room() const { return number_ * share_of_sums / all_shares; }
    unsigned room_in_parts() const { return number_ * share_of_sums_in_parts / all_shares; }

private:
    unsigned number_, bits_;
};

/// Whether a step's sums leave room for another step's, or go through in groups.
bool may_jam(const llvm::BasicBlock& body, const Registers& registers) {
    std::size_t links = 0;
    unsigned needed = 0;
    for (const llvm::Instruction& instruction : body) {
        if (!sum_before(instruction)) continue;
        ++links;
        const bool is_last = llvm::none_of(instruction.users(), [&](const llvm::User* user) {
            return sum_before(*llvm::cast<llvm::Instruction>(user)) == &instruction;
        });
        if (is_last) needed += registers.needed_by(*instruction.getType());
    }
    return links >= fewest_links && (needed * 2 <= registers.room() || needed > registers.room());
}

struct Chain {
    Instructions links;
    unsigned registers = 0;
};

class StepLoop {
public:
    StepLoop(llvm::Loop& loop, const RareSteps* rare, llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
        : loop_(loop), rare_(rare), body_(*loop.getHeader()), hoisted_(loop.getLoopPredecessor()),
          tree_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
          loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
          aliases_(analyses.getResult<llvm::AAManager>(function)),
          evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
          vectors_(analyses.getResult<llvm::TargetIRAnalysis>(function)), builder_(function.getContext()) {}

    bool run() {
        if (loop_.getNumBlocks() != 1 || !hoisted_) return false;
        rounds_ = evolution_.getSmallConstantTripCount(&loop_);
        if (rounds_ == 0 || !find_chains() || !choose_count() || !know_memory()) return false;
        find_moving_numbers();
        before_ = loop_.getLoopPreheader();
        if (!before_) before_ = llvm::InsertPreheaderForLoop(&loop_, &tree_, &loops_, nullptr, /*PreserveLCSSA=*/false);
        if (!before_) return false;
        write();
        return true;
    }

    /// Behind run(), when no analysis is asked any more.
    void join() const { join_rare_steps(*rare_, *marker_, starts_, count_); }

private:
    /// One step's links, which must be products of what no link has computed.
    bool find_chains() {
        llvm::DenseMap<const llvm::Value*, std::size_t> chain_of;
        llvm::SmallPtrSet<const llvm::Value*, 32> behind_links;
        std::size_t links = 0, longest = 0;
        for (llvm::Instruction& instruction : body_) {
            if (llvm::isa<llvm::PHINode>(instruction)) continue;
            llvm::Value* sum = sum_before(instruction);
            const bool reads_links = llvm::any_of(instruction.operands(), [&](const llvm::Use& use) {
                return use.get() != sum && behind_links.contains(use.get());
            });
            if (reads_links) sum = nullptr;
            if (!sum) {
                if (reads_links || llvm::any_of(instruction.operands(),
                                                [&](const llvm::Use& use) { return behind_links.contains(use.get()); }))
                    behind_links.insert(&instruction);
                continue;
            }
            const auto before = chain_of.find(sum);
            const bool continues = before != chain_of.end() && sum->hasOneUse();
            if (!continues && behind_links.contains(sum)) return false;
            const std::size_t number = continues ? before->second : chains_.size();
            if (!continues) chains_.push_back({{}, vectors_.needed_by(*instruction.getType())});
            chains_[number].links.push_back(&instruction);
            chain_of[&instruction] = number;
            is_link_.insert(&instruction);
            behind_links.insert(&instruction);
            longest = std::max(longest, chains_[number].links.size());
            ++links;
        }
        links_ = links;
        return links >= fewest_links && longest >= shortest_chain;
    }

    /// Steps that go side by side; false if it stays one with room for its sums.
    bool choose_count() {
        room_ = vectors_.room();
        unsigned registers = 0;
        for (const Chain& chain : chains_) registers += chain.registers;
        count_ = 1;
        for (unsigned count = 2; count <= rounds_ && count * registers <= room_; ++count)
            if (rounds_ % count == 0 && count * links_ <= most_links) count_ = count;
        if (count_ > 1) return true;
        const bool parts = registers > room_ && links_ <= most_links;
        room_ = vectors_.room_in_parts(); // rows of factors, too
        return parts;
    }

    /// A place that moves by the same distance each round.
    struct Line {
        const llvm::SCEV* start;
        std::int64_t step, bytes;
    };

    static llvm::Value* address_of(llvm::Value* pointer) {
        auto* number = llvm::dyn_cast<llvm::IntToPtrInst>(pointer);
        return number ? number->getOperand(0) : pointer;
    }

    std::optional<std::int64_t> step_of(llvm::Value* value) {
        if (!evolution_.isSCEVable(value->getType())) return std::nullopt;
        const auto* line = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(value));
        if (!line || line->getLoop() != &loop_ || !line->isAffine()) return std::nullopt;
        const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(line->getStepRecurrence(evolution_));
        if (!step || step->getAPInt().getSignificantBits() > 32) return std::nullopt;
        return step->getAPInt().getSExtValue();
    }

    std::optional<Line> line_of(llvm::Instruction& access) {
        llvm::Value* address = address_of(llvm::getLoadStorePointerOperand(&access));
        const std::optional<std::int64_t> step = step_of(address);
        if (!step) return std::nullopt;
        const llvm::DataLayout& layout = body_.getModule()->getDataLayout();
        return Line{llvm::cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(address))->getStart(), *step,
                    std::int64_t(layout.getTypeStoreSize(llvm::getLoadStoreType(&access)).getFixedValue())};
    }

    /// The word of the CTA's context with the number of the step at hand, which no other access names.
    bool is_step_word(const llvm::StoreInst& store) const {
        return llvm::isa<llvm::Argument>(store.getPointerOperand()->stripInBoundsConstantOffsets()) &&
               store.getValueOperand() == loop_.getCanonicalInductionVariable();
    }

    /// Sorts what touches memory; false if steps may meet there.
    bool know_memory() {
        Instructions reads;
        std::vector<llvm::StoreInst*> writes;
        for (llvm::Instruction& instruction : body_) {
            if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
                if (call->getIntrinsicID() == llvm::Intrinsic::prefetch)
                    hints_.push_back(call);
                else if (call->getIntrinsicID() == llvm::Intrinsic::experimental_noalias_scope_decl)
                    continue;
                else if (call->mayReadOrWriteMemory() || !call->willReturn())
                    return false;
            } else if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
                if (!load->isSimple()) return false;
                reads.push_back(load);
            } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
                if (!store->isSimple()) return false;
                if (is_step_word(*store)) {
                    if (step_word_) return false;
                    step_word_ = store;
                } else {
                    writes.push_back(store);
                }
            } else if (instruction.mayReadOrWriteMemory()) {
                return false;
            }
        }
        if (writes.empty()) return false;
        stores_ = writes;
        for (llvm::Instruction* read : reads) {
            bool stays = true;
            for (llvm::StoreInst* write : writes) {
                if (!may_write(*write, *read)) continue;
                // The step's own place: read before it is written.
                if (!is_own_place(*read, *write) || !read->comesBefore(write)) return false;
                stays = false;
            }
            if (stays)
                unchanged_.insert(read);
            else
                own_reads_.push_back(read);
        }
        for (llvm::StoreInst* write : writes) {
            for (llvm::StoreInst* other : writes)
                if (may_write(*other, *write) && !is_own_place(*other, *write)) return false;
        }
        // What was hoisted in front of the loop, with nothing written behind it.
        bool is_written = false;
        for (llvm::Instruction& instruction : llvm::reverse(*hoisted_)) {
            is_written |= instruction.mayWriteToMemory();
            auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
            if (!load || is_written || !load->isSimple()) continue;
            if (llvm::none_of(writes, [&](llvm::StoreInst* write) { return may_write(*write, *load); }))
                unchanged_.insert(load);
        }
        return true;
    }

    /// Steps' frames are no memory of the kernel's.
    bool may_write(llvm::StoreInst& write, const llvm::Instruction& access) {
        if (is_in_shared_memory(access) && is_in_frames(write.getPointerOperand())) return false;
        return llvm::isModSet(aliases_.getModRefInfo(&write, llvm::MemoryLocation::get(&access)));
    }

    static bool is_in_frames(const llvm::Value* pointer) {
        const auto* frames = llvm::dyn_cast<llvm::LoadInst>(llvm::getUnderlyingObject(pointer));
        if (!frames) return false;
        const llvm::DataLayout& layout = frames->getModule()->getDataLayout();
        const llvm::Value* field = frames->getPointerOperand();
        llvm::APInt offset(layout.getIndexTypeSizeInBits(field->getType()), 0);
        return llvm::isa<llvm::Argument>(field->stripAndAccumulateConstantOffsets(layout, offset, false)) &&
               offset == offsetof(abi::CtaContext, frames);
    }

    /// Both lie where no other step's access of the two does.
    bool is_own_place(llvm::Instruction& a, llvm::Instruction& b) {
        const std::optional<Line> one = line_of(a), other = line_of(b);
        if (!one || !other || one->step != other->step) return false;
        const auto* distance = llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(other->start, one->start));
        if (!distance || distance->getAPInt().getSignificantBits() > 32) return false;
        const std::int64_t offset = distance->getAPInt().getSExtValue();
        const std::int64_t first = std::min<std::int64_t>(0, offset),
                           last = std::max(one->bytes, offset + other->bytes);
        return last - first <= std::abs(one->step);
    }

    /// Numbers and addresses that move by a constant from step to step, and what is the same for all.
    void find_moving_numbers() {
        for (llvm::Instruction& instruction : body_) {
            if (const std::optional<std::int64_t> step = step_of(&instruction)) {
                moves_[&instruction] = *step;
                continue;
            }
            const bool stays = !llvm::isa<llvm::PHINode>(instruction) && !instruction.mayWriteToMemory() &&
                               (!instruction.mayReadFromMemory() || unchanged_.contains(&instruction)) &&
                               llvm::all_of(instruction.operands(), [&](const llvm::Use& use) {
                                   return loop_.isLoopInvariant(use.get()) || stays_.contains(use.get());
                               });
            if (stays) stays_.insert(&instruction);
        }
    }

    bool is_here(const llvm::Value* value) const {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
        return instruction && instruction->getParent() == &body_;
    }

    /// What `value` is in the round `copy` of those that become one.
    llvm::Value* value(unsigned copy, llvm::Value* value) {
        if (!is_here(value)) return value;
        auto* instruction = llvm::cast<llvm::Instruction>(value);
        if (stays_.contains(instruction)) copy = 0;
        auto known = values_.find({copy, instruction});
        if (known != values_.end()) return known->second;
        llvm::Value* result = make(copy, *instruction);
        values_[{copy, instruction}] = result;
        return result;
    }

    llvm::Value* make(unsigned copy, llvm::Instruction& instruction) {
        const auto moves = moves_.find(&instruction);
        if (copy > 0 && moves != moves_.end()) {
            llvm::Value* first = value(0, &instruction);
            const auto distance = std::uint64_t(moves->second * std::int64_t(copy));
            if (first->getType()->isPointerTy())
                return builder_.CreateConstGEP1_64(builder_.getInt8Ty(), first, distance);
            return builder_.CreateAdd(first, llvm::ConstantInt::get(first->getType(), distance, /*isSigned=*/true));
        }
        if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction)) {
            if (copy > 0) return value(copy - 1, phi->getIncomingValueForBlock(&body_));
            return count_ == rounds_ ? phi->getIncomingValueForBlock(before_) : phi;
        }
        return copy_of(instruction, [&](llvm::Value* operand) { return value(copy, operand); });
    }

    template <class Operand> llvm::Value* copy_of(llvm::Instruction& instruction, Operand operand) {
        llvm::Instruction* made = instruction.clone();
        for (llvm::Use& use : made->operands()) use.set(operand(use.get()));
        if (!made->mayReadOrWriteMemory())
            if (llvm::Value* simpler = llvm::simplifyInstruction(
                    made, llvm::SimplifyQuery(body_.getModule()->getDataLayout(), &instruction))) {
                made->deleteValue();
                return simpler;
            }
        return builder_.Insert(made, instruction.getName());
    }

    bool is_part_of_factor(const llvm::Value* value) const {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
        if (!instruction || (instruction->getParent() != &body_ && instruction->getParent() != hoisted_)) return false;
        if (llvm::isa<llvm::LoadInst>(instruction))
            return unchanged_.contains(instruction) && is_in_shared_memory(*instruction);
        return instruction->getType()->isVectorTy() &&
               llvm::isa<llvm::ShuffleVectorInst, llvm::BitCastInst, llvm::InsertElementInst>(instruction);
    }

    unsigned size_of_factor(const llvm::Value* value) const {
        if (!is_part_of_factor(value)) return 0;
        unsigned size = 1;
        if (llvm::isa<llvm::LoadInst>(value)) return size;
        for (const llvm::Use& use : llvm::cast<llvm::Instruction>(value)->operands()) {
            size += size_of_factor(use.get());
            if (size > most_of_factor) break;
        }
        return size;
    }

    /// Made anew for each set of links, so that it needs no register for longer.
    llvm::Value* factor(unsigned copy, llvm::Value* operand) {
        if (!is_part_of_factor(operand)) return value(copy, operand);
        auto* instruction = llvm::cast<llvm::Instruction>(operand);
        if (!is_here(operand) || stays_.contains(instruction)) copy = 0;
        const auto known = factors_.find({copy, instruction});
        if (known != factors_.end()) return known->second;
        llvm::Value* made = copy_of(*instruction, [&](llvm::Value* part) { return factor(copy, part); });
        factors_[{copy, instruction}] = made;
        return made;
    }

    void write_link(unsigned copy, llvm::Instruction& link) {
        const llvm::Value* sum = sum_before(link);
        const auto operand = [&](llvm::Value* each) {
            return each == sum ? value(copy, each) : factor_of_link(copy, each);
        };
        values_[{copy, &link}] = copy_of(link, operand);
    }

    llvm::Value* factor_of_link(unsigned copy, llvm::Value* operand) {
        if (size_of_factor(operand) <= most_of_factor) return factor(copy, operand);
        return stays_.contains(operand) && count_ < rounds_ ? in_front(operand) : value(copy, operand);
    }

    /// Lanes gathered from all over a tile, the same for all steps: once, and from the stack after that.
    llvm::Value* in_front(llvm::Value* value) {
        if (!is_here(value)) return value;
        const auto known = in_front_.find(value);
        if (known != in_front_.end()) return known->second;
        llvm::Instruction* made = llvm::cast<llvm::Instruction>(value)->clone();
        for (llvm::Use& use : made->operands()) use.set(in_front(use.get()));
        made->insertBefore(before_->getTerminator());
        return in_front_[value] = made;
    }

    /// False while it hangs on a link that is not written yet.
    bool is_ready(unsigned copy, llvm::Value* value, llvm::SmallPtrSetImpl<llvm::Value*>& seen) {
        if (!is_here(value) || !seen.insert(value).second || values_.contains({copy, value})) return true;
        if (is_link_.contains(value)) return false;
        if (auto* phi = llvm::dyn_cast<llvm::PHINode>(value)) {
            llvm::SmallPtrSet<llvm::Value*, 16> others;
            return copy == 0 || is_ready(copy - 1, phi->getIncomingValueForBlock(&body_), others);
        }
        return llvm::all_of(llvm::cast<llvm::Instruction>(value)->operands(),
                            [&](const llvm::Use& use) { return is_ready(copy, use.get(), seen); });
    }

    void write_stores(bool all) {
        for (unsigned copy = 0; copy < count_; ++copy)
            for (llvm::StoreInst* store : stores_) {
                if (written_.contains({copy, store})) continue;
                llvm::SmallPtrSet<llvm::Value*, 16> seen;
                if (!all && !is_ready(copy, store->getValueOperand(), seen)) break; // stores keep their order
                for (llvm::Instruction* read : own_reads_)
                    if (read->comesBefore(store)) value(copy, read);
                copy_of(*store, [&](llvm::Value* operand) { return value(copy, operand); });
                written_.insert({copy, store});
            }
    }

    void write() {
        llvm::Instruction* end = body_.getTerminator();
        Instructions old;
        for (llvm::Instruction& instruction : body_)
            if (&instruction != end) old.push_back(&instruction);
        builder_.SetInsertPoint(end);
        builder_.SetCurrentDebugLocation({});
        if (step_word_) copy_of(*step_word_, [&](llvm::Value* operand) { return value(0, operand); });
        for (unsigned copy = 0; copy < count_; ++copy)
            for (llvm::Instruction* hint : hints_)
                copy_of(*hint, [&](llvm::Value* operand) { return value(copy, operand); });
        write_chains();
        if (rare_) marker_ = write_test(old);
        write_stores(/*all=*/true);
        for (llvm::Instruction* instruction : old)
            for (llvm::Use& use : llvm::make_early_inc_range(instruction->uses()))
                if (!is_here(use.getUser())) use.set(value(count_ - 1, instruction));
        for (llvm::Use& use : end->operands())
            if (!llvm::isa<llvm::BasicBlock>(use.get())) use.set(value(count_ - 1, use.get()));
        if (rare_)
            for (const auto& [phi, other] : rare_->phis) starts_.push_back(value(0, phi));
        close(old);
    }

    /// Whether any of the steps is rare, behind all that the loop's end and what is behind it need.
    llvm::Instruction* write_test(const Instructions& old) {
        for (llvm::Instruction* instruction : old)
            if (llvm::any_of(instruction->users(), [&](const llvm::User* user) {
                    return !is_here(user) || llvm::isa<llvm::PHINode>(user) ||
                           llvm::cast<llvm::Instruction>(user)->isTerminator();
                }))
                value(count_ - 1, instruction);
        llvm::Value* any = nullptr;
        for (unsigned copy = 0; copy < count_; ++copy) {
            llvm::Value* holds = value(copy, rare_->test);
            if (!rare_->holds_if) holds = builder_.CreateNot(holds);
            any = any ? builder_.CreateOr(any, holds) : holds;
        }
        return builder_.Insert(new llvm::FreezeInst(any), "rare.steps");
    }

    void write_chains() {
        struct Member {
            unsigned copy;
            const Chain* chain;
        };
        std::vector<Member> members;
        for (unsigned copy = 0; copy < count_; ++copy)
            for (const Chain& chain : chains_) members.push_back({copy, &chain});
        for (std::size_t begin = 0, end = 0; begin < members.size(); begin = end) {
            std::size_t levels = 0;
            for (unsigned registers = 0; end < members.size(); ++end) {
                registers += members[end].chain->registers;
                if (registers > room_ && end > begin) break;
                levels = std::max(levels, members[end].chain->links.size());
            }
            for (std::size_t level = 0; level < levels; ++level) {
                factors_.clear();
                for (std::size_t i = begin; i < end; ++i)
                    if (level < members[i].chain->links.size())
                        write_link(members[i].copy, *members[i].chain->links[level]);
                builder_.CreateFence(llvm::AtomicOrdering::AcquireRelease, llvm::SyncScope::SingleThread);
            }
            if (!rare_) write_stores(/*all=*/false);
        }
    }

    void close(const Instructions& old) {
        llvm::SmallVector<llvm::PHINode*, 8> phis;
        for (llvm::PHINode& phi : body_.phis()) phis.push_back(&phi);
        if (count_ == rounds_) {
            llvm::Instruction* end = body_.getTerminator();
            llvm::BasicBlock* behind = loop_.getExitBlock();
            llvm::BranchInst::Create(behind, end);
            end->eraseFromParent();
        } else {
            std::vector<llvm::Value*> next;
            for (llvm::PHINode* phi : phis) next.push_back(value(count_ - 1, phi->getIncomingValueForBlock(&body_)));
            for (std::size_t i = 0; i < phis.size(); ++i) phis[i]->setIncomingValueForBlock(&body_, next[i]);
        }
        evolution_.forgetLoop(&loop_);
        for (llvm::Instruction* instruction : old)
            if (count_ == rounds_ || !llvm::isa<llvm::PHINode>(instruction)) instruction->dropAllReferences();
        for (llvm::Instruction* instruction : old) {
            if (count_ != rounds_ && llvm::isa<llvm::PHINode>(instruction)) continue;
            instruction->replaceAllUsesWith(llvm::PoisonValue::get(instruction->getType()));
            instruction->eraseFromParent();
        }
    }

    llvm::Loop& loop_;
    const RareSteps* rare_; ///< or null
    llvm::Instruction* marker_ = nullptr;
    llvm::SmallVector<llvm::Value*, 4> starts_;
    llvm::BasicBlock& body_;
    llvm::BasicBlock *hoisted_,
        *before_ = nullptr; ///< in front of the loop: what others have moved there, and the edge
    llvm::DominatorTree& tree_;
    llvm::LoopInfo& loops_;
    llvm::AAResults& aliases_;
    llvm::ScalarEvolution& evolution_;
    const Registers vectors_;
    llvm::IRBuilder<> builder_;
    unsigned rounds_ = 0, count_ = 1, room_ = 0;
    std::size_t links_ = 0;
    std::vector<Chain> chains_;
    llvm::SmallPtrSet<const llvm::Value*, 32> is_link_;
    llvm::StoreInst* step_word_ = nullptr;
    Instructions hints_, own_reads_;
    std::vector<llvm::StoreInst*> stores_;
    llvm::SmallPtrSet<const llvm::Value*, 32> unchanged_; ///< loads of what nothing in the loop writes
    llvm::SmallPtrSet<const llvm::Value*, 32> stays_;
    llvm::DenseMap<const llvm::Value*, std::int64_t> moves_;
    using Copy = std::pair<unsigned, const llvm::Value*>;
    llvm::DenseMap<Copy, llvm::Value*> values_, factors_;
    llvm::DenseMap<llvm::Value*, llvm::Value*> in_front_;
    llvm::DenseSet<Copy> written_;
};

} // namespace

llvm::PreservedAnalyses JamSteps::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    const Registers registers(analyses.getResult<llvm::TargetIRAnalysis>(function));
    const std::vector<RareSteps> rare =
        part_rare_steps(analyses.getResult<llvm::LoopAnalysis>(function),
                        [&](const llvm::BasicBlock& body) { return may_jam(body, registers); });
    if (!rare.empty()) analyses.invalidate(function, llvm::PreservedAnalyses::none());
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    bool changed = !rare.empty();
    llvm::SmallPtrSet<const RareSteps*, 4> jammed;
    std::vector<std::unique_ptr<StepLoop>> with_rare;
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
        if (!is_step_loop(*loop)) continue;
        const auto parted =
            llvm::find_if(rare, [&](const RareSteps& steps) { return steps.usual == loop->getHeader(); });
        const RareSteps* steps = parted == rare.end() ? nullptr : &*parted;
        auto steps_loop = std::make_unique<StepLoop>(*loop, steps, function, analyses);
        if (!steps_loop->run()) continue;
        changed = true;
        if (!steps) continue;
        jammed.insert(steps);
        with_rare.push_back(std::move(steps_loop));
    }
    for (const auto& steps : with_rare) steps->join();
    for (const RareSteps& steps : rare)
        if (!jammed.contains(&steps)) join_rare_steps(steps);
    return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

} // namespace ptarmigan::translator
