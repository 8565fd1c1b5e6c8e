// SPDX-License-Identifier: Apache-2.0
// What a kernel declares, with the functions that it mentions, and the limits that the driver sets on it.
#pragma once

#include "frontend/module_loader.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ptarmigan::runtime {

/// What the NVIDIA driver's compiler allows: all that a CTA can have (ptxas by itself stops at 48 KiB of shared
/// memory).
int max_static_shared();
constexpr int max_constants = 65536;

/// A function that is used and that nothing defines.
struct UnresolvedFunction {
    ptx::FunctionId id = 0;
    bool by_address = false; ///< else called
};

struct KernelUsage {
    std::uint64_t shared = 0, local = 0; ///< bytes, each variable at its alignment, in the order of declaration
    std::uint32_t registers = 0;         ///< of the body that declares most
    std::uint32_t statements = 0;        ///< of all bodies
    bool asks_driver = false; ///< mentions a function of the device runtime that a cooperative grid may not call
    std::optional<UnresolvedFunction> unresolved; ///< of several the one that ptxas names
};

/// What one body says of memory and of other functions: enough to add up kernels without their bodies.
struct BodyUsage {
    struct Block {
        std::uint64_t size = 0;
        std::uint32_t alignment = 1;
    };
    struct Mention {
        bool is_function = false; ///< else a .shared variable of the module
        bool by_address = false;  ///< of a function: not called
        std::uint32_t id = 0;
        bool operator==(const Mention&) const = default;
    };
    std::uint32_t registers = 0, statements = 0;
    std::vector<Block> shared, local;
    std::vector<Mention> mentions; ///< each once, in the order of the body; not of lists of call targets
};
BodyUsage usage_of_body(const ptx::Module& module, const ptx::Body& body);

using FindBodyUsage = std::function<const BodyUsage&(ptx::FunctionId)>;
/// Of the kernel and the functions that it mentions; `find` knows the bodies of those that are defined.
KernelUsage usage_of(const ptx::Module& module, ptx::FunctionId kernel, const FindBodyUsage& find);
/// Binds the bodies that it walks: throws ptx::DiagnosticError for one that does not bind.
KernelUsage usage_of(ptx::ModuleLoader& loader, ptx::FunctionId kernel);

/// Whether `function` is one of the device runtime that a cooperative grid may not call.
bool asks_driver(const ptx::Function& function);
/// Whether `function` has no body in this module, nor an alias' or the runtime's.
bool is_unresolved(const ptx::Function& function);
/// ptxas' line for it.
std::string unresolved_function_line(const ptx::Module& module, const UnresolvedFunction& function);

/// Bytes of the module's .const variables.
std::uint64_t constant_bytes(const ptx::Module& module);

/// The driver's line for a kernel with too much static .shared, or a module with too much .const; empty if it fits.
std::string excess_of(const KernelUsage& usage, const std::string& kernel);
std::string excess_of_constants(const ptx::Module& module);

} // namespace ptarmigan::runtime
