// SPDX-License-Identifier: Apache-2.0
// A PTX value as the emitter holds it: an LLVM value together with its shape over the step's lanes.
#pragma once

#include "frontend/ptx/types.h"
#include "translator/analysis/graph/shape.h"

#include <llvm/IR/Value.h>

namespace ptarmigan::translator {

/// `base` is a scalar for uniform and affine shapes (affine: the value of lane 0) and a <W x T> vector for varying
/// ones.
struct LaneValue {
    Shape shape;
    llvm::Value* base = nullptr;
    llvm::Value* stride = nullptr; ///< affine with steps: uniform scalar of the same type as base

    static LaneValue uniform(llvm::Value* scalar) { return {{Shape::Level::step_uniform}, scalar, nullptr}; }
    static LaneValue varying(llvm::Value* vector) { return {{Shape::Level::varying}, vector, nullptr}; }
    bool is_uniform() const { return shape.is_uniform(); }
    bool is_affine() const { return shape.is_affine(); }
};

} // namespace ptarmigan::translator
