// SPDX-License-Identifier: Apache-2.0
// One walk over the function settles all loads that a write in the same block reaches, and notes for each slot where it
// is read at a block's entry and what blocks leave in it. Then slot by slot: if one block alone writes it and dominates
// the reads, its value it is; else the blocks in which the slot is live are visited in reverse post-order, and a block
// that different values come to, or one that is not known yet, gets a phi. Phis of one value are dropped at the end
// (Braun et al., Simple and Efficient Construction of Static Single Assignment Form, 2013).
// Masks begin as zero at the function's entry and at each round of a loop, and other slots as nothing: they would be
// live from there on. So these writes are taken to be where the slot's other reads and writes are still to come:
// find_top().
#include "translator/llvm/promote_slots.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace ptarmigan::translator {
namespace {

/// Position of a block in reverse post-order.
using Position = std::uint32_t;
constexpr Position nowhere = ~Position(0);

struct Edge {
    llvm::BasicBlock* from;
    Position position; ///< of `from`; nowhere if it can't be reached
};

struct BlockValue {
    Position block;
    llvm::Value* value;
};

struct Slot {
    llvm::AllocaInst* place;
    std::vector<BlockValue> left;         ///< the last value that a block writes
    std::vector<llvm::LoadInst*> entries; ///< the first load of each block that reads before it writes
    Position seen_in = nowhere;           ///< of the walk over the function: the block that `now` is for
    llvm::Value* now = nullptr;
    bool written_here = false;
};

class Promotion {
public:
    Promotion(llvm::Function& function, llvm::DominatorTree& dominators, const llvm::LoopInfo& loops)
        : function_(function), dominators_(dominators), loops_(loops) {}

    bool run() {
        find_slots();
        if (slots_.empty()) return false;
        dominators_.updateDFSNumbers();
        number_blocks();
        walk();
        for (Slot& slot : slots_) settle(slot);
        for (llvm::LoadInst* load : loads_) load->replaceAllUsesWith(latest(load));
        for (llvm::LoadInst* load : loads_) load->eraseFromParent();
        for (llvm::StoreInst* store : stores_) store->eraseFromParent();
        for (Slot& slot : slots_) slot.place->eraseFromParent();
        drop_needless_phis();
        return true;
    }

private:
    static bool is_plain(const llvm::AllocaInst& place) {
        return llvm::all_of(place.users(), [&](const llvm::User* user) {
            if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(user))
                return load->isSimple() && load->getType() == place.getAllocatedType();
            const auto* store = llvm::dyn_cast<llvm::StoreInst>(user);
            return store && store->isSimple() && store->getValueOperand() != &place &&
                   store->getValueOperand()->getType() == place.getAllocatedType();
        });
    }

    void find_slots() {
        for (llvm::Instruction& instruction : function_.getEntryBlock()) {
            auto* place = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
            if (!place || place->isArrayAllocation() || !is_plain(*place)) continue;
            number_of_[place] = unsigned(slots_.size());
            slots_.push_back({place, {}, {}});
        }
    }

