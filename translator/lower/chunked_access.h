// SPDX-License-Identifier: Apache-2.0
// Carries out an AccessPlan: one load or store per chunk, and the permutes between chunks and lanes.
#pragma once

#include "translator/lower/memory_access.h"

namespace ptarmigan::translator::lower {

/// What the lanes of an access with an affine address touch, for the planner.
AccessPattern pattern_of(WarpEmitter& e, const MemoryAccess& access);

/// The target has masked accesses of the plan's elements, and a mask over lanes can be cut along with the chunks.
bool takes_mask(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan);
/// Or its bits can be dealt out to the elements of each chunk (PDEP), of which a lane has several or between which
/// there are gaps. Otherwise chunks are for steps whose lanes are all active.
bool deals_mask_out(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan);

/// One <W x T> per component. All lanes must be active unless takes_mask(), or deals_mask_out() and it is to be done.
llvm::SmallVector<llvm::Value*, 8> load_chunks(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan,
                                               bool deals_out = false);

/// i1: the stores of a plan would fill whole lines of the caches; null if they never do.
llvm::Value* fills_lines(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan);

enum class StoreForm : std::uint8_t {
    plain,
    past_caches,   ///< streaming stores; only where fills_lines()
    deals_mask_out ///< under a mask; only where deals_mask_out()
};

/// Stores values[k] (<W x T>) as component k. All lanes must be active unless takes_mask() or the form says so.
void store_chunks(WarpEmitter& e, const MemoryAccess& access, const AccessPlan& plan,
                  llvm::ArrayRef<llvm::Value*> values, StoreForm form = StoreForm::plain);

} // namespace ptarmigan::translator::lower
