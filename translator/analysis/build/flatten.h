// SPDX-License-Identifier: Apache-2.0
// First step of build_graph: blocks from labels and branches, callees inlined, registers of all instances in one list.
// The result is a FunctionGraph whose operands still name registers, and whose .param and .local variables are
// storages.
#pragma once

#include "translator/analysis/build/build_graph.h"

namespace ptarmigan::translator {

/// A .local variable or a .param variable of a call, one per inlined instance; VariableScope::frame indexes these
/// until promote_parameters() has run.
struct Storage {
    std::string name;
    std::uint64_t size = 0;
    std::uint32_t alignment = 1;
    ptx::ScalarType type = ptx::ScalarType::none; ///< element type, for a scalar .param without accesses
    bool scalar = false;
    bool is_parameter = false;
};

struct FlatFunction {
    FunctionGraph graph; ///< operands: RegisterIds into `registers`; not in SSA form
    std::vector<ptx::Register> registers;
    std::vector<Storage> storages;
    /// Inlined functions that use the stack: the block that they start in, and the one that they return to.
    std::vector<std::pair<BlockId, BlockId>> stack_scopes;
};

FlatFunction flatten(ptx::ModuleLoader& loader, ptx::FunctionId function, const GraphOptions& options,
                     const SharedLayout& layout);

/// Makes moves of stacksave and stackrestore, and arithmetic of alloca but for its check.
void place_stack(FlatFunction& flat);

/// Makes accesses through registers that hold a constant place in a .local variable name that variable.
void resolve_locals(FlatFunction& flat);

/// Makes registers of .param and .local variables that are only accessed piecewise at constant offsets; the others
/// become graph.locals. Lays out local memory.
void promote_parameters(FlatFunction& flat);

/// "file:line:col: error: text", for UnsupportedError.
std::string message_at(const FunctionGraph& graph, const SourceLocation& location, std::string_view text);
/// Follows `.alias`.
ptx::FunctionId resolve_alias(const ptx::Module& module, ptx::FunctionId function);

} // namespace ptarmigan::translator
