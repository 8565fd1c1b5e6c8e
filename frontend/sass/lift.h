// SPDX-License-Identifier: Apache-2.0
// From a cubin to a module: a kernel's machine code is lifted to PTX statements, which the front end then reads like
// any other text, when somebody asks for that kernel.
#pragma once

#include "frontend/sass/cubin.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptarmigan::sass {

struct ModulePlan;

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

/// The sources that lifting is made of, as a hash: what they make of an image is the same wherever this is.
std::string_view lifter_id();

/// A cubin that has been read: variables and what is known of kernels, but nothing lifted. Constant, so any thread may
/// use it.
class MachineCode {
public:
    /// Null with the reason in `error` if the file is damaged (then `architecture` is 0) or of an architecture that is
    /// not in the table.
    static std::shared_ptr<MachineCode> read(std::string image, unsigned& architecture, std::string& error);
    ~MachineCode();

    unsigned architecture() const { return cubin_.architecture; }
    /// The shared address, in this code, of the first byte that is a block's own: on sm_90 the system's kilobyte is
    /// before it. Of the lower halves of generic addresses, too, which this code takes for shared ones.
    unsigned shared_start() const;
    const std::string& image() const { return image_; }
    const std::vector<VariableAlias>& aliases() const { return aliases_; }
    const Cubin& cubin() const { return cubin_; }
    /// Null if there is none of that name.
    const CubinKernel* find_kernel(std::string_view name) const;
    /// Bytes of its __constant__ variables.
    std::uint64_t constant_bytes() const;
    /// Instructions of a kernel's own section without what fills it up.
    std::uint32_t count_instructions(const CubinKernel& kernel) const;

    /// PTX of the module, to be had once: variables with their values, and kernels whose bodies are none, which is an
    /// error for whoever binds one. Not beside other calls.
    std::string take_declarations() { return std::move(declarations_); }

    /// PTX of one kernel: the module's variables, in the same order and without values, and the kernel. False with the
    /// reason in `why` if it holds what is not in the table.
    bool lift(const CubinKernel& kernel, std::string& text, std::string& why) const;
    /// PTX of all kernels; those that are refused do nothing but trap.
    std::string lift_all(std::vector<RefusedKernel>& refused) const;
    /// How often a kernel was lifted, for tests. Relaxed.
    std::uint64_t lifted_kernels() const { return lifted_kernels_.load(std::memory_order_relaxed); }

private:
    MachineCode() = default;
    bool declare(std::string& error);
    std::string head(bool is_warpgroup_code, const std::string& variables) const;
    std::string entry(const CubinKernel& kernel, const std::string& parameters, const std::string& body) const;

    std::string image_;
    Cubin cubin_;
    std::unique_ptr<const ModulePlan> plan_;
    std::unordered_map<std::string_view, const CubinKernel*> kernels_;
    std::string functions_; ///< declarations of what the runtime provides
    std::string variables_, declarations_;
    std::vector<VariableAlias> aliases_;
    mutable std::atomic<std::uint64_t> lifted_kernels_{0};
};

/// A module of which all has been lifted.
struct LiftedModule {
    std::string text; ///< PTX: all kernels; those that are refused do nothing but trap
    unsigned architecture = 0;
    std::vector<RefusedKernel> refused;
};

/// False with the reason in `error` if the file is damaged or of an architecture that is not in the table. Kernels that
/// hold what is not in the table are refused one by one.
bool lift_cubin(std::span<const std::uint8_t> image, LiftedModule& module, std::string& error);

/// Whether machine code of this architecture can be lifted.
bool lifts_architecture(unsigned architecture);

} // namespace ptarmigan::sass
