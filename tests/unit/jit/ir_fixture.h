// SPDX-License-Identifier: Apache-2.0
// Hand-made LLVM modules for tests of what comes behind the emitter.
#pragma once

#include "translator/compile.h"

#include <string>

namespace ptarmigan::translator {

/// Parses LLVM IR and builds its image for a named target; throws what build_image() throws.
KernelImage image_of_ir(const std::string& ir, const std::string& target = "host");

/// The assembly of the same.
std::string assembly_of_ir(const std::string& ir, const std::string& target);

} // namespace ptarmigan::translator
