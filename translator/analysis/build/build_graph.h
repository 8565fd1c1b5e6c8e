// SPDX-License-Identifier: Apache-2.0
// Bound body -> canonical SSA graph: control flow from labels, calls inlined, .param variables promoted, phis placed,
// copies and constants propagated, dead code removed. verify_graph.h lists what holds afterwards.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <optional>
#include <utility>

namespace ptarmigan::translator {

struct GraphOptions {
    BlockShape shape; ///< %ntid and the cluster dimensions become constants
    /// The kernel that a function called for real belongs to: fixes where its .shared variables are. no_id: `function`.
    ptx::FunctionId kernel = ptx::no_id;
    bool late_copies = false;           ///< CompileOptions::late_copies
    bool unrolls = false;               ///< for good code: unroll_rounds.h
    std::uint32_t inline_limit = 60000; ///< instructions after which further calls stay real calls
};

/// Builds the graph of `function` (an entry, or a function that is called for real). Throws UnsupportedError for a
/// construct that no later stage can take (named, with its position), ptx::DiagnosticError for a body that doesn't
/// bind.
FunctionGraph build_graph(ptx::ModuleLoader& loader, ptx::FunctionId function, const GraphOptions& options);

/// Offsets of the .shared variables that a kernel and everything it can call use, inside the CTA's window.
/// Static variables come first in declaration order; all unsized extern arrays start together after them.
class SharedLayout {
public:
    struct Slot {
        ptx::FunctionId function = ptx::no_id; ///< declaring function; no_id at module scope
        ptx::VariableId variable = ptx::no_id;
        std::uint32_t offset = 0;
        bool operator<(const Slot& other) const {
            return std::pair(function, variable) < std::pair(other.function, other.variable);
        }
    };
    std::vector<Slot> slots;          ///< sorted
    std::uint32_t static_size = 0;    ///< bytes of static variables, what the driver calls SHARED_SIZE_BYTES
    std::uint32_t dynamic_offset = 0; ///< where unsized extern arrays start (aligned for the strictest of them)

    /// Offset of a variable (`function` = no_id for module scope), or nothing if the kernel can't reach it.
    std::optional<std::uint32_t> offset_of(ptx::FunctionId function, ptx::VariableId variable) const;
};

/// The layout for `kernel`: every .shared variable that it, its callees, or (with indirect calls) any function uses.
SharedLayout shared_layout(ptx::ModuleLoader& loader, ptx::FunctionId kernel);

} // namespace ptarmigan::translator
