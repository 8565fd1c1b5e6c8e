// SPDX-License-Identifier: Apache-2.0
// A vector spilled to a stack slot, for loops over lanes: reading element `lane` of a vector at a run-time index
// would spill the whole vector again at every use.
#pragma once

#include "translator/emit/warp_emitter.h"

#include <utility>

namespace ptarmigan::translator::lower {

/// The slot serves others afterwards: only code that is emitted while the array lives uses it.
class LaneArray {
public:
    /// Holds `vector` (<W x T>).
    LaneArray(WarpEmitter& e, llvm::Value* vector) : e_(&e), type_(vector->getType()) {
        slot_ = e.take_lane_slot(type_);
        e.ir().CreateStore(vector, slot_);
    }
    LaneArray(LaneArray&& other) noexcept
        : e_(std::exchange(other.e_, nullptr)), type_(other.type_), slot_(other.slot_) {}
    LaneArray& operator=(LaneArray&&) = delete;
    ~LaneArray() {
        if (e_) e_->return_lane_slot(slot_);
    }

    llvm::Value* get(llvm::Value* lane) const { return e_->ir().CreateLoad(type_->getScalarType(), element(lane)); }
    /// Of lane `lane` + `more`; `lane` is 64 bits wide.
    llvm::Value* get(llvm::Value* lane, unsigned more) const {
        Ir& ir = e_->ir();
        return ir.CreateLoad(type_->getScalarType(),
                             ir.CreateConstInBoundsGEP1_64(type_->getScalarType(), element(lane), more));
    }
    /// Of one lane, or a vector of several from `lane` on.
    void set(llvm::Value* lane, llvm::Value* scalar) const { e_->ir().CreateStore(scalar, element(lane)); }
    /// The whole vector as it is now.
    llvm::Value* vector() const { return e_->ir().CreateLoad(type_, slot_); }

private:
    llvm::Value* element(llvm::Value* lane) const {
        llvm::Value* index = e_->ir().CreateZExt(lane, e_->ir().getInt64Ty());
        return e_->ir().CreateInBoundsGEP(type_->getScalarType(), slot_, index);
    }

    WarpEmitter* e_;
    llvm::Type* type_;
    llvm::AllocaInst* slot_;
};

} // namespace ptarmigan::translator::lower
