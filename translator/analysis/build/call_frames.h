// SPDX-License-Identifier: Apache-2.0
// How much local memory the frames of a kernel and of the functions that it calls for real take together.
#pragma once

#include "frontend/ptx/module.h"

#include <cstdint>
#include <map>
#include <vector>

namespace ptarmigan::translator {

struct FunctionGraph;

/// A function's frame in a thread's local memory, and who may be called from there.
struct CallFrame {
    std::uint64_t bytes = 0;     ///< arguments, results and variables, those of inlined functions too
    std::uint64_t own_bytes = 0; ///< of the function's own variables
    std::vector<ptx::FunctionId> callees;
};

/// A function's frame: its argument block (returns and parameters), then its variables.
std::uint64_t argument_block_bytes(const FunctionGraph& graph);
std::uint64_t frame_bytes(const FunctionGraph& graph);

struct FrameDepth {
    std::uint64_t bytes = 0; ///< of the deepest chain of calls, each recursive circle entered once
    bool recursive = false;
    /// Bytes that recursion takes here where a GPU's takes one: a level there has the frame of one function, those of
    /// what it calls are given back.
    std::uint32_t scale = 1;
};

/// `frames` has all functions that `entry` reaches.
FrameDepth frame_depth(const std::map<ptx::FunctionId, CallFrame>& frames, ptx::FunctionId entry);

} // namespace ptarmigan::translator
