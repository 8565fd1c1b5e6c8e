// SPDX-License-Identifier: Apache-2.0
// From a bound kernel to its LLVM module: analyses, regions or fibers, masks or program counters.
#pragma once

#include "translator/compile.h"

#include <llvm/IR/Module.h>

#include <memory>
#include <string>

namespace ptarmigan::translator {

/// The module of `kernel`, or of what late_function_name() says, for one block shape, not yet optimised. Exactly one
/// defined function has external linkage: entry_symbol of jit/image.h. Notes in `progress` (may be null) what it
/// decides. Throws UnsupportedError or ptx::DiagnosticError.
std::unique_ptr<llvm::Module> emit_kernel(llvm::LLVMContext& context, ptx::ModuleLoader& loader,
                                          const std::string& kernel, const BlockShape& shape,
                                          const CompileOptions& options, KernelProperties& properties,
                                          CompileProgress* progress = nullptr);

} // namespace ptarmigan::translator
