// SPDX-License-Identifier: Apache-2.0
// How much stack generated code needs: LLVM's .stack_sizes section.
#pragma once

#include <cstdint>

namespace llvm::object {
class ObjectFile;
}

namespace ptarmigan::translator {

struct StackSizes {
    std::uint32_t all = 0; ///< bytes of one frame of every function together: enough for any chain without recursion
    std::uint32_t largest = 0; ///< of one function
};

/// Throws ImageError for a section that is cut off.
StackSizes read_stack_sizes(const llvm::object::ObjectFile& object);

} // namespace ptarmigan::translator