    void number_blocks() {
        for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function_)) {
            position_[block] = Position(blocks_.size());
            blocks_.push_back(block);
        }
        edges_.resize(blocks_.size());
        for (Position block = 0; block < blocks_.size(); ++block)
            for (llvm::BasicBlock* from : llvm::predecessors(blocks_[block])) {
                auto found = position_.find(from);
                edges_[block].push_back({from, found == position_.end() ? nowhere : found->second});
            }
        for (Position block = 0; block < blocks_.size(); ++block)
            for (const Edge& edge : edges_[block])
                if (edge.position != nowhere && edge.position >= block &&
                    !dominators_.dominates(blocks_[block], blocks_[edge.position]))
                    is_reducible_ = false;
        entry_.resize(blocks_.size());
        left_.resize(blocks_.size());
        is_live_.resize(blocks_.size());
    }

    Slot* slot_at(llvm::Value* address) {
        auto* place = llvm::dyn_cast<llvm::AllocaInst>(address);
        if (!place) return nullptr;
        auto found = number_of_.find(place);
        return found == number_of_.end() ? nullptr : &slots_[found->second];
    }

    void walk() {
        for (Position block = 0; block < blocks_.size(); ++block)
            for (llvm::Instruction& instruction : *blocks_[block]) {
                if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
                    if (Slot* slot = slot_at(load->getPointerOperand())) see(*slot, block, load);
                } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
                    if (Slot* slot = slot_at(store->getPointerOperand())) see(*slot, block, store);
                }
            }
        // What can't be reached is left, but must not name slots that are gone.
        for (llvm::BasicBlock& block : function_) {
            if (position_.count(&block)) continue;
            for (llvm::Instruction& instruction : block) {
                if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
                    if (slot_at(load->getPointerOperand())) replace(load, llvm::PoisonValue::get(load->getType()));
                } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
                    if (slot_at(store->getPointerOperand())) stores_.push_back(store);
                }
            }
        }
    }

    void see(Slot& slot, Position block, llvm::LoadInst* load) {
        if (slot.seen_in == block) {
            replace(load, slot.now);
            return;
        }
        slot.seen_in = block;
        slot.now = load;
        slot.written_here = false;
        slot.entries.push_back(load);
    }

    void see(Slot& slot, Position block, llvm::StoreInst* store) {
        llvm::Value* value = store->getValueOperand();
        if (slot.seen_in == block && slot.written_here)
            slot.left.back().value = value;
        else
            slot.left.push_back({block, value});
        slot.seen_in = block;
        slot.now = value;
        slot.written_here = true;
        stores_.push_back(store);
    }

    void settle(Slot& slot) {
        if (slot.entries.empty()) return;
        undefined_ = llvm::UndefValue::get(slot.place->getAllocatedType());
        if (slot.left.empty()) {
            for (llvm::LoadInst* load : slot.entries) replace(load, undefined_);
            return;
        }
        const auto is_defined = [](const BlockValue& left) { return !llvm::isa<llvm::UndefValue>(left.value); };
        if (llvm::count_if(slot.left, is_defined) == 1) {
            const BlockValue& left = *llvm::find_if(slot.left, is_defined);
            llvm::BasicBlock* writer = blocks_[left.block];
            if (llvm::all_of(slot.entries, [&](llvm::LoadInst* load) {
                    return load->getParent() != writer && dominators_.dominates(writer, load->getParent());
                })) {
                for (llvm::LoadInst* load : slot.entries) replace(load, left.value);
                return;
            }
        }
        for (const BlockValue& left : slot.left) left_[left.block] = left.value;
        first_ = left_[0] ? left_[0] : undefined_;
        find_top(slot);
        find_live_blocks(slot);
        for (Position block : live_) entry_[block] = value_at_entry(slot, block);
        for (auto& [phi, block] : open_phis_)
            for (const Edge& edge : edges_[block]) phi->addIncoming(coming_from(edge.position, block), edge.from);
        open_phis_.clear();
        for (llvm::LoadInst* load : slot.entries) replace(load, entry_[position_.find(load->getParent())->second]);
        for (Position block : live_) entry_[block] = nullptr;
        for (const BlockValue& left : slot.left) left_[left.block] = nullptr;
    }

    /// The nearest block on all ways to what reads and writes the slot, but for writes of what the function's entry
    /// leaves in it; if it is in a loop, the header of the outermost one that is not begun by such a write. Whoever
    /// comes there from outside of that header's loop has met no other write since.
    void find_top(const Slot& slot) {
        llvm::BasicBlock* top = slot.entries.front()->getParent();
        for (llvm::LoadInst* load : slot.entries) top = dominators_.findNearestCommonDominator(top, load->getParent());
        for (const BlockValue& left : slot.left)
            if (left.value != first_) top = dominators_.findNearestCommonDominator(top, blocks_[left.block]);
        top_loop_ = nullptr;
        for (const llvm::Loop* loop = loops_.getLoopFor(top); loop; loop = loop->getParentLoop()) {
            llvm::BasicBlock* header = loop->getHeader();
            if (header != top && left_[position_.find(header)->second] == first_) break;
            top = header;
            top_loop_ = loop;
        }
        top_ = position_.find(top)->second;
    }

    /// True of ways to a block on which the slot has what the function's entry left in it.
    bool is_unwritten(Position block, Position from) const {
        return is_reducible_ && block == top_ && !(top_loop_ && top_loop_->contains(blocks_[from]));
    }

    /// Blocks whose entry the slot's value reaches to be read, in reverse post-order.
    void find_live_blocks(const Slot& slot) {
        live_.clear();
        const auto add = [&](Position block) {
            if (is_live_[block]) return;
            is_live_[block] = true;
            live_.push_back(block);
        };
        for (const llvm::LoadInst* load : slot.entries) add(position_.find(load->getParent())->second);
        for (std::size_t i = 0; i < live_.size(); ++i)
            for (const Edge& edge : edges_[live_[i]])
                if (edge.position != nowhere && !left_[edge.position] && !is_unwritten(live_[i], edge.position))
                    add(edge.position);
        for (Position block : live_) is_live_[block] = false;
        std::sort(live_.begin(), live_.end());
    }

    /// Null: not known yet.
    llvm::Value* coming_from(Position from, Position block) {
        if (from == nowhere) return undefined_;
        if (is_unwritten(block, from)) return first_;
        return left_[from] ? left_[from] : entry_[from];
    }

    llvm::Value* value_at_entry(const Slot& slot, Position block) {
        if (block == 0) return undefined_; // the function's entry
        llvm::Value* only = nullptr;
        bool same = true;
        for (const Edge& edge : edges_[block]) {
            llvm::Value* value = coming_from(edge.position, block);
            same = same && value && (!only || latest(value) == latest(only));
            only = value;
        }
        if (same) return only;
        auto* phi = llvm::PHINode::Create(slot.place->getAllocatedType(), unsigned(edges_[block].size()),
                                          slot.place->getName());
        phi->insertBefore(blocks_[block]->begin());
        phis_.push_back(phi);
        open_phis_.emplace_back(phi, block);
        return phi;
    }

    void replace(llvm::LoadInst* load, llvm::Value* value) {
        loads_.push_back(load);
        replacement_[load] = value;
    }

    /// What is behind loads that are replaced.
    llvm::Value* latest(llvm::Value* value) {
        llvm::Value* last = value;
        for (auto found = replacement_.find(last); found != replacement_.end(); found = replacement_.find(last))
            last = found->second;
        while (value != last) value = std::exchange(replacement_.find(value)->second, last); // shorter the next time
        return last;
    }

    /// The one value that comes to a phi, or null. What is undefined may be any constant.
    static llvm::Value* only_value(llvm::PHINode& phi) {
        llvm::Value *only = nullptr, *undefined = nullptr;
        for (llvm::Value* value : phi.incoming_values()) {
            if (value == &phi || value == only) continue;
            if (llvm::isa<llvm::UndefValue>(value))
                undefined = value;
            else if (only)
                return nullptr;
            else
                only = value;
        }
        if (!only) return undefined ? undefined : llvm::UndefValue::get(phi.getType());
        return !undefined || llvm::isa<llvm::Constant>(only) ? only : nullptr;
    }

    void drop_needless_phis() {
        llvm::SetVector<llvm::PHINode*> open(phis_.begin(), phis_.end());
        const llvm::DenseSet<llvm::PHINode*> ours(phis_.begin(), phis_.end());
        while (!open.empty()) {
            llvm::PHINode* phi = open.pop_back_val();
            llvm::Value* value = only_value(*phi);
            if (!value) continue;
            for (llvm::User* user : phi->users())
                if (auto* other = llvm::dyn_cast<llvm::PHINode>(user); other && other != phi && ours.count(other))
                    open.insert(other);
            phi->replaceAllUsesWith(value);
            phi->eraseFromParent();
        }
    }

    llvm::Function& function_;
    llvm::DominatorTree& dominators_;
    const llvm::LoopInfo& loops_;
    std::vector<Slot> slots_;
    llvm::DenseMap<const llvm::AllocaInst*, unsigned> number_of_;
    llvm::DenseMap<const llvm::BasicBlock*, Position> position_;
    std::vector<llvm::BasicBlock*> blocks_;
    std::vector<llvm::SmallVector<Edge, 2>> edges_; ///< that come to a block
    std::vector<llvm::Value*> entry_, left_;        ///< by block, of the slot at hand
    llvm::Value* first_ = nullptr;                  ///< what the function's entry leaves in it
    Position top_ = 0;
    const llvm::Loop* top_loop_ = nullptr; ///< that has top_ for its header, if what is written goes round in it
    bool is_reducible_ = true;             ///< else loops are not all there is to go round in
    std::vector<Position> live_;
    std::vector<bool> is_live_;
    std::vector<std::pair<llvm::PHINode*, Position>> open_phis_;
    std::vector<llvm::PHINode*> phis_;
    std::vector<llvm::LoadInst*> loads_;
    llvm::DenseMap<llvm::Value*, llvm::Value*> replacement_; ///< of each of loads_
    std::vector<llvm::StoreInst*> stores_;
    llvm::Value* undefined_ = nullptr;
};

} // namespace

llvm::PreservedAnalyses PromoteSlots::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    if (!Promotion(function, analyses.getResult<llvm::DominatorTreeAnalysis>(function),
                   analyses.getResult<llvm::LoopAnalysis>(function))
             .run())
        return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses kept;
    kept.preserveSet<llvm::CFGAnalyses>();
    return kept;
}

} // namespace ptarmigan::translator
