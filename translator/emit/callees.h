// SPDX-License-Identifier: Apache-2.0
// What the functions do that a kernel calls for real, as far as its own form depends on it.
#pragma once

#include "translator/analysis/build/build_graph.h"
#include "translator/analysis/memory/shared_accesses.h"
#include "translator/compile.h"

#include <vector>

namespace ptarmigan::translator {

/// What all functions together do that are called for real.
struct Callees {
    ptx::Effects effects = ptx::Effects::pure;
    bool spin = false;         ///< some wait for memory
    bool could_spin = false;   ///< some would with WaitingLoops::all
    bool exit_threads = false; ///< threads exit in some
    bool talk = false;         ///< lanes of a warp talk through volatile shared memory
    bool read_in_bulk = false; ///< reads_global_in_bulk()
    CalledFunctions called;
    bool late = false;     ///< some are called late
    bool are_here = false; ///< some are not: their code is made with the kernel's

    /// Lanes wait in them, or leave them, each by itself.
    bool need_single_lanes() const {
        return spin || exit_threads || ptx::any(effects, ptx::Effects::barrier | ptx::Effects::convergent);
    }
    /// Functions that nobody has looked at may do everything.
    void add_late() {
        late = true;
        effects = effects | ptx::Effects::barrier | ptx::Effects::convergent | ptx::Effects::waits;
        spin = could_spin = exit_threads = talk = read_in_bulk = called.share = called.meet = true;
    }
};

/// Of `graph` and all that it calls. `layout`: the kernel's.
Callees find_callees(ptx::ModuleLoader& loader, const FunctionGraph& graph, const GraphOptions& options,
                     const SharedLayout& layout, WaitingLoops waiting);

/// Every function that a graph may call for real, of code that is made with it.
std::vector<ptx::FunctionId> possible_callees(const FunctionGraph& graph, bool* calls_late = nullptr);

/// What all instructions together do.
ptx::Effects effects_of(const FunctionGraph& graph);

/// A copy of the async proxy reads global memory: a load, or a reduction. Loads complete at an mbarrier, stores do not.
bool reads_global_in_bulk(const FunctionGraph& graph);

bool touches_shared(const FunctionGraph& graph);

} // namespace ptarmigan::translator
