// SPDX-License-Identifier: Apache-2.0
// From a cubin to a module: every kernel's machine code is lifted to PTX statements, which the front end then reads
// like any other text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ptarmigan::sass {

/// A kernel that can't be lifted, and why: "IMMA.16832.S8.S8 at 0x1a0".
struct RefusedKernel {
    std::string kernel, reason;
};

/// A name that the cubin gives to a part of a variable of the lifted module.
struct VariableAlias {
    std::string name, variable;
    std::uint64_t offset = 0, size = 0;
    bool is_managed = false;
};

struct LiftedModule {
    std::string text; ///< PTX: all kernels; those that are refused do nothing but trap
    unsigned architecture = 0;
    /// The shared address, in this code, of the first byte that is a block's own: on sm_90 the system's kilobyte is
    /// before it. Of the lower halves of generic addresses, too, which this code takes for shared ones.
    unsigned shared_start = 0;
    std::vector<RefusedKernel> refused;
    std::vector<VariableAlias> aliases;
};

/// False with the reason in `error` if the file is damaged or of an architecture that is not in the table. Kernels that
/// hold what is not in the table are refused one by one.
bool lift_cubin(std::span<const std::uint8_t> image, LiftedModule& module, std::string& error);

/// Whether machine code of this architecture can be lifted.
bool lifts_architecture(unsigned architecture);

} // namespace ptarmigan::sass
