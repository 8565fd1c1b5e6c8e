// SPDX-License-Identifier: Apache-2.0
// Bound body -> canonical SSA graph: control flow from labels, calls inlined, .param variables promoted, phis placed,
// copies and constants propagated, dead code removed. verify_graph.h lists what holds afterwards.
#pragma once

#include "translator/analysis/function_graph.h"

namespace ptarmigan::translator {

struct GraphOptions {
    BlockShape shape;                   ///< %ntid and the cluster dimensions become constants
    std::uint32_t inline_limit = 60000; ///< instructions after which further calls stay real calls
};

/// Builds the graph of `function` (an entry, or a function that is called for real). Throws UnsupportedError for a
/// construct that no later stage can take (named, with its position), ptx::DiagnosticError for a body that doesn't bind.
FunctionGraph build_graph(ptx::ModuleLoader& loader, ptx::FunctionId function, const GraphOptions& options);

/// Offsets of the .shared variables that a kernel and everything it can call use, inside the CTA's window.
/// Static variables come first in declaration order; all unsized extern arrays start together after them.
class SharedLayout {
public:
    struct Slot {
        ptx::VariableScope scope = ptx::VariableScope::module;
        ptx::FunctionId function = ptx::no_id; ///< scope body: declaring function
        ptx::VariableId variable = ptx::no_id;
        std::uint32_t offset = 0;
    };
    std::vector<Slot> slots;
    std::uint32_t static_size = 0;    ///< bytes of static variables, what the driver calls SHARED_SIZE_BYTES
    std::uint32_t dynamic_offset = 0; ///< where unsized extern arrays start (aligned)

    /// Offset of a module-scope variable; throws std::logic_error if the kernel does not use it.
    std::uint32_t module_offset(ptx::VariableId variable) const;
    /// Offset of a body-scope variable.
    std::uint32_t frame_offset(const FrameVariable& variable) const;
};

/// The layout for the kernel `graph` (its root). The same for every graph that is called from it for real.
SharedLayout shared_layout(ptx::ModuleLoader& loader, const FunctionGraph& graph);

} // namespace ptarmigan::translator
