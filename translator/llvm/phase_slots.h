// SPDX-License-Identifier: Apache-2.0
// What steps of two alternating regions keep from one to the other, and how the form in registers keeps it.
#pragma once

#include "translator/llvm/phase_rounds.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>

#include <cstdint>
#include <map>
#include <optional>

namespace ptarmigan::translator {

/// Where in the steps' frames accesses are.
class FramePlaces {
public:
    struct Place {
        std::int64_t offset;              ///< in its step's frame
        std::optional<std::int64_t> step; ///< none: of the step at hand
    };

    FramePlaces(llvm::Value& frames, const llvm::Loop& loop, llvm::ScalarEvolution& evolution)
        : frames_(&frames), loop_(&loop), evolution_(&evolution) {}

    /// None where that is not known.
    std::optional<Place> find(llvm::Value& pointer);
    /// The place that a load or a store accesses, if it is one in the frames.
    bool is_in_frames(const llvm::Instruction& access) const;

    /// Bytes of a step's frame; 0 until an access in the loop over steps has been looked at.
    std::int64_t size() const { return size_; }

private:
    llvm::Value* frames_;
    const llvm::Loop* loop_;
    llvm::ScalarEvolution* evolution_;
    std::int64_t size_ = 0;
};

/// A place in each step's frame.
struct PhaseSlot {
    llvm::Type* type = nullptr;
    bool is_plain = true; ///< accessed as a whole, as this type
    bool in_products = false, is_loaded = false;
    llvm::StoreInst* store = nullptr; ///< by a step that loads tiles
    /// kept: in registers, all steps'. progress: the first step's in a register, the others' a distance from it.
    enum Kind { memory, kept, progress } kind = memory;
    bool is_same = false; ///< in all steps
};

struct PhaseSlots {
    llvm::SetVector<llvm::Instruction*> needed; ///< of the usual way
    std::map<std::int64_t, PhaseSlot> by_offset;
    FramePlaces places;
};

/// None where a step does what may not be done that way, nothing would be kept in registers, or what is rare can't be
/// told in front of the first round.
std::optional<PhaseSlots> find_phase_slots(const RegionChoice& choice, const PhaseRounds& rounds,
                                           llvm::ScalarEvolution& evolution, const llvm::LoopInfo& loops,
                                           const llvm::DominatorTree& tree, const llvm::TargetTransformInfo& target);

} // namespace ptarmigan::translator
