// SPDX-License-Identifier: Apache-2.0
// The PTX of an image whose machine code was taken. A kernel that can't be lifted runs by it, if the PTX has one of the
// same name that can take its place: same parameters, blocks and shared memory, and variables that both have are one.
#pragma once

#include "frontend/ptx/module.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ptarmigan::runtime {

class Kernel;
class ModuleSource;
struct KernelFacts;
struct PackedPtx;

/// A variable of the PTX that is a part of one of the machine code's.
struct LentVariable {
    ptx::VariableId home = 0;
    std::uint64_t offset = 0;
};

class PtxBeside {
public:
    void keep(std::shared_ptr<const PackedPtx> packed) { packed_ = std::move(packed); }
    /// The kernel that can take the place of `kernel` of machine code, of which `facts` are known. Null with the reason
    /// in `obstacle`, which is empty where there is no PTX or none of that name. Thread-safe.
    Kernel* stand_in(const Kernel& kernel, const KernelFacts& facts, std::string& obstacle);

    /// For who has got a kernel from stand_in().
    const std::shared_ptr<ModuleSource>& source() const { return source_; }
    /// By VariableId of the PTX.
    const std::vector<std::optional<LentVariable>>& lent_variables() const { return lent_; }

private:
    void load(const ModuleSource& machine_code);
    std::shared_ptr<const PackedPtx> packed_;
    std::once_flag once_;
    std::shared_ptr<ModuleSource> source_;
    std::vector<std::optional<LentVariable>> lent_;
    std::string obstacle_; ///< of all kernels
};

} // namespace ptarmigan::runtime
