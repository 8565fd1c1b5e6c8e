// SPDX-License-Identifier: Apache-2.0
// Kernels so long that the time to compile them counts for more than what their code gains by being spelled out.
#pragma once

#include <llvm/IR/Module.h>

namespace ptarmigan::translator {

/// From so many PTX statements on a kernel is long. The library kernels whose good code takes seconds have 440 to
/// 8,000, kernels of the benchmarks whose lanes go to memory one by one at most 400.
constexpr unsigned long_kernel_statements = 440;

/// Notes that the kernel of this module is long.
inline void note_long_code(llvm::Module& module) {
    module.getOrInsertNamedMetadata("ptarmigan.long");
}

inline bool is_long_code(const llvm::Module& module) {
    return module.getNamedMetadata("ptarmigan.long") != nullptr;
}

} // namespace ptarmigan::translator
