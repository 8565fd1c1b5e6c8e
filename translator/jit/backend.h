// SPDX-License-Identifier: Apache-2.0
// An LLVM module to an image: target, passes, code generation, linking. Knows nothing of PTX.
#pragma once

#include "translator/compile.h"

#include <string>

namespace llvm {
class Module;
}

namespace ptarmigan::translator {

/// The image of `module`, which is changed on the way. Adds to `times` (may be null). Throws ImageError, or
/// std::runtime_error with LLVM's message.
KernelImage build_image(llvm::Module& module, const TargetCpu& target, CompileTimes* times,
                        Optimization optimization = Optimization::full, CompileProgress* progress = nullptr);

/// The module as text: "llvm" as given, "llvm-opt" after the passes, "asm" as assembly for `target`.
std::string dump_module(llvm::Module& module, const TargetCpu& target, const std::string& stage,
                        Optimization optimization = Optimization::full, CompileProgress* progress = nullptr);

/// CPU time of the calling thread, for stage times: a loaded machine does not change it much.
double thread_microseconds();

/// Runs `work` in a thread with a stack of its own and waits: LLVM recurses deeply on large functions, and callers may
/// be threads with small stacks. Exceptions of `work` arrive here.
void run_with_large_stack(void (*work)(void*), void* argument);

} // namespace ptarmigan::translator
