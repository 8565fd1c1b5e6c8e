// SPDX-License-Identifier: Apache-2.0
// Carries out an AccessPlan: one load or store per chunk, and the permutes between chunks and lanes.
#pragma once

#include "translator/lower/memory_access.h"

namespace ptarmigan::translator::lower {

/// What the lanes of an access with an affine address touch, for the planner.
AccessPattern pattern_of(WarpEmitter& e, const MemoryAccess& access);

/// One <W x T> per component. All lanes must be active unless takes_mask() and the plan is gapless.
llvm::SmallVector<llvm::Value*, 8> load_chunks(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan);

/// The target has masked accesses of the plan's elements, and a mask over lanes can be cut along with the chunks.
/// Otherwise chunks are for steps whose lanes are all active.
bool takes_mask(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan);

/// i1: the stores of a plan would fill whole lines of the caches; null if they never do.
llvm::Value* fills_lines(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan);

/// Stores values[k] (<W x T>) as component k. All lanes must be active unless takes_mask().
/// `past_caches`: by streaming stores; only where fills_lines().
void store_chunks(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan,
                  llvm::ArrayRef<llvm::Value*> values, bool past_caches = false);

} // namespace ptarmigan::translator::lower
